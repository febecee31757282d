/** What a model did on the way to its answer: folded, each call with its arguments and its result. */

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { Icon, type IconName } from "../basic";
import { count } from "../format";
import type { Step } from "./turn";

type Call = Extract<Step, { kind: "call" }>;

const MAX_CHARS = 6_000;
const TELLING = ["query", "path", "heading", "url", "source", "question", "name", "task", "tag", "folder", "paths"];
const ICONS: Readonly<Record<Call["state"], IconName>> = { open: "loader-circle", good: "check", failed: "x", broken: "minus" };
const STATES: Readonly<Record<Call["state"], string>> = { open: "running", good: "done", failed: "failed", broken: "no answer" };

interface StepsProps {
  steps: readonly Step[];
  isOver: boolean;
  /** Show them while they are done, and fold them away at the end. */
  isLive?: boolean | undefined;
  /** Loads arguments and results of a kept turn; called when somebody folds the steps out. */
  onDetails: () => Promise<void>;
}

export function Steps({ steps, isOver, isLive = false, onDetails }: StepsProps): JSX.Element | null {
  const problem = useSignal("");
  const load = (event: Event): void => {
    if (event.target !== event.currentTarget || !(event.currentTarget as HTMLDetailsElement).open) return;
    onDetails().then(
      () => (problem.value = ""),
      (error: unknown) => (problem.value = error instanceof Error ? error.message : String(error)),
    );
  };
  if (!steps.length) return null;
  return (
    <details class="k-steps" open={isLive && !isOver} onToggle={load}>
      <summary class="k-fold">
        <Icon name="chevron-right" />
        <span class="k-cut">{isLive && steps.some((step) => step.kind === "round") ? `${isOver ? "Exploration actions" : "Exploring vault"} · ` : ""}{stepsTitle(steps, isOver)}</span>
      </summary>
      <ol class="k-steps-list">
        {steps.map((step, index) => (
          <li key={index}>{step.kind === "call" ? <CallStep call={step} problem={problem.value} /> : <OtherStep step={step} />}</li>
        ))}
      </ol>
    </details>
  );
}

/** What the steps come to, in one line. */
export function stepsTitle(steps: readonly Step[], isOver: boolean): string {
  const calls = steps.filter((step): step is Call => step.kind === "call");
  const open = calls.filter((call) => call.state === "open");
  if (open.length && !isOver) return `Working: ${open.map((call) => humanName(call.name)).join(", ")}…`;
  const failed = calls.filter((call) => call.state === "failed").length;
  const names = [...new Set(calls.map((call) => humanName(call.name)))];
  return [`${count(calls.length, "step")}${failed ? `, ${failed} failed` : ""}`, names.join(", ")].filter(Boolean).join(": ");
}

function humanName(name: string): string {
  return name.replaceAll("_", " ");
}

function OtherStep({ step }: { step: Exclude<Step, Call> }): JSX.Element {
  if (step.kind === "text") return <p class="k-step-aside">{step.text}</p>;
  return (
    <p class="k-step-round">
      Round {step.number} of {step.limit}
    </p>
  );
}

function CallStep({ call, problem }: { call: Call; problem: string }): JSX.Element {
  return (
    <details class="k-step" data-state={call.state}>
      <summary class="k-fold">
        <Icon name={ICONS[call.state]} label={STATES[call.state]} />
        <code>{call.name}</code>
        <span class="k-step-about k-cut">{about(call.given)}</span>
        {call.summary && <span class="k-step-summary k-cut">{call.summary}</span>}
      </summary>
      <div class="k-step-body">
        <h3>Arguments</h3>
        <Value value={call.given} problem={problem} />
        <h3>Result</h3>
        {call.cutFrom ? <p class="k-small k-quiet">The model saw a part of {count(call.cutFrom, "character")}.</p> : null}
        {call.state === "broken" ? (
          <p class="k-small k-quiet">None.</p>
        ) : call.state === "open" ? (
          <p class="k-small k-quiet">Still running…</p>
        ) : (
          <Value value={call.answer} problem={problem} />
        )}
      </div>
    </details>
  );
}

function Value({ value, problem }: { value: unknown; problem: string }): JSX.Element {
  if (value === undefined) return problem ? <p role="alert">{problem}</p> : <div class="k-skeleton" />;
  const text = typeof value === "string" ? `${value}…` : JSON.stringify(value, null, 2); // a text is the beginning of what was too long
  return (
    <pre tabIndex={0}>
      <code>{shortened(text, MAX_CHARS)}</code>
    </pre>
  );
}

/** The argument that tells most, such as what was searched for. */
function about(given: unknown): string {
  if (given === null || typeof given !== "object") return "";
  const values = given as Record<string, unknown>;
  const found = TELLING.map((name) => values[name]).find((value) => (typeof value === "string" && value) || (Array.isArray(value) && value.length));
  return shortened(Array.isArray(found) ? found.join(", ") : typeof found === "string" ? found : "", 50);
}

function shortened(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most)}…` : text;
}

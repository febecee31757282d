/** Begin a run: the task, how it is done, and how much it may take. */

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { failureOf, textOf, type Failure } from "../../client";
import { Button, Field } from "../basic";
import { sentence } from "../format";
import { useHost } from "../host";
import { FailureNotice, Notice, SkeletonText } from "../rows";
import { changedLimits, type RunOptions } from "./model";
import type { RunList } from "./runs";

const MAX_CHARS = 50_000;
/** Its next step is the button, and not the variable that is named to those at a terminal. */
const NO_MODEL = /^(no model is set:|$)/;

const LIMITS: Readonly<Record<string, { name: string; hint: string }>> = {
  depth: { name: "Levels", hint: "below the task" },
  nodes: { name: "Parts", hint: "" },
  minutes: { name: "Minutes", hint: "" },
  tokens: { name: "Tokens", hint: "0 for no limit" },
  cents: { name: "Cents (US)", hint: "0 for no limit; only where prices are known" },
};
const PROFILES: Readonly<Record<string, string>> = {
  strict: "Vaults only",
  local: "Vaults and configured folders",
  extended: "Vaults, configured folders and hosts",
};

interface LimitsProps {
  values: Readonly<Record<string, number>>;
  ranges: RunOptions["ranges"];
  onChange: (name: string, text: string) => void;
}

/** Fields for the limits of a run. */
export function LimitFields({ values, ranges, onChange }: LimitsProps): JSX.Element {
  return (
    <div class="k-limits">
      {Object.entries(LIMITS)
        .filter(([name]) => values[name] !== undefined)
        .map(([name, { name: label, hint }]) => {
          const range = ranges[name];
          const most = range ? `at most ${range.most.toLocaleString("en")}` : "";
          return (
            <Field key={name} label={label} hint={[most, hint].filter(Boolean).join("; ")}>
              {(attributes) => (
                <input
                  {...attributes}
                  class="k-input"
                  type="number"
                  inputMode="decimal"
                  min={range?.least ?? 0}
                  max={range?.most}
                  step={name === "minutes" ? "any" : "1"}
                  defaultValue={String(values[name])}
                  onInput={(event) => onChange(name, event.currentTarget.value)}
                />
              )}
            </Field>
          );
        })}
    </div>
  );
}

interface BeginProps {
  list: RunList;
  /** The vaults beside the one that is open. */
  others: readonly string[];
  onBegun: (id: string) => void;
}

/** The form that begins a run. */
export function BeginRun({ list, others, onBegun }: BeginProps): JSX.Element {
  const options = list.options.data.value;
  const failure = list.options.failure.value;
  useEffect(() => void list.options.load(), []);
  if (failure && !options) {
    return <FailureNotice failure={failure} />;
  }
  return options ? <BeginForm list={list} others={others} options={options} onBegun={onBegun} /> : <SkeletonText lines={5} />;
}

function BeginForm({ list, others, options, onBegun }: BeginProps & { options: RunOptions }): JSX.Element {
  const form = useRef<HTMLFormElement>(null);
  const task = useRef<HTMLTextAreaElement>(null);
  const problem = useSignal<Failure | null>(null);
  const isBusy = useSignal(false);
  const given = useRef<Record<string, string>>({});
  const id = useId();
  const canScripts = options.sandbox_ready !== null;
  useEffect(() => task.current?.focus(), []);
  const submit = async () => {
    const node = form.current;
    if (!node || isBusy.value) return;
    const data = new FormData(node);
    isBusy.value = true;
    problem.value = null;
    try {
      const begun = await list.begin({
        task: textOf(data.get("task")),
        also: data.getAll("also").map(textOf),
        strategy: textOf(data.get("strategy")) || "auto",
        code_mode: data.get("code_mode") === "on",
        profile: textOf(data.get("profile")) || null,
        fresh: data.get("fresh") === "on",
        model: textOf(data.get("model")).trim(),
        ...changedLimits(options.limits, given.current),
      });
      onBegun(begun);
    } catch (error) {
      problem.value = failureOf(error);
    }
    isBusy.value = false;
  };
  return (
    <form
      ref={form}
      class="k-run-begin"
      aria-label="New run"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <p class="k-quiet">A large task is split into parts where that helps. Each part finds its own notes and answers with citations, and the answers are combined.</p>
      <Warnings options={options} />
      <Field label="Task">
        {(attributes) => (
          <textarea
            {...attributes}
            ref={task}
            class="k-input"
            name="task"
            rows={5}
            maxLength={MAX_CHARS}
            required
            onKeyDown={(event) => {
              if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.current?.requestSubmit();
            }}
          />
        )}
      </Field>
      {others.length > 0 && (
        <fieldset class="k-ticks">
          <legend>Also search other vaults</legend>
          {others.map((name) => (
            <label key={name}>
              <input type="checkbox" name="also" value={name} /> {name}
            </label>
          ))}
        </fieldset>
      )}
      <Field label="Strategy">
        {(attributes) => (
          <select {...attributes} class="k-input" name="strategy">
            {strategiesOf(options).map((one) => (
              <option key={one.name} value={one.name} selected={one.name === options.strategy}>
                {`${one.name}: ${one.summary}${one.own ? " (your own)" : ""}`}
              </option>
            ))}
          </select>
        )}
      </Field>
      <label class="k-tick">
        <input type="checkbox" name="code_mode" defaultChecked={options.code_mode && canScripts} disabled={!canScripts} /> Let the model write scripts to find notes (Code Mode)
      </label>
      <details class="k-begin-more">
        <summary>More options</summary>
        <LimitFields values={options.limits} ranges={options.ranges} onChange={(name, text) => (given.current[name] = text)} />
        <Field label="Model">{(attributes) => <input {...attributes} class="k-input" name="model" maxLength={200} placeholder={options.model ?? ""} />}</Field>
        {options.profiles.length > 1 && (
          <Field label="Scripts may read">
            {(attributes) => (
              <select {...attributes} class="k-input" name="profile">
                {options.profiles.map((name) => (
                  <option key={name} value={name}>
                    {PROFILES[name] ?? name}
                  </option>
                ))}
              </select>
            )}
          </Field>
        )}
        <label class="k-tick">
          <input type="checkbox" name="fresh" /> Don't reuse results of earlier runs
        </label>
      </details>
      {problem.value && (
        <div id={`${id}-problem`}>
          <Notice tone="removed">
            <strong>{sentence(problem.value.message)}</strong>
            {problem.value.hint && <div class="k-quiet">{sentence(problem.value.hint)}</div>}
          </Notice>
        </div>
      )}
      <div>
        <Button kind="primary" type="submit" icon="play" isDisabled={isBusy.value}>
          Start
        </Button>
      </div>
    </form>
  );
}

function strategiesOf({ strategies }: RunOptions): RunOptions["strategies"] {
  return [{ name: "auto", summary: "chosen by the model", own: false }, ...strategies.filter((one) => one.name !== "auto")];
}

function Warnings({ options }: { options: RunOptions }): JSX.Element {
  const host = useHost();
  const scripts =
    options.sandbox_ready === false
      ? "Scripts need a one-time setup, which takes a few seconds."
      : options.sandbox_ready === null
        ? `Scripts can't run here, so parts use search instead. ${options.sandbox_hint}`
        : "";
  return (
    <>
      {!options.model && (
        <Notice tone="warning">
          <p class="k-run-warning">{NO_MODEL.test(options.model_hint) ? "No model is set up." : sentence(options.model_hint)}</p>
          {host.openSettings && (
            <Button size="small" icon="key-round" onClick={() => host.openSettings?.("models")}>
              Set up a model
            </Button>
          )}
        </Notice>
      )}
      {scripts && <Notice>{scripts}</Notice>}
    </>
  );
}

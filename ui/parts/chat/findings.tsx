/** What the agents of a task found: how far each is, the scout's notes, the web's sources, and what went in. */

import type { ComponentChildren, JSX } from "preact";
import { Button, Icon, type IconName } from "../basic";
import { cost, count, noteName, tokens } from "../format";
import { useHost } from "../host";
import { kindOfAddress } from "../markdown";
import { AGENT_NAMES } from "./choice";
import type { Phase, ScopedNote, Selection, Spent, Turn, UsedNotes, WebFindings, WebSource } from "./turn";

const PHASE_ICONS: Readonly<Record<Phase["state"], IconName>> = { started: "loader-circle", going_on: "loader-circle", ended: "check", broken: "minus" };
const SCOUT_ENDS: Readonly<Record<string, string>> = {
  rounds: "out of rounds",
  timeout: "out of time",
  asked: "has a question for you",
  cancelled: "stopped",
  failed: "failed",
};

export function Phases({ phases }: { phases: readonly Phase[] }): JSX.Element | null {
  if (!phases.length) return null;
  return (
    <ol class="k-phases" aria-label="Agents">
      {phases.map((phase) => (
        <li key={phase.phase} data-state={phase.state}>
          <Icon name={PHASE_ICONS[phase.state] ?? "loader-circle"} />
          <strong>{AGENT_NAMES[phase.phase] ?? phase.phase}</strong> <span class="k-quiet">{phase.text}</span>
        </li>
      ))}
    </ol>
  );
}

interface FindingsProps {
  turn: Turn;
  /** Shows its notes as a graph; undefined where there are no graphs. */
  onGraph: (() => void) | undefined;
  onCopy: (paths: readonly string[]) => void;
}

/** Everything that was found, each folded. */
export function Findings({ turn, onGraph, onCopy }: FindingsProps): JSX.Element | null {
  const { selection, web, context } = turn;
  if (!selection && !web && !context) return null;
  return (
    <div class="k-findings">
      {selection && <ScoutFinding selection={selection} onGraph={onGraph} />}
      {web && <WebFinding web={web} />}
      {context && <ContextFinding context={context} onGraph={selection ? undefined : onGraph} onCopy={onCopy} />}
    </div>
  );
}

function Finding({ name, icon, title, children }: { name: string; icon: IconName; title: string; children: ComponentChildren }): JSX.Element {
  return (
    <details class="k-finding" data-finding={name}>
      <summary class="k-fold">
        <Icon name="chevron-right" />
        <Icon name={icon} />
        <span class="k-cut">{title}</span>
      </summary>
      <div class="k-finding-body">{children}</div>
    </details>
  );
}

function GraphButton({ onGraph }: { onGraph: () => void }): JSX.Element {
  return (
    <Button size="small" icon="waypoints" onClick={onGraph}>
      Graph of these notes
    </Button>
  );
}

function ScoutFinding({ selection, onGraph }: { selection: Selection } & Pick<FindingsProps, "onGraph">): JSX.Element {
  const how = [selection.confidence, SCOUT_ENDS[selection.ended]].filter(Boolean).join(", ");
  return (
    <Finding name="selection" icon="binoculars" title={`Scout chose ${count(selection.notes.length, "note")}${how ? ` · ${how}` : ""}`}>
      {selection.reasoning && <p>{selection.reasoning}</p>}
      <NoteReasons notes={selection.notes} />
      {onGraph && selection.notes.length > 0 && <GraphButton onGraph={onGraph} />}
      {selection.summary && (
        <details>
          <summary>What it did</summary>
          <pre tabIndex={0}>{selection.summary}</pre>
        </details>
      )}
    </Finding>
  );
}

function WebFinding({ web }: { web: WebFindings }): JSX.Element {
  const { sources, queries } = web;
  return (
    <Finding name="sources" icon="globe" title={sources.length ? `${count(sources.length, "source")} from the web` : "Nothing used from the web"}>
      {web.problem && <p class="k-warning-text">{web.problem}</p>}
      {web.reasoning && <p>{web.reasoning}</p>}
      {queries.length > 0 && <p class="k-quiet">Searched for: {queries.join("; ")}</p>}
      {web.findings && <p>{web.findings}</p>}
      {sources.length > 0 && (
        <ol class="k-sources">
          {sources.map((source, index) => (
            <SourceItem key={index} source={source} />
          ))}
        </ol>
      )}
    </Finding>
  );
}

function SourceItem({ source }: { source: WebSource }): JSX.Element {
  const name = source.title || source.url || "Untitled";
  const isWeb = /^https?:\/\//i.test(source.url) && kindOfAddress(source.url) === "web";
  return (
    <li>
      {isWeb ? (
        <a class="k-web" href={source.url} target="_blank" rel="noopener noreferrer">
          {name}
        </a>
      ) : (
        <span title="This link can't be opened">{name}</span>
      )}
      <p class="k-small k-quiet k-cut">{[source.url, source.date].filter(Boolean).join(" · ")}</p>
      {source.text && <blockquote>{source.text}</blockquote>}
    </li>
  );
}

function ContextFinding({ context, onGraph, onCopy }: { context: UsedNotes } & Pick<FindingsProps, "onGraph" | "onCopy">): JSX.Element {
  return (
    <Finding name="context" icon="book-open" title={`${count(context.notes.length, "note")} in context · ${tokens(context.tokens)} tokens`}>
      <NoteReasons notes={context.notes} />
      <LeftOut notes={context.removed} />
      {context.notes.length > 0 && (
        <p class="k-finding-acts">
          <Button size="small" icon="copy" onClick={() => onCopy(context.notes.map((note) => note.path))}>
            Copy text
          </Button>
          {onGraph && <GraphButton onGraph={onGraph} />}
        </p>
      )}
    </Finding>
  );
}

/** Notes, each with the reason why it is there. */
export function NoteReasons({ notes }: { notes: readonly ScopedNote[] }): JSX.Element {
  const host = useHost();
  return (
    <ul class="k-reasons">
      {notes.map((note) => (
        <li key={note.path}>
          <button type="button" class="k-reason-note" title={note.path} onClick={() => host.open({ kind: "note", path: note.path }, "pane")}>
            <Icon name="file-text" />
            <span class="k-cut">{noteName(note.path)}</span>
          </button>
          <span class="k-small k-quiet">{[note.why, note.tokens === null ? "" : `${tokens(note.tokens)} tokens`].filter(Boolean).join(" · ")}</span>
          {note.reason && <p class="k-small">{note.reason}</p>}
        </li>
      ))}
    </ul>
  );
}

/** What the limit leaves out. */
export function LeftOut({ notes }: { notes: readonly ScopedNote[] }): JSX.Element | null {
  if (!notes.length) return null;
  return (
    <details class="k-left-out" open={notes.length <= 3}>
      <summary>Left out by the limit: {count(notes.length, "note")}</summary>
      <NoteReasons notes={notes} />
    </details>
  );
}

/** What each agent took. */
export function SpentTable({ spent, model }: { spent: Spent; model: string }): JSX.Element {
  const rows = Object.entries(spent.phases);
  return (
    <table class="k-spent-table">
      <caption class="k-only-read">Usage of {model}</caption>
      <thead>
        <tr>
          <th scope="col">Agent</th>
          <th scope="col">Input</th>
          <th scope="col">Output</th>
          <th scope="col">Requests</th>
          <th scope="col">Cost</th>
        </tr>
      </thead>
      <tbody>
        {rows.map(([name, own]) => (
          <tr key={name}>
            <th scope="row">{AGENT_NAMES[name] ?? name}</th>
            <td>{tokens(own.input_tokens)}</td>
            <td>{tokens(own.output_tokens)}</td>
            <td>{own.requests}</td>
            <td>{cost(own.cost_usd)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

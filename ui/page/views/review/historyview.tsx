/** The history as a person reads it: pieces of work, each from the question to what became of it. */

import type { JSX } from "preact";
import { Button, Chip, Empty, FailureNotice, Icon, IconButton, SearchBox, SkeletonRows, useHost, type Host, type IconName } from "../../../parts";
import { ago, cost, count, dateTime, languageOfDates, noteName, sentence, tokens } from "../../../parts/format";
import { NoteLink, STATE_NAMES, type Change, type Journal, type Origin } from "../../../parts/review";
import { askUndo, ChangeDifferences } from "../../../parts/review/journalview";
import { KINDS, keyOf, type History, type Step, type StepKind, type Work } from "./history";

interface HistoryProps {
  history: History;
  journal: Journal;
  origin: (work: string) => Origin | undefined;
}

const MOST_NOTES = 4;

/** What was done, by whom, and what became of it. */
export function HistoryView(props: HistoryProps): JSX.Element {
  const { history, origin } = props;
  const failure = history.loaded.failure.value;
  const { kind, work, note } = history.filter.value;
  return (
    <div class="k-journal">
      <div class="k-journal-filters">
        <SearchBox label="Note or folder" value={note} onInput={(text) => history.setFilter({ note: text })} />
      </div>
      <div class="k-journal-chips" role="group" aria-label="Filters">
        {(Object.keys(KINDS) as StepKind[]).map((each) => (
          <Chip key={each} icon={KINDS[each].icon} isPressed={kind === each} onClick={() => history.setFilter({ kind: kind === each ? "" : each })}>
            {KINDS[each].name}
          </Chip>
        ))}
        {work && (
          <Chip tone="accent" onRemove={() => history.setFilter({ work: "" })} removeLabel="Show all work">
            {origin(work)?.title ?? work}
          </Chip>
        )}
      </div>
      {history.notices.value.length > 0 && (
        <ul class="k-notices">
          {history.notices.value.map((notice) => (
            <li key={notice}>{notice}</li>
          ))}
        </ul>
      )}
      {failure && !failure.isOffline ? <FailureNotice failure={failure} /> : <Works {...props} />}
    </div>
  );
}

function Works(props: HistoryProps): JSX.Element {
  const { history } = props;
  const steps = history.loaded.data.value;
  if (!steps) return <SkeletonRows />;
  if (!steps.length) {
    const { kind, work, note } = history.filter.value;
    return kind || work || note ? (
      <Empty icon="search" title="No matching steps">
        Try fewer filters.
      </Empty>
    ) : (
      <Empty icon="list-tree" title="Nothing done yet">
        What you and agents ask, find, propose, accept and undo is told here, from the question to what became of it.
      </Empty>
    );
  }
  return (
    <>
      <div class="k-works">
        {history.works.value.map((work) => (
          <WorkEntry key={work.id} {...props} work={work} />
        ))}
      </div>
      {history.hasMore.value && (
        <p class="k-work-more">
          <Button isDisabled={history.loaded.isLoading.value} onClick={() => history.loadMore()}>
            Show more than the latest {count(steps.length, "step")}
          </Button>
        </p>
      )}
    </>
  );
}

function WorkEntry(props: HistoryProps & { work: Work }): JSX.Element {
  const { history, journal, work } = props;
  const host = useHost();
  const from = props.origin(work.id);
  const first = work.steps.find((step) => step.notes?.length)?.notes?.[0];
  const title = (work.title || from?.title) ?? (first ? noteName(first) : work.id);
  const target = targetOf(work);
  const hasRun = work.steps.some((step) => step.kind === "changed" || step.kind === "accepted") && work.steps.some((step) => step.session_id || step.run_id);
  return (
    <section class="k-work" aria-label={title} data-work={work.id}>
      <div class="k-work-head">
        <Icon name={iconOf(work)} />
        <h3 class="k-cut" title={title}>
          {title}
        </h3>
        <IconButton
          icon="ellipsis"
          size="small"
          label={`Actions: ${title}`}
          onClick={(event) =>
            host.floaters.openMenu(event, "More", [
              { title: "Only this work", icon: "list-filter", run: () => history.setFilter({ work: work.id, kind: "", note: "" }) },
              ...(target ? [{ title: target.kind === "run" ? "Open the run" : "Open the conversation", icon: iconOf(work), run: () => host.open(target) }] : []),
              ...(hasRun
                ? ["line" as const, { title: "Undo the whole run…", icon: "undo-2" as const, tone: "danger" as const, run: () => void undo(host, history, journal, { run: work.id }, title) }]
                : []),
            ])
          }
        />
      </div>
      <ul class="k-plain">
        {work.steps.map((step) => (
          <StepEntry key={keyOf(step)} {...props} step={step} />
        ))}
      </ul>
    </section>
  );
}

function StepEntry({ history, journal, work, step }: HistoryProps & { work: Work; step: Step }): JSX.Element {
  const host = useHost();
  const change = changeOf(step);
  const isOpen = history.open.value.has(keyOf(step));
  const named = (step.notes ?? []).slice(0, MOST_NOTES);
  const more = (step.note_count ?? 0) - named.length;
  const notes = (
    <>
      {named.map((path) => (
        <span key={path}>
          <NoteLink path={path} />
        </span>
      ))}
      {more > 0 && <span>{count(more, named.length ? "more note" : "note")}</span>}
    </>
  );
  const hasText = Boolean(step.text) || step.kind === "asked";
  const name = `${KINDS[step.kind].name} ${noteName(named[0] ?? "")}`;
  return (
    <li class="k-step" data-kind={step.kind} data-change={change?.id}>
      <div class="k-step-head">
        <Icon name={KINDS[step.kind].icon} />
        <span class="k-step-kind">{KINDS[step.kind].name}</span>
        {hasText ? <StepText step={step} title={work.title} /> : <span class="k-step-text k-step-notes">{notes}</span>}
        {step.proposal_id && step.kind !== "accepted" && (
          <Button size="small" kind="quiet" href={host.href({ kind: "proposal", id: step.proposal_id })} label={`Open the proposal: ${name}`}>
            Proposal
          </Button>
        )}
        {change && (
          <Button size="small" kind="quiet" icon={isOpen ? "chevron-down" : "chevron-right"} label={`Changes: ${name}`} isExpanded={isOpen} onClick={() => history.toggle(keyOf(step))}>
            Changes
          </Button>
        )}
        {change && !change.undone && (
          <Button size="small" kind="quiet" icon="undo-2" label={`Undo: ${name}`} onClick={() => void undo(host, history, journal, { change_id: change.id }, name)}>
            Undo
          </Button>
        )}
        <time class="k-row-meta" dateTime={step.at} title={step.undated ? "When isn't recorded" : dateTime(step.at)}>
          {step.undated ? "later" : timeOf(step.at)}
        </time>
      </div>
      <p class="k-step-facts">
        {[...new Set(factsOf(step))].map((fact) => (
          <span key={fact}>{fact}</span>
        ))}
        {hasText && notes}
      </p>
      {change && isOpen && <ChangeDifferences journal={journal} change={change} />}
    </li>
  );
}

function StepText({ step, title }: { step: Step; title: string }): JSX.Element {
  const host = useHost();
  // The first question is the title above; a link in its place would be read twice.
  const text = step.kind === "asked" && step.text === title ? "" : (step.text ?? "");
  const target = step.kind === "asked" ? targetOfStep(step) : undefined;
  const to = target && host.href(target);
  return (
    <span class="k-step-text k-cut" title={step.text}>
      {to ? <a href={to}>{text || (target?.kind === "run" ? "Open the run" : "Open the conversation")}</a> : text}
    </span>
  );
}

function factsOf(step: Step): string[] {
  const used = step.tokens ? `${tokens(step.tokens)} tokens` : "";
  const spent = step.cost_usd === undefined ? "" : cost(step.cost_usd);
  const state = step.kind === "proposed" ? proposalState(step.state ?? "") : step.state === "complete" ? "" : sentence(step.state ?? "");
  return [step.client && `by ${step.client}`, step.schedule ?? "", state, step.times ? `${step.times} times` : "", step.model ?? "", used, spent].filter((fact) => fact !== "");
}

function proposalState(state: string): string {
  const names: Record<string, string> = STATE_NAMES;
  return names[state.replaceAll(" ", "_")] ?? sentence(state);
}

/** A step that changed notes, as the journal knows it. */
function changeOf(step: Step): Change | undefined {
  if (!step.change_id) return undefined;
  const files = (step.notes ?? []).map((path) => ({ path, action: "edited" as const }));
  return { id: step.change_id, at: step.at, client: step.client, files, undone: step.state === "undone", ...(step.kind === "undone" ? { undoes: step.changes ?? [] } : {}) };
}

async function undo(host: Host, history: History, journal: Journal, target: { change_id: string } | { run: string }, name: string): Promise<void> {
  await askUndo(host, journal, target, name);
  history.loadSoon();
}

type Opened = { kind: "run" | "session"; id: string };

function targetOfStep(step: Step): Opened | undefined {
  if (step.session_id) return { kind: "session", id: step.session_id };
  return step.run_id ? { kind: "run", id: step.run_id } : undefined;
}

function targetOf(work: Work): Opened | undefined {
  const step = work.steps.find((one) => one.session_id || one.run_id);
  return step && targetOfStep(step);
}

function iconOf(work: Work): IconName {
  const target = targetOf(work);
  if (work.steps.some((step) => step.schedule)) return "clock";
  if (target) return target.kind === "run" ? "workflow" : "message-square";
  return work.steps.some((step) => step.proposal_id) ? "git-pull-request" : "file-pen";
}

function timeOf(at: string): string {
  const isToday = new Date(at).toDateString() === new Date().toDateString();
  return isToday ? new Date(at).toLocaleTimeString(languageOfDates(), { timeStyle: "short" }) : ago(at);
}

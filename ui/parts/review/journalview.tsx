/** The journal as a person reads it: a plot, filters, changes by day, each with its difference and its undo. */

import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { failureOf, type Failure } from "../../client";
import { Button, Chip, Icon, IconButton, SearchBox, type IconName } from "../basic";
import { DialogFrame } from "../floating";
import { count, dateTime, languageOfDates } from "../format";
import { useHost, type Host } from "../host";
import { Empty, FailureNotice, GroupTitle, Notice, SkeletonRows, SkeletonText } from "../rows";
import { Tabs } from "../tabs";
import { LineDifference } from "./difference";
import { RANGES, type FileDifference, type Journal, type Range, type UndoPreview, type UndoTarget } from "./journal";
import { actionName, changeTitle, dayOf, type Change } from "./model";
import { ChangePlot } from "./plot";
import { NoteLink, type Origin } from "./proposal";

interface JournalProps {
  journal: Journal;
  origin: (run: string) => Origin | undefined;
}

/** What was changed in the last days. */
export function JournalView({ journal, origin }: JournalProps): JSX.Element {
  const failure = journal.loaded.failure.value;
  const all = journal.loaded.data.value;
  const filter = journal.filter.value;
  if (failure && !failure.isOffline && !all) return <FailureNotice failure={failure} />;
  return (
    <div class="k-journal">
      <div class="k-journal-filters">
        <SearchBox label="Note or reason" value={filter.text} onInput={(text) => journal.setFilter({ text })} />
        <Tabs
          tabs={RANGES.map((days) => ({ id: String(days), title: `${days} days` }))}
          current={String(journal.days.value)}
          label="Period"
          onChange={(days) => journal.setDays(Number(days) as Range)}
        />
      </div>
      {all && all.length < journal.total.value && (
        <Notice tone="warning">
          Only the latest {count(all.length, "change")} of {journal.total.value.toLocaleString("en")} are shown and counted. Choose a shorter period to see all of them.
        </Notice>
      )}
      {all && all.length > 0 && <ChangePlot plot={journal.plot.value} day={journal.day.value} onDay={(day) => (journal.day.value = day)} />}
      <div class="k-journal-chips" role="group" aria-label="Filters">
        {journal.clients.length > 1 &&
          journal.clients.map((client) => (
            <Chip key={client} isPressed={filter.client === client} onClick={() => journal.setFilter({ client: filter.client === client ? "" : client })}>
              {client}
            </Chip>
          ))}
        {filter.run && (
          <Chip tone="accent" onRemove={() => journal.setFilter({ run: "" })} removeLabel="Show all runs">
            {origin(filter.run)?.title ?? filter.run}
          </Chip>
        )}
        {journal.day.value && (
          <Chip tone="accent" onRemove={() => (journal.day.value = "")} removeLabel="Show all days">
            {dayTitle(journal.day.value)}
          </Chip>
        )}
      </div>
      <Changes journal={journal} origin={origin} />
    </div>
  );
}

function Changes({ journal, origin }: JournalProps): JSX.Element {
  const all = journal.loaded.data.value;
  const shown = journal.shown.value;
  if (!all) return <SkeletonRows />;
  if (!shown.length) {
    const { client, run, text } = journal.filter.value;
    const isFiltered = Boolean(client || run || text || journal.day.value);
    return isFiltered ? (
      <Empty icon="search" title="No matching changes">
        Try fewer filters or a longer period.
      </Empty>
    ) : (
      <Empty icon="activity" title={`No changes in the last ${journal.days.value} days`}>
        Every change that Knapper makes to a note is recorded here, with who made it and why, and can be undone. Ask for one in the chat, or tick off a task in a note.
      </Empty>
    );
  }
  const days = [...new Set(shown.map((change) => dayOf(change.at)))];
  return (
    <>
      {days.map((day) => (
        <section key={day} aria-label={dayTitle(day)}>
          <GroupTitle>{dayTitle(day)}</GroupTitle>
          <ul class="k-plain k-journal-rows">
            {shown
              .filter((change) => dayOf(change.at) === day)
              .map((change) => (
                <ChangeEntry key={change.id} journal={journal} change={change} origin={origin} />
              ))}
          </ul>
        </section>
      ))}
    </>
  );
}

function ChangeEntry({ journal, change, origin }: JournalProps & { change: Change }): JSX.Element {
  const host = useHost();
  const isOpen = journal.open.value.has(change.id);
  const isUndo = Boolean(change.undoes?.length);
  const action = isUndo ? "Undid" : actionName(change.files[0]?.action ?? "");
  const name = `${action} ${changeTitle(change)}`;
  const from = change.run ? origin(change.run) : undefined;
  const time = new Date(change.at).toLocaleTimeString(languageOfDates(), { timeStyle: "short" });
  return (
    <li class="k-change" data-change={change.id} data-undone={change.undone ? "" : undefined}>
      <div class="k-change-head">
        <button type="button" class="k-change-main" aria-expanded={isOpen} onClick={() => journal.toggle(change.id)}>
          <span class="k-only-read">What changed: </span>
          <Icon name={isOpen ? "chevron-down" : "chevron-right"} />
          <Icon name={isUndo ? "undo-2" : actionIcon(change.files[0]?.action)} />
          <span class="k-row-text">
            <span class="k-row-title k-cut">{name}</span>
            <span class="k-row-detail k-cut">{[`by ${change.client}`, change.reason || from?.title].filter(Boolean).join(" · ")}</span>
          </span>
          {change.undone && <Chip>Undone</Chip>}
          <time class="k-row-meta" dateTime={change.at} title={dateTime(change.at)}>
            {time}
          </time>
        </button>
        {!change.undone && (
          <Button size="small" kind="quiet" icon="undo-2" label={`Undo: ${name}`} onClick={() => void askUndo(host, journal, { change_id: change.id }, name)}>
            Undo
          </Button>
        )}
        {change.run && (
          <IconButton
            icon="ellipsis"
            size="small"
            label={`Actions: ${name}`}
            onClick={(event) =>
              host.floaters.openMenu(event, "More", [
                { title: "Only this run", icon: "list-filter", run: () => journal.setFilter({ run: change.run ?? "" }) },
                ...(from?.href ? [{ title: "Open the run", icon: from.icon, run: () => openOrigin(host, from) }] : []),
                "line",
                { title: "Undo the whole run…", icon: "undo-2", tone: "danger", run: () => void askUndo(host, journal, { run: change.run ?? "" }, from?.title ?? `the run ${change.run ?? ""}`) },
              ])
            }
          />
        )}
      </div>
      {isOpen && <ChangeDifferences journal={journal} change={change} />}
    </li>
  );
}

function openOrigin(host: Host, origin: Origin): void {
  const id = decodeURIComponent(origin.href?.split("/").at(-1) ?? "");
  host.open(origin.icon === "workflow" ? { kind: "run", id } : { kind: "session", id });
}

function actionIcon(action: string | undefined): IconName {
  const icons: Record<string, IconName> = { created: "file-plus", trashed: "trash", removed: "trash", moved: "arrow-right", restored: "rotate-ccw" };
  return icons[action ?? ""] ?? "file-pen";
}

export function ChangeDifferences({ journal, change }: { journal: Journal; change: Change }): JSX.Element {
  const files = useSignal<FileDifference[] | null>(null);
  const failure = useSignal<Failure | null>(null);
  useEffect(() => {
    const abort = new AbortController();
    journal.differences(change, abort.signal).then(
      (found) => (files.value = found),
      (error: unknown) => {
        if (!abort.signal.aborted) failure.value = failureOf(error);
      },
    );
    return () => abort.abort();
  }, [change.id, change.undone]);
  return (
    <div class="k-change-body">
      {failure.value ? (
        <Notice tone="warning">
          The changes can't be shown: {failure.value.message}
          <ul class="k-plain">
            {change.files.map((file) => (
              <li key={file.path}>
                <NoteLink path={file.target ?? file.path} title={file.target ?? file.path} />
              </li>
            ))}
          </ul>
        </Notice>
      ) : files.value ? (
        <FileDifferences files={files.value} />
      ) : (
        <SkeletonText lines={3} />
      )}
    </div>
  );
}

function FileDifferences({ files }: { files: readonly FileDifference[] }): JSX.Element {
  return (
    <>
      {files.map((file) => (
        <section key={file.path} class="k-journal-file" aria-label={file.path}>
          <p class="k-change-path">
            <NoteLink path={file.target || file.path} title={file.target || file.path} />
            {file.target && <span class="k-quiet"> from {file.path}</span>}
          </p>
          {file.diff || file.isCut ? <LineDifference diff={file.diff} isCut={file.isCut} /> : <p class="k-quiet k-small">The text stays the same.</p>}
        </section>
      ))}
    </>
  );
}

/** Show what would come back, and undo where somebody says so. */
export async function askUndo(host: Host, journal: Journal, target: UndoTarget, name: string): Promise<void> {
  let isDone = false;
  await host.floaters.dialog((close) => (
    <UndoDialog
      journal={journal}
      target={target}
      name={name}
      onClose={close}
      onDone={(files) => {
        isDone = true;
        close();
        host.floaters.toast({ text: `Undone in ${count(files, "file")}` });
      }}
    />
  ));
  if (isDone && "change_id" in target) requestAnimationFrame(() => document.querySelector<HTMLElement>(`[data-change="${CSS.escape(target.change_id)}"] button`)?.focus());
}

interface UndoDialogProps {
  journal: Journal;
  target: UndoTarget;
  name: string;
  onClose: () => void;
  onDone: (files: number) => void;
}

function UndoDialog({ journal, target, name, onClose, onDone }: UndoDialogProps): JSX.Element {
  const plan = useSignal<UndoPreview | null>(null);
  const failure = useSignal<Failure | null>(null);
  const isBusy = useSignal(false);
  useEffect(() => {
    const abort = new AbortController();
    journal.preview(target, abort.signal).then(
      (found) => (plan.value = found),
      (error: unknown) => {
        if (!abort.signal.aborted) failure.value = failureOf(error);
      },
    );
    return () => abort.abort();
  }, []);
  const run = async () => {
    isBusy.value = true;
    try {
      onDone(await journal.undo(target, (plan.value?.left.length ?? 0) > 0));
    } catch (error) {
      failure.value = failureOf(error);
    }
    isBusy.value = false;
  };
  const shown = plan.value;
  const canUndo = shown !== null && shown.files.length > 0;
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    // The button that confirms could not take the focus while nothing was known.
    if (canUndo) box.current?.closest("dialog")?.querySelector<HTMLElement>(".k-dialog-acts > [data-kind=primary]")?.focus();
  }, [canUndo]);
  return (
    <DialogFrame
      title={"run" in target ? "Undo the whole run?" : "Undo this change?"}
      onClose={onClose}
      acts={
        <>
          <Button onClick={onClose}>{canUndo || !shown ? "Cancel" : "Close"}</Button>
          {(canUndo || (!shown && !failure.value)) && (
            <Button kind="primary" isDisabled={!canUndo || isBusy.value} onClick={() => void run()}>
              {shown ? `Undo in ${count(shown.files.length, "file")}` : "Undo"}
            </Button>
          )}
        </>
      }
    >
      <div class="k-undo" ref={box}>
        <p class="k-quiet">{name}</p>
        {failure.value && <FailureNotice failure={failure.value} />}
        {!shown && !failure.value && <SkeletonText lines={3} />}
        {shown && shown.left.length > 0 && (
          <Notice tone="warning">
            {canUndo ? "Changed since then, so left as they are:" : "Nothing can be undone: every file has changed since."}
            <ul class="k-plain">
              {shown.left.map((one) => (
                <li key={one.path}>
                  <strong>{one.path}</strong>: {one.problem}
                </li>
              ))}
            </ul>
          </Notice>
        )}
        {shown && canUndo && (
          <>
            <p>{"run" in target ? `${count(shown.changes, "change")} will be undone. The text changes like this:` : "The text changes like this:"}</p>
            <FileDifferences files={shown.files} />
          </>
        )}
      </div>
    </DialogFrame>
  );
}

function dayTitle(day: string): string {
  const today = new Date();
  if (day === dayOf(today)) return "Today";
  if (day === dayOf(new Date(today.getFullYear(), today.getMonth(), today.getDate() - 1))) return "Yesterday";
  return new Date(`${day}T12:00`).toLocaleDateString(languageOfDates(), { weekday: "long", day: "numeric", month: "long" });
}

/** A proposal as it is reviewed: by file and place, with who made it and why. */

import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Button, Chip, Icon, IconButton, Keys, type IconName } from "../basic";
import { ago, count, date, dateTime, folderOf, noteName, sentence } from "../format";
import { useHost } from "../host";
import type { Shortcut } from "../keys";
import { Empty, Notice, SkeletonText, Told } from "../rows";
import { askReason } from "./asking";
import { Difference, type Way } from "./difference";
import { groupOf, hasParts, isFileOpen, KIND_NAMES, newLines, restrictionOf, STATE_NAMES, stateOfFile, type Proposal, type ProposedFile, type ProposedHunk, type Restriction, type Unit } from "./model";
import type { ProposalReview } from "./review";
import { StateMark, stateTone } from "./state";

interface ProposalViewProps {
  review: ProposalReview;
  restrictions: readonly Restriction[];
  onTrust: (client: string, run: string) => void;
  /** What a run or a conversation is called, and where it is. */
  origin: (run: string) => Origin | undefined;
  /** Leads to what waits next, where there is something. */
  next?: JSX.Element | undefined;
}

export interface Origin {
  title: string;
  icon: IconName;
  href?: string | undefined;
}

/** A proposal, with all that can be done about it. */
export function ProposalView(props: ProposalViewProps): JSX.Element {
  const { review } = props;
  const box = useRef<HTMLDivElement>(null);
  useKeys(review, box);
  const [shown, failure] = [review.loaded.data.value, review.loaded.failure.value];
  if (!shown) {
    if (failure) return <Missing failure={failure} />;
    return (
      <div class="k-review">
        <SkeletonText lines={6} />
      </div>
    );
  }
  return (
    <div class="k-review" ref={box} aria-busy={review.isBusy.value}>
      <About {...props} shown={shown} />
      {review.problem.value && (
        <Notice tone="removed">
          <strong>
            <Told text={review.problem.value.message} />
          </strong>
          {review.problem.value.hint && (
            <div class="k-quiet">
              <Told text={review.problem.value.hint} />
            </div>
          )}
        </Notice>
      )}
      {shown.files.map((file) => (
        <FileSection key={file.number} review={review} shown={shown} file={file} />
      ))}
      {review.openCount.value === 0 && <Settled shown={shown} next={props.next} />}
    </div>
  );
}

function Missing({ failure }: { failure: { message: string; hint: string; isOffline: boolean } }): JSX.Element {
  return (
    <Empty icon="circle-alert" title={failure.isOffline ? "The server can't be reached" : "This proposal can't be shown"}>
      {failure.isOffline ? "It loads as soon as the server is back." : sentence([failure.message, failure.hint].filter(Boolean).join(": "))}
    </Empty>
  );
}

function About({ review, shown, restrictions, onTrust, origin }: ProposalViewProps & { shown: Proposal }): JSX.Element {
  const run = shown.run ?? "";
  const from = run ? origin(run) : undefined;
  const restricted = restrictionOf(restrictions, shown.client, run);
  const open = review.openCount.value;
  return (
    <header class="k-review-about">
      <p class="k-review-facts">
        <Chip tone={stateTone(shown.status)}>{STATE_NAMES[shown.status] ?? shown.status}</Chip>
        <span>
          By <strong>{shown.client}</strong>
          {from && (
            <>
              {" in "}
              {from.href ? <a href={from.href}>{from.title}</a> : from.title}
            </>
          )}
        </span>
        <span title={dateTime(shown.created)}>{ago(shown.created)}</span>
        <span>
          {count(shown.files.length, "file")}
          {open > 0 && `, ${count(open, "open change")}`}
        </span>
        {open > 0 && <span title={dateTime(shown.expires)}>Expires {date(shown.expires)}</span>}
      </p>
      {shown.reason && <p class="k-review-reason">{shown.reason}</p>}
      {shown.why && <p class="k-quiet">Needs your review because {shown.why}.</p>}
      {(shown.tainted || restricted) && (
        <Notice tone="warning">
          <strong>{shown.tainted ? "Made after reading untrusted content. Review carefully." : `${shown.client} is limited to proposals for now.`}</strong>
          {restricted && (
            <div class="k-review-trust">
              <span>
                It is limited to proposals because it read <q>{restricted.source}</q>
                {restricted.until && `, until ${dateTime(restricted.until)}`}.
              </span>
              <Button size="small" icon="shield-check" label={`Trust ${shown.client} again`} onClick={() => onTrust(restricted.client, restricted.run)}>
                Trust
              </Button>
            </div>
          )}
        </Notice>
      )}
      {(shown.notes ?? []).map((note, index) => (
        <Notice key={index}>{sentence(note)}</Notice>
      ))}
      {(shown.folders ?? []).map((folder) => (
        <p key={folder.path}>
          The folder <strong>{folder.path}</strong> would move to <strong>{folder.target}</strong>.
        </p>
      ))}
      {shown.rejection && (
        <p>
          Rejected: <q>{shown.rejection}</q>
        </p>
      )}
      {shown.undone && <Notice>{shown.undone === "all" ? "The accepted changes have since been undone." : "Some of the accepted changes have since been undone."}</Notice>}
    </header>
  );
}

function FileSection({ review, shown, file }: { review: ProposalReview; shown: Proposal; file: ProposedFile }): JSX.Element {
  const group = groupOf(shown, file).filter((other) => other !== file);
  const isApart = hasParts(shown, file);
  const canDecide = isFileOpen(file);
  const open = file.hunks.filter((hunk) => hunk.state === "open").length;
  const unit = isApart ? undefined : review.units.value.find((one) => one.id === `file-${file.number}`);
  const firstLines = newLines(file.hunks);
  const parts = { files: [file.path] };
  const body = (
    <>
      {group.length > 0 && <p class="k-quiet k-small">Decided together with {group.map((other) => other.path).join(", ")}.</p>}
      {file.follows && <p class="k-quiet k-small">Only links change, to follow a move.</p>}
      {file.reason && <p class="k-quiet">{file.reason}</p>}
      {file.stale && <StaleNotice stale={file.stale} />}
      {file.hunks.map((hunk) =>
        isApart ? (
          <HunkUnit key={hunk.id} review={review} hunk={hunk} unit={review.units.value.find((one) => one.id === hunk.id)} first={[hunk.line, firstLines.get(hunk.id) ?? hunk.line]} />
        ) : (
          <div class="k-hunk" key={hunk.id} data-state={hunk.state}>
            <Difference words={hunk.words} way={review.way.value} first={[hunk.line, firstLines.get(hunk.id) ?? hunk.line]} />
          </div>
        ),
      )}
      {!file.hunks.length && <p class="k-quiet">{emptyText(file)}</p>}
    </>
  );
  return (
    <section class="k-review-file" data-state={file.state} aria-label={file.path}>
      <header class="k-review-file-head">
        <Icon name={fileIcon(file.kind)} label={KIND_NAMES[file.kind] ?? file.kind} />
        <h2 class="k-cut" title={file.path}>
          {folderOf(file.path) && <span class="k-quiet">{folderOf(file.path)} / </span>}
          {file.kind === "create" ? noteName(file.path) : <NoteLink path={file.path} />}
          {file.target && <span class="k-quiet"> → {file.target}</span>}
        </h2>
        {isApart && file.hunks.length > 1 && canDecide && <span class="k-quiet k-small">{open} open</span>}
        {!canDecide && <StateMark state={stateOfFile(file)} />}
        {canDecide && shown.files.length > 1 && (
          <span class="k-review-acts">
            <Button size="small" icon="check" label={`Accept ${file.path}`} title="Accept this file (f)" onClick={() => void review.accept(parts, lastUnit(review, file))}>
              {isApart ? "Accept file" : "Accept"}
            </Button>
            <Button size="small" kind="quiet" icon="x" label={`Reject ${file.path}`} title="Reject this file" onClick={() => void review.reject(parts, lastUnit(review, file))}>
              {isApart ? "Reject file" : "Reject"}
            </Button>
          </span>
        )}
      </header>
      {unit ? (
        <Focusable review={review} unit={unit} label={`${KIND_NAMES[file.kind] ?? file.kind}: ${file.path}`}>
          {body}
        </Focusable>
      ) : (
        body
      )}
    </section>
  );
}

/** A note's name, which opens it. */
export function NoteLink({ path, title = noteName(path) }: { path: string; title?: string }): JSX.Element {
  const host = useHost();
  const to = host.href({ kind: "note", path });
  if (to !== undefined) {
    return (
      <a href={to} title={path}>
        {title}
      </a>
    );
  }
  return (
    <button type="button" class="k-link" title={path} onClick={() => host.open({ kind: "note", path })}>
      {title}
    </button>
  );
}

function lastUnit(review: ProposalReview, file: ProposedFile): string {
  return review.units.value.findLast((unit) => unit.file.number === file.number)?.id ?? "";
}

function emptyText(file: ProposedFile): string {
  if (file.kind === "trash") return "The note will be moved to the trash.";
  if (file.kind === "move") return "The note will be moved; its text stays the same.";
  return "The text doesn't change.";
}

function fileIcon(kind: string): IconName {
  return kind === "create" ? "file-plus" : kind === "trash" ? "trash" : kind === "move" ? "arrow-right" : "file-pen";
}

interface HunkUnitProps {
  review: ProposalReview;
  hunk: ProposedHunk;
  unit: Unit | undefined;
  first: readonly [number, number];
}

function HunkUnit({ review, hunk, unit, first }: HunkUnitProps): JSX.Element | null {
  if (!unit) return null;
  const label = `Change ${hunk.id}`;
  const isEditing = review.editing.value === hunk.id;
  return (
    <Focusable review={review} unit={unit} label={`${label}, line ${hunk.line}`}>
      <div class="k-hunk" data-hunk={hunk.id} data-state={hunk.state}>
        <div class="k-hunk-head">
          <span class="k-quiet k-small">Line {hunk.line}</span>
          {!unit.isOpen && <StateMark state={hunk.state} />}
          {hunk.edited && <Chip icon="pencil">Edited by you</Chip>}
          {unit.isOpen && !isEditing && (
            <span class="k-review-acts">
              <Button size="small" kind="quiet" icon="check" label={`Accept ${label}`} title="Accept (a)" onClick={() => void review.acceptUnit(unit)}>
                Accept
              </Button>
              <Button size="small" kind="quiet" icon="x" label={`Reject ${label}`} title="Reject (r)" onClick={() => void review.rejectUnit(unit)}>
                Reject
              </Button>
              <IconButton icon="pencil" size="small" label={`Edit ${label}`} title="Edit before accepting (e)" onClick={() => startEdit(review, unit)} />
            </span>
          )}
        </div>
        {hunk.stale && <StaleNotice stale={hunk.stale} />}
        {hunk.reason && <p class="k-quiet k-hunk-reason">{hunk.reason}</p>}
        {isEditing ? <HunkEditor review={review} hunk={hunk} /> : <Difference words={hunk.words} way={review.way.value} first={first} />}
      </div>
    </Focusable>
  );
}

function startEdit(review: ProposalReview, unit: Unit): void {
  if (!unit.hunk || !unit.isOpen) return;
  review.current.value = unit.id;
  review.editing.value = unit.hunk.id;
}

function HunkEditor({ review, hunk }: { review: ProposalReview; hunk: ProposedHunk }): JSX.Element {
  const box = useRef<HTMLTextAreaElement>(null);
  useEffect(() => box.current?.focus(), []);
  const close = () => {
    review.editing.value = "";
    review.focus();
  };
  const save = () => void review.edit(hunk.id, box.current?.value ?? hunk.new);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) save();
    else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="k-hunk-editor">
      {hunk.old && <div class="k-diff k-hunk-old">{hunk.old}</div>}
      <textarea ref={box} class="k-input" aria-label="The new text" spellcheck rows={Math.min(18, Math.max(3, hunk.new.split("\n").length + 1))} defaultValue={hunk.new} onKeyDown={onKeyDown} />
      <div class="k-hunk-editor-acts">
        <span class="k-quiet k-small">
          <Keys keys="mod+enter" /> to save, <Keys keys="escape" /> to cancel
        </span>
        <Button size="small" onClick={close}>
          Cancel
        </Button>
        <Button size="small" kind="primary" isDisabled={review.isBusy.value} onClick={save}>
          Save
        </Button>
      </div>
    </div>
  );
}

interface FocusableProps {
  review: ProposalReview;
  unit: Unit;
  label: string;
  children: JSX.Element | JSX.Element[];
}

/** What the keys go to: the frame of a unit, which has the focus when it is the current one. */
function Focusable({ review, unit, label, children }: FocusableProps): JSX.Element {
  const node = useRef<HTMLDivElement>(null);
  const isCurrent = review.current.value === unit.id;
  const focusing = review.focusing.value;
  useEffect(() => {
    const box = node.current;
    if (!isCurrent || !box || review.editing.peek()) return;
    box.focus({ preventScroll: true });
    box.scrollIntoView?.({ block: "nearest" });
  }, [focusing]);
  return (
    <div
      ref={node}
      class="k-unit"
      role="group"
      tabIndex={isCurrent ? 0 : -1}
      aria-label={label}
      aria-current={isCurrent ? "true" : undefined}
      data-current={isCurrent ? "" : undefined}
      data-unit={unit.id}
      onFocusIn={() => {
        if (review.current.value !== unit.id) review.current.value = unit.id;
      }}
    >
      {children}
    </div>
  );
}

function StaleNotice({ stale }: { stale: NonNullable<ProposedHunk["stale"]> }): JSX.Element {
  return (
    <Notice tone="warning">
      <strong>No longer applies: </strong>
      {stale.message}
      {stale.line ? ` (line ${stale.line})` : ""}
      {stale.current_text && (
        <details class="k-stale-text">
          <summary>Current text</summary>
          <div class="k-diff">{stale.current_text}</div>
        </details>
      )}
    </Notice>
  );
}

function Settled({ shown, next }: { shown: Proposal; next: JSX.Element | undefined }): JSX.Element | null {
  if (shown.status === "open" || shown.status === "stale") return null;
  return (
    <div class="k-review-settled">
      <Icon name="circle-check" size={20} />
      <span>{shown.status === "superseded" ? "A newer proposal replaced it." : "Everything here has been decided."}</span>
      {next}
    </div>
  );
}

/** The buttons for a whole proposal, for the head of whatever shows it. */
export function ProposalActs({ review }: { review: ProposalReview }): JSX.Element | null {
  const host = useHost();
  const shown = review.loaded.data.value;
  if (!shown) return null;
  const isOpen = review.openCount.value > 0;
  return (
    <>
      <IconButton
        icon="columns-2"
        label="Side by side"
        title="Side by side (s)"
        isPressed={review.way.value === "side"}
        onClick={() => toggleWay(review)}
      />
      {isOpen && (
        <>
          <Button kind="danger" size="small" icon="x" title="Reject all open changes (Shift R)" onClick={() => void rejectAll(review, host)}>
            Reject all
          </Button>
          <Button kind="primary" size="small" icon="check" title="Accept all open changes (Shift A)" isDisabled={review.isBusy.value} onClick={() => void review.accept()}>
            Accept all
          </Button>
        </>
      )}
    </>
  );
}

function toggleWay(review: ProposalReview): void {
  const other: Way = review.way.value === "side" ? "inline" : "side";
  review.way.value = other;
}

async function rejectAll(review: ProposalReview, host: ReturnType<typeof useHost>): Promise<void> {
  const reason = await askReason(host.floaters, "Reject all");
  if (reason !== null) await review.reject({ reason });
}

/** The keys of a review; they hold where it stands, and nowhere else. */
function useKeys(review: ProposalReview, box: { current: HTMLDivElement | null }): void {
  const host = useHost();
  useEffect(() => {
    const when = () => isHeard(box.current) && !host.floaters.isOpen;
    const next = (by: 1 | -1) => review.options.toNext?.(by)?.();
    const keys: [keys: string, title: string, run: () => void][] = [
      ["j", "Next change", () => review.step(1)],
      ["k", "Previous change", () => review.step(-1)],
      ["a", "Accept the change", () => void review.acceptUnit()],
      ["r", "Reject the change", () => void review.rejectUnit()],
      ["e", "Edit before accepting", () => review.currentUnit && startEdit(review, review.currentUnit)],
      ["f", "Accept the file", () => review.currentUnit && void review.accept({ files: [review.currentUnit.file.path] }, lastUnit(review, review.currentUnit.file))],
      ["shift+a", "Accept all open changes", () => void (review.openCount.value && review.accept())],
      ["shift+r", "Reject all open changes", () => void (review.openCount.value && rejectAll(review, host))],
      ["n", "Next proposal", () => next(1)],
      ["p", "Previous proposal", () => next(-1)],
      ["s", "Toggle side by side", () => toggleWay(review)],
    ];
    return host.shortcuts.register(keys.map(([key, title, run]): Shortcut => ({ keys: key, title, group: "Review", run, when })));
  }, [review]);
}

/** Whether a key is meant for a review: nothing outside of what shows it has the focus. */
function isHeard(box: HTMLElement | null): boolean {
  if (!box?.isConnected) return false;
  const active = document.activeElement;
  if (!active || active === document.body) return true;
  const frame = box.closest(".k-pane, .k-main") ?? box;
  return frame.contains(active) || (frame.matches(".k-main") && active.closest(".k-list") !== null);
}

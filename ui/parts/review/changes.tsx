/** One card for all changes of an answer: what waits, what would change, and what was changed. By props alone. */

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Button, Chip, Icon, IconButton, Keys } from "../basic";
import { count, noteName } from "../format";
import { Difference } from "./difference";
import { fileTextOf, groupOf, KIND_NAMES, newLines, stateOfFile, type Proposal, type ProposedFile, type ProposedHunk } from "./model";
import { StateMark } from "./state";

/** What is decided: a whole proposal, files of it, or hunks of it. */
export interface Decision {
  act: "accept" | "reject";
  files?: readonly string[];
  hunks?: readonly string[];
}

interface ChangesCardProps {
  proposals: readonly Proposal[];
  /** Changes that were applied already, by their ids. */
  applied?: readonly { id: string; isUndone: boolean }[];
  isBusy: boolean;
  problem?: string;
  /** Whether the differences are shown. */
  isOpen: boolean;
  onToggle: (isOpen: boolean) => void;
  /** Decide all that is open, in one go. */
  onAll: (act: Decision["act"]) => void;
  onDecide: (proposal: Proposal, decision: Decision) => void;
  onOpenNote: (path: string, line?: number) => void;
  onUndo?: (change: string) => void;
  /** Where the whole review stands, for what is done only there, such as editing a text before it is accepted. */
  reviewHref?: (id: string) => string | undefined;
}

/** Whether something of a proposal can still be decided. */
export function isOpenProposal(proposal: Proposal): boolean {
  return ["open", "stale", "partly_accepted"].includes(proposal.status) && proposal.files.some((file) => file.state === "open");
}

/** What a card says of its proposals: how many notes and places, and what became of them. */
export function changesTitle(proposals: readonly Proposal[]): string {
  const files = proposals.flatMap((proposal) => proposal.files);
  const open = files.filter((file) => file.state === "open");
  const notes = count(new Set((open.length ? open : files).map((file) => file.path)).size, "note");
  if (open.length) {
    const places = open.reduce((sum, file) => sum + Math.max(1, file.hunks.filter((hunk) => hunk.state === "open").length), 0);
    return `${count(places, "change")} in ${notes} to review`;
  }
  const states = new Set(proposals.map((proposal) => proposal.status));
  if (states.size === 1 && states.has("accepted")) return `Accepted: changes in ${notes}`;
  if (states.size === 1 && states.has("rejected")) return `Rejected: changes in ${notes}`;
  if (states.has("stale")) return `Changes in ${notes} no longer apply`;
  return `Reviewed: changes in ${notes}`;
}

export function ChangesCard(props: ChangesCardProps): JSX.Element | null {
  const { proposals, applied = [], isOpen, isBusy } = props;
  const node = useRef<HTMLElement>(null);
  const wasOpen = useRef(isOpen);
  useEffect(() => {
    if (isOpen && !wasOpen.current) placesOf(node.current).at(0)?.focus();
    wasOpen.current = isOpen;
  }, [isOpen]);
  if (!proposals.length && !applied.length) return null;
  const canDecide = proposals.some(isOpenProposal);
  const files = proposals.flatMap((proposal) => proposal.files.map((file) => ({ proposal, file })));
  return (
    <section ref={node} class="k-changes" aria-label="Changes" aria-busy={isBusy} data-open={canDecide ? "" : undefined} onKeyDown={(event) => onKey(event, node.current, props)}>
      {proposals.length > 0 && (
        <header class="k-changes-head">
          <Icon name="file-diff" />
          <strong class="k-changes-title" role="status">
            {changesTitle(proposals)}
          </strong>
          <div class="k-changes-acts">
            <Button kind="quiet" size="small" isExpanded={isOpen} onClick={() => props.onToggle(!isOpen)}>
              {isOpen ? "Hide" : "Preview"}
            </Button>
            {canDecide && (
              <>
                <Button size="small" isDisabled={isBusy} onClick={() => props.onAll("reject")}>
                  Reject all
                </Button>
                <Button size="small" kind="primary" isDisabled={isBusy} onClick={() => props.onAll("accept")}>
                  Accept all
                </Button>
              </>
            )}
          </div>
        </header>
      )}
      {proposals.some((proposal) => proposal.tainted) && (
        <p class="k-changes-note" data-tone="warning">
          <Icon name="shield-alert" /> Made after reading untrusted content. Review carefully.
        </p>
      )}
      {props.problem && (
        <p class="k-changes-note" data-tone="removed" role="alert">
          <Icon name="circle-alert" /> {props.problem}
        </p>
      )}
      {!isOpen && <FileList files={files.map(({ file }) => file)} onOpenNote={props.onOpenNote} />}
      {isOpen && files.map(({ proposal, file }) => <FileChange key={`${proposal.id} ${file.number}`} proposal={proposal} file={file} card={props} />)}
      {isOpen && canDecide && (
        <p class="k-changes-keys k-small k-quiet" aria-hidden="true">
          <Keys keys="j" /> <Keys keys="k" /> next, previous <Keys keys="a" /> accept <Keys keys="r" /> reject <Keys keys="shift+a" /> accept all
        </p>
      )}
      {applied.map((change) => (
        <p class="k-changes-note" key={change.id}>
          <Icon name="check" /> A note was changed.
          {props.onUndo && (
            <Button size="small" kind="quiet" icon="undo-2" isDisabled={isBusy || change.isUndone} onClick={() => props.onUndo?.(change.id)}>
              {change.isUndone ? "Undone" : "Undo"}
            </Button>
          )}
        </p>
      ))}
    </section>
  );
}

const MAX_FILES = 10;

function FileList({ files, onOpenNote }: { files: readonly ProposedFile[]; onOpenNote: ChangesCardProps["onOpenNote"] }): JSX.Element | null {
  const isAll = useSignal(false);
  if (!files.length) return null;
  const shown = isAll.value ? files : files.slice(0, MAX_FILES);
  return (
    <ul class="k-changes-files">
      {shown.map((file, index) => (
        <li key={index}>
          <button type="button" class="k-reason-note" title={file.path} disabled={file.kind === "create" && file.state !== "accepted"} onClick={() => onOpenNote(file.path, file.hunks[0]?.line)}>
            <span class="k-cut">{file.target ? `${noteName(file.path)} → ${noteName(file.target)}` : noteName(file.path)}</span>
          </button>
          <span class="k-small k-quiet">{fileTextOf(file)}</span>
        </li>
      ))}
      {files.length > shown.length && (
        <li>
          <Button kind="quiet" size="small" onClick={() => (isAll.value = true)}>
            {`and ${files.length - shown.length} more…`}
          </Button>
        </li>
      )}
    </ul>
  );
}

function FileChange({ proposal, file, card }: { proposal: Proposal; file: ProposedFile; card: ChangesCardProps }): JSX.Element {
  const group = groupOf(proposal, file);
  const others = group.filter((other) => other !== file).map((other) => noteName(other.path));
  const canDecide = isOpenProposal(proposal) && file.state === "open";
  const byHunk = canDecide && file.kind === "edit" && group.length === 1 && file.hunks.length > 1;
  const decide = (act: Decision["act"]) => card.onDecide(proposal, { act, files: [file.path] });
  const href = card.reviewHref?.(proposal.id);
  const lines = newLines(file.hunks);
  return (
    <section class="k-change-file" data-place="" tabIndex={-1} aria-label={`${KIND_NAMES[file.kind] ?? file.kind} of ${file.path}`}>
      <header>
        <h3 class="k-cut" title={file.path}>
          {noteName(file.path)}
          {file.target && ` → ${noteName(file.target)}`}
        </h3>
        {file.kind !== "edit" && <Chip>{KIND_NAMES[file.kind] ?? file.kind}</Chip>}
        {file.state !== "open" && <StateMark state={stateOfFile(file)} />}
        {href && <IconButton icon="pencil" size="small" label={`Edit the changes to ${noteName(file.path)} in Review`} href={href} />}
        {canDecide && (
          <>
            <IconButton icon="x" size="small" label={`Reject ${file.path}`} isDisabled={card.isBusy} onClick={() => decide("reject")} />
            <IconButton icon="check" size="small" label={`Accept ${file.path}`} isDisabled={card.isBusy} onClick={() => decide("accept")} />
          </>
        )}
      </header>
      {file.reason && <p class="k-small k-quiet">{file.reason}</p>}
      {others.length > 0 && <p class="k-small k-quiet">Decided together with {others.join(", ")}.</p>}
      {file.stale && <p class="k-small k-warning-text">{file.stale.message}</p>}
      {file.hunks.map((hunk) => (
        <HunkChange key={hunk.id} hunk={hunk} first={[hunk.line, lines.get(hunk.id) ?? hunk.line]} canDecide={byHunk && hunk.state === "open"} onDecide={(act) => card.onDecide(proposal, { act, hunks: [hunk.id] })} isBusy={card.isBusy} />
      ))}
    </section>
  );
}

interface HunkProps {
  hunk: ProposedHunk;
  /** Its first line, on the old and on the new side. */
  first: readonly [number, number];
  canDecide: boolean;
  isBusy: boolean;
  onDecide: (act: Decision["act"]) => void;
}

function HunkChange({ hunk, first, canDecide, isBusy, onDecide }: HunkProps): JSX.Element {
  const label = `line ${hunk.line}`;
  return (
    <div class="k-hunk" role="group" aria-label={`Change at ${label}`} {...(canDecide ? { "data-place": "", tabIndex: -1 } : {})} data-hunk={hunk.id} data-state={hunk.state}>
      <div class="k-hunk-head">
        <span class="k-small k-quiet">Line {hunk.line}</span>
        {hunk.state !== "open" && <StateMark state={hunk.state} />}
        {hunk.edited && <Chip icon="pencil">Edited by you</Chip>}
        {canDecide && (
          <>
            <IconButton icon="x" size="small" label={`Reject the change at ${label}`} isDisabled={isBusy} onClick={() => onDecide("reject")} />
            <IconButton icon="check" size="small" label={`Accept the change at ${label}`} isDisabled={isBusy} onClick={() => onDecide("accept")} />
          </>
        )}
      </div>
      <div class="k-hunk-text" tabIndex={0} role="group" aria-label="Difference">
        <Difference words={hunk.words} way="inline" first={first} />
      </div>
      {hunk.stale && <p class="k-small k-warning-text">{hunk.stale.message}</p>}
    </div>
  );
}

function placesOf(node: HTMLElement | null): HTMLElement[] {
  return [...(node?.querySelectorAll<HTMLElement>("[data-place]") ?? [])];
}

/** Keys of a card that has the focus: j and k go from place to place, a and r decide the place, A and R all. */
function onKey(event: KeyboardEvent, node: HTMLElement | null, card: ChangesCardProps): void {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target instanceof HTMLTextAreaElement || event.target instanceof HTMLInputElement) return;
  if (runKey(event.key, node, card)) {
    event.preventDefault();
    event.stopPropagation();
  }
}

function runKey(key: string, node: HTMLElement | null, card: ChangesCardProps): boolean {
  const canDecide = card.proposals.some(isOpenProposal) && !card.isBusy;
  if (key === "A" && canDecide) card.onAll("accept");
  else if (key === "R" && canDecide) card.onAll("reject");
  else if (card.isOpen && (key === "j" || key === "k")) step(node, key === "j" ? 1 : -1);
  else if (card.isOpen && (key === "a" || key === "r")) {
    const place = (document.activeElement as HTMLElement | null)?.closest("[data-place]");
    const label = key === "a" ? "Accept" : "Reject";
    place?.querySelector<HTMLElement>(`:scope > header > [aria-label^=${label}], :scope > .k-hunk-head > [aria-label^=${label}]`)?.click();
    return place !== null && place !== undefined;
  } else return false;
  return true;
}

function step(node: HTMLElement | null, by: 1 | -1): void {
  const places = placesOf(node);
  const at = places.indexOf((document.activeElement as HTMLElement | null)?.closest<HTMLElement>("[data-place]") as HTMLElement);
  places[Math.max(0, Math.min(places.length - 1, at + by))]?.focus();
}

/** Go to the next place that can be decided, in the card that has the focus; used after one was decided. */
export function focusNextPlace(node: HTMLElement | null, from: number): boolean {
  const open = placesOf(node).filter((place) => place.querySelector(":scope > header > [aria-label^=Accept], :scope > .k-hunk-head > [aria-label^=Accept]"));
  const next = open[Math.min(from, open.length - 1)];
  next?.focus();
  return next !== undefined;
}

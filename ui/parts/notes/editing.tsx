/** What is changed in the reader: written by the server's own tools, with the difference shown, and undone by a click. */

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { failureOf } from "../../client";
import { Button, Field } from "../basic";
import { DialogFrame } from "../floating";
import type { Host } from "../host";
import { LineDifference } from "../review/difference";
import { Notice } from "../rows";
import type { NoteModel, Written } from "./model";

/** Do a change, then show the note as it is, and say what became of it. Gives whether it was written or proposed. */
export async function carryOut(host: Host, model: NoteModel, change: () => Promise<Written> | undefined, what: string): Promise<boolean> {
  try {
    const written = await change();
    if (!written) return false;
    await model.load();
    tell(host, model, written, what);
    return true;
  } catch (error) {
    const failure = failureOf(error);
    host.floaters.toast({ text: `${what} wasn't saved: ${failure.message}`, tone: "removed", ...(failure.hint ? { hint: failure.hint } : {}) });
    if (failure.status === 409) await model.load(); // the note was changed meanwhile: what it says now is shown
    return false;
  }
}

function tell(host: Host, model: NoteModel, written: Written, what: string): void {
  const { change_id: change, proposal_id: proposal } = written;
  if (written.status === "proposed" && proposal) {
    host.floaters.toast({ text: `${what} is waiting for review`, act: { title: "Review", run: () => host.open({ kind: "proposal", id: proposal }) } });
  } else if (change) {
    const undo = () =>
      void model
        .undo(change)
        .then(() => model.load())
        .catch((error: unknown) => host.floaters.toast({ text: `Couldn't undo: ${failureOf(error).message}`, tone: "removed" }));
    host.floaters.toast({ text: `${what} was saved`, act: { title: "Undo", run: undo } });
  } else host.floaters.toast({ text: written.message ?? `${what}: no changes` });
}

interface SectionProps {
  host: Host;
  model: NoteModel;
  heading: string;
  first: number;
  last: number;
}

function SectionDialog({ host, model, heading, first, last, onClose }: SectionProps & { onClose: () => void }): JSX.Element {
  const before = model.lines.slice(first - 1, last).join("\n").replace(/\n+$/, "");
  const text = useSignal(before);
  const shown = useSignal<{ diffs: readonly { diff: string; isCut: boolean }[] } | { problem: string; hint: string } | null>(null);
  const isBusy = useSignal(false);
  const blanks = /(?:\n[ \t]*)*$/.exec(model.lines.slice(first - 1, last).join("\n"))?.[0].split("\n").length ?? 1;
  // The blank lines before the next heading stay; the last line's end is the tool's.
  const content = () => text.value.replace(/\n+$/, "") + (blanks > 1 ? "\n".repeat(blanks) : "");
  const preview = async () => {
    isBusy.value = true;
    try {
      const trial = await model.replaceLines(first, last, content(), { isTrial: true });
      shown.value = { diffs: (trial.files ?? []).map(({ diff = "", diff_truncated: isCut = false }) => ({ diff, isCut })).filter(({ diff, isCut }) => diff || isCut) };
    } catch (error) {
      const failure = failureOf(error);
      shown.value = { problem: failure.message, hint: failure.hint };
    }
    isBusy.value = false;
  };
  const save = async () => {
    isBusy.value = true;
    const isDone = await carryOut(host, model, () => model.replaceLines(first, last, content()), "The section");
    isBusy.value = false;
    if (isDone) onClose();
  };
  const isSame = text.value === before;
  const seen = shown.value;
  return (
    <DialogFrame
      title={`Edit ${heading.replace(/^#+\s*/, "")}`}
      onClose={onClose}
      acts={
        <>
          <Button onClick={onClose}>Cancel</Button>
          {seen && "diffs" in seen ? (
            <Button onClick={() => (shown.value = null)}>Back to the text</Button>
          ) : (
            <Button isDisabled={isSame || isBusy.value} onClick={() => void preview()}>
              Show changes
            </Button>
          )}
          <Button kind="primary" isDisabled={isSame || isBusy.value} onClick={() => void save()}>
            Save
          </Button>
        </>
      }
    >
      {seen && "diffs" in seen ? (
        seen.diffs.map((shown, index) => <LineDifference key={index} {...shown} label="Changes" />)
      ) : (
        <div class="k-section-edit">
          {seen && (
            <Notice tone="removed">
              {seen.problem}
              {seen.hint && <div class="k-quiet">{seen.hint}</div>}
            </Notice>
          )}
          <textarea
            class="k-input"
            aria-label={`Text of ${heading}`}
            spellcheck
            rows={14}
            value={text.value}
            onInput={(event) => (text.value = event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !isSame) void save();
            }}
          />
        </div>
      )}
    </DialogFrame>
  );
}

/** Edit a section's text in a dialog. */
export function editSection(props: SectionProps): void {
  void props.host.floaters.dialog((close) => <SectionDialog {...props} onClose={close} />);
}

export type PropertyKind = "text" | "number" | "date" | "flag" | "list" | "object";

const DATE = /^\d{4}-\d{2}-\d{2}$/;

/** How a property's value is edited. */
export function kindOfValue(value: unknown): PropertyKind {
  if (typeof value === "boolean") return "flag";
  if (typeof value === "number") return "number";
  if (Array.isArray(value)) return value.every((one) => one === null || typeof one !== "object") ? "list" : "object";
  if (value !== null && typeof value === "object") return "object";
  return typeof value === "string" && DATE.test(value) ? "date" : "text";
}

/** What was written in a field, as the property's value. */
export function valueOf(kind: PropertyKind, text: string): unknown {
  if (kind === "list") return text.split("\n").map((line) => line.trim()).filter(Boolean);
  if (kind === "number" && text.trim() && Number.isFinite(Number(text))) return Number(text);
  return text;
}

interface PropertyProps {
  host: Host;
  model: NoteModel;
  /** Empty for a new one. */
  name: string;
  value: unknown;
}

function PropertyDialog({ host, model, name, value, onClose }: PropertyProps & { onClose: () => void }): JSX.Element {
  const kind = kindOfValue(value);
  const field = useSignal(name);
  const text = useSignal(Array.isArray(value) ? value.join("\n") : value === null || value === undefined ? "" : String(value));
  const isNew = name === "";
  const save = async () => {
    const wanted = field.value.trim();
    if (wanted && (await carryOut(host, model, () => model.setProperty(wanted, valueOf(kind, text.value)), `The property ${wanted}`))) onClose();
  };
  const remove = async () => {
    if (await carryOut(host, model, () => model.removeProperty(name), `The property ${name}`)) onClose();
  };
  return (
    <DialogFrame
      title={isNew ? "New property" : name}
      onClose={onClose}
      acts={
        <>
          {!isNew && (
            <Button kind="danger" icon="trash" onClick={() => void remove()}>
              Remove
            </Button>
          )}
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" isDisabled={!field.value.trim()} onClick={() => void save()}>
            Save
          </Button>
        </>
      }
    >
      <form
        class="k-property-form"
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        {isNew && (
          <Field label="Name">
            {(more) => <input {...more} class="k-input" value={field.value} autocomplete="off" onInput={(event) => (field.value = event.currentTarget.value)} />}
          </Field>
        )}
        <Field label="Value" hint={kind === "list" ? "One per line." : ""}>
          {(more) =>
            kind === "list" ? (
              <textarea {...more} class="k-input" rows={6} value={text.value} onInput={(event) => (text.value = event.currentTarget.value)} />
            ) : (
              <input
                {...more}
                class="k-input"
                type={kind === "date" ? "date" : kind === "number" ? "number" : "text"}
                step={kind === "number" ? "any" : undefined}
                value={text.value}
                onInput={(event) => (text.value = event.currentTarget.value)}
              />
            )
          }
        </Field>
      </form>
    </DialogFrame>
  );
}

/** Edit a property in a dialog. */
export function editProperty(props: PropertyProps): void {
  void props.host.floaters.dialog((close) => <PropertyDialog {...props} onClose={close} />);
}

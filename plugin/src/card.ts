/** One proposed change as it is drawn in a note: what comes and goes, who wants it and why, and what can be done. */

import { setIcon } from "obsidian";
import { type Fit, newPieces, plain } from "./places";
import type { Hunk } from "./waiting";

export type Verb = "accept" | "reject";
/** How much a decision is about. */
export type Extent = "hunk" | "note" | "proposal";

export interface CardActions {
  decide(verb: Verb, hunk: Hunk, extent: Extent): Promise<void>;
  edit(hunk: Hunk, text: string): Promise<boolean>;
  /** Put the focus on the card before or after, or back into the text. */
  leave(hunk: Hunk, to: "next" | "previous" | "text"): void;
}

const LABELS: Record<Verb, Record<Extent, string>> = {
  accept: { hunk: "Accept", note: "Accept all in this note", proposal: "Accept the whole proposal" },
  reject: { hunk: "Reject", note: "Reject all in this note", proposal: "Reject the whole proposal" },
};

/** Where a card stands: whether its lines are there, and what stands there instead. */
export interface Standing {
  fit: Fit;
  current: string;
}

/** What a card shows of a hunk: not its line, which the text around it moves. */
export function cardKey(hunk: Hunk): string {
  return JSON.stringify({ ...hunk, line: 0 });
}

/** What a card is known by while it is drawn anew. */
export function cardId({ proposal, id }: Hunk): string {
  return `${proposal} ${id}`;
}

/** Draw a card; it acts on keys while it has the focus: A, R, E, arrows, Escape. */
export function drawCard(hunk: Hunk, standing: Standing, actions: CardActions): HTMLElement {
  const root = createDiv({ cls: `knapper knapper-card is-${standing.fit}` });
  root.setAttr("role", "group");
  root.setAttr("aria-label", `Proposed change by ${hunk.client}${hunk.reason ? `: ${hunk.reason}` : ""}`);
  root.setAttr("tabindex", "0");
  root.dataset["hunk"] = cardId(hunk);
  const text = root.createDiv({ cls: "knapper-card-text" });
  drawNew(text, hunk);
  if (standing.fit !== "fits") drawStale(root, hunk, standing);
  const bar = root.createDiv({ cls: "knapper-card-bar" });
  drawWho(bar, hunk);
  const buttons = bar.createDiv({ cls: "knapper-card-buttons" });
  const guard = (work: () => Promise<unknown>) => {
    if (root.hasClass("is-busy")) return;
    root.addClass("is-busy");
    void work().finally(() => root.removeClass("is-busy"));
  };
  if (standing.fit === "fits") button(buttons, "Accept", "mod-cta", () => guard(() => actions.decide("accept", hunk, "hunk")));
  button(buttons, "Reject", "", () => guard(() => actions.decide("reject", hunk, "hunk")));
  const startEdit = () => edit(root, text, hunk, actions);
  if (standing.fit === "fits") button(buttons, "Edit", "", startEdit);
  drawMore(buttons, (verb, extent) => guard(() => actions.decide(verb, hunk, extent)));
  root.addEventListener("keydown", (event) => {
    if (event.target !== root || event.ctrlKey || event.metaKey || event.altKey) return;
    const act = keyAction(event.key, hunk, standing, actions, guard, startEdit);
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  });
  return root;
}

function keyAction(
  key: string,
  hunk: Hunk,
  standing: Standing,
  actions: CardActions,
  guard: (work: () => Promise<unknown>) => void,
  startEdit: () => void,
): (() => void) | undefined {
  const canAccept = standing.fit === "fits";
  const keys: Record<string, (() => void) | undefined> = {
    a: canAccept ? () => guard(() => actions.decide("accept", hunk, "hunk")) : undefined,
    r: () => guard(() => actions.decide("reject", hunk, "hunk")),
    e: canAccept ? startEdit : undefined,
    ArrowDown: () => actions.leave(hunk, "next"),
    ArrowUp: () => actions.leave(hunk, "previous"),
    Escape: () => actions.leave(hunk, "text"),
  };
  return keys[key.length === 1 ? key.toLowerCase() : key];
}

function drawNew(into: HTMLElement, hunk: Hunk): void {
  into.empty();
  if (!hunk.new) {
    into.createSpan({ cls: "knapper-nothing", text: "These lines are taken out." });
    return;
  }
  for (const piece of newPieces(hunk.words)) {
    into.createEl(piece.isAdded ? "ins" : "span", { text: piece.text, ...(piece.isAdded ? { cls: "knapper-added" } : {}) });
  }
}

function drawStale(root: HTMLElement, hunk: Hunk, standing: Standing): void {
  const box = root.createDiv({ cls: "knapper-stale" });
  const cause = hunk.stale?.message ?? "the text here was changed while this waited";
  box.createDiv({ text: `No longer applies: ${cause}.`, cls: "knapper-stale-cause" });
  const both = box.createDiv({ cls: "knapper-both" });
  for (const [name, shown] of [
    ["It was made for", plain(hunk.old)],
    ["There is now", hunk.stale?.current_text ?? standing.current],
  ] as const) {
    const side = both.createDiv();
    side.createDiv({ text: name, cls: "knapper-label" });
    side.createEl("pre", { text: shown || "(nothing)" });
  }
}

function drawWho(bar: HTMLElement, hunk: Hunk): void {
  const who = bar.createDiv({ cls: "knapper-who" });
  setIcon(who.createSpan({ cls: "knapper-who-icon" }), "bot");
  who.createSpan({ text: hunk.client, cls: "knapper-client" });
  if (hunk.reason) who.createSpan({ text: hunk.reason, cls: "knapper-reason", attr: { title: hunk.reason } });
  if (hunk.tainted) who.createSpan({ text: "read text of others", cls: "knapper-tainted" });
  if (hunk.edited) who.createSpan({ text: "edited", cls: "knapper-label" });
}

function drawMore(into: HTMLElement, decide: (verb: Verb, extent: Extent) => void): void {
  const more = into.createEl("details", { cls: "knapper-more" });
  more.createEl("summary", { text: "More", attr: { "aria-label": "More decisions" } });
  const list = more.createDiv({ cls: "knapper-more-list" });
  for (const extent of ["note", "proposal"] as const) {
    for (const verb of ["accept", "reject"] as const) {
      button(list, LABELS[verb][extent], "", () => {
        more.open = false;
        decide(verb, extent);
      });
    }
  }
}

function edit(root: HTMLElement, text: HTMLElement, hunk: Hunk, actions: CardActions): void {
  if (root.querySelector("textarea")) return;
  text.empty();
  const area = text.createEl("textarea", { attr: { "aria-label": "Proposed text", spellcheck: "true" } });
  area.value = plain(hunk.new);
  area.rows = Math.min(20, area.value.split("\n").length + 1);
  const row = text.createDiv({ cls: "knapper-card-buttons" });
  const close = () => {
    drawNew(text, hunk);
    root.focus();
  };
  const save = async () => {
    if (await actions.edit(hunk, area.value)) close(); // the new text comes with a new card, unless it is the old one
  };
  button(row, "Save", "mod-cta", () => void save());
  button(row, "Cancel", "", close);
  area.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.key === "Escape") close();
    else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void save();
    else return;
    event.preventDefault();
  });
  area.focus();
}

/** Make a button that acts once for each click, and leaves the editor's selection alone. */
export function button(into: HTMLElement, text: string, cls: string, act: () => void): HTMLButtonElement {
  const made = into.createEl("button", { text, ...(cls ? { cls } : {}), attr: { type: "button" } });
  made.addEventListener("mousedown", (event) => event.preventDefault());
  made.addEventListener("click", (event) => {
    event.preventDefault();
    act();
  });
  return made;
}

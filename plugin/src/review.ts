/** Review inside the editor: what waits for a note is drawn where it belongs, and follows the text. */

import { type EditorState, type Extension, StateEffect, StateField, type Transaction } from "@codemirror/state";
import { Decoration, type DecorationSet, EditorView, WidgetType } from "@codemirror/view";
import { type CardActions, cardKey, drawCard, type Verb } from "./card";
import { move, type Place, removedPieces } from "./places";
import type { Hunk } from "./waiting";

export const setPlaces = StateEffect.define<readonly Place[]>();
const setNear = StateEffect.define<Near>();

/**
 * How many lines beyond those that CodeMirror draws may have cards. With a widget between two lines far away it goes through
 * all lines up to there at each key (up to @codemirror/view 6.41).
 */
const NEAR_LINES = 100;

/** The part of a text in which cards are drawn; half-open. */
interface Near {
  readonly from: number;
  readonly to: number;
}

interface Review {
  places: readonly Place[];
  /** Null where nothing waits, or where what is shown hasn't been looked at yet. */
  near: Near | null;
  drawn: DecorationSet;
}

/** What the cards of an editor call; the same for all editors. */
export type EditorActions = (view: EditorView) => CardActions;

/** The places of an editor's note, moved with each change of its text. */
export const reviewField: StateField<Review> = StateField.define<Review>({
  create: () => ({ places: [], near: null, drawn: Decoration.none }),
  update: (review, transaction) => {
    const moved = transaction.docChanged ? follow(review, transaction) : review;
    let { places, near } = moved;
    for (const effect of transaction.effects) {
      if (effect.is(setPlaces)) places = effect.value;
      else if (effect.is(setNear)) near = effect.value;
    }
    return places === moved.places && near === moved.near ? moved : drawAll(places, near, transaction.state);
  },
});

let actionsOf: EditorActions | null = null;

/** Make the extension that every editor has. */
export function reviewExtension(actions: EditorActions): Extension {
  actionsOf = actions;
  return [
    reviewField,
    EditorView.decorations.from(reviewField, (review) => review.drawn),
    EditorView.updateListener.of(({ view }) => {
      if (nearOf(view)) queueMicrotask(() => lookNear(view)); // before anything is painted, and behind the other listeners
    }),
  ];
}

/** The places in an editor, in the order of the text. */
export function placesOf(state: EditorState): readonly Place[] {
  return state.field(reviewField, false)?.places ?? [];
}

/** Have cards drawn around what an editor shows now. */
function lookNear(view: EditorView): void {
  const near = nearOf(view);
  if (near) view.dispatch({ effects: setNear.of(near) });
}

/** Where cards are to be drawn; undefined where that is as it was. */
function nearOf({ state, viewport }: EditorView): Near | undefined {
  const review = state.field(reviewField, false);
  if (!review?.places.length || (review.near && review.near.from <= viewport.from && viewport.to <= review.near.to)) return undefined;
  const { doc } = state;
  const first = doc.lineAt(viewport.from).number - NEAR_LINES;
  const last = doc.lineAt(viewport.to).number + NEAR_LINES;
  return { from: doc.line(Math.max(first, 1)).from, to: doc.line(Math.min(last, doc.lines)).to };
}

function follow(review: Review, { changes, state }: Transaction): Review {
  if (!review.places.length) return review;
  let isSame = true;
  const places = review.places.map((place) => {
    const moved = move(place, changes, state.doc);
    if (moved.fit !== place.fit || moved.to - moved.from !== place.to - place.from) isSame = false;
    return moved;
  });
  const near = review.near && { from: changes.mapPos(review.near.from, -1), to: changes.mapPos(review.near.to, 1) };
  // A key elsewhere only moves what is drawn.
  return isSame ? { places, near, drawn: review.drawn.map(changes) } : drawAll(places, near, state);
}

function drawAll(places: readonly Place[], near: Near | null, state: EditorState): Review {
  const ranges = places.flatMap((place) => draw(place, near, state));
  return { places, near: places.length ? near : null, drawn: Decoration.set(ranges, true) };
}

const OLD_LINE = Decoration.line({ class: "knapper-old-line" });
const REMOVED = Decoration.mark({ class: "knapper-removed" });

function draw(place: Place, near: Near | null, state: EditorState) {
  const ranges = [];
  const { doc } = state;
  if (place.fit === "fits" && place.to > place.from) {
    const last = doc.lineAt(Math.max(place.from, place.to - 1));
    for (let line = doc.lineAt(place.from); ; line = doc.line(line.number + 1)) {
      ranges.push(OLD_LINE.range(line.from));
      if (line.number >= last.number) break;
    }
    for (const piece of removedPieces(place.hunk.words)) {
      const [from, to] = [place.from + piece.from, Math.min(place.from + piece.to, place.to)];
      if (to > from) ranges.push(REMOVED.range(from, to));
    }
  }
  const isAtStart = place.to === 0;
  const at = isAtStart ? 0 : doc.lineAt(Math.max(place.from, place.to - 1)).to;
  if (!near || at < near.from || at > near.to) return ranges;
  const widget = new Card(place, place.fit === "fits" ? "" : doc.sliceString(place.from, place.to));
  ranges.push(Decoration.widget({ widget, block: true, side: isAtStart ? -1 : 1 }).range(Math.min(at, doc.length)));
  return ranges;
}

/** The card below the lines that it is about. */
class Card extends WidgetType {
  constructor(
    private readonly place: Place,
    private readonly current: string,
  ) {
    super();
  }

  override eq(other: Card): boolean {
    // Hunks are read anew with each piece of news; in a card that stays as it is, what is being written stays too.
    const isSame = other.place.hunk === this.place.hunk || cardKey(other.place.hunk) === cardKey(this.place.hunk);
    return isSame && other.place.fit === this.place.fit && other.current === this.current;
  }

  override get estimatedHeight(): number {
    return 84 + 22 * this.place.hunk.new.split("\n").length;
  }

  override toDOM(view: EditorView): HTMLElement {
    const root = drawCard(this.place.hunk, { fit: this.place.fit, current: this.current }, actionsOf!(view));
    root.addClass("knapper-card-in-editor");
    return root;
  }

  override ignoreEvent(): boolean {
    return true;
  }
}

/** A place of a note where something waits, as a card or as a block in the text. */
export interface Stop {
  readonly hunk: Hunk;
  /** Half-open. */
  readonly from: number;
  readonly to: number;
  /** Where the cursor goes. */
  readonly at: number;
  readonly isCard: boolean;
  readonly canAccept: boolean;
}

/** The stop after the cursor or before it, round and round. */
export function nextStop(stops: readonly Stop[], cursor: number, direction: 1 | -1): Stop | undefined {
  if (direction > 0) return stops.find((stop) => stop.at > cursor) ?? stops[0];
  return [...stops].reverse().find((stop) => stop.at < cursor) ?? stops.at(-1);
}

/** The stop that "accept next" and "reject next" are about: where the cursor stands, or below; what can't be accepted may be rejected. */
export function stopHere(stops: readonly Stop[], cursor: number, verb: Verb): Stop | undefined {
  const fitting = stops.filter((stop) => stop.canAccept);
  return fitting.find((stop) => stop.to >= cursor) ?? fitting[0] ?? (verb === "reject" ? stops[0] : undefined);
}

/** Where in an editor a hunk is now. */
export function placeOf(state: EditorState, proposal: string, hunk: string): Place | undefined {
  return placesOf(state).find((place) => place.hunk.proposal === proposal && place.hunk.id === hunk);
}

/** Review inside the editor: what waits for a note is drawn where it belongs, and follows the text. */

import { type EditorState, type Extension, StateEffect, StateField, type Transaction } from "@codemirror/state";
import { Decoration, type DecorationSet, EditorView, WidgetType } from "@codemirror/view";
import { type CardActions, cardKey, drawCard, type Verb } from "./card";
import { move, type Place, removedPieces } from "./places";
import type { Hunk } from "./waiting";

export const setPlaces = StateEffect.define<readonly Place[]>();

interface Review {
  places: readonly Place[];
  drawn: DecorationSet;
}

/** What the cards of an editor call; the same for all editors. */
export type EditorActions = (view: EditorView) => CardActions;

/** The places of an editor's note, moved with each change of its text. */
export const reviewField: StateField<Review> = StateField.define<Review>({
  create: () => ({ places: [], drawn: Decoration.none }),
  update: (review, transaction) => {
    for (const effect of transaction.effects) if (effect.is(setPlaces)) return drawAll(effect.value, transaction.state);
    return transaction.docChanged ? follow(review, transaction) : review;
  },
});

let actionsOf: EditorActions | null = null;

/** Make the extension that every editor has. */
export function reviewExtension(actions: EditorActions): Extension {
  actionsOf = actions;
  return [reviewField, EditorView.decorations.from(reviewField, (review) => review.drawn)];
}

/** The places in an editor, in the order of the text. */
export function placesOf(state: EditorState): readonly Place[] {
  return state.field(reviewField, false)?.places ?? [];
}

function follow(review: Review, transaction: Transaction): Review {
  if (!review.places.length) return review;
  let isSame = true;
  const places = review.places.map((place) => {
    const moved = move(place, transaction.changes, transaction.state.doc);
    if (moved.fit !== place.fit || moved.to - moved.from !== place.to - place.from) isSame = false;
    return moved;
  });
  if (!isSame) return drawAll(places, transaction.state);
  // A key elsewhere only moves what is drawn.
  return { places, drawn: review.drawn.map(transaction.changes) };
}

function drawAll(places: readonly Place[], state: EditorState): Review {
  const ranges = places.flatMap((place) => draw(place, state));
  return { places, drawn: Decoration.set(ranges, true) };
}

const OLD_LINE = Decoration.line({ class: "knapper-old-line" });
const REMOVED = Decoration.mark({ class: "knapper-removed" });

function draw(place: Place, state: EditorState) {
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

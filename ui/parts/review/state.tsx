/** What became of a proposal or a part of it, as a chip. */

import type { JSX } from "preact";
import { Chip, type Tone } from "../basic";
import { STATE_NAMES } from "./model";

export function StateMark({ state }: { state: string }): JSX.Element {
  return <Chip tone={stateTone(state)}>{STATE_NAMES[state] ?? state}</Chip>;
}

export function stateTone(state: string): Tone {
  if (state === "accepted") return "added";
  if (state === "rejected") return "removed";
  if (state === "stale" || state === "partly_accepted") return "warning";
  return state === "open" ? "accent" : "plain";
}

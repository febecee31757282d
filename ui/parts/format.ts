/** Numbers, times and amounts as a person reads them. */

import { signal, type Signal } from "@preact/signals";

/** The language of dates, such as `de` or `en-GB`; empty for the system's. What shows a date is drawn anew when it changes. */
export const dateLanguage: Signal<string> = signal("");

/** The language to give `Intl`. */
export function languageOfDates(): string | undefined {
  return dateLanguage.value || undefined;
}

/** Count things: `1 note`, `2,000 notes`. */
export function count(number: number, one: string, many = `${one}s`): string {
  return `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
}

/** An amount of US dollars; small ones keep two digits that matter, and what isn't known is a dash. */
export function cost(dollars: number | null | undefined): string {
  if (dollars === null || dollars === undefined || !Number.isFinite(dollars)) return "–";
  if (dollars === 0) return "$0";
  return dollars < 0.1 ? `$${Number(dollars.toPrecision(2))}` : `$${dollars.toFixed(2)}`;
}

/** A number of tokens: `840`, `12.3k`, `1.2M`. */
export function tokens(number: number | null | undefined): string {
  if (number === null || number === undefined) return "–";
  if (number < 1_000) return String(number);
  const [size, sign] = number < 1_000_000 ? [1_000, "k"] : [1_000_000, "M"];
  return `${(number / size).toFixed(number / size < 100 ? 1 : 0).replace(/\.0$/, "")}${sign}`;
}

/** How long something took: `320 ms`, `4.2 s`, `3 min 5 s`. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1).replace(/\.0$/, "")} s`;
  const seconds = Math.round(ms / 1_000);
  return `${Math.floor(seconds / 60)} min${seconds % 60 ? ` ${seconds % 60} s` : ""}`;
}

const STEPS: readonly [seconds: number, unit: Intl.RelativeTimeFormatUnit][] = [
  [60, "second"],
  [3_600, "minute"],
  [86_400, "hour"],
  [604_800, "day"],
];

/** When something was: `now`, `5 min. ago`, `yesterday`; the date itself where it is more than a week ago. */
export function ago(time: string | number | Date, now: number = Date.now(), language: string | undefined = languageOfDates()): string {
  const at = new Date(time);
  const seconds = (now - at.getTime()) / 1_000;
  if (Number.isNaN(seconds)) return "";
  if (Math.abs(seconds) < 45) return "now";
  const index = STEPS.findIndex(([limit]) => Math.abs(seconds) < limit);
  const step = STEPS[index];
  if (!step) return date(at, now, language);
  const size = STEPS[index - 1]?.[0] ?? 1;
  return new Intl.RelativeTimeFormat(language, { numeric: "auto", style: "short" }).format(-Math.round(seconds / size), step[1]);
}

/** A date without its year where that is this one. */
export function date(time: string | number | Date, now: number = Date.now(), language: string | undefined = languageOfDates()): string {
  const at = new Date(time);
  const isThisYear = at.getFullYear() === new Date(now).getFullYear();
  return at.toLocaleDateString(language, { day: "numeric", month: "short", ...(isThisYear ? {} : { year: "numeric" }) });
}

/** A whole moment: date and time, short. */
export function dateTime(time: string | number | Date): string {
  const at = new Date(time);
  return Number.isNaN(at.getTime()) ? "" : at.toLocaleString(languageOfDates(), { dateStyle: "medium", timeStyle: "short" });
}

/** A size: `840 kB`, `1.2 MB`. */
export function bytes(size: number): string {
  const units = ["B", "kB", "MB", "GB"];
  let value = size;
  let unit = 0;
  while (value >= 1_000 && unit < units.length - 1) {
    value /= 1_000;
    unit += 1;
  }
  return `${unit && value < 100 ? value.toFixed(1).replace(/\.0$/, "") : Math.round(value)} ${units[unit]}`;
}

const WORD_FIRST = /^\p{Ll}[\p{L}'’-]*(?=$|\s|[,:;.!?](?:\s|$))/u;

/** A text with a capital letter at its start, which a message of the server doesn't have; a name such as `qwen3@host` keeps its own. */
export function sentence(text: string): string {
  return WORD_FIRST.test(text) ? text.charAt(0).toUpperCase() + text.slice(1) : text;
}

/** A note's name without its folders and its ending. */
export function noteName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1).replace(/\.md$/i, "");
}

/** The folders that a note lies in; empty for the vault's root. */
export function folderOf(path: string): string {
  return path.includes("/") ? path.slice(0, path.lastIndexOf("/")) : "";
}

/** Values of JSON whose type isn't known. */

/** A text, number or truth value as text; empty for anything else. */
export function textOf(value: unknown): string {
  return typeof value === "string" ? value : typeof value === "number" || typeof value === "boolean" ? String(value) : "";
}

/** Find places in a note's text: lines are counted from 1, as the server counts them. */

const MOST_CHARS = 120_000;
const AROUND = 200;

/**
 * Find the lines that a heading owns, or that a block has; zeros where the text has no such thing.
 *
 * @param {string} text
 * @param {{heading?: string, block?: string}} named
 * @returns {{first: number, last: number}}
 */
export function find(text, { heading = "", block = "" }) {
  const rows = split(text);
  if (block) return blocked(rows, block);
  return plain(heading) ? headed(rows, plain(heading)) : { first: 0, last: 0 };
}

/**
 * Take what can be shown of a text: all of it, or the lines around a place where it is very long.
 *
 * @returns {{rows: Array<string>, line: number, isCut: boolean}} The lines, and the number of the first one.
 */
export function around(text, { first, last }) {
  const rows = split(text);
  if (text.length <= MOST_CHARS) return { rows, line: 1, isCut: false };
  const begin = Math.max(0, first - 1 - AROUND);
  const stop = Math.max(last, first) + AROUND;
  let size = 0;
  const fits = rows.slice(begin, first ? stop : rows.length).findIndex((row) => (size += row.length + 1) > MOST_CHARS);
  return {
    rows: rows.slice(begin, fits < 0 ? (first ? stop : rows.length) : begin + Math.max(fits, 1)),
    line: begin + 1,
    isCut: true,
  };
}

/** Say which lines are meant. */
export function told({ first, last }) {
  if (!first) return "";
  return last > first ? `lines ${first}–${last}` : `line ${first}`;
}

function split(text) {
  return text.split(/\r\n|\r|\n/);
}

function headed(rows, wanted) {
  const level = (row) => /^ {0,3}(#{1,6})\s/.exec(row)?.[1].length ?? 0;
  const begin = rows.findIndex((row) => level(row) && plain(row) === wanted);
  if (begin < 0) return { first: 0, last: 0 };
  const rest = rows.slice(begin + 1).findIndex((row) => level(row) && level(row) <= level(rows[begin]));
  return { first: begin + 1, last: rest < 0 ? rows.length : begin + 1 + rest };
}

/** Find the line that carries a block's name, or, where that stands alone, the one above it. */
function blocked(rows, block) {
  const at = rows.findIndex((row) => row.trimEnd() === `^${block}` || row.trimEnd().endsWith(` ^${block}`));
  if (at < 0) return { first: 0, last: 0 };
  if (rows[at].trim() !== `^${block}`) return { first: at + 1, last: at + 1 };
  let above = at;
  while (above > 0 && !rows[above - 1].trim()) above--;
  return { first: Math.max(1, above), last: at + 1 };
}

function plain(heading) {
  return heading.replace(/^[\s#]+|[\s#]+$/g, "").toLowerCase();
}

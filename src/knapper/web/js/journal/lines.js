/** Show a difference of two texts line by line, as `diff -u` writes it. */

import { el, hidden } from "../dom.js";

const KINDS = { "+": ["added", "added: "], "-": ["removed", "removed: "] };

/**
 * Turn a difference around: what was added is removed. Within a place, what goes stands first.
 *
 * @param {string} text As `diff -u` writes it.
 */
export function turned(text) {
  const [rows, removed, added] = [[], [], []];
  const flush = () => rows.push(...removed.splice(0), ...added.splice(0));
  for (const row of body(text)) {
    if (row.startsWith("+")) removed.push(`-${row.slice(1)}`);
    else if (row.startsWith("-")) added.push(`+${row.slice(1)}`);
    else if (row.startsWith("\\")) (added.length ? added : removed).push(row);
    else {
      flush();
      rows.push(row.replace(/^@@ -(\S+) \+(\S+) @@/, "@@ -$2 +$1 @@"));
    }
  }
  flush();
  return rows.join("\n");
}

/** Show a difference, each line by what became of it. */
export function lineView(text) {
  const rows = body(text).map((row) => {
    const [kind, said] = KINDS[row[0]] ?? [row.startsWith("@@") ? "place" : "same", ""];
    const tag = { added: "ins", removed: "del" }[kind] ?? "span";
    return el(tag, { class: `line ${kind}` }, said ? hidden(said) : null, `${row || " "}\n`);
  });
  return el("pre", { class: "lines-view", tabindex: "0" }, rows);
}

/** Leave out the head, which names the files. */
function body(text) {
  const rows = text.replace(/\n$/, "").split("\n");
  return rows[0]?.startsWith("--- ") ? rows.slice(2) : rows;
}

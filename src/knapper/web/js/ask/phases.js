/** Show how far each agent is. */

import { el, fill } from "../dom.js";

const NAMES = { scout: "Scout", web: "Web", task: "Task", orchestrator: "Choosing agents" };
const SIGNS = { started: "…", going_on: "…", ended: "✓", broken: "–" };

export class Phases {
  constructor() {
    this.rows = new Map();
    this.node = el("ol", { class: "phases", "aria-label": "Agents at work", hidden: true });
  }

  /** Show what an agent says of itself. */
  take({ phase, state, text }) {
    const row = this.rows.get(phase) ?? this.#add(phase);
    row.state = state;
    fill(row.sign, SIGNS[state]);
    fill(row.text, text);
    row.node.className = `phase ${state}`;
  }

  /** Say that nothing goes on any more. */
  end() {
    for (const [phase, row] of this.rows) {
      const isOver = row.state === "ended" || phase === "orchestrator";
      this.take({ phase, state: isOver ? "ended" : "broken", text: row.text.textContent });
    }
  }

  #add(phase) {
    const [sign, text] = [el("span", { class: "phase-sign", "aria-hidden": "true" }), el("span", { class: "quiet" })];
    const node = el("li", {}, sign, el("strong", {}, NAMES[phase] ?? phase), " ", text);
    const row = { node, sign, text };
    this.rows.set(phase, row);
    this.node.append(node);
    this.node.hidden = false;
    return row;
  }
}

/** What a person does with a run: end it, go on, do parts again, write it down, delete it. */

import { button, count, el } from "../dom.js";
import { ask, askText, confirm, tell as show } from "../shell/dialogs.js";
import { ALL } from "./cited.js";
import { Limits, limitsOf } from "./limits.js";
import { isGoing } from "./words.js";

const LONGEST_NAME = 60;

export class Acts {
  /**
   * @param {import("../api.js").Api} api
   * @param {object} does What happens then: `again` opens the run anew, `gone` after it was deleted, `openProposal`, …
   */
  constructor(api, does) {
    this.api = api;
    this.does = does;
  }

  /** Make the buttons that fit how a run stands. */
  buttons(run) {
    if (isGoing(run)) return [button("Cancel", () => this.cancel(run.id), { class: "no" })];
    const hasAnswers = run.nodes.some((node) => node.state === "done" || node.state === "partial");
    return [
      run.state === "complete" ? null : button("Go on …", () => this.goOn(run), { class: "main" }),
      hasAnswers ? button("What changed since …", () => this.replayStale(run)) : null,
      run.answer ? button("Write to a note …", () => this.write(run)) : null,
      button("Delete …", () => this.delete(run), { class: "no" }),
    ];
  }

  cancel(id) {
    return this.#try(async () => {
      await this.api.post(`${address(id)}/cancel`);
      this.does.tell("The run is being ended; what is done is kept.");
    });
  }

  /** Go on where a run ended, with more room where the person gives it. */
  goOn(run) {
    return this.#try(async () => {
      const { ranges } = await this.does.options();
      const limits = new Limits(limitsOf(run.limits), ranges, "go-on");
      const about = el(
        "p",
        {},
        "What is done stays, and isn't paid for again. Give it more room where it came to a limit.",
      );
      const chosen = await ask("Go on with the run", [about, limits.node], "Go on", () => limits.read());
      if (chosen) await this.#resume(run.id, chosen);
    });
  }

  /** Do one part again, and all below it. */
  replay(run, node) {
    return this.#try(async () => {
      const text = `“${node.title}” and all below it is done again, and paid for again; what builds on it follows where its answer changes.`;
      if (await confirm("Do it again?", text, "Do it again")) await this.#resume(run.id, { replay: node.id });
    });
  }

  /** Show which parts read notes that were changed since, and do those again. */
  replayStale(run) {
    return this.#try(async () => {
      const found = stale(await this.api.get(`${address(run.id)}/stale`));
      if (!found.length) {
        await show("Nothing changed", el("p", {}, "No note that this run has read was changed since."));
        return;
      }
      const names = new Map(run.nodes.map((node) => [node.id, node.title]));
      const rows = found.map(([id, paths]) =>
        el(
          "li",
          {},
          el("strong", {}, `${id} ${names.get(id) ?? ""}`),
          el("br"),
          el("span", { class: "quiet" }, paths.map((path) => (path === ALL ? "any note" : path)).join(", ")),
        ),
      );
      const about = el("p", {}, `${count(found.length, "part")} read notes that were changed since:`);
      const list = el("ul", { class: "stale" }, rows);
      if (await ask("Do again what changed?", [about, list], "Do these again", () => true))
        await this.#resume(run.id, { replay: "stale" });
    });
  }

  /** Propose the answer as a note, or as several in a folder. */
  write(run) {
    return this.#try(async () => {
      const label = "A note (its name ends in .md), or a folder for the parts too";
      const to = await askText("Write it to a note", label, `Runs/${fileName(run.task)}.md`, "Propose");
      if (!to) return;
      const made = await this.api.post(`${address(run.id)}/export`, { to });
      this.does.proposed();
      if (made.proposal_id) this.does.openProposal(made.proposal_id);
      else this.does.tell(made.message ?? "It is written");
    });
  }

  delete(run) {
    return this.#try(async () => {
      const text = "The run, its parts and scripts are deleted for good. Notes stay as they are.";
      if (!(await confirm("Delete the run?", text, "Delete"))) return;
      await this.api.delete(address(run.id));
      this.does.gone();
    });
  }

  async #resume(id, body) {
    await this.api.post(`${address(id)}/resume`, body);
    await this.does.again();
  }

  async #try(work) {
    try {
      await work();
    } catch (error) {
      this.does.fail(error);
    }
  }
}

/** Give the address of a run. */
export function address(id) {
  return `/runs/${encodeURIComponent(id)}`;
}

function stale(answer) {
  return Object.entries(answer.stale ?? {}).map(([id, paths]) => [id, [...new Set(paths)]]);
}

/** Make a name that a file can have on every system. */
function fileName(task) {
  const plain = task.replace(/[^\p{L}\p{N} _-]+/gu, " ").replace(/\s+/g, " ");
  const words = plain.trim().split(" ");
  let name = words.shift().slice(0, LONGEST_NAME);
  for (const word of words) {
    if (name.length + word.length >= LONGEST_NAME) break;
    name += ` ${word}`;
  }
  return name || "Run";
}

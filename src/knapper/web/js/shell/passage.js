/** Open a passage of a note at the side: as it reads, and as it is written, with the lines that are meant marked. */

import { button, el, fill } from "../dom.js";
import { noteAddress } from "../api.js";
import { render } from "../markdown/render.js";
import * as places from "./places.js";

const MOST_CHARS = 1_000_000;

export class Passages {
  /**
   * @param {import("../api.js").Api} api
   * @param {import("./panel.js").Panel} panel
   * @param {{about: (path: string) => void}} does
   */
  constructor(api, panel, does) {
    this.api = api;
    this.panel = panel;
    this.does = does;
  }

  /** Open what a checked citation names. */
  citation(cited) {
    const place = {
      path: cited.path,
      first: cited.start_line,
      last: cited.end_line,
      heading: cited.heading,
      hash: cited.hash,
      vault: cited.vault ?? "",
    };
    return this.#open(place.path, [place.path], place);
  }

  /** Open what a link names: by its path, or as the note that holds it resolves it. */
  async link(link, from = "") {
    const [named, block = ""] = link.target.split("^");
    const [target, ...headings] = named.split("#");
    const place = { first: link.first ?? 0, last: link.last ?? 0, heading: headings.at(-1) ?? "", block };
    const led = from ? await this.#leads(from, target) : "";
    const tries = [led || (target ? "" : from), target, `${target}.md`].filter(Boolean);
    return this.#open(target || from, tries, place);
  }

  async #open(name, tries, place) {
    const isShown = this.panel.show(short(name), el("p", { class: "quiet" }, "opening …"));
    let failure = null;
    for (const path of tries) {
      try {
        const note = await this.api.get(noteAddress(path), { length: MOST_CHARS, vault: place.vault || null });
        if (isShown()) this.#show(note, place);
        return;
      } catch (error) {
        failure = error;
        if (error.status !== 404 && error.status !== 422) break;
      }
    }
    if (!isShown()) return;
    this.panel.show(
      short(name),
      el("p", { role: "alert" }, failure.message),
      failure.hint ? el("p", { class: "quiet" }, failure.hint) : null,
    );
  }

  #show(note, given) {
    const place = { ...given, ...(given.first ? {} : places.find(note.content, given)) };
    const part = places.around(note.content, place);
    const where = [note.path, place.heading.replace(/^#+\s*/, ""), places.told(place)].filter(Boolean).join(" · ");
    const view = el("div", { class: "passage" });
    const read = button("As it reads", () => draw(true), { "aria-pressed": "true" });
    const source = button("As written", () => draw(false), { "aria-pressed": "false" });
    const draw = (isRead) => {
      read.setAttribute("aria-pressed", String(isRead));
      source.setAttribute("aria-pressed", String(!isRead));
      fill(view, isRead ? this.#rendered(note, part, place) : written(part, place));
      view.querySelector(".meant")?.scrollIntoView({ block: "center" });
    };
    const ask = button("Ask about this note", () => this.#ask(note.path));
    const changed =
      given.hash && given.hash !== note.hash
        ? notice("The note was changed after this answer; the lines may lie elsewhere now.")
        : null;
    const foreign = note.foreign ? notice("Others wrote this note.") : null;
    const cut = part.isCut || note.truncated ? notice("This note is long; a part of it is shown.") : null;
    this.panel.show(
      short(note.path),
      el("p", { class: "quiet" }, where),
      el("div", { class: "row" }, read, source, ask),
      changed,
      foreign,
      cut,
      view,
    );
    draw(true);
  }

  #rendered(note, part, place) {
    const blocks = render(part.rows.join("\n"), (link) => this.link(link, note.path), part.line);
    const prose = el("div", { class: "prose" }, blocks);
    if (place.first) for (const node of innermost(prose, place)) node.classList.add("meant");
    return prose;
  }

  #ask(path) {
    this.panel.close();
    this.does.about(path);
  }

  /** Find where a link in a note leads. */
  async #leads(from, target) {
    if (!target) return "";
    try {
      const { links } = await this.api.tool("find_outlinks", { path: from, limit: 500 });
      return links.find((one) => one.target === target)?.leads_to ?? "";
    } catch {
      return "";
    }
  }
}

/** List the smallest blocks that the lines touch. */
function innermost(prose, { first, last }) {
  const touches = (node) => Number(node.dataset.first) <= last && Number(node.dataset.last) >= first;
  const found = [...prose.querySelectorAll("[data-first]")].filter(touches);
  return found.filter((node) => !found.some((other) => other !== node && node.contains(other)));
}

function written({ rows, line }, { first, last }) {
  const shown = rows.map((row, at) => {
    const isMeant = first && line + at >= first && line + at <= last;
    return el("li", { class: isMeant ? "meant" : null, value: line + at }, row || "\u200b");
  });
  return el("ol", { class: "source", tabindex: "0" }, shown);
}

function notice(text) {
  return el("p", { class: "notice" }, text);
}

function short(path) {
  return path.split("/").at(-1).replace(/\.md$/, "") || "Note";
}

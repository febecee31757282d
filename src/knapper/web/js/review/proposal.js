/** Show a proposal, and do what the person says: whole, by file, by place. */

import { button, count, el, fill } from "../dom.js";
import { askText } from "../shell/dialogs.js";
import { hunkView } from "./hunk.js";

const KINDS = { edit: "edit", create: "new note", move: "move", trash: "delete" };
const CLOSED = new Set(["accepted", "rejected", "expired", "superseded"]);

export class ProposalView {
  /**
   * @param {import("../api.js").Api} api
   * @param {import("../shell/panel.js").Panel} panel
   * @param {{tell: Function, decided: Function}} does
   */
  constructor(api, panel, does) {
    this.api = api;
    this.panel = panel;
    this.does = does;
    this.shown = null;
    this.node = el("div", { class: "proposal" });
    this.problem = el("div", { role: "alert" });
    document.addEventListener("keydown", (event) => this.#hears(event) && this.#key(event));
  }

  async open(id) {
    const isShown = this.panel.show("A change", el("p", { class: "quiet" }, "opening …"));
    try {
      const proposal = await this.api.get(`/proposals/${encodeURIComponent(id)}`);
      if (!isShown()) return;
      this.#draw(proposal);
      this.panel.show("A change", this.problem, this.node);
    } catch (error) {
      if (isShown()) this.panel.show("A change", el("p", { role: "alert" }, error.message));
    }
  }

  #draw(proposal) {
    this.shown = proposal;
    fill(this.problem);
    const open = proposal.files.flatMap((file) => file.hunks.filter((hunk) => hunk.state === "open"));
    const isOpen = !CLOSED.has(proposal.status);
    const about = `${count(proposal.files.length, "file")}, ${count(open.length, "open place")} · by ${proposal.client} · ${proposal.status.replace("_", " ")}`;
    const warning = proposal.tainted
      ? el("p", { class: "notice warns" }, "It was made after text that others wrote had been read. Look twice.")
      : null;
    const whole = isOpen
      ? el(
          "div",
          { class: "row whole" },
          button("Accept all that is open", () => this.#accept({}), { class: "yes" }),
          button("Reject all", () => this.#rejectAll(), { class: "no" }),
        )
      : null;
    const hint = isOpen
      ? el("p", { class: "quiet keys" }, "Keys: j and k go from place to place, a accepts, r rejects, e edits.")
      : null;
    const notes = (proposal.notes ?? []).map((note) => el("p", { class: "notice" }, note));
    const moved = (proposal.folders ?? []).map((one) =>
      el("p", {}, `The folder ${one.path} would move to ${one.target}.`),
    );
    const why = [
      proposal.reason ? el("p", {}, proposal.reason) : null,
      proposal.why ? el("p", { class: "quiet" }, `It waits because ${proposal.why}.`) : null,
    ];
    const said = proposal.rejection ? el("p", {}, `Rejected: ${proposal.rejection}`) : null;
    fill(
      this.node,
      el("p", { class: "quiet" }, about),
      warning,
      why,
      said,
      notes,
      moved,
      whole,
      proposal.files.map((file) => this.#file(file, isOpen)),
      hint,
    );
  }

  #file(file, isOpen) {
    const group = this.shown.files.filter((one) => one.group === file.group);
    const canParts = isOpen && file.kind === "edit" && group.length === 1;
    const together =
      group.length > 1
        ? el(
            "p",
            { class: "quiet" },
            `Decided together with ${group
              .filter((one) => one !== file)
              .map((one) => one.path)
              .join(", ")}.`,
          )
        : null;
    const target = file.target ? ` → ${file.target}` : "";
    const head = el("h3", {}, el("span", { class: "badge" }, KINDS[file.kind] ?? file.kind), " ", file.path, target);
    const does = {
      accept: (id) => this.#accept({ hunks: [id] }, id),
      reject: (id) => this.#reject({ hunks: [id] }, id),
      edit: (id, text) => this.#edit(id, text),
    };
    const acts =
      isOpen && file.state === "open" && this.shown.files.length > 1
        ? el(
            "div",
            { class: "row" },
            button("Accept the file", () => this.#accept({ files: [file.path] }), {
              class: "yes",
              "aria-label": `Accept ${file.path}`,
            }),
            button("Reject the file", () => this.#reject({ files: [file.path] }), {
              class: "no",
              "aria-label": `Reject ${file.path}`,
            }),
          )
        : null;
    const stale = file.stale ? el("p", { class: "notice" }, file.stale.message) : null;
    const follows = file.follows ? el("p", { class: "quiet" }, "Only links change, so that they follow a move.") : null;
    return el(
      "section",
      { class: `file ${file.state}` },
      head,
      together,
      follows,
      stale,
      file.hunks.map((hunk) => hunkView(hunk, does, canParts)),
      acts,
    );
  }

  #accept(parts, from = "") {
    const body = { digest: this.shown.digest, ...parts };
    return this.#do(() => this.api.post(this.#path("accept"), body), "Accepted", from);
  }

  #reject(parts, from = "") {
    return this.#do(() => this.api.post(this.#path("reject"), parts), "Rejected", from);
  }

  async #rejectAll() {
    const reason = await askText("Reject all of it", "Why (may be left as it is)", "not wanted", "Reject");
    if (reason !== null) await this.#reject({ reason });
  }

  #edit(hunk, text) {
    const path = `${this.#path("hunks")}/${encodeURIComponent(hunk)}`;
    return this.#do(
      () => this.api.send("PUT", path, { digest: this.shown.digest, new_text: text }),
      "The text is changed",
      hunk,
    );
  }

  #path(act) {
    return `/proposals/${encodeURIComponent(this.shown.id)}/${act}`;
  }

  /** Do something, and show what there is then; what failed is said, and what is shown is fresh all the same. */
  async #do(work, told, from) {
    if (this.isBusy) return;
    this.isBusy = true;
    this.node.setAttribute("aria-busy", "true");
    let failure = null;
    try {
      const done = await work();
      this.does.tell(done.status === "refused" ? (done.reason ?? "Refused") : told);
    } catch (error) {
      failure = error;
    }
    try {
      this.#draw(await this.api.get(`/proposals/${encodeURIComponent(this.shown.id)}`));
    } catch (error) {
      failure ??= error;
    }
    this.isBusy = false;
    this.node.removeAttribute("aria-busy");
    if (failure)
      fill(
        this.problem,
        el("p", { class: "card wrong" }, el("strong", {}, failure.message), failure.hint ? ` ${failure.hint}` : ""),
      );
    this.#focus(from);
    this.does.decided();
  }

  /** Go to the next place that is open. */
  #focus(from) {
    const hunks = this.#hunks();
    const at = hunks.findIndex((one) => one.dataset.hunk === from);
    const next =
      hunks.slice(Math.max(at, 0)).find((one) => one.classList.contains("open")) ??
      hunks.find((one) => one.classList.contains("open"));
    (next ?? this.panel.heading).focus();
  }

  #hunks() {
    return [...this.node.querySelectorAll(".hunk")];
  }

  /** Whether a key is meant for the change: it is shown, and nothing outside the panel has the focus. */
  #hears({ target, ctrlKey, metaKey, altKey }) {
    if (ctrlKey || metaKey || altKey || target.matches("textarea, input, select")) return false;
    const isShown = this.node.isConnected && !this.panel.node.hidden;
    return isShown && (this.panel.node.contains(target) || target === document.body);
  }

  #key(event) {
    const hunks = this.#hunks();
    const at = hunks.indexOf(event.target.closest(".hunk"));
    const step = { j: 1, k: -1 }[event.key];
    const act = { a: "accept", r: "reject", e: "edit" }[event.key];
    if (step) hunks[Math.min(hunks.length - 1, Math.max(0, at < 0 ? 0 : at + step))]?.focus();
    else if (act && at >= 0) hunks[at].querySelector(`[data-act=${act}]`)?.click();
    else return;
    event.preventDefault();
  }
}

/** Begin a run: the task, how it is done, and how much it may take. */

import { el, fill } from "../dom.js";
import { Limits } from "./limits.js";
import { Others } from "./others.js";

const MOST_CHARS = 50_000;
const PROFILES = {
  strict: "the vaults alone",
  local: "also the folders that the configuration names",
  extended: "also the folders and hosts that the configuration names",
};

export class Beginning {
  /**
   * @param {import("../api.js").Api} api
   * @param {{begun: (id: string) => void, options: () => Promise<object>}} does
   */
  constructor(api, does) {
    this.api = api;
    this.does = does;
    this.node = el("div", { class: "run" });
    this.problem = el("div", { role: "alert" });
  }

  async open() {
    fill(this.node, el("p", { class: "quiet" }, "opening …"));
    try {
      this.#draw(await this.does.options());
    } catch (error) {
      fill(
        this.node,
        el("p", { class: "card wrong", role: "alert" }, error.message, error.hint ? `: ${error.hint}` : ""),
      );
    }
  }

  #draw(options) {
    this.task = el("textarea", { id: "run-task", rows: "4", maxlength: String(MOST_CHARS), required: true });
    this.strategy = el("select", { id: "run-strategy" }, strategies(options));
    const canScripts = options.sandbox_ready !== null;
    const ticked = { checked: options.code_mode && canScripts, disabled: !canScripts };
    this.codeMode = el("input", { type: "checkbox", id: "run-code-mode", ...ticked });
    this.fresh = el("input", { type: "checkbox", id: "run-fresh" });
    this.others = new Others(this.api.vaults.filter((name) => name !== this.api.vault));
    this.limits = new Limits(options.limits, options.ranges, "run");
    this.model = el("input", { type: "text", id: "run-model", maxlength: "200", placeholder: options.model ?? "" });
    this.profile = el("select", { id: "run-profile" }, profiles(options));
    this.begin = el("button", { type: "submit", class: "main" }, "Begin");
    const form = el(
      "form",
      { class: "run-form" },
      el("h2", {}, "A larger task"),
      el(
        "p",
        {},
        "It is split where that helps. Each part finds its own notes and answers with citations; one answer is made of them.",
      ),
      problems(options),
      labelled("Task", this.task),
      this.others.node,
      labelled("Strategy", this.strategy),
      el(
        "label",
        { class: "tick" },
        this.codeMode,
        " Let the model write scripts that find what is needed (Code Mode)",
      ),
      el("details", { class: "limits-fold" }, el("summary", {}, "Limits, model, and more"), this.#more(options)),
      this.problem,
      el("div", { class: "row" }, this.begin),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#begin();
    });
    this.task.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
    });
    fill(this.problem);
    fill(this.node, form);
    this.task.focus();
  }

  #more({ profiles: known = [] }) {
    const profile = known.length > 1 ? labelled("What scripts may read", this.profile) : null;
    const fresh = el("label", { class: "tick" }, this.fresh, " Take nothing from earlier runs");
    return [this.limits.node, labelled("Model", this.model), profile, fresh];
  }

  async #begin() {
    this.begin.disabled = true;
    try {
      const made = await this.api.post("/runs", {
        task: this.task.value,
        also: this.others.read(),
        strategy: this.strategy.value,
        code_mode: this.codeMode.checked,
        profile: this.profile.value || null,
        fresh: this.fresh.checked,
        model: this.model.value.trim(),
        ...this.limits.read(),
      });
      this.does.begun(made.id);
    } catch (error) {
      fill(
        this.problem,
        el("p", { class: "card wrong" }, el("strong", {}, error.message), error.hint ? ` ${error.hint}` : ""),
      );
      this.begin.disabled = false;
    }
  }
}

function labelled(name, input) {
  return el("div", { class: "field" }, el("label", { for: input.id }, name), input);
}

function strategies({ strategies: known, strategy }) {
  const rows = [{ name: "auto", summary: "the model chooses" }, ...known.filter((one) => one.name !== "auto")];
  return rows.map((one) =>
    el(
      "option",
      { value: one.name, selected: one.name === strategy },
      `${one.name}: ${one.summary}${one.own ? " (your own)" : ""}`,
    ),
  );
}

function profiles({ profiles: known = [] }) {
  return known.map((name) => el("option", { value: name }, PROFILES[name] ?? name));
}

function problems({ model, model_hint: hint, sandbox_ready: isReady, sandbox_hint: sandboxHint }) {
  const noModel = model ? null : el("p", { class: "notice warns" }, `No model is set up. ${hint ?? ""}`);
  const slow =
    isReady === false
      ? "Scripts have to be prepared first; that is done once, and takes some seconds."
      : isReady === null
        ? `Scripts can't be run here, so parts are found by search. ${sandboxHint ?? ""}`
        : "";
  return [noModel, slow ? el("p", { class: "notice" }, slow) : null];
}

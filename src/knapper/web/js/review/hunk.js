/** Show one place of a proposal: what would change, and what the person says to it. */

import { button, el, fill } from "../dom.js";
import { difference } from "./words.js";

const STATES = { accepted: "accepted", rejected: "rejected", stale: "doesn't fit any more", expired: "expired" };

/**
 * @param {object} hunk As the server shows it.
 * @param {{accept: Function, reject: Function, edit: (id: string, text: string) => Promise<void>}} does
 * @param {boolean} isAlone Whether it can be decided by itself.
 */
export function hunkView(hunk, does, isAlone) {
  const isOpen = hunk.state === "open";
  const label = `Place ${hunk.id}, line ${hunk.line}`;
  const node = el("section", {
    class: `hunk ${hunk.state}`,
    "data-hunk": hunk.id,
    "aria-label": label,
    tabindex: "-1",
  });
  const state = STATES[hunk.state] ?? hunk.state;
  const head = el(
    "p",
    { class: "hunk-head" },
    el("span", { class: "quiet" }, `line ${hunk.line}`),
    isOpen ? null : el("span", { class: "badge" }, state),
    hunk.edited ? el("span", { class: "badge" }, "edited by you") : null,
  );
  const why = hunk.stale ? el("p", { class: "notice" }, hunk.stale.message) : null;
  const acts = el("div", { class: "row" });
  const view = el("div", {}, difference(hunk.words));
  if (isOpen && isAlone) {
    acts.append(
      button("Accept", () => does.accept(hunk.id), {
        class: "yes",
        "data-act": "accept",
        "aria-label": `Accept ${label}`,
      }),
      button("Reject", () => does.reject(hunk.id), {
        class: "no",
        "data-act": "reject",
        "aria-label": `Reject ${label}`,
      }),
      button("Edit", () => edit(view, acts, hunk, does), { "data-act": "edit", "aria-label": `Edit ${label}` }),
    );
  }
  return fill(node, head, why, view, acts);
}

/** Put a box in the difference's place. */
function edit(view, acts, hunk, does) {
  const box = el("textarea", {
    "aria-label": "The new text",
    rows: Math.min(16, hunk.new.split("\n").length + 1),
    spellcheck: "true",
  });
  box.value = hunk.new;
  const back = () => {
    fill(view, difference(hunk.words));
    acts.hidden = false;
    acts.querySelector("[data-act=edit]").focus();
  };
  const save = button("Save the text", () => does.edit(hunk.id, box.value), { class: "main" });
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) does.edit(hunk.id, box.value);
    if (event.key !== "Escape") return;
    event.stopPropagation();
    back();
  });
  acts.hidden = true;
  fill(view, box, el("div", { class: "row" }, save, button("Cancel", back)));
  box.focus();
}

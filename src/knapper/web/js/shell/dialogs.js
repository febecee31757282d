/** Ask the person, in a dialog that the keyboard can't leave by accident. */

import { button, el } from "../dom.js";

/** Ask for a text; gives null where the person thinks better of it. */
export function askText(title, label, value = "", yes = "Save") {
  const input = el("input", { type: "text", id: "asked-text", maxlength: "200" });
  input.value = value;
  return ask(title, [el("label", { for: "asked-text" }, label), input], yes, () => input.value.trim() || null, input);
}

/** Ask whether something is meant. */
export async function confirm(title, text, yes) {
  return Boolean(await ask(title, [el("p", {}, text)], yes, () => true));
}

/** Show something that only needs to be read. */
export function tell(title, ...content) {
  return ask(title, content, "", () => true);
}

/** Ask with whatever content; gives what `answer` says on yes, and null otherwise. */
export function ask(title, content, yes, answer, focused) {
  return new Promise((resolve) => {
    const name = el("h2", { id: "asked" }, title);
    const accept = yes ? el("button", { type: "submit", class: "main" }, yes) : null;
    const leave = button(yes ? "Cancel" : "Close", () => dialog.close());
    const form = el("form", { method: "dialog" }, name, content, el("div", { class: "row end" }, leave, accept));
    const dialog = el("dialog", { "aria-labelledby": "asked" }, form);
    let said = null;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      said = answer();
      dialog.close();
    });
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(said);
    });
    document.body.append(dialog);
    dialog.showModal();
    focused?.select();
  });
}

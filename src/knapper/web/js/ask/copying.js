/** Copy what notes hold, to be put in elsewhere. */

import { count, el } from "../dom.js";
import { tell } from "../shell/dialogs.js";

/**
 * Copy the text of the notes that would go with a task.
 *
 * @param {import("../api.js").Api} api
 * @param {object} body What is chosen, as `POST /ask/context` takes it.
 * @param {{tell: Function, fail: Function}} does
 */
export async function copyTexts(api, body, does) {
  try {
    const { notes } = await api.post("/ask/context", { ...body, texts: true });
    await put(notes.map((one) => `# ${one.path}\n\n${one.text.trimEnd()}\n`).join("\n"));
    does.tell(`The text of ${count(notes.length, "note")} is copied`);
  } catch (error) {
    does.fail(error);
  }
}

/** Put a text on the clipboard; where the browser lets no page do that, show it to be copied by hand. */
async function put(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const box = el("textarea", { "aria-label": "The text", rows: "12", readonly: true });
    box.value = text;
    await tell("Copy it from here", box);
  }
}

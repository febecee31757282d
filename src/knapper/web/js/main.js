/** Start the page: sign in, and put its parts together. */

import { Api } from "./api.js";
import { Conversation } from "./chat/conversation.js";
import { byId, el, fill } from "./dom.js";
import * as keep from "./keep.js";
import { ProposalView } from "./review/proposal.js";
import { Proposals } from "./review/proposals.js";
import { Runs } from "./runs/runs.js";
import { tell as show } from "./shell/dialogs.js";
import { Panel } from "./shell/panel.js";
import { Passages } from "./shell/passage.js";
import { Sessions } from "./shell/sessions.js";
import { Standing } from "./shell/standing.js";

const PROPOSALS_MS = 30_000;
const KEYS = [
  ["Enter", "send; Shift+Enter begins a line"],
  ["Escape", "stop the answer, or close the panel"],
  ["Ctrl or ⌘ + K", "new conversation"],
  ["Ctrl or ⌘ + /", "write a message"],
  ["j, k", "in a change: next and previous place"],
  ["a, r, e", "in a change: accept, reject, edit"],
  ["arrows, Enter", "in a run: go through its parts, open one; Escape goes back to them"],
];

const api = new Api(() => signedOut());
start();

async function start() {
  byId("signin").addEventListener("submit", (event) => {
    event.preventDefault();
    enter(byId("code").value);
  });
  addEventListener("hashchange", () => enter(taken()));
  const code = taken();
  try {
    if (await api.isSignedIn()) open();
    else if (code) await enter(code);
    else signedOut();
  } catch (error) {
    signedOut(error);
  }
}

/** Take the code out of the address, so that no history and no bookmark keeps it; a run's id stays there. */
function taken() {
  const said = new URLSearchParams(location.hash.slice(1));
  const code = said.get("token") ?? "";
  if (location.hash && (code || !said.has("run"))) history.replaceState(null, "", location.pathname);
  return code;
}

/** Sign in with a code, or with the whole address that holds one. */
async function enter(said) {
  const code = said.trim().split("#token=").at(-1);
  if (!code) return;
  try {
    await api.signIn(code);
    byId("code").value = "";
    open();
  } catch (error) {
    signedOut(error);
  }
}

function signedOut(error) {
  byId("app").hidden = true;
  byId("gate").hidden = false;
  const problem = error ? `${error.message}${error.hint ? `: ${error.hint}` : ""}` : "";
  fill(byId("signin-problem"), problem);
  byId("code").focus();
}

let isOpened = false;

function open() {
  byId("gate").hidden = true;
  byId("app").hidden = false;
  if (isOpened) return;
  isOpened = true;
  assemble();
}

function assemble() {
  const panel = new Panel();
  const does = { tell, fail, shown: () => drawer(false) };
  const passages = new Passages(api, panel, {
    about: (path) => {
      runs.leave();
      conversation.about(path);
    },
  });
  const view = new ProposalView(api, panel, { tell, decided: () => proposals.load() });
  const proposals = new Proposals(api, view, { ...does, known: (all) => conversation.settle(all) });
  const conversation = new Conversation(api, {
    ...does,
    openCitation: (cited) => passages.citation(cited),
    openNote: (link) => passages.link(link),
    openProposal: (id) => view.open(id),
    proposed: () => proposals.load(),
    opened: () => {
      runs.leave();
      proposals.load();
    },
    changed: () => {
      sessions.load();
      standing.look();
    },
    undo: (id) => undo(id),
  });
  const runs = new Runs(api, {
    ...does,
    openCitation: (cited) => passages.citation(cited),
    openNote: (link) => passages.link(link),
    openProposal: (id) => view.open(id),
    proposed: () => proposals.load(),
  });
  const sessions = new Sessions(api, conversation, does);
  const standing = new Standing(api, () => Promise.all([sessions.load(), proposals.load(), runs.load()]));
  frame({ conversation, sessions, proposals, runs, standing });
  standing.look();
  proposals.load();
  setInterval(() => document.hidden || standing.isOffline || proposals.load(), PROPOSALS_MS);
  goOn(conversation).then(() => {
    sessions.load();
    runs.load();
    runs.follow();
  });
}

/** Go on where this browser was. */
async function goOn(conversation) {
  const id = keep.load("session");
  if (!id) return;
  try {
    await conversation.open(id);
  } catch (error) {
    if (error.status !== 404) fail(error);
    conversation.clear();
  }
}

function frame({ conversation, sessions, proposals, runs, standing }) {
  byId("menu").addEventListener("click", () => drawer(!document.body.classList.contains("with-drawer")));
  byId("shade").addEventListener("click", () => drawer(false));
  byId("keys").addEventListener("click", () => keys());
  byId("signout").addEventListener("click", () => leave());
  const vaults = byId("vault");
  fill(
    vaults,
    api.vaults.map((name) => el("option", { value: name, selected: name === api.vault }, name)),
  );
  byId("vault-choice").hidden = api.vaults.length < 2;
  vaults.addEventListener("change", () => {
    api.choose(vaults.value);
    conversation.clear();
    runs.leave();
    for (const part of [sessions, proposals, runs]) part.load();
    standing.look();
  });
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") drawer(false);
    if (!(event.ctrlKey || event.metaKey) || !["k", "/"].includes(event.key)) return;
    event.preventDefault();
    if (event.key === "k") byId("new").click();
    byId("message").focus();
  });
}

/** Show or hide the lists, where there is no room for them beside the conversation. */
function drawer(isOpen) {
  const { classList } = document.body;
  if (classList.contains("with-drawer") === isOpen) return;
  classList.toggle("with-drawer", isOpen);
  byId("menu").setAttribute("aria-expanded", String(isOpen));
  byId(isOpen ? "new" : "menu").focus({ preventScroll: true });
}

async function undo(id) {
  try {
    await api.post(`/changes/${encodeURIComponent(id)}/undo`);
    return "It is taken back.";
  } catch (error) {
    return error.message;
  }
}

async function leave() {
  try {
    await api.signOut();
  } catch (error) {
    fail(error);
    return;
  }
  location.reload();
}

function keys() {
  return show(
    "Keys",
    el(
      "dl",
      { class: "keys-list" },
      KEYS.flatMap(([key, text]) => [el("dt", {}, el("kbd", {}, key)), el("dd", {}, text)]),
    ),
  );
}

/** Say something to those who don't see the page. */
function tell(text) {
  fill(byId("said"), text);
}

let hiding = 0;

/** Show what went wrong, for a while. */
function fail(error) {
  const note = byId("toast");
  fill(note, error.message, error.hint ? `: ${error.hint}` : "");
  note.hidden = false;
  clearTimeout(hiding);
  hiding = setTimeout(() => (note.hidden = true), 10_000);
}

/** Start the page: sign in, and put its parts together. */

import { Api } from "./api.js";
import { Composing } from "./ask/composing.js";
import { Waiting } from "./ask/waiting.js";
import { Conversation } from "./chat/conversation.js";
import { byId, el, fill } from "./dom.js";
import { Journal } from "./journal/journal.js";
import * as keep from "./keep.js";
import { ProposalView } from "./review/proposal.js";
import { Proposals } from "./review/proposals.js";
import { Restricted } from "./review/restricted.js";
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

/** Take the code out of the address, so that no history and no bookmark keeps it; what it leads to stays there. */
function taken() {
  const said = new URLSearchParams(location.hash.slice(1));
  const code = said.get("token") ?? "";
  if (location.hash && (code || !(said.has("run") || said.has("proposal")))) history.replaceState(null, "", location.pathname);
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
  const parts = { panel: new Panel() };
  const does = { tell, fail, shown: () => drawer(false) };
  const about = (path) => {
    parts.runs.leave();
    parts.conversation.about(path);
    byId("message").focus();
  };
  parts.passages = new Passages(api, parts.panel, { about });
  parts.view = new ProposalView(api, parts.panel, { tell, decided: () => parts.proposals.load() });
  const known = (all) => parts.conversation.settle(all);
  parts.proposals = new Proposals(api, parts.view, { ...does, known });
  parts.restricted = new Restricted(api, does);
  talking(parts, does);
  working(parts, does);
  parts.sessions = new Sessions(api, parts.conversation, does);
  parts.standing = new Standing(api, () => Promise.all(listed(parts).map((one) => one.load())));
  frame(parts);
  begin(parts);
}

/** Make the conversation, and what is chosen for it. */
function talking(parts, does) {
  parts.conversation = new Conversation(api, {
    ...does,
    ...opening(parts),
    isChat: () => parts.composing.isChat,
    body: () => parts.composing.body(),
    chosen: () => parts.composing.changed(),
    waiting: () => parts.waiting.load(),
    opened: () => {
      parts.runs.leave();
      parts.proposals.load();
    },
    changed: () => {
      parts.sessions.load();
      parts.waiting.load();
      parts.standing.look();
    },
    undo: (id) => undo(id),
  });
  parts.composing = new Composing(api, {
    ...does,
    openNote: (path) => parts.passages.link({ target: path }),
    about: (path) => parts.conversation.about(path),
    file: () => parts.conversation.file,
  });
}

/** Make what goes on beside the conversation. */
function working(parts, does) {
  parts.runs = new Runs(api, { ...does, ...opening(parts) });
  const open = (run) => {
    parts.runs.leave();
    return parts.conversation.openRun(run);
  };
  parts.waiting = new Waiting(api, { ...does, open });
  parts.journal = new Journal(api, parts.panel, {
    ...does,
    openNote: (path) => parts.passages.link({ target: path }),
    undone: () => parts.proposals.load(),
  });
}

/** Say how things are opened at the side. */
function opening(parts) {
  return {
    openCitation: (cited) => parts.passages.citation(cited),
    openNote: (link) => parts.passages.link(link),
    openProposal: (id) => parts.view.open(id),
    proposed: () => parts.proposals.load(),
  };
}

function listed({ sessions, proposals, runs, waiting, restricted }) {
  return [sessions, proposals, runs, waiting, restricted];
}

function begin(parts) {
  const { conversation, composing, proposals, restricted, runs, standing, waiting } = parts;
  composing.load();
  standing.look();
  proposals.load();
  const look = () => document.hidden || standing.isOffline || [proposals, waiting, restricted].forEach((one) => one.load());
  setInterval(look, PROPOSALS_MS);
  goOn(conversation).then(() => {
    for (const part of listed(parts)) part.load();
    runs.follow();
    followProposal(parts);
  });
  addEventListener("hashchange", () => followProposal(parts));
}

/** Open the proposal that the address names, in its vault, and take it out of the address again. */
function followProposal({ view }) {
  const said = new URLSearchParams(location.hash.slice(1));
  const id = said.get("proposal") ?? "";
  if (!/^[\w-]+$/.test(id)) return;
  const [vault, vaults] = [said.get("vault") ?? "", byId("vault")];
  if (vault && vault !== api.vault && api.vaults.includes(vault)) {
    vaults.value = vault;
    vaults.dispatchEvent(new Event("change"));
  }
  history.replaceState(null, "", location.pathname);
  view.open(id);
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

function frame(parts) {
  const { conversation, composing, journal, runs, standing } = parts;
  byId("menu").addEventListener("click", () => drawer(!document.body.classList.contains("with-drawer")));
  byId("shade").addEventListener("click", () => drawer(false));
  byId("keys").addEventListener("click", () => keys());
  byId("journal").addEventListener("click", () => {
    drawer(false);
    journal.open();
  });
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
    for (const part of [...listed(parts), composing]) part.load();
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

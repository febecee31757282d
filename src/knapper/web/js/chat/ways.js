/** Say how a message goes to the server, and how what comes of it is shown. */

import { Task } from "../ask/task.js";
import { Exchange } from "./exchange.js";

/** A turn of the chat: the model looks by itself. */
export const CHAT = {
  root: "/chat",
  Shown: Exchange,
  needsSession: (file) => !file,
  path: (session) => (session ? `/sessions/${encodeURIComponent(session)}/chat/stream` : "/chat/stream"),
  body: (message, { file }) => ({ message, ...(file ? { active_file: file } : {}) }),
};

/** A task of several agents, with the notes and rules that were chosen. */
export const TASK = {
  root: "/ask",
  Shown: Task,
  needsSession: () => true,
  path: () => "/ask/stream",
  body: (task, { session, chosen }) => ({ task, session_id: session, ...chosen }),
};

/** Show a turn or a task as a session kept it; its steps are asked for in full once one of them is folded out. */
export function kept([asked, answered], does, session) {
  const way = answered?.outcome?.pipeline ? TASK : CHAT;
  const path = `/sessions/${encodeURIComponent(session)}/trace`;
  let asking = null;
  const details = () => {
    asking ??= does.api.get(path, { number: asked.number }).then((answer) => answer.trace);
    asking.catch(() => (asking = null)); // the next step that is folded out asks again
    return asking;
  };
  return way.Shown.kept(asked, answered, does, details);
}

/** Pair each question with its answer. */
export function paired(messages) {
  const answers = new Map(messages.filter((one) => one.role === "assistant").map((one) => [one.number, one]));
  return messages.filter((one) => one.role === "user").map((one) => [one, answers.get(one.number)]);
}

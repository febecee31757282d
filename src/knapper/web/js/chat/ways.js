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

/** Show a turn or a task as a session kept it. */
export function kept([asked, answered], does) {
  const way = answered?.outcome?.pipeline ? TASK : CHAT;
  return way.Shown.kept(asked, answered, does);
}

/** Pair each question with its answer. */
export function paired(messages) {
  const answers = new Map(messages.filter((one) => one.role === "assistant").map((one) => [one.number, one]));
  return messages.filter((one) => one.role === "user").map((one) => [one, answers.get(one.number)]);
}

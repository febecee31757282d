/** The views, in the order of the rail; the first is what `/` shows. */

import type { ViewEntry } from "./view";
import search from "./views/search"; // what `/` shows comes with the page: a request less

export const VIEWS: readonly ViewEntry[] = [
  { id: "search", title: "Search", icon: "search", key: "s", routes: ["search"], load: () => Promise.resolve({ default: search }) },
  { id: "notes", title: "Notes", icon: "file-text", key: "n", routes: ["notes", "notes/*path"], load: () => import("./views/notes") },
  { id: "chat", title: "Chat", icon: "message-square", key: "c", routes: ["chat", "chat/:id"], load: () => import("./views/chat") },
  { id: "runs", title: "Runs", icon: "workflow", key: "r", routes: ["runs", "runs/:id"], load: () => import("./views/runs") },
  { id: "schedules", title: "Schedules", icon: "clock", key: "d", routes: ["schedules", "schedules/:name"], within: "runs", load: () => import("./views/schedules") },
  { id: "review", title: "Review", icon: "git-pull-request", key: "v", routes: ["review", "review/:id", "journal", "history"], load: () => import("./views/review") },
  { id: "graph", title: "Graph", icon: "waypoints", key: "m", routes: ["graph", "graph/*path"], load: () => import("./views/graph") },
  { id: "settings", title: "Settings", icon: "settings", key: "t", routes: ["settings", "settings/:section"], load: () => import("./views/settings") },
];

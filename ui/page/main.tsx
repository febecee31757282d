/** Start the page: sign in, then draw the shell. */

import { effect } from "@preact/signals";
import { render, type JSX } from "preact";
import { App } from "./app";
import { Gate } from "./gate";
import { install } from "./install";
import { Session, takeCode, takePlace } from "./session";
import { registerShell, Shell } from "./shell";
import { VIEWS } from "./views";

const session = new Session();
const code = takeCode();
const app = new App(session, VIEWS);
registerShell(app);

function Page(): JSX.Element | null {
  if (session.state.value === "unknown") return null;
  return session.state.value === "in" ? <Shell app={app} /> : <Gate session={session} />;
}

// An address of a proposal as messages to programs have it, `/#vault=NAME&proposal=ID`, is one of this page's own.
effect(() => {
  if (session.state.value !== "in") return;
  const place = takePlace();
  if (place?.vault && session.vaults.peek().includes(place.vault)) session.choose(place.vault);
  if (place) app.go(app.href({ kind: "proposal", id: place.proposal }), { replace: true });
});

let news = new AbortController();
effect(() => {
  news.abort();
  if (session.state.value !== "in") return;
  news = new AbortController();
  void app.followNews(news.signal);
});

// At the gate a key opens nothing: it would lie over the page once somebody has signed in.
effect(() => (session.state.value === "in" ? app.shortcuts.listen(window) : undefined));
addEventListener("click", (event) => app.router.take(event));
addEventListener("hashchange", () => {
  const late = takeCode();
  if (late && session.state.value !== "in") void session.signIn(late);
  if (session.state.value === "in" && location.hash.includes("proposal=")) location.reload(); // perhaps of another vault
});

const root = document.getElementById("app");
if (root) render(<Page />, root);
void session.begin(code);

// What makes the page installable isn't needed to use it, so it comes after all that is.
setTimeout(install, 3_000);

/** Review: what waits at the left, one proposal in the middle; the journal of what was changed, and the history of all work. */

import { effect, signal, type Signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useLayoutEffect } from "preact/hooks";
import { Button, Empty, Row, SkeletonText, Tabs } from "../../../parts";
import { DecidedProposals, Journal, JournalView, ProposalActs, ProposalReview, ProposalView, Restricted, ReviewList, trust, WaitingProposals, WaitingQuestions, type Origin, type WaitingQuestion, type Way } from "../../../parts/review";
import { noteName } from "../../../parts/format";
import { href, type App } from "../../app";
import * as keep from "../../keep";
import { MainHead } from "../../shell";
import { defineView, type ViewProps } from "../../view";
import { History } from "./history";
import { HistoryView } from "./historyview";

type Shown = "waiting" | "decided";

interface State {
  list: ReviewList;
  review: ProposalReview;
  journal: Journal;
  history: History;
  /** Runs and conversations by their ids. */
  origins: Signal<ReadonlyMap<string, Origin>>;
  shown: Signal<Shown>;
}

function create(app: App): State {
  const list = new ReviewList(app);
  const way = signal<Way>(keep.load("review") === "side" ? "side" : "inline");
  effect(() => keep.save("review", way.value === "side" ? "side" : ""));
  const toNext = (by: 1 | -1) => {
    const next = list.beside(app.router.route.value.params["id"] ?? "", by);
    return next ? () => app.go(href(`review/${next}`)) : undefined;
  };
  const review = new ProposalReview({ host: app, way, onDecided: () => list.loadSoon(), toNext });
  const journal = new Journal(app.client);
  const history = new History(app.client);
  const origins = signal<ReadonlyMap<string, Origin>>(new Map());
  app.onNews((event) => {
    if (event.event === "change") journal.loadSoon();
    if (history.loaded.data.value) history.loadSoon();
    list.loadSoon();
    void review.refresh();
  });
  effect(() => {
    if (app.session.isReached.value) list.loadSoon(); // again, when a lost server is back
  });
  void loadOrigins(app, origins);
  return { list, review, journal, history, origins, shown: signal<Shown>("waiting") };
}

/** Learn what runs and conversations are called; a server without them has none. */
async function loadOrigins(app: App, origins: Signal<ReadonlyMap<string, Origin>>): Promise<void> {
  const none = { results: [] };
  const [runs, sessions] = await Promise.all([
    app.client.get("/runs", { query: { limit: 200 } }).catch(() => none),
    app.client.get("/sessions", { query: { limit: 200 } }).catch(() => none),
  ]);
  const found = new Map<string, Origin>();
  for (const run of runs.results) found.set(run.id, { title: run.task, icon: "workflow", href: href(`runs/${run.id}`) });
  for (const session of sessions.results) found.set(session.id, { title: session.title || "A conversation", icon: "message-square", href: href(`chat/${session.id}`) });
  origins.value = found;
}

/** The ids of conversations; those of runs begin with their day. */
const CONVERSATION = /^[0-9a-f]{8}-[0-9a-f]{4}-/;

function originOf(state: State): (run: string) => Origin | undefined {
  return (run) => {
    const known = state.origins.value.get(run);
    if (known || !run) return known;
    // One of another program, such as of `knap chat`, which the page can't read.
    return CONVERSATION.test(run) ? { title: "A conversation elsewhere", icon: "message-square" } : { title: run, icon: "workflow" };
  };
}

/** What else the rail counts: questions of runs and tasks. */
function questionsOf(app: App, state: State): WaitingQuestion[] {
  return app.waiting.value
    .filter((row) => row.kind === "run" || row.kind === "task")
    .map((row): WaitingQuestion => {
      const text = (name: string) => String(row[name] ?? "");
      const isRun = row.kind === "run";
      const title = isRun ? (originOf(state)(text("run_id"))?.title ?? "") : text("task");
      return {
        id: `${row.kind}-${row.id}`,
        title: text("question"),
        detail: title,
        icon: "message-circle-question-mark",
        href: isRun ? href(`runs/${text("run_id")}`, { part: text("node_id") }) : href("chat"),
      };
    });
}

function List({ app, state, route }: ViewProps<State>): JSX.Element {
  const selected = route.params["id"] ?? "";
  const proposals = state.list.waiting.data.value?.length;
  const waiting = proposals === undefined ? undefined : proposals + questionsOf(app, state).length;
  const props = { list: state.list, selected };
  return (
    <div class="k-review-list">
      <Row icon="activity" title="Journal" detail="Every change, and who made it" href={href("journal")} isSelected={isJournal(route)} />
      <Row icon="list-tree" title="History" detail="All work, from question to undo" href={href("history")} isSelected={isHistory(route)} />
      <Tabs
        tabs={[
          { id: "waiting", title: "Waiting", ...(waiting === undefined ? {} : { count: waiting }) },
          { id: "decided", title: "Decided" },
        ]}
        current={state.shown.value}
        label="Proposals"
        onChange={(shown) => (state.shown.value = shown)}
      >
        {state.shown.value === "waiting" ? (
          <>
            <WaitingQuestions questions={questionsOf(app, state)} />
            <WaitingProposals {...props} origin={originOf(state)} />
          </>
        ) : (
          <DecidedProposals {...props} />
        )}
      </Tabs>
      <Restricted list={state.list} origin={originOf(state)} />
    </div>
  );
}

function isJournal(route: ViewProps["route"]): boolean {
  return route.href.split(/[?#]/)[0] === href("journal");
}

function isHistory(route: ViewProps["route"]): boolean {
  return route.href.split(/[?#]/)[0] === href("history");
}

function Main(props: ViewProps<State>): JSX.Element {
  if (isJournal(props.route)) return <JournalMain {...props} />;
  if (isHistory(props.route)) return <HistoryMain {...props} />;
  return props.route.params["id"] ? <ProposalMain {...props} id={props.route.params["id"]} /> : <Choose {...props} />;
}

function JournalMain({ app, state }: ViewProps<State>): JSX.Element {
  const isReached = app.session.isReached.value;
  useEffect(() => void (isReached && state.journal.loaded.load()), [isReached]);
  return (
    <>
      <MainHead app={app} title="Journal" back={href("review")} />
      <div class="k-main-scroll">
        <div class="k-content k-content-wide">
          <JournalView journal={state.journal} origin={originOf(state)} />
        </div>
      </div>
    </>
  );
}

function HistoryMain({ app, state }: ViewProps<State>): JSX.Element {
  const { history, journal } = state;
  const isReached = app.session.isReached.value;
  useEffect(() => {
    if (!isReached) return;
    void history.loaded.load();
    void journal.loaded.load(); // it knows by which undo a change was taken back
  }, [isReached]);
  return (
    <>
      <MainHead app={app} title="History" back={href("review")} />
      <div class="k-main-scroll">
        <div class="k-content k-content-wide">
          <HistoryView history={history} journal={journal} origin={(work) => state.origins.value.get(work)} />
        </div>
      </div>
    </>
  );
}

function ProposalMain({ app, state, id }: ViewProps<State> & { id: string }): JSX.Element {
  const { list, review } = state;
  const isReached = app.session.isReached.value;
  // Before it is painted: no key may reach what was decided before under the address of what comes.
  useLayoutEffect(() => {
    if (review.loaded.data.value?.id !== id || review.openCount.value === 0) void review.open(id);
    else review.focus();
  }, [id]);
  useEffect(() => {
    if (!isReached) return;
    if (review.loaded.data.value) void review.refresh(); // what failed for want of the server is over
    else if (!review.loaded.isLoading.value) void review.open(id);
  }, [isReached]);
  const title = titleOf({ app, state, route: app.router.route.value });
  const next = list.beside(id, 1) ?? list.order.value.find((other) => other !== id);
  return (
    <>
      <MainHead app={app} title={title || "Proposal"} back={href("review")}>
        <ProposalActs review={review} />
      </MainHead>
      <div class="k-main-scroll">
        <div class={review.way.value === "side" ? "k-content k-content-wide" : "k-content"}>
          <ProposalView
            review={review}
            restrictions={list.restricted.data.value ?? []}
            onTrust={(client, run) => void trust(app, list, client, run)}
            origin={originOf(state)}
            next={
              next ? (
                <Button size="small" kind="primary" href={href(`review/${next}`)}>
                  Next proposal
                </Button>
              ) : undefined
            }
          />
        </div>
      </div>
    </>
  );
}

/** Where nothing is chosen: the first that waits, where there is room beside the list. */
function Choose({ app, state }: ViewProps<State>): JSX.Element {
  const first = state.list.order.value[0];
  const isLoading = !state.list.waiting.data.value && !state.list.waiting.failure.value;
  useEffect(() => {
    if (first && !app.isNarrow.value) app.go(href(`review/${first}`), { replace: true });
  }, [first]);
  return (
    <>
      <MainHead app={app} title="Review" />
      {isLoading || (first && !app.isNarrow.value) ? (
        <div class="k-content">
          <SkeletonText />
        </div>
      ) : (
        <Empty
          icon="git-pull-request"
          title="Nothing to review"
          acts={
            <>
              <Button icon="message-square" href={href("chat/new")}>
                Ask for a change
              </Button>
              <Button href={href("journal")}>Open the journal</Button>
            </>
          }
        >
          Changes that agents propose appear here before they reach your notes. Past changes are in the journal.
        </Empty>
      )}
    </>
  );
}

function titleOf({ state, route }: ViewProps<State>): string {
  if (isJournal(route)) return "Journal";
  if (isHistory(route)) return "History";
  const shown = state.review.loaded.data.value;
  if (!shown || shown.id !== route.params["id"]) return "";
  const [first, ...others] = shown.files;
  return `${noteName(first?.path ?? "")}${others.length ? ` and ${others.length} more` : ""}`;
}

export default defineView<State>({
  create,
  List,
  Main,
  titleOf,
  isItem: (route) => route.params["id"] !== undefined || isJournal(route) || isHistory(route),
  palette: (app, state) => [
    {
      id: "waiting",
      title: "Waiting for review",
      limit: 5,
      find: async (query) => {
        if (!state.list.waiting.data.value) await state.list.load();
        return (state.list.waiting.data.value ?? [])
          .filter((row) => `${row.path} ${row.reason ?? ""}`.toLowerCase().includes(query.trim().toLowerCase()))
          .map((row) => ({ id: row.id, title: noteName(row.path), icon: "git-pull-request" as const, detail: row.client, run: () => app.go(href(`review/${row.id}`)) }));
      },
    },
    { id: "journal", title: "Journal", limit: 1, find: (query) => ("journal".includes(query.trim().toLowerCase()) ? [{ id: "journal", title: "Journal", icon: "activity" as const, run: () => app.go(href("journal")) }] : []) },
    { id: "history", title: "History", limit: 1, find: (query) => ("history".includes(query.trim().toLowerCase()) ? [{ id: "history", title: "History", icon: "list-tree" as const, run: () => app.go(href("history")) }] : []) },
  ],
});

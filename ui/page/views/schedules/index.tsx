/** Schedules: all of them at the left, one in the middle, or the form of a new or changed one. */

import { effect } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { ago, Button, Empty, FailureNotice, Icon, IconButton, Notice, Row, Rows, SkeletonRows, SkeletonText, type Shortcut } from "../../../parts";
import { href, type App } from "../../app";
import { MainHead } from "../../shell";
import { defineView, type ViewProps } from "../../view";
import { ScheduleActs, ScheduleDetail } from "./detail";
import { ScheduleForm } from "./form";
import { isRunning, nextOf, outcome, STATES, whenOf, Schedules, type Schedule } from "./schedules";

const NEW = href("schedules", { new: "1" });

function create(app: App): Schedules {
  const schedules = new Schedules(app);
  app.onNews((event) => schedules.hear(event));
  effect(() => {
    if (app.session.isReached.value) void schedules.loaded.load(); // again, when a lost server is back
  });
  const isHere = () => app.router.route.value.view === "schedules";
  app.shortcuts.register(shortcuts(app, schedules).map((shortcut) => ({ ...shortcut, isHere })));
  return schedules;
}

function shortcuts(app: App, schedules: Schedules): Shortcut[] {
  const route = () => app.router.route.value;
  const isHere = () => route().view === "schedules" && !app.floaters.isOpen;
  const shown = () => schedules.find(route().params["name"] ?? "");
  const withOne = { group: "Schedules", when: () => isHere() && shown() !== undefined && route().query["edit"] === undefined };
  const go = (by: 1 | -1) => {
    const name = schedules.beside(route().params["name"] ?? "", by);
    if (name) app.go(href(`schedules/${name}`));
  };
  const act = (work: (schedule: Schedule) => void) => () => {
    const schedule = shown();
    if (schedule) work(schedule);
  };
  return [
    { keys: "j", title: "Next schedule", group: "Schedules", when: isHere, run: () => go(1) },
    { keys: "k", title: "Previous schedule", group: "Schedules", when: isHere, run: () => go(-1) },
    { keys: "c", title: "New schedule", group: "Schedules", when: isHere, run: () => app.go(NEW) },
    { keys: "e", title: "Edit", ...withOne, run: act(({ name }) => app.go(href(`schedules/${name}`, { edit: "1" }))) },
    { keys: "p", title: "Pause or resume", ...withOne, run: act((schedule) => void schedules.togglePause(schedule)) },
    { keys: "r", title: "Run now", ...withOne, run: act((schedule) => void (isRunning(schedule) || schedules.run(schedule))) },
  ];
}

function List({ state, route }: ViewProps<Schedules>): JSX.Element {
  const failure = state.loaded.failure.value;
  if (!state.loaded.data.value) return failure && !failure.isOffline ? <FailureNotice failure={failure} /> : <SkeletonRows />;
  if (!state.rows.value.length) {
    return (
      <Empty icon="clock" title="No schedules yet" acts={<NewButton />}>
        A schedule runs an agent every day, every week, or when notes change.
      </Empty>
    );
  }
  return <Rows label="Schedules" items={state.rows.value} keyOf={(row) => row.name} row={(row) => <ScheduleRow state={state} row={row} isSelected={row.name === route.params["name"]} />} />;
}

function NewButton(): JSX.Element {
  return (
    <Button kind="primary" icon="plus" href={NEW}>
      New schedule
    </Button>
  );
}

function ScheduleRow({ state, row, isSelected }: { state: Schedules; row: Schedule; isSelected: boolean }): JSX.Element {
  const { icon, tone, name } = row.last ? STATES[row.last.state] : { icon: "clock" as const, tone: "", name: "Not run yet" };
  const isHeld = !row.paused && state.waiting(row).length >= row.max_open;
  const meta = row.paused ? "Paused" : isHeld ? "On hold" : row.next ? ago(row.next, state.now()) : undefined;
  return (
    <Row
      lines={2}
      lead={
        <span class="k-state" data-state={row.paused ? "" : tone} title={name}>
          <Icon name={row.paused ? "pause" : icon} />
        </span>
      }
      title={row.name}
      detail={row.last && isRunning(row) ? outcome(row.last) : whenOf(row)}
      tip={`${row.name}: ${whenOf(row)}; next run: ${nextOf(row)}${row.last ? `; last run: ${outcome(row.last)}` : ""}`}
      {...(meta ? { meta } : {})}
      href={href(`schedules/${row.name}`)}
      isSelected={isSelected}
    />
  );
}

function Main(props: ViewProps<Schedules>): JSX.Element {
  const { app, state, route } = props;
  const name = route.params["name"];
  if (name !== undefined) return <One {...props} name={name} />;
  if (route.query["new"] === undefined) return <Choose app={app} state={state} />;
  return (
    <Framed app={app} title="New schedule">
      <p class="k-quiet">The agent runs by itself while the server runs, and ends with a report.</p>
      <ScheduleForm key="new" app={app} schedules={state} onDone={(made) => app.go(href(`schedules/${made}`), { replace: true })} />
    </Framed>
  );
}

interface FramedProps {
  app: App;
  title: string;
  back?: string;
  acts?: JSX.Element;
  children: JSX.Element | JSX.Element[];
}

function Framed({ app, title, back = href("schedules"), acts, children }: FramedProps): JSX.Element {
  return (
    <>
      <MainHead app={app} title={title} back={back}>
        {acts}
      </MainHead>
      <div class="k-main-scroll">
        <div class="k-content k-schedule-page">{children}</div>
      </div>
    </>
  );
}

function One({ app, state, route, name }: ViewProps<Schedules> & { name: string }): JSX.Element {
  const schedule = state.find(name);
  const failure = state.loaded.failure.value;
  if (!schedule) {
    return (
      <Framed app={app} title={name}>
        {state.loaded.data.value ? (
          <Empty icon="clock" title={`There is no schedule “${name}”`} acts={<Button href={href("schedules")}>All schedules</Button>}>
            It may have been deleted.
          </Empty>
        ) : failure && !failure.isOffline ? (
          <Notice tone="removed">{`${failure.message}. ${failure.hint}`}</Notice>
        ) : (
          <SkeletonText />
        )}
      </Framed>
    );
  }
  if (route.query["edit"] !== undefined) {
    return (
      <Framed app={app} title={`Edit ${name}`} back={href(`schedules/${name}`)}>
        <ScheduleForm key={name} app={app} schedules={state} schedule={schedule} onDone={() => app.go(href(`schedules/${name}`), { replace: true })} />
      </Framed>
    );
  }
  return (
    <Framed app={app} title={name} acts={<ScheduleActs app={app} schedules={state} schedule={schedule} />}>
      <ScheduleDetail app={app} schedules={state} schedule={schedule} />
    </Framed>
  );
}

/** Where nothing is chosen: the first, where there is room beside the list. */
function Choose({ app, state }: { app: App; state: Schedules }): JSX.Element {
  const first = state.rows.value[0]?.name;
  const isLoading = !state.loaded.data.value && !state.loaded.failure.value;
  const isNarrow = app.isNarrow.value;
  useEffect(() => {
    if (first && !isNarrow) app.go(href(`schedules/${first}`), { replace: true });
  }, [first, isNarrow]);
  return (
    <>
      <MainHead app={app} title="Schedules" />
      {isLoading || first ? (
        <div class="k-content">
          <SkeletonText />
        </div>
      ) : (
        <Empty icon="clock" title="Let agents work on their own" acts={<NewButton />}>
          For example, the weekly review proposes links for notes that have none. Changes wait for your review unless you allow more.
        </Empty>
      )}
    </>
  );
}

export default defineView<Schedules>({
  create,
  List,
  ListActions: () => <IconButton icon="plus" size="small" label="New schedule" href={NEW} />,
  Main,
  isItem: (route) => route.params["name"] !== undefined || route.query["new"] !== undefined,
  titleOf: ({ route }) => route.params["name"] ?? (route.query["new"] === undefined ? "" : "New schedule"),
  palette: (app, state) => [
    {
      id: "schedules",
      title: "Schedules",
      limit: 5,
      find: async (query) => {
        if (!state.loaded.data.value) await state.loaded.load();
        const wanted = query.trim().toLowerCase();
        const fresh = "new schedule".includes(wanted) ? [{ id: "new-schedule", title: "New schedule", icon: "plus" as const, run: () => app.go(NEW) }] : [];
        const found = state.rows.value.filter((row) => wanted && `${row.name} ${row.agent}`.includes(wanted));
        return [...fresh, ...found.map((row) => ({ id: `schedule ${row.name}`, title: row.name, icon: "clock" as const, detail: whenOf(row), run: () => app.go(href(`schedules/${row.name}`)) }))];
      },
    },
  ],
});

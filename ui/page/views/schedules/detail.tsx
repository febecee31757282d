/** One schedule: when it runs, what became of its last run, and what of it waits for review. */

import type { JSX } from "preact";
import { ago, Button, count, dateTime, Icon, Notice, noteName, Row, Rows, sentence, tokens } from "../../../parts";
import { href, type App } from "../../app";
import { isRunning, nextOf, outcome, STATES, whenOf, type Schedule, type ScheduledRun, type Schedules } from "./schedules";

interface DetailProps {
  app: App;
  schedules: Schedules;
  schedule: Schedule;
}

/** What is done with it, for the head of the view. */
export function ScheduleActs({ app, schedules, schedule }: DetailProps): JSX.Element {
  const isBusy = schedules.isBusy.value;
  const isOn = isRunning(schedule);
  const menu = [
    { title: "Edit", icon: "pencil" as const, keys: "e", run: () => app.go(href(`schedules/${schedule.name}`, { edit: "1" })) },
    { title: schedule.paused ? "Resume" : "Pause", icon: schedule.paused ? ("play" as const) : ("pause" as const), keys: "p", run: () => void schedules.togglePause(schedule) },
    "line" as const,
    { title: "Delete", icon: "trash" as const, tone: "danger" as const, isDisabled: isOn, run: () => void remove(app, schedules, schedule) },
  ];
  return (
    <>
      {isOn ? (
        <Button size="small" icon="circle-stop" isDisabled={isBusy || (schedule.last?.cancelled ?? false)} onClick={() => void schedules.stop(schedule)}>
          {schedule.last?.cancelled ? "Stopping" : "Stop"}
        </Button>
      ) : (
        <Button size="small" kind="primary" icon="play" isDisabled={isBusy} onClick={() => void schedules.run(schedule)}>
          Run now
        </Button>
      )}
      <Button size="small" kind="quiet" icon="ellipsis" label={`Actions for ${schedule.name}`} title="More actions" onClick={(event) => app.floaters.openMenu(event, `Actions for ${schedule.name}`, menu)} />
    </>
  );
}

export async function remove(app: App, schedules: Schedules, schedule: Schedule): Promise<void> {
  if (await schedules.remove(schedule)) app.go(href("schedules"), { replace: true });
}

export function ScheduleDetail(props: DetailProps): JSX.Element {
  const { app, schedules, schedule } = props;
  const waiting = schedules.waiting(schedule);
  return (
    <div class="k-schedule">
      <Standing {...props} waiting={waiting.length} />
      <dl class="k-schedule-facts">
        <dt>When</dt>
        <dd>{whenOf(schedule)}</dd>
        <dt>Next run</dt>
        <dd>
          {nextOf(schedule)}
          {schedule.next && <span class="k-quiet"> · {ago(schedule.next, schedules.now())}</span>}
          {schedules.isElsewhere && schedule.next && <span class="k-quiet"> · by the server's clock</span>}
        </dd>
        <dt>Agent</dt>
        <dd>{schedule.agent}</dd>
        <dt>Changes</dt>
        <dd>{schedule.apply ? "Applied where permissions allow it, otherwise proposed" : "Proposed"}</dd>
        <dt>Limits</dt>
        <dd>{`${tokens(schedule.tokens)} tokens and ${count(schedule.minutes, "minute")} a run; not run while ${count(schedule.max_open, "proposal waits", "proposals wait")}`}</dd>
        <dt>Reports</dt>
        <dd>{schedule.results || "None"}</dd>
        <dt>Works for</dt>
        <dd>{schedule.client}</dd>
      </dl>
      <section aria-label="Last run">
        <h2 class="k-schedule-head">Last run</h2>
        {schedule.last ? <LastRun app={app} schedules={schedules} run={schedule.last} /> : <p class="k-quiet">It hasn't run yet.</p>}
      </section>
      {waiting.length > 0 && (
        <section aria-label="Waiting for review">
          <h2 class="k-schedule-head">{`Waiting for review (${waiting.length.toLocaleString("en")})`}</h2>
          <Rows items={waiting} keyOf={(row) => row.id} row={(row) => <Row icon="git-pull-request" title={noteName(row.path)} tip={row.path} href={href(`review/${row.id}`)} />} />
        </section>
      )}
    </div>
  );
}

/** Why it doesn't run, where it doesn't. */
function Standing({ schedules, schedule, waiting }: DetailProps & { waiting: number }): JSX.Element | null {
  if (schedule.paused) {
    return (
      <Notice tone="warning">
        <div class="k-schedule-standing">
          <span>Paused. Runs it misses aren't made up for.</span>
          <Button size="small" icon="play" isDisabled={schedules.isBusy.value} onClick={() => void schedules.togglePause(schedule)}>
            Resume
          </Button>
        </div>
      </Notice>
    );
  }
  if (waiting < schedule.max_open) return null;
  return (
    <Notice tone="warning">
      <div class="k-schedule-standing">
        <span>{`On hold: ${count(waiting, "proposal")} of its runs wait for review, and it doesn't run with ${schedule.max_open} or more.`}</span>
        <Button size="small" icon="git-pull-request" href={href("review")}>
          Review
        </Button>
      </div>
    </Notice>
  );
}

function LastRun({ app, schedules, run }: { app: App; schedules: Schedules; run: ScheduledRun }): JSX.Element {
  const { icon, tone } = STATES[run.state];
  return (
    <div class="k-schedule-last">
      <p class="k-schedule-outcome">
        <span class="k-state" data-state={tone}>
          <Icon name={icon} />
        </span>
        <strong>{outcome(run)}</strong>
        <span class="k-quiet" title={dateTime(run.at)}>
          {ago(run.at, schedules.now())}
          {run.tokens > 0 && ` · ${tokens(run.tokens)} tokens`}
        </span>
      </p>
      {run.reason && <p class="k-schedule-reason">{sentence(run.reason)}</p>}
      {(run.session_id || run.note) && (
        <div class="k-schedule-acts">
          {run.session_id && (
            <Button size="small" icon="message-square" href={href(`chat/${run.session_id}`)}>
              {run.state === "running" ? "Follow the run" : "Open the run"}
            </Button>
          )}
          {run.note && (
            <Button size="small" icon="file-text" onClick={() => openReport(app, run.note)}>
              Open the report
            </Button>
          )}
        </div>
      )}
    </div>
  );
}

/** The report's note; or the proposal to write it, while that waits. */
function openReport(app: App, path: string): void {
  const proposal = app.waiting.value.find((row) => row.kind === "proposal" && row["path"] === path);
  if (proposal) app.go(href(`review/${proposal.id}`));
  else app.open({ kind: "note", path });
}

/** The form of a schedule, new or changed: agent, time, what it may do, and its limits. */

import { useSignal, type Signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { failureOf, textOf, type Failure } from "../../../client";
import { Button, Field, Notice, sentence, SkeletonText } from "../../../parts";
import { href, vaultOf, type App } from "../../app";
import { dayName, type Options, type Schedule, type Schedules } from "./schedules";

const DAYS: readonly Schedule["weekday"][] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
const CADENCES: readonly { id: Schedule["cadence"]; title: string }[] = [
  { id: "weekly", title: "Every week" },
  { id: "daily", title: "Every day" },
  { id: "changed", title: "When notes in a folder change" },
];
const NUMBERS = [
  { name: "tokens", title: "Tokens per run", least: 1_000, most: 100_000_000 },
  { name: "minutes", title: "Minutes per run", least: 1, most: 1_440 },
  { name: "max_open", title: "Waiting proposals", least: 1, most: 1_000 },
] as const;

interface FormProps {
  app: App;
  schedules: Schedules;
  /** What is changed; a new one where it is left out. */
  schedule?: Schedule | undefined;
  onDone: (name: string) => void;
}

export function ScheduleForm(props: FormProps): JSX.Element {
  const { options } = props.schedules;
  const failure = options.failure.value;
  useEffect(() => void options.load(), []);
  if (options.data.value) return <Fields {...props} options={options.data.value} />;
  if (!failure) return <SkeletonText lines={5} />;
  return <Problem problem={failure} />;
}

function Problem({ problem }: { problem: Failure }): JSX.Element {
  return (
    <Notice tone="removed">
      <strong>{problem.message}</strong>
      {problem.hint && <div class="k-quiet">{problem.hint}</div>}
    </Notice>
  );
}

function Fields({ app, schedules, schedule, onDone, options }: FormProps & { options: Options }): JSX.Element {
  const form = useRef<HTMLFormElement>(null);
  const problem = useSignal<Failure | null>(null);
  const isBusy = useSignal(false);
  const cadence = useSignal<Schedule["cadence"]>(schedule?.cadence ?? "weekly");
  const agent = useSignal(schedule?.agent ?? options.agents[0]?.name ?? "");
  useEffect(() => form.current?.querySelector("select")?.focus(), []);
  const submit = async () => {
    if (!form.current || isBusy.value) return;
    const body = read(new FormData(form.current), cadence.value);
    isBusy.value = true;
    problem.value = null;
    try {
      if (schedule) await schedules.change(schedule.name, body);
      const name = schedule ? schedule.name : await schedules.add({ ...body, agent: agent.value, name: textOf(new FormData(form.current).get("name")).trim() || null });
      onDone(name);
    } catch (error) {
      problem.value = failureOf(error);
    }
    isBusy.value = false;
  };
  return (
    <form
      ref={form}
      class="k-schedule-form"
      aria-label={schedule ? `Edit ${schedule.name}` : "New schedule"}
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <AgentField options={options} agent={agent} />
      <WhenFields app={app} schedules={schedules} schedule={schedule} options={options} cadence={cadence} />
      <RightFields schedule={schedule} />
      <LimitFields schedule={schedule} options={options} agent={agent.value} />
      {problem.value && <Problem problem={problem.value} />}
      <div class="k-schedule-acts">
        <Button kind="primary" type="submit" isDisabled={isBusy.value || !agent.value}>
          {schedule ? "Save" : "Add schedule"}
        </Button>
        <Button href={href(schedule ? `schedules/${schedule.name}` : "schedules")}>Cancel</Button>
      </div>
    </form>
  );
}

/** Read the fields, but for the agent and the name. */
function read(data: FormData, cadence: Schedule["cadence"]): { [name: string]: unknown } & { cadence: Schedule["cadence"] } {
  const text = (name: string) => textOf(data.get(name)).trim();
  const numbers = Object.fromEntries(NUMBERS.map(({ name }) => [name, Number(text(name))]));
  const times = cadence === "changed" ? { folder: text("folder") } : { at: text("at"), ...(cadence === "weekly" ? { weekday: text("weekday") as Schedule["weekday"] } : {}) };
  return { agent: text("agent"), cadence, ...times, ...numbers, results: text("results"), apply: text("apply") === "yes", ...(data.has("client") ? { client: text("client") } : {}) };
}

function AgentField({ options, agent }: { options: Options; agent: Signal<string> }): JSX.Element {
  const chosen = options.agents.find((one) => one.name === agent.value);
  const names = chosen || !agent.value ? options.agents.map((one) => one.name) : [agent.value, ...options.agents.map((one) => one.name)];
  return (
    <>
      <Field label="Agent" hint={chosen ? sentence(chosen.summary) : "Its file isn't there any more, or has a mistake."}>
        {(attributes) => (
          <select {...attributes} class="k-input" name="agent" value={agent.value} onChange={(event) => (agent.value = event.currentTarget.value)}>
            {names.map((name) => (
              <option key={name} value={name}>
                {options.agents.find((one) => one.name === name)?.title ?? name}
              </option>
            ))}
          </select>
        )}
      </Field>
      {options.problems.map((one) => (
        <Notice key={one.name} tone="warning">
          {one.error}
          <div class="k-quiet">{one.hint}</div>
        </Notice>
      ))}
    </>
  );
}

interface WhenProps {
  app: App;
  schedules: Schedules;
  schedule: Schedule | undefined;
  options: Options;
  cadence: Signal<Schedule["cadence"]>;
}

function WhenFields({ app, schedules, schedule, options, cadence }: WhenProps): JSX.Element {
  const { store } = vaultOf(app);
  const id = useId();
  const isByFolder = cadence.value === "changed";
  useEffect(() => void (isByFolder && store.load()), [isByFolder]);
  const clock = schedules.isElsewhere ? `The server's clock shows ${new Date(schedules.now()).toTimeString().slice(0, 5)} now` : "";
  return (
    <div class="k-schedule-row">
      <Field label="When">
        {(attributes) => (
          <select {...attributes} class="k-input" name="cadence" value={cadence.value} onChange={(event) => (cadence.value = event.currentTarget.value as Schedule["cadence"])}>
            {CADENCES.map(({ id: value, title }) => (
              <option key={value} value={value}>
                {title}
              </option>
            ))}
          </select>
        )}
      </Field>
      {cadence.value === "weekly" && (
        <Field label="Day">
          {(attributes) => (
            <select {...attributes} class="k-input" name="weekday">
              {DAYS.map((day) => (
                <option key={day} value={day} selected={day === (schedule?.weekday ?? options.defaults.weekday)}>
                  {dayName(day)}
                </option>
              ))}
            </select>
          )}
        </Field>
      )}
      {isByFolder ? (
        <Field label="Folder" hint="Five minutes after the last change; empty for the whole vault">
          {(attributes) => (
            <>
              <input {...attributes} class="k-input" name="folder" list={`${id}-folders`} maxLength={1_000} defaultValue={schedule?.folder ?? ""} />
              <datalist id={`${id}-folders`}>
                {store.folders.value.map(({ path }) => (
                  <option key={path} value={path} />
                ))}
              </datalist>
            </>
          )}
        </Field>
      ) : (
        <Field label="Time" hint={clock}>
          {(attributes) => <input {...attributes} class="k-input" type="time" name="at" required defaultValue={schedule?.at ?? options.defaults.at} />}
        </Field>
      )}
    </div>
  );
}

function RightFields({ schedule }: { schedule: Schedule | undefined }): JSX.Element {
  const mayApply = schedule?.apply ?? false;
  return (
    <fieldset class="k-schedule-right">
      <legend>Changes to notes</legend>
      <label>
        <input type="radio" name="apply" value="no" defaultChecked={!mayApply} />
        <span>
          Propose
          <span class="k-small k-quiet">Each change waits for your review.</span>
        </span>
      </label>
      <label>
        <input type="radio" name="apply" value="yes" defaultChecked={mayApply} />
        <span>
          Apply
          <span class="k-small k-quiet">Changes that the permissions of the agent and its client allow are made at once; others are proposed.</span>
        </span>
      </label>
    </fieldset>
  );
}

function LimitFields({ schedule, options, agent }: { schedule: Schedule | undefined; options: Options; agent: string }): JSX.Element {
  const given = { ...options.defaults, ...schedule };
  const clients = [...new Set([...options.clients, ...(schedule ? [schedule.client] : [])])];
  const hints = { tokens: "Limits in the settings apply as well", minutes: "What it has by then is kept", max_open: "With this many, it doesn't run" };
  return (
    <details class="k-schedule-more">
      <summary>Limits and reports</summary>
      <div class="k-schedule-row">
        {NUMBERS.map(({ name, title, least, most }) => (
          <Field key={name} label={title} hint={hints[name]}>
            {(attributes) => <input {...attributes} class="k-input" type="number" inputMode="numeric" name={name} required min={least} max={most} step="1" defaultValue={String(given[name])} />}
          </Field>
        ))}
      </div>
      <div class="k-schedule-row">
        <Field label="Folder for reports" hint="Empty for none">
          {(attributes) => <input {...attributes} class="k-input" name="results" maxLength={1_000} defaultValue={given.results} />}
        </Field>
        {!schedule && (
          <Field label="Name" hint="Small letters, digits and hyphens">
            {(attributes) => <input {...attributes} class="k-input" name="name" maxLength={40} pattern="[a-z0-9][a-z0-9\-]*" placeholder={agent} />}
          </Field>
        )}
        {clients.length > 1 && (
          <Field label="Works for client" hint="Its permissions apply as well as the agent's">
            {(attributes) => (
              <select {...attributes} class="k-input" name="client">
                {clients.map((name) => (
                  <option key={name} value={name} selected={name === given.client}>
                    {name}
                  </option>
                ))}
              </select>
            )}
          </Field>
        )}
      </div>
    </details>
  );
}

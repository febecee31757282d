/** Two runs beside each other: how they were done, what each part found and cost, and both answers. */

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { failureOf, type Failure } from "../../client";
import { Button, Chip, SearchBox } from "../basic";
import { DialogFrame } from "../floating";
import { ago, cost, date, duration, languageOfDates, tokens } from "../format";
import { useHost, type Host } from "../host";
import { Empty, FailureNotice, Row, SkeletonText } from "../rows";
import { Answer } from "./answer";
import { comparedParts, nodeState, runState, timelineOf, workMs, type Run, type RunNode } from "./model";
import type { RunList } from "./runs";

interface CompareProps {
  one: string;
  other: string;
}

/** Compare two runs by their ids. */
export function CompareRuns({ one, other }: CompareProps): JSX.Element {
  const { client } = useHost();
  const runs = useSignal<readonly [Run, Run] | null>(null);
  const failure = useSignal<Failure | null>(null);
  useEffect(() => {
    const abort = new AbortController();
    const get = (id: string) => client.get("/runs/{run_id}", { path: { run_id: id }, signal: abort.signal });
    runs.value = null;
    Promise.all([get(one), get(other)]).then(
      (found) => (runs.value = found),
      (error: unknown) => {
        if (!abort.signal.aborted) failure.value = failureOf(error);
      },
    );
    return () => abort.abort();
  }, [one, other]);
  if (failure.value) return <FailureNotice failure={failure.value} />;
  return runs.value ? <Compared one={runs.value[0]} other={runs.value[1]} /> : <SkeletonText lines={6} />;
}

function Compared({ one, other }: { one: Run; other: Run }): JSX.Element {
  const now = Date.now();
  const average = (run: Run) => {
    const scores = run.nodes.map((node) => node.score).filter((score) => score !== null);
    return scores.length ? (scores.reduce((sum, score) => sum + score, 0) / scores.length).toFixed(2) : "–";
  };
  const rows: [string, (run: Run) => JSX.Element | string][] = [
    ["Task", (run) => run.task],
    ["State", (run) => <Chip tone={runState(run.state).tone}>{runState(run.state).name}</Chip>],
    ["Started", (run) => `${date(run.created)}, ${new Date(run.created).toLocaleTimeString(languageOfDates(), { timeStyle: "short" })}`],
    ["Strategy", (run) => run.strategy],
    ["Notes found by", (run) => (run.code_mode ? "Scripts (Code Mode)" : "Search")],
    ["Model", (run) => run.model || "–"],
    ["Parts", (run) => String(run.node_count)],
    ["Time", (run) => duration(timelineOf(run.nodes, now).ms)],
    ["Tokens", (run) => tokens(run.usage.total_tokens)],
    ["Cost", (run) => cost(run.usage.cost_usd)],
    ["Average score", average],
    ["Citations", (run) => String(run.citations.length)],
  ];
  return (
    <div class="k-compare">
      <div class="k-compare-scroll" tabIndex={0} role="group" aria-label="Facts about both runs">
        <table>
          <thead>
            <tr>
              <th scope="col">
                <span class="k-only-read">What</span>
              </th>
              <th scope="col">This run</th>
              <th scope="col">Other run</th>
            </tr>
          </thead>
          <tbody>
            {rows.map(([name, of]) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td>{of(one)}</td>
                <td>{of(other)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <section aria-label="Parts">
        <h2>Parts</h2>
        <div class="k-compare-scroll" tabIndex={0} role="group" aria-label="Parts of both runs">
          <table>
            <thead>
              <tr>
                <th scope="col">Part</th>
                <th scope="col">This run</th>
                <th scope="col">Other run</th>
              </tr>
            </thead>
            <tbody>
              {comparedParts(one, other).map((row, index) => (
                <tr key={index}>
                  <th scope="row">{row.title}</th>
                  <td>
                    <PartFacts node={row.one} now={now} />
                  </td>
                  <td>
                    <PartFacts node={row.other} now={now} better={row.one?.score !== null && row.one !== undefined && (row.other?.score ?? 0) > (row.one.score ?? 0)} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </section>
      <section aria-label="Answers">
        <h2>Answers</h2>
        <div class="k-compare-answers">
          {[one, other].map((run, index) => (
            <section key={index} aria-label={index ? "Other run" : "This run"}>
              <h3>{index ? "Other run" : "This run"}</h3>
              {run.answer ? <Answer text={run.answer} citations={run.citations} removed={run.removed} prefix={`compare-${index}-`} /> : <p class="k-quiet">No answer.</p>}
            </section>
          ))}
        </div>
      </section>
    </div>
  );
}

function PartFacts({ node, now, better = false }: { node: RunNode | undefined; now: number; better?: boolean }): JSX.Element {
  if (!node) return <span class="k-quiet">–</span>;
  const facts = [node.score === null ? "" : `score ${node.score.toFixed(2)}`, node.tier ? `tier ${node.tier}` : "", node.tokens ? `${tokens(node.tokens)} tokens` : "", workMs(node, now) >= 1 ? duration(workMs(node, now)) : ""];
  return (
    <span data-better={better ? "" : undefined}>
      {node.state !== "done" && <Chip tone={nodeState(node.state).tone}>{nodeState(node.state).name}</Chip>} {facts.filter(Boolean).join(" · ")}
    </span>
  );
}

/** Ask with which run one is compared. */
export async function chooseRun(host: Host, list: RunList, but: string): Promise<string> {
  let chosen = "";
  if (!list.loaded.data.value) await list.load();
  await host.floaters.dialog((close) => (
    <Chooser
      list={list}
      but={but}
      onClose={close}
      onChoose={(id) => {
        chosen = id;
        close();
      }}
    />
  ));
  return chosen;
}

function Chooser({ list, but, onClose, onChoose }: { list: RunList; but: string; onClose: () => void; onChoose: (id: string) => void }): JSX.Element {
  const text = useSignal("");
  const rows = (list.loaded.data.value?.rows ?? []).filter((run) => run.id !== but && run.task.toLowerCase().includes(text.value.trim().toLowerCase()));
  return (
    <DialogFrame title="Compare with" onClose={onClose} acts={<Button onClick={onClose}>Cancel</Button>}>
      <SearchBox label="Find a run" value={text.value} onInput={(value) => (text.value = value)} />
      {rows.length ? (
        <ul class="k-rows k-chooser" aria-label="Runs">
          {rows.map((run) => (
            <li key={run.id}>
              <Row lines={2} icon="workflow" title={run.task} detail={runState(run.state).name} meta={ago(run.created)} onClick={() => onChoose(run.id)} />
            </li>
          ))}
        </ul>
      ) : (
        <Empty icon="workflow" title="No other run">
          Run the same task twice to compare models, strategies or Code Mode.
        </Empty>
      )}
    </DialogFrame>
  );
}

/** The list of runs: how each stands, its task, and when it was begun. */

import type { JSX } from "preact";
import { Icon, type IconName } from "../basic";
import { ago } from "../format";
import { useHost } from "../host";
import { Empty, FailureNotice, MoreRows, Row, Rows, SkeletonRows } from "../rows";
import { isGoing, runState, type RunRow } from "./model";
import type { RunList } from "./runs";

const ICONS: Readonly<Record<string, IconName>> = {
  pending: "hourglass",
  running: "loader-circle",
  complete: "circle-check",
  partial: "circle-dot",
  failed: "circle-x",
  cancelled: "circle-stop",
  interrupted: "unplug",
};

interface RunsProps {
  list: RunList;
  selected: string;
  begin: JSX.Element;
}

export function Runs({ list, selected, begin }: RunsProps): JSX.Element {
  const failure = list.loaded.failure.value;
  const loaded = list.loaded.data.value;
  if (!loaded) {
    if (list.isMissing) return <Empty icon="workflow" title="No runs here">Runs aren't available on this server.</Empty>;
    if (failure && !failure.isOffline) return <FailureNotice failure={failure} />;
    return <SkeletonRows />;
  }
  if (!loaded.rows.length) {
    return (
      <Empty icon="workflow" title="No runs yet" acts={begin}>
        A run splits a large task into parts, and answers each from your notes.
      </Empty>
    );
  }
  return (
    <>
      <Rows label="Runs" items={loaded.rows} keyOf={(run) => run.id} row={(run) => <RunRowView run={run} isSelected={run.id === selected} />} />
      {loaded.total > loaded.rows.length && <MoreRows key={loaded.rows.length} title="Show older" onMore={() => list.more()} />}
    </>
  );
}

function RunRowView({ run, isSelected }: { run: RunRow; isSelected: boolean }): JSX.Element {
  const host = useHost();
  const state = isGoing(run) && run.state !== "pending" ? "running" : run.state;
  const to = host.href({ kind: "run", id: run.id });
  return (
    <Row
      lines={2}
      lead={
        <span class="k-state" data-state={state}>
          <Icon name={ICONS[state] ?? "workflow"} />
        </span>
      }
      title={run.task}
      tip={run.task}
      detail={
        <>
          {runState(state).name}
          {run.asks > 0 && <strong class="k-run-asks"> · needs your answer</strong>}
        </>
      }
      meta={ago(run.created)}
      href={to}
      onClick={() => to === undefined && host.open({ kind: "run", id: run.id })}
      isSelected={isSelected}
    />
  );
}

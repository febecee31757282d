/** The list of what waits for a person, by run and client; below it who only proposes. */

import type { JSX } from "preact";
import { Button, Icon, IconButton, type IconName } from "../basic";
import { ago, count, dateTime } from "../format";
import { useHost, type Host } from "../host";
import { Empty, FailureNotice, GroupTitle, Notice, Row, Rows, SkeletonRows } from "../rows";
import { askReason } from "./asking";
import { stateTextOf, titleOf, type ProposalGroup, type ProposalRow } from "./model";
import type { Origin } from "./proposal";
import type { BatchResult, ReviewList } from "./waiting";

interface ListProps {
  list: ReviewList;
  selected: string;
  origin: (run: string) => Origin | undefined;
}

/** What waits, by who made it. */
export function WaitingProposals({ list, selected, origin }: ListProps): JSX.Element {
  const host = useHost();
  const failure = list.waiting.failure.value;
  const rows = list.waiting.data.value;
  if (failure && !failure.isOffline && !rows) return <FailureNotice failure={failure} />;
  if (!rows) return <SkeletonRows />;
  if (!rows.length) {
    return (
      <Empty icon="inbox" title="Nothing to review">
        Changes that agents propose appear here before they reach your notes.
      </Empty>
    );
  }
  return (
    <div class="k-waiting" aria-label="Waiting for review" role="region">
      {list.batchLeft.value > 0 && (
        <p class="k-waiting-batch" role="status">
          {count(list.batchLeft.value, "proposal")} remaining
        </p>
      )}
      {list.groups.value.map((group) => {
        const from = group.run ? origin(group.run) : undefined;
        const title = from?.title ?? group.client;
        return (
          <section key={group.key} aria-label={`By ${group.client}${from ? ` in ${from.title}` : ""}`}>
            <div class="k-waiting-head">
              <Icon name={from?.icon ?? clientIcon(group.client)} />
              <h3 class="k-cut" title={from ? `${from.title}, by ${group.client}` : group.client}>
                {title}
              </h3>
              {from && <span class="k-quiet k-small">{group.client}</span>}
              <IconButton
                icon="ellipsis"
                size="small"
                label={`Actions for ${title}`}
                isDisabled={list.batchLeft.value > 0}
                onClick={(event) => openGroup(event, host, list, group, from)}
              />
            </div>
            <Rows items={group.rows} keyOf={(row) => row.id} row={(row) => <ProposalRowView row={row} isSelected={row.id === selected} />} />
          </section>
        );
      })}
    </div>
  );
}

/** What was decided, the newest first. */
export function DecidedProposals({ list, selected }: Omit<ListProps, "origin">): JSX.Element {
  const rows = list.decided.data.value;
  if (!rows) return <SkeletonRows />;
  if (!rows.length) {
    return (
      <Empty icon="circle-check" title="Nothing decided yet">
        Proposals you accept or reject are kept here, with your reason.
      </Empty>
    );
  }
  return (
    <Rows label="Decided changes" items={rows} keyOf={(row) => row.id} row={(row) => <ProposalRowView row={row} isSelected={row.id === selected} />} />
  );
}

function ProposalRowView({ row, isSelected }: { row: ProposalRow; isSelected: boolean }): JSX.Element {
  const host = useHost();
  const to = host.href({ kind: "proposal", id: row.id });
  const detail = [stateTextOf(row), row.tainted ? "read untrusted content" : ""].filter(Boolean).join(" · ");
  return (
    <Row
      lines={2}
      icon={row.status === "stale" ? "triangle-alert" : row.tainted ? "shield-alert" : row.files > 1 ? "copy" : "file-diff"}
      title={titleOf(row)}
      tip={row.path}
      detail={row.reason || detail}
      meta={ago(row.created)}
      href={to}
      onClick={() => to === undefined && host.open({ kind: "proposal", id: row.id })}
      isSelected={isSelected}
    />
  );
}

function clientIcon(client: string): IconName {
  return client === "page" ? "user" : client === "cli" ? "terminal" : "bot";
}

function openGroup(event: MouseEvent, host: Host, list: ReviewList, group: ProposalGroup, from: Origin | undefined): void {
  const first = group.rows[0];
  host.floaters.openMenu(event, "These proposals", [
    { title: "Review one by one", icon: "list-checks", run: () => first && host.open({ kind: "proposal", id: first.id }) },
    "line",
    { title: `Accept ${count(group.rows.length, "proposal")}`, icon: "check", run: () => void acceptGroup(host, list, group, from) },
    { title: `Reject ${count(group.rows.length, "proposal")}`, icon: "x", tone: "danger", run: () => void rejectGroup(host, list, group) },
  ]);
}

async function acceptGroup(host: Host, list: ReviewList, group: ProposalGroup, from: Origin | undefined): Promise<void> {
  const rows = group.rows.filter((row) => row.status === "open");
  const files = rows.reduce((sum, row) => sum + row.files, 0);
  const tainted = rows.filter((row) => row.tainted).length;
  const isSure = await host.floaters.confirm({
    title: `Accept ${count(rows.length, "proposal")}?`,
    text: (
      <>
        <p>
          {count(files, "file")} would be changed as {group.client} proposed{from ? ` in “${from.title}”` : ""}. The journal keeps them, so they can be undone.
        </p>
        {tainted > 0 && <Notice tone="warning">{count(tainted, "proposal")} made after reading untrusted content.</Notice>}
        {rows.length < group.rows.length && <p class="k-quiet">Proposals that no longer apply are skipped.</p>}
      </>
    ),
    act: "Accept all",
  });
  if (isSure) tellBatch(host, await list.decideAll(rows, "accept"), "Accepted");
}

async function rejectGroup(host: Host, list: ReviewList, group: ProposalGroup): Promise<void> {
  const reason = await askReason(host.floaters, `Reject ${count(group.rows.length, "proposal")}?`);
  if (reason !== null) tellBatch(host, await list.decideAll(group.rows, "reject", reason), "Rejected");
}

function tellBatch(host: Host, result: BatchResult, did: string): void {
  if (result.done) host.floaters.toast({ text: `${did} ${count(result.done, "proposal")}` });
  const [first] = result.left;
  if (first) host.floaters.toast({ text: `${count(result.left.length, "proposal")} left: ${first.failure.message}`, hint: first.failure.hint, tone: "removed" });
}

/** A question that waits for a person beside the proposals. */
export interface WaitingQuestion {
  id: string;
  title: string;
  detail: string;
  icon: IconName;
  href: string;
}

/** What agents ask, and wait for. */
export function WaitingQuestions({ questions }: { questions: readonly WaitingQuestion[] }): JSX.Element | null {
  if (!questions.length) return null;
  return (
    <section aria-label="Questions">
      <GroupTitle>Questions</GroupTitle>
      <ul class="k-rows">
        {questions.map((one) => (
          <li key={one.id}>
            <Row lines={2} icon={one.icon} title={one.title} tip={one.title} detail={one.detail} href={one.href} />
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Who only proposes because of what was read, and how they are trusted again. */
export function Restricted({ list, origin }: Pick<ListProps, "list" | "origin">): JSX.Element | null {
  const host = useHost();
  const shown = list.restricted.data.value ?? [];
  if (!shown.length) return null;
  return (
    <section class="k-restricted" aria-label="Limited to proposals">
      <div class="k-waiting-head">
        <GroupTitle>Limited to proposals</GroupTitle>
        {shown.length > 1 && (
          <Button size="small" kind="quiet" onClick={() => void trustAll(host, list)}>
            Trust all
          </Button>
        )}
      </div>
      <ul class="k-plain">
        {shown.map((one) => {
          const name = one.run ? `${one.client} in ${origin(one.run)?.title ?? one.run}` : one.client;
          return (
            <li key={`${one.client} ${one.run}`} class="k-restriction">
              <Icon name="shield-alert" />
              <span class="k-row-text">
                <span class="k-cut" title={name}>
                  {name}
                </span>
                <span class="k-quiet k-small k-cut" title={one.source}>
                  read {one.source}
                  {one.until && ` · until ${dateTime(one.until)}`}
                </span>
              </span>
              <Button size="small" label={`Trust ${name} again`} onClick={() => void trust(host, list, one.client, one.run)}>
                Trust
              </Button>
            </li>
          );
        })}
      </ul>
    </section>
  );
}

/** Trust somebody again, and say so. */
export async function trust(host: Host, list: ReviewList, client: string, run: string): Promise<void> {
  try {
    await list.trust(client, run);
    host.floaters.toast({ text: `${client} can change notes again` });
  } catch (error) {
    host.floaters.toast({ text: error instanceof Error ? error.message : String(error), tone: "removed" });
  }
}

async function trustAll(host: Host, list: ReviewList): Promise<void> {
  const isSure = await host.floaters.confirm({
    title: "Trust all again?",
    text: "Clients, runs and conversations that read untrusted content can change notes again, within their permissions. What they have proposed stays a proposal.",
    act: "Trust all",
  });
  if (!isSure) return;
  try {
    await list.trust();
    host.floaters.toast({ text: "All can change notes again" });
  } catch (error) {
    host.floaters.toast({ text: error instanceof Error ? error.message : String(error), tone: "removed" });
  }
}

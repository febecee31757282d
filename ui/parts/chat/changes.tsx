/** The changes of an answer: loaded by their ids, decided, and brought up to date when they are decided elsewhere. */

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useCallback, useEffect, useRef } from "preact/hooks";
import { failureOf, isAbort } from "../../client";
import { useHost } from "../host";
import { ChangesCard, focusNextPlace, isOpenProposal, type Decision } from "../review/changes";
import type { Proposal } from "../review/model";
import type { Chat } from "./chat";
import { isOver, type Turn } from "./turn";

export function AnswerChanges({ chat, turn, isLast }: { chat: Chat; turn: Turn; isLast: boolean }): JSX.Element | null {
  const host = useHost();
  const box = useRef<HTMLDivElement>(null);
  const proposals = useSignal<readonly Proposal[]>([]);
  const undone = useSignal<readonly string[]>([]);
  const isOpen = useSignal(false);
  const isBusy = useSignal(false);
  const problem = useSignal("");
  const ids = turn.proposals.join(" ");
  const news = isLast || proposals.value.some(isOpenProposal) ? chat.news.value : 0;

  const load = useCallback(
    async (signal?: AbortSignal): Promise<void> => {
      const found = await Promise.all(
        ids
          .split(" ")
          .filter(Boolean)
          .map((id) => host.client.get("/proposals/{proposal_id}", { path: { proposal_id: id }, signal }).catch(ignored)),
      );
      if (!signal?.aborted) proposals.value = found.filter((one) => one !== null);
    },
    [ids],
  );
  useEffect(() => {
    const abort = new AbortController();
    if (ids) {
      load(abort.signal).catch((error: unknown) => {
        if (!abort.signal.aborted) problem.value = failureOf(error).message;
      });
    }
    return () => abort.abort();
  }, [ids, news]);

  const work = async (act: () => Promise<void>): Promise<void> => {
    if (isBusy.value) return;
    isBusy.value = true;
    problem.value = "";
    try {
      await act();
    } catch (error) {
      const { message, hint } = failureOf(error);
      problem.value = [message, hint].filter(Boolean).join(". ");
    }
    await load().catch(() => undefined);
    isBusy.value = false;
  };

  const decide = async (proposal: Proposal, decision: Decision): Promise<void> => {
    if (host.decide) return host.decide(proposal, decision);
    const { act, files, hunks } = decision;
    const path = { proposal_id: proposal.id };
    const parts = { ...(files ? { files: [...files] } : {}), ...(hunks ? { hunks: [...hunks] } : {}) };
    if (act === "accept") await host.client.post("/proposals/{proposal_id}/accept", { path, body: { digest: proposal.digest, ...parts } });
    else await host.client.post("/proposals/{proposal_id}/reject", { path, body: parts });
  };

  const onDecide = (proposal: Proposal, decision: Decision): void => {
    const before = [...(box.current?.querySelectorAll("[data-place]") ?? [])].indexOf(document.activeElement?.closest("[data-place]") as Element);
    void work(() => decide(proposal, decision)).then(() => {
      window.requestAnimationFrame(() => focusNextPlace(box.current, Math.max(0, before)) || chat.focus());
    });
  };

  const onAll = (act: Decision["act"]): void => {
    void work(async () => {
      for (const proposal of proposals.value.filter(isOpenProposal)) await decide(proposal, { act });
    }).then(() => {
      if (!problem.value) chat.focus();
    });
  };

  const undo = (change: string): void => {
    void work(async () => {
      await (host.undo?.(change) ?? host.client.post("/changes/{change_id}/undo", { path: { change_id: change } }));
      undone.value = [...undone.value, change];
    });
  };

  // The keys of the last card hold while nobody writes; with Ctrl or ⌘ also from the empty box of the message.
  const canDecide = isLast && isOver(turn) && proposals.value.some(isOpenProposal);
  const current = useRef({ onAll, canDecide });
  current.current = { onAll, canDecide };
  useEffect(() => {
    if (!isLast || !ids) return undefined;
    const group = "Changes in the last answer";
    const when = () => current.current.canDecide && !chat.text.value;
    return host.shortcuts.register([
      { keys: "mod+enter", title: "Accept all", group, inFields: true, when, run: () => current.current.onAll("accept") },
      { keys: "mod+backspace", title: "Reject all", group, inFields: true, when, run: () => current.current.onAll("reject") },
      { keys: "p", title: "Preview and step through changes", group, when, run: () => (isOpen.value = true) },
    ]);
  }, [isLast, ids]);

  return (
    <div ref={box} class="k-answer-changes">
      <ChangesCard
        proposals={proposals.value}
        applied={turn.changes.map((id) => ({ id, isUndone: undone.value.includes(id) }))}
        isBusy={isBusy.value || !isOver(turn)}
        problem={problem.value}
        isOpen={isOpen.value}
        onToggle={(next) => (isOpen.value = next)}
        onAll={onAll}
        onDecide={onDecide}
        onOpenNote={(path, line) => host.open({ kind: "note", path, ...(line ? { lines: [line, line] as const } : {}) }, "pane")}
        onUndo={undo}
        reviewHref={(id) => host.href({ kind: "proposal", id })}
      />
    </div>
  );
}

/** A proposal that isn't there any more isn't shown. */
function ignored(error: unknown): null {
  if (isAbort(error)) throw error;
  return null;
}

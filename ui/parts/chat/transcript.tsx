/** All that was said in a conversation; what isn't in view isn't laid out. */

import { effect, useSignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { Button, Icon } from "../basic";
import { HostContext, useHost, type Host } from "../host";
import { FailureNotice, SkeletonText } from "../rows";
import type { Chat } from "./chat";
import { Exchange } from "./exchange";

const NEAR_PX = 120;

interface TranscriptProps {
  chat: Chat;
  /** Shown where nothing was said yet. */
  children: ComponentChildren;
}

export function Transcript({ chat, children }: TranscriptProps): JSX.Element {
  const { conversation } = chat;
  const turns = conversation.turns.value;
  const scroller = useRef<HTMLDivElement>(null);
  const isAtEnd = useSignal(true);
  const host = inPane(useHost());
  const id = conversation.id.value;

  const toEnd = (): void => {
    const node = scroller.current;
    if (node) node.scrollTop = node.scrollHeight;
  };
  // The end stays in view while an answer grows, unless the person has scrolled up to read.
  useEffect(() => {
    const inside = scroller.current?.firstElementChild;
    if (!inside) return undefined;
    const observer = new ResizeObserver(() => isAtEnd.peek() && toEnd());
    observer.observe(inside);
    return () => observer.disconnect();
  }, [turns.length === 0]);
  const shown = useRef({ id, count: 0 });
  useEffect(() => {
    const isAnew = shown.current.id !== id || turns.length > shown.current.count;
    const isEarlier = shown.current.id === id && turns.length - shown.current.count > 1;
    shown.current = { id, count: turns.length };
    if (!isAnew || isEarlier) return;
    isAtEnd.value = true;
    toEnd();
    window.requestAnimationFrame(toEnd);
  }, [id, turns.length]);

  const onScroll = (): void => {
    const node = scroller.current;
    if (node) isAtEnd.value = node.scrollHeight - node.scrollTop - node.clientHeight < NEAR_PX;
  };
  const earlier = (): void => {
    const node = scroller.current;
    const below = node ? node.scrollHeight - node.scrollTop : 0;
    isAtEnd.value = false;
    conversation.loadEarlier().then(
      () => window.requestAnimationFrame(() => node && (node.scrollTop = node.scrollHeight - below)),
      (error: unknown) => chat.fail(error),
    );
  };

  return (
    <HostContext.Provider value={host}>
      <div class="k-transcript-frame">
        <div ref={scroller} class="k-transcript" onScroll={onScroll}>
          <div class="k-transcript-inside" role="log" aria-label="Conversation" aria-live="off" aria-busy={conversation.isBusy.value}>
            {conversation.failure.value && <FailureNotice failure={conversation.failure.value} />}
            {conversation.isLoading.value && !turns.length && <SkeletonText lines={6} />}
            {conversation.earlier.value > 0 && (
              <Button kind="quiet" size="small" icon="arrow-up" onClick={earlier}>
                {`Earlier messages (${conversation.earlier.value})`}
              </Button>
            )}
            {turns.map((turn, index) => (
              <Exchange key={keyOf(turn)} chat={chat} turn={turn} isLast={index === turns.length - 1} />
            ))}
            {!turns.length && !conversation.isLoading.value && !conversation.failure.value && children}
          </div>
        </div>
        {!isAtEnd.value && turns.length > 0 && (
          <button type="button" class="k-to-end" aria-label="Jump to the latest message" title="Jump to the latest message" onClick={toEnd}>
            <Icon name="arrow-down" />
          </button>
        )}
      </div>
      <Said chat={chat} />
    </HostContext.Provider>
  );
}

/** Tells screen readers what has happened. */
function Said({ chat }: { chat: Chat }): JSX.Element {
  const node = useRef<HTMLParagraphElement>(null);
  useEffect(
    () =>
      effect(() => {
        if (node.current) node.current.textContent = chat.conversation.said.value;
      }),
    [],
  );
  return <p ref={node} class="k-only-read" role="status" />;
}

/** The shell, in which what an answer names opens beside it. */
function inPane(host: Host): Host {
  return useMemo(() => Object.create(host, { open: { value: (target: Parameters<Host["open"]>[0], where = "pane" as const) => host.open(target, where) } }) as Host, [host]);
}

const keys = new WeakMap<object, number>();
let next = 1;

/** A key for each turn that stays while it is shown, whatever is loaded before it. */
function keyOf(turn: object): number {
  let key = keys.get(turn);
  if (!key) keys.set(turn, (key = next++));
  return key;
}

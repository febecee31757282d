/** One question with its answer: steps, findings, text, changes, what it took, and what can be done with it. */

import { useSignal, type Signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Button, Icon, IconButton } from "../basic";
import { ago, dateTime } from "../format";
import { useHost, type Host } from "../host";
import { CITATIONS, CitationsContext, Markdown } from "../markdown";
import { Told } from "../rows";
import { AnswerChanges } from "./changes";
import type { Chat } from "./chat";
import { Findings, Phases, SpentTable } from "./findings";
import { splitMessage, type Attachment } from "./message";
import { ProblemCard } from "./problem";
import { modelName, spentText } from "./spending";
import { Steps } from "./steps";
import { endTexts, isOver, type Asked, type Turn } from "./turn";

interface ExchangeProps {
  chat: Chat;
  turn: Signal<Turn>;
  isLast: boolean;
}

export function Exchange({ chat, turn, isLast }: ExchangeProps): JSX.Element {
  const host = useHost();
  const now = turn.value;
  const over = isOver(now);
  return (
    <article class="k-exchange" data-state={now.state} data-run={now.id || undefined}>
      <Question chat={chat} turn={turn} />
      <div class="k-reply">
        <h2 class="k-only-read">Knapper</h2>
        <Phases phases={now.phases} />
        <Steps steps={now.steps} isOver={over} isLive={chat.options.showsSteps} onDetails={() => chat.conversation.loadTrace(turn)} />
        <Findings turn={now} onGraph={graphBy(host, chat, turn)} onCopy={(paths) => void chat.copyTexts(paths)} />
        {now.asked && now.kind === "task" && <AskedCard chat={chat} turn={turn} asked={now.asked} isLast={isLast} />}
        {now.text && (
          <div class="k-answer" data-quotable="">
            <CitationsContext.Provider value={now.citations}>
              <Markdown text={now.text} features={CITATIONS} prefix={`${now.id || now.at}-`} />
            </CitationsContext.Provider>
          </div>
        )}
        {!over && <Waiting turn={now} />}
        {now.asked && now.kind === "chat" && <AskedCard chat={chat} turn={turn} asked={now.asked} isLast={isLast} />}
        <Notices chat={chat} turn={now} />
        {now.problem && <ProblemCard chat={chat} turn={turn} problem={now.problem} isLast={isLast} />}
        <AnswerChanges chat={chat} turn={now} isLast={isLast} />
        {over && <Foot chat={chat} turn={turn} isLast={isLast} />}
      </div>
    </article>
  );
}

/** What shows a turn's notes as a graph; undefined where the shell has no graphs. */
function graphBy(host: Host, chat: Chat, turn: Signal<Turn>): (() => void) | undefined {
  const { conversation } = chat;
  const target = (number: number) => ({ kind: "graph" as const, session: conversation.id.value, turn: number });
  if (!isOver(turn.value) || host.href(target(1)) === undefined) return undefined;
  return () => void conversation.numberOf(turn).then((number) => number && host.open(target(number)));
}

const MANY_LINES = 12;

function Question({ chat, turn }: { chat: Chat; turn: Signal<Turn> }): JSX.Element {
  const host = useHost();
  const now = turn.value;
  const isEdited = useSignal(false);
  const isWhole = useSignal(false);
  const button = useRef<HTMLDivElement>(null);
  const { text, attachments } = splitMessage(now.question);
  const isLong = text.split("\n").length > MANY_LINES || text.length > 1_200;
  const close = (isSent: boolean): void => {
    isEdited.value = false;
    if (isSent) return; // the focus goes to the box
    window.requestAnimationFrame(() => button.current?.querySelector<HTMLElement>("[aria-label^=Edit]")?.focus());
  };
  if (isEdited.value) return <EditedQuestion chat={chat} turn={turn} onClose={close} />;
  return (
    <div class="k-question-row" ref={button}>
      <div class="k-question">
        <h2 class="k-only-read">You</h2>
        <p class="k-question-text" data-cut={isLong && !isWhole.value ? "" : undefined} dir="auto">
          {text || (now.question ? "" : "…")}
        </p>
        {isLong && (
          <Button kind="quiet" size="small" isExpanded={isWhole.value} onClick={() => (isWhole.value = !isWhole.value)}>
            {isWhole.value ? "Show less" : "Show all"}
          </Button>
        )}
        {attachments.map((attachment, index) => (
          <AttachedText key={index} attachment={attachment} />
        ))}
      </div>
      {isOver(now) && (
        <div class="k-question-acts">
          <IconButton icon="copy" size="small" label="Copy question" onClick={() => void copied(host, now.question)} />
          <IconButton icon="pencil" size="small" label="Edit question" isDisabled={chat.conversation.isBusy.value} onClick={() => (isEdited.value = true)} />
        </div>
      )}
    </div>
  );
}

function AttachedText({ attachment }: { attachment: Attachment }): JSX.Element {
  return (
    <details class="k-attached">
      <summary>
        <Icon name={attachment.kind === "file" ? "paperclip" : "quote"} />
        <span class="k-cut">{attachment.name}</span>
      </summary>
      <pre tabIndex={0}>{attachment.text}</pre>
    </details>
  );
}

/** The question in a box: sending it begins a copy of the conversation from here. */
function EditedQuestion({ chat, turn, onClose }: { chat: Chat; turn: Signal<Turn>; onClose: (isSent: boolean) => void }): JSX.Element {
  const box = useRef<HTMLTextAreaElement>(null);
  const text = useSignal(turn.value.question);
  useEffect(() => box.current?.focus(), []);
  const send = (): void => {
    if (!text.value.trim()) return;
    onClose(true);
    chat.focus();
    void chat.branch(turn, text.value.trim());
  };
  return (
    <div class="k-question-edit">
      <textarea
        ref={box}
        class="k-input"
        aria-label="Edited question"
        rows={Math.min(12, text.value.split("\n").length + 1)}
        value={text.value}
        onInput={(event) => (text.value = event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") {
            event.stopPropagation();
            onClose(false);
          } else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
            event.preventDefault();
            send();
          }
        }}
      />
      <div class="k-question-edit-acts">
        <span class="k-small k-quiet">Sent in a copy of this conversation; the original stays.</span>
        <Button size="small" onClick={() => onClose(false)}>
          Cancel
        </Button>
        <Button size="small" kind="primary" isDisabled={!text.value.trim()} onClick={send}>
          Send
        </Button>
      </div>
    </div>
  );
}

function Waiting({ turn }: { turn: Turn }): JSX.Element {
  if (turn.lostAt) {
    return (
      <p class="k-lost" role="status">
        <Icon name="wifi-off" /> The connection was lost {ago(turn.lostAt) === "now" ? "just now" : ago(turn.lostAt)}. The answer continues on the server; reconnecting…
      </p>
    );
  }
  const isWriting = turn.text !== "" && !turn.steps.some((step) => step.kind === "call" && step.state === "open");
  return (
    <p class="k-thinking" data-writing={isWriting ? "" : undefined}>
      <span class="k-thinking-dot" aria-hidden="true" />
      <span class={isWriting ? "k-only-read" : ""}>{turn.state === "sending" ? "Sending…" : isWriting ? "Writing…" : "Thinking…"}</span>
    </p>
  );
}

/** What the model asks: a button for each option, and a box for one's own words. */
function AskedCard({ chat, turn, asked, isLast }: { chat: Chat; turn: Signal<Turn>; asked: Asked; isLast: boolean }): JSX.Element {
  const own = useSignal("");
  const isTask = turn.value.kind === "task";
  const canAnswer = !asked.answer && isOver(turn.value) && isLast && !chat.conversation.isBusy.value;
  const answer = (text: string): void => {
    if (!text.trim()) return;
    chat.focus();
    void (isTask ? chat.conversation.answer(turn, text) : chat.send(text));
  };
  return (
    <section class="k-asked" aria-label="Question from the model" data-open={canAnswer ? "" : undefined}>
      <p>
        <Icon name="message-circle-question-mark" />
        <strong>{asked.question}</strong>
      </p>
      {asked.answer ? (
        <p class="k-quiet">You: {asked.answer}</p>
      ) : (
        (isLast || isTask) && (
          <>
            <div class="k-asked-options">
              {asked.options.map((option) => (
                <Button key={option} size="small" isDisabled={!canAnswer} onClick={() => answer(option)}>
                  {option}
                </Button>
              ))}
            </div>
            {isTask && (
              <form
                class="k-asked-own"
                onSubmit={(event) => {
                  event.preventDefault();
                  answer(own.value);
                }}
              >
                <input class="k-input" aria-label="Your own answer" placeholder="Or in your own words" disabled={!canAnswer} value={own.value} onInput={(event) => (own.value = event.currentTarget.value)} />
                <Button type="submit" isDisabled={!canAnswer || !own.value.trim()}>
                  Answer
                </Button>
              </form>
            )}
          </>
        )
      )}
    </section>
  );
}

function Notices({ chat, turn }: { chat: Chat; turn: Turn }): JSX.Element | null {
  const host = useHost();
  const texts = [...endTexts(turn), ...turn.notices];
  const shown = useRef(turn.opened.length);
  const wasBusy = useRef(false);
  useEffect(() => {
    const fresh = turn.opened.slice(shown.current);
    shown.current = turn.opened.length;
    // Where answers are asked for, the end may come together with what was opened.
    if (!chat.conversation.isBusy.peek() && !wasBusy.current) return;
    if (host.navigate) for (const path of fresh) host.navigate(path);
    else for (const path of fresh.slice(-1)) host.open({ kind: "note", path }, "pane");
  }, [turn.opened.length]);
  useEffect(() => void (wasBusy.current = chat.conversation.isBusy.peek()));
  if (!texts.length && !turn.opened.length) return null;
  return (
    <ul class="k-notices">
      {texts.map((text) => (
        <li key={text}>
          <Told text={text} />
        </li>
      ))}
      {turn.opened.map((path) => (
        <li key={path}>
          Opened{" "}
          <button type="button" class="k-reason-note" title={path} onClick={() => host.open({ kind: "note", path }, "pane")}>
            <Icon name="file-text" />
            <span class="k-cut">{path}</span>
          </button>
        </li>
      ))}
    </ul>
  );
}

function Foot({ chat, turn, isLast }: ExchangeProps): JSX.Element {
  const host = useHost();
  const now = turn.value;
  const isCopied = useSignal(false);
  const copy = (): void => {
    void copied(host, now.text).then(() => {
      isCopied.value = true;
      window.setTimeout(() => (isCopied.value = false), 1_500);
    });
  };
  const spent = now.spent && spentText(now.spent);
  const phases = Object.keys(now.spent?.phases ?? {}).length;
  return (
    <footer class="k-exchange-foot">
      <div class="k-exchange-acts" data-always={isLast ? "" : undefined}>
        {now.text && <IconButton icon={isCopied.value ? "check" : "copy"} size="small" label={isCopied.value ? "Copied" : "Copy answer"} onClick={copy} />}
        {!now.problem && now.state !== "asked" && (
          <IconButton icon="refresh-cw" size="small" label="Regenerate in a copy of the conversation" isDisabled={chat.conversation.isBusy.value} onClick={() => void chat.branch(turn)} />
        )}
      </div>
      <div class="k-exchange-spent">
        {spent && phases > 1 ? (
          <details class="k-spent">
            <summary>{[modelName(now.model), spent].filter(Boolean).join(" · ")}</summary>
            {now.spent && <SpentTable spent={now.spent} model={modelName(now.model)} />}
          </details>
        ) : (
          <span title={now.model}>{[modelName(now.model), spent].filter(Boolean).join(" · ")}</span>
        )}
        {now.at && (
          <time dateTime={now.at} title={dateTime(now.at)}>
            {ago(now.at)}
          </time>
        )}
      </div>
    </footer>
  );
}

function copied(host: ReturnType<typeof useHost>, text: string): Promise<void> {
  return host.copy(text).catch(() => host.floaters.toast({ text: "The browser didn't allow copying", tone: "removed" }));
}


/** Where a message is written: the box, what goes with it, who answers it, and what that costs. */

import { useSignal } from "@preact/signals";
import type { JSX, TargetedFocusEvent } from "preact";
import { useEffect, useId, useLayoutEffect, useRef } from "preact/hooks";
import { Button, Chip, Icon, IconButton } from "../basic";
import { FormDialog } from "../floating";
import { noteName } from "../format";
import { AgentToggles } from "./agents";
import type { Chat } from "./chat";
import { whatHappens } from "./choice";
import { droppedNotes, readFile, triggerAt, type Trigger } from "./message";
import { modelName, price, usageParts } from "./spending";
import { afterBlur, suggest, SuggestList, type Suggestion } from "./suggest";

export function Composer({ chat }: { chat: Chat }): JSX.Element {
  const box = useRef<HTMLTextAreaElement>(null);
  const isOver = useSignal(false);
  const { conversation } = chat;
  const isBusy = conversation.isBusy.value;
  const isResting = chat.choice.isResting.value;
  const suggesting = useSuggestions(chat, box);

  useLayoutEffect(() => {
    const node = box.current;
    if (!node) return;
    node.style.removeProperty("height");
    node.style.height = `${node.scrollHeight}px`; // its style sheet says how high at most
  }, [chat.text.value]);
  // Before the next key: an effect that is painted first would take the focus back from whoever has gone on with Tab.
  useLayoutEffect(() => {
    const isTouch = window.matchMedia("(hover: none)").matches;
    if (chat.focused.value || !(isTouch || chat.options.isQuiet)) box.current?.focus({ preventScroll: true });
  }, [chat.focused.value]);

  const send = (): void => {
    if (isBusy || isResting) return;
    suggesting.close();
    void chat.send();
    box.current?.focus();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (suggesting.take(event)) return;
    const isPlain = !event.shiftKey && !event.isComposing && !event.altKey;
    const isEmpty = !chat.text.value.trim() && !chat.attachments.value.length;
    if (event.key === "Enter" && isPlain && !((event.ctrlKey || event.metaKey) && isEmpty)) {
      event.preventDefault();
      send();
    } else if (event.key === "Escape" && isBusy) {
      event.preventDefault();
      event.stopPropagation();
      void chat.stop();
    } else if (event.key === "ArrowUp" && isEmpty && isPlain) {
      const last = conversation.turns.value.at(-1);
      if (!last || isBusy) return;
      event.preventDefault();
      document.querySelector<HTMLElement>(".k-exchange:last-of-type .k-question-acts [aria-label^=Edit]")?.click();
    }
  };
  const take = (data: DataTransfer | null): boolean => {
    const files = [...(data?.files ?? [])];
    const notes = data && !files.length ? droppedNotes(data) : [];
    if (notes.length) chat.addNotes(notes);
    for (const file of files) readFile(file).then((attachment) => chat.attach(attachment), (error: unknown) => chat.fail(error));
    return files.length > 0 || notes.length > 0;
  };

  return (
    <form
      class="k-composer"
      aria-label="New message"
      data-over={isOver.value ? "" : undefined}
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
      onDragOver={(event) => {
        event.preventDefault();
        isOver.value = true;
      }}
      onDragLeave={() => (isOver.value = false)}
      onDrop={(event) => {
        isOver.value = false;
        if (take(event.dataTransfer)) event.preventDefault();
      }}
    >
      {suggesting.list}
      <Extras chat={chat} />
      <textarea
        ref={box}
        class="k-composer-box"
        rows={1}
        aria-label="Message"
        placeholder={conversation.turns.value.length ? "Ask a follow-up" : "Ask your notes, or ask for changes"}
        {...suggesting.attributes}
        value={chat.text.value}
        onInput={(event) => {
          chat.text.value = event.currentTarget.value;
          suggesting.look();
        }}
        onClick={suggesting.look}
        onKeyDown={onKeyDown}
        onPaste={(event) => {
          if (event.clipboardData?.files.length && take(event.clipboardData)) event.preventDefault();
        }}
      />
      <div class="k-composer-row">
        <AddButton chat={chat} />
        <AgentToggles chat={chat} />
        <SheetButton chat={chat} />
        <span class="k-composer-room" />
        <ModelButton chat={chat} />
        {isBusy ? (
          <Button key="send" kind="primary" icon="square" label="Stop" title="Stop (Esc)" onClick={() => void chat.stop()} />
        ) : (
          <Button key="send" kind="primary" icon="arrow-up" type="submit" label="Send" title={isResting ? "Enable at least one agent to send" : "Send message (Enter)"} isDisabled={isResting || !chat.text.value.trim() && !chat.attachments.value.length} />
        )}
      </div>
    </form>
  );
}

/** What goes with the message: the open note, selections, files. */
function Extras({ chat }: { chat: Chat }): JSX.Element | null {
  const about = chat.conversation.about.value;
  const attachments = chat.attachments.value;
  const selected = chat.selection.value;
  if (!about && !attachments.length && !selected) return null;
  return (
    <div class="k-composer-extras">
      {about && (
        <Chip icon="file-text" tone="accent" title={about} onRemove={() => chat.about("")} removeLabel={`Remove ${about}`}>
          About {noteName(about)}
        </Chip>
      )}
      {attachments.map((attachment, index) => (
        <Chip
          key={index}
          icon={attachment.kind === "file" ? "paperclip" : "quote"}
          title={attachment.text.slice(0, 300)}
          onRemove={() => {
            chat.attachments.value = attachments.filter((_, at) => at !== index);
            chat.focus();
          }}
          removeLabel={`Remove ${attachment.name}`}
        >
          {attachment.kind === "file" ? attachment.name : `“${attachment.text.slice(0, 40)}${attachment.text.length > 40 ? "…" : ""}”`}
        </Chip>
      ))}
      {selected && (
        <button
          type="button"
          class="k-chip"
          onMouseDown={(event) => event.preventDefault()}
          onClick={() => {
            chat.attach(selected);
            chat.selection.value = null;
            document.getSelection()?.removeAllRanges();
          }}
        >
          <Icon name="plus" />
          <span class="k-cut">Add the selection: “{selected.text.slice(0, 40)}{selected.text.length > 40 ? "…" : ""}”</span>
        </button>
      )}
    </div>
  );
}

function AddButton({ chat }: { chat: Chat }): JSX.Element {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <input
        ref={input}
        type="file"
        hidden
        multiple
        aria-label="Files"
        onChange={(event) => {
          for (const file of event.currentTarget.files ?? []) readFile(file).then((attachment) => chat.attach(attachment), (error: unknown) => chat.fail(error));
          event.currentTarget.value = "";
        }}
      />
      <IconButton
        icon="plus"
        size="small"
        label="Add to the message"
        onClick={(event) =>
          chat.host.floaters.openMenu(event, "Add to the message", [
            { title: "Text file…", icon: "paperclip", run: () => input.current?.click() },
            { title: "Link to a note", icon: "link", keys: "[ [", run: () => startLink(chat) },
            { title: "Preset or command", icon: "command", keys: "/", run: () => startCommand(chat) },
          ])
        }
      />
    </>
  );
}

function startLink(chat: Chat): void {
  chat.text.value = `${chat.text.value}${chat.text.value && !/\s$/.test(chat.text.value) ? " " : ""}[[`;
  chat.focus();
}

function startCommand(chat: Chat): void {
  chat.text.value = "/";
  chat.focus();
}

function SheetButton({ chat }: { chat: Chat }): JSX.Element {
  const found = chat.gathered.data.value;
  const isShown = found && !chat.choice.isChat.value;
  return (
    <Button
      kind="quiet"
      size="small"
      icon="sliders-horizontal"
      label="Notes and rules"
      title="Which notes are included, and what may be edited"
      isExpanded={chat.isSheetOpen.value}
      onClick={() => (chat.isSheetOpen.value = !chat.isSheetOpen.value)}
    >
      <span class="k-composer-count">{isShown ? gatheredText(found.notes.length, found.tokens, found.isExplored) : "Notes"}</span>
    </Button>
  );
}

export function gatheredText(notes: number, tokens: number, isExplored: boolean): string {
  if (isExplored && !notes) return "Scout finds the notes";
  const size = `${notes === 1 ? "1 note" : `${notes} notes`} · ${tokens < 1_000 ? tokens : `${(tokens / 1_000).toFixed(1).replace(/\.0$/, "")}k`} tokens`;
  return isExplored ? `${size} + Scout` : size;
}

function ModelButton({ chat }: { chat: Chat }): JSX.Element | null {
  const { spending } = chat;
  const name = spending.name.value;
  if (!spending.models.data.value) return null;
  const problem = chat.choice.problems.value["model"];
  if (!name) {
    return (
      <Button kind="quiet" size="small" icon="key-round" title={problem?.hint ?? "No model is set up"} onClick={() => chat.host.openSettings?.("models")}>
        <span class="k-model-name k-cut">Set up a model</span>
      </Button>
    );
  }
  return (
    <Button kind="quiet" size="small" title={[name, spending.current.value?.price && `${price(spending.current.value)} per million tokens`].filter(Boolean).join("\n")} onClick={(event) => chooseModel(event, chat)}>
      <span class="k-only-read">Model: </span>
      <span class="k-model-name k-cut">{modelName(name)}</span>
      <span class="k-model-price k-cut">{price(spending.current.value)}</span>
      <Icon name="chevron-down" />
    </Button>
  );
}

function chooseModel(event: Event, chat: Chat): void {
  const { spending, host } = chat;
  const rows = spending.models.data.value?.results ?? [];
  const current = spending.name.value;
  const isOther = current && !rows.some((row) => row.name === current);
  host.floaters.openMenu(event, "Model for the next message", [
    ...rows.map((row) => ({
      title: `${modelName(row.name)} — ${price(row)}${row.has_key ? "" : ", no key"}`,
      icon: row.is_local ? ("laptop" as const) : ("sparkles" as const),
      isChecked: row.name === current,
      run: () => pickModel(chat, row.name),
    })),
    ...(isOther ? [{ title: modelName(current), icon: "sparkles" as const, isChecked: true, run: () => undefined }] : []),
    "line",
    { title: "Other model…", icon: "pencil", run: () => askModel(chat) },
    ...(host.openSettings ? [{ title: "Set up models", icon: "settings" as const, run: () => host.openSettings?.("models") }] : []),
  ]);
}

function pickModel(chat: Chat, name: string): void {
  chat.spending.choose(name);
  chat.focus();
}

function askModel(chat: Chat): void {
  void chat.host.floaters.dialog((close) => (
    <AskText
      title="Other model"
      label="Model"
      hint="For example ollama:qwen3, anthropic:claude-sonnet-4-5, openai:NAME or NAME@http://HOST/v1"
      act="Use it"
      onClose={close}
      onText={(name) => {
        close();
        pickModel(chat, name);
      }}
    />
  ));
}

interface AskTextProps {
  title: string;
  label: string;
  act: string;
  hint?: string;
  value?: string;
  onClose: () => void;
  onText: (text: string) => void;
}

/** A dialog that asks for a few words. */
export function AskText({ title, label, act, hint, value = "", onClose, onText }: AskTextProps): JSX.Element {
  const text = useSignal(value);
  const id = useId();
  return (
    <FormDialog title={title} act={act} isDisabled={!text.value.trim()} onClose={onClose} onDone={() => onText(text.value.trim())}>
      <div class="k-field">
        <label for={id}>{label}</label>
        <input id={id} class="k-input" autocomplete="off" spellcheck={false} value={text.value} onInput={(event) => (text.value = event.currentTarget.value)} />
        {hint && <p class="k-small k-quiet">{hint}</p>}
      </div>
    </FormDialog>
  );
}

/** What happens to the next message, and what was spent so far. */
export function ComposerFoot({ chat }: { chat: Chat }): JSX.Element {
  const { toggles, isChat } = chat.choice;
  return (
    <div class="k-composer-foot">
      <span class="k-composer-says k-cut">{whatHappens(toggles.value, isChat.value)}</span>
      <dl class="k-usage" aria-label="Usage">
        {usageParts(chat.spending.usage.data.value).map(({ label, value, tip }) => (
          <div key={label} title={tip}>
            <dt>{label}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

/** Completes notes after `[[` and commands after a slash. */
function useSuggestions(chat: Chat, box: { current: HTMLTextAreaElement | null }) {
  const id = useId();
  const found = useSignal<readonly Suggestion[]>([]);
  const trigger = useSignal<Trigger | null>(null);
  const active = useSignal(0);
  const asking = useRef<AbortController | null>(null);

  const close = (): void => {
    asking.current?.abort();
    trigger.value = null;
    found.value = [];
  };
  const look = (): void => {
    const node = box.current;
    const next = node ? triggerAt(node.value, node.selectionStart) : null;
    asking.current?.abort();
    if (!next) return close();
    trigger.value = next;
    const own = (asking.current = new AbortController());
    suggest(chat, next, own.signal).then(
      (rows) => {
        const now = node && triggerAt(node.value, node.selectionStart); // it may have been sent meanwhile
        if (own.signal.aborted || now?.query !== next.query) return;
        found.value = rows;
        active.value = 0;
      },
      () => undefined,
    );
  };
  useEffect(() => {
    if (chat.text.value) look();
    else close();
  }, [chat.focused.value]);

  const pick = (index: number): void => {
    const [row, at] = [found.value[index], trigger.value];
    if (!row || !at) return;
    const text = chat.text.value;
    close();
    chat.text.value = text.slice(0, at.from) + row.text + text.slice(at.to);
    row.run?.();
    const caret = at.from + row.text.length;
    window.requestAnimationFrame(() => {
      box.current?.focus();
      box.current?.setSelectionRange(caret, caret);
    });
  };
  const take = (event: KeyboardEvent): boolean => {
    if (!found.value.length || event.isComposing) return false;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) active.value = (active.value + step + found.value.length) % found.value.length;
    else if (event.key === "Enter" || event.key === "Tab") pick(active.value);
    else if (event.key === "Escape") close();
    else return false;
    event.preventDefault();
    event.stopPropagation();
    return true;
  };
  const isOpen = found.value.length > 0;
  return {
    look,
    close,
    take,
    attributes: {
      "aria-autocomplete": "list" as const,
      "aria-controls": isOpen ? id : undefined,
      "aria-activedescendant": isOpen ? `${id}-${active.value}` : undefined,
      onBlur: (event: TargetedFocusEvent<HTMLTextAreaElement>) => afterBlur(event.currentTarget, close),
    },
    list: isOpen ? <SuggestList id={id} rows={found.value} active={active.value} onPick={pick} onActive={(index) => (active.value = index)} /> : null,
  };
}

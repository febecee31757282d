/** Chat: the list of conversations, and the one that is open with its box below. */

import { effect } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { Button, Icon, IconButton, type Shortcut } from "../../../parts";
import { Chat, Composer, ComposerFoot, Conversations, openSessionMenu, ScopeSheet, selectedText, Transcript } from "../../../parts/chat";
import { FirstStepsCard } from "../../../parts/settings/first";
import { firstStepsOf, href, type App } from "../../app";
import { load, loadDraft, save, saveDraft } from "../../keep";
import { MainHead } from "../../shell";
import { defineView, type ViewProps } from "../../view";

const SUGGESTIONS = ["What did I write about ", "Which tasks are still open?", "Summarize the notes that changed this week"];

/** In the place of an id: a conversation that isn't kept yet. Without any, the one that was open last is shown. */
const NEW = "new";

function create(app: App): Chat {
  const chat: Chat = new Chat(app, {
    keep: { load, save },
    onSession: (id) => {
      if (app.router.route.value.view === "chat") app.go(address(id), { replace: (app.router.route.value.params["id"] ?? NEW) === NEW });
    },
  });
  const isHere = () => app.router.route.value.view === "chat";
  const keys: Shortcut[] = [
    { keys: "mod+/", title: "Write a message", group: "Chat", when: isHere, run: () => chat.focus() },
    {
      keys: "n",
      title: "New conversation",
      group: "Chat",
      when: isHere,
      run: () => {
        app.go(address(""));
        chat.focus();
      },
    },
    { keys: "enter", title: "Send (with Shift: new line)", group: "Chat", isShownOnly: true, run: () => undefined },
    { keys: "escape", title: "Stop the answer", group: "Chat", when: () => isHere() && chat.conversation.isBusy.value, run: () => void chat.stop() },
  ];
  app.shortcuts.register(keys.map((shortcut) => ({ ...shortcut, isHere })));
  document.addEventListener("selectionchange", () => {
    if (isHere()) chat.selection.value = selectedText(getSelection());
  });
  const vault = app.session.vault.peek();
  chat.text.value = loadDraft(vault);
  effect(() => saveDraft(vault, chat.text.value));
  void chat.load();
  return chat;
}

function address(id: string): string {
  return href(`chat/${id || NEW}`);
}

function Main({ app, state: chat, route }: ViewProps<Chat>): JSX.Element {
  const { conversation } = chat;
  const id = route.params["id"] ?? "";
  const about = route.query["note"] ?? "";
  const text = route.query["q"] ?? "";
  useEffect(() => {
    if (id) void chat.show(id === NEW ? "" : id);
  }, [id]);
  useEffect(() => {
    if (about) chat.about(about, route.query["quote"]);
    if (text) chat.text.value = text;
    if (about || text) app.go(address(id || conversation.id.value), { replace: true });
    chat.focus();
  }, [about, text]);
  const title = conversation.title.value || (conversation.id.value ? "Conversation" : "New conversation");
  return (
    <>
      <MainHead app={app} title={title} back={href("chat")}>
        <HeadActions app={app} chat={chat} title={title} />
      </MainHead>
      <Transcript chat={chat}>
        <Welcome app={app} chat={chat} />
      </Transcript>
      <div class="k-compose">
        <ScopeSheet chat={chat} />
        <Composer chat={chat} />
        <ComposerFoot chat={chat} />
      </div>
    </>
  );
}

function HeadActions({ app, chat, title }: { app: App; chat: Chat; title: string }): JSX.Element {
  const { id, forkedFrom } = chat.conversation;
  return (
    <>
      {forkedFrom.value && (
        <Button kind="quiet" size="small" icon="git-branch" href={address(forkedFrom.value)} title="Copied from another conversation: open the original">
          Copy
        </Button>
      )}
      {id.value && (
        <IconButton icon="ellipsis" label="Conversation actions" onClick={(event) => openSessionMenu(event, chat, id.value, title, (next) => app.go(address(next)))} />
      )}
      <NewButton chat={chat} />
    </>
  );
}

function NewButton({ chat, size = "normal" }: { chat: Chat; size?: "small" | "normal" }): JSX.Element {
  const begin = (): void => {
    if (!chat.conversation.id.value) chat.conversation.begin();
    chat.focus();
  };
  return <IconButton icon="plus" size={size} label="New conversation" href={address("")} onClick={begin} />;
}

function Welcome({ app, chat }: { app: App; chat: Chat }): JSX.Element {
  const steps = firstStepsOf(app);
  useEffect(() => void steps.load(), []);
  return (
    <div class="k-welcome">
      <Icon name="messages-square" size={20} />
      <h2>Ask your notes</h2>
      <p class="k-quiet">Answers cite the lines they come from. Changes wait for your review.</p>
      {steps.isNeeded ? (
        <FirstStepsCard steps={steps} settings={href("settings/models")} chat={href("chat/new")} />
      ) : (
        <div class="k-welcome-acts">
          {SUGGESTIONS.map((text) => (
            <Button key={text} size="small" onClick={() => chat.write(text)}>
              {text.trim()}
              {text.endsWith(" ") && "…"}
            </Button>
          ))}
        </div>
      )}
    </div>
  );
}

export default defineView<Chat>({
  create,
  List: ({ app, state }) => <Conversations chat={state} onGo={(id) => app.go(address(id))} onNew={app.isNarrow.value ? () => app.go(address("")) : undefined} />,
  ListActions: ({ state }) => <NewButton chat={state} size="small" />,
  Main,
  titleOf: ({ state }) => state.conversation.title.value,
  palette: (app, chat) => [
    {
      id: "conversations",
      title: "Conversations",
      limit: 5,
      find: async (query, abort) => {
        const { results } = await app.client.get("/sessions", { query: { limit: 5, ...(query ? { query } : {}) }, signal: abort });
        return results.map((row) => ({ id: `session ${row.id}`, title: row.title || "New conversation", icon: "message-square", run: () => app.go(address(row.id)) }));
      },
    },
    { id: "chat", title: "Chat", limit: 2, find: (query) => (query && "new conversation".includes(query.toLowerCase()) ? [{ id: "new-chat", title: "New conversation", icon: "plus", run: () => app.go(address("")) }] : (void chat, [])) },
  ],
});

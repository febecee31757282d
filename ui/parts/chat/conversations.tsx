/** The list of conversations: questions that wait first, then by when they were used last; searched by what was said. */

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { Button, Icon, IconButton, SearchBox } from "../basic";
import { ago, count } from "../format";
import { useHost } from "../host";
import { Empty, GroupTitle, MoreRows, Row, Rows, SkeletonRows } from "../rows";
import type { Chat } from "./chat";
import { AskText } from "./composer";
import { byAge, type Session } from "./sessions";

interface ConversationsProps {
  chat: Chat;
  /** Shows a conversation; an empty id a new one. */
  onGo: (id: string) => void;
}

interface ListProps extends ConversationsProps {
  /** Begins one, where the list stands alone. */
  onNew?: (() => void) | undefined;
}

const BREATH_MS = 150;

export function Conversations({ chat, onGo, onNew }: ListProps): JSX.Element {
  const { sessions } = chat;
  const found = sessions.list.data.value;
  const waiting = sessions.waiting.data.value?.results ?? [];
  const query = sessions.query.value;
  const isFirst = useSignal(true);
  useEffect(() => {
    if (isFirst.value) {
      isFirst.value = false;
      return undefined;
    }
    const timer = window.setTimeout(() => void sessions.load(), BREATH_MS);
    return () => window.clearTimeout(timer);
  }, [query]);
  return (
    <>
      <div class="k-conversations-search">
        <SearchBox label="Search conversations" value={query} onInput={(text) => (sessions.query.value = text)} />
      </div>
      {waiting.length > 0 && (
        <section aria-label="Waiting for you">
          <GroupTitle>Waiting for you</GroupTitle>
          <ul class="k-rows">
            {waiting.map((run) => (
              <li key={run.run_id}>
                <Row lines={2} icon="message-circle-question-mark" title={run.question} detail={run.task} tip={run.question} onClick={() => void chat.openWaiting(run, onGo)} />
              </li>
            ))}
          </ul>
        </section>
      )}
      {!found && <SkeletonRows />}
      {found && !found.results.length && (
        <Empty
          icon={query ? "search" : "messages-square"}
          title={query ? "Nothing found" : "No conversations yet"}
          acts={
            onNew && !query ? (
              <Button kind="primary" icon="plus" onClick={onNew}>
                New conversation
              </Button>
            ) : undefined
          }
        >
          {query ? "No conversation mentions that." : "Your conversations are kept here, so you can come back to them."}
        </Empty>
      )}
      {byAge(found?.results ?? []).map((group) => (
        <section key={group.title} aria-label={group.title}>
          <GroupTitle>{group.title}</GroupTitle>
          <Rows name="session" items={group.sessions} keyOf={(session) => session.id} row={(session) => <SessionRow chat={chat} session={session} onGo={onGo} />} />
        </section>
      ))}
      {found && found.total > found.results.length && <MoreRows key={found.results.length} title="Show older" onMore={() => void sessions.more()} />}
    </>
  );
}

interface SessionRowProps extends ConversationsProps {
  session: Session;
}

function SessionRow({ chat, session, onGo }: SessionRowProps): JSX.Element {
  const host = useHost();
  const title = session.title || "New conversation";
  const detail = [session.busy ? "answering…" : count(session.turns, "message"), ago(session.updated)].join(" · ");
  return (
    <Row
      lines={2}
      lead={<Icon name={session.busy ? "loader-circle" : session.forked_from ? "git-branch" : "message-square"} />}
      title={title}
      tip={title}
      detail={detail}
      href={host.href({ kind: "session", id: session.id })}
      {...(host.href({ kind: "session", id: session.id }) === undefined ? { onClick: () => onGo(session.id) } : {})}
      isSelected={session.id === chat.conversation.id.value}
      actions={<IconButton icon="ellipsis" size="small" label={`Actions for “${title}”`} onClick={(event) => openSessionMenu(event, chat, session.id, title, onGo)} />}
    />
  );
}

/** What can be done with a conversation. */
export function openSessionMenu(event: Event, chat: Chat, id: string, title: string, onGo: (id: string) => void): void {
  chat.host.floaters.openMenu(event, `“${title}”`, [
    { title: "Rename…", icon: "pencil", run: () => renameSession(chat, id, title) },
    { title: "Duplicate", icon: "git-fork", run: () => attempt(chat, copySession(chat, id, onGo)) },
    { title: "Export as a note", icon: "upload", run: () => attempt(chat, exportSession(chat, id)) },
    "line",
    { title: "Delete…", icon: "trash", tone: "danger", run: () => attempt(chat, deleteSession(chat, id, title, onGo)) },
  ]);
}

function attempt(chat: Chat, work: Promise<void>): void {
  work.catch((error: unknown) => chat.fail(error));
}

function renameSession(chat: Chat, id: string, title: string): void {
  void chat.host.floaters.dialog((close) => (
    <AskText
      title="Rename the conversation"
      label="Title"
      act="Rename"
      value={title}
      onClose={close}
      onText={(text) => {
        close();
        attempt(
          chat,
          chat.sessions.rename(id, text).then(() => {
            if (chat.conversation.id.value === id) chat.conversation.title.value = text;
          }),
        );
      }}
    />
  ));
}

async function copySession(chat: Chat, id: string, onGo: (id: string) => void): Promise<void> {
  const copy = await chat.sessions.fork(id);
  await chat.sessions.load();
  onGo(copy);
}

async function exportSession(chat: Chat, id: string): Promise<void> {
  const { floaters } = chat.host;
  const found = await chat.sessions.export(id);
  const path = typeof found["path"] === "string" ? found["path"] : "";
  const proposal = typeof found["proposal_id"] === "string" ? found["proposal_id"] : "";
  if (found["status"] === "proposed") {
    floaters.toast({ text: "The note is waiting for your review", ...(proposal ? { act: { title: "Review", run: () => chat.host.open({ kind: "proposal", id: proposal }) } } : {}) });
  } else floaters.toast({ text: path ? `Saved to ${path}` : "Saved as a note", ...(path ? { act: { title: "Open", run: () => chat.host.open({ kind: "note", path }) } } : {}) });
}

async function deleteSession(chat: Chat, id: string, title: string, onGo: (id: string) => void): Promise<void> {
  const isYes = await chat.host.floaters.confirm({ title: "Delete the conversation?", text: `“${title}” will be deleted permanently. Changes made in it stay.`, act: "Delete", isDanger: true });
  if (!isYes) return;
  await chat.sessions.delete(id);
  if (chat.conversation.id.value === id) {
    chat.conversation.begin();
    onGo("");
  }
}

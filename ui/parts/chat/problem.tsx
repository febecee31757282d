/** What went wrong with a message, and its way out. */

import type { Signal } from "@preact/signals";
import type { JSX } from "preact";
import { Button, Icon, type IconName } from "../basic";
import { useHost } from "../host";
import { Told } from "../rows";
import type { Chat } from "./chat";
import { explain, ownWords, type ProblemKind, type WayOut } from "./problems";
import type { Problem, Turn } from "./turn";

const ICONS: Readonly<Record<ProblemKind, IconName>> = {
  offline: "wifi-off", unpaired: "link", setup: "key-round", busy: "hourglass", refused: "shield", limit: "gauge", model: "bot", gone: "circle-alert", idle: "check", other: "circle-alert",
};

interface ProblemProps {
  chat: Chat;
  turn: Signal<Turn>;
  problem: Problem;
  isLast: boolean;
}

export function ProblemCard({ chat, turn, problem, isLast }: ProblemProps): JSX.Element {
  const host = useHost();
  const { kind, title, ways, section } = explain(problem);
  const { said, quoted } = ownWords(problem.message);
  const isTold = title.toLowerCase().startsWith(said.toLowerCase());
  const acts: Readonly<Record<WayOut, JSX.Element | null>> = {
    connect: host.connect ? (
      <Button key="connect" size="small" icon="link" onClick={() => host.connect?.()}>
        Connect…
      </Button>
    ) : null,
    again: isLast ? (
      <Button key="again" size="small" icon="rotate-cw" isDisabled={chat.conversation.isBusy.value} onClick={() => void chat.again(turn)}>
        Try again
      </Button>
    ) : null,
    settings: host.openSettings ? (
      <Button key="settings" size="small" icon="settings" onClick={() => host.openSettings?.(section)}>
        Open the settings
      </Button>
    ) : null,
    "other-model": null, // the model stands beside the box
    new: (
      <Button key="new" size="small" icon="plus" onClick={() => chat.conversation.begin()}>
        New conversation
      </Button>
    ),
    reload: (
      <Button key="reload" size="small" onClick={() => location.reload()}>
        Reload
      </Button>
    ),
  };
  return (
    <section class="k-problem" role="alert" data-kind={kind}>
      <Icon name={ICONS[kind]} />
      <div>
        <strong>{title}</strong>
        {!isTold && <p><Told text={said} /></p>}
        {quoted && (
          <p class="k-problem-quote">
            Its server says: <q>{quoted}</q>
          </p>
        )}
        {problem.hint && !(problem.code === "no_model" && host.openSettings) && (
          <p class="k-quiet">
            <Told text={problem.hint} />
          </p>
        )}
        <div class="k-problem-acts">
          {ways.map((way) => acts[way])}
          {isLast && turn.value.question && (
            <Button size="small" kind="quiet" icon="pencil" onClick={() => chat.write(turn.value.question)}>
              Edit the message
            </Button>
          )}
        </div>
      </div>
    </section>
  );
}

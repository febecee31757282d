/** A first visit: from the index over the model to the first question. */

import { signal, type Signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import type { Client } from "../../client";
import { Button, Icon, IconButton } from "../basic";
import { count } from "../format";
import { resource } from "../resource";
import { IndexState, Progress } from "./indexing";

/** What the steps need to know; one for a shell, so that each view shows the same. */
export class FirstSteps {
  readonly index: IndexState;
  readonly models;
  readonly isDismissed: Signal<boolean>;

  constructor(
    client: Client,
    private readonly keep: { load(name: string): string; save(name: string, text: string): void },
  ) {
    this.index = new IndexState(client);
    this.isDismissed = signal(keep.load(DISMISSED) !== "");
    this.models = resource((abort) => client.get("/models", { signal: abort }));
  }

  /** Ask how the index stands; and for the models, until there was one: that makes a server load what it needs for chats. */
  async load(): Promise<void> {
    const status = this.index.status.load();
    if (!this.keep.load(DISMISSED)) await this.loadModels();
    await status;
  }

  async loadModels(): Promise<void> {
    const models = await this.models.load();
    if (models?.configured) this.keep.save(DISMISSED, "yes");
  }

  /** Whether the vault was read to its end at least once; undefined while that isn't known. */
  get isIndexed(): boolean | undefined {
    const status = this.index.status.data.value;
    return status && !status.index_incomplete;
  }

  get hasModel(): boolean | undefined {
    const models = this.models.data.value;
    return models && models.configured !== "";
  }

  /** Whether there is something to lead to: no index yet, or no model, and nobody said that this is fine. */
  get isNeeded(): boolean {
    if (this.isIndexed === undefined) return false;
    return !this.isIndexed || (this.hasModel === false && !this.isDismissed.value);
  }

  dismiss(): void {
    this.keep.save(DISMISSED, "yes");
    this.isDismissed.value = true;
  }
}

const DISMISSED = "first-steps";
const LOOK_MS = 3_000;

interface CardProps {
  steps: FirstSteps;
  /** Addresses where the shell has them. */
  settings: string | undefined;
  chat: string | undefined;
  onSettings?: () => void;
}

/** The card itself; draw it where `steps.isNeeded()`. */
export function FirstStepsCard({ steps, settings, chat, onSettings }: CardProps): JSX.Element {
  const { index } = steps;
  const status = index.status.data.value;
  useEffect(() => void (steps.models.data.peek() ?? steps.loadModels()), []);
  useEffect(() => {
    if (steps.isIndexed || index.going.value) return undefined;
    const timer = setInterval(() => void index.status.load(), LOOK_MS); // a server that has just started indexes by itself
    return () => clearInterval(timer);
  }, [steps.isIndexed, index.going.value]);
  const notes = status?.notes ?? 0;
  return (
    <section class="k-first" aria-label="First steps">
      <header>
        <div>
          <h2>First steps</h2>
          <p class="k-quiet">Three steps to your first answer.</p>
        </div>
        {steps.isIndexed && <IconButton icon="x" size="small" label="Not now" onClick={() => steps.dismiss()} />}
      </header>
      <ol class="k-plain">
        <Step number={1} title="Index your notes" isDone={steps.isIndexed === true} isNext={!steps.isIndexed}>
          {steps.isIndexed ? (
            <p class="k-quiet">{count(notes, "note")} can be searched.</p>
          ) : (
            <>
              <p class="k-quiet">Makes them searchable by words and by meaning. Everything stays on this computer.</p>
              <Progress state={index} />
              {!index.going.value &&
                (status?.indexing ? (
                  <p role="status">{notes ? `Being indexed right now: ${count(notes, "note")} so far.` : "Being indexed right now."}</p>
                ) : (
                  <Button kind="primary" icon="database" onClick={() => void index.refresh()}>
                    Index now
                  </Button>
                ))}
            </>
          )}
        </Step>
        <Step number={2} title="Choose a model" isDone={steps.hasModel === true} isNext={steps.isIndexed === true && !steps.hasModel}>
          {steps.hasModel ? (
            <p class="k-quiet">{steps.models.data.value?.configured} answers.</p>
          ) : (
            <>
              <p class="k-quiet">It answers questions and proposes changes. A model on this computer costs nothing, and search works without one.</p>
              <Button kind={steps.isIndexed ? "primary" : "plain"} icon="cpu" href={settings} {...(onSettings ? { onClick: onSettings } : {})}>
                Choose a model
              </Button>
            </>
          )}
        </Step>
        <Step number={3} title="Ask your first question" isDone={false} isNext={steps.isIndexed === true && steps.hasModel === true}>
          <p class="k-quiet">The answer cites the lines it comes from.</p>
          {steps.isIndexed === true && steps.hasModel === true && (
            <Button kind="primary" icon="message-square" href={chat}>
              Ask
            </Button>
          )}
        </Step>
      </ol>
    </section>
  );
}

interface StepProps {
  number: number;
  title: string;
  isDone: boolean;
  isNext: boolean;
  children: JSX.Element | (JSX.Element | false)[];
}

function Step({ number, title, isDone, isNext, children }: StepProps): JSX.Element {
  return (
    <li class="k-first-step" data-state={isDone ? "done" : isNext ? "next" : "later"} aria-current={isNext ? "step" : undefined}>
      <span class="k-first-number" aria-hidden="true">
        {isDone ? <Icon name="check" /> : number}
      </span>
      <div>
        <h3>
          {title}
          {isDone && <span class="k-only-read"> (done)</span>}
        </h3>
        {children}
      </div>
    </li>
  );
}

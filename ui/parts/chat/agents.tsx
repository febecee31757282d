/** Scout, Web and Task, and the sheet of notes and rules: what goes with a message, why, and what may be done to it. */

import { useSignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { Button, Chip, Icon, IconButton, Switch, type IconName } from "../basic";
import { count, noteName, sentence, tokens } from "../format";
import { Tabs } from "../tabs";
import type { Chat } from "./chat";
import { ABILITIES, AGENT_LINES, AGENT_NAMES, AGENTS, type Ability, type Agent, type Editable, type NumberName } from "./choice";
import { AskText } from "./composer";
import { LeftOut, NoteReasons } from "./findings";
import { Finder } from "./suggest";

const ICONS: Readonly<Record<Agent, IconName>> = { scout: "binoculars", web: "globe", task: "zap" };

/** The three agents, beside the box; the sheet says more of each. */
export function AgentToggles({ chat }: { chat: Chat }): JSX.Element {
  const { toggles, problems, webProblem } = chat.choice;
  return (
    <div class="k-agents" role="group" aria-label="Agents">
      {AGENTS.map((name) => {
        const problem = name === "web" ? problems.value["web"] : undefined;
        const isOff = name === "web" && webProblem.value !== undefined;
        return (
          <button
            key={name}
            type="button"
            class="k-agent"
            aria-label={AGENT_NAMES[name]}
            aria-pressed={toggles.value[name]}
            aria-disabled={isOff || undefined}
            data-lacking={problem ? "" : undefined}
            title={problem ? sentence(`${problem.error}: ${problem.hint}`) : AGENT_LINES[name]}
            onClick={() => (isOff ? void tryWeb(chat) : flip(chat, name))}
          >
            <Icon name={ICONS[name]} />
            <span>{AGENT_NAMES[name]}</span>
          </button>
        );
      })}
    </div>
  );
}

function flip(chat: Chat, name: Agent): void {
  if (chat.choice.flip(name, chat.options.canRest)) void chat.keepToggles();
  else chat.host.floaters.toast({ text: `${AGENT_NAMES[name] ?? name} stays on: at least one agent is needed` });
}

/** Ask the server once more whether Web may work: it is switched on then, or the reason is told. */
async function tryWeb(chat: Chat): Promise<void> {
  await chat.learn().catch((error: unknown) => chat.fail(error));
  const problem = chat.choice.webProblem.value;
  if (problem) chat.host.floaters.toast({ text: sentence(problem.error), hint: problem.hint });
  else if (!chat.choice.toggles.value.web) flip(chat, "web");
}

const DEPTHS = ["This note", "Direct links", "Links of links", "3 steps"];
/** The same beside a slider. */
const HOPS = ["Current only", "Direct links", "Links of links", "3 hops"];
const EDITS: Readonly<Record<Editable, string>> = { current: "Open note", linked: "And linked notes", context: "All context notes" };
const MAY: Readonly<Record<Ability, string>> = { add: "Add lines", delete: "Replace and delete", create: "Create notes", navigate: "Open notes for me" };

/** The sheet, which folds itself when a message is sent. */
export function ScopeSheet({ chat }: { chat: Chat }): JSX.Element | null {
  const node = useRef<HTMLElement>(null);
  const isOpen = chat.isSheetOpen.value;
  useEffect(() => {
    if (isOpen) node.current?.querySelector<HTMLElement>(".k-finder > input")?.focus({ preventScroll: true });
  }, [isOpen]);
  if (!isOpen) return null;
  const close = (): void => {
    chat.isSheetOpen.value = false;
    document.querySelector<HTMLElement>("button[aria-label='Notes and rules']")?.focus({ preventScroll: true });
  };
  return (
    <section
      ref={node}
      class="k-sheet"
      aria-label="Notes and rules"
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        event.preventDefault();
        event.stopPropagation();
        close();
      }}
    >
      <header class="k-sheet-head">
        <h2>Notes and rules</h2>
        <PresetPicker chat={chat} />
        <IconButton icon="x" size="small" label="Close" onClick={close} />
      </header>
      <div class="k-sheet-columns">
        <div>
          <AgentLines chat={chat} />
          <NotesGroup chat={chat} />
          <RulesGroup chat={chat} />
        </div>
        <GatheredGroup chat={chat} />
      </div>
    </section>
  );
}

function Group({ title, children }: { title: string; children: ComponentChildren }): JSX.Element {
  const id = useId();
  return (
    <div class="k-sheet-group" role="group" aria-labelledby={id}>
      <h3 id={id}>{title}</h3>
      {children}
    </div>
  );
}

function AgentLines({ chat }: { chat: Chat }): JSX.Element {
  const { toggles, problems, webProblem } = chat.choice;
  return (
    <Group title="Agents">
      {AGENTS.map((name) => {
        const problem = name === "web" ? problems.value["web"] : undefined;
        return (
          <div class="k-sheet-line" key={name}>
            <Icon name={ICONS[name]} />
            <div>
              <strong>{AGENT_NAMES[name]}</strong>
              <p class="k-small k-quiet">{AGENT_LINES[name]}</p>
              {problem && <p class="k-small k-warning-text">{sentence(`${problem.error}: ${problem.hint}`)}</p>}
            </div>
            <Switch isOn={toggles.value[name]} label={AGENT_NAMES[name] ?? name} isDisabled={name === "web" && webProblem.value !== undefined} onChange={() => flip(chat, name)} />
          </div>
        );
      })}
      <CheckLine label="Let a model choose the agents and their order" isOn={chat.choice.chosen.value.isRouting} onChange={(isRouting) => chat.choice.set({ isRouting })} />
    </Group>
  );
}

function NotesGroup({ chat }: { chat: Chat }): JSX.Element {
  const { choice, conversation, host } = chat;
  const { depth, isFolder, added, excluded } = choice.chosen.value;
  const deepest = choice.ranges.value["link_depth"]?.[1] ?? 3;
  const depths = DEPTHS.slice(0, deepest + 1).map((title, index) => ({ id: String(index), title }));
  const about = conversation.about.value;
  return (
    <Group title="Notes">
      <div class="k-sheet-field">
        <span class="k-sheet-label">Open note</span>
        {about ? (
          <Chip icon="file-text" onRemove={() => (conversation.about.value = "")} removeLabel={`Remove ${about}`} title={about}>
            {noteName(about)}
          </Chip>
        ) : (
          <p class="k-small k-quiet">None. Unless you add notes below, Scout looks for them.</p>
        )}
        <Finder label="Find a note to start from" client={host.client} kind="note" onPick={(path) => (conversation.about.value = path)} />
      </div>
      {chat.options.hasSliders ? (
        <NumberField chat={chat} name="link_depth" label="Link depth" value={depth} step={1} words={HOPS} onChange={(next) => choice.set({ depth: next })} />
      ) : (
        <div class="k-sheet-field">
          <span class="k-sheet-label">Link depth</span>
          <div class="k-segments">
            <Tabs label="Link depth" tabs={depths} current={String(depth)} onChange={(id) => choice.set({ depth: Number(id) })} />
          </div>
        </div>
      )}
      <NumberLine chat={chat} name="linked_notes" label="Linked notes, at most" />
      <NumberLine chat={chat} name="semantic_notes" label="Notes near in meaning, at most" />
      {choice.numberOf("semantic_notes") > 0 && <NumberLine chat={chat} name="semantic_similarity" label="Their similarity in %, at least" />}
      <CheckLine label="Notes in the same folder" isOn={isFolder} onChange={(next) => choice.set({ isFolder: next })} />
      <PathList
        title="Added notes"
        paths={added}
        icon="file-text"
        onRemove={(path) => choice.set({ added: added.filter((one) => one !== path) })}
      >
        <Finder label="Find a note to add" client={host.client} kind="note" onPick={(path) => choice.add(path)} />
      </PathList>
      <PathList
        title="Excluded folders"
        paths={excluded}
        icon="folder-open"
        hint="Their notes aren't included, and links through them aren't followed."
        onRemove={(path) => choice.set({ excluded: excluded.filter((one) => one !== path) })}
      >
        <Finder
          label="Find a folder to exclude"
          client={host.client}
          kind="folder"
          onPick={(path) => {
            if (!excluded.includes(path)) choice.set({ excluded: [...excluded, path] });
          }}
        />
      </PathList>
    </Group>
  );
}

interface PathListProps {
  title: string;
  paths: readonly string[];
  icon: IconName;
  hint?: string;
  onRemove: (path: string) => void;
  children: ComponentChildren;
}

function PathList({ title, paths, icon, hint, onRemove, children }: PathListProps): JSX.Element {
  const node = useRef<HTMLDivElement>(null);
  const remove = (path: string): void => {
    onRemove(path);
    node.current?.querySelector<HTMLElement>("input")?.focus({ preventScroll: true });
  };
  return (
    <div class="k-sheet-field" ref={node}>
      <span class="k-sheet-label">{title}</span>
      {hint && <p class="k-small k-quiet">{hint}</p>}
      {paths.length > 0 && (
        <ul class="k-chips" aria-label={title}>
          {paths.map((path) => (
            <li key={path}>
              <Chip icon={icon} title={path} onRemove={() => remove(path)} removeLabel={`Remove ${path}`}>
                {icon === "file-text" ? noteName(path) : path}
              </Chip>
            </li>
          ))}
        </ul>
      )}
      {children}
    </div>
  );
}

function RulesGroup({ chat }: { chat: Chat }): JSX.Element {
  const { choice } = chat;
  const { editable, can, limit } = choice.chosen.value;
  const scopes = (Object.keys(EDITS) as Editable[]).map((id) => ({ id, title: EDITS[id] }));
  return (
    <Group title="Rules and limits">
      <div class="k-sheet-field">
        <span class="k-sheet-label">Editable notes</span>
        <div class="k-segments">
          <Tabs label="Editable notes" tabs={scopes} current={editable} onChange={(id) => choice.set({ editable: id })} />
        </div>
      </div>
      <div class="k-sheet-checks">
        {ABILITIES.map((one) => (
          <CheckLine
            key={one}
            label={MAY[one]}
            isOn={can.includes(one)}
            onChange={(isOn) => choice.set({ can: ABILITIES.filter((each) => (each === one ? isOn : can.includes(each))) })}
          />
        ))}
      </div>
      <NumberField chat={chat} name="token_limit" label="Token limit for notes" value={limit} step={1_000} onChange={(next) => choice.set({ limit: next })} />
      {choice.toggles.value.scout && (
        <>
          <NumberLine chat={chat} name="rounds" label="Scout rounds" />
          <NumberLine chat={chat} name="notes" label="Notes Scout may choose" />
        </>
      )}
    </Group>
  );
}

/** A number of `choice.numbers`; not shown where the server doesn't say what is configured. */
function NumberLine({ chat, name, label }: { chat: Chat; name: NumberName; label: string }): JSX.Element | null {
  const { choice } = chat;
  if (!choice.ranges.value[name]) return null;
  return (
    <NumberField
      chat={chat}
      name={name}
      label={label}
      value={choice.numberOf(name)}
      step={1}
      onChange={(next) => choice.set({ numbers: { ...choice.chosen.value.numbers, [name]: next } })}
    />
  );
}

interface NumberFieldProps {
  chat: Chat;
  name: string;
  label: string;
  value: number;
  step: number;
  /** What the numbers are called, from 0 on. */
  words?: readonly string[];
  onChange: (value: number) => void;
}

function NumberField({ chat, name, label, value, step, words, onChange }: NumberFieldProps): JSX.Element {
  const id = useId();
  const [least, most] = chat.choice.ranges.value[name] ?? [0, 0];
  const isSlider = chat.options.hasSliders === true && most > 0 && most <= 100;
  return (
    <div class="k-sheet-number">
      <label for={id}>{label}</label>
      {isSlider && <output for={id}>{words?.[value] ?? value.toLocaleString("en")}</output>}
      <input
        id={id}
        class={isSlider ? "k-range" : "k-input"}
        type={isSlider ? "range" : "number"}
        min={least}
        max={most || undefined}
        step={step}
        value={value}
        aria-valuetext={words?.[value]}
        title={most ? `${least.toLocaleString("en")} to ${most.toLocaleString("en")}` : undefined}
        onChange={(event) => {
          const next = chat.choice.clamp(name, event.currentTarget.valueAsNumber, value);
          event.currentTarget.value = String(next);
          onChange(next);
        }}
      />
    </div>
  );
}

function CheckLine({ label, isOn, onChange }: { label: string; isOn: boolean; onChange: (isOn: boolean) => void }): JSX.Element {
  return (
    <label class="k-sheet-check">
      <input type="checkbox" checked={isOn} onChange={(event) => onChange(event.currentTarget.checked)} />
      <span>{label}</span>
    </label>
  );
}

/** What would go in, counted while somebody chooses. */
function GatheredGroup({ chat }: { chat: Chat }): JSX.Element {
  const found = chat.gathered.data.value;
  const failure = chat.gathered.failure.value;
  const isChat = chat.choice.isChat.value;
  return (
    <div class="k-sheet-gathered">
      <div class="k-sheet-gathered-inside" aria-live="polite">
        <h3>Context</h3>
        {failure && <p class="k-small k-warning-text">{sentence([failure.message, failure.hint].filter(Boolean).join(": "))}</p>}
        {found && !failure && (
          <>
            <p class="k-gathered-size">
              <strong>{count(found.notes.length, "note")}</strong> · {tokens(found.tokens)} tokens
            </p>
            {isChat && found.notes.length > 0 && (
              <p class="k-small k-quiet">
                In plain chat the model finds notes itself.{" "}
                <Button size="small" onClick={() => chat.choice.want()}>
                  Include these notes
                </Button>
              </p>
            )}
            {isChat && !found.notes.length && <p class="k-small k-quiet">In plain chat the model finds notes itself. Choose an open note or add notes to include them.</p>}
            {found.isExplored && !isChat && <p class="k-small k-quiet">Scout adds more once the task starts.</p>}
            <NoteReasons notes={found.notes} />
            <LeftOut notes={found.removed} />
            {found.cut && <p class="k-small k-quiet">Only the beginning of {found.cut} is included.</p>}
            {found.notices
              .filter((text) => !text.startsWith("the token limit"))
              .map((text) => (
                <p class="k-small k-quiet" key={text}>
                  {sentence(text)}
                </p>
              ))}
            {found.notes.length > 0 && (
              <p class="k-finding-acts">
                {chat.options.onContext && (
                  <Button size="small" icon="list" onClick={() => chat.options.onContext?.(found)}>
                    View all context notes
                  </Button>
                )}
                <Button size="small" icon="copy" onClick={() => void chat.copyTexts()}>
                  Copy text
                </Button>
              </p>
            )}
          </>
        )}
      </div>
    </div>
  );
}

function PresetPicker({ chat }: { chat: Chat }): JSX.Element {
  const { floaters } = chat.host;
  const presets = chat.presets.data.value?.results ?? [];
  const used = useSignal("");
  const attempt = (work: Promise<void>, text: string): void => void work.then(() => floaters.toast({ text }), (error: unknown) => chat.fail(error));
  const save = (): void =>
    void floaters.dialog((close) => (
      <AskText
        title="Save as a preset"
        label="Name"
        act="Save"
        value={used.value}
        hint="Saves the current notes, rules and agents. A preset with the same name is replaced."
        onClose={close}
        onText={(name) => {
          close();
          used.value = name;
          attempt(chat.savePreset(name), `${name} saved`);
        }}
      />
    ));
  const remove = (): void => {
    const name = used.value;
    const asked = floaters.confirm({ title: "Delete the preset?", text: `“${name}” will be deleted permanently.`, act: "Delete", isDanger: true });
    void asked.then((isYes) => {
      if (!isYes) return;
      used.value = "";
      attempt(chat.deletePreset(name), `${name} deleted`);
    });
  };
  return (
    <div class="k-presets">
      <select
        class="k-input"
        aria-label="Preset"
        disabled={!presets.length}
        value={used.value}
        onChange={(event) => {
          const found = presets.find((preset) => preset.name === event.currentTarget.value);
          used.value = found?.name ?? "";
          if (found) void chat.takePreset(found);
        }}
      >
        <option value="">{presets.length ? "Presets…" : "No presets yet"}</option>
        {presets.map((preset) => (
          <option key={preset.name} value={preset.name}>
            {preset.name}
          </option>
        ))}
      </select>
      <Button size="small" onClick={save}>
        Save as…
      </Button>
      {used.value && (
        <Button size="small" onClick={remove}>
          Delete
        </Button>
      )}
      {chat.choice.isChosen.value && (
        <Button
          size="small"
          kind="quiet"
          title="Reset to defaults"
          onClick={() => {
            used.value = "";
            chat.choice.reset();
          }}
        >
          Defaults
        </Button>
      )}
    </div>
  );
}

/** What a message is answered with: which agents, which notes, what may be edited, and within which limits. */

import { computed, signal, type ReadonlySignal, type Signal } from "@preact/signals";
import type { Reply } from "../../client";

export const AGENTS = ["scout", "web", "task"] as const;
export type Agent = (typeof AGENTS)[number];
export const ABILITIES = ["add", "delete", "create", "navigate"] as const;
export type Ability = (typeof ABILITIES)[number];
export const EDITABLE = ["current", "linked", "context"] as const;
export type Editable = (typeof EDITABLE)[number];
/** Numbers that a person may set for one task, beside the limit of tokens. */
export const NUMBERS = ["linked_notes", "semantic_notes", "semantic_similarity", "rounds", "notes"] as const;
export type NumberName = (typeof NUMBERS)[number];

export type Toggles = Readonly<Record<Agent, boolean>>;

export interface Chosen {
  depth: number;
  isFolder: boolean;
  excluded: readonly string[];
  added: readonly string[];
  editable: Editable;
  can: readonly Ability[];
  limit: number;
  isRouting: boolean;
  numbers: Readonly<Partial<Record<NumberName, number>>>;
}

type Data = Readonly<Record<string, unknown>>;

export type Preset = Reply<"get", "/presets">["results"][number];

export const AGENT_NAMES: Readonly<Record<string, string>> = { scout: "Scout", web: "Web", task: "Task", orchestrator: "Choosing agents" };
/** One line for each, where it is switched on and off. */
export const AGENT_LINES: Readonly<Record<Agent, string>> = {
  scout: "Searches the vault and chooses the notes that matter",
  web: "Searches the web when the notes don't have the answer",
  task: "Answers, or proposes edits for your review",
};

const USUAL: Chosen = {
  depth: 2, isFolder: false, excluded: [], added: [], editable: "context", can: ABILITIES, limit: 16_000, isRouting: false, numbers: {},
};

export class Choice {
  /** The agents as the person has switched them. */
  readonly wished: Signal<Toggles> = signal({ scout: false, web: false, task: true });
  readonly chosen: Signal<Chosen> = signal(USUAL);
  /** The lowest and highest of each number. */
  readonly ranges: Signal<Readonly<Record<string, readonly [number, number]>>> = signal({});
  /** Why an agent can't work, such as the web that is off: by name, as the server says it. */
  readonly problems: Signal<Readonly<Record<string, { error: string; hint: string }>>> = signal({});
  /** Why Web is off whatever was switched: as the server says it, and as long as it does. */
  readonly webProblem = computed(() => (this.isGuarded ? this.problems.value["web"] : undefined));
  /** The agents that work. */
  readonly toggles: ReadonlySignal<Toggles> = computed(() => (this.webProblem.value ? { ...this.wished.value, web: false } : this.wished.value));
  readonly isLearned = signal(false);
  private readonly usual: Signal<Chosen> = signal(USUAL);
  /** Whether the notes go with the message though nothing else was chosen. */
  private readonly isWanted = signal(false);
  /** Whether agents were switched, or a preset was taken. */
  private isTouched = false;
  /** Whether a preset was taken, which holds as it is. */
  private isTaken = false;
  private isRestored = false;

  /** @param isGuarded Whether Web can't be on where the server doesn't allow it. */
  constructor(private readonly isGuarded = false) {}

  /** Whether notes or rules were chosen, beyond what is configured. */
  readonly isChosen: ReadonlySignal<boolean> = computed(() => this.isWanted.value || !isSame(this.chosen.value, this.usual.value));
  /** Whether a message is a plain turn of the chat: Task works alone, and nothing was chosen. */
  readonly isChat: ReadonlySignal<boolean> = computed(() => {
    const { scout, web, task } = this.toggles.value;
    return task && !scout && !web && !this.isChosen.value;
  });

  /** Take over what the server has configured, and the agents as they were last; never what the person chose meanwhile. */
  learn(defaults: { choice?: unknown; switches?: unknown; ranges?: unknown; problems?: unknown }): void {
    const choice = record(defaults.choice);
    const before = this.usual.value;
    this.usual.value = chosenOf(choice, USUAL);
    this.ranges.value = record(defaults.ranges) as Readonly<Record<string, readonly [number, number]>>;
    this.problems.value = record(defaults.problems) as Readonly<Record<string, { error: string; hint: string }>>;
    this.isLearned.value = true;
    if (!this.isTaken) this.chosen.value = following(this.chosen.value, before, this.usual.value);
    if (!this.isTouched && !this.isRestored) this.wished.value = togglesOf(record(defaults.switches), togglesOf(record(choice["toggles"]), this.wished.value));
  }

  /** Whether no agent is on, so that nothing can be sent; only where `flip` was told that this may be. */
  readonly isResting: ReadonlySignal<boolean> = computed(() => !AGENTS.some((agent) => this.toggles.value[agent]));

  /** Switch an agent; gives false where it is the last one that works, and has to. */
  flip(name: Agent, canRest = false): boolean {
    const next = { ...this.wished.value, [name]: !this.toggles.value[name] };
    if (!canRest && !AGENTS.some((agent) => next[agent])) return false;
    this.isTouched = true;
    this.wished.value = next;
    return true;
  }

  set(changes: Partial<Chosen>): void {
    this.chosen.value = { ...this.chosen.value, ...changes };
  }

  add(path: string): void {
    const { added } = this.chosen.value;
    if (!added.includes(path)) this.set({ added: [...added, path] });
  }

  /** Have the notes go with the message, as they are configured. */
  want(): void {
    this.isWanted.value = true;
  }

  /** Take a preset over, whole. */
  take(preset: Preset): void {
    this.isTouched = this.isTaken = true;
    this.wished.value = togglesOf(preset.toggles, this.wished.value);
    this.chosen.value = { ...chosenOf(preset, USUAL), limit: this.usual.value.limit };
    this.isWanted.value = true;
  }

  /** Set the agents as they were kept; a name that is missing stays as it is. */
  restore(toggles: Data): void {
    this.isRestored = true;
    this.wished.value = togglesOf(toggles, this.wished.value);
  }

  /** Go back to what is configured; the agents stay as they are. */
  reset(): void {
    this.isTaken = false;
    this.chosen.value = this.usual.value;
    this.isWanted.value = false;
  }

  /** A number as it is used: never out of its range. */
  clamp(name: string, value: number, otherwise: number): number {
    const [least, most] = this.ranges.value[name] ?? [0, Number.MAX_SAFE_INTEGER];
    return Math.max(least, Math.min(most || Number.MAX_SAFE_INTEGER, Number.isFinite(value) ? Math.round(value) : otherwise));
  }

  numberOf(name: NumberName): number {
    return this.chosen.value.numbers[name] ?? this.usual.value.numbers[name] ?? 0;
  }

  /** Shape it as `POST /ask` takes it. */
  body(note: string): Record<string, unknown> {
    const { limit, isRouting, numbers } = this.chosen.value;
    return { ...this.preset(), toggles: this.toggles.value, token_limit: limit, orchestrate: isRouting, ...numbers, ...(note ? { note } : {}) };
  }

  /** Shape it as a preset is saved. */
  preset(): { toggles: Toggles; scope: object; rules: object; added: readonly string[] } {
    const { depth, isFolder, excluded, added, editable, can } = this.chosen.value;
    return {
      toggles: this.wished.value,
      scope: { link_depth: depth, include_same_folder: isFolder, excluded_folders: excluded },
      rules: { editable, can },
      added,
    };
  }
}

/** Say in one line what happens to the next message. */
export function whatHappens(toggles: Toggles, isChat: boolean): string {
  if (isChat) return "Plain chat: the model finds notes itself";
  const { scout, web, task } = toggles;
  const finds = [scout && "Scout chooses notes", web && "Web looks further where needed"].filter(Boolean);
  if (!finds.length) return "Task works with the chosen notes";
  const first = finds.join(", ");
  return task ? `${first}, Task answers` : `${first}; nothing is answered, as Task is off`;
}

function chosenOf(data: Data, otherwise: Chosen): Chosen {
  const [scope, rules] = [record(data["scope"]), record(data["rules"])];
  const can = texts(rules["can"]);
  const numbers = NUMBERS.filter((name) => typeof data[name] === "number").map((name): readonly [string, unknown] => [name, data[name]]);
  return {
    depth: number(scope["link_depth"], otherwise.depth),
    isFolder: scope["include_same_folder"] === true,
    excluded: texts(scope["excluded_folders"]) ?? [],
    added: texts(data["added"]) ?? [],
    editable: EDITABLE.find((one) => one === rules["editable"]) ?? otherwise.editable,
    can: ABILITIES.filter((one) => !can || can.includes(one)),
    limit: number(data["token_limit"], otherwise.limit),
    isRouting: data["orchestrate"] === true,
    numbers: Object.fromEntries(numbers),
  };
}

function togglesOf(data: Data, otherwise: Toggles): Toggles {
  const own = (name: Agent) => (typeof data[name] === "boolean" ? data[name] : otherwise[name]);
  return { scout: own("scout"), web: own("web"), task: own("task") };
}

/** What was chosen, where all that nobody changed goes along with what is configured now. */
function following(chosen: Chosen, before: Chosen, usual: Chosen): Chosen {
  const isOwn = (one: unknown, other: unknown): boolean => JSON.stringify(one) !== JSON.stringify(other);
  const own = (Object.keys(chosen) as (keyof Chosen)[]).filter((name) => name !== "numbers" && isOwn(chosen[name], before[name]));
  const numbers = NUMBERS.filter((name) => chosen.numbers[name] !== undefined && isOwn(chosen.numbers[name], before.numbers[name]));
  return {
    ...usual,
    ...Object.fromEntries(own.map((name) => [name, chosen[name]])),
    numbers: { ...usual.numbers, ...Object.fromEntries(numbers.map((name) => [name, chosen.numbers[name]])) },
  };
}

function isSame(one: Chosen, other: Chosen): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

function record(value: unknown): Data {
  return value !== null && typeof value === "object" ? (value as Data) : {};
}

function texts(value: unknown): string[] | undefined {
  return Array.isArray(value) ? value.filter((row): row is string => typeof row === "string") : undefined;
}

function number(value: unknown, otherwise: number): number {
  return typeof value === "number" ? value : otherwise;
}

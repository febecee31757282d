/** Hold what a task is done with: which agents, which notes, what may be edited. */

export const AGENTS = ["scout", "web", "task"];
export const CAN = ["add", "delete", "create", "navigate"];
export const EDITABLE = ["current", "linked", "context"];

export class Choice {
  /** @param {() => void} onChange Called after each change. */
  constructor(onChange) {
    this.onChange = onChange;
    this.toggles = { scout: false, web: false, task: true };
    this.token = { limit: 16_000, least: 3_000, most: 0 };
    this.deepest = 3;
    this.usual = scopeOf({});
    this.isRouting = false;
    this.usuallyRouting = false;
    this.isWanted = false; // whether the notes go with a task though nothing else is chosen
    this.isTouched = false; // whether the person chose something, which isn't changed behind their back
    this.#set(this.usual);
    this.limit = this.token.limit;
  }

  /** Take over what the server has configured, and the switches as they were last. */
  learn({ choice = {}, switches, ranges = {} }) {
    const { token_limit: limit, orchestrate } = choice;
    this.usual = scopeOf(choice);
    this.deepest = ranges.link_depth?.[1] ?? this.deepest;
    const [least, most] = ranges.token_limit ?? [];
    this.token = { limit: limit ?? this.token.limit, least: least ?? this.token.least, most: most ?? 0 };
    this.usuallyRouting = Boolean(orchestrate);
    if (this.isTouched) return this.onChange();
    this.toggles = { ...this.toggles, ...(choice.toggles ?? {}), ...(switches ?? {}) };
    this.reset();
  }

  /** Switch an agent on or off; the last one stays on. Tells whether it was done. */
  flip(name) {
    const next = { ...this.toggles, [name]: !this.toggles[name] };
    if (!AGENTS.some((one) => next[one])) return false;
    this.toggles = next;
    this.#touched();
    return true;
  }

  /** Change some of it. */
  set(changes) {
    Object.assign(this, changes);
    this.#touched();
  }

  /** Take a preset over, whole. */
  take(preset) {
    this.toggles = { ...this.toggles, ...preset.toggles };
    this.#set(scopeOf(preset));
    this.isWanted = true;
    this.#touched();
  }

  /** Go back to what is configured; the switches stay. */
  reset() {
    this.#set(this.usual);
    this.limit = this.token.limit;
    this.isRouting = this.usuallyRouting;
    this.isWanted = false;
    this.onChange();
  }

  /** Whether notes or rules were chosen, beyond what is configured. */
  get isChosen() {
    const now = JSON.stringify(this.#scope());
    const isOther = now !== JSON.stringify(this.usual) || this.limit !== this.token.limit;
    return isOther || this.isRouting || this.isWanted;
  }

  /** Whether a message is a turn of the chat: nothing was chosen, and the task is alone. */
  get isChat() {
    return this.toggles.task && !this.toggles.scout && !this.toggles.web && !this.isChosen;
  }

  /** Shape it as the server takes it. */
  body() {
    return { ...this.#shape(), token_limit: this.limit, orchestrate: this.isRouting };
  }

  /** Shape it as a preset shows itself. */
  preset(name) {
    return { name, ...this.#shape() };
  }

  #touched() {
    this.isTouched = true;
    this.onChange();
  }

  #scope() {
    return {
      link_depth: this.depth,
      include_same_folder: this.isFolder,
      excluded_folders: this.excluded,
      added: this.added,
      editable: this.editable,
      can: this.can,
    };
  }

  #shape() {
    const { added, editable, can, ...scope } = this.#scope();
    return { toggles: this.toggles, scope, rules: { editable, can }, added };
  }

  #set(scope) {
    this.depth = scope.link_depth;
    this.isFolder = scope.include_same_folder;
    this.excluded = [...scope.excluded_folders];
    this.added = [...scope.added];
    this.editable = scope.editable;
    this.can = [...scope.can];
  }
}

/** Read a choice as the server shows it. */
function scopeOf({ scope = {}, rules = {}, added = [] }) {
  return {
    link_depth: scope.link_depth ?? 2,
    include_same_folder: scope.include_same_folder ?? false,
    excluded_folders: [...(scope.excluded_folders ?? [])],
    added: [...added],
    editable: rules.editable ?? "context",
    can: CAN.filter((one) => (rules.can ?? CAN).includes(one)),
  };
}

/** Draw a tab of settings as Obsidian draws what a plugin declares, near enough to look at it and to use it. */

type Row = { name: string; desc?: string; control?: Control; action?: () => void };
type Control = { type: string; key: string; disabled?: boolean; options?: Record<string, string>; min?: number; max?: number; validate?: (value: number) => string | undefined };
type Group = Row & { type?: string; heading?: string; items?: Row[]; emptyState?: string; onDelete?: (at: number) => void; addItem?: { name: string; action: () => void } };
interface Tab {
  getSettingDefinitions(): Group[];
  getControlValue(key: string): unknown;
  setControlValue(key: string, value: unknown): Promise<void>;
}

function add<K extends keyof HTMLElementTagNameMap>(into: HTMLElement, tag: K, cls = "", text = ""): HTMLElementTagNameMap[K] {
  const made = into.appendChild(document.createElement(tag));
  if (cls) made.className = cls;
  made.textContent = text;
  return made;
}

/** Draw the tab into an element, in place of what was there. */
export function drawSettings(tab: Tab, into: HTMLElement): void {
  into.replaceChildren();
  for (const group of tab.getSettingDefinitions()) {
    const box = add(into, "section", "setting-group");
    const head = add(box, "div", "setting-item-heading");
    add(head, "h3", "", group.heading ?? "");
    if (group.addItem) button(head, "+", group.addItem.name, group.addItem.action);
    const items = add(box, "div", "setting-items");
    const rows = group.items ?? [];
    rows.forEach((row, at) => drawRow(tab, row, items, group.onDelete && (() => group.onDelete!(at))));
    if (!rows.length && group.emptyState) add(items, "div", "setting-item setting-empty", group.emptyState);
  }
}

function drawRow(tab: Tab, { name, desc, control, action }: Row, into: HTMLElement, remove?: () => void): void {
  const row = add(into, "div", "setting-item");
  const info = add(row, "div", "setting-item-info");
  add(info, "div", "setting-item-name", name);
  if (desc) add(info, "div", "setting-item-description", desc);
  const side = add(row, "div", "setting-item-control");
  if (remove) button(side, "×", `Delete ${name}`, remove);
  if (action) button(side, "›", name, action);
  if (control) drawControl(tab, name, control, side);
}

function drawControl(tab: Tab, name: string, control: Control, into: HTMLElement): void {
  const value = tab.getControlValue(control.key);
  const made = control.type === "dropdown" ? add(into, "select", "dropdown") : add(into, "input");
  made.setAttribute("aria-label", name);
  made.disabled = control.disabled === true;
  const set = (next: unknown): void => {
    const problem = control.validate?.(next as number);
    if (problem) add(into, "div", "setting-problem", problem);
    else void tab.setControlValue(control.key, next);
  };
  if (made instanceof HTMLSelectElement) {
    for (const [id, title] of Object.entries(control.options ?? {})) add(made, "option", "", title).value = id;
    made.value = String(value);
    made.addEventListener("change", () => set(made.value));
    return;
  }
  made.type = { toggle: "checkbox", slider: "range", number: "number" }[control.type] ?? "text";
  if (control.min !== undefined) [made.min, made.max] = [String(control.min), String(control.max)];
  if (made.type === "checkbox") made.checked = value === true;
  else made.value = String(value);
  if (made.type === "range") into.prepend(Object.assign(document.createElement("span"), { textContent: String(value) }));
  made.addEventListener("input", () => set(made.type === "checkbox" ? made.checked : made.type === "text" ? made.value : Number(made.value)));
}

function button(into: HTMLElement, text: string, label: string, act: () => void): void {
  const made = add(into, "button", "clickable-icon", text);
  made.setAttribute("aria-label", label);
  made.addEventListener("click", act);
}

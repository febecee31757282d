/** What Obsidian adds to each element, as far as the plugin uses it, and what axe finds; for tests in jsdom. */
import axe from "axe-core";

/** The serious findings in what is drawn; jsdom knows no colours, and nothing here is a whole page. */
export async function findings(): Promise<string[]> {
  const { violations } = await axe.run(document.body, { rules: { "color-contrast": { enabled: false }, region: { enabled: false } } });
  return violations.filter(({ impact }) => impact === "serious" || impact === "critical").map(({ id, nodes }) => `${id}: ${nodes[0]?.html ?? ""}`);
}

function append(this: HTMLElement, tag: string, { cls = "", text = "", attr = {} }: { cls?: string; text?: string; attr?: object } = {}) {
  const element = document.createElement(tag);
  element.className = cls;
  element.textContent = text;
  for (const [name, value] of Object.entries(attr)) element.setAttribute(name, String(value));
  return this.appendChild(element);
}
const shortcuts = {
  createEl: append,
  createDiv(this: HTMLElement, options: object) {
    return append.call(this, "div", options);
  },
  createSpan(this: HTMLElement, options: object) {
    return append.call(this, "span", options);
  },
  setAttr: HTMLElement.prototype.setAttribute,
  empty(this: HTMLElement) {
    this.replaceChildren();
  },
  addClass(this: HTMLElement, ...names: string[]) {
    this.classList.add(...names);
  },
  removeClass(this: HTMLElement, ...names: string[]) {
    this.classList.remove(...names);
  },
  hasClass(this: HTMLElement, name: string) {
    return this.classList.contains(name);
  },
};
Object.assign(HTMLElement.prototype, shortcuts);
const free = (tag: string, options?: object) => append.call(document.createElement("div"), tag, options);
Object.assign(window, { createEl: free, createDiv: (options?: object) => free("div", options) });

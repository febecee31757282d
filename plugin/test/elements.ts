/** What Obsidian adds to each element, as far as the plugin uses it; for tests in jsdom. */

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
Object.assign(window, { createDiv: (options: object) => append.call(document.createElement("div"), "div", options) });

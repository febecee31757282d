/**
 * What a browser needs of Obsidian to run the built plugin: an app with a vault behind HTTP, notes in CodeMirror, and the
 * element helpers. In tests alone; it behaves as the app does where the plugin relies on it, and does nothing else.
 */
import * as commands from "@codemirror/commands";
import * as language from "@codemirror/language";
import { markdown } from "@codemirror/lang-markdown";
import * as state from "@codemirror/state";
import * as view from "@codemirror/view";

type Options = { cls?: string; text?: string; attr?: Record<string, unknown> };
const w = window as unknown as Record<string, any>;

function make(tag: string, options: Options = {}): HTMLElement {
  const element = document.createElement(tag);
  if (options.cls) element.className = options.cls;
  if (options.text !== undefined) element.textContent = options.text;
  for (const [name, value] of Object.entries(options.attr ?? {})) element.setAttribute(name, String(value));
  return element;
}
w["createDiv"] = (options?: Options) => make("div", options);
w["createEl"] = make;
w["activeDocument"] = document;
w["activeWindow"] = window;
Object.assign(HTMLElement.prototype, {
  createEl(this: HTMLElement, tag: string, options?: Options) {
    return this.appendChild(make(tag, options));
  },
  createDiv(this: HTMLElement, options?: Options) {
    return this.appendChild(make("div", options));
  },
  createSpan(this: HTMLElement, options?: Options) {
    return this.appendChild(make("span", options));
  },
  empty(this: HTMLElement) {
    this.replaceChildren();
  },
  setText(this: HTMLElement, text: string) {
    this.textContent = text;
  },
  setAttr(this: HTMLElement, name: string, value: unknown) {
    this.setAttribute(name, String(value));
  },
  addClass(this: HTMLElement, ...names: string[]) {
    this.classList.add(...names);
  },
  removeClass(this: HTMLElement, ...names: string[]) {
    this.classList.remove(...names);
  },
  toggleClass(this: HTMLElement, name: string, isOn: boolean) {
    this.classList.toggle(name, isOn);
  },
  hasClass(this: HTMLElement, name: string) {
    return this.classList.contains(name);
  },
  isShown(this: HTMLElement) {
    return this.isConnected;
  },
});

class Events {
  private readonly heard = new Map<string, Set<(...args: any[]) => void>>();
  on(name: string, listener: (...args: any[]) => void) {
    if (!this.heard.has(name)) this.heard.set(name, new Set());
    this.heard.get(name)!.add(listener);
    return { off: () => this.heard.get(name)!.delete(listener) };
  }
  trigger(name: string, ...args: any[]) {
    for (const listener of this.heard.get(name) ?? []) listener(...args);
  }
}
class Component {
  private readonly undo: (() => void)[] = [];
  register(work: () => void) {
    this.undo.push(work);
  }
  registerEvent(event: { off: () => void }) {
    this.register(() => event.off());
  }
  registerDomEvent(element: HTMLElement, name: string, listener: EventListener) {
    element.addEventListener(name, listener);
    this.register(() => element.removeEventListener(name, listener));
  }
  addChild(child: Component) {
    child.onload();
    this.register(() => child.unload());
    return child;
  }
  onload(): unknown {
    return undefined;
  }
  unload() {
    for (const work of this.undo.splice(0).reverse()) work();
  }
}
class TFile {
  constructor(public path: string) {}
}

/** A note in an editor, saved two seconds after the last key, and read anew when its file changes on disk. */
class MarkdownView extends Component {
  mode = "source";
  file: TFile;
  editor: { cm: view.EditorView };
  previewMode = { rerender: () => w["render"]?.() };
  saved: string;
  constructor(
    private readonly app: any,
    file: TFile,
    text: string,
    parent: HTMLElement,
  ) {
    super();
    this.file = file;
    this.saved = text;
    const history = commands.history();
    const extensions = [history, view.keymap.of([...commands.defaultKeymap, ...commands.historyKeymap]), markdown(), view.EditorView.lineWrapping, app.extensions];
    this.editor = { cm: new view.EditorView({ parent, state: state.EditorState.create({ doc: text, extensions }) }) };
  }
  getViewData() {
    return this.editor.cm.state.doc.toString();
  }
  getMode() {
    return this.mode;
  }
  async save() {
    this.saved = this.getViewData();
    await this.app.vault.write(this.file.path, this.saved);
  }
  /** As the app does with a change from outside: only what differs is replaced. */
  async reload() {
    const text: string = (await this.app.vault.read(this.file)).replace(/\r\n?/g, "\n");
    const now = this.getViewData();
    if (text === now || now !== this.saved) return;
    let head = 0;
    while (head < Math.min(text.length, now.length) && text[head] === now[head]) head++;
    let tail = 0;
    while (tail < Math.min(text.length, now.length) - head && text.at(-1 - tail) === now.at(-1 - tail)) tail++;
    this.saved = text;
    this.editor.cm.dispatch({ changes: { from: head, to: now.length - tail, insert: text.slice(head, text.length - tail) } });
  }
}

const secrets = new Map<string, string>();
const workspace = Object.assign(new Events(), {
  leaves: [] as { view: any }[],
  active: null as MarkdownView | null,
  getLeavesOfType: (type: string) => workspace.leaves.filter(({ view }) => (type === "markdown" ? view instanceof MarkdownView : view.getViewType?.() === type)),
  getActiveViewOfType: () => workspace.active,
  getActiveFile: () => workspace.active?.file ?? null,
  onLayoutReady: (work: () => void) => work(),
  getLeaf: () => ({ openFile: (file: TFile) => w["open"](file.path) }),
  async ensureSideLeaf(type: string) {
    const there = workspace.leaves.find(({ view }) => view.getViewType?.() === type);
    if (there) return there;
    const leaf: any = { app };
    leaf.view = app.views[type](leaf);
    document.getElementById("side")!.append(leaf.view.contentEl);
    await leaf.view.onOpen();
    workspace.leaves.push(leaf);
    return leaf;
  },
});
const app: any = {
  workspace,
  views: {},
  commands: {},
  extensions: [],
  secretStorage: { getSecret: (id: string) => secrets.get(id) ?? null, setSecret: (id: string, secret: string) => secrets.set(id, secret) },
  loadLocalStorage: (key: string) => JSON.parse(localStorage.getItem(key) ?? "null"),
  saveLocalStorage: (key: string, value: unknown) => localStorage.setItem(key, JSON.stringify(value)),
  vault: {
    getName: () => "notes",
    getAbstractFileByPath: (path: string) => workspace.leaves.map(({ view }) => view.file).find((file) => file?.path === path) ?? new TFile(path),
    read: async (file: TFile) => (await fetch(`/vault/${encodeURIComponent(file.path)}`)).text(),
    write: async (path: string, text: string) => void (await fetch(`/vault/${encodeURIComponent(path)}`, { method: "PUT", body: text })),
  },
};
class Plugin extends Component {
  constructor(
    public app: any,
    public manifest: any,
  ) {
    super();
  }
  loadData = () => Promise.resolve(null);
  saveData = () => Promise.resolve();
  registerEditorExtension(extension: state.Extension) {
    app.extensions = [app.extensions, extension];
  }
  registerView(type: string, create: unknown) {
    app.views[type] = create;
  }
  registerMarkdownPostProcessor(work: unknown) {
    app.postProcessor = work;
  }
  registerMarkdownCodeBlockProcessor(name: string, work: unknown) {
    (app.blocks ??= {})[name] = work;
  }
  registerObsidianProtocolHandler(_: string, work: unknown) {
    app.link = work;
  }
  addRibbonIcon() {}
  addSettingTab(tab: unknown) {
    app.tab = tab;
  }
  addStatusBarItem() {
    return document.getElementById("status")!;
  }
  addCommand(command: any) {
    app.commands[command.id] = command;
  }
}
class ItemView extends Component {
  app = app;
  contentEl = make("div");
  constructor(public leaf: unknown) {
    super();
  }
}
class Modal extends Component {
  contentEl = make("div", { cls: "modal" });
  constructor(public app: unknown) {
    super();
  }
  setTitle(text: string) {
    this.contentEl.append(make("h2", { text }));
  }
  open() {
    document.body.append(this.contentEl);
    (this as any).onOpen();
  }
  close() {
    this.contentEl.remove();
    (this as any).onClose?.();
  }
}
class Setting {
  root: HTMLElement;
  constructor(into: HTMLElement) {
    this.root = into.appendChild(make("div", { cls: "setting-item" }));
  }
  name = "";
  setName(text: string) {
    this.name = text;
    this.root.append(make("label", { text }));
    return this;
  }
  addText(work: (text: any) => void) {
    const inputEl = this.root.appendChild(make("input", { attr: { "aria-label": this.name } })) as HTMLInputElement;
    const text: any = { inputEl, setPlaceholder: (value: string) => ((inputEl.placeholder = value), text) };
    text.setValue = (value: string) => ((inputEl.value = value), text);
    text.onChange = (heard: (value: string) => void) => (inputEl.addEventListener("input", () => heard(inputEl.value)), text);
    work(text);
    return this;
  }
  addButton(work: (button: any) => void) {
    const element = this.root.appendChild(make("button"));
    const button: any = { setButtonText: (text: string) => ((element.textContent = text), button), setCta: () => (element.classList.add("mod-cta"), button) };
    button.onClick = (heard: () => void) => (element.addEventListener("click", heard), button);
    work(button);
    return this;
  }
}
class Notice {
  constructor(text: string) {
    document.getElementById("notices")!.append(make("div", { cls: "notice", text }));
  }
}
class Tab {
  containerEl = make("div");
  constructor(
    public app: unknown,
    public plugin: unknown,
  ) {}
  update() {}
}
/** As the app's: no rule of the browser stops it, and it can't stream. */
async function requestUrl(asked: { url: string; method?: string; headers?: Record<string, string>; body?: string; contentType?: string }) {
  (w["requests"] ??= []).push(`${asked.method ?? "GET"} ${new URL(asked.url).pathname}`);
  const headers = { ...asked.headers, ...(asked.contentType ? { "content-type": asked.contentType } : {}) };
  const answer = await fetch("/proxy", { method: "POST", body: JSON.stringify({ url: asked.url, method: asked.method ?? "GET", headers, body: asked.body ?? null }) });
  if (answer.status === 502 && answer.headers.get("x-unreachable")) throw new Error("net::ERR_CONNECTION_REFUSED");
  const text = await answer.text();
  return { status: answer.status, text, headers: Object.fromEntries(answer.headers), arrayBuffer: new TextEncoder().encode(text).buffer, get json() { return JSON.parse(text); } };
}
const obsidian = {
  Component, ConfirmationModal: Modal, ItemView, MarkdownRenderChild: Component, MarkdownView, Modal, Notice, Plugin, PluginSettingTab: Tab, Setting, SuggestModal: Modal, TFile, requestUrl,
  MarkdownRenderer: { render: async (_: unknown, text: string, into: HTMLElement) => void into.append(make("p", { text })) },
  Platform: { isMobile: false, isLinux: true },
  setIcon: (element: HTMLElement, icon: string) => element.setAttribute("data-icon", icon),
};
const modules: Record<string, unknown> = { obsidian, "@codemirror/commands": commands, "@codemirror/language": language, "@codemirror/state": state, "@codemirror/view": view };

w["load"] = async (code: string) => {
  const module = { exports: {} as any };
  const load = (name: string) => {
    if (!(name in modules)) throw new Error(`${name} isn't there, as on a phone`);
    return modules[name];
  };
  new Function("module", "exports", "require", code)(module, module.exports, load);
  const begun = performance.now();
  const plugin = new module.exports.default(app, { id: "knapper" });
  await plugin.onload();
  w["onload_ms"] = performance.now() - begun;
  w["plugin"] = plugin;
};
w["app"] = app;
w["open"] = async (path: string) => {
  const parent = document.getElementById("note")!;
  parent.replaceChildren();
  const file = new TFile(path);
  const opened = new MarkdownView(app, file, (await app.vault.read(file)).replace(/\r\n?/g, "\n"), parent);
  workspace.leaves = [...workspace.leaves.filter(({ view }) => !(view instanceof MarkdownView)), { view: opened }];
  workspace.active = opened;
  workspace.trigger("file-open", file);
  workspace.trigger("active-leaf-change");
};
w["run"] = (id: string) => (app.commands[id].callback ?? (() => app.commands[id].editorCallback(null, workspace.active)))();
w["text"] = () => workspace.active!.getViewData();
setInterval(() => void workspace.active?.reload(), 100);

/**
 * What a browser needs of Obsidian to run the built plugin: an app with a vault behind HTTP, notes in CodeMirror, and the
 * element helpers. In tests alone; it behaves as the app does where the plugin relies on it, and does nothing else.
 */
import * as commands from "@codemirror/commands";
import * as language from "@codemirror/language";
import { markdown } from "@codemirror/lang-markdown";
import * as state from "@codemirror/state";
import * as view from "@codemirror/view";
import { ICONS } from "../../ui/parts/icons.data";
import { MarkdownRenderer, ran, sections } from "./renderer";
import { drawSettings } from "./settings-tab";

type Options = { cls?: string; text?: string; attr?: Record<string, unknown> };
const w = window as unknown as Record<string, any>;
const openWindow = window.open.bind(window); // `open` opens a note here

/** Make an element, in the document of whatever it is for: a popout window has one of its own, with classes of its own. */
function make(tag: string, options: Options = {}, owner: Document = document): HTMLElement {
  const element = owner.createElement(tag);
  if (options.cls) element.className = options.cls;
  if (options.text !== undefined) element.textContent = options.text;
  for (const [name, value] of Object.entries(options.attr ?? {})) element.setAttribute(name, String(value));
  return element;
}
w["createDiv"] = (options?: Options) => make("div", options, w["activeDocument"]);
w["createEl"] = (tag: string, options?: Options) => make(tag, options, w["activeDocument"]);
w["createFragment"] = (work: (into: DocumentFragment) => void) => {
  const into = document.createDocumentFragment();
  work(into);
  return into;
};
w["activeDocument"] = document;
w["activeWindow"] = window;
const helpers = {
  createEl(this: HTMLElement, tag: string, options?: Options) {
    return this.appendChild(make(tag, options, this.ownerDocument));
  },
  createDiv(this: HTMLElement, options?: Options) {
    return this.appendChild(make("div", options, this.ownerDocument));
  },
  createSpan(this: HTMLElement, options?: Options) {
    return this.appendChild(make("span", options, this.ownerDocument));
  },
  /** Hear that the element was moved into another window. */
  onWindowMigrated(this: HTMLElement, listener: (win: Window) => void) {
    const node = this as HTMLElement & { migrated?: Set<typeof listener> };
    (node.migrated ??= new Set()).add(listener);
    return () => node.migrated!.delete(listener);
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
};
const extend = (win: typeof globalThis) => Object.assign(win.HTMLElement.prototype, helpers);
extend(globalThis);
Object.assign(DocumentFragment.prototype, { createEl: helpers.createEl, createDiv: helpers.createDiv, createSpan: helpers.createSpan });

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
  registerDomEvent(element: EventTarget, name: string, listener: EventListener, options?: AddEventListenerOptions) {
    element.addEventListener(name, listener, options);
    this.register(() => element.removeEventListener(name, listener, options));
  }
  addChild(child: Component) {
    child.onload();
    this.register(() => child.unload());
    return child;
  }
  load() {
    this.onload();
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
  get extension() {
    return this.path.split(".").at(-1)!;
  }
  get basename() {
    return this.path.split("/").at(-1)!.replace(/\.md$/, "");
  }
}

function makeEditor(parent: HTMLElement, doc: string, more: state.Extension): view.EditorView {
  const keys = view.keymap.of([...commands.defaultKeymap, ...commands.historyKeymap]);
  const extensions = [commands.history(), keys, markdown(), view.EditorView.lineWrapping, view.EditorView.contentAttributes.of({ "aria-label": "Note" }), more];
  return new view.EditorView({ parent, root: parent.ownerDocument, state: state.EditorState.create({ doc, extensions }) });
}
/** An editor of the open note's text that has nothing of the plugin, to compare with: as large, and scrolled for itself. */
w["bare"] = () => makeEditor(document.body.appendChild(make("section", { cls: "bare" })), workspace.active!.getViewData(), []);

/** A note in an editor, saved when the plugin asks for it, and read anew when its file changes on disk. */
class MarkdownView extends Component {
  mode = "source";
  file: TFile;
  editor: any;
  previewMode = { rerender: () => w["render"]?.() };
  saved: string;
  /** Grows with each save: what was read before it isn't what the file has. */
  private saves = 0;
  constructor(
    private readonly app: any,
    file: TFile,
    text: string,
    parent: HTMLElement,
  ) {
    super();
    this.file = file;
    this.saved = text;
    const cm = makeEditor(parent, text, app.extensions);
    const offset = ({ line, ch }: { line: number; ch: number }) => cm.state.doc.line(line + 1).from + ch;
    this.editor = {
      cm,
      lineCount: () => cm.state.doc.lines,
      getLine: (line: number) => cm.state.doc.line(line + 1).text,
      getSelection: () => cm.state.sliceDoc(cm.state.selection.main.from, cm.state.selection.main.to),
      setSelection: (from: any, to: any) => cm.dispatch({ selection: { anchor: offset(from), head: offset(to) }, scrollIntoView: true }),
      replaceSelection: (text: string) => cm.dispatch(cm.state.replaceSelection(text)),
      focus: () => cm.focus(),
    };
  }
  getViewData() {
    return this.editor.cm.state.doc.toString();
  }
  getMode() {
    return this.mode;
  }
  requestSave() {}
  async save() {
    this.saves++;
    this.saved = this.getViewData();
    await this.app.vault.write(this.file.path, this.saved);
    this.saves++;
    this.app.vault.trigger("modify", this.file);
  }
  /** As the app does with a change from outside: what differs is replaced, and merged with what is typed, which is saved then. */
  async reload() {
    const { saves } = this;
    const text: string = (await this.app.vault.read(this.file)).replace(/\r\n?/g, "\n");
    if (text === this.saved || saves % 2 || saves !== this.saves) return;
    const now = this.getViewData();
    const changes = difference(this.saved, text).map(difference(this.saved, now));
    const isDirty = now !== this.saved;
    this.saved = text;
    this.app.vault.trigger("modify", this.file);
    if (!changes.empty) this.editor.cm.dispatch({ changes });
    if (isDirty) await this.save();
    if (this.mode === "preview") w["render"]();
  }
}
function difference(before: string, after: string): state.ChangeSet {
  let head = 0;
  while (head < Math.min(before.length, after.length) && before[head] === after[head]) head++;
  let tail = 0;
  while (tail < Math.min(before.length, after.length) - head && before.at(-1 - tail) === after.at(-1 - tail)) tail++;
  return state.ChangeSet.of({ from: head, to: before.length - tail, insert: after.slice(head, after.length - tail) }, before.length);
}

const secrets = new Map<string, string>();
w["secrets"] = secrets;
const workspace = Object.assign(new Events(), {
  leaves: [] as { view: any }[],
  active: null as MarkdownView | null,
  getLeavesOfType: (type: string) => workspace.leaves.filter(({ view }) => (type === "markdown" && view instanceof MarkdownView) || view.getViewType?.() === type),
  getActiveViewOfType: () => workspace.active,
  getActiveFile: () => workspace.active?.file ?? null,
  onLayoutReady: (work: () => void) => work(),
  /** Where notes were opened, in their order: the tab that was there, or a new one. */
  opened: [] as string[],
  getLeaf: (where: string | false) => ({
    view: null as any,
    async openFile(file: TFile, { eState }: { eState?: { line?: number } } = {}) {
      workspace.opened.push([where || "same", file.path, eState?.line ?? ""].join(" ").trim());
      await w["open"](file.path);
      this.view = workspace.active;
    },
    setEphemeralState: () => undefined,
  }),
  async openLinkText(link: string, _: string, isNew: boolean) {
    workspace.opened.push(`${isNew ? "tab" : "same"} ${link}`);
    await w["open"](link.split("#")[0]);
  },
  async ensureSideLeaf(type: string) {
    const there = workspace.leaves.find(({ view }) => view.getViewType?.() === type);
    if (there) {
      if (there.view.contentEl.ownerDocument === document) document.getElementById("side")!.replaceChildren(there.view.contentEl);
      return there;
    }
    const leaf = makeLeaf();
    await show(leaf, type);
    workspace.leaves.push(leaf);
    return leaf;
  },
});
function makeLeaf(): any {
  const leaf: any = {
    app,
    loadIfDeferred: async () => undefined,
    async detach() {
      workspace.leaves = workspace.leaves.filter((one) => one !== leaf);
      await leaf.view.onClose?.();
      leaf.view.unload?.();
      leaf.view.contentEl.remove();
    },
  };
  return leaf;
}
async function show(leaf: any, type: string): Promise<void> {
  leaf.view = app.views[type](leaf);
  document.getElementById("side")!.replaceChildren(leaf.view.contentEl);
  await leaf.view.onOpen();
}
const app: any = {
  workspace,
  views: {},
  commands: {},
  extensions: [],
  secretStorage: { getSecret: (id: string) => secrets.get(id) ?? null, setSecret: (id: string, secret: string) => secrets.set(id, secret) },
  loadLocalStorage: (key: string) => JSON.parse(localStorage.getItem(key) ?? "null"),
  saveLocalStorage: (key: string, value: unknown) => localStorage.setItem(key, JSON.stringify(value)),
  metadataCache: {
    /** What a test says of the properties of notes. */
    getFileCache: (file: TFile) => ({ frontmatter: (w["properties"] as Record<string, unknown> | undefined)?.[file.path] }),
    getFirstLinkpathDest: (link: string) => {
      const path = (w["paths"] as string[]).find((one) => one === link || one.replace(/\.md$/, "").split("/").at(-1) === link || one === `${link}.md`);
      return path ? new TFile(path) : null;
    },
  },
  setting: {
    open: () => (w["settings_opened"] = true),
    openTabById: () => {
      const root = make("div", { cls: "settings", attr: { role: "dialog", "aria-label": "Settings" } });
      document.body.append(root);
      app.tab.containerEl = root;
      app.tab.update();
    },
  },
  dragManager: {},
  fileManager: { generateMarkdownLink: (file: TFile) => `[[${file.basename}]]` },
  vault: Object.assign(new Events(), {
    getName: () => "notes",
    getAbstractFileByPath: (path: string) => workspace.leaves.map(({ view }) => view.file).find((file) => file?.path === path) ?? new TFile(path),
    read: async (file: TFile) => (await fetch(`/vault/${encodeURIComponent(file.path)}`)).text(),
    cachedRead: async (file: TFile): Promise<string> => app.vault.read(file),
    readBinary: async (file: TFile): Promise<ArrayBuffer> => new TextEncoder().encode(await app.vault.read(file)).buffer,
    process: async (file: TFile, work: (text: string) => string) => {
      const text = work(await app.vault.read(file));
      await app.vault.write(file.path, text);
      return text;
    },
    write: async (path: string, text: string) => void (await fetch(`/vault/${encodeURIComponent(path)}`, { method: "PUT", body: text })),
    getMarkdownFiles: () => (w["paths"] as string[]).map((path) => new TFile(path)),
  }),
};
w["paths"] = [];
class Plugin extends Component {
  constructor(
    public app: any,
    public manifest: any,
  ) {
    super();
  }
  loadData = () => Promise.resolve(JSON.parse(localStorage.getItem("data.json") ?? "null"));
  saveData = (data: unknown) => Promise.resolve(localStorage.setItem("data.json", JSON.stringify(data)));
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
  registerBasesView() {
    return false; // Bases is switched off
  }
  addRibbonIcon(icon: string, title: string, work: () => void) {
    (app.ribbon ??= {})[icon] = { title, work };
    return make("div");
  }
  registerCliHandler(name: string, _: string, __: unknown, work: unknown) {
    (app.cli ??= {})[name] = work;
  }
  registerHoverLinkSource() {}
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
  contentEl = make("div", { cls: "view-content" });
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
    w["activeDocument"].body.append(this.contentEl);
    (this as any).onOpen();
  }
  close() {
    this.contentEl.remove();
    (this as any).onClose?.();
  }
}
/** A box with what was found for what is typed in it; a click chooses. */
class SuggestModal extends Modal {
  private readonly input = make("input", { attr: { "aria-label": "Find", type: "text" } }) as HTMLInputElement;
  private readonly list = make("div", { attr: { role: "listbox", "aria-label": "Found" } });
  setPlaceholder(text: string) {
    this.input.placeholder = text;
  }
  onOpen() {
    this.contentEl.append(this.input, this.list);
    this.input.addEventListener("input", () => void this.find());
    this.input.focus();
    void this.find();
  }
  private async find() {
    const own = this as any;
    const found: unknown[] = await own.getSuggestions(this.input.value);
    const rows = found.map((one) => {
      const row = make("div", { attr: { role: "option" } });
      own.renderSuggestion(one, row);
      row.addEventListener("click", () => (this.close(), own.onChooseSuggestion(one)));
      return row;
    });
    this.list.replaceChildren(...(rows.length ? rows : [make("div", { text: own.emptyStateText ?? "" })]));
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
  private readonly root = make("div", { cls: "notice" });
  constructor(text: string | DocumentFragment) {
    this.root.append(text);
    document.getElementById("notices")!.append(this.root);
  }
  setMessage(text: string) {
    this.root.textContent = text;
    return this;
  }
  hide() {
    this.root.remove();
  }
}
class Menu {
  private readonly root = make("div", { cls: "menu", attr: { role: "menu" } });
  private hidden = () => undefined as unknown;
  addItem(work: (item: any) => void) {
    const row = make("button", { cls: "menu-item", attr: { role: "menuitem" } }) as HTMLButtonElement;
    const item: any = {
      setTitle: (text: string | DocumentFragment) => (row.append(text), item),
      setIcon: () => item,
      setChecked: (isChecked: boolean) => (row.setAttribute("aria-checked", String(isChecked)), row.setAttribute("role", "menuitemradio"), item),
      setDisabled: () => ((row.disabled = true), item),
      setWarning: () => item,
      setIsLabel: () => ((row.disabled = true), item),
      onClick: (heard: () => void) => (row.addEventListener("click", () => (this.root.remove(), this.hidden(), heard())), item),
    };
    work(item);
    this.root.append(row);
    return this;
  }
  addSeparator() {
    this.root.append(make("hr"));
    return this;
  }
  onHide(heard: () => void) {
    this.hidden = heard;
  }
  showAtPosition(_: unknown, owner: Document = document) {
    owner.body.append(this.root);
    this.root.querySelector<HTMLElement>("[role^=menuitem]:not(:disabled)")?.focus();
  }
  showAtMouseEvent(event: MouseEvent) {
    this.showAtPosition(event, event.view?.document);
  }
}
/** As the app's, which has Lucide's icons. */
function getIcon(name: string) {
  const nodes = (ICONS as Record<string, readonly (readonly [string, Record<string, string>])[]>)[name];
  if (!nodes) return null;
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  for (const [tag, attributes] of nodes) {
    const node = document.createElementNS(svg.namespaceURI, tag);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    svg.append(node);
  }
  return svg;
}
class Tab {
  containerEl = make("div");
  constructor(
    public app: unknown,
    public plugin: unknown,
  ) {}
  update() {
    if (this.containerEl.isConnected) drawSettings(this as any, this.containerEl);
  }
}
/** As the app's: no rule of the browser stops it, and it can't stream. */
async function requestUrl(asked: { url: string; method?: string; headers?: Record<string, string>; body?: string; contentType?: string }) {
  const name = `${asked.method ?? "GET"} ${new URL(asked.url).pathname}`;
  (w["requests"] ??= []).push(name);
  const waiting: string[] = (w["asking"] ??= []); // those without an answer yet
  waiting.push(name);
  const headers = { ...asked.headers, ...(asked.contentType ? { "content-type": asked.contentType } : {}) };
  const body = JSON.stringify({ url: asked.url, method: asked.method ?? "GET", headers, body: asked.body ?? null });
  const answer = await fetch("/proxy", { method: "POST", body }).finally(() => waiting.splice(waiting.indexOf(name), 1));
  if (answer.status === 502 && answer.headers.get("x-unreachable")) throw new Error("net::ERR_CONNECTION_REFUSED");
  const text = await answer.text();
  return { status: answer.status, text, headers: Object.fromEntries(answer.headers), arrayBuffer: new TextEncoder().encode(text).buffer, get json() { return JSON.parse(text); } };
}
const obsidian = {
  getIcon, Menu,
  BasesView: Component, Component, ConfirmationModal: Modal, ItemView, MarkdownRenderChild: Component, MarkdownRenderer, MarkdownView, Modal, Notice, Plugin, PluginSettingTab: Tab, Setting, SuggestModal, TFile, requestUrl,
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
/** Rename a note, as the file explorer does: the file is moved already. */
w["rename"] = (before: string, path: string) => {
  w["paths"] = (w["paths"] as string[]).map((one) => (one === before ? path : one));
  for (const { view } of workspace.leaves) if (view.file?.path === before) view.file.path = path;
  app.vault.trigger("rename", new TFile(path), before);
};
/** Unload the plugin, as the app does when it is switched off. */
w["unload"] = async () => {
  for (const leaf of workspace.leaves.filter(({ view }) => view.getViewType)) await (leaf as any).detach();
  (w["plugin"] as any).unload();
  (w["plugin"] as any).onunload?.();
};
w["app"] = app;
w["ran"] = ran;
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
/** How late a changed file is read anew: the app is told by the system, sooner or later. */
w["late_ms"] = 100;
const watch = async (): Promise<void> => {
  for (const { view } of workspace.leaves) if (view instanceof MarkdownView) await view.reload();
  setTimeout(() => void watch(), w["late_ms"]);
};
void watch();
/** A tab that was open when the app was closed: its view is made when somebody looks at it, and till then another stands there. */
w["defer"] = (type: string, path = "") => {
  const leaf = makeLeaf();
  leaf.view = { getViewType: () => type, contentEl: make("div"), file: path ? new TFile(path) : null };
  leaf.isDeferred = true;
  leaf.loadIfDeferred = async () => {
    leaf.isDeferred = false;
    leaf.loadIfDeferred = async () => undefined;
    await show(leaf, type);
  };
  workspace.leaves.push(leaf);
};
/** Move a view of the plugin, or the open note, into a window of its own, which has the focus then. */
w["popout"] = (type: string) => {
  const win = openWindow("", "", "popup,width=620,height=760")! as Window & typeof globalThis;
  extend(win);
  for (const sheet of document.querySelectorAll("style, link")) win.document.head.append(win.document.importNode(sheet, true));
  win.document.title = "Popout";
  win.document.documentElement.lang = "en";
  win.document.body.className = document.body.className;
  const { view: shown } = workspace.leaves.find(({ view }) => view.getViewType?.() === type || (type === "markdown" && view === workspace.active))!;
  const moved: HTMLElement = shown.contentEl ?? shown.editor.cm.dom;
  win.document.body.style.display = "block";
  win.document.body.append(moved);
  if (type === "markdown") shown.editor.cm.setRoot(win.document);
  for (const node of [moved, ...moved.querySelectorAll("*")]) for (const heard of (node as any).migrated ?? []) heard(win);
  w["activeDocument"] = win.document;
  w["activeWindow"] = win;
};
/** Show the open note in a second pane too, which becomes the active one. */
w["split"] = async () => {
  const { file } = workspace.active!;
  const pane = document.getElementById("note")!.appendChild(make("section"));
  workspace.active = new MarkdownView(app, file, (await app.vault.read(file)).replace(/\r\n?/g, "\n"), pane);
  workspace.leaves.push({ view: workspace.active });
  workspace.trigger("layout-change");
};
/** Show the open note in reading view, block by block, as the app does. */
w["read"] = async () => {
  const { file } = workspace.active!;
  const draw = async () => {
    const text: string = (await app.vault.read(file)).replace(/\r\n?/g, "\n");
    const shown = make("div", { cls: "markdown-reading-view" });
    for (const { lineStart, lineEnd, language, source } of sections(text)) {
      const element = shown.appendChild(make("div", { cls: "el" }));
      const context = { sourcePath: file.path, getSectionInfo: () => ({ text, lineStart, lineEnd }), addChild: () => undefined };
      if (app.blocks[language]) app.blocks[language](source, element.appendChild(make("div")), context);
      else await MarkdownRenderer.render(app, text.split("\n").slice(lineStart, lineEnd + 1).join("\n"), element);
      app.postProcessor(element, context);
    }
    document.getElementById("note")!.replaceChildren(shown);
  };
  w["render"] = () => void draw();
  workspace.active!.mode = "preview";
  await draw();
};

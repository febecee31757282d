/** What the views that are drawn of the shared parts have in common: their root, the shell, and the connection's state. */

import { type ReadonlySignal, signal } from "@preact/signals";
import { ItemView, TFile, type WorkspaceLeaf } from "obsidian";
import { type ComponentChildren, type JSX, render } from "preact";
import { Button } from "../../ui/parts/basic";
import { Dialogs } from "../../ui/parts/floating";
import { HostContext } from "../../ui/parts/host";
import { type ConnectionState, describeState } from "./connection";
import type { AppHost } from "./host";
import type KnapperPlugin from "./main";

/** Who asks for previews, in Obsidian's settings of its page preview. */
export const HOVER_SOURCE = "knapper";

/** The row or link of a note that was pointed at. */
function noteAt(target: EventTarget | null): HTMLElement | null {
  return (target as Partial<Element> | null)?.closest?.("[data-note]") as HTMLElement | null;
}

/** A view of the plugin that Preact draws. */
export abstract class DrawnView extends ItemView {
  override navigation = false;
  protected readonly state: ReadonlySignal<ConnectionState>;
  private readonly kept = signal<ConnectionState>({ kind: "unpaired" });
  protected readonly host: AppHost;

  constructor(
    leaf: WorkspaceLeaf,
    protected readonly plugin: KnapperPlugin,
  ) {
    super(leaf);
    this.host = plugin.host.forView();
    this.state = this.kept;
  }

  protected abstract draw(): JSX.Element;

  /** Called each time the server can be reached: at the beginning, and after it was lost. */
  protected abstract refill(): void;

  protected override onOpen(): Promise<void> {
    const { host } = this;
    const { connection } = this.plugin;
    this.contentEl.addClass("knapper", "knapper-view");
    this.kept.value = connection.state;
    this.register(
      connection.on("state", (state) => {
        const isReadyNow = state.kind === "ready" && this.kept.value.kind !== "ready";
        this.kept.value = state;
        if (isReadyNow) this.refill();
      }),
    );
    // Obsidian's own keys come first: only what the view knows is taken.
    this.registerDomEvent(this.contentEl, "keydown", (event) => void host.shortcuts.take(event));
    this.registerDomEvent(this.contentEl, "mouseover", (event) => this.preview(event));
    this.registerDomEvent(this.contentEl, "pointerdown", ({ target }) => void noteAt(target)?.setAttribute("draggable", "true"));
    this.registerDomEvent(this.contentEl, "dragstart", (event) => this.drag(event));
    const Drawn = () => this.draw();
    render(
      <HostContext.Provider value={host}>
        <State plugin={this.plugin} state={this.state} />
        <Drawn />
        <Dialogs floaters={host.floaters} />
      </HostContext.Provider>,
      this.contentEl,
    );
    if (connection.isReady) this.refill();
    return Promise.resolve();
  }

  /** Have Obsidian's own preview shown of the note that is pointed at. */
  private preview(event: MouseEvent): void {
    const target = noteAt(event.target);
    const from = event.relatedTarget instanceof Node ? event.relatedTarget : null;
    if (!target || target.contains(from)) return;
    this.app.workspace.trigger("hover-link", { event, source: HOVER_SOURCE, hoverParent: this, targetEl: target, linktext: target.dataset["note"], sourcePath: "" });
  }

  /** Drag a note out of a list: into a note it goes as a link. */
  private drag(event: DragEvent): void {
    const path = noteAt(event.target)?.dataset["note"];
    const file = path === undefined ? null : this.app.vault.getAbstractFileByPath(path);
    if (!(file instanceof TFile)) return;
    event.dataTransfer?.setData("text/plain", this.app.fileManager.generateMarkdownLink(file, ""));
  }

  protected override onClose(): Promise<void> {
    render(null, this.contentEl);
    return Promise.resolve();
  }
}

/** Says why the server isn't there, and offers what helps. */
function State({ plugin, state }: { plugin: KnapperPlugin; state: ReadonlySignal<ConnectionState> }): JSX.Element | null {
  const { kind } = state.value;
  if (kind === "ready" || kind === "connecting") return null;
  const canConnect = kind === "unpaired" || kind === "revoked" || kind === "other_vault";
  return (
    <div class="knapper-banner" role="status">
      <span>{describeState(state.value)}</span>
      <Button size="small" onClick={() => (canConnect ? plugin.connect() : plugin.connection.start())}>
        {canConnect ? "Connect…" : "Try now"}
      </Button>
    </div>
  );
}

/** The row at the top of a view, with its buttons. */
export function ViewHead({ children }: { children: ComponentChildren }): JSX.Element {
  return <div class="knapper-head">{children}</div>;
}

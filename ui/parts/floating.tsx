/** What floats over a view: dialogs, menus, toasts. `Floating` draws them all, once, at the root of the shell. */

import { signal, type Signal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useLayoutEffect, useRef } from "preact/hooks";
import { Button, Icon, IconButton, Keys, type IconName } from "./basic";

interface ShownDialog {
  id: number;
  draw: (close: () => void) => JSX.Element;
  onClose: () => void;
}

export interface Toast {
  text: string;
  /** The next step. */
  hint?: string;
  tone?: "added" | "removed";
  /** A button beside it, such as Undo. */
  act?: { title: string; run: () => void };
}

export interface MenuItem {
  title: string;
  icon?: IconName;
  keys?: string;
  tone?: "danger";
  isDisabled?: boolean;
  isChecked?: boolean;
  run: () => void;
}

interface ShownMenu {
  id: number;
  items: readonly (MenuItem | "line")[];
  label: string;
  at: { left: number; top: number; bottom: number };
  back: HTMLElement | null;
}

const TOAST_MS = 6_000;
const PROBLEM_MS = 12_000;

/** Holds what floats in one shell. */
export class Floaters {
  readonly dialogs: Signal<readonly ShownDialog[]> = signal([]);
  readonly toasts: Signal<readonly (Toast & { id: number })[]> = signal([]);
  readonly menu: Signal<ShownMenu | null> = signal(null);
  private next = 1;

  /** Show a dialog; resolves when it is closed. */
  dialog(draw: (close: () => void) => JSX.Element): Promise<void> {
    return new Promise((resolve) => {
      const id = this.next++;
      this.dialogs.value = [...this.dialogs.value, { id, draw, onClose: resolve }];
    });
  }

  /** Ask before something is done; gives whether it may be. */
  async confirm(asked: { title: string; text: ComponentChildren; act: string; isDanger?: boolean }): Promise<boolean> {
    let isYes = false;
    await this.dialog((close) => (
      <FormDialog
        title={asked.title}
        act={asked.act}
        kind={asked.isDanger ? "danger" : "primary"}
        onClose={close}
        onDone={() => {
          isYes = true;
          close();
        }}
      >
        {asked.text}
      </FormDialog>
    ));
    return isYes;
  }

  closeDialog(id: number): void {
    const shown = this.dialogs.value.find((dialog) => dialog.id === id);
    this.dialogs.value = this.dialogs.value.filter((dialog) => dialog.id !== id);
    shown?.onClose();
  }

  toast(toast: Toast): void {
    const id = this.next++;
    this.toasts.value = [...this.toasts.value.slice(-2), { ...toast, id }];
    setTimeout(() => this.closeToast(id), toast.tone === "removed" || toast.act ? PROBLEM_MS : TOAST_MS);
  }

  closeToast(id: number): void {
    this.toasts.value = this.toasts.value.filter((toast) => toast.id !== id);
  }

  /** Show a menu below whatever was clicked. */
  openMenu(event: Event, label: string, items: readonly (MenuItem | "line")[]): void {
    const from = event.currentTarget instanceof HTMLElement ? event.currentTarget : null;
    const box = from?.getBoundingClientRect();
    const isContext = event instanceof MouseEvent && event.type === "contextmenu";
    const at =
      isContext || !box
        ? { left: (event as MouseEvent).clientX, top: (event as MouseEvent).clientY, bottom: (event as MouseEvent).clientY }
        : { left: box.left, top: box.top, bottom: box.bottom };
    event.preventDefault();
    this.menu.value = { id: this.next++, items, label, at, back: from };
  }

  closeMenu(): void {
    const back = this.menu.value?.back;
    this.menu.value = null;
    back?.focus({ preventScroll: true });
  }
}

/** Draw all that floats. */
export function Floating({ floaters }: { floaters: Floaters }): JSX.Element {
  const menu = floaters.menu.value;
  return (
    <>
      {floaters.dialogs.value.map((shown) => (
        <Modal key={shown.id} onClose={() => floaters.closeDialog(shown.id)}>
          {shown.draw(() => floaters.closeDialog(shown.id))}
        </Modal>
      ))}
      {menu && <Menu key={menu.id} menu={menu} onClose={() => floaters.closeMenu()} />}
      <Toasts floaters={floaters} />
    </>
  );
}

interface ModalProps {
  onClose: () => void;
  children: ComponentChildren;
  class?: string;
  size?: "normal" | "wide";
}

/** The browser's own modal dialog: it holds the focus, and gives it back where it was. */
export function Modal({ onClose, children, class: name = "", size }: ModalProps): JSX.Element {
  const node = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const dialog = node.current;
    const before = document.activeElement;
    if (dialog && !dialog.open) {
      dialog.showModal();
      // Where somebody goes on: a field, what confirms, or else the dialog itself, rather than the button that closes it.
      const first = dialog.querySelector<HTMLElement>("input, textarea, select, .k-dialog-acts > [data-kind=primary]");
      (first ?? dialog.querySelector<HTMLElement>(".k-dialog-acts > button") ?? dialog).focus();
    }
    return () => {
      dialog?.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus({ preventScroll: true });
    };
  }, []);
  return (
    <dialog
      ref={node}
      class={`k-dialog ${name}`}
      tabIndex={-1}
      data-size={size}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onMouseDown={(event) => {
        if (event.target === node.current) onClose();
      }}
    >
      {children}
    </dialog>
  );
}

interface DialogFrameProps {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  acts?: ComponentChildren;
}

/** Head, body and buttons of a dialog. */
export function DialogFrame({ title, onClose, children, acts }: DialogFrameProps): JSX.Element {
  const id = useId();
  const head = useRef<HTMLDivElement>(null);
  useEffect(() => {
    head.current?.closest("dialog")?.setAttribute("aria-labelledby", id);
  }, [id]);
  return (
    <>
      <div class="k-dialog-head" ref={head}>
        <h2 id={id}>{title}</h2>
        <IconButton icon="x" label="Close" size="small" onClick={onClose} />
      </div>
      <div class="k-dialog-body">{children}</div>
      {acts && <div class="k-dialog-acts">{acts}</div>}
    </>
  );
}

interface FormDialogProps extends Omit<DialogFrameProps, "acts"> {
  /** What the button says that does it. */
  act: string;
  kind?: "primary" | "danger";
  isDisabled?: boolean;
  onDone: () => void;
}

/** A dialog that asks for something; Enter in a field does what its button does. */
export function FormDialog({ title, act, kind = "primary", isDisabled = false, onClose, onDone, children }: FormDialogProps): JSX.Element {
  return (
    <DialogFrame
      title={title}
      onClose={onClose}
      acts={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind={kind} isDisabled={isDisabled} onClick={onDone}>
            {act}
          </Button>
        </>
      }
    >
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (!isDisabled) onDone();
        }}
      >
        {children}
      </form>
    </DialogFrame>
  );
}

function Menu({ menu, onClose }: { menu: ShownMenu; onClose: () => void }): JSX.Element {
  const node = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const box = node.current;
    if (!box) return;
    box.showPopover?.();
    const { width, height } = box.getBoundingClientRect();
    const left = Math.max(8, Math.min(menu.at.left, innerWidth - width - 8));
    const below = menu.at.bottom + 4;
    const top = below + height > innerHeight - 8 ? Math.max(8, menu.at.top - height - 4) : below;
    box.style.left = `${left}px`;
    box.style.top = `${top}px`;
    box.querySelector<HTMLElement>("[role^=menuitem]:not(:disabled)")?.focus();
    const outside = (event: Event) => {
      if (!box.contains(event.target as Node)) onClose();
    };
    document.addEventListener("pointerdown", outside, true);
    addEventListener("resize", onClose);
    return () => {
      document.removeEventListener("pointerdown", outside, true);
      removeEventListener("resize", onClose);
    };
  }, []);

  const onKeyDown = (event: KeyboardEvent): void => {
    const items = [...(node.current?.querySelectorAll<HTMLElement>("[role^=menuitem]:not(:disabled)") ?? [])];
    const index = items.indexOf(document.activeElement as HTMLElement);
    const steps: Record<string, number> = { ArrowDown: index + 1, ArrowUp: index - 1, Home: 0, End: -1 };
    const step = steps[event.key];
    if (step !== undefined) items.at(step % items.length)?.focus();
    else if (event.key === "Escape" || event.key === "Tab") onClose();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  return (
    <div ref={node} class="k-menu" role="menu" aria-label={menu.label} popover="manual" onKeyDown={onKeyDown}>
      {menu.items.map((item, index) =>
        item === "line" ? (
          <div class="k-menu-line" role="separator" key={index} />
        ) : (
          <button
            type="button"
            key={index}
            class="k-menu-item"
            role={item.isChecked === undefined ? "menuitem" : "menuitemradio"}
            aria-checked={item.isChecked}
            data-tone={item.tone}
            disabled={item.isDisabled ?? false}
            tabIndex={-1}
            onClick={() => {
              onClose();
              item.run();
            }}
          >
            {item.icon && <Icon name={item.icon} />}
            <span class="k-cut">{item.title}</span>
            {item.isChecked && <Icon name="check" />}
            {item.keys && <Keys keys={item.keys} />}
          </button>
        ),
      )}
    </div>
  );
}

function Toasts({ floaters }: { floaters: Floaters }): JSX.Element {
  return (
    <div class="k-toasts" role="status" aria-live="polite">
      {floaters.toasts.value.map((toast) => (
        <div class="k-toast" key={toast.id} data-tone={toast.tone}>
          <Icon name={toast.tone === "removed" ? "circle-alert" : "circle-check"} />
          <div>
            {toast.text}
            {toast.hint && <div class="k-quiet k-small">{toast.hint}</div>}
          </div>
          {toast.act && (
            <Button
              kind="quiet"
              size="small"
              onClick={() => {
                floaters.closeToast(toast.id);
                toast.act?.run();
              }}
            >
              {toast.act.title}
            </Button>
          )}
          <IconButton icon="x" size="small" label="Dismiss" onClick={() => floaters.closeToast(toast.id)} />
        </div>
      ))}
    </div>
  );
}

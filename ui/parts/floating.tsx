/** What floats over a view. Dialogs are drawn here for every shell; menus and toasts are each shell's own. */

import { signal, type Signal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useLayoutEffect, useRef } from "preact/hooks";
import { Button, IconButton, type IconName } from "./basic";

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

/** Holds what floats in one shell. */
export abstract class Floaters {
  readonly dialogs: Signal<readonly ShownDialog[]> = signal([]);
  protected next = 1;

  /** Whether something is open that has the keys. */
  get isOpen(): boolean {
    return this.dialogs.value.length > 0;
  }

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

  /** Say something that needs no answer. */
  abstract toast(toast: Toast): void;

  /** Show a menu below whatever was clicked. */
  abstract openMenu(event: Event, label: string, items: readonly (MenuItem | "line")[]): void;
}

/** Draw the dialogs that are open. */
export function Dialogs({ floaters }: { floaters: Floaters }): JSX.Element {
  return (
    <>
      {floaters.dialogs.value.map((shown) => (
        <Modal key={shown.id} onClose={() => floaters.closeDialog(shown.id)}>
          {shown.draw(() => floaters.closeDialog(shown.id))}
        </Modal>
      ))}
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

/** What floats in the page beside dialogs: menus and toasts. Obsidian has its own, so that the plugin doesn't have these. */

import { signal, type Signal } from "@preact/signals";
import type { JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { Button, Icon, IconButton, Keys } from "./basic";
import { Dialogs, Floaters, type MenuItem, type Toast } from "./floating";
import { sentence } from "./format";

interface ShownMenu {
  id: number;
  items: readonly (MenuItem | "line")[];
  label: string;
  at: { left: number; top: number; bottom: number };
  back: HTMLElement | null;
}

const TOAST_MS = 6_000;
const PROBLEM_MS = 12_000;

/** The page's floaters. */
export class PageFloaters extends Floaters {
  readonly toasts: Signal<readonly (Toast & { id: number })[]> = signal([]);
  readonly menu: Signal<ShownMenu | null> = signal(null);

  override get isOpen(): boolean {
    return super.isOpen || this.menu.value !== null;
  }

  override toast(toast: Toast): void {
    const id = this.next++;
    this.toasts.value = [...this.toasts.value.slice(-2), { ...toast, id }];
    setTimeout(() => this.closeToast(id), toast.tone === "removed" || toast.act ? PROBLEM_MS : TOAST_MS);
  }

  closeToast(id: number): void {
    this.toasts.value = this.toasts.value.filter((toast) => toast.id !== id);
  }

  override openMenu(event: Event, label: string, items: readonly (MenuItem | "line")[]): void {
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

/** Draw all that floats, once, at the root of the shell. */
export function Floating({ floaters }: { floaters: PageFloaters }): JSX.Element {
  const menu = floaters.menu.value;
  return (
    <>
      <Dialogs floaters={floaters} />
      {menu && <Menu key={menu.id} menu={menu} onClose={() => floaters.closeMenu()} />}
      <Toasts floaters={floaters} />
    </>
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

function Toasts({ floaters }: { floaters: PageFloaters }): JSX.Element {
  return (
    <div class="k-toasts" role="status" aria-live="polite">
      {floaters.toasts.value.map((toast) => (
        <div class="k-toast" key={toast.id} data-tone={toast.tone}>
          <Icon name={toast.tone === "removed" ? "circle-alert" : "circle-check"} />
          <div>
            {toast.text}
            {toast.hint && <div class="k-quiet k-small">{sentence(toast.hint)}</div>}
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

/** The smallest parts: icons, buttons, chips, fields, keys. */

import type { ComponentChildren, JSX, Ref } from "preact";
import { createElement } from "preact";
import { useId } from "preact/hooks";
import { ICONS, type IconNode } from "./icons.data";

export type IconName = keyof typeof ICONS;

interface IconProps {
  name: IconName;
  size?: 16 | 20;
  /** What it says where no text stands beside it. */
  label?: string;
}

/** A Lucide icon, as elements. */
export function Icon({ name, size = 16, label }: IconProps): JSX.Element {
  const nodes: readonly IconNode[] = ICONS[name];
  return (
    <svg
      class="k-icon"
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      stroke-linecap="round"
      stroke-linejoin="round"
      {...(label ? { role: "img", "aria-label": label } : { "aria-hidden": "true" as const })}
    >
      {nodes.map(([tag, attributes]) => createElement(tag, attributes))}
    </svg>
  );
}

interface ButtonProps {
  children?: ComponentChildren;
  icon?: IconName;
  kind?: "plain" | "primary" | "quiet" | "danger";
  size?: "small" | "normal";
  onClick?: (event: MouseEvent) => void;
  /** Makes it a link. */
  href?: string | undefined;
  type?: "button" | "submit";
  isDisabled?: boolean;
  /** For buttons that stay pressed. */
  isPressed?: boolean;
  isExpanded?: boolean;
  title?: string;
  /** What it does, where the text alone doesn't say it. */
  label?: string;
  buttonRef?: Ref<HTMLButtonElement>;
}

export function Button(props: ButtonProps): JSX.Element {
  const { children, icon, kind = "plain", size = "normal", href, onClick, label, title } = props;
  const shown = {
    class: "k-button",
    "data-kind": kind,
    "data-size": size,
    "data-shape": children === undefined ? "icon" : undefined,
    "aria-label": label,
    title,
    onClick,
  };
  const inside = (
    <>
      {icon && <Icon name={icon} />}
      {children}
    </>
  );
  if (href !== undefined) {
    return (
      <a {...shown} href={href}>
        {inside}
      </a>
    );
  }
  return (
    <button
      {...shown}
      ref={props.buttonRef ?? null}
      type={props.type ?? "button"}
      disabled={props.isDisabled ?? false}
      aria-pressed={props.isPressed}
      aria-expanded={props.isExpanded}
    >
      {inside}
    </button>
  );
}

/** A button of an icon alone; its label is its tooltip too. */
export function IconButton(props: Omit<ButtonProps, "children" | "label"> & { icon: IconName; label: string }): JSX.Element {
  return <Button kind="quiet" title={props.label} {...props} />;
}

/** Keys as a person reads them: `mod+k` is ⌘ K on a Mac, and Ctrl K elsewhere. */
export function Keys({ keys }: { keys: string }): JSX.Element {
  return (
    <>
      {keyNames(keys).map((name) => (
        <kbd class="k-kbd" key={name}>
          {name}
        </kbd>
      ))}
    </>
  );
}

export const isMac: boolean = /Mac|iPhone|iPad/.test(window.navigator.userAgent);

const KEY_NAMES: Readonly<Record<string, string>> = {
  mod: isMac ? "⌘" : "Ctrl",
  alt: isMac ? "⌥" : "Alt",
  shift: isMac ? "⇧" : "Shift",
  enter: "Enter",
  escape: "Esc",
  arrowup: "↑",
  arrowdown: "↓",
  arrowleft: "←",
  arrowright: "→",
  " ": "Space",
};

export function keyNames(keys: string): string[] {
  return keys.split(/[+ ](?=.)/).map((key) => KEY_NAMES[key] ?? (key.length === 1 ? key.toUpperCase() : key));
}

export type Tone = "plain" | "accent" | "added" | "removed" | "warning" | "info";

interface ChipProps {
  children: ComponentChildren;
  icon?: IconName;
  tone?: Tone;
  isPressed?: boolean;
  onClick?: () => void;
  /** Adds a button that takes the chip away; the text says what that does. */
  onRemove?: () => void;
  removeLabel?: string;
  title?: string;
}

export function Chip({ children, icon, tone = "plain", isPressed, onClick, onRemove, removeLabel, title }: ChipProps): JSX.Element {
  const inside = (
    <>
      {icon && <Icon name={icon} />}
      <span class="k-cut">{children}</span>
    </>
  );
  if (onClick) {
    return (
      <button type="button" class="k-chip" data-tone={tone} aria-pressed={isPressed} title={title} onClick={onClick}>
        {inside}
      </button>
    );
  }
  return (
    <span class="k-chip" data-tone={tone} title={title}>
      {inside}
      {onRemove && (
        <button type="button" class="k-chip-remove" aria-label={removeLabel ?? "Remove"} onClick={onRemove}>
          <Icon name="x" />
        </button>
      )}
    </span>
  );
}

export function Badge({ count, label }: { count: number; label: string }): JSX.Element | null {
  if (!count) return null;
  return (
    <span class="k-badge" title={label}>
      {count > 99 ? "99+" : count}
      <span class="k-only-read"> {label}</span>
    </span>
  );
}

interface SwitchProps {
  isOn: boolean;
  label: string;
  onChange: (isOn: boolean) => void;
  isDisabled?: boolean;
}

export function Switch({ isOn, label, onChange, isDisabled = false }: SwitchProps): JSX.Element {
  return (
    <button
      type="button"
      class="k-switch"
      role="switch"
      aria-checked={isOn}
      aria-label={label}
      disabled={isDisabled}
      onClick={() => onChange(!isOn)}
    />
  );
}

interface FieldProps {
  label: string;
  hint?: ComponentChildren;
  problem?: string;
  /** Draws the control; it takes these attributes, so that label, hint and problem belong to it. */
  children: (attributes: { id: string; "aria-describedby": string | undefined; "aria-invalid": boolean }) => JSX.Element;
}

/** A labelled control with its hint, and what is wrong with it. */
export function Field({ label, hint, problem = "", children }: FieldProps): JSX.Element {
  const id = useId();
  const described = hint || problem ? `${id}-hint` : undefined;
  return (
    <div class="k-field">
      <label for={id}>{label}</label>
      {children({ id, "aria-describedby": described, "aria-invalid": problem !== "" })}
      {described && (
        <p id={described} class="k-small k-quiet">
          {problem || hint}
        </p>
      )}
    </div>
  );
}

interface SearchBoxProps {
  label: string;
  value: string;
  onInput: (text: string) => void;
  onKeyDown?: (event: KeyboardEvent) => void;
  placeholder?: string;
  size?: "normal" | "large";
  inputRef?: Ref<HTMLInputElement>;
  /** What stands at its end, such as keys. */
  children?: ComponentChildren;
  /** The id of the list box whose options the arrow keys go through, while there is one, and of the chosen option. */
  list?: string | undefined;
  active?: string | undefined;
}

export function SearchBox({ label, value, onInput, onKeyDown, placeholder, size, inputRef, children, list, active }: SearchBoxProps): JSX.Element {
  return (
    <div class="k-search" data-size={size}>
      <Icon name="search" />
      <input
        ref={inputRef ?? null}
        class="k-input"
        type="search"
        aria-label={label}
        placeholder={placeholder ?? label}
        autocomplete="off"
        spellcheck={false}
        value={value}
        onInput={(event) => onInput(event.currentTarget.value)}
        onKeyDown={onKeyDown}
        {...(list ? { role: "combobox" as const, "aria-expanded": true, "aria-controls": list, "aria-activedescendant": active } : {})}
      />
      {children && <div class="k-search-end">{children}</div>}
    </div>
  );
}

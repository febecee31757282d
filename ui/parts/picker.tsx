/** Choosing one thing of many: a box, and a list that follows what is written in it. */

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Icon, type IconName } from "./basic";
import { DialogFrame, type Floaters } from "./floating";
import { fit } from "./palette";

export interface Choice {
  value: string;
  title: string;
  detail?: string;
  icon?: IconName;
}

interface PickerProps {
  title: string;
  placeholder: string;
  choices: () => readonly Choice[];
  /** Makes a choice of what was written, where none of the list is meant. */
  own?: (text: string) => Choice | undefined;
  onPick: (value: string) => void;
  onClose: () => void;
}

const MAX_SHOWN = 60;

/** Choices that fit what was written, best first; the list's own order where nothing was. */
export function fittingChoices(choices: readonly Choice[], text: string): Choice[] {
  const wanted = text.trim();
  if (!wanted) return choices.slice(0, MAX_SHOWN);
  return choices
    .map((choice) => ({ choice, score: fit(wanted, choice.title) }))
    .filter(({ score }) => score > 0)
    .sort((one, other) => other.score - one.score)
    .slice(0, MAX_SHOWN)
    .map(({ choice }) => choice);
}

function PickerBody({ title, placeholder, choices, own, onPick, onClose }: PickerProps): JSX.Element {
  const text = useSignal("");
  const active = useSignal(0);
  const list = useRef<HTMLDivElement>(null);
  const made = own?.(text.value.trim());
  const fits = fittingChoices(choices(), text.value);
  const shown = made && !fits.some((choice) => choice.value === made.value) ? [...fits, made] : fits;
  const at = Math.min(active.value, Math.max(0, shown.length - 1));
  useEffect(() => list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" }), [at, text.value]);

  const pick = (choice: Choice | undefined) => {
    if (!choice) return;
    onPick(choice.value);
    onClose();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const steps: Record<string, number> = { ArrowDown: at + 1, ArrowUp: at - 1 };
    const step = steps[event.key];
    if (step !== undefined && shown.length) active.value = (step + shown.length) % shown.length;
    else if (event.key === "Enter") pick(shown[at]);
    else return;
    event.preventDefault();
  };
  return (
    <DialogFrame title={title} onClose={onClose}>
      <div class="k-picker">
        <input
          class="k-input"
          role="combobox"
          aria-label={title}
          aria-expanded="true"
          aria-controls="k-picker-list"
          aria-activedescendant={shown.length ? `k-picker-${at}` : undefined}
          placeholder={placeholder}
          autocomplete="off"
          spellcheck={false}
          value={text.value}
          onInput={(event) => {
            text.value = event.currentTarget.value;
            active.value = 0;
          }}
          onKeyDown={onKeyDown}
        />
        <div ref={list} class="k-picker-list" id="k-picker-list" role="listbox" aria-label={title}>
          {shown.map((choice, index) => (
            <div
              key={choice.value}
              id={`k-picker-${index}`}
              class="k-palette-item"
              role="option"
              aria-selected={index === at}
              onMouseMove={() => (active.value = index)}
              onClick={() => pick(choice)}
            >
              {choice.icon && <Icon name={choice.icon} />}
              <span class="k-cut">{choice.title}</span>
              <span class="k-row-detail k-cut">{choice.detail}</span>
            </div>
          ))}
        </div>
        {!shown.length && <p class="k-quiet k-small">No matches.</p>}
      </div>
    </DialogFrame>
  );
}

/** Let somebody choose; resolves with what was chosen, or undefined. */
export async function pick(floaters: Floaters, asked: Omit<PickerProps, "onPick" | "onClose">): Promise<string | undefined> {
  let picked: string | undefined;
  await floaters.dialog((close) => <PickerBody {...asked} onPick={(value) => (picked = value)} onClose={close} />);
  return picked;
}

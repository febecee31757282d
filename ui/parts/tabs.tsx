/** Choosing between a few: tabs with their panels, and a choice in one row. */

import type { ComponentChildren, JSX } from "preact";
import { useId, useRef } from "preact/hooks";
import { Icon, type IconName } from "./basic";

export interface Tab<I extends string = string> {
  id: I;
  title: string;
  icon?: IconName;
  count?: number;
}

interface TabsProps<I extends string> {
  tabs: readonly Tab<I>[];
  current: I;
  label: string;
  onChange: (id: I) => void;
  /** The panel of the current tab; without it the tabs are a choice (radio buttons) of how something is shown. */
  children?: ComponentChildren;
}

/** Tabs; arrow keys go from one to the next. */
export function Tabs<I extends string>({ tabs, current, label, onChange, children }: TabsProps<I>): JSX.Element {
  const id = useId();
  const row = useRef<HTMLDivElement>(null);
  const isChoice = children === undefined;

  const onKeyDown = (event: KeyboardEvent): void => {
    const index = tabs.findIndex((tab) => tab.id === current);
    const steps: Record<string, number> = { ArrowRight: index + 1, ArrowLeft: index - 1, Home: 0, End: tabs.length - 1 };
    const step = steps[event.key];
    const next = step === undefined ? undefined : tabs.at(step % tabs.length);
    if (!next) return;
    event.preventDefault();
    onChange(next.id);
    row.current?.querySelectorAll<HTMLElement>(".k-tab")[tabs.indexOf(next)]?.focus();
  };

  return (
    <>
      <div ref={row} class="k-tabs" role={isChoice ? "radiogroup" : "tablist"} aria-label={label} onKeyDown={onKeyDown}>
        {tabs.map((tab) => (
          <button
            type="button"
            key={tab.id}
            id={`${id}-${tab.id}`}
            class="k-tab"
            tabIndex={tab.id === current ? 0 : -1}
            onClick={() => onChange(tab.id)}
            {...(isChoice
              ? { role: "radio", "aria-checked": tab.id === current }
              : {
                  role: "tab",
                  "aria-selected": tab.id === current,
                  "aria-controls": tab.id === current ? `${id}-panel` : undefined,
                })}
          >
            {tab.icon && <Icon name={tab.icon} />}
            {tab.title}
            {tab.count !== undefined && <span class="k-tab-count">{tab.count}</span>}
          </button>
        ))}
      </div>
      {!isChoice && (
        <div id={`${id}-panel`} role="tabpanel" aria-labelledby={`${id}-${current}`}>
          {children}
        </div>
      )}
    </>
  );
}

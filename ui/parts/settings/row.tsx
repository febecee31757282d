/** One setting: what it is called and does, its value, its default and range, where it comes from, and what is wrong. */

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { Button, Chip, Icon, Switch } from "../basic";
import { useHost } from "../host";
import { Notice, SkeletonText } from "../rows";
import {
  choiceText, fieldText, groupsOf, isSame, labelOf, rangeText, readInput, sourceOf, switchWords, unitOf, valueText, whyFixed,
  type SettingRow, type SettingValue,
} from "./model";
import type { SettingsStore } from "./store";

interface ControlProps {
  row: SettingRow;
  /** As it is, or as it will be when what is on its way is saved. */
  value: SettingValue;
  /** Attributes that join the control to its label and its texts. */
  attributes: { id: string; "aria-describedby": string; "aria-invalid": boolean };
  isFixed: boolean;
  onSave: (value: SettingValue) => void;
  onProblem: (problem: string) => void;
}

/** A setting with all that belongs to it. */
export function SettingField({ store, row }: { store: SettingsStore; row: SettingRow }): JSX.Element {
  const id = useId();
  const problem = useSignal("");
  const pending = useSignal<{ value: SettingValue } | null>(null);
  const standing = store.standing.value.get(row.name);
  const failure = standing?.state === "failed" ? standing.failure : undefined;
  const why = whyFixed(row);
  const wrong = problem.value || failure?.message || "";
  const save = async (value: SettingValue): Promise<void> => {
    const own = { value: value ?? row.default };
    problem.value = "";
    pending.value = own;
    await store.save(row.name, value);
    if (pending.value === own) pending.value = null;
  };
  const props: ControlProps = {
    row,
    value: pending.value ? pending.value.value : row.value,
    attributes: { id, "aria-describedby": `${id}-about`, "aria-invalid": wrong !== "" },
    isFixed: why !== "",
    onSave: (value) => void save(value),
    onProblem: (text) => {
      problem.value = text;
      store.forget([row.name]);
    },
  };
  const isWide = row.kind === "texts" || row.secret;
  return (
    <div class="k-set" data-wide={isWide ? "" : undefined} data-name={row.name}>
      <div class="k-set-words">
        <div class="k-set-title">
          {isGroup(row) ? <span id={`${id}-label`}>{labelOf(row.name)}</span> : <label id={`${id}-label`} for={id}>{labelOf(row.name)}</label>}
          <span class="k-set-standing" role="status">
            {standing?.state === "saving" && "Saving…"}
            {standing?.state === "saved" && (
              <>
                <Icon name="check" /> Saved
              </>
            )}
          </span>
        </div>
        <p id={`${id}-about`} class="k-small k-quiet">
          {row.doc}
        </p>
      </div>
      <div class="k-set-control">
        <Control {...props} labelId={`${id}-label`} />
      </div>
      <div class="k-set-foot">
        {wrong && (
          <p class="k-set-problem" role="alert">
            <Icon name="circle-alert" />
            <span>
              {sentence(wrong)}
              {!problem.value && failure?.hint && <span class="k-quiet"> {sentence(failure.hint)}</span>}
            </span>
          </p>
        )}
        <Facts store={store} row={row} why={why} onReset={() => void save(null)} />
      </div>
    </div>
  );
}

/** Whether a setting's control is several controls, which share a name. */
function isGroup(row: SettingRow): boolean {
  return (row.kind === "texts" && Boolean(row.choices?.length)) || row.secret;
}

function sentence(text: string): string {
  const begun = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?…]$/.test(begun) ? begun : `${begun}.`;
}

interface FactsProps {
  store: SettingsStore;
  row: SettingRow;
  why: string;
  onReset: () => void;
}

/** Default, range and source in one line, and the way back to the default. */
function Facts({ store, row, why, onReset }: FactsProps): JSX.Element {
  const source = sourceOf(row);
  const range = rangeText(row);
  const isOwn = source.kind === "file" && row.savable && !row.secret;
  return (
    <p class="k-set-facts k-small">
      {!row.secret && source.kind !== "default" && <span>Default: {valueText(row, row.default)}</span>}
      {range && <span>{range}</span>}
      {!row.secret && <span title={row.source}>{source.text}</span>}
      {why && <span>{why}</span>}
      {row.restart && (
        <Chip tone="warning" icon="rotate-cw">
          Takes effect after a restart
        </Chip>
      )}
      {isOwn && (
        <Button kind="quiet" size="small" icon="rotate-ccw" isDisabled={store.standing.value.get(row.name)?.state === "saving"} label={`Reset to default: ${labelOf(row.name)}`} onClick={onReset}>
          Reset to default
        </Button>
      )}
    </p>
  );
}

function Control(props: ControlProps & { labelId: string }): JSX.Element {
  const { row, labelId } = props;
  if (row.secret) return <SecretControl {...props} />;
  const words = switchWords(row);
  if (words) return <SwitchControl {...props} words={words} />;
  if (row.kind === "choice") return <ChoiceControl {...props} />;
  if (row.kind === "texts" && row.choices?.length) return <ChecksControl {...props} labelId={labelId} />;
  return <TextControl {...props} />;
}

function SwitchControl({ row, value, isFixed, onSave, words }: ControlProps & { words: { on: string; off: string } }): JSX.Element {
  const isOn = value === words.on;
  return <Switch isOn={isOn} label={labelOf(row.name)} isDisabled={isFixed} onChange={(next) => onSave(next ? words.on : words.off)} />;
}

function ChoiceControl({ row, value, attributes, isFixed, onSave }: ControlProps): JSX.Element {
  return (
    <select class="k-input k-select" {...attributes} disabled={isFixed} value={String(value)} onChange={(event) => onSave(event.currentTarget.value)}>
      {(row.choices ?? []).map((choice) => (
        <option key={choice} value={choice}>
          {choiceText(row, choice)}
        </option>
      ))}
    </select>
  );
}

function ChecksControl({ row, value, isFixed, onSave, labelId }: ControlProps & { labelId: string }): JSX.Element {
  const chosen = Array.isArray(value) ? value : [];
  const set = (choice: string, isOn: boolean): void => onSave((row.choices ?? []).filter((one) => (one === choice ? isOn : chosen.includes(one))));
  return (
    <div class="k-checks" role="group" aria-labelledby={labelId}>
      {(row.choices ?? []).map((choice) => (
        <label key={choice}>
          <input type="checkbox" checked={chosen.includes(choice)} disabled={isFixed} onChange={(event) => set(choice, event.currentTarget.checked)} />
          <span>{choice}</span>
        </label>
      ))}
    </div>
  );
}

function TextControl({ row, attributes, isFixed, onSave, onProblem }: ControlProps): JSX.Element {
  const stored = fieldText(row.value);
  const text = useSignal(stored);
  const input = useRef<HTMLInputElement & HTMLTextAreaElement>(null);
  const isLong = row.kind === "texts";
  useEffect(() => void (text.value = stored), [stored]);
  const commit = (): void => {
    const read = readInput(row, text.value);
    if ("problem" in read) onProblem(read.problem);
    else {
      onProblem("");
      if (!isSame(read.value, row.value)) onSave(read.value);
      text.value = fieldText(read.value);
    }
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === "Enter" && !isLong) commit();
    else if (event.key === "Escape" && text.value !== stored) {
      event.stopPropagation();
      text.value = stored;
      onProblem("");
    }
  };
  const shared = {
    ...attributes,
    ref: input,
    class: "k-input",
    disabled: isFixed,
    value: text.value,
    spellcheck: false,
    autocomplete: "off",
    onInput: (event: JSX.TargetedEvent<HTMLInputElement | HTMLTextAreaElement>) => (text.value = event.currentTarget.value),
    onBlur: commit,
    onKeyDown,
  };
  if (isLong) return <textarea {...shared} rows={Math.min(6, Math.max(2, text.value.split("\n").length))} placeholder="One per line" />;
  const unit = unitOf(row.name);
  return (
    <span class="k-set-input" data-kind={row.kind}>
      <input {...shared} type="text" inputMode={row.kind === "count" ? "numeric" : row.kind === "url" ? "url" : "text"} placeholder={row.kind === "count" ? "" : "Empty"} />
      {unit && <span class="k-set-unit k-small k-quiet">{unit}</span>}
    </span>
  );
}

function SecretControl({ row, attributes, isFixed, onSave }: ControlProps): JSX.Element {
  const { floaters } = useHost();
  const remove = async (): Promise<void> => {
    const asked = { title: `Remove the ${labelOf(row.name)}?`, text: "It will be removed from the configuration file. You can set another one at any time.", act: "Remove", isDanger: true };
    if (await floaters.confirm(asked)) onSave(null);
  };
  return (
    <SecretInput
      attributes={attributes}
      state={row.is_set ? sourceOf(row).text : "Not set"}
      isSet={row.is_set}
      isFixed={isFixed}
      label={labelOf(row.name)}
      act="Save"
      onSave={onSave}
      onRemove={row.is_set && !isFixed ? () => void remove() : undefined}
    />
  );
}

interface SecretInputProps {
  attributes: { id: string; "aria-describedby"?: string; "aria-invalid"?: boolean };
  label: string;
  /** Where the key is, in a few words. */
  state: string;
  isSet: boolean;
  isFixed?: boolean;
  act: string;
  onSave: (key: string) => void;
  onRemove?: (() => void) | undefined;
}

/** A field for a key: what is typed leaves the page when it is saved, and is never shown again. */
export function SecretInput({ attributes, label, state, isSet, isFixed = false, act, onSave, onRemove }: SecretInputProps): JSX.Element {
  const typed = useSignal("");
  const input = useRef<HTMLInputElement>(null);
  const save = (event: Event): void => {
    event.preventDefault();
    const key = typed.value.trim();
    if (!key) return;
    typed.value = "";
    if (input.current) input.current.value = "";
    onSave(key);
  };
  return (
    <form class="k-secret" onSubmit={save}>
      <Chip tone={isSet ? "added" : "plain"} icon={isSet ? "check" : "circle"}>
        {state}
      </Chip>
      {!isFixed && (
        <>
          <input
            {...attributes}
            ref={input}
            class="k-input"
            type="password"
            aria-label={label}
            autocomplete="off"
            spellcheck={false}
            placeholder={isSet ? "Paste another key" : "Paste the key"}
            value={typed.value}
            onInput={(event) => (typed.value = event.currentTarget.value)}
          />
          <Button type="submit" isDisabled={!typed.value.trim()}>
            {act}
          </Button>
        </>
      )}
      {onRemove && (
        <Button kind="danger" label={`Remove the ${label}`} onClick={onRemove}>
          Remove
        </Button>
      )}
    </form>
  );
}

/** The groups of a section, one below the other. */
export function SettingGroups({ store, section }: { store: SettingsStore; section: string }): JSX.Element {
  const { data, failure } = store.settings;
  useEffect(() => {
    if (!store.settings.data.peek()) void store.settings.load();
  }, []);
  const rows = data.value?.settings;
  if (failure.value && !failure.value.isOffline) {
    return (
      <Notice tone="removed">
        {sentence(failure.value.message)}
        {failure.value.hint && <div class="k-quiet">{sentence(failure.value.hint)}</div>}
      </Notice>
    );
  }
  if (!rows) return <SkeletonText lines={6} />;
  return (
    <>
      {groupsOf(section, rows).map((group) => {
        const shown = group.names.map((name) => rows.find((row) => row.name === name)).filter((row) => row !== undefined);
        if (!shown.length) return null;
        return (
          <section class="k-set-group" key={group.title} aria-label={group.title}>
            <h2>{group.title}</h2>
            {shown.map((row) => (
              <SettingField key={row.name} store={store} row={row} />
            ))}
          </section>
        );
      })}
    </>
  );
}

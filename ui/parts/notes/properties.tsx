/** A note's properties, each shown as what it is. */

import type { JSX } from "preact";
import { Button, Chip, IconButton, type IconName } from "../basic";
import { useHost, type Host } from "../host";
import { kindOfAddress, readWikilink } from "../markdown";
import { noteName } from "../format";
import { carryOut, editProperty, kindOfValue, type PropertyKind } from "./editing";
import { Icon } from "../basic";
import type { NoteModel } from "./model";

const ICONS: Readonly<Record<PropertyKind, IconName>> = { text: "text-cursor-input", number: "hash", date: "calendar", flag: "square-check", list: "list", object: "code" };

interface PropertiesProps {
  model: NoteModel;
  properties: Readonly<Record<string, unknown>>;
  canEdit: boolean;
  onTag: (tag: string) => void;
}

export function Properties({ model, properties, canEdit, onTag }: PropertiesProps): JSX.Element | null {
  const host = useHost();
  const rows = Object.entries(properties);
  if (!rows.length && !canEdit) return null;
  return (
    <section class="k-properties" aria-label="Properties">
      {rows.length > 0 && (
        <dl>
          {rows.map(([name, value]) => (
            <div key={name} class="k-property">
              <dt class="k-cut" title={name}>
                <Icon name={/^tags?$/i.test(name) ? "tag" : ICONS[kindOfValue(value)]} />
                <span class="k-cut">{name}</span>
              </dt>
              <dd>
                <Value host={host} model={model} name={name} value={value} canEdit={canEdit} onTag={onTag} />
                {canEdit && kindOfValue(value) !== "object" && kindOfValue(value) !== "flag" && (
                  <IconButton icon="pencil" size="small" label={`Edit ${name}`} onClick={() => editProperty({ host, model, name, value })} />
                )}
              </dd>
            </div>
          ))}
        </dl>
      )}
      {canEdit && (
        <Button kind="quiet" size="small" icon="plus" onClick={() => editProperty({ host, model, name: "", value: "" })}>
          Add a property
        </Button>
      )}
    </section>
  );
}

interface ValueProps {
  host: Host;
  model: NoteModel;
  name: string;
  value: unknown;
  canEdit: boolean;
  onTag: (tag: string) => void;
}

function Value({ host, model, name, value, canEdit, onTag }: ValueProps): JSX.Element {
  if (typeof value === "boolean") {
    return (
      <input
        type="checkbox"
        aria-label={name}
        checked={value}
        disabled={!canEdit}
        onClick={(event) => {
          event.preventDefault(); // the note says whether it is set, once it was written
          void carryOut(host, model, () => model.setProperty(name, !value), `The property ${name}`);
        }}
      />
    );
  }
  const isTags = /^tags?$/i.test(name);
  if (Array.isArray(value) || isTags) {
    const items = Array.isArray(value) ? value : String(value ?? "").split(/[\s,]+/);
    return (
      <span class="k-property-list">
        {items.map((item, index) =>
          isTags ? (
            <Chip key={index} icon="tag" onClick={() => onTag(String(item).replace(/^#/, ""))}>
              {String(item)}
            </Chip>
          ) : (
            <span class="k-chip" key={index}>
              <span class="k-cut">
                <Text text={textOfValue(item)} model={model} host={host} />
              </span>
            </span>
          ),
        )}
      </span>
    );
  }
  if (value === null || value === undefined || value === "") return <span class="k-quiet">Empty</span>;
  if (typeof value === "object") return <code class="k-cut">{JSON.stringify(value)}</code>;
  return <Text text={textOfValue(value)} model={model} host={host} />;
}

function textOfValue(value: unknown): string {
  return value !== null && typeof value === "object" ? JSON.stringify(value) : String(value ?? "");
}

/** A text that may be a link, whole. */
function Text({ text, model, host }: { text: string; model: NoteModel; host: Host }): JSX.Element {
  const inside = /^\[\[([^[\]]+)\]\]$/.exec(text.trim())?.[1];
  if (inside) {
    const link = readWikilink(inside);
    const path = model.resolve(link.target);
    const target = { kind: "note" as const, path: path ?? link.target, ...(link.fragment ? { fragment: link.fragment } : {}) };
    return (
      <a class="k-note-link" data-unknown={path ? undefined : ""} href={host.href(target) ?? "#"}>
        {link.shown || noteName(link.target)}
      </a>
    );
  }
  if (/^https?:\/\//i.test(text) && kindOfAddress(text) === "web" && !/\s/.test(text)) {
    return (
      <a href={text} target="_blank" rel="noopener noreferrer">
        {text}
      </a>
    );
  }
  return <span>{text}</span>;
}

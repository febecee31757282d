/** In the place of `ui/parts/icons.data.ts`: Obsidian has the same icons, so that main.js needn't. */

import { getIcon } from "obsidian";

type IconNode = readonly [tag: string, attributes: Readonly<Record<string, string>>];

const known = new Map<string, readonly IconNode[]>();

/** What an icon is drawn of, as the shared parts want it; nothing where this Obsidian doesn't have it. */
function nodesOf(name: string): readonly IconNode[] {
  const found = known.get(name);
  if (found) return found;
  const parts = [...(getIcon(name)?.children ?? [])];
  const nodes = parts.map((part): IconNode => [part.tagName, Object.fromEntries([...part.attributes].map(({ name: key, value }) => [key, value]))]);
  known.set(name, nodes);
  return nodes;
}

export const ICONS = new Proxy<Record<string, readonly IconNode[]>>({}, { get: (_, name) => nodesOf(String(name)) });

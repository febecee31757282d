/** A graph to be drawn: what stands in it, in which colours, and where each node lies; the same each time. */

export interface GraphNode {
  id: string;
  title: string;
  /** What decides about the colour, such as a folder. */
  group: string;
  /** Steps from the middle; the middle is larger. */
  depth: number;
  /** What the list says of it; the steps where it is missing. */
  detail?: string;
}

export interface GraphEdge {
  source: string;
  target: string;
  /** Drawn thinner and paler: near in meaning, without a link. */
  isFaint?: boolean;
}

export interface GraphData {
  nodes: readonly GraphNode[];
  edges: readonly GraphEdge[];
}

export interface Placed {
  x: number;
  y: number;
}

/** Colours that can be told apart in light and dark, also by most who see red and green alike. */
export const COLORS: readonly string[] = ["#2a9d8f", "#d1813c", "#5b7fc7", "#b65a8a", "#7a9a3a", "#8d6cc0", "#c2554a", "#4a9bb8", "#a08a3c", "#6f7c8a"];
const OTHER = "#8f949e";

/** The colour of each group: the largest have one of their own, the others share one. */
export function colorsOf(nodes: readonly GraphNode[]): Map<string, string> {
  const counts = new Map<string, number>();
  for (const node of nodes) counts.set(node.group, (counts.get(node.group) ?? 0) + 1);
  const groups = [...counts].sort((one, other) => other[1] - one[1] || (one[0] < other[0] ? -1 : 1));
  return new Map(groups.map(([group], index) => [group, COLORS[index] ?? OTHER]));
}

/** A number between 0 and 1 that belongs to a text, the same each time. */
export function hashOf(text: string): number {
  let hash = 2_166_136_261;
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 16_777_619);
  return (hash >>> 0) / 4_294_967_296;
}

/** Where each node begins, before forces move it: around the middle, the further off the more steps; known ones stay. */
export function beginningOf(data: GraphData, known: ReadonlyMap<string, Placed> = new Map()): Map<string, Placed> {
  return new Map(
    data.nodes.map((node) => {
      const place = known.get(node.id);
      if (place) return [node.id, place];
      const angle = hashOf(node.id) * 2 * Math.PI;
      const far = node.depth * 10 + hashOf(`${node.id}#`) * 8;
      return [node.id, { x: Math.cos(angle) * far, y: Math.sin(angle) * far }];
    }),
  );
}

/** How large a node is drawn, in px: by the number of its ties. */
export function sizeOf(node: GraphNode, ties: number): number {
  return node.depth === 0 ? 11 : Math.min(9, 3 + Math.sqrt(ties) * 1.2);
}

/** What is written of a node's label, and where it begins, in px from the picture's left edge.
 *
 * It stands to the node's right, or to its left where the picture's right edge would cut it. Where neither has room for
 * all of it, it is shortened on the wider side. */
export function fitLabel(label: string, node: { x: number; size: number }, edge: number, gap: number, widthOf: (text: string) => number): { text: string; left: number } {
  const [right, end] = [node.x + node.size + gap, node.x - node.size - gap];
  const width = widthOf(label);
  if (right + width <= edge || node.x < 0 || node.x >= edge) return { text: label, left: right };
  if (width <= end) return { text: label, left: end - width };
  const text = shortened(label, Math.max(edge - right, end), widthOf);
  return { text, left: edge - right >= end ? right : end - widthOf(text) };
}

/** The longest beginning of a text, with an ellipsis, that has room. */
function shortened(text: string, room: number, widthOf: (text: string) => number): string {
  const letters = [...text];
  const beginning = (count: number) => `${letters.slice(0, count).join("").trimEnd()}…`;
  let [fits, tooMany] = [0, letters.length];
  while (tooMany - fits > 1) {
    const middle = Math.floor((fits + tooMany) / 2);
    if (widthOf(beginning(middle)) <= room) fits = middle;
    else tooMany = middle;
  }
  return beginning(fits);
}

/** The neighbours of each node. */
export function neighboursOf(data: GraphData): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>(data.nodes.map((node) => [node.id, new Set<string>()]));
  for (const { source, target } of data.edges) {
    found.get(source)?.add(target);
    found.get(target)?.add(source);
  }
  return found;
}

/** The folder of each path, as deep as it takes to tell them apart: all of `en/…` are told apart by what is below it. */
export function foldersApart(paths: readonly string[]): Map<string, string> {
  const folders = paths.map((path) => path.split("/").slice(0, -1));
  for (let depth = 1; depth <= 4; depth += 1) {
    const groups = folders.map((parts) => parts.slice(0, depth).join("/"));
    if (new Set(groups).size > 2 || depth === 4) return new Map(paths.map((path, index) => [path, groups[index] ?? ""]));
  }
  return new Map();
}

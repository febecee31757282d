/** Draws a graph by WebGL: sigma shows it, and ForceAtlas2 lays it out a few steps in each frame. */

import Graph from "graphology";
import forceAtlas2 from "graphology-layout-forceatlas2";
import Sigma from "sigma";
import { beginningOf, fitLabel, neighboursOf, sizeOf, type GraphData, type GraphNode, type Placed } from "./model";

export interface PictureColors {
  ink: string;
  edge: string;
  faint: string;
  back: string;
}

interface PictureOptions {
  data: GraphData;
  colorOf: (node: GraphNode) => string;
  colors: PictureColors;
  known: ReadonlyMap<string, Placed>;
  onOpen: (id: string, event: MouseEvent) => void;
  onHover: (id: string | null) => void;
}

const STEPS = 240;
/** Of a frame's 16.7 ms; drawing 1,000 nodes takes most of the rest. */
const STEP_MS = 6;
/** Up to so many nodes, each has its name written beside it, where there is room. */
const FEW = 60;

/** A drawn graph. */
export class Picture {
  readonly graph = new Graph({ type: "undirected", multi: false });
  private readonly sigma: Sigma;
  private hovered: string | null = null;
  private frame = 0;
  private stepsLeft = STEPS;

  constructor(container: HTMLElement, options: PictureOptions) {
    const { data, colorOf, colors } = options;
    const places = beginningOf(data, options.known);
    const ties = neighboursOf(data);
    for (const node of data.nodes) {
      const place = places.get(node.id) ?? { x: 0, y: 0 };
      this.graph.addNode(node.id, { ...place, label: node.title, size: sizeOf(node, ties.get(node.id)?.size ?? 0), color: colorOf(node), forceLabel: node.depth === 0 });
    }
    for (const { source, target, isFaint } of data.edges) {
      if (source === target || !this.graph.hasNode(source) || !this.graph.hasNode(target) || this.graph.hasEdge(source, target)) continue;
      this.graph.addEdge(source, target, { size: isFaint ? 0.5 : 1, color: isFaint ? colors.faint : colors.edge });
    }
    this.sigma = new Sigma(this.graph, container, {
      labelColor: { color: colors.ink },
      labelSize: 12,
      labelFont: getComputedStyle(container).fontFamily,
      labelDensity: data.nodes.length <= FEW ? 4 : 0.6,
      labelRenderedSizeThreshold: data.nodes.length <= FEW ? 0 : 7,
      defaultEdgeColor: colors.edge,
      zIndex: true,
      allowInvalidContainer: true,
      defaultDrawNodeLabel: (context, place, settings) => drawLabel(context, place, settings.labelSize, settings.labelFont, colors),
      defaultDrawNodeHover: (context, place, settings) => drawHover(context, place, settings.labelSize, settings.labelFont, colors),
      nodeReducer: (id, shown) => (this.isDimmed(id, ties) ? { ...shown, color: colors.faint, label: null, zIndex: 0 } : { ...shown, zIndex: 1, ...(this.hovered && id !== this.hovered ? { forceLabel: ties.size < 400 } : {}) }),
      edgeReducer: (edge, shown) => (this.hovered && !this.graph.hasExtremity(edge, this.hovered) ? { ...shown, hidden: true } : shown),
    });
    this.sigma.on("clickNode", ({ node, event }) => options.onOpen(node, event.original as MouseEvent));
    this.sigma.on("enterNode", ({ node }) => this.hover(node, container, options.onHover));
    this.sigma.on("leaveNode", () => this.hover(null, container, options.onHover));
    this.run(data.nodes.length, container);
  }

  /** Where each node lies, for the next picture of some of them. */
  places(): Map<string, Placed> {
    return new Map(this.graph.mapNodes((id, { x, y }) => [id, { x: Number(x), y: Number(y) }]));
  }

  zoom(factor: number): void {
    const camera = this.sigma.getCamera();
    void (factor > 1 ? camera.animatedZoom({ duration: 120 }) : camera.animatedUnzoom({ duration: 120 }));
  }

  reset(): void {
    void this.sigma.getCamera().animatedReset({ duration: 120 });
  }

  close(): void {
    cancelAnimationFrame(this.frame);
    this.sigma.kill();
  }

  /** Let forces move the nodes, as long as there is time in each frame; the same graph comes to lie the same. */
  private run(count: number, container: HTMLElement): void {
    if (count < 2) return;
    container.dataset["moves"] = "yes";
    const settings = { ...forceAtlas2.inferSettings(this.graph), gravity: 1, scalingRatio: 12, slowDown: 2, barnesHutOptimize: count > 250, barnesHutTheta: 1, adjustSizes: false };
    const step = () => {
      const began = performance.now();
      let now = began;
      let longest = 0;
      while (this.stepsLeft > 0 && now - began + longest < STEP_MS) {
        forceAtlas2.assign(this.graph, { iterations: 1, settings });
        this.stepsLeft -= 1;
        longest = Math.max(longest, performance.now() - now);
        now = performance.now();
      }
      if (this.stepsLeft > 0) this.frame = requestAnimationFrame(step);
      else container.dataset["moves"] = "no";
    };
    this.frame = requestAnimationFrame(step);
  }

  private isDimmed(id: string, ties: ReadonlyMap<string, ReadonlySet<string>>): boolean {
    return this.hovered !== null && id !== this.hovered && !ties.get(this.hovered)?.has(id);
  }

  private hover(id: string | null, container: HTMLElement, tell: (id: string | null) => void): void {
    this.hovered = id;
    container.dataset["hovers"] = id === null ? "no" : "yes";
    tell(id);
    this.sigma.refresh({ skipIndexation: true });
  }
}

interface Drawn {
  x: number;
  y: number;
  size: number;
  label?: string | null;
  color: string;
}

function drawLabel(context: CanvasRenderingContext2D, place: Drawn, size: number, font: string, colors: PictureColors): void {
  if (!place.label) return;
  context.font = `normal ${size}px ${font}`;
  context.fillStyle = colors.ink;
  const { text, left } = fitLabel(place.label, place, edgeOf(context), 3, (words) => context.measureText(words).width);
  context.fillText(text, left, place.y + size / 3);
}

/** The picture's right edge, in the px that labels are placed by. */
function edgeOf(context: CanvasRenderingContext2D): number {
  return context.canvas.width / devicePixelRatio;
}

function drawHover(context: CanvasRenderingContext2D, place: Drawn, size: number, font: string, colors: PictureColors): void {
  context.beginPath();
  context.arc(place.x, place.y, place.size + 3, 0, 2 * Math.PI);
  context.fillStyle = colors.back;
  context.fill();
  context.beginPath();
  context.arc(place.x, place.y, place.size, 0, 2 * Math.PI);
  context.fillStyle = place.color;
  context.fill();
  if (!place.label) return;
  context.font = `500 ${size}px ${font}`;
  const boxWidth = (words: string) => context.measureText(words).width + 12;
  const { text, left } = fitLabel(place.label, place, edgeOf(context), 4, boxWidth);
  context.fillStyle = colors.back;
  context.beginPath();
  context.roundRect(left, place.y - size / 2 - 4, boxWidth(text), size + 8, 6);
  context.fill();
  context.fillStyle = colors.ink;
  context.fillText(text, left + 6, place.y + size / 3);
}

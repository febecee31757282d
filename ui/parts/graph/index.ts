export { GraphView } from "./graph";
export { colorsOf, foldersApart, type GraphData, type GraphEdge, type GraphNode } from "./model";

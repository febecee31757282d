export { Answer, Places } from "./answer";
export { BeginRun, LimitFields } from "./begin";
export { chooseRun, CompareRuns } from "./compare";
export { Runs } from "./list";
export * from "./model";
export { RunPartView } from "./part";
export { RunList, RunWatch } from "./runs";
export { RunTree, TimelineKey } from "./tree";
export { replay, RunActs, RunView } from "./view";

/** What ties the notes of a graph, as its address says it. */

import type { Route } from "../../router";

export const TIES = [
  { id: "links", title: "Links", icon: "link" },
  { id: "meaning", title: "Meaning", icon: "sparkles" },
  { id: "both", title: "Both" },
] as const;
export type Ties = (typeof TIES)[number]["id"];

export function tiesOf(route: Route): Ties {
  return TIES.find((tie) => tie.id === route.query["by"])?.id ?? "links";
}

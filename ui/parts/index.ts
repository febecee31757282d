/** What every view may use, loaded with the page. What is heavy has an entry of its own: `parts/markdown`. */

export * from "./basic";
export * from "./floating";
export * from "./format";
export * from "./host";
export * from "./keys";
export * from "./lazy";
export * from "./menus";
export * from "./palette";
export * from "./picker";
export * from "./resource";
export * from "./rows";
export * from "./tabs";

/** The settings, whole: the shell only arranges the sections. */

export * from "./about";
export * from "./clients";
export * from "./first";
export * from "./indexing";
export * from "./model";
export * from "./models";
export * from "./pairing";
export * from "./row";
export * from "./store";
export * from "./usage";

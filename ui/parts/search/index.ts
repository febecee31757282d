export * from "./filters";
export * from "./query";
export * from "./results";
export * from "./session";

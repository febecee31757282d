export * from "./filters";
export * from "./listing";
export * from "./query";
export * from "./results";
export * from "./session";

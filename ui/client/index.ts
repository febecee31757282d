export { Client, fillPath, queryText, type Body, type ClientOptions, type Given, type PathOf, type Reply } from "./client";
export { EventReader, LAST_EVENTS, converse, follow, type FollowOptions, type ServerEvent } from "./events";
export { hintForPerson } from "./hints";
export { Failure, failureOf, fetchTransport, isAbort, type Answer, type Exchange, type Transport } from "./transport";
export { textOf } from "./values";

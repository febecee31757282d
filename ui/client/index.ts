export { Client, fillPath, queryText, type Body, type ClientOptions, type Given, type PathOf, type Reply } from "./client";
export { EventReader, LAST_EVENTS, converse, follow, type FollowOptions, type ServerEvent } from "./events";
export { Failure, failureOf, fetchTransport, hintForPerson, isAbort, type Answer, type Exchange, type Transport } from "./transport";
export { textOf } from "./values";

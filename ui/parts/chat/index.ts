/** A chat with its conversations, its agents and what they are given; whatever shell it stands in. */

export { ScopeSheet } from "./agents";
export { Chat, type ChatOptions } from "./chat";
export { Composer, ComposerFoot } from "./composer";
export { Conversations, openSessionMenu } from "./conversations";
export type { Attachment } from "./message";
export { selectedText } from "./quoting";
export type { Keep } from "./spending";
export { Transcript } from "./transcript";

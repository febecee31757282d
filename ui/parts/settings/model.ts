/** What the settings are called here, how they are grouped, and how a person's input becomes a value. */

import type { Reply } from "../../client";

export type SettingRow = Reply<"get", "/settings">["settings"][number];
export type SettingValue = SettingRow["value"];

interface Words {
  label: string;
  /** What a number counts, such as `s`. */
  unit?: string;
}

const MB = "MB";

/** In the order in which they are shown. */
const WORDS: Readonly<Record<string, Words>> = {
  "model.name": { label: "Model" },
  "model.base_url": { label: "Model server address" },
  "model.fallbacks": { label: "Fallback models" },
  "model.ollama_url": { label: "Ollama address" },
  "model.api_key": { label: "Model key" },
  "model.openai_api_key": { label: "OpenAI key" },
  "model.anthropic_api_key": { label: "Anthropic key" },
  "model.fireworks_api_key": { label: "Fireworks key" },
  "model.openrouter_api_key": { label: "OpenRouter key" },
  "model.context_tokens": { label: "Conversation length", unit: "tokens" },
  "model.tools": { label: "Tools" },
  "model.timeout_s": { label: "Timeout", unit: "s" },
  "model.retries": { label: "Retries" },
  "model.prompt": { label: "Instructions file" },
  "model.telemetry": { label: "Traces (OpenTelemetry)" },
  "model.session_days": { label: "Keep conversations for", unit: "days" },
  "model.sessions_mb": { label: "Storage for conversations", unit: MB },
  "audio.access": { label: "Transcribe recordings" },
  "audio.provider": { label: "Transcription service" },
  "audio.model": { label: "Transcription model" },
  "audio.base_url": { label: "Transcription server address" },
  "audio.api_key": { label: "Transcription key" },
  "audio.language": { label: "Spoken language" },
  "audio.max_mb": { label: "Maximum recording size", unit: MB },
  "audio.timeout_s": { label: "Timeout for a recording", unit: "s" },

  "agents.task": { label: "Task agent" },
  "agents.scout": { label: "Scout agent" },
  "agents.web": { label: "Web agent" },
  "agents.link_depth": { label: "Link depth" },
  "agents.linked_notes": { label: "Linked notes at most", unit: "notes" },
  "agents.semantic_notes": { label: "Notes near in meaning, at most", unit: "notes" },
  "agents.semantic_similarity": { label: "Similarity of those, at least", unit: "%" },
  "agents.same_folder": { label: "Notes in the same folder" },
  "agents.excluded_folders": { label: "Excluded folders" },
  "agents.token_limit": { label: "Context per task", unit: "tokens" },
  "agents.chat_history_length": { label: "Earlier messages", unit: "messages" },
  "agents.editable": { label: "Editable notes" },
  "agents.can": { label: "Capabilities" },
  "agents.orchestrate": { label: "Let a model choose the agents" },
  "agents.orchestrator_steps": { label: "Context rounds" },
  "agents.orchestrator_tokens": { label: "Tokens per context round", unit: "tokens" },
  "scout.model": { label: "Scout's model" },
  "scout.rounds": { label: "Scout rounds" },
  "scout.notes": { label: "Notes Scout may choose", unit: "notes" },
  "scout.keyword_limit": { label: "Results of a word search", unit: "notes" },
  "scout.tools": { label: "Scout's tools" },
  "scout.show_tags": { label: "Show Scout all tags" },
  "scout.timeout_s": { label: "Scout timeout", unit: "s" },
  "runs.strategy": { label: "Strategy" },
  "runs.code_mode": { label: "Code Mode" },
  "runs.parallel": { label: "Parallel parts" },
  "runs.min_context_chars": { label: "Context target of a script", unit: "characters" },
  "runs.min_citations": { label: "Citation target of a script" },
  "runs.low_score_percent": { label: "Minimum score", unit: "%" },
  "runs.low_confidence_percent": { label: "Minimum confidence", unit: "%" },
  "runs.regens_per_node": { label: "Script retries per part" },
  "runs.regens_per_run": { label: "Script retries per run" },
  "scripts.timeout_s": { label: "Script timeout", unit: "s" },
  "scripts.memory_mb": { label: "Script memory", unit: MB },
  "scripts.result_kb": { label: "Maximum script result", unit: "kB" },
  "scripts.workers": { label: "Parallel scripts" },
  "scripts.walls": { label: "Confinement" },
  "scripts.fs_read": { label: "Folders scripts may read" },
  "scripts.net_allow": { label: "Hosts scripts may reach" },

  "web.access": { label: "Web access" },
  "web.auto_search": { label: "Search without being asked" },
  "web.provider": { label: "Search provider" },
  "web.api_key": { label: "Search provider key" },
  "web.tavily_api_key": { label: "Tavily key" },
  "web.brave_api_key": { label: "Brave key" },
  "web.serper_api_key": { label: "Serper key" },
  "web.base_url": { label: "Search provider address" },
  "web.model": { label: "Search model" },
  "web.max_results": { label: "Results per search" },
  "web.max_pages": { label: "Pages read per question", unit: "pages" },
  "web.token_budget": { label: "Web text per answer", unit: "tokens" },
  "web.hosts": { label: "Allowed hosts" },
  "web.timeout_s": { label: "Page timeout", unit: "s" },
  "web.max_page_kb": { label: "Maximum page size", unit: "kB" },

  "model.turn_tokens": { label: "Per answer", unit: "tokens" },
  "model.turn_rounds": { label: "Rounds of tool calls per answer" },
  "model.turn_calls": { label: "Tool calls per answer" },
  "model.turn_minutes": { label: "Time per answer", unit: "min" },
  "model.turn_cents": { label: "Cost per answer", unit: "US cents" },
  "model.run_tokens": { label: "Per conversation or run", unit: "tokens" },
  "model.day_tokens": { label: "Tokens per day", unit: "tokens" },
  "model.day_cents": { label: "Cost per day", unit: "US cents" },
  "runs.tokens": { label: "Tokens per run", unit: "tokens" },
  "runs.cents": { label: "Cost per run", unit: "US cents" },
  "runs.minutes": { label: "Time per run", unit: "min" },
  "runs.nodes": { label: "Parts per run" },
  "runs.depth": { label: "Levels of parts" },
  "runs.days": { label: "Keep runs for", unit: "days" },
  "journal.max_mb": { label: "Storage for undo", unit: MB },
  "journal.max_age_days": { label: "Keep undo for", unit: "days" },
  "journal.backup_mb": { label: "Storage for backups", unit: MB },

  "search.fusion": { label: "Combining words and meaning" },
  "search.meaning_percent": { label: "Weight of meaning", unit: "%" },
  "search.rewrite": { label: "Let a model rewrite queries" },
  "rerank.kind": { label: "Reranking" },
  "rerank.base_url": { label: "Reranking server address" },
  "rerank.model": { label: "Reranking model" },
  "rerank.api_key": { label: "Reranking key" },
  "rerank.folder": { label: "Reranking model folder" },
  "rerank.passages": { label: "Reranked passages" },
  "rerank.timeout_s": { label: "Reranking timeout", unit: "s" },
  "embeddings.kind": { label: "Search by meaning" },
  "embeddings.model": { label: "Embedding model" },
  "embeddings.base_url": { label: "Embedding server address" },
  "embeddings.api_key": { label: "Embedding key" },
  "embeddings.folder": { label: "Model folder" },
  "embeddings.query_prefix": { label: "Query prefix" },
  "embeddings.passage_prefix": { label: "Passage prefix" },
  "index.interval_minutes": { label: "Check all files every", unit: "min" },
  "index.engine": { label: "Shared index" },
  "index.readers": { label: "Roles that read it" },
  "index.password": { label: "Its password" },

  "proposals.expire_days": { label: "Proposals expire after", unit: "days" },
  "proposals.taint_minutes": { label: "Propose only after untrusted content, for", unit: "min" },

  "default_vault": { label: "Default vault" },
  "state_dir": { label: "State folder" },
  "git.commit": { label: "Commit each change" },
  "server.host": { label: "Listen address" },
  "server.port": { label: "Port" },
  "server.token": { label: "API token" },
  "server.public_url": { label: "Public address" },
  "server.hosts": { label: "Additional host names" },
  "server.origins": { label: "Allowed origins" },
  "server.mcp_profile": { label: "MCP tools" },
  "server.mcp_output_schemas": { label: "MCP output schemas" },
  "server.max_body_mb": { label: "Maximum request size", unit: MB },
  "server.requests_per_minute": { label: "Requests per minute" },
  "server.answers_commands": { label: "Answer the command line" },
  "server.threads": { label: "Threads" },
  "server.readers": { label: "Processes that search" },
  "server.stop_seconds": { label: "Shutdown timeout", unit: "s" },
};

/** What a program may see and change, in the order in which it is shown. */
export const RIGHTS: Readonly<Record<string, string>> = {
  access: "Access",
  small: "Small changes",
  large: "Other changes",
  max_files: "Files at once",
  capabilities: "Capabilities",
  scope: "Editable notes",
  write: "Changes only",
  read_only: "Never changes",
  guarded: "Changes need your approval",
  confirm: "Confirms proposals itself",
  read: "Can read only",
  hidden: "Can't read",
  vaults: "Vaults",
};

/** A heading with the settings below it, by their names. */
export interface SettingGroup {
  title: string;
  names: readonly string[];
}

const of = (...starts: string[]): string[] => Object.keys(WORDS).filter((name) => starts.some((start) => name === start || name.startsWith(start)));
const without = (names: readonly string[], ...left: string[]): string[] => names.filter((name) => !left.includes(name));
const LIMITS = of("model.turn_", "model.run_tokens", "model.day_tokens", "model.day_cents");
const RUN_LIMITS = of("runs.tokens", "runs.cents", "runs.minutes", "runs.nodes", "runs.depth", "runs.days");
const CONVERSATIONS = of("model.session_days", "model.sessions_mb");
const TASK_LIMITS = of("agents.token_limit", "agents.chat_history_length", "agents.orchestrator_steps", "agents.orchestrator_tokens", "agents.linked_notes", "agents.semantic_notes", "agents.semantic_similarity");
const SCOUT = of("scout.");

/** Sections by their ids, each with its groups; what a part of its own draws, such as the model's name, stands in none. */
export const GROUPS: Readonly<Record<string, readonly SettingGroup[]>> = {
  models: [
    { title: "Requests", names: ["model.fallbacks", "model.context_tokens", "model.tools", "model.timeout_s", "model.retries", "model.ollama_url", "model.base_url", "model.prompt", "model.telemetry"] },
    { title: "Conversations", names: CONVERSATIONS },
    { title: "Recordings", names: of("audio.") },
  ],
  agents: [
    { title: "Default agents", names: ["agents.task", "agents.scout", "agents.web"] },
    { title: "Task: context", names: ["agents.link_depth", "agents.same_folder", "agents.excluded_folders"] },
    { title: "Task: permissions", names: ["agents.editable", "agents.can"] },
    { title: "Task: limits", names: ["agents.orchestrate", ...TASK_LIMITS] },
    { title: "Scout", names: SCOUT },
    { title: "Runs", names: without(of("runs."), ...RUN_LIMITS) },
    { title: "Scripts", names: of("scripts.") },
  ],
  web: [
    { title: "Access", names: ["web.access", "web.auto_search", "web.hosts"] },
    { title: "Provider", names: of("web.provider", "web.base_url", "web.model", "web.api_key", "web.tavily_api_key", "web.brave_api_key", "web.serper_api_key") },
    { title: "Limits", names: of("web.max_", "web.token_budget", "web.timeout_s") },
  ],
  limits: [
    { title: "Models", names: LIMITS },
    { title: "Runs", names: RUN_LIMITS },
    { title: "Undo and backups", names: of("journal.") },
  ],
  index: [
    { title: "Search", names: of("search.") },
    { title: "Reranking", names: of("rerank.") },
    { title: "Meaning", names: of("embeddings.") },
    { title: "Updates", names: of("index.interval_minutes") },
    { title: "Shared index", names: of("index.engine", "index.readers", "index.password") },
  ],
  clients: [{ title: "All clients", names: of("proposals.") }],
  about: [
    { title: "Server", names: of("server.") },
    { title: "Vault and state", names: of("default_vault", "state_dir", "git.") },
  ],
};

/** Drawn by parts of their own: the model, and the keys of models. */
const DRAWN_ELSEWHERE = ["model.name", ...of("model.").filter((name) => name.endsWith("api_key"))];

/** The groups of a section; whatever the server has beyond those that are known here stands at the end of the last one. */
export function groupsOf(section: string, rows: readonly SettingRow[]): SettingGroup[] {
  const groups = [...(GROUPS[section] ?? [])];
  if (section !== "about") return groups;
  const known = new Set([...DRAWN_ELSEWHERE, ...Object.values(GROUPS).flat().flatMap((group) => group.names)]);
  const others = rows.map((row) => row.name).filter((name) => !known.has(name));
  return others.length ? [...groups, { title: "Others", names: others }] : groups;
}

export function labelOf(name: string): string {
  return WORDS[name]?.label ?? RIGHTS[name] ?? name;
}

export function unitOf(name: string): string {
  return WORDS[name]?.unit ?? "";
}

const ON = ["on", "yes"];

/** Whether a setting is a switch, and which words stand for off and on. */
export function switchWords(row: SettingRow): { off: string; on: string } | null {
  const { choices = [] } = row;
  const on = choices.find((word) => ON.includes(word));
  const off = choices.find((word) => word === "off" || word === "no");
  return row.kind === "choice" && choices.length === 2 && on && off ? { on, off } : null;
}

/** A value as text, as a field shows it. */
export function fieldText(value: SettingValue): string {
  if (value === null || value === undefined) return "";
  return Array.isArray(value) ? value.join("\n") : String(value);
}

/** Choices whose word alone says little, by setting. */
const CHOICE_NAMES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "search.fusion": { convex: "Weighted sum", rrf: "Reciprocal ranks" },
  "web.provider": { ddgs: "DuckDuckGo", tavily: "Tavily", brave: "Brave", serper: "Serper", model: "The model's provider" },
};

/** A choice as a person reads it: `Weighted sum (convex)`, or the word itself. */
export function choiceText(row: Pick<SettingRow, "name">, choice: string): string {
  const name = CHOICE_NAMES[row.name]?.[choice];
  return !name || name.toLowerCase() === choice ? (name ?? choice) : `${name} (${choice})`;
}

/** A value in one line, as a person reads it. */
export function valueText(row: SettingRow, value: SettingValue): string {
  const words = switchWords(row);
  if (words) return value === words.on ? "on" : "off";
  if (Array.isArray(value)) return value.length ? value.join(", ") : "none";
  if (value === "" || value === null) return "empty";
  const text = typeof value === "number" ? value.toLocaleString("en") : choiceText(row, value);
  return typeof value === "number" && unitOf(row.name) ? `${text} ${unitOf(row.name)}` : text;
}

/** What a number may be: `1 to 86,400 s`; empty for what has no range. */
export function rangeText(row: SettingRow): string {
  if (row.kind !== "count" || row.most === undefined) return "";
  return `${(row.least ?? 0).toLocaleString("en")} to ${row.most.toLocaleString("en")}`;
}

export interface Source {
  kind: "default" | "variable" | "file" | "flag";
  text: string;
}

/** Where a value comes from, in a few words. */
export function sourceOf(row: SettingRow): Source {
  const { source } = row;
  if (source === "default" || !source) return { kind: "default", text: "Default" };
  if (/^[A-Z][A-Z0-9_]*$/.test(source)) return { kind: "variable", text: `From the environment variable ${source}` };
  if (source.startsWith("--")) return { kind: "flag", text: `From ${source}` };
  const place = /([^/\\]+?)(?::(\d+))?$/.exec(source);
  const file = place?.[1] ?? source;
  if (/^[A-Z][A-Z0-9_]* /.test(source) || file.endsWith(".env")) return { kind: "variable", text: `From ${file}` };
  return { kind: "file", text: place?.[2] ? `From ${file}, line ${place[2]}` : `From ${file}` };
}

/** Why a setting can't be changed here; empty where it can. */
export function whyFixed(row: SettingRow): string {
  if (!row.savable) return "Only in the configuration file";
  const source = sourceOf(row);
  if (source.kind === "variable") return "The variable overrides the file; unset it to change this here";
  return "";
}

export type Read = { value: SettingValue } | { problem: string };

/** Read what somebody typed as a setting's value, and say at once what can't be one. */
export function readInput(row: SettingRow, text: string): Read {
  if (row.kind === "count") return readNumber(row, text);
  if (row.kind === "texts") return { value: text.split(/\r?\n/).map((line) => line.trim()).filter(Boolean) };
  const value = row.kind === "verbatim" ? text : text.trim();
  if (/[\0\r\n]/.test(value)) return { problem: "Use a single line." };
  if (row.kind === "url" && value && !/^https?:\/\/[^\s/]+(\/\S*)?$/.test(value)) return { problem: "An address starts with http:// or https:// and has no spaces." };
  return { value };
}

function readNumber(row: SettingRow, text: string): Read {
  const digits = text.replace(/[\s,]/g, "");
  if (!/^\d{1,10}$/.test(digits)) return { problem: `Enter a whole number: ${rangeText(row)}.` };
  const value = Number(digits);
  const [least, most] = [row.least ?? 0, row.most ?? Infinity];
  if (value < least || value > most) return { problem: `${value.toLocaleString("en")} is out of range: ${rangeText(row)}.` };
  return { value };
}

export function isSame(one: SettingValue, other: SettingValue): boolean {
  return fieldText(one) === fieldText(other);
}

/** The parts of a model's name. */
export interface ModelParts {
  provider: string;
  name: string;
  /** Of a server of one's own. */
  address: string;
}

export const PROVIDERS: readonly { id: string; title: string; detail: string; example: string }[] = [
  { id: "ollama", title: "Ollama", detail: "On this computer, without a key", example: "qwen3:8b" },
  { id: "openai", title: "OpenAI", detail: "", example: "gpt-5-mini" },
  { id: "anthropic", title: "Anthropic", detail: "", example: "claude-sonnet-4-5" },
  { id: "fireworks", title: "Fireworks", detail: "", example: "accounts/fireworks/models/deepseek-v3p1" },
  { id: "openrouter", title: "OpenRouter", detail: "", example: "google/gemini-2.5-flash" },
  { id: "compatible", title: "Another server", detail: "Anything with an OpenAI-compatible API, such as LM Studio or llama.cpp", example: "qwen3-8b" },
];

/** Take a model's name apart, as the server reads it: `openai:NAME`, `NAME@http://HOST/v1`. */
export function readModel(text: string, baseUrl = ""): ModelParts {
  const at = /^(.*)@(https?:\/\/\S+)$/.exec(text.trim());
  const [rest, address] = at ? [at[1] ?? "", at[2] ?? ""] : [text.trim(), baseUrl];
  const colon = rest.indexOf(":");
  const provider = rest.slice(0, Math.max(0, colon));
  if (colon > 0 && provider !== "compatible" && PROVIDERS.some((one) => one.id === provider)) return { provider, name: rest.slice(colon + 1), address: at ? address : "" };
  if (!rest) return { provider: "", name: "", address: "" };
  if (rest.startsWith("accounts/fireworks/") && !address) return { provider: "fireworks", name: rest, address: "" };
  return { provider: "compatible", name: rest, address };
}

/** Put a model's name together; or what is missing. */
export function writeModel({ provider, name, address }: ModelParts): { name: string } | { problem: string; field: "name" | "address" } {
  const wanted = name.trim();
  if (!wanted) return { problem: "Enter the model's name.", field: "name" };
  if (/\s/.test(wanted)) return { problem: "A model's name can't contain spaces.", field: "name" };
  if (provider !== "compatible") return { name: `${provider}:${wanted}` };
  if (!/^https?:\/\/[^\s/@]+(\/\S*)?$/.test(address.trim())) return { problem: "The server's address starts with http:// or https://.", field: "address" };
  return { name: `${wanted}@${address.trim().replace(/\/$/, "")}` };
}

const KINDS: Readonly<Record<string, string>> = {
  no_model: "No model chosen",
  model_name: "Invalid model name",
  model_key: "The key is missing or wasn't accepted",
  model_unknown: "Model not found",
  model_quota: "The account's quota is used up",
  model_busy: "The provider is busy",
  model_context: "The model's context is too small",
  model_reply: "Unusable answer",
  budget_spent: "Today's limit is reached",
  timeout: "No answer in time",
  unreachable: "The server can't be reached",
  missing_extra: "A package is missing",
  no_keyring: "No working keyring on this computer",
};

/** What kind of failure it was, in a few words. */
export function failureTitle(code: string): string {
  return KINDS[code] ?? "The model doesn't answer";
}

/** What helps after a test failed: for a key its field, which stands below, and not the server's command. */
export function trialHint({ code, hint }: { code: string; hint: string }): string {
  return code === "model_key" ? "Enter the provider's key below, under Keys, then test again." : hint;
}

/** The keyring's name of a provider or a server, and the setting that holds its key in the file; none for Ollama. */
export function keyPlace(parts: ModelParts): { provider: string; setting: string } | null {
  if (parts.provider === "compatible") return parts.address ? { provider: parts.address.replace(/\/$/, ""), setting: "" } : null;
  return parts.provider && parts.provider !== "ollama" ? { provider: parts.provider, setting: `model.${parts.provider}_api_key` } : null;
}

export type ProgramRow = Reply<"get", "/clients">["programs"][number];

const KIND_NAMES: Readonly<Record<ProgramRow["kind"], string>> = {
  person: "You, as a person",
  mcp: "MCP clients",
  http: "Programs",
  agent: "Agent",
  script: "Scripts",
  named: "Program",
};
const TOKENS: Readonly<Record<ProgramRow["credential"], string>> = {
  own: "a token of its own",
  api: "the API's token",
  page: "this browser's sign-in",
  none: "no token, so it can't connect",
};
/** Those that never call the server. */
const INSIDE: Readonly<Record<string, string>> = { cli: "At the command line", agent: "Works within Knapper", script: "Works within Knapper" };
const OUTCOMES = { apply: "applied", propose: "proposed", refuse: "refused" } as const;

export function kindName(row: ProgramRow): string {
  return KIND_NAMES[row.kind];
}

/** What it shows to the server, or why it shows nothing. */
export function tokenText(row: ProgramRow): string {
  const isKnown = row.credential === "none" && Object.hasOwn(INSIDE, row.name); // a program may be called __proto__
  const inside = isKnown ? INSIDE[row.name] : undefined;
  return inside ?? `Shows ${TOKENS[row.credential]}`;
}

/** Whether it calls the server, so that it is known when it did. */
export function callsServer(row: ProgramRow): boolean {
  return row.credential !== "none";
}

/** What a client may do, each a short line. */
export function rightsLines({ rights }: ProgramRow): string[] {
  const lines = [changesLine(rights)];
  const all = ["add", "create", "delete", "move", "navigate", "properties"];
  const missing = all.filter((one) => !(rights.capabilities as readonly string[]).includes(one));
  if (!rights.is_read_only && missing.length) lines.push(`May not: ${missing.join(", ")}`);
  if (!rights.is_read_only && rights.scope !== "all") lines.push(`Changes only ${{ current: "the open note", linked: "the open note and those it links to", context: "the notes it was given" }[rights.scope]}`);
  const lists: [string, readonly string[]][] = [
    ["Changes only", rights.write],
    ["Never changes", rights.read_only],
    ["Can read only", rights.read],
    ["Can't read", rights.hidden],
    ["Vaults", rights.vaults],
  ];
  return [...lines, ...lists.filter(([, names]) => names.length).map(([title, names]) => `${title}: ${names.join(", ")}`)];
}

function changesLine(rights: ProgramRow["rights"]): string {
  if (rights.is_read_only) return "Can read only";
  if (rights.small === rights.large) return `Changes are ${OUTCOMES[rights.small]}`;
  return `Small changes are ${OUTCOMES[rights.small]}, others ${OUTCOMES[rights.large]}`;
}

/** The rest of a time as `1:05`. */
export function countdown(ms: number): string {
  const seconds = Math.max(0, Math.ceil(ms / 1_000));
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

/** A QR code as the outline of its dark squares, row by row; its side in squares. */
export function qrPath(rows: readonly string[]): { side: number; path: string } {
  const parts: string[] = [];
  for (const [y, row] of rows.entries()) {
    for (const match of row.matchAll(/1+/g)) parts.push(`M${match.index} ${y}h${match[0].length}v1h-${match[0].length}z`);
  }
  return { side: rows.length, path: parts.join("") };
}

"""The sections of the settings: models, the network, agents, runs and scripts."""

import re
from dataclasses import dataclass, field, replace
from typing import Literal, Self

from knapper.agents.pipeline import scopes
from knapper.config.declarations import FilePath, SettingsSection, Url, setting
from knapper.errors import SetupError

OfferedTools = Literal["auto", "full", "essential"]
ReaderCount = Literal["auto", "0", "1", "2", "3", "4", "6", "8", "12", "16"]
McpProfile = Literal["standard", "essential", "full", "read-only"]
DEFAULT_PORT = 25_627
"""2, then K-N-A-P on a telephone's keys: assigned to nobody by IANA, and below what Kubernetes and systems give out."""

_NO_LIMIT = "0 for no limit."
KEY_PROVIDERS = ("openai", "anthropic", "fireworks", "openrouter")


def _provider_key(provider: str) -> str:
    return setting(
        "",
        f"The key for models of {provider.capitalize()}; without one the system's keyring is asked.",
        env=(f"{provider.upper()}_API_KEY",),
        secret=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings(SettingsSection):
    """The language model that writes and reasons, its keys, and how much of it may be used."""

    name: str = setting(
        "",
        "The language model that writes and reasons; empty for none.",
        env=("KNAP_MODEL", "FIREWORKS_MODEL", "LLM_MODEL"),
    )
    base_url: Url = setting("", "The address of an OpenAI-compatible endpoint for the model.", env=("KNAP_BASE_URL",))
    api_key: str = setting("", "The key for the model.", env=("KNAP_API_KEY", "FIREWORKS_API_KEY"), secret=True)
    openai_api_key: str = _provider_key("openai")
    anthropic_api_key: str = _provider_key("anthropic")
    fireworks_api_key: str = _provider_key("fireworks")
    openrouter_api_key: str = _provider_key("openrouter")
    ollama_url: Url = setting("http://localhost:11434", "The address of the Ollama server.", env=("OLLAMA_BASE_URL",))
    fallbacks: tuple[str, ...] = setting((), "Models to fall back to, in order, when the model can't answer.")
    timeout_s: int = setting(300, "How long to wait for the model to respond, in seconds.", least=1, most=86_400)
    retries: int = setting(2, "How often a request is retried after a temporary failure.", most=10)
    context_tokens: int = setting(
        24_000,
        "How long a conversation may get, in tokens, before its beginning is summarised.",
        least=2_000,
        most=10_000_000,
    )
    tools: OfferedTools = setting(
        "auto",
        "Which tools the model is offered from the start: all, which takes 12,000 tokens in each request, or the "
        "essential ones, which takes 2,000, while it finds the others as it needs them. auto is essential.",
    )
    turn_tokens: int = setting(
        500_000, f"How many tokens one answer may use, tool calls included; {_NO_LIMIT}", most=1_000_000_000
    )
    turn_rounds: int = setting(20, "How many rounds of tool calls one answer may take.", least=1, most=100)
    turn_calls: int = setting(0, f"How many tool calls one answer may make; {_NO_LIMIT}", most=10_000)
    turn_minutes: int = setting(0, f"How long one answer may take, in minutes; {_NO_LIMIT}", most=1_440)
    turn_cents: int = setting(
        0,
        f"How much one answer may cost, in cents of a US dollar, where the price is known; {_NO_LIMIT}",
        most=1_000_000,
    )
    run_tokens: int = setting(0, f"How many tokens one session or run may use; {_NO_LIMIT}", most=1_000_000_000)
    day_tokens: int = setting(0, f"How many tokens may be used in a day; {_NO_LIMIT}", most=1_000_000_000)
    day_cents: int = setting(
        0,
        f"How much may be spent in a day, in cents of a US dollar, where prices are known; {_NO_LIMIT}",
        most=1_000_000,
    )
    session_days: int = setting(
        365, "How long a session is kept after its last message, in days.", least=1, most=36_500
    )
    sessions_mb: int = setting(
        200,
        "How much space the sessions of one client in a vault may use, in megabytes; its oldest are deleted first.",
        least=1,
        most=100_000,
    )
    telemetry: bool = setting(
        False,
        "Whether turns are traced with OpenTelemetry, without their text; its own variables say where to.",
    )
    prompt: FilePath = setting(
        "",
        "A file with instructions for the chat in place of the built-in ones; "
        "chat.md in the folder prompts beside the configuration file otherwise, if it is there.",
    )

    keys: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Once the section is read, the providers that have a key of their own, each with it."""

    def checked(self) -> Self:
        """Return the section with the providers' keys in one place."""
        own = (self.openai_api_key, self.anthropic_api_key, self.fireworks_api_key, self.openrouter_api_key)
        keys = tuple((provider, key) for provider, key in zip(KEY_PROVIDERS, own, strict=True) if key)
        return replace(
            self, keys=keys, openai_api_key="", anthropic_api_key="", fireworks_api_key="", openrouter_api_key=""
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankSettings(SettingsSection):
    """What puts the best passages of a search into a better order."""

    kind: Literal["off", "endpoint", "onnx"] = setting(
        "off",
        "What puts the best passages of a search by meaning into a better order: nothing (off), a server with /rerank, "
        "such as llama.cpp, Jina or Cohere (endpoint), or a cross-encoder on this machine (onnx).",
        env=("KNAP_RERANK",),
    )
    base_url: Url = setting(
        "",
        "The address of that server, such as http://localhost:8080/v1; the question and the best passages go to it.",
        env=("KNAP_RERANK_BASE_URL",),
    )
    model: str = setting(
        "", "The name of the reranking model; empty where the server has one alone.", env=("KNAP_RERANK_MODEL",)
    )
    api_key: str = setting(
        "",
        "The key of that server; keyring for the one that the system's keyring has for this address.",
        env=("KNAP_RERANK_API_KEY",),
        secret=True,
    )
    folder: FilePath = setting(
        "", "The folder of a cross-encoder, for onnx: tokenizer.json and model.onnx.", env=("KNAP_RERANK_FOLDER",)
    )
    passages: int = setting(30, "How many of the best passages are put into a new order.", least=2, most=200)
    timeout_s: int = setting(
        3, "How long the server may take, in seconds; after that, the order is that without it.", least=1, most=120
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioSettings(SettingsSection):
    """What transcribes audio, and whether recordings may leave the machine."""

    access: Literal["auto", "off", "local", "on"] = setting(
        "auto",
        "Whether recordings may be transcribed: off, on this machine only (local), on, "
        "or where a key, a provider or an address is set (auto).",
        env=("KNAP_AUDIO",),
    )
    provider: Literal["auto", "fireworks", "openai", "server", "whisper"] = setting(
        "auto",
        "What transcribes: fireworks, openai, an OpenAI-compatible server at audio.base_url, or whisper on this "
        "machine; auto uses the server if one is set, otherwise fireworks.",
    )
    model: str = setting(
        "whisper-v3",
        "The model that transcribes audio; the default stands for the provider's own default.",
        env=("WHISPER_MODEL",),
    )
    base_url: Url = setting(
        "",
        "The address of an OpenAI-compatible transcription server, such as http://localhost:8000/v1.",
        env=("KNAP_AUDIO_BASE_URL",),
    )
    api_key: str = setting(
        "",
        "The key for transcription; without one, the Fireworks or OpenAI key is used, each for its own service only.",
        env=("KNAP_AUDIO_API_KEY",),
        secret=True,
    )
    language: str = setting("", "The language that is spoken, such as de; empty to let the model detect it.")
    max_mb: int = setting(200, "How large a recording may be, in megabytes.", least=1, most=2_000)
    timeout_s: int = setting(
        600, "How long sending and transcribing one recording may take, in seconds.", least=1, most=86_400
    )


WebProvider = Literal["ddgs", "tavily", "brave", "serper", "model"]

_MIN_TOKEN_CHARS = 24
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/*?#@]+")
_HOST = re.compile(r"[^\s/*?#@]+")
ANY_LOCAL_PAGE = "http://localhost"
"""Obsidian on Android has this origin, and so have all apps of its making, and any page at a machine's port 80."""
_PUBLIC_URL = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9a-f:.]+\]|[a-z0-9-]+(?:\.[a-z0-9-]+)*)"
    r"(?::(?P<port>[1-9][0-9]{0,4}))?(?P<path>(?:/[\w.~%-]+)*)",
    re.ASCII | re.IGNORECASE,
)
_MAX_PORT = 65_535
_LOOPBACK_NAMES = ("localhost", "[::1]")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSettings(SettingsSection):
    """Whether tools may reach the web, and how."""

    is_allowed: bool = setting(
        False, "Whether tools may search the web and fetch pages.", name="access", env=("KNAP_WEB_ACCESS",)
    )
    provider: WebProvider = setting(
        "ddgs",
        "The search provider: DuckDuckGo (ddgs), Tavily, Brave, Serper, or a model provider's search (model, openai).",
        env=("KNAP_WEB_PROVIDER",),
        aliases={"openai": "model"},
    )
    api_key: str = setting(
        "",
        "The search provider's key; for model, the model's key is used where this is empty.",
        env=("KNAP_WEB_API_KEY",),
        secret=True,
    )
    """Once the section is read, the chosen provider's own key where it has one."""
    tavily_api_key: str = setting("", "The key of Tavily.", env=("TAVILY_API_KEY",), secret=True)
    brave_api_key: str = setting("", "The key of Brave.", env=("BRAVE_API_KEY", "BRAVE_SEARCH_API_KEY"), secret=True)
    serper_api_key: str = setting("", "The key of Serper.", env=("SERPER_API_KEY",), secret=True)
    base_url: Url = setting(
        "",
        "The address of the provider's API, if it isn't the default one; not for ddgs.",
        env=("KNAP_WEB_BASE_URL",),
    )
    model: str = setting(
        "", "The model that searches, for the provider model; empty for model.name.", env=("KNAP_WEB_MODEL",)
    )
    max_results: int = setting(8, "The most results a search returns.", env=("KNAP_WEB_MAX_RESULTS",), least=3, most=15)
    max_pages: int = setting(
        3,
        "The most pages an agent reads in full for one question.",
        env=("KNAP_WEB_MAX_PAGES",),
        least=1,
        most=5,
    )
    token_budget: int = setting(
        8_000,
        "The most tokens of web text an agent uses for one answer.",
        env=("KNAP_WEB_TOKEN_BUDGET",),
        least=2_000,
        most=20_000,
    )
    hosts: tuple[str, ...] = setting(
        (), "Hosts that pages may be fetched from, such as example.org and *.example.org; empty for any public host."
    )
    timeout_s: int = setting(
        20,
        "How long a page, or one attempt at a search, may take, in seconds.",
        env=("KNAP_WEB_TIMEOUT",),
        least=2,
        most=120,
    )
    max_page_kb: int = setting(
        2_000, "How large a page may be, in kilobytes.", env=("KNAP_WEB_MAX_PAGE_KB",), least=10, most=10_000
    )

    def checked(self) -> Self:
        """Return the section with the chosen provider's key alone, so that no provider is sent another's."""
        own = {"tavily": self.tavily_api_key, "brave": self.brave_api_key, "serper": self.serper_api_key}
        key = own.get(self.provider) or self.api_key
        return replace(self, api_key=key, tavily_api_key="", brave_api_key="", serper_api_key="")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings(SettingsSection):
    """Where the HTTP server listens, whom it lets in, and how much it takes on."""

    host: str = setting(
        "127.0.0.1", "The address to listen at; one other than loopback needs server.token.", env=("KNAP_HOST",)
    )
    port: int = setting(DEFAULT_PORT, "The port of the HTTP server.", env=("API_PORT",), least=1, most=65_535)
    """0, which no source can give, for any free one."""
    token: str = setting(
        "",
        "The token that programs send; empty for one that is created at the first start and kept in a file.",
        env=("KNAP_TOKEN",),
        secret=True,
    )
    origins: tuple[str, ...] = setting(
        ("app://obsidian.md", "capacitor://localhost"),
        "Origins whose web pages may call the server; by default those of Obsidian on computers and iPhones.",
    )
    hosts: tuple[str, ...] = setting(
        (), "Host names that the server answers to besides its own address, such as a proxy's."
    )
    public_url: Url = setting(
        "",
        "The address at which others reach the server, such as a proxy's: https://notes.example/knapper. Links to "
        "proposals start with it, and its host is added to server.hosts.",
        env=("KNAP_PUBLIC_URL",),
    )
    mcp_profile: McpProfile = setting("standard", "Which tools MCP clients are offered at /mcp.")
    mcp_output_schemas: bool = setting(
        False,
        "Whether each tool at /mcp declares its output schema; with the profiles full and read-only it always does.",
    )
    answers_commands: bool = setting(
        True,
        "Whether `knap search` and the other commands that only read ask a running server of this vault instead of "
        "loading the index themselves.",
        env=("KNAP_USE_SERVER",),
        words=("no", "yes"),
    )
    max_body_mb: int = setting(10, "How large a request may be, in megabytes.", least=1, most=1_000)
    requests_per_minute: int = setting(
        1_200, "How many requests one client may make in a minute; 0 for no limit.", most=1_000_000
    )
    threads: int = setting(
        8,
        "Threads for calls that read; half as many are added for calls that write.",
        least=1,
        most=256,
    )
    readers: ReaderCount = setting(
        "0",
        "How many processes of their own may answer searches over HTTP while several are under way, beside the "
        "server's: for many users of a large vault; auto is one for each processor, up to four, and 0 on a machine "
        "with one.",
    )
    stop_seconds: int = setting(
        10, "How long running calls have to finish when the server stops, in seconds.", least=1, most=600
    )

    def checked(self) -> Self:
        """Return the section with origins and hosts in the form that requests are compared with.

        Raises:
            SetupError: The token is too short, or something isn't an origin, a name or a public address.
        """
        if self.token and (
            len(self.token) < _MIN_TOKEN_CHARS
            or not self.token.isascii()
            or not self.token.isprintable()
            or " " in self.token
        ):
            raise _invalid_setting_error(
                "server.token", "it has to have at least 24 letters, digits and signs", "`knap token new` makes one"
            )
        origins = tuple(one.rstrip("/").lower() for one in self.origins)
        _check_forms("server.origins", origins, _ORIGIN, "write each as scheme://host, or scheme://host:port")
        if ANY_LOCAL_PAGE in origins:
            raise _invalid_setting_error(
                "server.origins",
                f"{ANY_LOCAL_PAGE} is the origin of every page that this machine or a phone serves itself",
                "take it out; name a port, as in http://localhost:3000, for a page of your own",
            )
        hosts = tuple(one.lower() for one in self.hosts)
        _check_forms("server.hosts", hosts, _HOST, "write names alone, such as notes.example")
        public_url, public_host = _check_public_url(self.public_url)
        if public_host and public_host not in hosts:
            hosts = (*hosts, public_host)
        return replace(self, host=self.host or "127.0.0.1", origins=origins, hosts=hosts, public_url=public_url)


def _check_forms(name: str, values: tuple[str, ...], form: re.Pattern[str], hint: str) -> None:
    for one in values:
        if not form.fullmatch(one):
            raise _invalid_setting_error(name, f"'{one}' can't stand there", hint)


def _check_public_url(url: str) -> tuple[str, str]:
    """Return a public address, its host in lower case, and the host; both are empty for none.

    The message doesn't quote it: it may hold a password.
    """
    if not url:
        return "", ""
    match = _PUBLIC_URL.fullmatch(url)
    if match is None or int(match["port"] or 0) > _MAX_PORT:
        hint = "write scheme, name and path alone, such as https://notes.example, without user, `?` and `#`"
        raise _invalid_setting_error("server.public_url", "it isn't an address that a browser can open as it is", hint)
    host = match["host"].lower()
    is_loopback = host in _LOOPBACK_NAMES or re.fullmatch(r"127(?:\.[0-9]{1,3}){3}", host)
    if match["scheme"].lower() == "http" and not is_loopback:
        raise _invalid_setting_error(
            "server.public_url", "over http, others could read what is sent", "give the address that has https"
        )
    return url.lower()[: match.start("path")] + url[match.start("path") :], "" if is_loopback else host.strip("[]")


def _invalid_setting_error(name: str, problem: str, hint: str) -> SetupError:
    return SetupError(f"{name} can't be used: {problem}", code="config_invalid", hint=hint)


EditableNotes = Literal["current", "linked", "context"]
ScriptWalls = Literal["required", "best"]
TaskCapability = Literal["add", "delete", "create", "navigate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoutAgentSettings(SettingsSection):
    """How the agent works that explores the vault."""

    rounds: int = setting(5, "How many rounds the scout has for searching.", least=2, most=10)
    notes: int = setting(20, "How many notes the scout may choose.", least=3, most=50)
    keyword_limit: int = setting(10, "How many notes a word search returns to the scout.", least=3, most=20)
    model: str = setting("", "The scout's model; empty for model.name.")
    tools: tuple[str, ...] = setting(
        scopes.OPTIONAL_SCOUT_TOOLS, "The scout's tools.", choices=scopes.OPTIONAL_SCOUT_TOOLS
    )
    show_tags: bool = setting(False, "Whether the scout sees all tags of the vault at the start.")
    timeout_s: int = setting(
        300, "How long the scout may take, in seconds; after that, its last choice is used.", least=5, most=86_400
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings(SettingsSection):
    """How tasks are done, and by which agents."""

    scout_on: bool = setting(
        False,
        "Whether an agent explores the vault for the notes that a task needs; your last choice overrides it.",
        name="scout",
    )
    web_on: bool = setting(
        False,
        "Whether an agent searches the web for a task, if web.access allows it; your last choice overrides it.",
        name="web",
    )
    task_on: bool = setting(
        True,
        "Whether an agent does the task, or the others only show what they found; your last choice overrides it.",
        name="task",
    )
    link_depth: int = setting(
        2, "How many links away from the open note its context reaches; 0 for the note alone.", most=3
    )
    same_folder: bool = setting(False, "Whether notes in the same folder as the open note are included.")
    excluded_folders: tuple[str, ...] = setting(
        (), "Folders whose notes aren't included, and through which no links are followed."
    )
    editable: EditableNotes = setting(
        "context",
        "Which notes a task may change: the open one, that one and the notes linked with it, or all in its context.",
    )
    can: tuple[TaskCapability, ...] = setting(("add", "delete", "create", "navigate"), "What a task may do to notes.")
    token_limit: int = setting(
        16_000,
        "The most tokens of notes that a task gets; notes beyond that are left out and named.",
        least=3_000,
        most=2_000_000,
    )
    linked_notes: int = setting(
        20,
        "The most notes included only because they are linked, nearest first; others are named; 0 for all.",
        most=10_000,
    )
    semantic_notes: int = setting(
        0, "The most notes included because they are near the open note in meaning; 0 for none.", most=20
    )
    semantic_similarity: int = setting(
        50, "How near those notes are at least: the cosine of their nearest section, in percent.", most=100
    )
    chat_history_length: int = setting(10, "How many earlier messages of the session a task gets.", most=100)
    orchestrate: bool = setting(False, "Whether a model chooses which of the enabled agents work, and in which order.")
    orchestrator_steps: int = setting(
        4, "How many rounds agents gather context before the task starts.", least=1, most=8
    )
    orchestrator_tokens: int = setting(
        0,
        "How many tokens gathering context may use before the task starts with what there is; 0 for no limit.",
        most=1_000_000_000,
    )
    scout: ScoutAgentSettings = ScoutAgentSettings()
    auto_search: bool = setting(
        True,
        "Whether the web agent searches on its own where notes don't answer, or only suggests it.",
        name="web.auto_search",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings(SettingsSection):
    """How much a run may take, and how it retrieves."""

    strategy: str = setting(
        "auto",
        "How runs are split and carried out: a strategy's name, or auto to let the model choose.",
        env=("KNAP_RUNS_STRATEGY",),
    )
    code_mode: bool = setting(
        True,
        "Whether scripts find what a run needs; otherwise search does.",
        env=("KNAP_RUNS_CODE_MODE",),
        words=("on", "off"),
    )
    depth: int = setting(3, "How many levels of subtasks a run may have.", env=("KNAP_RUNS_DEPTH",), most=8)
    nodes: int = setting(
        50,
        "How many parts a run may have, including the task itself.",
        env=("KNAP_RUNS_NODES",),
        least=1,
        most=500,
    )
    minutes: int = setting(
        20,
        "How long a run may take, in minutes; a quarter is kept for its answer.",
        env=("KNAP_RUNS_MINUTES",),
        least=1,
        most=1_440,
    )
    tokens: int = setting(
        1_000_000,
        "How many tokens a run may use; a quarter is kept for its answer; 0 for no limit.",
        env=("KNAP_RUNS_TOKENS",),
        most=1_000_000_000,
    )
    cents: int = setting(
        0,
        "How much a run may cost, in cents of a US dollar, where prices are known; 0 for no limit.",
        env=("KNAP_RUNS_CENTS",),
        most=1_000_000,
    )
    parallel: int = setting(
        4,
        "How many parts of a run work at the same time.",
        env=("KNAP_RUNS_PARALLEL",),
        least=1,
        most=64,
    )
    days: int = setting(90, "How long a run is kept after its last activity, in days.", least=1, most=36_500)
    min_context_chars: int = setting(
        2_000, "How many characters of context a script should find; less lowers its score.", least=1, most=200_000
    )
    min_citations: int = setting(2, "How many places a script should cite; fewer lower its score.", least=1, most=1_000)
    low_score_percent: int = setting(
        45, "The score, in percent, below which a script's result isn't good enough.", most=100
    )
    low_confidence_percent: int = setting(
        50, "A script's own confidence, in percent, below which its result isn't good enough.", most=100
    )
    regens_per_node: int = setting(1, "How often a part's script may be rewritten.", most=20)
    regens_per_run: int = setting(5, "How often scripts may be rewritten in a whole run.", most=1_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptSettings(SettingsSection):
    """What scripts in the sandbox may use."""

    timeout_s: int = setting(
        60,
        "How long a script may run, in seconds, including its searches and reads.",
        env=("KNAP_SCRIPTS_TIMEOUT_S",),
        least=1,
        most=3_600,
    )
    memory_mb: int = setting(
        512,
        "How much memory a script may use, in megabytes.",
        env=("KNAP_SCRIPTS_MEMORY_MB",),
        least=64,
        most=3_000,
    )
    result_kb: int = setting(
        200,
        "How large a script's result may be, in kilobytes of JSON.",
        env=("KNAP_SCRIPTS_RESULT_KB",),
        least=1,
        most=4_000,
    )
    workers: int = setting(
        4,
        "How many scripts may run at the same time; others wait.",
        env=("KNAP_SCRIPTS_WORKERS",),
        least=1,
        most=64,
    )
    walls: ScriptWalls = setting(
        "best",
        "Whether scripts are refused where part of the system's own confinement is unavailable (required), or run with"
        " what there is (best).",
        env=("KNAP_SCRIPTS_WALLS",),
    )
    fs_read: tuple[str, ...] = setting((), "Folders whose files scripts may read in the profiles local and extended.")
    """As written; ``~`` is the home folder."""
    net_allow: tuple[str, ...] = setting(
        (), "Hosts that scripts may get pages from in the profile extended: example.org, *.example.org."
    )

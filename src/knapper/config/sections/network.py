"""The sections on web access and on the HTTP server."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from knapper.config.declarations import Setting, SettingValues, get_count, get_text, get_texts
from knapper.errors import SetupError

WebProvider = Literal["ddgs", "tavily", "brave", "serper", "model"]
_PROVIDERS: Final[Mapping[str, WebProvider]] = {
    "ddgs": "ddgs",
    "tavily": "tavily",
    "brave": "brave",
    "serper": "serper",
    "model": "model",
    "openai": "model",
}
_PROVIDER_KEYS: Final[Mapping[WebProvider, str]] = {
    "tavily": "web.tavily_api_key",
    "brave": "web.brave_api_key",
    "serper": "web.serper_api_key",
}
"""Settings that hold one provider's key, so that no provider is sent another's."""

WEB_SETTINGS = (
    Setting(
        name="web.access",
        doc="Whether tools may search the web and fetch pages.",
        kind="choice",
        default="off",
        env=("KNAP_WEB_ACCESS",),
        choices=("off", "on"),
    ),
    Setting(
        name="web.provider",
        doc="Who searches: DuckDuckGo (ddgs), Tavily, Brave, Serper, or a model provider's own search (model, openai).",
        kind="choice",
        default="ddgs",
        env=("KNAP_WEB_PROVIDER",),
        choices=tuple(_PROVIDERS),
    ),
    Setting(
        name="web.api_key",
        doc="The key of the provider that searches; for model, the key of the model counts where this is empty.",
        env=("KNAP_WEB_API_KEY",),
        secret=True,
    ),
    Setting(name="web.tavily_api_key", doc="The key of Tavily.", env=("TAVILY_API_KEY",), secret=True),
    Setting(
        name="web.brave_api_key",
        doc="The key of Brave.",
        env=("BRAVE_API_KEY", "BRAVE_SEARCH_API_KEY"),
        secret=True,
    ),
    Setting(name="web.serper_api_key", doc="The key of Serper.", env=("SERPER_API_KEY",), secret=True),
    Setting(
        name="web.base_url",
        doc="The address of the provider's API, where it isn't the usual one; not for ddgs.",
        kind="url",
        env=("KNAP_WEB_BASE_URL",),
    ),
    Setting(
        name="web.model",
        doc="The model that searches, for the provider model; empty for model.name.",
        env=("KNAP_WEB_MODEL",),
    ),
    Setting(
        name="web.max_results",
        doc="How many results a search gives at most.",
        kind="count",
        default=8,
        env=("KNAP_WEB_MAX_RESULTS",),
        least=3,
        most=15,
    ),
    Setting(
        name="web.max_pages",
        doc="How many pages an agent reads in full for one question at most.",
        kind="count",
        default=3,
        env=("KNAP_WEB_MAX_PAGES",),
        least=1,
        most=5,
    ),
    Setting(
        name="web.token_budget",
        doc="How many tokens of the web's text an agent takes into one answer at most.",
        kind="count",
        default=8_000,
        env=("KNAP_WEB_TOKEN_BUDGET",),
        least=2_000,
        most=20_000,
    ),
    Setting(
        name="web.hosts",
        doc="Hosts that pages are fetched from, such as example.org and *.example.org; empty for any public one.",
        kind="texts",
        default=(),
    ),
    Setting(
        name="web.timeout_s",
        doc="How long a page, or one try of a search, may take, in seconds.",
        kind="count",
        default=20,
        env=("KNAP_WEB_TIMEOUT",),
        least=2,
        most=120,
    ),
    Setting(
        name="web.max_page_kb",
        doc="How long a page may be, in kilobytes.",
        kind="count",
        default=2_000,
        env=("KNAP_WEB_MAX_PAGE_KB",),
        least=10,
        most=10_000,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSettings:
    """Say whether tools may reach the web, and how."""

    is_allowed: bool = False
    provider: WebProvider = "ddgs"
    api_key: str = field(default="", repr=False)
    """The chosen provider's, or empty."""
    base_url: str = ""
    model: str = ""
    max_results: int = 8
    max_pages: int = 3
    token_budget: int = 8_000
    hosts: tuple[str, ...] = ()
    timeout_s: int = 20
    max_page_kb: int = 2_000


def read_web(values: SettingValues) -> WebSettings:
    """Give the section."""
    provider = _PROVIDERS[get_text(values, "web.provider")]
    own = _PROVIDER_KEYS.get(provider)
    return WebSettings(
        is_allowed=get_text(values, "web.access") == "on",
        provider=provider,
        api_key=(get_text(values, own) if own else "") or get_text(values, "web.api_key"),
        base_url=get_text(values, "web.base_url"),
        model=get_text(values, "web.model"),
        max_results=get_count(values, "web.max_results"),
        max_pages=get_count(values, "web.max_pages"),
        token_budget=get_count(values, "web.token_budget"),
        hosts=get_texts(values, "web.hosts"),
        timeout_s=get_count(values, "web.timeout_s"),
        max_page_kb=get_count(values, "web.max_page_kb"),
    )


_MIN_TOKEN_CHARS = 24
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/*?#@]+")
_HOST = re.compile(r"[^\s/*?#@]+")

SERVER_SETTINGS = (
    Setting(
        name="server.host",
        doc="The address to listen at; one other than loopback needs server.token.",
        default="127.0.0.1",
        env=("KNAP_HOST",),
    ),
    Setting(
        name="server.port",
        doc="The port of the HTTP server.",
        kind="count",
        default=8000,
        env=("API_PORT",),
        least=1,
        most=65_535,
    ),
    Setting(
        name="server.token",
        doc="The token that programs show; empty for one that is made at the first start and kept in a file.",
        env=("KNAP_TOKEN",),
        secret=True,
    ),
    Setting(
        name="server.origins",
        doc="Origins whose web pages may call the server.",
        kind="texts",
        default=("app://obsidian.md",),
    ),
    Setting(
        name="server.hosts",
        doc="Names by which the server may be called besides its own address, such as a proxy's.",
        kind="texts",
        default=(),
    ),
    Setting(
        name="server.max_body_mb",
        doc="How large a request may be, in megabytes.",
        kind="count",
        default=10,
        least=1,
        most=1_000,
    ),
    Setting(
        name="server.requests_per_minute",
        doc="How many requests one client may make in a minute; 0 for no limit.",
        kind="count",
        default=1_200,
        most=1_000_000,
    ),
    Setting(
        name="server.threads",
        doc="Threads for calls that read; half as many for those that write. As many begin at once as compute well.",
        kind="count",
        default=8,
        least=1,
        most=256,
    ),
    Setting(
        name="server.stop_seconds",
        doc="How long running calls may take to finish when the server is stopped, in seconds.",
        kind="count",
        default=10,
        least=1,
        most=600,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """Say where the HTTP server listens, whom it lets in, and how much it takes on."""

    host: str = "127.0.0.1"
    port: int = 8000
    """0 for any free one."""
    token: str = field(default="", repr=False)
    """Empty for the one that is kept in a file."""
    origins: tuple[str, ...] = ("app://obsidian.md",)
    """Whose web pages may call."""
    hosts: tuple[str, ...] = ()
    """What the server may be called besides its own address."""
    max_body_mb: int = 10
    requests_per_minute: int = 1_200
    """Of one client; 0 for no limit."""
    threads: int = 8
    stop_seconds: int = 10


def read_server(values: SettingValues) -> ServerSettings:
    """Give the section.

    Raises:
        SetupError: The token is too short, or something isn't an origin or a name.
    """
    token = get_text(values, "server.token")
    if token and (len(token) < _MIN_TOKEN_CHARS or not token.isascii() or not token.isprintable() or " " in token):
        raise _invalid_setting_error(
            "server.token", "it has to have at least 24 letters, digits and signs", "`knap token new` makes one"
        )
    origins = tuple(one.rstrip("/").lower() for one in get_texts(values, "server.origins"))
    _check_forms("server.origins", origins, _ORIGIN, "write each as scheme://host, or scheme://host:port")
    hosts = tuple(one.lower() for one in get_texts(values, "server.hosts"))
    _check_forms("server.hosts", hosts, _HOST, "write names alone, such as notes.example")
    return ServerSettings(
        host=get_text(values, "server.host") or "127.0.0.1",
        port=get_count(values, "server.port"),
        token=token,
        origins=origins,
        hosts=hosts,
        max_body_mb=get_count(values, "server.max_body_mb"),
        requests_per_minute=get_count(values, "server.requests_per_minute"),
        threads=get_count(values, "server.threads"),
        stop_seconds=get_count(values, "server.stop_seconds"),
    )


def _check_forms(name: str, given: tuple[str, ...], form: re.Pattern[str], hint: str) -> None:
    for one in given:
        if not form.fullmatch(one):
            raise _invalid_setting_error(name, f"'{one}' can't stand there", hint)


def _invalid_setting_error(name: str, problem: str, hint: str) -> SetupError:
    return SetupError(f"{name} can't be used: {problem}", code="config_invalid", hint=hint)

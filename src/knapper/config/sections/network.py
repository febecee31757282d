"""The sections on web access and on the HTTP server."""

import re
from dataclasses import dataclass, replace
from typing import Literal, Self

from knapper.config.declarations import SettingsSection, Url, setting
from knapper.errors import SetupError

WebProvider = Literal["ddgs", "tavily", "brave", "serper", "model"]

_MIN_TOKEN_CHARS = 24
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/*?#@]+")
_HOST = re.compile(r"[^\s/*?#@]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSettings(SettingsSection):
    """Whether tools may reach the web, and how."""

    is_allowed: bool = setting(
        False, "Whether tools may search the web and fetch pages.", name="access", env=("KNAP_WEB_ACCESS",)
    )
    provider: WebProvider = setting(
        "ddgs",
        "Who searches: DuckDuckGo (ddgs), Tavily, Brave, Serper, or a model provider's own search (model, openai).",
        env=("KNAP_WEB_PROVIDER",),
        aliases={"openai": "model"},
    )
    api_key: str = setting(
        "",
        "The key of the provider that searches; for model, the key of the model counts where this is empty.",
        env=("KNAP_WEB_API_KEY",),
        secret=True,
    )
    """Once the section is read, the chosen provider's own key where it has one."""
    tavily_api_key: str = setting("", "The key of Tavily.", env=("TAVILY_API_KEY",), secret=True)
    brave_api_key: str = setting("", "The key of Brave.", env=("BRAVE_API_KEY", "BRAVE_SEARCH_API_KEY"), secret=True)
    serper_api_key: str = setting("", "The key of Serper.", env=("SERPER_API_KEY",), secret=True)
    base_url: Url = setting(
        "",
        "The address of the provider's API, where it isn't the usual one; not for ddgs.",
        env=("KNAP_WEB_BASE_URL",),
    )
    model: str = setting(
        "", "The model that searches, for the provider model; empty for model.name.", env=("KNAP_WEB_MODEL",)
    )
    max_results: int = setting(
        8, "How many results a search gives at most.", env=("KNAP_WEB_MAX_RESULTS",), least=3, most=15
    )
    max_pages: int = setting(
        3,
        "How many pages an agent reads in full for one question at most.",
        env=("KNAP_WEB_MAX_PAGES",),
        least=1,
        most=5,
    )
    token_budget: int = setting(
        8_000,
        "How many tokens of the web's text an agent takes into one answer at most.",
        env=("KNAP_WEB_TOKEN_BUDGET",),
        least=2_000,
        most=20_000,
    )
    hosts: tuple[str, ...] = setting(
        (), "Hosts that pages are fetched from, such as example.org and *.example.org; empty for any public one."
    )
    timeout_s: int = setting(
        20,
        "How long a page, or one try of a search, may take, in seconds.",
        env=("KNAP_WEB_TIMEOUT",),
        least=2,
        most=120,
    )
    max_page_kb: int = setting(
        2_000, "How long a page may be, in kilobytes.", env=("KNAP_WEB_MAX_PAGE_KB",), least=10, most=10_000
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
    port: int = setting(8000, "The port of the HTTP server.", env=("API_PORT",), least=1, most=65_535)
    """0, which no source can give, for any free one."""
    token: str = setting(
        "",
        "The token that programs show; empty for one that is made at the first start and kept in a file.",
        env=("KNAP_TOKEN",),
        secret=True,
    )
    origins: tuple[str, ...] = setting(("app://obsidian.md",), "Origins whose web pages may call the server.")
    hosts: tuple[str, ...] = setting(
        (), "Names by which the server may be called besides its own address, such as a proxy's."
    )
    max_body_mb: int = setting(10, "How large a request may be, in megabytes.", least=1, most=1_000)
    requests_per_minute: int = setting(
        1_200, "How many requests one client may make in a minute; 0 for no limit.", most=1_000_000
    )
    threads: int = setting(
        8,
        "Threads for calls that read; half as many for those that write. As many begin at once as compute well.",
        least=1,
        most=256,
    )
    stop_seconds: int = setting(
        10, "How long running calls may take to finish when the server is stopped, in seconds.", least=1, most=600
    )

    def checked(self) -> Self:
        """Return the section with origins and hosts in the form that requests are compared with.

        Raises:
            SetupError: The token is too short, or something isn't an origin or a name.
        """
        _check_token(self.token)
        origins = tuple(one.rstrip("/").lower() for one in self.origins)
        _check_forms("server.origins", origins, _ORIGIN, "write each as scheme://host, or scheme://host:port")
        hosts = tuple(one.lower() for one in self.hosts)
        _check_forms("server.hosts", hosts, _HOST, "write names alone, such as notes.example")
        return replace(self, host=self.host or "127.0.0.1", origins=origins, hosts=hosts)


def _check_token(token: str) -> None:
    if token and (len(token) < _MIN_TOKEN_CHARS or not token.isascii() or not token.isprintable() or " " in token):
        raise _invalid_setting_error(
            "server.token", "it has to have at least 24 letters, digits and signs", "`knap token new` makes one"
        )


def _check_forms(name: str, values: tuple[str, ...], form: re.Pattern[str], hint: str) -> None:
    for one in values:
        if not form.fullmatch(one):
            raise _invalid_setting_error(name, f"'{one}' can't stand there", hint)


def _invalid_setting_error(name: str, problem: str, hint: str) -> SetupError:
    return SetupError(f"{name} can't be used: {problem}", code="config_invalid", hint=hint)

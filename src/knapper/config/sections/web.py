"""Say whether tools may reach the web, and how."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from knapper.config.setting import Setting, Values, count, text, texts

Provider = Literal["ddgs", "tavily", "brave", "serper", "model"]
_PROVIDERS: Final[Mapping[str, Provider]] = {
    "ddgs": "ddgs",
    "tavily": "tavily",
    "brave": "brave",
    "serper": "serper",
    "model": "model",
    "openai": "model",
}
_KEYS: Final[Mapping[Provider, str]] = {
    "tavily": "web.tavily_api_key",
    "brave": "web.brave_api_key",
    "serper": "web.serper_api_key",
}
"""Settings that hold one provider's key, so that no provider is sent another's."""

SETTINGS = (
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
class Web:
    """Say whether tools may reach the web, and how."""

    is_allowed: bool = False
    provider: Provider = "ddgs"
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


def read(values: Values) -> Web:
    """Give the section."""
    provider = _PROVIDERS[text(values, "web.provider")]
    own = _KEYS.get(provider)
    return Web(
        is_allowed=text(values, "web.access") == "on",
        provider=provider,
        api_key=(text(values, own) if own else "") or text(values, "web.api_key"),
        base_url=text(values, "web.base_url"),
        model=text(values, "web.model"),
        max_results=count(values, "web.max_results"),
        max_pages=count(values, "web.max_pages"),
        token_budget=count(values, "web.token_budget"),
        hosts=texts(values, "web.hosts"),
        timeout_s=count(values, "web.timeout_s"),
        max_page_kb=count(values, "web.max_page_kb"),
    )

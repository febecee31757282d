"""Say which provider the configuration lets search the web, and which key goes there; nothing is opened for that."""

from typing import TYPE_CHECKING

from knapper.agents.model import names
from knapper.agents.model.names import ModelName
from knapper.app import model_choice
from knapper.config import Settings
from knapper.errors import SetupError

if TYPE_CHECKING:
    from knapper.net.web import WebOptions


def options(settings: Settings) -> "WebOptions":
    """Give what the web is opened with.

    Raises:
        SetupError: A model is to search, and none is named that can.
    """
    from knapper.net.web import WebOptions  # noqa: PLC0415 - slow to import, and off for most

    chosen = settings.web
    model, base_url, api_key = "", chosen.base_url, chosen.api_key
    if chosen.provider == "model":
        searching = _searching(settings)
        model, base_url = searching.name, searching.base_url
        api_key = api_key or model_choice.keys(settings).find(searching)
    return WebOptions(
        provider=chosen.provider,
        api_key=api_key,
        base_url=base_url,
        model=model,
        max_results=chosen.max_results,
        hosts=chosen.hosts,
        timeout_s=chosen.timeout_s,
        max_page_bytes=chosen.max_page_kb * 1_000,
    )


def _searching(settings: Settings) -> ModelName:
    """Name the model that searches, at the address where it does; a key of another place isn't sent there."""
    chosen, own = settings.web, settings.model
    place = chosen.base_url or own.base_url
    text = chosen.model or own.name
    if not text:
        raise SetupError(
            "searching with a model needs a model", hint="set web.model, or another web.provider", code="search_key"
        )
    if chosen.model and not place and ":" not in text:
        text = f"openai:{text}"
    named = names.parse_model_name(text, base_url=place)
    if chosen.base_url:
        return ModelName(provider="compatible", name=named.name, base_url=chosen.base_url.rstrip("/"))
    if named.provider == "openai" or named.base_url:
        return named
    raise SetupError(
        f"{named.provider} has no search of the kind that web.provider = model asks for",
        hint="set web.model to openai:NAME, or web.base_url, or another web.provider",
        code="search_key",
    )

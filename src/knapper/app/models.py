"""The models, keys and web provider that the configuration names."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from knapper.agents.model import names
from knapper.agents.model.names import PROVIDERS, ApiKeys, ModelName, Provider
from knapper.config import Settings
from knapper.errors import RefusedError, SetupError
from knapper.jsontypes import one_of
from knapper.vault.access import Grants

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from knapper.extras import ExtraName
    from knapper.net.web import WebOptions


def resolve_models(settings: Settings, model: str = "") -> list[ModelName]:
    """List the chosen model, and those to fall back on.

    Args:
        settings: What the configuration says.
        model: A name that replaces the configured one; then there is no fallback.

    Raises:
        SetupError: No model is named, or a name can't be read.
    """
    model_settings = settings.model
    if model:
        return [_with_ollama_url(settings, names.parse_model_name(model))]
    try:
        primary = names.parse_model_name(model_settings.name, base_url=model_settings.base_url)
    except SetupError as error:
        if error.code != "model_name":
            raise
        # The error says what named it, but no path, which a client needn't learn.
        source = next((one.source for one in settings.origins if one.name == "model.name"), "")
        named_by = source if source.isidentifier() and source.isupper() else "model.name"
        raise SetupError(f"{error.message} ({named_by})", hint=error.hint, code=error.code) from error
    return [
        _with_ollama_url(settings, model_name)
        for model_name in (primary, *(names.parse_model_name(name) for name in model_settings.fallbacks))
    ]


def open_model(settings: Settings, model: str = "") -> "tuple[Model, ModelName]":
    """Open the chosen model, with those to fall back on; nothing is sent yet.

    Args:
        settings: What the configuration says.
        model: A name that replaces the configured one.

    Returns:
        What answers, and the name of the first model.

    Raises:
        SetupError: There is no such model, or no key for it.
    """
    from knapper.agents.model import usage  # noqa: PLC0415 - 2 s that only who asks a model should pay

    model_names = resolve_models(settings, model)
    timeouts = usage.ModelTimeouts(timeout_s=settings.model.timeout_s, retries=settings.model.retries)
    return usage.open_model(model_names, configured_keys(settings).find, timeouts), model_names[0]


def check_model_allowed(settings: Settings, model: str, grants: Grants) -> None:
    """Check that a client may use a model of its choice; a person may name any.

    Other clients could spend the owner's money, or have notes sent to an address of their own.

    Raises:
        RefusedError: The configuration doesn't name it (code ``model_not_allowed``).
    """
    model_settings = settings.model
    configured_names = {model_settings.name, *model_settings.fallbacks, settings.agents.scout.model} - {""}
    if model and not grants.is_person and model not in configured_names:
        raise RefusedError(
            "this client may only name models of the configuration",
            hint=f"leave model out, or give {' or '.join(sorted(configured_names))}"
            if configured_names
            else "leave model out",
            code="model_not_allowed",
        )


def wanted_extras(settings: Settings) -> "Iterator[tuple[ExtraName, str]]":
    """Yield the extras that the configuration needs, each with the setting that needs it."""
    model_names = {"model.name": settings.model.name, "scout.model": settings.agents.scout.model}
    model_names |= dict.fromkeys(["model.fallbacks"], ",".join(settings.model.fallbacks))
    for setting, name in model_names.items():
        if name:
            yield "models", setting
        if "anthropic:" in name:
            yield "anthropic", setting
    if settings.web.is_allowed:
        yield "web", "web.access"
    if settings.audio.provider == "whisper":
        yield "audio", "audio.provider = whisper"
    if settings.embeddings.kind == "onnx":
        yield "embeddings", "embeddings.kind = onnx"
    elif settings.embeddings.kind == "e5":
        yield "e5", "embeddings.kind = e5"
    elif settings.embeddings.kind == "static" and settings.embeddings.folder:
        yield "embeddings", "embeddings.folder"
    if settings.index.is_shared:
        yield "postgres", "index.engine"


def configured_keys(settings: Settings) -> ApiKeys:
    """Return the keys that the configuration names.

    A key from Fireworks' variable is sent to Fireworks alone, even if it serves as the model's own.
    """
    model_settings = settings.model
    by_provider: dict[Provider, str] = {
        provider: key for name, key in model_settings.keys if (provider := one_of(name, PROVIDERS))
    }
    is_own = model_settings.name and model_settings.api_key and model_settings.api_key != by_provider.get("fireworks")
    owner = (
        _with_ollama_url(settings, names.parse_model_name(model_settings.name, base_url=model_settings.base_url))
        if is_own
        else None
    )
    return ApiKeys(
        by_provider=by_provider, configured_key=model_settings.api_key if is_own else "", configured_model=owner
    )


def _with_ollama_url(settings: Settings, name: ModelName) -> ModelName:
    """Return an Ollama model with the configured address, unless its name has one."""
    if name.provider != "ollama" or name.base_url:
        return name
    return ModelName(provider="ollama", name=name.name, base_url=settings.model.ollama_url)


def web_options(settings: Settings) -> "WebOptions":
    """Return the options with which the web is opened.

    Raises:
        SetupError: A model should search, and no configured model can.
    """
    from knapper.net.web import WebOptions  # noqa: PLC0415 - slow to import, and off for most

    web = settings.web
    model, base_url, api_key = "", web.base_url, web.api_key
    if web.provider == "model":
        search_model = _search_model(settings)
        model, base_url = search_model.name, search_model.base_url
        api_key = api_key or configured_keys(settings).find(search_model)
    return WebOptions(
        provider=web.provider,
        api_key=api_key,
        base_url=base_url,
        model=model,
        max_results=web.max_results,
        hosts=web.hosts,
        timeout_s=web.timeout_s,
        max_page_bytes=web.max_page_kb * 1_000,
    )


def _search_model(settings: Settings) -> ModelName:
    """Return the model that searches, with its address; a key of another address isn't sent there."""
    web, model_settings = settings.web, settings.model
    search_url = web.base_url or model_settings.base_url
    model_text = web.model or model_settings.name
    if not model_text:
        raise SetupError(
            "searching with a model needs a model", hint="set web.model, or another web.provider", code="search_key"
        )
    if web.model and not search_url and ":" not in model_text:
        model_text = f"openai:{model_text}"
    search_model = names.parse_model_name(model_text, base_url=search_url)
    if web.base_url:
        return ModelName(provider="compatible", name=search_model.name, base_url=web.base_url.rstrip("/"))
    if search_model.provider == "openai" or search_model.base_url:
        return search_model
    raise SetupError(
        f"{search_model.provider} has no search of the kind that web.provider = model asks for",
        hint="set web.model to openai:NAME, or web.base_url, or another web.provider",
        code="search_key",
    )

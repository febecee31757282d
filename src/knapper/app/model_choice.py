"""Say which models the configuration means, and which keys it has for them; no model is opened for that."""

from typing import cast

from knapper.agents.model import names
from knapper.agents.model.names import ApiKeys, ModelName, Provider
from knapper.config import Settings
from knapper.errors import RefusedError
from knapper.vault.access import Grants


def wanted(settings: Settings, model: str = "") -> list[ModelName]:
    """List the model that is meant, and those to fall back on.

    Args:
        settings: What the configuration says.
        model: A name that counts in place of the configured one; there is nothing to fall back on then.

    Raises:
        SetupError: No model is named, or a name can't be read.
    """
    own = settings.model
    if model:
        return [_placed(settings, names.parse_model_name(model))]
    first = names.parse_model_name(own.name, base_url=own.base_url)
    return [_placed(settings, one) for one in (first, *(names.parse_model_name(name) for name in own.fallbacks))]


def check(settings: Settings, model: str, grants: Grants) -> None:
    """See that a client may have a model of its choice work; a person may name any.

    Others would spend the owner's money, or have notes sent to an address of theirs.

    Raises:
        RefusedError: The configuration doesn't name it (code ``model_not_allowed``).
    """
    own = settings.model
    named = {own.name, *own.fallbacks, settings.agents.scout.model} - {""}
    if model and not grants.is_person and model not in named:
        raise RefusedError(
            "this client may only name models of the configuration",
            hint=f"leave model out, or give {' or '.join(sorted(named))}" if named else "leave model out",
            code="model_not_allowed",
        )


def keys(settings: Settings) -> ApiKeys:
    """Hold the keys that the configuration gives.

    A key that Fireworks' variable gives goes to Fireworks alone, even where it stands for the model's own.
    """
    own = settings.model
    by_provider: dict[Provider, str] = {cast("Provider", provider): key for provider, key in own.keys}
    is_own = own.name and own.api_key and own.api_key != by_provider.get("fireworks")
    owner = _placed(settings, names.parse_model_name(own.name, base_url=own.base_url)) if is_own else None
    return ApiKeys(by_provider=by_provider, own=own.api_key if is_own else "", owner=owner)


def _placed(settings: Settings, name: ModelName) -> ModelName:
    """Give an Ollama model the configured address, where its name gives none."""
    if name.provider != "ollama" or name.base_url:
        return name
    return ModelName(provider="ollama", name=name.name, base_url=settings.model.ollama_url)

"""Open language models by their names: keys, time limits, retries and models to fall back on."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from pydantic_ai import direct
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart
from pydantic_ai.models import Model
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.settings import ModelSettings

from knapper import extras
from knapper.agents.model import names, usage
from knapper.agents.model.names import ModelName, Provider
from knapper.codemode.model import ModelSpend
from knapper.errors import SetupError

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from pydantic_ai.providers import Provider as Service


FindKey = Callable[[ModelName], str]
"""Returns the key for a model; empty where there is none."""
_KEYED_PROVIDERS: Final[frozenset[Provider]] = frozenset({"openai", "anthropic", "fireworks", "openrouter"})
_NO_KEY: Final = "no-key"
"""Sent to servers that need no key, since the client library requires one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTimeouts:
    """How long to wait for a model."""

    timeout_s: float = 300.0
    """Without any data from it."""
    request_s: float = 1_800.0
    """For one reply, with all retries."""
    retries: int = 2
    """After a temporary refusal or a lost connection; each retry waits longer, or as long as the server asks."""

    def settings(self) -> ModelSettings:
        """Return them in the form that pydantic-ai takes."""
        return ModelSettings(timeout=self.timeout_s, request_timeout=self.request_s, max_retries=self.retries)


def open_model(wanted: Sequence[ModelName], find_key: FindKey, patience: ModelTimeouts = ModelTimeouts()) -> Model:
    """Open a model without sending anything; its connections are kept while it is entered with ``async with``.

    Args:
        wanted: The model, then those to fall back on.
        find_key: Returns a model's key.
        patience: How long to wait.

    Raises:
        SetupError: None is named, a key is missing, or what the provider needs isn't installed.
    """
    if not wanted:
        raise SetupError(
            "no model is set", code="no_model", hint=f"give --model, or set KNAP_MODEL: {names.NAME_FORMS}"
        )
    models = [_open_one(one, find_key(one), patience) for one in wanted]
    return models[0] if len(models) == 1 else FallbackModel(models[0], *models[1:])


def _open_one(wanted: ModelName, key: str, patience: ModelTimeouts) -> Model:
    if wanted.provider in _KEYED_PROVIDERS and not key and not wanted.base_url:
        raise SetupError(
            f"there is no key for {wanted.provider}",
            code="model_key",
            hint=f"`knap models key {wanted.provider}` stores one in the system's keyring; "
            f"or set {wanted.provider.upper()}_API_KEY",
        )
    if wanted.provider == "anthropic":
        return _open_anthropic(wanted, key, patience)
    return _open_compatible(wanted, key or _NO_KEY, patience)


def _open_compatible(wanted: ModelName, key: str, patience: ModelTimeouts) -> Model:
    """Open a model of OpenAI's protocol."""
    # These imports take a second, which only users of such a provider should wait for.
    from knapper.agents.model.openai_chat import (  # noqa: PLC0415 - see above
        TruncationAwareChatModel,
        TruncationAwareOllamaModel,
    )

    if wanted.provider == "ollama":
        return TruncationAwareOllamaModel(
            wanted.name, provider=_openai_provider(wanted, key), settings=patience.settings()
        )
    return TruncationAwareChatModel(wanted.name, provider=_openai_provider(wanted, key), settings=patience.settings())


def _openai_provider(wanted: ModelName, key: str) -> "Service[AsyncOpenAI]":
    from pydantic_ai.providers.fireworks import FireworksProvider  # noqa: PLC0415 - the same
    from pydantic_ai.providers.ollama import OllamaProvider  # noqa: PLC0415 - the same
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415 - the same
    from pydantic_ai.providers.openrouter import OpenRouterProvider  # noqa: PLC0415 - the same

    if wanted.provider == "ollama":
        return OllamaProvider(base_url=names.ollama_url(wanted) + "/v1", api_key=key)
    if wanted.provider == "fireworks" and not wanted.base_url:
        return FireworksProvider(api_key=key)
    if wanted.provider == "openrouter" and not wanted.base_url:
        return OpenRouterProvider(api_key=key)
    return OpenAIProvider(base_url=wanted.base_url or None, api_key=key)


def _open_anthropic(wanted: ModelName, key: str, patience: ModelTimeouts) -> Model:
    try:
        # An optional dependency, which may not be installed.
        from pydantic_ai.models.anthropic import AnthropicModel  # noqa: PLC0415 - see above
        from pydantic_ai.providers.anthropic import AnthropicProvider  # noqa: PLC0415 - the same
    except ImportError as error:
        raise extras.missing("anthropic", "a model of Anthropic's") from error
    service = AnthropicProvider(api_key=key or _NO_KEY, base_url=wanted.base_url or None)
    return AnthropicModel(wanted.name, provider=service, settings=patience.settings())


TRIAL_S: Final = 120.0
"""How long a model may take for its first words: a local one may have to be loaded."""
_TRIAL_PROMPT: Final = "Answer with the one word: ready"
_MAX_TRIAL_CHARS: Final = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTrial:
    """What came of one short question to a model."""

    text: str
    """The beginning of its answer; empty where it gave no words."""
    seconds: float
    spent: ModelSpend


async def try_model(model: Model, name: str) -> ModelTrial:
    """Ask a model one short question, which costs a few tokens.

    Args:
        model: An open model; its connections are closed afterwards.
        name: For the message of an error.

    Raises:
        KnapError: It can't be reached, refuses, or answers what can't be used; the code tells which.
    """
    started = time.monotonic()
    try:
        async with model:
            response = await direct.model_request(model, [ModelRequest.user_text_prompt(_TRIAL_PROMPT)])
    except usage.MODEL_ERRORS as error:
        raise usage.convert_model_error(error, name) from error
    words = " ".join(part.content for part in response.parts if isinstance(part, TextPart))
    return ModelTrial(
        text=" ".join(words.split())[:_MAX_TRIAL_CHARS],
        seconds=time.monotonic() - started,
        spent=ModelSpend(
            requests=1,
            input_tokens=response.usage.input_tokens,
            output_tokens=response.usage.output_tokens,
            cost_usd=_trial_cost(response),
        ),
    )


def _trial_cost(response: ModelResponse) -> Decimal | None:
    try:
        return response.cost().total_price
    except LookupError:  # no price is known
        return None

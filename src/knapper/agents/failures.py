"""Turn what goes wrong between us and a model into errors that say who must act; no key and no note gets into them."""

from pydantic_ai.exceptions import (
    AgentRunError,
    FallbackExceptionGroup,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestTimeout,
    ModelTimeoutError,
    UnexpectedModelBehavior,
    UsageLimitExceeded,
    UserError,
)

from knapper.errors import KnapError, RefusedError, SetupError


class ModelFailure(SetupError):
    """Say that a model can't answer: its server, its key or its reply stands in the way."""

    code = "model_failed"


CAUGHT = (AgentRunError, FallbackExceptionGroup, UserError)
"""What pydantic-ai raises."""

_KINDS: tuple[tuple[type[Exception], str, str, str], ...] = (
    (ModelAuthenticationError, "model_key", "the key isn't accepted", "check the key: `knap models`"),
    (ModelNotFoundError, "model_unknown", "there is no such model", "`knap models` lists those that are there"),
    (ModelQuotaExceededError, "model_quota", "the account's quota is used up", "check the account with the provider"),
    (ModelRateLimitError, "model_busy", "too many requests", "wait a moment, or name a model to fall back on"),
    (
        ModelContextWindowExceededError,
        "model_context",
        "the conversation is longer than the model can read",
        "`/clear` begins anew; or lower model.context_tokens",
    ),
    (ModelTimeoutError, "timeout", "it didn't answer in time", "raise model.timeout_s, or take a smaller model"),
    (ModelRequestTimeout, "timeout", "it didn't answer in time", "raise model.timeout_s, or take a smaller model"),
    (ModelConnectionError, "unreachable", "it can't be reached", "start its server, or check its address"),
)

_TOO_LONG = (
    'its log says why; a model that can\'t read enough at once needs a longer context, or tools = "essential" below '
    "[model]"
)


def of(error: Exception, model: str) -> KnapError:
    """Turn an error of pydantic-ai into one of ours.

    Args:
        error: One of `CAUGHT`.
        model: The model's name, for the message.
    """
    if isinstance(error, FallbackExceptionGroup):
        last = [one for one in error.exceptions if isinstance(one, Exception)][-1]
        found = of(last, model)
        return ModelFailure(f"{found.message}; no model to fall back on answered", code=found.code, hint=found.hint)
    if isinstance(error, UsageLimitExceeded):
        return RefusedError(
            "the turn used as much as is allowed",
            code="budget_spent",
            hint="raise model.turn_tokens or the other limits in the configuration",
        )
    for kind, code, text, hint in _KINDS:
        if isinstance(error, kind):
            return ModelFailure(f"{model}: {text}", code=code, hint=hint)
    if isinstance(error, ModelHTTPError):
        hint = _TOO_LONG if error.status_code in {400, 413} else "try again, or look at its log"
        return ModelFailure(f"{model}: its server answered with status {error.status_code}", hint=hint)
    if isinstance(error, UnexpectedModelBehavior | ModelAPIError):
        return ModelFailure(
            f"{model}: its reply can't be used", code="model_reply", hint="try again, or take another model"
        )
    return ModelFailure(f"{model}: {type(error).__name__}", hint="`knap doctor` checks the configuration")

"""Open language models by their names, count their cost within the owner's limits, and convert their errors."""

import contextlib
import re
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from pydantic_ai import direct
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
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart
from pydantic_ai.models import Model
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage, RunUsage, UsageLimits

from knapper import extras
from knapper.agents import events, prompting
from knapper.agents.model import names
from knapper.agents.model.names import ModelName, PriceRow, Provider
from knapper.agents.model.replies import RetryingModel
from knapper.changes.disk.storage import SharedDatabase, open_shared_database
from knapper.codemode.tasks import ModelSpend
from knapper.errors import KnapError, RefusedError, SetupError, StorageError
from knapper.jsontypes import is_object

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from pydantic_ai.providers import Provider as Service


class ModelFailure(SetupError):
    """A model that can't answer, because of its server, its key or its reply."""

    code = "model_failed"


MODEL_ERRORS = (AgentRunError, FallbackExceptionGroup, UserError)
"""The errors that pydantic-ai raises."""

_KEY_HINT = "`knap models key NAME` stores one, for a provider or an address; `knap models` tries it"
_ERROR_KINDS: tuple[tuple[type[Exception], str, str, str], ...] = (
    (ModelAuthenticationError, "model_key", "it needs a key, or doesn't accept the one it was sent", _KEY_HINT),
    (ModelNotFoundError, "model_unknown", "there is no such model", "`knap models` lists those that are there"),
    (ModelQuotaExceededError, "model_quota", "the account's quota is used up", "check the account with the provider"),
    (ModelRateLimitError, "model_busy", "too many requests", "wait a moment, or name a model to fall back on"),
    (ModelTimeoutError, "timeout", "it didn't answer in time", "raise model.timeout_s, or take a smaller model"),
    (ModelRequestTimeout, "timeout", "it didn't answer in time", "raise model.timeout_s, or take a smaller model"),
    (ModelConnectionError, "unreachable", "it can't be reached", "start its server, or check its address"),
)

_TOO_LONG_HINT = (
    "`/clear` starts over; or lower model.context_tokens, or start the model with a longer context (Ollama: num_ctx, "
    "llama.cpp: --ctx-size)"
)
_REJECTED_HINT = (
    'its log says why; a model that can\'t read enough at once needs a longer context, or tools = "essential" below '
    "[model]"
)


_TOO_LONG: Final = re.compile(
    r"context_length_exceeded|maximum context length|reduce the length of the messages"  # OpenAI, vLLM, Groq
    r"|exceed_context_size|exceeds? the (?:available )?context (?:size|length|window)|context size has been exceeded"
    r"|exceed(?:ed|s)? (?:the )?max(?:imum)? context|exceed context window"  # llama.cpp above, Ollama, llama-cpp-python
    r"|loaded with context length of only|greater than the context length"  # LM Studio
    r"|prompt is too long|input is too long|input length and `max_tokens` exceed"  # Anthropic, Bedrock
    r"|too large for model with|must be <= .{0,40}(?:max_input|total)_tokens",  # Mistral, TGI
    re.IGNORECASE,
)
"""How servers say that a request is longer than the model can read."""
_REQUEST_TOO_LARGE: Final = 413


def is_too_long(error: Exception) -> bool:
    """Return whether a model's server refused a request for its length.

    Args:
        error: One of `MODEL_ERRORS`.
    """
    if isinstance(error, FallbackExceptionGroup):
        return any(is_too_long(one) for one in error.exceptions if isinstance(one, Exception))
    if isinstance(error, ModelContextWindowExceededError):
        return True
    if isinstance(error, ModelHTTPError):
        words = f"{error.body}" if error.body else error.message
        return error.status_code == _REQUEST_TOO_LARGE or _TOO_LONG.search(words[:_MAX_ERROR_CHARS]) is not None
    # LM Studio sends the error within a stream that began well.
    return isinstance(error, ModelAPIError) and _TOO_LONG.search(str(error)[:_MAX_ERROR_CHARS]) is not None


_MAX_ERROR_CHARS: Final = 10_000


def convert_model_error(error: Exception, model: str) -> KnapError:
    """Convert an error of pydantic-ai into one of ours; one that is ours already stays.

    Args:
        error: One of `MODEL_ERRORS`, or of ours.
        model: The model's name, for the message.
    """
    if isinstance(error, FallbackExceptionGroup):
        last = [one for one in error.exceptions if isinstance(one, Exception)][-1]
        converted = convert_model_error(last, model)
        return ModelFailure(
            f"{converted.message}; no model to fall back on answered", code=converted.code, hint=converted.hint
        )
    if isinstance(error, UsageLimitExceeded):
        error = _turn_limit_error(error)
    if isinstance(error, KnapError):
        return error
    if is_too_long(error):
        known = ("model_context", "the conversation is longer than the model can read", _TOO_LONG_HINT)
    else:
        known = next(((code, text, hint) for kind, code, text, hint in _ERROR_KINDS if isinstance(error, kind)), None)
    if known:
        code, text, hint = known
        return ModelFailure(f"{model}: {text}{_quote_server(error)}", code=code, hint=hint)
    if isinstance(error, ModelHTTPError):
        hint = _REJECTED_HINT if error.status_code in {400, 413} else "try again, or look at its log"
        text = f"its server answered with status {error.status_code}"
        return ModelFailure(f"{model}: {text}{_quote_server(error)}", hint=hint)
    if isinstance(error, UnexpectedModelBehavior | ModelAPIError):
        return ModelFailure(
            f"{model}: its reply can't be used", code="model_reply", hint="try again, or take another model"
        )
    return ModelFailure(f"{model}: {type(error).__name__}", hint="`knap doctor` checks the configuration")


_UNAUTHORIZED: Final = 401
_MAX_SERVER_WORDS: Final = 300
_SECRET: Final = re.compile(
    r"(?:\b(?:sk|pk|rk|fw|gsk|xai|api|key|token|bearer)[-_ ])[^\s'\",;]{4,}"  # known beginnings of keys
    r"|(?=[\w-]*[a-zA-Z])(?=[\w-]*\d)[\w-]{20,}",  # long runs of letters and digits
    re.IGNORECASE,
)


def _quote_server(error: Exception) -> str:
    """Return the server's own words on an error, to be put after ours; empty where it gave none.

    A server that refuses a key may repeat it, so then nothing is quoted; elsewhere what looks like a key is left out.
    """
    if not isinstance(error, ModelHTTPError) or error.status_code == _UNAUTHORIZED:
        return ""
    # The message is in ``{"error": {"message": …}}``, in a part of that, or the text itself.
    body: object = error.body
    for name in ("error", "message", "detail"):
        if is_object(body):
            body = body.get(name, body)
    if not isinstance(body, str) or body.lstrip().startswith("<"):
        return ""
    words = " ".join(prompting.escape_plain(_SECRET.sub("…", body[: 4 * _MAX_SERVER_WORDS])).split())
    # Reasons stand in answers, too, which are shown as Markdown: nothing in them may be an image or a link.
    words = "".join(character if character.isprintable() else "\ufffd" for character in words).replace("](", "] (")
    if len(words) > _MAX_SERVER_WORDS:
        words = f"{words[:_MAX_SERVER_WORDS].rstrip()}…"
    return f'; it says: "{words}"' if words else ""


USAGE_FILE: Final = "usage.db"
USAGE_VERSION: Final = 1
_PRICED_TOKENS: Final = 1_000
MAX_REQUESTS: Final = 100
"""Requests of one turn, whichever tools they call."""
_USAGE_SCHEMA: Final = """
CREATE TABLE spent (
    id INTEGER PRIMARY KEY,
    at TEXT NOT NULL,
    day TEXT NOT NULL,
    run TEXT NOT NULL,
    model TEXT NOT NULL,
    requests INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cost_usd TEXT
);
CREATE INDEX spent_day ON spent (day);
CREATE INDEX spent_run ON spent (run);
"""
_INSERT_SPENT: Final = """
INSERT OR REPLACE INTO spent (id, at, day, run, model, requests, input_tokens, output_tokens, cost_usd)
VALUES (:id, :at, :day, :run, :model, :requests, :input, :output, :cost)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendingLimits:
    """How much may be used; 0 is no limit."""

    turn_tokens: int = 0
    run_tokens: int = 0
    day_tokens: int = 0
    day_cents: int = 0
    """In cents of a US dollar; the price is known for some models only."""


LimitSource = SpendingLimits | Callable[[], SpendingLimits]
"""Limits that stay, or what reads them each time."""


@dataclass(repr=False, kw_only=True)
class TurnAllowance(UsageLimits):
    """The limits of a turn: what was left when it began, and before each request what is left of the day.

    pydantic-ai checks the tokens as soon as a reply has arrived, so that is when its cost is written to the account.

    Servers that don't report usage and models without a known price can't be limited; that is no reason for a
    warning to the person.
    """

    meter: "Meter | None" = None
    run: str = ""

    def check_before_request(self, usage: RunUsage) -> None:
        """Raise pydantic-ai's error where the next request isn't allowed any more."""
        super().check_before_request(usage)
        if self.meter:
            self.meter.check_day(self.run, usage)

    def check_tokens(self, usage: RunUsage) -> None:
        """Write to the account what was used, and raise pydantic-ai's error where that is too many tokens."""
        if self.meter:
            self.meter.write_interim(self.run, usage)
        # Servers that don't report usage leave requests unmeasured, of which pydantic-ai would warn on the screen.
        super().check_tokens(replace(usage, unmeasured_requests=0))

    def check_cost(self, usage: RunUsage, *, warn_if_cost_unavailable: bool = True) -> None:
        """Raise pydantic-ai's error where the turn cost too much."""
        del warn_if_cost_unavailable
        super().check_cost(usage, warn_if_cost_unavailable=False)


def read_usage(usage: RunUsage) -> ModelSpend:
    """Return what a run of pydantic-ai used."""
    return ModelSpend(
        requests=usage.requests,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cost_usd=usage.cost,
    )


def remaining_limits(limits: UsageLimits, spent: ModelSpend) -> UsageLimits:
    """Return what the limits leave to the rest of a turn.

    Raises:
        RefusedError: Nothing is left (code ``budget_spent``).
    """
    requests, tokens, cost = limits.request_limit, limits.total_tokens_limit, limits.cost_limit
    remaining = (
        None if requests is None else requests - spent.requests,
        None if tokens is None else tokens - spent.tokens,
        None if cost is None else cost - (spent.cost_usd or 0),
    )
    if any(one is not None and one <= 0 for one in remaining):
        raise _turn_limit_error()
    return replace(limits, request_limit=remaining[0], total_tokens_limit=remaining[1], cost_limit=remaining[2])


def make_usage_event(spent: ModelSpend) -> events.Usage:
    """Return the event that reports what was used."""
    return events.Usage(
        input_tokens=spent.input_tokens,
        output_tokens=spent.output_tokens,
        requests=spent.requests,
        cost_usd=None if spent.cost_usd is None else float(spent.cost_usd),
    )


@dataclass(slots=True, kw_only=True, eq=False)
class _OpenTurn:
    """A running turn, or one agent's part of it."""

    run: str
    # Weak, so that a turn which ends without being recorded doesn't stay in the meter.
    usage: weakref.ref[RunUsage]
    row: int = 0
    """Its row in the account; 0 where it has none."""
    written: ModelSpend = field(default_factory=ModelSpend)
    """The usage that the row holds."""

    def unwritten(self) -> ModelSpend:
        usage = self.usage()
        return ModelSpend() if usage is None else read_usage(usage) - self.written


class Meter:
    """The usage account of one vault's state folder; threads and processes may share it.

    Each reply's cost is written when it arrives, to an interim row that the turn's end replaces: other processes see
    what a running turn has used, and a turn that is killed stays counted.
    """

    def __init__(self, ledger: SharedDatabase, limits: LimitSource, now: Callable[[], datetime]) -> None:
        """Wrap an open file; `open_meter` opens one."""
        self._ledger = ledger
        self._limits = limits
        self._now = now
        self._lock = threading.Lock()
        """Held while rows and open turns change together, so that nobody counts a reply twice or not at all."""
        self._open_turns: list[_OpenTurn] = []
        """Running turns of this process."""

    @property
    def limits(self) -> SpendingLimits:
        """Return what the owner allows now."""
        return self._limits if isinstance(self._limits, SpendingLimits) else self._limits()

    def record(self, run: str, model: str, spent: ModelSpend, *, usage: RunUsage | None = None) -> None:
        """Record what a turn used, in place of its interim rows; a turn without a request isn't recorded.

        Args:
            run: The turn's run.
            model: The model's name.
            spent: What was used.
            usage: The usage that has ended, where others of the run go on; None where all have ended.

        Raises:
            StorageError: The file can't be written.
        """
        self.record_models(run, {model: spent}, usage=usage)

    def record_models(self, run: str, spending: Mapping[str, ModelSpend], *, usage: RunUsage | None = None) -> None:
        """Record what a turn used of each model, as `record` does."""
        with self._lock:
            running = self._running()
            ended = [one for one in running if one.run == run and (usage is None or one.usage() is usage)]
            self._open_turns = [one for one in running if one not in ended]
            interim = [(one.row,) for one in ended if one.row]
            final = [
                self._values(run, model, spent) for model, spent in spending.items() if spent.requests or spent.tokens
            ]
            if interim or final:
                with self._ledger.writing() as database:
                    database.executemany("DELETE FROM spent WHERE id = ?", interim)
                    database.executemany(_INSERT_SPENT, final)

    def _values(self, run: str, model: str, spent: ModelSpend, *, row: int = 0) -> dict[str, str | int | None]:
        now = self._now()
        return {
            "id": row or None,
            "at": now.isoformat(timespec="seconds"),
            "day": now.date().isoformat(),
            "run": run,
            "model": model,
            "requests": spent.requests,
            "input": spent.input_tokens,
            "output": spent.output_tokens,
            "cost": None if spent.cost_usd is None else str(spent.cost_usd),
        }

    def today(self) -> ModelSpend:
        """Return what was used today, by local time."""
        return self._sum("day = ?", self._now().date().isoformat())

    def of_run(self, run: str) -> ModelSpend:
        """Return what a run used."""
        return self._sum("run = ?", run)

    def allow(self, run: str) -> UsageLimits:
        """Return how much a turn of a run may use.

        Raises:
            RefusedError: A limit is reached already (code ``budget_spent``).
        """
        token_limits = [self.limits.turn_tokens] if self.limits.turn_tokens else []
        today = self._used_today()
        if self.limits.run_tokens:
            token_limits.append(_check_limit("model.run_tokens", self.limits.run_tokens, self.of_run(run).tokens))
        if self.limits.day_tokens:
            token_limits.append(_check_limit("model.day_tokens", self.limits.day_tokens, today.tokens))
        cost = None
        if self.limits.day_cents:
            spent = today.cost_usd or Decimal()
            cost = Decimal(self.limits.day_cents) / 100 - spent
            _ = _check_limit("model.day_cents", self.limits.day_cents, int(spent * 100))
        return TurnAllowance(
            request_limit=MAX_REQUESTS,
            total_tokens_limit=min(token_limits) if token_limits else None,
            cost_limit=cost,
            meter=self,
            run=run,
        )

    def check_day(self, run: str, usage: RunUsage) -> None:
        """Check that the day's limits allow a turn's next request, with all running turns counted.

        Args:
            run: The turn's run.
            usage: The turn's usage, which is read again until the turn is recorded.

        Raises:
            UsageLimitExceeded: They don't allow it.
        """
        self.write_interim(run, usage)
        if not (self.limits.day_tokens or self.limits.day_cents):
            return
        spent = self._used_today()
        if 0 < self.limits.day_tokens <= spent.tokens:
            raise UsageLimitExceeded(f"the day's {self.limits.day_tokens} tokens are used")
        if 0 < self.limits.day_cents <= (spent.cost_usd or 0) * 100:
            raise UsageLimitExceeded(f"the day's {self.limits.day_cents} cents are used")

    def write_interim(self, run: str, usage: RunUsage) -> None:
        """Write what a running turn has used so far, where that has changed.

        Args:
            run: The turn's run.
            usage: The turn's usage, which is read again until the turn is recorded.
        """
        with self._lock:
            self._open_turns = self._running()
            open_turn = next((one for one in self._open_turns if one.usage() is usage), None)
            if open_turn is None:
                open_turn = _OpenTurn(run=run, usage=weakref.ref(usage))
                self._open_turns.append(open_turn)
            spent = read_usage(usage)
            if spent == open_turn.written:
                return
            values = self._values(run, "", spent, row=open_turn.row)
            # What can't be written is still counted by this process, and `record` reports the error at the turn's end.
            with contextlib.suppress(StorageError):
                with self._ledger.writing() as database:
                    row = database.execute(_INSERT_SPENT, values).lastrowid or 0
                open_turn.row, open_turn.written = row, spent

    def shut(self) -> None:
        """Close the file."""
        self._ledger.shut()

    def _running(self) -> list[_OpenTurn]:
        """Return the open turns without those that ended unrecorded, whose rows stay in the account."""
        return [one for one in self._open_turns if one.usage() is not None]

    def _used_today(self) -> ModelSpend:
        """Return what was used today, with what running turns of this process couldn't write yet."""
        with self._lock:
            return sum((one.unwritten() for one in self._open_turns), self.today())

    def _sum(self, where: str, value: str) -> ModelSpend:
        with self._ledger.reading() as database:
            rows = database.execute(
                f"SELECT requests, input_tokens, output_tokens, cost_usd FROM spent WHERE {where}",  # noqa: S608 - two constants
                (value,),
            ).fetchall()
        total = ModelSpend()
        for requests, input_tokens, output_tokens, cost in rows:
            total += ModelSpend(
                requests=requests,
                input_tokens=input_tokens,
                output_tokens=output_tokens,
                cost_usd=None if cost is None else Decimal(cost),
            )
        return total


class ModelPrice(NamedTuple):
    """What a model costs, in US dollars for a million tokens."""

    input_usd: Decimal
    output_usd: Decimal

    def as_dict(self) -> PriceRow:
        """Return it as every surface shows it."""
        return {"input_usd": float(self.input_usd), "output_usd": float(self.output_usd)}


def find_price(model: ModelName) -> ModelPrice | None:
    """Return a model's usual price; None where none is known, as for a server of one's own."""
    if model.base_url or model.provider in {"ollama", "compatible"}:
        return None
    # Of a small request, as long ones cost more a token with some models.
    sample = ModelResponse(
        parts=[],
        usage=RequestUsage(input_tokens=_PRICED_TOKENS, output_tokens=_PRICED_TOKENS),
        model_name=model.name,
        provider_name=model.provider,
    )
    try:
        price = sample.cost()
    except LookupError:
        return None
    scale = 1_000_000 // _PRICED_TOKENS
    return ModelPrice(price.input_price * scale, price.output_price * scale)


def open_meter(folder: Path, limits: LimitSource, now: Callable[[], datetime]) -> Meter:
    """Open the account in a vault's state folder, which exists.

    Args:
        folder: The folder.
        limits: What the owner allows; a function is asked each time, so that a change counts at once.
        now: The local time; a day begins at its midnight.

    Raises:
        StorageError: The file can't be used.
    """
    return Meter(open_shared_database(folder / USAGE_FILE, _USAGE_SCHEMA, USAGE_VERSION), limits, now)


_TURN_LIMITS: Final = (
    ("cost_limit", "the cost limit", "raise model.turn_cents or the other limits in the configuration"),
    ("tokens_limit", "the limit of tokens", "raise model.turn_tokens or the other limits in the configuration"),
    ("request_limit", f"the limit of {MAX_REQUESTS} requests to the model", "ask again: it continues from here"),
    ("", "its limit", "raise the limits in the configuration"),
)
"""By what pydantic-ai's errors call them: their names here, and what to do."""


def _turn_limit_error(error: UsageLimitExceeded | None = None) -> RefusedError:
    """Return our error for a limit that a turn has reached, which says which one that is."""
    words = str(error or "")
    _, name, hint = next(one for one in _TURN_LIMITS if one[0] in words)
    if words.startswith("the day's"):
        name = words.removesuffix(" are used").replace("the day's", "the day's limit of")
        hint = "raise model.day_tokens or model.day_cents, or continue tomorrow"
    return RefusedError(f"the turn has reached {name}", code="budget_spent", hint=hint)


def _check_limit(setting: str, allowed: int, spent: int) -> int:
    if spent >= allowed:
        raise RefusedError(
            f"the limit {setting} of {allowed:,} is reached: {spent:,} are used",
            hint=f"raise {setting} in the configuration, or continue once it no longer applies",
            code="budget_spent",
        )
    return allowed - spent


FindKey = Callable[[ModelName], str]
"""Returns the key for a model; empty where there is none."""
_KEYED_PROVIDERS: Final[frozenset[Provider]] = frozenset({"openai", "anthropic", "fireworks", "openrouter"})
_NO_KEY: Final = "no-key"  # for servers that need none, since the client library requires one


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
        """Return them in the form that pydantic-ai takes; the retries are `RetryingModel`'s."""
        return ModelSettings(timeout=self.timeout_s, request_timeout=self.request_s, max_retries=0)


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
            "no model is set",
            code="no_model",
            hint=f"choose one in the settings, by KNAP_MODEL or --model: {names.NAME_FORMS}",
        )
    models = [
        RetryingModel(
            _open_one(one, find_key(one), patience),
            patience.retries,
            lambda error, name=str(one): convert_model_error(error, name).message,
        )
        for one in wanted
    ]
    return models[0] if len(models) == 1 else FallbackModel(models[0], *models[1:])


def _open_one(wanted: ModelName, key: str, patience: ModelTimeouts) -> Model:
    if wanted.provider in _KEYED_PROVIDERS and not key and not wanted.base_url:
        raise SetupError(
            f"there is no key for {wanted.provider}",
            code="model_key",
            hint=f"`knap models key {wanted.provider}` stores one in the system's keyring; "
            f"or set {wanted.provider.upper()}_API_KEY",
        )
    key = key or _NO_KEY
    if wanted.provider == "anthropic":
        try:
            # An optional dependency, which may not be installed.
            from pydantic_ai.models.anthropic import AnthropicModel  # noqa: PLC0415 - see above
            from pydantic_ai.providers.anthropic import AnthropicProvider  # noqa: PLC0415 - the same
        except ImportError as error:
            raise extras.missing("anthropic", "a model of Anthropic's") from error
        service = AnthropicProvider(api_key=key, base_url=wanted.base_url or None)
        return AnthropicModel(wanted.name, provider=service, settings=patience.settings())
    # Everything else speaks OpenAI's protocol. These imports take a second, which only its users should wait for.
    from pydantic_ai.providers.fireworks import FireworksProvider  # noqa: PLC0415 - see above
    from pydantic_ai.providers.ollama import OllamaProvider  # noqa: PLC0415 - the same
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415 - the same
    from pydantic_ai.providers.openrouter import OpenRouterProvider  # noqa: PLC0415 - the same

    from knapper.agents.model.openai_chat import (  # noqa: PLC0415 - the same
        TruncationAwareChatModel,
        TruncationAwareOllamaModel,
    )

    if wanted.provider == "ollama":
        ollama = OllamaProvider(base_url=names.ollama_url(wanted) + "/v1", api_key=key)
        return TruncationAwareOllamaModel(wanted.name, provider=ollama, settings=patience.settings())
    provider: Service[AsyncOpenAI]
    if wanted.provider == "fireworks" and not wanted.base_url:
        provider = FireworksProvider(api_key=key)
    elif wanted.provider == "openrouter" and not wanted.base_url:
        provider = OpenRouterProvider(api_key=key)
    else:
        provider = OpenAIProvider(base_url=wanted.base_url or None, api_key=key)
    return TruncationAwareChatModel(wanted.name, provider=provider, settings=patience.settings())


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
    except MODEL_ERRORS as error:
        raise convert_model_error(error, name) from error
    words = " ".join(part.content for part in response.parts if isinstance(part, TextPart))
    seconds = time.monotonic() - started
    try:
        cost = response.cost().total_price
    except LookupError:  # no price is known
        cost = None
    return ModelTrial(
        text=" ".join(words.split())[:_MAX_TRIAL_CHARS],
        seconds=seconds,
        spent=ModelSpend(
            requests=1,
            input_tokens=response.usage.input_tokens,
            output_tokens=response.usage.output_tokens,
            cost_usd=cost,
        ),
    )

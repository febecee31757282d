"""Serve models to persons: which can answer, what they cost, what was spent, their keys, and a trial of one."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from starlette.requests import Request
from typing_extensions import TypedDict

from knapper import extras
from knapper.agents.model import names
from knapper.agents.model.names import ModelName, ModelServerStatus, PriceRow, Provider
from knapper.app import models
from knapper.config.sections import KEY_PROVIDERS
from knapper.errors import BadInput, KnapError, SetupError
from knapper.server import security, workers
from knapper.server.http import binding, openapi
from knapper.server.http.binding import VAULT_PARAMETER, Parameter
from knapper.server.http.openapi import BOOLEAN, INTEGER, STRING, RouteSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from knapper.app import Hub
    from knapper.app.chats import ClientChats
    from knapper.config import Settings
    from knapper.jsontypes import JSONValue
    from knapper.server.http.background import JobService
    from knapper.server.http.binding import RequestArguments


ModelUse = Literal["main", "fallback", "scout"]
_TAG: Final = "models"
_DOLLARS: Final[Mapping[str, Any]] = {"type": ["number", "null"], "description": "Null where no price is known."}
SPENT_SCHEMA: Final = openapi.object_schema(
    {
        "requests": INTEGER,
        "input_tokens": INTEGER,
        "output_tokens": INTEGER,
        "total_tokens": INTEGER,
        "cost_usd": _DOLLARS,
    }
)


class ModelRow(TypedDict):
    """A model that the configuration names."""

    name: str
    """As `model` of a message takes it."""
    provider: str
    use: ModelUse
    """What the configuration has it for."""
    has_key: bool
    """Whether a key is set, or none is needed."""
    is_local: bool
    """Whether it runs on this machine."""
    price: PriceRow | None
    """US dollars for a million tokens; null where no price is known."""


class KeyRow(TypedDict):
    """Where the key of a provider or a server is."""

    provider: str
    """Or a server's address."""
    place: Literal["settings", "keyring", "none"]
    """Where its key is: in the configuration or a variable, in the keyring, or nowhere."""


_MODELS_CONTENT: Final = openapi.json_content(
    {
        "configured": {"type": "string", "description": "The model that answers where none is named; empty for none."},
        "results": list[ModelRow],
    }
)
_LIMIT: Final[Mapping[str, Any]] = {"type": ["integer", "null"], "description": "Null for no limit."}
_USAGE_CONTENT: Final = openapi.json_content(
    {
        "today": {**SPENT_SCHEMA, "description": "Of all conversations, tasks and runs in this vault, by local time."},
        "limits": openapi.object_schema(
            {"turn_tokens": _LIMIT, "run_tokens": _LIMIT, "day_tokens": _LIMIT, "day_cents": _LIMIT}
        ),
        "left": openapi.object_schema(
            {
                "tokens": {"type": ["integer", "null"], "description": "Of today's limit; null for no limit."},
                "usd": {"type": ["number", "null"], "description": "Of today's limit; null for no limit."},
            }
        ),
        "session": {
            "type": ["object", "null"],
            "description": "What the messages of the session took; its cost is null where that of one isn't known.",
            "properties": SPENT_SCHEMA["properties"],
        },
    }
)
_SESSION_ID: Final = Parameter(name="session_id", doc="A conversation whose messages are counted, too.", maximum=200)
_USAGE_PARAMETERS: Final = (_SESSION_ID, VAULT_PARAMETER)
_KEYLESS: Final = frozenset({"ollama", "compatible"})
_LOOPBACK: Final = ("http://localhost", "http://127.0.0.1", "http://[::1]")


def _list_models(settings: Settings) -> list[ModelRow]:
    """Return a row for each model that the configuration names, once; one that can't be read is left out."""
    named: tuple[tuple[str, ModelUse], ...] = (
        (settings.model.name, "main"),
        *((name, "fallback") for name in settings.model.fallbacks),
        (settings.agents.scout.model, "scout"),
    )
    rows: dict[str, ModelRow] = {}
    for name, use in named:
        if name and name not in rows:
            try:
                model = models.resolve_models(settings, "" if use == "main" else name)[0]
            except SetupError:
                continue
            with workers.IMPORT_LOCK:
                from knapper.agents.model import usage  # noqa: PLC0415 - a server without chats needn't pay for models

            price = usage.find_price(model)
            address = names.ollama_url(model) if model.provider == "ollama" else model.base_url
            rows[name] = {
                "name": name,
                "provider": model.provider,
                "use": use,
                "has_key": model.provider in _KEYLESS
                or bool(model.base_url)
                or bool(models.configured_keys(settings).find(model)),
                "is_local": address.startswith(_LOOPBACK),
                "price": price and price.as_dict(),
            }
    return [*rows.values()]


def _describe_usage(client_chats: ClientChats, session_id: str) -> dict[str, JSONValue]:
    meter = client_chats.chats.meter
    today = meter.today()
    session: dict[str, JSONValue] | None = None
    if session_id:
        # What the turns say of their usage; a copied conversation counts what it has taken over.
        outcomes = [turn.outcome for turn in client_chats.store.turns(session_id)]
        usages = [one for outcome in outcomes if isinstance(one := outcome.get("usage"), dict) and one.get("requests")]
        counted = {
            name: sum(value for one in usages if isinstance(value := one.get(name), int))
            for name in ("requests", "input_tokens", "output_tokens")
        }
        costs = [one.get("cost_usd") for one in usages]
        known_costs = [float(cost) for cost in costs if isinstance(cost, int | float)]
        session = {
            **counted,
            "total_tokens": counted["input_tokens"] + counted["output_tokens"],
            "cost_usd": sum(known_costs) if known_costs and len(known_costs) == len(costs) else None,
        }
    spent = float(today.cost_usd or 0)
    return {
        "today": today.as_dict(),
        "limits": {
            "turn_tokens": meter.limits.turn_tokens or None,
            "run_tokens": meter.limits.run_tokens or None,
            "day_tokens": meter.limits.day_tokens or None,
            "day_cents": meter.limits.day_cents or None,
        },
        "left": {
            "tokens": max(meter.limits.day_tokens - today.tokens, 0) if meter.limits.day_tokens else None,
            "usd": max(meter.limits.day_cents / 100 - spent, 0.0) if meter.limits.day_cents else None,
        },
        "session": session,
    }


_WHAT_SEE: Final = "see which keys are set"
_PROBE_NAME: Final = "nobody"
"""A name that no key is stored under."""
_MAX_KEY_CHARS: Final = 1_000
_MAX_ADDRESS_CHARS: Final = 300
_TRIAL_PREFIX: Final = "trial-"
"""What the account calls a trial: each is a run of its own, so that together they don't use up the limit of one."""
_KEY_PARAMETERS: Final = (
    Parameter(
        name="provider",
        doc="openai, anthropic, fireworks or openrouter; or a server's address, such as https://host/v1.",
        required=True,
        maximum=_MAX_ADDRESS_CHARS,
    ),
    Parameter(
        name="key",
        doc="The key, which no answer repeats; left out, the one in the keyring goes.",
        maximum=_MAX_KEY_CHARS,
    ),
    *binding.ANY_VAULT,
)
_OFFERED_PARAMETERS: Final = (
    Parameter(name="provider", doc="Who is asked.", required=True, choices=(*KEY_PROVIDERS, "ollama")),
    *binding.ANY_VAULT,
)
_TRIAL_PARAMETERS: Final = (
    Parameter(
        name="model", doc="Its name; the configured model where it is left out.", maximum=300, refuses_blank=True
    ),
    VAULT_PARAMETER,
)
_KEYS_CONTENT: Final = openapi.json_content(
    {
        "results": list[KeyRow],
        "has_keyring": {**BOOLEAN, "description": "Whether this machine has a keyring that answers."},
    }
)
_KEPT_CONTENT: Final = openapi.type_content(KeyRow)
_PROBLEM: Final[Mapping[str, Any]] = {
    "type": ["object", "null"],
    "description": "Why it didn't answer; null where it did.",
    "properties": {
        "code": {**STRING, "description": "Such as model_key, model_unknown, model_quota, unreachable, timeout."},
        "error": STRING,
        "hint": STRING,
    },
    "required": ["code", "error", "hint"],
}
_TRIAL_CONTENT: Final = openapi.json_content(
    {
        "model": STRING,
        "text": {**STRING, "description": "The beginning of its answer."},
        "seconds": {"type": "number"},
        "spent": {**SPENT_SCHEMA, "description": "It counts towards the day's limits."},
        "problem": _PROBLEM,
    }
)


def model_routes(hub: Hub, service: JobService) -> tuple[RouteSpec, ...]:
    """List the routes of models, their cost, their keys and trials.

    Args:
        hub: Whose settings name the models.
        service: Has the chats, which open them, and whose account is shown.
    """
    routes = _ModelRoutes(hub=hub, service=service)
    bind, keys_path, offered = openapi.bind_route, "/models/keys", openapi.type_content(ModelServerStatus)
    return (
        bind("GET", "/models", _TAG, routes.list_models, binding.ANY_VAULT, _MODELS_CONTENT),
        bind("GET", "/usage", _TAG, routes.show_usage, _USAGE_PARAMETERS, _USAGE_CONTENT),
        bind("GET", keys_path, _TAG, routes.list_keys, binding.ANY_VAULT, _KEYS_CONTENT),
        bind("PUT", keys_path, _TAG, routes.keep, _KEY_PARAMETERS, _KEPT_CONTENT),
        bind("GET", "/models/offered", _TAG, routes.list_offered, _OFFERED_PARAMETERS, offered),
        bind("POST", "/models/trial", _TAG, routes.attempt, _TRIAL_PARAMETERS, _TRIAL_CONTENT),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _ModelRoutes:
    """The handlers of requests about models, their cost and their keys."""

    hub: Hub
    service: JobService

    async def list_models(self, request: Request, _: RequestArguments) -> Mapping[str, object]:
        """List the configured models with their prices.

        No server is asked. Only for persons.
        """
        security.check_person(self.hub.settings, request.scope, "see the models")
        rows = await self.service.run_blocking(lambda: _list_models(self.hub.settings))
        return {"configured": self.hub.settings.model.name, "results": [*rows]}

    async def show_usage(self, request: Request, args: RequestArguments) -> dict[str, JSONValue]:
        """Show what models have cost today.

        With what the limits leave, and what a conversation took. Only for persons.
        """
        security.check_person(self.hub.settings, request.scope, "see what models cost")
        client, vault, session_id = security.client_of(request.scope), args.text("vault"), args.text("session_id")
        client_chats = await self.service.session_chats(client, vault, session_id)
        return await self.service.run_blocking(lambda: _describe_usage(client_chats, session_id))

    async def list_keys(self, request: Request, _: RequestArguments) -> Mapping[str, object]:
        """List whose keys are set, and where.

        No key is told, nor any part of one. Only for persons.
        """
        security.check_person(self.hub.settings, request.scope, _WHAT_SEE)
        return await self.service.run_blocking(lambda: _list_keys(self.hub.settings))

    async def keep(self, request: Request, args: RequestArguments) -> KeyRow:
        """Keep a key in the system's keyring, or remove it there.

        It is sent to that provider, or the server at that address, alone. Only for persons.
        """
        security.check_person(self.hub.settings, request.scope, "keep a key")
        return await self.service.run_blocking(lambda: _keep_key(self.hub.settings, args))

    async def list_offered(self, request: Request, args: RequestArguments) -> dict[str, JSONValue]:
        """List the models that a provider offers.

        Asks the provider's server, at its usual or configured address, with its key. Only for persons.
        """
        security.check_person(self.hub.settings, request.scope, _WHAT_SEE)
        provider = cast("Provider", args.text("provider"))
        settings = self.hub.settings  # read once: address and key belong together
        base_url = settings.model.ollama_url if provider == "ollama" else ""
        server = ModelName(provider=provider, name="*", base_url=base_url)
        return await self.service.run_blocking(
            lambda: names.check_server(server, models.configured_keys(settings).find(server)).as_dict()
        )

    async def attempt(self, request: Request, args: RequestArguments) -> dict[str, JSONValue]:
        """Try a model with one short question.

        It answers 200 as well where the model doesn't answer, with the reason in `problem`. Only for persons.
        """
        security.check_person(self.hub.settings, request.scope, "try a model")
        client_chats = await self.service.client_chats(security.client_of(request.scope), args.text("vault"))
        name = args.text("model").strip() or self.hub.settings.model.name
        trial = _try_model(client_chats, name, self.service.run_blocking)
        return await workers.run_unless_disconnected(request.receive, trial)


def _list_keys(settings: Settings) -> Mapping[str, object]:
    # Of servers that the configured models are at, each once; Ollama's takes no key.
    addresses: dict[str, None] = {}
    for name in ("", *settings.model.fallbacks, settings.agents.scout.model):
        with contextlib.suppress(SetupError):
            model = models.resolve_models(settings, name)[0]
            if model.base_url and model.provider != "ollama":
                addresses[model.base_url] = None
    rows = [_describe_key(settings, name) for name in (*KEY_PROVIDERS, *addresses)]
    has_keyring = False
    with contextlib.suppress(SetupError, ImportError):
        names.store_key(_PROBE_NAME, "")
        has_keyring = True
    return {"results": rows, "has_keyring": has_keyring}


def _describe_key(settings: Settings, name: str) -> KeyRow:
    keys = models.configured_keys(settings)
    own = keys.configured_model
    own_name = (own.base_url or own.provider) if own else ""
    if name in keys.by_provider or (keys.configured_key and name == own_name):
        return {"provider": name, "place": "settings"}
    return {"provider": name, "place": "keyring" if names.read_keyring(name) else "none"}


def _keep_key(settings: Settings, args: RequestArguments) -> KeyRow:
    # Neither value is quoted in an error: somebody may paste the key into the wrong field.
    name, key = args.text("provider").strip().rstrip("/"), args.text("key").strip()
    is_address = name.startswith(("http://", "https://")) and name.isprintable() and " " not in name
    if name not in KEY_PROVIDERS and not is_address:
        raise BadInput(
            "that is no provider",
            hint=f"give {', '.join(KEY_PROVIDERS)}, or an address such as http://host/v1",
            code="bad_provider",
        )
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise BadInput(
            "that is no key: it has spaces, or letters that no key has", hint="copy it again, alone", code="bad_key"
        )
    try:
        names.store_key(name, key)
    except ImportError as error:
        problem = extras.explain_import(error)
        if problem is None:
            raise
        raise problem from error
    return _describe_key(settings, name)


async def _try_model(client_chats: ClientChats, name: str, run_blocking: Callable[..., Any]) -> dict[str, JSONValue]:
    from knapper.agents.model import usage  # noqa: PLC0415 - imported already, with the chats

    meter, started, run = client_chats.chats.meter, time.monotonic(), f"{_TRIAL_PREFIX}{secrets.token_hex(8)}"
    try:
        _ = await run_blocking(lambda: meter.allow(run))
        chat = await run_blocking(lambda: client_chats.chat(name))
        async with asyncio.timeout(usage.TRIAL_S):
            trial = await usage.try_model(chat.model, name)
        await run_blocking(lambda: meter.record(run, name, trial.spent))
    except TimeoutError:
        problem = SetupError(f"{name}: it didn't answer in time", hint="is it still being loaded?", code="timeout")
        return _failed_shape(name, time.monotonic() - started, problem)
    except KnapError as error:
        return _failed_shape(name, time.monotonic() - started, error)
    return {
        "model": name,
        "text": "".join(sign if sign.isprintable() else "\ufffd" for sign in trial.text),
        "seconds": round(trial.seconds, 3),
        "spent": trial.spent.as_dict(),
        "problem": None,
    }


def _failed_shape(name: str, seconds: float, error: KnapError) -> dict[str, JSONValue]:
    return {
        "model": name,
        "text": "",
        "seconds": round(seconds, 3),
        "spent": {"requests": 0, "input_tokens": 0, "output_tokens": 0, "total_tokens": 0, "cost_usd": None},
        "problem": {"code": error.code, "error": error.message, "hint": error.hint},
    }

"""Show persons which models can answer, what they cost, and what was spent: ``/models`` and ``/usage``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from starlette.requests import Request
from starlette.responses import Response

from knapper.agents.model import names
from knapper.agents.model.names import ModelName
from knapper.app import models
from knapper.errors import SetupError
from knapper.server import replies, security, workers
from knapper.server.http import binding, openapi
from knapper.server.http.binding import VAULT_PARAMETER, Parameter
from knapper.server.http.openapi import RouteSpec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from knapper.agents.model.usage import SpendingLimits
    from knapper.agents.sessions.store import Exchange
    from knapper.app import Hub
    from knapper.app.chats import ClientChats
    from knapper.codemode.model import ModelSpend
    from knapper.config import Settings
    from knapper.jsontypes import JSONValue
    from knapper.server.http.binding import Endpoint
    from knapper.server.http.chat import ChatService


_TAG: Final = "models"
_WHAT_MODELS: Final = "see the models"
_WHAT_USAGE: Final = "see what models cost"
_STRING: Final[Mapping[str, Any]] = {"type": "string"}
_INTEGER: Final[Mapping[str, Any]] = {"type": "integer"}
_DOLLARS: Final[Mapping[str, Any]] = {"type": ["number", "null"], "description": "Null where no price is known."}
SPENT_SCHEMA: Final = openapi.object_schema(
    {
        "requests": _INTEGER,
        "input_tokens": _INTEGER,
        "output_tokens": _INTEGER,
        "total_tokens": _INTEGER,
        "cost_usd": _DOLLARS,
    }
)
_PRICE: Final[Mapping[str, Any]] = {
    "type": ["object", "null"],
    "description": "US dollars for a million tokens; null where no price is known.",
    "properties": {"input_usd": {"type": "number"}, "output_usd": {"type": "number"}},
    "required": ["input_usd", "output_usd"],
}
_MODELS_CONTENT: Final = openapi.json_content(
    {
        "configured": {"type": "string", "description": "The model that answers where none is named; empty for none."},
        "results": {
            "type": "array",
            "items": openapi.object_schema(
                {
                    "name": {**_STRING, "description": "As `model` of a message takes it."},
                    "provider": _STRING,
                    "use": {"enum": ["main", "fallback", "scout"], "description": "What the configuration has it for."},
                    "has_key": {"type": "boolean", "description": "Whether a key is set, or none is needed."},
                    "is_local": {"type": "boolean", "description": "Whether it runs on this machine."},
                    "price": _PRICE,
                }
            ),
        },
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


def spending_routes(hub: Hub, chats: ChatService) -> tuple[RouteSpec, ...]:
    """List the routes of models and their cost.

    Args:
        hub: Whose settings name the models.
        chats: The chats, whose account is shown.
    """
    return (
        RouteSpec(
            "GET",
            "/models",
            _TAG,
            "List the configured models with their prices.",
            _make_models_endpoint(hub, chats),
            "No server is asked. Only for persons.",
            binding.ANY_VAULT,
            _MODELS_CONTENT,
        ),
        RouteSpec(
            "GET",
            "/usage",
            _TAG,
            "Show what models have cost today.",
            _make_usage_endpoint(hub, chats),
            "With what the limits leave, and what a conversation took. Only for persons.",
            _USAGE_PARAMETERS,
            _USAGE_CONTENT,
        ),
    )


def _make_models_endpoint(hub: Hub, chats: ChatService) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        _ = await binding.read_arguments(request, binding.ANY_VAULT)
        security.check_person(hub.settings, request.scope, _WHAT_MODELS)
        rows = await chats.run_blocking(lambda: _list_models(hub.settings))
        return replies.JsonReply({"success": True, "configured": hub.settings.model.name, "results": [*rows]})

    return endpoint


def _list_models(settings: Settings) -> list[JSONValue]:
    """Return a row for each model that the configuration names, once; one that can't be read is left out."""
    named = (
        *((name, "main") for name in (settings.model.name,)),
        *((name, "fallback") for name in settings.model.fallbacks),
        *((name, "scout") for name in (settings.agents.scout.model,)),
    )
    rows: dict[str, JSONValue] = {}
    for name, use in named:
        if name and name not in rows:
            try:
                model = models.resolve_models(settings, "" if use == "main" else name)[0]
            except SetupError:
                continue
            rows[name] = _model_row(settings, name, use, model)
    return [*rows.values()]


def _model_row(settings: Settings, name: str, use: str, model: ModelName) -> JSONValue:
    with workers.IMPORT_LOCK:
        from knapper.agents.model import usage  # noqa: PLC0415 - a server without chats needn't pay for models

    price = usage.find_price(model)
    address = names.ollama_url(model) if model.provider == "ollama" else model.base_url
    return {
        "name": name,
        "provider": model.provider,
        "use": use,
        "has_key": model.provider in _KEYLESS
        or bool(model.base_url)
        or bool(models.configured_keys(settings).find(model)),
        "is_local": address.startswith(_LOOPBACK),
        "price": price and price.as_dict(),
    }


def _make_usage_endpoint(hub: Hub, chats: ChatService) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        args = await binding.read_arguments(request, _USAGE_PARAMETERS)
        security.check_person(hub.settings, request.scope, _WHAT_USAGE)
        client_chats = await chats.client_chats(security.client_of(request.scope), args.text("vault"))
        session_id = args.text("session_id")
        shape = await chats.run_blocking(lambda: _describe_usage(client_chats, session_id))
        return replies.JsonReply({"success": True, **shape})

    return endpoint


def _describe_usage(client_chats: ClientChats, session_id: str) -> dict[str, JSONValue]:
    meter = client_chats.chats.meter
    today = meter.today()
    session = _sum_session(client_chats.store.turns(session_id)) if session_id else None
    return {
        "today": today.as_dict(),
        "limits": _limits_shape(meter.limits),
        "left": _left_shape(meter.limits, today),
        "session": session,
    }


def _limits_shape(limits: SpendingLimits) -> dict[str, JSONValue]:
    return {
        "turn_tokens": limits.turn_tokens or None,
        "run_tokens": limits.run_tokens or None,
        "day_tokens": limits.day_tokens or None,
        "day_cents": limits.day_cents or None,
    }


def _left_shape(limits: SpendingLimits, today: ModelSpend) -> dict[str, JSONValue]:
    spent = float(today.cost_usd or 0)
    return {
        "tokens": max(limits.day_tokens - today.tokens, 0) if limits.day_tokens else None,
        "usd": max(limits.day_cents / 100 - spent, 0.0) if limits.day_cents else None,
    }


def _sum_session(turns: Sequence[Exchange]) -> dict[str, JSONValue]:
    """Add up what the turns say of their usage; a copied conversation counts what it has taken over."""
    spent = [usage for turn in turns if isinstance(usage := turn.outcome.get("usage"), dict) and usage.get("requests")]
    counted = {
        name: sum(value for usage in spent if isinstance(value := usage.get(name), int))
        for name in ("requests", "input_tokens", "output_tokens")
    }
    costs = [usage.get("cost_usd") for usage in spent]
    known_costs = [float(cost) for cost in costs if isinstance(cost, int | float)]
    return {
        **counted,
        "total_tokens": counted["input_tokens"] + counted["output_tokens"],
        "cost_usd": sum(known_costs) if known_costs and len(known_costs) == len(costs) else None,
    }

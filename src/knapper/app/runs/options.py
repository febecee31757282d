"""Tell a client what it can say of a run, and what is there to carry one out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from knapper.app.runs import opening, orders
from knapper.errors import KnapError, SetupError

if TYPE_CHECKING:
    from collections.abc import Callable

    from knapper.app.runs.opening import TaskRuns
    from knapper.jsontypes import JSONValue
    from knapper.vault.access import Grants


def shown(tasks: TaskRuns, grants: Grants, model: Callable[[], str]) -> dict[str, JSONValue]:
    """Tell what a run may be.

    Args:
        tasks: The vault's runs.
        grants: The client's.
        model: Gives the configured model's name, or raises what is missing.
    """
    settings = tasks.hub.settings
    usual = opening.limits(settings)
    strategies: list[JSONValue] = [one.as_dict() for one in opening.strategies(settings).all()]
    ranges = orders.ranges(settings, grants)
    return {
        "strategies": strategies,
        "strategy": settings.runs.strategy,
        "code_mode": settings.runs.code_mode,
        "profiles": [*orders.profiles(settings)],
        "limits": {name: orders.value(name, usual) for name in ranges},
        "ranges": {name: {"least": least, "most": most} for name, (least, most) in ranges.items()},
        **_model(model),
        **_sandbox(tasks),
    }


def _model(name: Callable[[], str]) -> dict[str, JSONValue]:
    try:
        return {"model": name(), "model_hint": ""}
    except SetupError as error:
        return {"model": None, "model_hint": f"{error.message}: {error.hint}"}


def _sandbox(tasks: TaskRuns) -> dict[str, JSONValue]:
    try:
        return {"sandbox_ready": tasks.is_ready(), "sandbox_hint": ""}
    except KnapError as error:
        return {"sandbox_ready": None, "sandbox_hint": f"{error.message}: {error.hint}"}

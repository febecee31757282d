"""Show what a task is done with where nothing is said, and what there is to do it with."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from knapper.agents.pipeline import scopes
from knapper.errors import KnapError
from knapper.server.http.ask.orders import RANGES

if TYPE_CHECKING:
    from collections.abc import Callable

    from knapper.app.tasks.desk import Desk
    from knapper.jsontypes import JSONValue
    from knapper.server.http.arguments import Given
    from knapper.server.http.ask.tasks import Tasks


async def show(tasks: Tasks, desk: Desk, _: Given) -> dict[str, JSONValue]:
    """Show the configured choice, the switches as they were last, the ranges of numbers, and what is ready."""
    return await tasks.work(lambda: _shape(desk))


def _shape(desk: Desk) -> dict[str, JSONValue]:
    settings = desk.opened.hub.settings
    own, choice = settings.agents, desk.configured()
    names: list[str] = []
    tried: dict[str, Callable[[], object]] = {
        "model": lambda: names.append(desk.room.chat().name),
        "web": desk.acting("").open_web,
    }
    problems = {name: error for name, error in ((name, _problem(try_)) for name, try_ in tried.items()) if error}
    ranges: dict[str, JSONValue] = {name: [*both] for name, both in RANGES.items()}
    return {
        "choice": choice.as_dict(),
        "switches": desk.usual().toggles.as_dict(),
        "token_limit": own.token_limit,
        "chat_history_length": own.chat_history_length,
        "orchestrate": own.orchestrate,
        "ranges": ranges,
        "editable": [*scopes.EDITABLE_SCOPES],
        "can": [one for one in scopes.ABILITIES if one in choice.rules.can],
        "model": names[0] if names else "",
        "web": "web" not in problems,
        "problems": cast("JSONValue", problems),
    }


def _problem(work: Callable[[], object]) -> dict[str, object] | None:
    try:
        _ = work()
    except KnapError as error:
        return error.as_dict()
    return None

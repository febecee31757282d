"""Have several agents do tasks over HTTP: ``POST /ask`` answers at once, ``POST /ask/stream`` as it happens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from knapper.errors import SetupError
from knapper.server import auth, events, replies
from knapper.server.http import arguments, ongoing, outcomes
from knapper.server.http.arguments import VAULT
from knapper.server.http.ask import defaults, document, orders
from knapper.server.http.ask.orders import CONTEXT, ORDER, SWITCHES
from knapper.server.http.operations import Shown

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from knapper.agents.background import BackgroundJob
    from knapper.agents.pipeline.records import PipelineOutcome
    from knapper.agents.pipeline.store import PausedRun
    from knapper.app.tasks.desk import Desk
    from knapper.jsontypes import JSONValue
    from knapper.server.http.arguments import Given, Take
    from knapper.server.http.ask.tasks import Tasks
    from knapper.server.http.calling import Endpoint

    Work = Callable[[Tasks, Desk, Given], Awaitable[dict[str, JSONValue]]]
    """Does what a route is for, at a client's desk."""


def shown(tasks: Tasks) -> tuple[Shown, ...]:
    """List the routes."""
    tag, one = "ask", "/ask/{run_id}"
    how = "Scout, web and task work as they are switched on; a run that asks something goes on with its answer."
    again = "After `Last-Event-ID`, or from the beginning."
    known = "No model is asked. Where the scout is to look, its choice isn't known: the others are shown."
    whole, live = _asking(tasks, _whole), _asking(tasks, _live)
    context, stream = document.CONTEXT, document.STREAM
    by_vault: tuple[Take, ...] = (VAULT,)
    waits, usual = _endpoint(tasks, by_vault, _waiting), _endpoint(tasks, by_vault, defaults.show)
    given = _endpoint(tasks, CONTEXT, _context)
    switches, later = (*SWITCHES, VAULT), "For the next task; those that aren't said stay as they are."
    switch = _endpoint(tasks, switches, _switch)
    cancel = document.CANCELLED
    return (
        Shown("POST", "/ask", tag, "Have a task done.", whole, how, ORDER, document.WHOLE),
        Shown("POST", "/ask/stream", tag, "Have a task done as it happens.", live, how, ORDER, stream),
        Shown("GET", f"{one}/events", tag, "Hear a run again.", _resuming(tasks), again, (), stream),
        Shown("POST", f"{one}/cancel", tag, "Stop a run; what there is, is kept.", _cancelling(tasks), gives=cancel),
        Shown("GET", "/ask/waiting", tag, "List runs that ask.", waits, "", by_vault, document.WAITING),
        Shown("POST", "/ask/context", tag, "Show what would go in.", given, known, CONTEXT, context),
        Shown("PUT", "/ask/switches", tag, "Keep the switches.", switch, later, switches, document.SWITCHES),
        Shown("GET", "/ask/defaults", tag, "Show what is usual.", usual, "", by_vault, document.DEFAULTS),
    )


def _asking(tasks: Tasks, answer: Callable[[BackgroundJob[PipelineOutcome], Request], Awaitable[Response]]) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        given = await arguments.read(request, ORDER)
        orders.check(given)
        try:
            desk = await tasks.desk(auth.client_of(request.scope), given.text("vault"))
            live = await _begun(tasks, desk, given)
        except SetupError as error:
            return outcomes.not_set_up(error, request)
        return await answer(live, request)

    return endpoint


async def _begun(tasks: Tasks, desk: Desk, given: Given) -> BackgroundJob[PipelineOutcome]:
    model = given.text("model")
    if given.text("run_id"):
        return await tasks.go_on(desk, given.text("run_id"), given.text("answer"), model)
    return await tasks.begin(desk, orders.order(given), model)


async def _whole(live: BackgroundJob[PipelineOutcome], request: Request) -> Response:
    """Wait for the end; whoever asked may have gone, and the task goes on."""
    told = (await live.wait()).as_dict()
    error = next((one.as_dict() for one in live.events if one.kind == "error"), None)
    return replies.Json({"success": True, **told}) if error is None else outcomes.failed(told, error, request)


async def _live(live: BackgroundJob[PipelineOutcome], request: Request) -> Response:
    start: dict[str, JSONValue] = {"run_id": live.about, "task": live.question}
    return events.stream(live, start, request)


def _resuming(tasks: Tasks) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        _ = await arguments.read(request, ())
        return await _live(tasks.find(auth.client_of(request.scope), request.path_params["run_id"]), request)

    return endpoint


def _cancelling(tasks: Tasks) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        _ = await arguments.read(request, ())
        live = tasks.find(auth.client_of(request.scope), request.path_params["run_id"])
        cancelled, last = await ongoing.cancel(live)
        outcome = last.as_dict() if last else None
        shape = {"run_id": live.about, "cancelled": cancelled, "ended": live.has_ended, "outcome": outcome}
        return replies.Json({"success": True, **shape})

    return endpoint


def _endpoint(tasks: Tasks, takes: tuple[Take, ...], work: Work) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        given = await arguments.read(request, takes)
        desk = await tasks.desk(auth.client_of(request.scope), given.text("vault"))
        return replies.Json({"success": True, **await work(tasks, desk, given)})

    return endpoint


async def _waiting(tasks: Tasks, desk: Desk, _: Given) -> dict[str, JSONValue]:
    from knapper.app.tasks import resuming  # noqa: PLC0415 - a server without tasks needn't pay for models

    found = await tasks.work(lambda: resuming.waiting(desk.opened, desk.client))
    rows: list[JSONValue] = [_row(desk, run) for run in found]
    return {"results": rows}


def _row(desk: Desk, run: PausedRun) -> dict[str, JSONValue]:
    asked = run.request
    return {
        "run_id": run.id,
        "task": asked.get("task", ""),
        "note": asked.get("current", ""),
        "question": run.question.get("question", ""),
        "options": run.question.get("options") or [],
        "at": run.at.isoformat(timespec="seconds"),
        "client": run.client,
        "session_id": asked.get("session_id", "") if run.client == desk.client.name else "",
    }


async def _switch(tasks: Tasks, desk: Desk, given: Given) -> dict[str, JSONValue]:
    toggles = await tasks.work(lambda: desk.switch(orders.order(given).choice))
    return {"switches": toggles.as_dict()}


async def _context(tasks: Tasks, desk: Desk, given: Given) -> dict[str, JSONValue]:
    from knapper.app.tasks import previews  # noqa: PLC0415 - the same

    def work() -> dict[str, JSONValue]:
        wanted = desk.planned(orders.order(given))
        reader = desk.room.context("")
        return previews.preview(desk.acting(""), reader, wanted, texts=given.flag("texts") is True)

    return await tasks.show(work)

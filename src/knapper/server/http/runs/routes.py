"""Carry out larger tasks over HTTP: begin runs, look at them, hear them, and go on with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from starlette.requests import Request
from starlette.responses import Response

from knapper.errors import SetupError
from knapper.server import auth, events, imports, replies
from knapper.server.events import Event
from knapper.server.http import arguments, ongoing, operations, outcomes
from knapper.server.http.app import Mount
from knapper.server.http.arguments import VAULT
from knapper.server.http.operations import Shown
from knapper.server.http.runs import document
from knapper.server.http.runs.work import RunWork, busy

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from knapper.agents.runs.model import RunRecord
    from knapper.agents.runs.service import RunDetails
    from knapper.app import Hub
    from knapper.app.runs.room import RunRoom
    from knapper.app.runs.rooms import RunRooms
    from knapper.jsontypes import JSONValue
    from knapper.server.http.arguments import Given, Take
    from knapper.server.http.calling import Endpoint
    from knapper.server.stopping import Stop
    from knapper.tools.context import ScriptProfile

    OpenRooms = Callable[[Callable[[], bool]], RunRooms]
    Work = Callable[[RunWork, RunRoom, str, Given, Request], Awaitable[Response | dict[str, JSONValue]]]
    """Does what a route is for, in a room, with the run of the path."""

_PATH: Final = "/runs"
_ONE: Final = "/runs/{run_id}"
_USUAL: Final = 50
_ACCEPTED: Final = 202


def mount(hub: Hub, stop: Stop, open_rooms: OpenRooms | None = None) -> Mount:
    """Make what answers below ``/runs``.

    Args:
        hub: The vaults; it stays open, and is the caller's to close.
        stop: Told when the server stops; runs are left then, and can be resumed.
        open_rooms: Opens what holds the runs, given what tells whether the server ends; None for what the
            configuration says.
    """
    work = RunWork(open_rooms or (lambda is_leaving: _configured(hub, is_leaving)))

    return Mount(routes=[*map(operations.route, _shown(work))], lifespan=ongoing.lifespan(stop, work.end, work.shut))


def _configured(hub: Hub, is_leaving: Callable[[], bool]) -> RunRooms:
    with imports.ALONE:
        from knapper.app.runs.rooms import RunRooms  # noqa: PLC0415 - 2 s that a server without runs needn't wait for

    return RunRooms(hub, is_leaving=is_leaving)


def _shown(runs: RunWork) -> tuple[Shown, ...]:
    def of(work: Work, takes: Sequence[Take] = (VAULT,)) -> Endpoint:
        return _endpoint(runs, work, takes)

    begun = "It answers at once; /runs/{run_id}/events tells what happens. Others than persons may only lower limits."
    goes_on = "What is done isn't paid for again. It answers at once."
    heard = "Also of a run that another process carries out, and of one that has ended: its nodes, and `run_done`."
    ended = "Whichever process carries it out; what is done is kept."
    new, again, page, vault = document.NEW, document.AGAIN, document.PAGE, (VAULT,)
    to, said, tag = (document.TO, VAULT), (document.ANSWER, VAULT), "runs"
    point = f"{_ONE}/checkpoints/{{checkpoint_id}}"
    brief, ok = document.BRIEF, _ACCEPTED
    return (
        Shown("GET", f"{_PATH}/options", tag, "Tell what a run may be.", of(_options), "", vault, document.OPTIONS),
        Shown("GET", _PATH, tag, "List runs.", of(_list, page), "", page, document.LISTED),
        Shown("POST", _PATH, tag, "Begin a run.", of(_begin, new), begun, new, brief, ok),
        Shown("GET", _ONE, tag, "Show a run.", of(_show), "", vault, document.SHOWN),
        Shown("DELETE", _ONE, tag, "Forget a run.", of(_delete), "What it wrote stays.", vault, document.DELETED),
        Shown("GET", f"{_ONE}/nodes/{{node_id}}", tag, "Show a node.", of(_node), "", vault, document.NODE),
        Shown("GET", f"{_ONE}/events", tag, "Hear a run.", of(_events), heard, vault, document.STREAM),
        Shown("GET", f"{_ONE}/stale", tag, "Tell what has changed.", of(_stale), "", vault, document.STALE),
        Shown("POST", f"{_ONE}/resume", tag, "Go on with a run.", of(_resume, again), goes_on, again, brief, ok),
        Shown("POST", f"{_ONE}/cancel", tag, "End a run.", of(_cancel), ended, vault, document.CANCELLED),
        Shown("POST", f"{_ONE}/export", tag, "Propose it as notes.", of(_export, to), "", to, document.EXPORTED),
        Shown("POST", point, tag, "Answer a question.", of(_answer, said), "A person does.", said, document.ANSWERED),
    )


def _endpoint(runs: RunWork, work: Work, takes: Sequence[Take]) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        given = await arguments.read(request, takes)
        try:
            room = await runs.room(auth.client_of(request.scope), given.text("vault"))
            found = await work(runs, room, str(request.path_params.get("run_id", "")), given, request)
        except SetupError as error:
            return outcomes.not_set_up(error, request)
        return found if isinstance(found, Response) else replies.Json({"success": True, **found})

    return endpoint


async def _options(runs: RunWork, room: RunRoom, _: str, given: Given, request: Request) -> dict[str, JSONValue]:
    del given, request
    return await runs.work(room.options)


async def _list(runs: RunWork, room: RunRoom, _: str, given: Given, request: Request) -> dict[str, JSONValue]:
    del request
    limit, offset = given.count("limit", _USUAL), given.count("offset", 0)
    found, total, asking = await runs.work(lambda: _listed(room, limit, offset))
    rows: list[JSONValue] = [{**_brief(runs, run), "asks": asking.get(run.id, 0)} for run in found]
    return {"results": rows, "total": total, "limit": limit, "offset": offset}


def _listed(room: RunRoom, limit: int, offset: int) -> tuple[Sequence[RunRecord], int, Mapping[str, int]]:
    found, total = room.runs(limit, offset)
    return found, total, room.asking(found)


async def _begin(runs: RunWork, room: RunRoom, _: str, given: Given, request: Request) -> Response:
    from knapper.app.runs.orders import Wanted  # noqa: PLC0415 - a server without runs needn't pay for models

    del request
    wanted = Wanted(
        task=given.text("task"),
        strategy=given.text("strategy"),
        code_mode=given.flag("code_mode"),
        profile=cast("ScriptProfile", given.text("profile") or "strict"),
        fresh=bool(given.flag("fresh")),
        model=given.text("model"),
        also=tuple(given.texts("also") or ()),
        limits=_limits(given),
    )
    return _accepted(runs, await runs.begin(lambda: room.begin(wanted)))


async def _show(runs: RunWork, room: RunRoom, run_id: str, given: Given, request: Request) -> dict[str, JSONValue]:
    del given, request
    found, questions = await runs.work(lambda: (room.show(run_id), room.questions(run_id)))
    rows: list[JSONValue] = [one.as_dict() for one in questions]
    return {**found.as_dict(), "is_live": _is_live(runs, found.run), "checkpoints": rows}


async def _node(runs: RunWork, room: RunRoom, run_id: str, given: Given, request: Request) -> dict[str, JSONValue]:
    del given
    node_id = str(request.path_params["node_id"])
    return (await runs.work(lambda: room.node(run_id, node_id))).as_dict()


async def _events(runs: RunWork, room: RunRoom, run_id: str, given: Given, request: Request) -> Response:
    del given
    found = await runs.work(lambda: room.show(run_id))
    start: dict[str, JSONValue] = {"run_id": run_id, "task": found.run.order.task}
    live = runs.live(run_id)
    if live is not None:
        return events.stream(live, start, request)
    if found.run.state in {"pending", "running"}:
        return events.stream(runs.watch(room, run_id), start, request)
    return _ended(found, start, request)


def _ended(found: RunDetails, start: dict[str, JSONValue], request: Request) -> Response:
    """Tell what there is of a run that has ended, with ids above what was heard while it went on."""
    from knapper.agents.runs.service import RunWatcher  # noqa: PLC0415 - as above

    told = [(event.kind, event.as_dict()) for event in RunWatcher().look(found.run, found.nodes)]
    first = events.last_heard(request) + 1
    rows = [(events.START, {"type": events.START, **start}), *told]
    body = b"".join(Event(id=first + at, name=name, data=data).encode() for at, (name, data) in enumerate(rows))
    return Response(body, media_type="text/event-stream", headers=replies.HEADERS)


async def _stale(runs: RunWork, room: RunRoom, run_id: str, given: Given, request: Request) -> dict[str, JSONValue]:
    del given, request
    found = await runs.work(lambda: room.stale(run_id))
    return {"id": run_id, "stale": {node: [*notes] for node, notes in found.items()}}


async def _resume(runs: RunWork, room: RunRoom, run_id: str, given: Given, request: Request) -> Response:
    del request
    replay, limits = given.text("replay").strip(), _limits(given)
    if runs.live(run_id) is not None:
        _ = await runs.work(lambda: room.show(run_id))
        raise busy(run_id)
    return _accepted(runs, await runs.begin(lambda: room.go_on(run_id, replay, limits)))


async def _cancel(runs: RunWork, room: RunRoom, run_id: str, given: Given, request: Request) -> dict[str, JSONValue]:
    del given, request
    _ = await runs.work(lambda: room.show(run_id))
    live = runs.live(run_id)
    if live is None:
        cancelled = await runs.work(lambda: room.cancel(run_id))
    else:
        cancelled, _ = await ongoing.cancel(live)
    run = (await runs.work(lambda: room.show(run_id))).run
    return {"id": run_id, "cancelled": cancelled, "ended": not _is_live(runs, run), "state": run.state}


async def _delete(runs: RunWork, room: RunRoom, run_id: str, given: Given, request: Request) -> dict[str, JSONValue]:
    del given, request
    _ = await runs.work(lambda: room.show(run_id))
    if runs.live(run_id) is not None:
        raise busy(run_id)
    await runs.work(lambda: room.delete(run_id))
    return {"deleted": run_id}


async def _export(runs: RunWork, room: RunRoom, run_id: str, given: Given, request: Request) -> dict[str, JSONValue]:
    del request
    to = given.text("to")
    return dict(await runs.work(lambda: room.export(run_id, to)))


async def _answer(runs: RunWork, room: RunRoom, run_id: str, given: Given, request: Request) -> dict[str, JSONValue]:
    checkpoint, word = str(request.path_params["checkpoint_id"]), given.text("answer")
    return (await runs.work(lambda: room.answer(run_id, checkpoint, word))).as_dict()


def _limits(given: Given) -> dict[str, float]:
    found = {take.name: given.number(take.name) for take in document.LIMITS}
    return {name: number for name, number in found.items() if number is not None}


def _accepted(runs: RunWork, run: RunRecord) -> Response:
    return replies.Json({"success": True, **_brief(runs, run)}, _ACCEPTED)


def _brief(runs: RunWork, run: RunRecord) -> dict[str, JSONValue]:
    return {**run.brief(), "is_live": _is_live(runs, run)}


def _is_live(runs: RunWork, run: RunRecord) -> bool:
    return run.state in {"pending", "running"} or runs.live(run.id) is not None

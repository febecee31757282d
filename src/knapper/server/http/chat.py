"""Serve chats and their sessions over HTTP: ``/chat`` and ``/sessions``."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, NotRequired

from pydantic import JsonValue
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from knapper.agents.events import Event
from knapper.agents.sessions.store import StoredSession
from knapper.agents.stages import Stage
from knapper.app import clients
from knapper.errors import ConflictError, NotFound
from knapper.server import security
from knapper.server.http import background, binding
from knapper.server.http.background import CallRoutes
from knapper.server.http.binding import PAGE_PARAMETERS, VAULT_PARAMETER, Parameter, count_parameter
from knapper.server.http.openapi import (
    BOOLEAN,
    INTEGER,
    OBJECTS,
    STRING,
    RouteSpec,
    bind_route,
    json_content,
    page_content,
)
from knapper.tools import answers

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Coroutine, Sequence

    from knapper.agents.chat.turn import ChatConfig, Message
    from knapper.agents.events import JobEventSink, TurnJob
    from knapper.agents.sessions.store import Session
    from knapper.app.chats import ClientChats
    from knapper.jsontypes import JSONValue
    from knapper.server.http.background import JobService
    from knapper.server.http.binding import RequestArguments


_QUESTION_SCHEMA: Final[Mapping[str, Any]] = {
    "type": ["object", "null"],
    "description": "What the model asks; the next message in the session answers it.",
    "properties": {"question": STRING, "options": {"type": "array"}},
}
_TURN_PROPERTIES: Final[Mapping[str, Any]] = {
    "response": {"type": "string", "description": "The answer, with citations that hold only."},
    "session_id": STRING,
    "turn_id": STRING,
    "citations": {**OBJECTS, "description": "Each with its path, lines and the note's hash."},
    "removed": {**OBJECTS, "description": "Citations that were dropped, each with the reason."},
    "tools": OBJECTS,
    "proposals": {**OBJECTS, "description": "What waits for a person's word; see /proposals."},
    "changes": {"type": "array", "items": STRING, "description": "Ids of what was applied."},
    "question": _QUESTION_SCHEMA,
    "usage": {"type": "object"},
    "model": STRING,
    "state": {"enum": ["complete", "limit", "asked", "cancelled"]},
    "notes": {"type": "array"},
}
TURN_CONTENT: Final = json_content(_TURN_PROPERTIES)
STREAM_CONTENT: Final = background.events_content(
    "ChatEvent",
    "`start` comes first, with turn_id, session_id and message; then `text`, `tool_call`, `tool_result`, `proposal`, "
    "`question`, `debug`, `usage`, `notice` and `error`, as they happen; `done` comes last, with the answer. A lost "
    "connection doesn't end the turn: GET /chat/{turn_id}/events continues it.",
    background.start_schema("turn_id", "session_id", "message"),
    Event,
)
AGENTS_CONTENT: Final = json_content({"results": list[Stage]})
CANCEL_CONTENT: Final = json_content({"turn_id": STRING, "session_id": STRING, "cancelled": BOOLEAN, "ended": BOOLEAN})


class SessionRow(StoredSession):
    """A session, and what is running in it."""

    title: str
    running: str | None
    """The turn that is running, if one is."""
    task: str | None
    """The run of an agents' task that is running, if one is."""
    busy: bool
    """Whether something is running in it, also in another process."""
    client: str
    """Whose it is: one's own, or the client's that a schedule works for."""


class MessageRow(TypedDict):
    """A question, or the answer to it."""

    role: Literal["user", "assistant"]
    content: str
    number: int
    """The turn's, from 1."""
    at: str
    active_file: NotRequired[str | None]
    outcome: NotRequired[dict[str, JsonValue]]
    """As `done` tells it; of an answer only. `trace` has what was done before it, in brief."""


TRACE_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "array",
    "description": "In the order in which it happened; empty where the session was kept by an older version.",
    "items": {
        "type": "object",
        "properties": {
            "kind": {"enum": ["text", "call", "round"]},
            "text": STRING,
            "id": STRING,
            "name": STRING,
            "success": {"type": ["boolean", "null"], "description": "Null where no answer came."},
            "summary": STRING,
            "arguments": {"description": "As JSON, or the beginning of its text."},
            "answer": {"description": "As JSON, or the beginning of its text."},
            "number": {"type": "integer", "description": "Of a round."},
            "limit": {"type": "integer", "description": "How many rounds there may be."},
            "cut": {"type": "array", "items": STRING, "description": "Which of them are a beginning only."},
        },
        "required": ["kind"],
    },
}


async def begin_turn(
    service: JobService, client_chats: ClientChats, message: Message, session_id: str = "", model: str = ""
) -> TurnJob:
    """Start answering a message.

    Args:
        service: Has the job.
        client_chats: The sender's chats.
        message: The message, with the note that the person has open by its path or name.
        session_id: The session; empty for the open note's.
        model: The name of the model that answers; empty for the configured one.

    Raises:
        NotFound: There is no such session.
        ConflictError: It is answering another message (code ``session_busy``).
        SetupError: There is no model.
        RefusedError: The client may not use that model (code ``model_not_allowed``).
        StorageError: The server is stopping (code ``stopping``).
        KnapError: The note is hidden, several have its name, or too many turns are running.
    """

    def prepare() -> tuple[Session, ChatConfig, str]:
        note = client_chats.open_note(message.active_file)
        if session_id:
            return client_chats.store.get(session_id), client_chats.chat(model), note
        chat = client_chats.chat(model)  # first, so that where no model is set up, no session is begun
        return client_chats.conversations.route(note), chat, note

    session, chat, note = await service.run_blocking(prepare)
    if find_running_turn(client_chats, session.id) is not None:
        raise session_busy_error()
    opened = replace(message, active_file=note)

    def work(emit: JobEventSink) -> Coroutine[object, object, object]:
        return client_chats.conversations.reply(chat, session.id, opened, emit)

    return service.jobs.begin(client_chats.turns, session.id, work, message.text)


async def find_turn(service: JobService, client: str, turn_id: str) -> TurnJob:
    """Find a client's turn by its id, or the latest one of a session by the session's id, to show it.

    Raises:
        NotFound: There is none, it ended long ago, or it is another client's (code ``no_turn``).
    """
    for client_chats in await service.seen_open_chats(client):
        try:
            turn = client_chats.turns.find(turn_id)
        except NotFound:
            continue
        await service.run_blocking(lambda: client_chats.mark_shown(turn.subject_id))  # noqa: B023  # called at once
        return turn
    hint = "the session contains the results of ended turns"
    raise NotFound("there is no such turn", hint=hint, code="no_turn")


def find_running_turn(client_chats: ClientChats, session_id: str) -> TurnJob | None:
    """Return the running turn of a session, if there is one."""
    return next((turn for turn in client_chats.turns.running() if turn.subject_id == session_id), None)


def session_busy_error() -> ConflictError:
    """Return the error for a session that is answering another message."""
    return ConflictError(
        "the session is answering another message",
        hint="wait for it, cancel it, or go on in another one",
        code="session_busy",
    )


@asynccontextmanager
async def hold_idle_session(service: JobService, client_chats: ClientChats, session_id: str) -> AsyncGenerator[None]:
    """Lock a session in which no turn is running.

    Raises:
        NotFound: There is no such session.
        ConflictError: A turn is running in it (code ``session_busy``).
    """
    _ = await service.run_blocking(lambda: client_chats.store.get(session_id))
    if find_running_turn(client_chats, session_id) is not None:
        raise session_busy_error()
    async with client_chats.store.lock(session_id, wait_s=0):
        yield


def turn_reply(turn: TurnJob, request: Request) -> Response:
    """Reply with an ended turn: its answer, or its error beside the partial answer."""
    event_data = [event.as_dict() for event in turn.events]
    done_event = next(event_datum for event_datum in reversed(event_data) if event_datum["type"] == "done")
    question = next((event for event in event_data if event["type"] == "question"), None)
    proposals = [event["proposal"] for event in event_data if event["type"] == "proposal"]
    copied_fields = ("citations", "removed", "tools", "changes", "usage", "model", "state", "notes")
    turn_data = {
        "response": done_event["answer"],
        "session_id": turn.subject_id,
        "turn_id": turn.id,
        "proposals": proposals,
        "question": question and {"question": question["question"], "options": question["options"]},
        **{name: done_event[name] for name in copied_fields},
    }
    return background.ended_reply(turn, turn_data, request)


_LIST_PARAMETERS: Final = (
    Parameter(name="query", doc="Only those in whose title, questions or answers this text stands.", maximum=200),
    *PAGE_PARAMETERS,
    VAULT_PARAMETER,
)
_NEW_SESSION_PARAMETERS: Final = (
    Parameter(name="title", doc="Its name, 1 to 200 characters.", maximum=200),
    Parameter(name="active_file", doc="The note that it is about."),
    VAULT_PARAMETER,
)
_NEW_TITLE: Final = Parameter(name="title", doc="Its new name, 1 to 200 characters.", required=True, maximum=200)
_FORK_UPTO: Final = count_parameter("upto", "The last turn that is taken over; all are, if it is left out.", 0, 10**9)
_TURN_NUMBER: Final = Parameter(
    name="number", doc="Of the turn, from 1.", kind="count", required=True, minimum=1, maximum=10**9
)
_EXPORT_PATH: Final = Parameter(name="path", doc="Of the new note; one below Chats/ where it is left out.")


@dataclass(frozen=True, slots=True, kw_only=True)
class _SessionCall:
    """A client's request about its sessions, or about the one of the path."""

    service: JobService
    chats: ClientChats
    """Those of the client that the session is of."""
    session_id: str
    """Empty where the path names no session."""
    args: RequestArguments
    request: Request

    async def answer_message(self) -> Response:
        """Answer a message."""
        turn = await self._begin_turn()
        _ = await turn.wait()  # if the client disconnects, the turn continues
        return turn_reply(turn, self.request)

    async def stream_answer(self) -> Response:
        """Answer a message and stream the events."""
        return await _tell_turn(await self._begin_turn(), self.request, self.args)

    async def _begin_turn(self) -> TurnJob:
        message = _read_message(self.chats, self.request, self.args)
        return await begin_turn(self.service, self.chats, message, self.session_id, self.args.text("model"))

    async def list_sessions(self) -> Mapping[str, object]:
        """List sessions."""
        limit, offset = self.args.page()
        query, vault = self.args.text("query"), self.chats.chats.vault
        names = await self.service.seen_clients(self.chats.client, vault)
        seen = {name: await self.service.client_chats(name, vault) for name in names}
        stores = {name: one.store for name, one in seen.items()}
        rows, total = await self.service.run_blocking(
            lambda: clients.list_sessions(stores, limit=limit, offset=offset, query=query)
        )
        described: dict[str, SessionRow] = {}
        for name, one in seen.items():
            sessions = [session for owner, session in rows if owner == name]
            described |= {shape["id"]: shape for shape in await _describe_sessions(self.service, one, *sessions)}
        return {
            "results": [described[session.id] for _, session in rows],
            "total": total,
            "limit": limit,
            "offset": offset,
        }

    async def begin_session(self) -> Mapping[str, object]:
        """Start a session."""
        active_file, title = self.args.text("active_file"), self.args.text("title")

        def begin() -> Session:
            return self.chats.store.begin(file=self.chats.open_note(active_file), name=title)

        return await self._answer(await self.service.run_blocking(begin))

    async def read_session(self) -> Mapping[str, object]:
        """Read a session.

        Turns are counted from the oldest; without an offset the latest ones come.
        """
        from knapper.agents import events  # noqa: PLC0415 - a server without chats needn't pay for models

        session, exchanges = await self.service.run_blocking(lambda: self.chats.read(self.session_id))
        limit, _ = self.args.page()
        offset = self.args.integer_or_default("offset", max(len(exchanges) - limit, 0))
        messages: list[MessageRow] = []
        for turn in exchanges[offset : offset + limit]:
            number, at = turn.number, turn.at.isoformat(timespec="seconds")
            trace = events.without_details(events.entries_of(turn.outcome))
            outcome: dict[str, JSONValue] = {**turn.outcome, events.TRACE_FIELD: trace}
            answer, file = str(turn.outcome.get("answer", "")), turn.file or None
            messages.append({"role": "user", "content": turn.question, "number": number, "at": at, "active_file": file})
            messages.append({"role": "assistant", "content": answer, "number": number, "at": at, "outcome": outcome})
        page = {"total": len(exchanges), "limit": limit, "offset": offset}
        return {**await self._answer(session), "messages": messages, **page}

    async def show_trace(self) -> dict[str, JSONValue]:
        """Show what a turn did.

        Its texts between calls, and its calls with arguments and answers, the beginning of long ones.
        """
        from knapper.agents import events  # noqa: PLC0415 - a server without chats needn't pay for models

        number = self.args.integer_or_default("number", 0)
        exchanges = await self.service.run_blocking(lambda: self.chats.store.turns(self.session_id))
        turn = next((turn for turn in exchanges if turn.number == number), None)
        if turn is None:
            raise NotFound(f"the session has no turn {number}", hint=f"it has {len(exchanges)}", code="no_turn")
        return {"number": number, "trace": events.entries_of(turn.outcome)}

    async def rename_session(self) -> Mapping[str, object]:
        """Rename a session."""
        title = self.args.text("title")
        renamed = await self.service.run_blocking(lambda: self.chats.store.rename(self.session_id, title))
        return await self._answer(renamed)

    async def fork_session(self) -> Mapping[str, object]:
        """Fork a session."""
        upto = self.args.integer_or_default("upto", -1)
        forked = await self.service.run_blocking(
            lambda: self.chats.fork(self.session_id, upto=None if upto < 0 else upto)
        )
        return await self._answer(forked)

    async def clear_session(self) -> Mapping[str, object]:
        """Restart a session without its history."""
        async with hold_idle_session(self.service, self.chats, self.session_id):
            cleared = await self.service.run_blocking(lambda: self.chats.store.clear(self.session_id))
        return await self._answer(cleared)

    async def export_session(self) -> dict[str, JSONValue]:
        """Export a session as a note."""
        path = self.args.text("path")
        return answers.as_json(await self.service.run_blocking(lambda: self.chats.export(self.session_id, path)))

    async def delete_session(self) -> dict[str, JSONValue]:
        """Delete a session."""
        async with hold_idle_session(self.service, self.chats, self.session_id):
            await self.service.run_blocking(lambda: self.chats.store.delete(self.session_id))
        return {"deleted": self.session_id}

    async def _answer(self, session: Session) -> Mapping[str, object]:
        (shape,) = await _describe_sessions(self.service, self.chats, session)
        return {"session": shape}


def _bind_calls(service: JobService, tag: str, *, needs_setup: bool = False) -> CallRoutes[_SessionCall]:
    async def open_call(request: Request, args: RequestArguments) -> _SessionCall:
        client, session_id = security.client_of(request.scope), str(request.path_params.get("session_id", ""))
        client_chats = await service.session_chats(client, args.text("vault"), session_id)
        return _SessionCall(service=service, chats=client_chats, session_id=session_id, args=args, request=request)

    return CallRoutes(tag=tag, open_call=open_call, needs_setup=needs_setup)


def session_routes(service: JobService) -> tuple[RouteSpec, ...]:
    """List the routes of sessions."""
    route, path = _bind_calls(service, "sessions").route, "/sessions/{session_id}"
    session_content = json_content({"session": SessionRow})
    sessions_content = page_content("results", SessionRow)
    messages_content = page_content("messages", MessageRow, session=SessionRow)
    export_content = json_content({"status": {"enum": ["applied", "proposed"]}})
    trace_content = json_content({"number": INTEGER, "trace": TRACE_SCHEMA})
    return (
        route("GET", "/sessions", _SessionCall.list_sessions, sessions_content, _LIST_PARAMETERS),
        route("POST", "/sessions", _SessionCall.begin_session, session_content, _NEW_SESSION_PARAMETERS),
        route("GET", path, _SessionCall.read_session, messages_content, (*PAGE_PARAMETERS, VAULT_PARAMETER)),
        route("GET", f"{path}/trace", _SessionCall.show_trace, trace_content, (_TURN_NUMBER, VAULT_PARAMETER)),
        route("PATCH", path, _SessionCall.rename_session, session_content, (_NEW_TITLE, VAULT_PARAMETER)),
        route("POST", f"{path}/fork", _SessionCall.fork_session, session_content, (_FORK_UPTO, VAULT_PARAMETER)),
        route("POST", f"{path}/clear", _SessionCall.clear_session, session_content),
        route("POST", f"{path}/export", _SessionCall.export_session, export_content, (_EXPORT_PATH, VAULT_PARAMETER)),
        route("DELETE", path, _SessionCall.delete_session, json_content({"deleted": STRING})),
    )


async def _describe_sessions(service: JobService, client_chats: ClientChats, *found: Session) -> list[SessionRow]:
    rows: list[SessionRow] = []
    for each in found:  # and the jobs running in it here, without reading the disk
        turn, task = find_running_turn(client_chats, each.id), service.jobs.within(each.id)
        row: SessionRow = {
            "id": each.id,
            "title": each.name,
            **each.stored_fields(),
            "running": turn and turn.id,
            "task": task and task.subject_id,
            "busy": turn is not None or task is not None,
            "client": client_chats.client,
        }
        rows.append(row)
    idle_ids = [row["id"] for row in rows if not row["busy"]]
    held_ids = await service.run_blocking(lambda: set(filter(client_chats.store.is_locked, idle_ids)))
    return [{**row, "busy": row["busy"] or row["id"] in held_ids} for row in rows]


_ACTIVE_FILE: Final = Parameter(
    name="active_file",
    doc="The note that the person is looking at: it decides which session continues, and what 'this note' means.",
)
_MESSAGE: Final = Parameter(
    name="message",
    doc="What the person says; a slash and an agent's name alone, such as `/weekly-review`, set that agent to work.",
    required=True,
    maximum=200_000,
)
_IGNORED_SESSION_ID: Final = Parameter(
    name="session_id", doc="Taken, and not used: the active file alone tells the session."
)
_DEBUG: Final = Parameter(
    name="debug",
    doc="Tell the model's prompts and replies: as an event `debug`, and in the answer's `debug`. Only for persons.",
    kind="flag",
)
_CHAT_MODEL: Final = Parameter(
    name="model",
    doc="The model that answers; one of the configuration, unless a person asks.",
    maximum=500,
    refuses_blank=True,
)
_CAPS: Final = (
    count_parameter("rounds", "Rounds of tool calls at most; only lowers the owner's limit.", 1, 100),
    count_parameter("calls", "Tool calls at most; only lowers the owner's limit.", 1, 10_000),
    count_parameter("tokens", "Tokens at most; only lowers the owner's limit.", 1, 10**9),
    Parameter(
        name="minutes",
        doc="How long it may take; only lowers the owner's limit.",
        kind="number",
        minimum=0.01,
        maximum=1_440,
    ),
    count_parameter(
        "cents",
        "What it may cost, in cents of a US dollar, where the price is known; only lowers the owner's limit.",
        1,
        10**6,
    ),
)
_BY_FILE_PARAMETERS: Final = (_MESSAGE, _IGNORED_SESSION_ID, _ACTIVE_FILE, _CHAT_MODEL, *_CAPS, _DEBUG, VAULT_PARAMETER)
_BY_ID_PARAMETERS: Final = (_MESSAGE, _ACTIVE_FILE, _CHAT_MODEL, *_CAPS, _DEBUG, VAULT_PARAMETER)


def chat_routes(service: JobService) -> tuple[RouteSpec, ...]:
    """List the routes that answer messages."""
    by_file_description = "Uses the session of the active file; another file has another session."
    by_id_description = "Uses the session in the path, whichever file is open."

    async def list_agents(_: Request, args: RequestArguments) -> dict[str, JSONValue]:
        """List the agents that a message may name.

        Each has a task of its own: a message of a slash and its name alone sets it to work.
        """
        del args
        stages, _problems = await service.run_blocking(clients.open_stages(service.clients.hub).all)
        return {"results": [one.as_dict() for one in stages]}

    async def tell(request: Request, args: RequestArguments) -> Response:
        """Stream the events of a turn.

        After `Last-Event-ID`, or from the beginning. A session's id means its latest turn.
        """
        return await _tell_turn(await find(request), request, args)

    async def cancel(request: Request, args: RequestArguments) -> dict[str, JSONValue]:
        """Cancel a turn; the partial answer is kept."""
        del args
        turn = await find(request)
        cancelled, _ = await background.cancel_job(turn)
        return {"turn_id": turn.id, "session_id": turn.subject_id, "cancelled": cancelled, "ended": turn.has_ended}

    async def find(request: Request) -> TurnJob:
        return await find_turn(service, security.client_of(request.scope), request.path_params["turn_id"])

    path, event_parameters = "/chat/{turn_id}", (*background.EVENT_PARAMETERS, *binding.ANY_VAULT)
    return (
        *_message_routes(service, "/chat", "chat", by_file_description, _BY_FILE_PARAMETERS),
        bind_route("GET", f"{path}/events", "chat", tell, event_parameters, STREAM_CONTENT),
        bind_route("POST", f"{path}/cancel", "chat", cancel, binding.ANY_VAULT, CANCEL_CONTENT),
        *_message_routes(service, "/sessions/{session_id}/chat", "sessions", by_id_description, _BY_ID_PARAMETERS),
        bind_route("GET", "/agents", "chat", list_agents, binding.ANY_VAULT, AGENTS_CONTENT),
    )


def _message_routes(
    service: JobService, path: str, tag: str, description: str, parameters: Sequence[Parameter]
) -> tuple[RouteSpec, RouteSpec]:
    """List the routes that answer a message: at the end of the turn, and as it happens."""
    route = _bind_calls(service, tag, needs_setup=True).route
    streamed, events = (*parameters, background.WAIT_PARAMETER), STREAM_CONTENT
    waiting = route("POST", path, _SessionCall.answer_message, TURN_CONTENT, parameters)
    streaming = route("POST", f"{path}/stream", _SessionCall.stream_answer, events, streamed)
    return replace(waiting, description=description), replace(streaming, description=description)


def _read_message(client_chats: ClientChats, request: Request, args: RequestArguments) -> Message:
    """Read a message from a request's arguments.

    Raises:
        RefusedError: A program asks for prompts, which may hold what the owner wrote for models alone.
    """
    from knapper.agents.chat.turn import Message, TurnCaps  # noqa: PLC0415 - a server without chats needn't pay for models

    is_debugged = args.flag("debug") is True
    if is_debugged:
        security.check_person(client_chats.chats.hub.settings, request.scope, "see a model's prompts")
    return Message(
        text=args.text("message"),
        active_file=args.text("active_file"),
        debug=is_debugged,
        caps=TurnCaps(
            rounds=args.integer_or_default("rounds", 0),
            calls=args.integer_or_default("calls", 0),
            tokens=args.integer_or_default("tokens", 0),
            minutes=args.number("minutes") or 0,
            cents=args.integer_or_default("cents", 0),
        ),
    )


async def _tell_turn(turn: TurnJob, request: Request, args: RequestArguments) -> Response:
    """Stream a turn's events; for who can't stream, reply with its id, by which the events are asked for."""
    start: dict[str, JSONValue] = {"turn_id": turn.id, "session_id": turn.subject_id, "message": turn.question}
    return await background.events_reply(turn, start, request, args)

"""Offer tools to a model: repair and check its calls, run them in threads, and limit what it is shown of their answers.

Every agent has its tools from here: those of the table that it may call, and tools of its own, such as the scout's
selection.
"""

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import anyio.to_thread
from anyio import CapacityLimiter
from pydantic_ai import RunContext
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool

from knapper.agents import prompting
from knapper.agents.events import Event, ProposalEvent, QuestionEvent, ToolResult
from knapper.agents.model import replies
from knapper.agents.model.replies import Arguments
from knapper.errors import BadInput, KnapError, NotFound
from knapper.jsontypes import JSONValue, objects_in, strings_in
from knapper.tools import answers, proposals, registry
from knapper.tools.context import CancelSignal, Context
from knapper.tools.registry import CALL_TOOL, ToolSpec
from knapper.tools.shapes import Answer

GET_CONTINUATION: Final = "get_continuation"
ASK_USER: Final = "ask_user"


def define_tool(
    name: str, description: str, properties: dict[str, Any], *required: str, sequential: bool = True
) -> ToolDefinition:
    """Return the definition of a tool that isn't of the table.

    Args:
        name: Its name.
        description: For the model.
        properties: The JSON Schemas of its parameters, by name.
        required: The names of those that it needs.
        sequential: Whether no other call may run beside it.
    """
    return ToolDefinition(
        name=name,
        description=description,
        parameters_json_schema=object_schema(properties, *required),
        sequential=sequential,
    )


def object_schema(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    """Return the JSON Schema of an object that has these properties and no others."""
    return {"type": "object", "properties": properties, "required": [*required], "additionalProperties": False}


LOOP_TOOLS: Final = (
    define_tool(
        GET_CONTINUATION,
        "Read on in a tool result of this turn that was cut.",
        {
            "tool_call_id": {"type": "string", "description": "As the cut result tells."},
            "offset": {"type": "integer", "description": "The character to begin at.", "default": 0},
        },
        "tool_call_id",
        sequential=False,
    ),
    define_tool(
        ASK_USER,
        "Ask the person, where the task can be meant in several ways and the notes don't tell which.",
        {
            "question": {"type": "string"},
            "options": {"type": "array", "items": {"type": "string"}, "description": "Answers to choose from."},
        },
        "question",
    ),
)


def read_question(arguments: Arguments) -> tuple[str, tuple[str, ...]]:
    """Return the question and the answers to choose from; options that aren't text are dropped."""
    arguments = replies.join_surrogates_in_object(arguments)
    options = (one.strip() for one in strings_in(arguments.get("options")))
    return str(arguments.get("question") or "").strip(), tuple(filter(None, options))


def check_question(question: str, *, is_first: bool) -> None:
    """Check that a question can be put to the person.

    Args:
        question: The question, as the person would be shown it.
        is_first: Whether no other question is waiting.

    Raises:
        BadInput: The question is empty, or another one is waiting.
    """
    if not question:
        raise BadInput("the question is empty", hint="ask the person in words, or continue without", code="no_question")
    if not is_first:
        raise BadInput(
            "another question to the person is open", hint="ask one at a time; this one after the answer", code="asked"
        )


MAX_RESULT_CHARS: Final = 4_000
"""Characters of a tool's result that the model is shown at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultExcerpt:
    """The part of a result that the model is shown."""

    text: str
    chars: int
    """Length of the whole result."""
    truncated: bool


@dataclass(slots=True, kw_only=True)
class ResultExcerpts:
    """The results of one turn that were too long to show at once."""

    mark: str
    """The mark of the turn's blocks."""
    max_chars: int = MAX_RESULT_CHARS
    _kept: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])

    def show(self, call_id: str, tool: str, answer: object) -> ResultExcerpt:
        """Return an answer as the model is shown it, cut where it is too long.

        Args:
            call_id: The call's id.
            tool: The tool's name.
            answer: The answer, as JSON.
        """
        whole = prompting.escape(answer)
        if len(whole) > self.max_chars:
            self._kept[call_id] = (tool, whole)
        return self._excerpt(call_id, tool, whole, 0)

    @property
    def has_cut(self) -> bool:
        """Return whether a result was too long, so that there is something to read on."""
        return bool(self._kept)

    def read_on(self, call_id: str, offset: int) -> ResultExcerpt:
        """Return a later part of a result that was cut.

        Raises:
            NotFound: No result of this turn with that id was cut.
            BadInput: The offset lies outside of the result.
        """
        if call_id not in self._kept:
            call_ids = ", ".join(self._kept)
            hint = f"results that were cut in this turn: {call_ids}" if call_ids else "no result was cut in this turn"
            raise NotFound(f"there is no cut result of the call '{call_id[:80]}'", hint=hint, code="no_such_result")
        tool, whole = self._kept[call_id]
        if not 0 <= offset < len(whole):
            raise BadInput(f"offset is {offset}", hint=f"give 0 to {len(whole) - 1}")
        return self._excerpt(call_id, tool, whole, offset)

    def _excerpt(self, call_id: str, tool: str, whole: str, offset: int) -> ResultExcerpt:
        stop = min(offset + self.max_chars, len(whole))
        block = prompting.enclose(tool, whole[offset:stop], self.mark)
        if offset == 0 and stop == len(whole):
            return ResultExcerpt(text=block, chars=len(whole), truncated=False)
        header = f"[characters {offset} to {stop} of {len(whole)}, tool_call_id: {call_id}"
        footer = (
            f"; get_continuation(tool_call_id, offset={stop}) reads on]" if stop < len(whole) else "; this is the end]"
        )
        return ResultExcerpt(text=f"{block}\n{header}{footer}", chars=len(whole), truncated=stop < len(whole))


_MAX_THREADS: Final = 4
"""Tools of one turn that run at the same time."""


ToolHandler = Callable[[Arguments], Answer]
"""Carries out a call; runs in a thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentTool:
    """A tool that one agent has beside those of the table."""

    definition: ToolDefinition
    handle: ToolHandler


@dataclass(slots=True, kw_only=True)
class ToolSession:
    """State that the tools of one turn share."""

    rows: Mapping[str, ToolSpec]
    context: Context
    results: ResultExcerpts
    listed_names: set[str]
    """Names of the table's tools that the model is shown; tools that it finds are added."""
    own: Mapping[str, AgentTool] = field(default_factory=dict[str, AgentTool])
    """The agent's own tools by name, which go before all others."""
    loop_tools: Sequence[ToolDefinition] = LOOP_TOOLS
    argument_limits: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]])
    """The maximum of numeric arguments by tool, which is their default as well."""
    on_answer: Callable[[str, Arguments, Answer], None] | None = None
    """Called with each answer of the table's tools, in the call's thread."""
    brief: bool = False
    """Whether only the most important parameters are shown."""
    pending_events: list[Event] = field(default_factory=list[Event])
    """Events that aren't streamed yet."""
    answers: dict[str, Mapping[str, JSONValue]] = field(default_factory=dict[str, Mapping[str, JSONValue]])
    """The tools' full answers by call id."""
    truncated_call_ids: set[str] = field(default_factory=set[str])
    """Ids of calls whose arguments are cut off; such a call changes nothing."""
    usage_rows: list[JSONValue] = field(default_factory=list[JSONValue])
    proposals: list[str] = field(default_factory=list[str])
    changes: list[str] = field(default_factory=list[str])
    question: QuestionEvent | None = None
    """The question to the person; it ends the turn."""
    threads: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(_MAX_THREADS))
    """A limiter for each turn, so that slow tools of one turn don't delay another turn."""
    write_tasks: set["asyncio.Task[str]"] = field(default_factory=set["asyncio.Task[str]"])
    """Calls that may write; one that has started is finished even where the turn is cancelled."""
    cancelling: CancelSignal = field(default_factory=CancelSignal)
    """Signals to calls that can be stopped at any time, such as scripts, that the turn is cancelled."""
    _last: str = ""

    def withhold_question(self) -> None:
        """Offer no way to ask the person: nobody is there to answer."""
        self.loop_tools = [one for one in self.loop_tools if one.name != ASK_USER]

    def show_essential_tools(self) -> None:
        """Show the essential tools alone from now on, until the model finds others."""
        self.brief = True
        self.listed_names = _list_names(self.rows, essential=True)

    def definitions(self) -> list[ToolDefinition]:
        """Return the definitions of the tools that the model is shown."""
        table = [
            ToolDefinition(
                name=row.name,
                description=registry.describe(row, brief=self.brief),
                parameters_json_schema=registry.parameter_schema(row, brief=self.brief),
                sequential=row.effect != "read",
            )
            for name, row in self.rows.items()
            if name in self.listed_names
        ]
        own = [tool.definition for tool in self.own.values()]
        has_more = not self.brief or self.results.has_cut
        return [*own, *table, *(one for one in self.loop_tools if has_more or one.name != GET_CONTINUATION)]

    def repair_arguments(self, name: str, raw: object) -> Arguments:
        """Return a call's arguments as they will be used, with lone surrogates replaced."""
        definitions = {one.name: one for one in (*self.loop_tools, *(tool.definition for tool in self.own.values()))}
        schema: replies.Schema = definitions[name].parameters_json_schema if name in definitions else {}
        if name in self.rows:
            schema = registry.parameter_schema(self.rows[name])
        # A call's arguments are shown and stored, where a lone surrogate can't be encoded.
        fitted = replies.fit_arguments(replies.read_arguments(raw), schema)
        return replies.join_surrogates_in_object(fitted)

    async def finish_writes(self) -> None:
        """Stop what can be stopped, and wait until no call writes any more."""
        self.cancelling.cancel()
        if self.write_tasks:
            _ = await asyncio.wait(self.write_tasks)

    def is_repeat(self, name: str, arguments: Mapping[str, JSONValue]) -> bool:
        """Return whether a call repeats the one just before it."""
        call_key = json.dumps([name, arguments], sort_keys=True, ensure_ascii=False)
        repeated = call_key == self._last
        self._last = call_key
        return repeated


def open_tool_session(
    rows: Mapping[str, ToolSpec],
    context: Context,
    *,
    max_chars: int,
    essential: bool = False,
    own: Sequence[AgentTool] = (),
    mark: str = "",
) -> ToolSession:
    """Open the tools' session of one turn.

    Args:
        rows: The tools of the table that may be called.
        context: The vault, as the agent sees it.
        max_chars: Characters of a result that the model is shown at once.
        essential: Whether only the essential tools are shown until the model finds others.
        own: The agent's own tools; whoever has such has its own way to ask the person, too, if any.
        mark: The mark of the turn's blocks; empty for a new one.
    """
    cancelling = CancelSignal()
    return ToolSession(
        rows=rows,
        context=replace(context, on_cancel=cancelling.subscribe),
        results=ResultExcerpts(mark=mark or prompting.new_mark(), max_chars=max_chars),
        listed_names=set(rows) if own else _list_names(rows, essential=essential),
        own={tool.definition.name: tool for tool in own},
        loop_tools=[one for one in LOOP_TOOLS if one.name != ASK_USER or not own],
        brief=essential,
        cancelling=cancelling,
    )


def _list_names(rows: Mapping[str, ToolSpec], *, essential: bool) -> set[str]:
    return {name for name, row in rows.items() if registry.is_listed(row, "essential" if essential else "full")}


def summarize_answer(answer: Mapping[str, JSONValue]) -> str:
    """Return a line for a person that summarizes a tool's answer."""
    if answer.get("success") is False:
        return str(answer.get("error", "it failed"))
    results = answer.get("results")
    if isinstance(results, list):
        total = answer.get("total", len(results))
        return f"{total} result{'' if total == 1 else 's'}"
    parts = [str(answer[name]) for name in ("status", "path", "message") if answer.get(name)]
    return ": ".join(parts[:2]) or "done"


UNCOUNTED_TOOLS: Final = frozenset({"log_interaction", GET_CONTINUATION})
"""Tools whose calls don't count towards the turn's limit."""
FIND_TOOL: Final = "find_tool"
_PERSON_ONLY_TOOLS: Final = frozenset({"accept_proposal", "undo", "undo_change"})
"""Tools that decide on a person's behalf, which no agent may do."""
_PATH_PARAMETERS: Final = frozenset({"path", "paths", "source", "destination", "folder", "note_name", "file", "files"})
_REPEATED_CALL: Final = (
    "This very call was made just before, and its result stands above. Use that, or call with other arguments."
)
_TRUNCATED_CALL: Final = "the call's arguments end in the middle, and nothing was changed"
_QUESTION_ASKED: Final = "The question is put to the person; their next message answers it. End your turn now."
_TOOL_RETRIES: Final = 50


def choose_tools(rows: Sequence[ToolSpec], *, may_write: bool = True) -> dict[str, ToolSpec]:
    """Return the tools that a model is offered, by name; accepting proposals and undoing are left to a person."""
    return {row.name: row for row in rows if row.name not in _PERSON_ONLY_TOOLS and (may_write or row.effect == "read")}


class TableToolset(AbstractToolset[ToolSession]):
    """The session's tools, as pydantic-ai calls them."""

    @property
    def id(self) -> str:
        """Return the toolset's name."""
        return "vault"

    async def get_tools(self, ctx: RunContext[ToolSession]) -> dict[str, ToolsetTool[ToolSession]]:
        """Return the definitions of the tools that the turn has."""
        return {
            one.name: ToolsetTool(
                toolset=self,
                tool_def=one,
                max_retries=_TOOL_RETRIES,
                args_validator=ArgumentValidator(one),
            )
            for one in ctx.deps.definitions()
        }

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[ToolSession], tool: ToolsetTool[ToolSession]
    ) -> str:
        """Call a tool and return its answer for the model; errors are returned with their hints."""
        del tool
        session, call_id = ctx.deps, ctx.tool_call_id or ""
        arguments: Arguments = tool_args
        if name == CALL_TOOL:
            name, arguments = _resolve_call(session, arguments)
        if session.is_repeat(name, arguments):
            return _return_answer(
                session, call_id, name, {"success": False, "error": _REPEATED_CALL, "code": "repeated_call"}
            )
        if name in _LOOP_HANDLERS and name not in session.own:
            return _LOOP_HANDLERS[name](session, call_id, arguments)
        row = session.rows.get(name)
        if name in session.own or (row is not None and row.effect == "read"):
            return await _run_tool(session, call_id, name, arguments)
        if row is None:
            hint = registry.suggest_tools(name, (each.name for each in session.rows.values() if not each.is_twin))
            missing = NotFound(f"there is no tool '{name[:80]}' here", hint=hint, code="no_tool")
            return _return_answer(session, call_id, CALL_TOOL, answers.as_json(missing.as_dict()))
        if call_id in session.truncated_call_ids:
            cut = BadInput(
                _TRUNCATED_CALL, hint="send the whole call again, and a long text in several calls", code="cut_off"
            )
            return _return_answer(session, call_id, name, answers.as_json(cut.as_dict()))
        # A cancelled turn must not leave a half-done write: the task is shielded and `finish_writes` waits for it.
        task = asyncio.create_task(_run_tool(session, call_id, name, arguments))
        session.write_tasks.add(task)
        return await asyncio.shield(task)


class ArgumentValidator:
    """A validator in place of pydantic's, which parses and repairs the arguments of a call."""

    def __init__(self, definition: ToolDefinition) -> None:
        """Validate the calls of a tool with this definition."""
        self._schema: replies.Schema = definition.parameters_json_schema

    def validate_python(self, input: Any, **_: Any) -> dict[str, JSONValue]:  # noqa: A002, ANN401 - the validator's own signature
        """Return the arguments of a call that was sent as an object, or as JSON."""
        return replies.fit_arguments(replies.read_arguments(input), self._schema)

    validate_json = validate_python


async def _run_tool(session: ToolSession, call_id: str, name: str, arguments: Arguments) -> str:
    began = time.monotonic()
    # A cancelled turn abandons the thread of a tool that only reads; calls that may write run in a shielded task.
    answer: Answer = await anyio.to_thread.run_sync(
        _answer_call, session, name, arguments, abandon_on_cancel=True, limiter=session.threads
    )
    session.usage_rows.append(
        {
            "name": name,
            "success": answer.get("success") is not False,
            "summary": summarize_answer(answer),
            "duration_ms": round((time.monotonic() - began) * 1_000),
        }
    )
    await anyio.to_thread.run_sync(_record_writes, session, answer, limiter=session.threads)
    if name == FIND_TOOL:
        results = answer.get("results")
        if isinstance(results, list):
            # Tools that this session doesn't have aren't offered.
            offered: list[JSONValue] = [
                row for row in results if isinstance(row, dict) and row.get("name") in session.rows
            ]
            answer = {**answer, "results": offered, "total": len(offered)}
        session.listed_names |= {str(row["name"]) for row in objects_in(answer.get("results")) if "name" in row}
    return _return_answer(session, call_id, name, answer)


def _answer_call(session: ToolSession, name: str, arguments: Arguments) -> Answer:
    # The table's tools refuse halves of characters; what an agent keeps of a call has to be encodable.
    encodable = replies.join_surrogates_in_object(arguments)
    if name in session.own:
        try:
            return session.own[name].handle(encodable)
        except KnapError as error:
            return answers.as_json(error.as_dict())
    context = session.context
    fitted = {key: _normalize_spaces(context, key, one) for key, one in arguments.items()}
    for key, limit in session.argument_limits.get(name, {}).items():
        value = fitted.get(key, limit)
        fitted[key] = min(value, limit) if isinstance(value, int) else value
    answer = registry.invoke_or_error(session.rows[name], context, fitted)
    if session.on_answer is not None:
        session.on_answer(name, encodable, answer)
    return answer


def _normalize_spaces(context: Context, name: str, value: JSONValue) -> JSONValue:
    """Replace odd spaces in paths by plain ones, unless a file has exactly the given name."""
    if name not in _PATH_PARAMETERS:
        return value
    if isinstance(value, list):
        return [_normalize_spaces(context, name, one) for one in value]
    if not isinstance(value, str) or replies.plain_spaces(value) == value:
        return value
    try:
        _ = context.view.path(value)
    except KnapError:
        return replies.plain_spaces(value)
    return value


def _read_on(session: ToolSession, call_id: str, arguments: Arguments) -> str:
    offset = arguments.get("offset", 0)
    try:
        if not isinstance(offset, int):
            raise BadInput(f"offset is {str(offset)[:40]!r}", hint="give a whole number")  # noqa: TRY301 - returned to the model like other errors
        excerpt = session.results.read_on(str(arguments.get("tool_call_id", "")), offset)
    except (BadInput, NotFound) as error:
        return _return_answer(session, call_id, GET_CONTINUATION, answers.as_json(error.as_dict()))
    session.pending_events.append(_make_result(call_id, GET_CONTINUATION, {"success": True}, excerpt))
    return excerpt.text


def _ask_person(session: ToolSession, call_id: str, arguments: Arguments) -> str:
    question, options = read_question(arguments)
    try:
        check_question(question, is_first=session.question is None)
    except BadInput as error:
        return _return_answer(session, call_id, ASK_USER, answers.as_json(error.as_dict()))
    session.question = QuestionEvent(id=call_id, question=question, options=[*options])
    session.pending_events.append(session.question)
    return _QUESTION_ASKED


_LOOP_HANDLERS: Final[Mapping[str, Callable[[ToolSession, str, Arguments], str]]] = {
    GET_CONTINUATION: _read_on,
    ASK_USER: _ask_person,
}


def _return_answer(session: ToolSession, call_id: str, name: str, answer: dict[str, JSONValue]) -> str:
    answer = replies.join_surrogates_in_object(answer)
    session.answers[call_id] = answer
    excerpt = session.results.show(call_id, name, answer)
    session.pending_events.append(_make_result(call_id, name, answer, excerpt))
    return excerpt.text


def _make_result(call_id: str, name: str, answer: dict[str, JSONValue], shown: ResultExcerpt) -> ToolResult:
    return ToolResult(
        id=call_id,
        name=name,
        success=answer.get("success") is not False,
        summary=summarize_answer(answer),
        answer=answer,
        chars=shown.chars,
        truncated=shown.truncated,
    )


def _record_writes(session: ToolSession, answer: Mapping[str, JSONValue]) -> None:
    """Record the changes of a call, and emit the proposals that wait for a person."""
    status = answer.get("status")
    if status == "applied" and answer.get("change_id"):
        session.changes.append(str(answer["change_id"]))
    if status == "proposed" and answer.get("proposal_id"):
        new_proposals = [str(answer["proposal_id"])]
    else:
        # Those of the script that it ran, in this vault.
        rows = objects_in(answer.get("proposals"))
        new_proposals = [str(row["id"]) for row in rows if row.get("vault") == session.context.vault and "id" in row]
    for proposal in new_proposals:
        session.proposals.append(proposal)
        session.pending_events.append(ProposalEvent(proposal=proposals.show_proposal(session.context, proposal)))


def _resolve_call(session: ToolSession, arguments: Arguments) -> tuple[str, Arguments]:
    """Return the tool and the arguments that a ``call_tool`` call means; only tools of this session can be called."""
    name = str(arguments.get("name", ""))
    if name == CALL_TOOL:  # it can't call itself: no tool has the name that is returned
        return f"{CALL_TOOL}: {name}", {}
    if name not in session.rows:
        return name, {}
    schema = registry.parameter_schema(session.rows[name])
    return name, replies.fit_arguments(replies.read_arguments(arguments.get("arguments")), schema)

"""The HTTP parameters of a task, their ranges, and the schemas of its replies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from knapper.agents.pipeline import records, scopes
from knapper.app.presets import PresetOverrides, TaskOrder
from knapper.config.settings import SETTINGS
from knapper.errors import BadInput
from knapper.server.http import openapi
from knapper.server.http.binding import VAULT_PARAMETER, Parameter, RequestArguments

_STRING: Final[Mapping[str, Any]] = {"type": "string"}
_STRINGS: Final[Mapping[str, Any]] = {"type": "array", "items": _STRING}
_BOOLEAN: Final[Mapping[str, Any]] = {"type": "boolean"}
_INTEGER: Final[Mapping[str, Any]] = {"type": "integer"}
_OBJECTS: Final[Mapping[str, Any]] = {"type": "array", "items": {"type": "object"}}
_OBJECT: Final[Mapping[str, Any]] = {"type": "object"}
_RANGE_SCHEMA: Final[Mapping[str, Any]] = {"type": "array", "items": _INTEGER, "minItems": 2, "maxItems": 2}
_QUESTION_SCHEMA: Final[Mapping[str, Any]] = {
    "type": ["object", "null"],
    "description": "What the person is asked; the run goes on with `run_id` and `answer`.",
    "properties": {"question": _STRING, "options": {"type": "array"}},
}
_OUTCOME_PROPERTIES: Final[Mapping[str, Any]] = {
    "run_id": _STRING,
    "state": {"enum": ["complete", "asked", "cancelled"]},
    "answer": {"type": "string", "description": "Of the task; of the other agents where it wasn't to be done."},
    "pipeline": {**_OBJECT, "description": "What scout and web found, and tokens by agent."},
    "context": {**_OBJECT, "description": "The notes that the task was done with, as /ask/context shows them."},
    "proposed_edits": _OBJECTS,
    "edit_results": {**_OBJECT, "description": "How many edits could be made, and why others couldn't."},
    "proposals": {**_STRINGS, "description": "Ids of what waits for a person's word; see /proposals."},
    "waiting": {
        **_OBJECTS,
        "description": "The same, each with proposal_id, message, review_command and, from a server, review_url.",
    },
    "opened": {**_STRINGS, "description": "Notes to be opened for the person."},
    "citations": _OBJECTS,
    "removed": {**_OBJECTS, "description": "Citations that were dropped, each with the reason."},
    "question": _QUESTION_SCHEMA,
    "notices": _STRINGS,
    "usage": _OBJECT,
    "model": _STRING,
    "session_id": _STRING,
}
OUTCOME_CONTENT: Final = openapi.json_content(_OUTCOME_PROPERTIES)
STREAM_CONTENT: Final[Mapping[str, Any]] = openapi.stream_content(
    "`start` comes first, with run_id and task; then `progress`, `round` (of the scout), `selection`, `sources`, "
    "`context`, `navigate`, `notice`, `debug`, `text`, `tool_call`, `tool_result`, `proposal`, `question`, `usage` and "
    "`error`, as they happen; "
    "`outcome` comes last. A lost connection doesn't end the run: GET /ask/{run_id}/events goes on."
)
CANCEL_CONTENT: Final = openapi.json_content(
    {
        "run_id": _STRING,
        "cancelled": _BOOLEAN,
        "ended": _BOOLEAN,
        "outcome": {"type": ["object", "null"], "description": "What there is, where it has ended."},
    }
)
WAITING_CONTENT: Final = openapi.json_content(
    {
        "results": {
            "type": "array",
            "items": openapi.object_schema(
                {
                    "run_id": _STRING,
                    "task": _STRING,
                    "note": _STRING,
                    "question": _STRING,
                    "options": {"type": "array"},
                    "at": _STRING,
                    "client": {"type": "string", "description": "On whose behalf it runs."},
                    "session_id": {"type": "string", "description": "Empty for none, or for another client's."},
                }
            ),
        }
    }
)
CONTEXT_CONTENT: Final = openapi.json_content(
    {
        "notes": {
            "type": "array",
            "description": "What goes in, each with path, sources, why, tokens, and its text where that is asked for.",
            "items": {"type": "object", "required": ["path", "sources", "why", "tokens"]},
        },
        "removed": {
            "type": "array",
            "description": "What the limit leaves out, the first to go first; tokens are null where it wasn't read.",
            "items": {"type": "object", "required": ["path", "source", "why", "tokens"]},
        },
        "tokens": {"type": "integer", "description": "Of all that goes in, roughly."},
        "notices": _STRINGS,
        "cut": {"type": ["string", "null"], "description": "The note of which only the beginning goes in."},
        "limit": _INTEGER,
        "explored": {"type": "boolean", "description": "Whether the scout would choose more notes."},
    }
)
_SCOPE_PARAMETERS: Final = (
    Parameter(
        name="link_depth",
        doc="How many links from the note are followed, out and back.",
        kind="count",
        maximum=scopes.MAX_LINK_DEPTH,
    ),
    Parameter(name="include_same_folder", doc="Whether the notes of its folder go with it.", kind="flag"),
    Parameter(
        name="excluded_folders",
        doc="Folders whose notes are left out, and through which no link is followed.",
        kind="texts",
    ),
)
_RULES_PARAMETERS: Final = (
    Parameter(name="editable", doc="Which notes may be edited.", choices=scopes.EDITABLE_SCOPES),
    Parameter(name="can", doc="What edits may do.", kind="texts", choices=scopes.ABILITIES),
)
_TOGGLE_PARAMETERS: Final = (
    Parameter(name="scout", doc="Look for the notes first, in the whole vault.", kind="flag"),
    Parameter(name="web", doc="Search the web where the notes don't answer.", kind="flag"),
    Parameter(name="task", doc="Do the task, or only show what was found.", kind="flag"),
)
PRESET_PARAMETERS: Final = (
    Parameter(name="scope", doc="Which notes go with the open one.", kind="object", fields=_SCOPE_PARAMETERS),
    Parameter(name="rules", doc="Which notes may be edited, and how.", kind="object", fields=_RULES_PARAMETERS),
    Parameter(name="added", doc="Paths of notes that go with it.", kind="texts"),
    Parameter(name="toggles", doc="Which agents work.", kind="object", fields=_TOGGLE_PARAMETERS),
)
PRESET_SCHEMA: Final[Mapping[str, Any]] = openapi.object_schema(
    {"name": _STRING, "scope": _OBJECT, "rules": _OBJECT, "added": _STRINGS, "toggles": _OBJECT}
)
SWITCHES_CONTENT: Final = openapi.json_content(
    {"switches": {**_OBJECT, "description": "scout, web and task, as kept; PUT takes them so."}}
)
DEFAULTS_CONTENT: Final = openapi.json_content(
    {
        "choice": {**_OBJECT, "description": "What the configuration says, as POST /ask takes it."},
        "switches": {**_OBJECT, "description": "scout, web and task, as PUT /ask/switches kept them."},
        "ranges": {
            "type": "object",
            "description": "The lowest and the highest of each number.",
            "additionalProperties": _RANGE_SCHEMA,
        },
        "editable": _STRINGS,
        "can": {**_STRINGS, "description": "What edits of this client may do at all."},
        "model": {"type": "string", "description": "The model's name; empty where none can answer."},
        "web": {"type": "boolean", "description": "Whether the owner allows the web."},
        "problems": {
            "type": "object",
            "description": "Why there is no model, or no web: each as an error shows itself.",
        },
    }
)

_MAX_ANSWER_CHARS: Final = 20_000
_SETTINGS_BY_NAME: Final = {one.name: one for one in SETTINGS}


def _setting_range(name: str) -> tuple[int, int]:
    setting = _SETTINGS_BY_NAME[name]
    return setting.least, setting.most


NUMBER_RANGES: Final[Mapping[str, tuple[int, int]]] = {
    name: _setting_range(setting)
    for name, setting in {
        "link_depth": "agents.link_depth",
        "token_limit": "agents.token_limit",
        "chat_history_length": "agents.chat_history_length",
        "linked_notes": "agents.linked_notes",
        "rounds": "scout.rounds",
        "notes": "scout.notes",
        "keyword_limit": "scout.keyword_limit",
        "timeout_s": "scout.timeout_s",
        "snippet_limit": "web.max_results",
        "fetch_limit": "web.max_pages",
        "token_budget": "web.token_budget",
        "orchestrator_steps": "agents.orchestrator_steps",
        "orchestrator_tokens": "agents.orchestrator_tokens",
    }.items()
}
"""The lowest and the highest of each number: those of its setting."""


def _number_parameter(name: str, doc: str) -> Parameter:
    least, most = NUMBER_RANGES[name]
    return Parameter(name=name, doc=doc, kind="count", minimum=least, maximum=most)


SWITCH_PARAMETERS: Final = _TOGGLE_PARAMETERS
_LIMIT_PARAMETERS: Final = (
    _number_parameter("rounds", "How many rounds of looking the scout has."),
    _number_parameter("notes", "How many notes the scout may choose."),
    _number_parameter("linked_notes", "How many notes go with the open one for links alone."),
    _number_parameter("keyword_limit", "How many notes a search by words gives the scout."),
    Parameter(
        name="tools",
        doc="The scout's tools; a program takes some of the configured ones.",
        kind="texts",
        choices=scopes.OPTIONAL_SCOUT_TOOLS,
    ),
    Parameter(name="show_tags", doc="Whether the scout is shown all tags of the vault at the beginning.", kind="flag"),
    _number_parameter("timeout_s", "How long the scout may take, in seconds; a program may only lower it."),
    _number_parameter("snippet_limit", "How many results a search of the web gives; at most as many as configured."),
    _number_parameter("fetch_limit", "How many pages are read in full."),
    _number_parameter("token_budget", "How many tokens of pages are read."),
    Parameter(
        name="auto_search",
        doc="Search the web where the notes don't answer, or only say so; a program may only forbid it.",
        kind="flag",
    ),
    _number_parameter("orchestrator_steps", "How often agents gather before the task is done."),
    _number_parameter(
        "orchestrator_tokens",
        "How many tokens gathering may use; 0 for no limit; a program may only lower it.",
    ),
)
OVERRIDE_PARAMETERS: Final = (
    Parameter(
        name="note", doc="The note that it is about; without one, and with none added, the scout looks for notes."
    ),
    VAULT_PARAMETER,
    Parameter(name="preset", doc="A saved choice, by its name; what is said here counts more.", maximum=200),
    *PRESET_PARAMETERS,
    *(one for one in _TOGGLE_PARAMETERS if one.name != "task"),
    *_SCOPE_PARAMETERS,
    *_RULES_PARAMETERS,
    _number_parameter("token_limit", "Tokens of notes at most."),
    _number_parameter("chat_history_length", "How many earlier messages of the session the agents are told of."),
    Parameter(name="orchestrate", doc="Let a model choose which agents work, and in which order.", kind="flag"),
    *_LIMIT_PARAMETERS,
)
"""Of these, members of `toggles`, `scope` and `rules` may also stand beside them, but for `task`, which is the text."""
TASK_PARAMETERS: Final = (
    Parameter(name="task", doc="What is to be done; needed but where a run goes on.", maximum=200_000),
    Parameter(
        name="session_id", doc="The session that is gone on with, and keeps the turn; none where it is left out."
    ),
    Parameter(name="model", doc="The model that works; one of the configuration, unless a person asks.", maximum=500),
    Parameter(name="run_id", doc="A run that asked the person something; it goes on as it was begun.", maximum=200),
    Parameter(name="answer", doc="What the person says to that; only with run_id.", maximum=_MAX_ANSWER_CHARS),
    Parameter(
        name="debug",
        doc="Tell the models' prompts and replies: as events `debug`, and in the answer's `debug`. Only for persons.",
        kind="flag",
    ),
    *OVERRIDE_PARAMETERS,
)
CONTEXT_PARAMETERS: Final = (
    Parameter(name="texts", doc="Whether the notes' texts come along, to be copied.", kind="flag"),
    *OVERRIDE_PARAMETERS,
)


def read_task_order(given: RequestArguments) -> TaskOrder:
    """Read a task from a request's arguments.

    Raises:
        BadInput: Something is said twice, and differently (code ``bad_arguments``).
    """
    return TaskOrder(
        task=given.text("task"),
        note=given.text("note"),
        session_id=given.text("session_id"),
        preset=given.text("preset"),
        choice=_read_choice(given),
        token_limit=given.integer("token_limit"),
        chat_history_length=given.integer("chat_history_length"),
        orchestrate=given.flag("orchestrate"),
        debug=given.flag("debug") is True,
        limits=records.read_task_limits({one.name: given.values.get(one.name) for one in _LIMIT_PARAMETERS}),
    )


def read_switches(given: RequestArguments) -> PresetOverrides:
    """Read which agents are to be kept switched on; None for those that aren't named."""
    return PresetOverrides(scout=given.flag("scout"), web=given.flag("web"), task=given.flag("task"))


def _read_choice(given: RequestArguments) -> PresetOverrides:
    toggles = _join_members(given, "toggles", _TOGGLE_PARAMETERS)
    scope = _join_members(given, "scope", _SCOPE_PARAMETERS)
    rules = _join_members(given, "rules", _RULES_PARAMETERS)
    return PresetOverrides(
        scout=toggles.flag("scout"),
        web=toggles.flag("web"),
        task=toggles.flag("task"),
        link_depth=scope.integer("link_depth"),
        same_folder=scope.flag("include_same_folder"),
        excluded_folders=scope.texts("excluded_folders"),
        editable=rules.text("editable") or None,
        can=rules.texts("can"),
        added=given.texts("added") or (),
    )


def _join_members(given: RequestArguments, part: str, members: Sequence[Parameter]) -> RequestArguments:
    """Return the members of an object, with those that stand beside it.

    Raises:
        BadInput: One is said twice, and differently.
    """
    inner = given.object(part)
    values = dict(inner.values)
    for member in members:
        beside = None if member.name == "task" else given.values.get(member.name)  # which is the task's text there
        if beside is None:
            continue
        if values.get(member.name) not in (None, beside):  # a list can't be in a set
            raise BadInput(
                f"'{member.name}' is said twice, and differently",
                hint=f"say it in '{part}', or beside it",
                code="bad_arguments",
            )
        values[member.name] = beside
    return RequestArguments(values=values)


def check_task_or_answer(given: RequestArguments) -> None:
    """Check that a request has a task to start, or an answer to resume a run with.

    Raises:
        BadInput: Neither is complete (code ``bad_arguments``).
    """
    run, answer = given.text("run_id"), given.text("answer")
    if run and not answer.strip():
        raise BadInput("'answer' is needed", hint="say what the person answers to the run", code="bad_arguments")
    if answer and not run:
        raise BadInput("'run_id' is needed", hint="name the run whose question is answered", code="bad_arguments")
    if not run and not given.text("task").strip():
        raise BadInput("'task' is needed", hint="say what is to be done", code="bad_arguments")

"""The HTTP parameters of tasks and runs, their ranges, and the schemas of their replies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from knapper.agents.pipeline import records, scopes
from knapper.app.clients import PresetOverrides, TaskOrder
from knapper.config.editing import SETTINGS_BY_NAME
from knapper.errors import BadInput
from knapper.server.http import openapi
from knapper.server.http.binding import VAULT_PARAMETER, Parameter, RequestArguments, count_parameter
from knapper.server.http.models import SPENT_SCHEMA
from knapper.server.http.openapi import (
    BOOLEAN,
    INTEGER,
    STRING,
    STRINGS,
    json_content,
    object_schema,
    page_content,
    stream_content,
)
from knapper.tools.context import SCRIPT_PROFILES

_OBJECT: Final[Mapping[str, Any]] = {"type": "object"}
_RANGE_SCHEMA: Final[Mapping[str, Any]] = {"type": "array", "items": INTEGER, "minItems": 2, "maxItems": 2}
OUTCOME_CONTENT: Final = openapi.type_content(
    records.PipelineOutcome,
    state={"enum": ["complete", "asked", "cancelled"]},  # all others come with an error
    question={
        "type": ["object", "null"],
        "description": "What the person is asked; `run_id` and `answer` continue the run.",
        "properties": {"question": STRING, "options": {"type": "array"}},
    },
)
TASK_STREAM_CONTENT: Final[Mapping[str, Any]] = openapi.stream_content(
    "`start` comes first, with run_id and task; then `progress`, `round` (of the scout), `selection`, `sources`, "
    "`context`, `navigate`, `notice`, `debug`, `text`, `tool_call`, `tool_result`, `proposal`, `question`, `usage` and "
    "`error`, as they happen; "
    "`outcome` comes last. A lost connection doesn't end the run: GET /ask/{run_id}/events continues it."
)
CANCEL_TASK_CONTENT: Final = openapi.json_content(
    {
        "run_id": STRING,
        "cancelled": BOOLEAN,
        "ended": BOOLEAN,
        "outcome": {"type": ["object", "null"], "description": "What there is, where it has ended."},
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
        "notices": STRINGS,
        "cut": {"type": ["string", "null"], "description": "The note of which only the beginning goes in."},
        "limit": INTEGER,
        "explored": {"type": "boolean", "description": "Whether the scout would choose more notes."},
    }
)


def _number_parameter(setting_name: str, doc: str, name: str = "") -> Parameter:
    """Return the parameter that stands in for a setting, and has its range; also its name, where none is given."""
    setting = SETTINGS_BY_NAME[setting_name]
    return count_parameter(name or setting_name.rpartition(".")[2], doc, setting.least, setting.most)


_SCOPE_PARAMETERS: Final = (
    _number_parameter("agents.link_depth", "How many links from the note are followed, out and back."),
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
    {"name": STRING, "scope": _OBJECT, "rules": _OBJECT, "added": STRINGS, "toggles": _OBJECT}
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
        "editable": STRINGS,
        "can": {**STRINGS, "description": "What edits of this client may do at all."},
        "model": {"type": "string", "description": "The model's name; empty where none can answer."},
        "web": {"type": "boolean", "description": "Whether the owner allows the web."},
        "problems": {
            "type": "object",
            "description": "Why there is no model, or no web: each as an error shows itself.",
        },
    }
)

_MAX_ANSWER_CHARS: Final = 20_000
SWITCH_PARAMETERS: Final = _TOGGLE_PARAMETERS
_LIMIT_PARAMETERS: Final = (
    _number_parameter("scout.rounds", "How many rounds of looking the scout has."),
    _number_parameter("scout.notes", "How many notes the scout may choose."),
    _number_parameter("agents.linked_notes", "How many notes go with the open one for links alone."),
    _number_parameter("agents.semantic_notes", "How many notes near the open one in meaning go with it."),
    _number_parameter("agents.semantic_similarity", "How near those are at least, in percent of the cosine."),
    _number_parameter("scout.keyword_limit", "How many notes a search by words gives the scout."),
    Parameter(
        name="tools",
        doc="The scout's tools; a program takes some of the configured ones.",
        kind="texts",
        choices=scopes.OPTIONAL_SCOUT_TOOLS,
    ),
    Parameter(name="show_tags", doc="Whether the scout is shown all tags of the vault at the beginning.", kind="flag"),
    _number_parameter("scout.timeout_s", "How long the scout may take, in seconds; a program may only lower it."),
    _number_parameter(
        "web.max_results", "How many results a search of the web gives; at most as many as configured.", "snippet_limit"
    ),
    _number_parameter("web.max_pages", "How many pages are read in full.", "fetch_limit"),
    _number_parameter("web.token_budget", "How many tokens of pages are read."),
    Parameter(
        name="auto_search",
        doc="Search the web where the notes don't answer, or only say so; a program may only forbid it.",
        kind="flag",
    ),
    _number_parameter("agents.orchestrator_steps", "How often agents gather before the task is done."),
    _number_parameter(
        "agents.orchestrator_tokens", "How many tokens gathering may use; 0 for no limit; a program may only lower it."
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
    _number_parameter("agents.token_limit", "Tokens of notes at most."),
    _number_parameter("agents.chat_history_length", "How many earlier messages of the session the agents are told of."),
    Parameter(name="orchestrate", doc="Let a model choose which agents work, and in which order.", kind="flag"),
    *_LIMIT_PARAMETERS,
)
"""Of these, members of `toggles`, `scope` and `rules` may also stand beside them, but for `task`, which is the text."""
NUMBER_RANGES: Final = {one.name: (one.minimum, one.maximum) for one in OVERRIDE_PARAMETERS if one.kind == "count"}
"""The lowest and the highest of each number."""
TASK_PARAMETERS: Final = (
    Parameter(name="task", doc="What is to be done; needed unless a run is continued.", maximum=200_000),
    Parameter(name="session_id", doc="The session to continue, which keeps the turn; none where it is left out."),
    Parameter(name="model", doc="The model that works; one of the configuration, unless a person asks.", maximum=500),
    Parameter(name="run_id", doc="A run that asked the person something; it continues as it was started.", maximum=200),
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
    toggles = _join_members(given, "toggles", _TOGGLE_PARAMETERS)
    scope = _join_members(given, "scope", _SCOPE_PARAMETERS)
    rules = _join_members(given, "rules", _RULES_PARAMETERS)
    return TaskOrder(
        task=given.text("task"),
        note=given.text("note"),
        session_id=given.text("session_id"),
        preset=given.text("preset"),
        choice=PresetOverrides(
            scout=toggles.flag("scout"),
            web=toggles.flag("web"),
            task=toggles.flag("task"),
            link_depth=scope.integer("link_depth"),
            same_folder=scope.flag("include_same_folder"),
            excluded_folders=scope.texts("excluded_folders"),
            editable=rules.text("editable") or None,
            can=rules.texts("can"),
            added=given.texts("added") or (),
        ),
        token_limit=given.integer("token_limit"),
        chat_history_length=given.integer("chat_history_length"),
        orchestrate=given.flag("orchestrate"),
        debug=given.flag("debug") is True,
        limits=records.read_task_limits({one.name: given.values.get(one.name) for one in _LIMIT_PARAMETERS}),
    )


def read_switches(given: RequestArguments) -> PresetOverrides:
    """Read which agents are to be kept switched on; None for those that aren't named."""
    return PresetOverrides(scout=given.flag("scout"), web=given.flag("web"), task=given.flag("task"))


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


_NUMBER: Final[Mapping[str, Any]] = {"type": "number"}


def _list_of(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": object_schema(properties)}


def _of_runs(name: str) -> Callable[[], Any]:
    """Return a function that imports a type of runs, for which a server's start needn't wait."""

    def load() -> Any:  # noqa: ANN401 - a type
        from knapper.agents.runs import model  # noqa: PLC0415 - only the document needs it

        return getattr(model, name)

    return load


LIMIT_PARAMETERS: Final = (
    Parameter(name="depth", doc="Levels of subtasks at most.", kind="count", maximum=8),
    Parameter(name="nodes", doc="Nodes at most.", kind="count", minimum=1, maximum=500),
    Parameter(name="minutes", doc="How long it may take, from now.", kind="number", minimum=0.01, maximum=1_440),
    Parameter(name="tokens", doc="Tokens at most; 0 for no limit.", kind="count", maximum=10**9),
    Parameter(name="cents", doc="What it may cost; 0 for no limit.", kind="count", maximum=10**6),
)
"""Whoever isn't a person may only lower what the owner configured."""
ANSWER_PARAMETER: Final = Parameter(
    name="answer", doc="`go on`, `skip`, notes by their paths, or where to look.", required=True, maximum=20_000
)
EXPORT_TO_PARAMETER: Final = Parameter(name="to", doc="A note, by its ending .md; otherwise a folder.", required=True)
NEW_RUN_PARAMETERS: Final = (
    Parameter(name="task", doc="What is to be done.", required=True, maximum=50_000),
    Parameter(name="strategy", doc="How it is split and done; see /runs/options.", maximum=40),
    Parameter(name="code_mode", doc="Whether scripts retrieve; otherwise search does.", kind="flag"),
    Parameter(
        name="profile",
        doc="What else scripts may read, where the owner configured any.",
        choices=SCRIPT_PROFILES,
    ),
    Parameter(name="fresh", doc="Take nothing from the cache.", kind="flag"),
    Parameter(name="model", doc="Another model than the configured one; only a person may name any.", maximum=200),
    Parameter(name="also", doc="Other vaults to look through, by name.", kind="texts", maximum=200),
    *LIMIT_PARAMETERS,
    VAULT_PARAMETER,
)
RESUME_PARAMETERS: Final = (
    Parameter(
        name="replay",
        doc="`stale` does again what read notes that have changed, a node's id that and all below.",
        maximum=200,
    ),
    *LIMIT_PARAMETERS,
    VAULT_PARAMETER,
)

_SOURCES: Final[Mapping[str, Any]] = {"type": "array", "items": _of_runs("SourceRef")}
_CITATIONS: Final[Mapping[str, Any]] = _list_of(
    {
        "vault": STRING,
        "path": STRING,
        "heading": STRING,
        "start_line": INTEGER,
        "end_line": INTEGER,
        "hash": STRING,
    }
)
_REMOVED: Final[Mapping[str, Any]] = {
    **_list_of({"citation": STRING, "reason": STRING}),
    "description": "Citations that were dropped, each with the reason.",
}
_NODE_PROPERTIES: Final[Mapping[str, Any]] = {
    "id": {"type": "string", "description": "`root`, `1`, `1.2`."},
    "parent": STRING,
    "title": STRING,
    "depth": INTEGER,
    "state": {"enum": ["pending", "running", "done", "partial", "failed", "blocked", "cut"]},
    "reason": {"type": "string", "description": "Why it has no answer, or a part of one."},
    "cached": BOOLEAN,
    "children": STRINGS,
    "score": {"type": ["number", "null"], "description": "Of what was found, 0 to 1; null before."},
    "tier": {"type": "string", "description": "Empty where the first attempt did; A, B, C or direct otherwise."},
    "citation_count": INTEGER,
    "tokens": INTEGER,
    "cost_usd": {"type": ["number", "null"], "description": "Its own, without its children's; null where unknown."},
    "spans": {
        **_list_of({"doing": STRING, "started": STRING, "ended": {"type": ["string", "null"]}}),
        "description": "When it was at what, in order; `ended` is null while it lasts.",
    },
}
_STATES: Final = ("pending", "running", "complete", "partial", "failed", "cancelled", "interrupted")
_RUN_PROPERTIES: Final[Mapping[str, Any]] = {
    "id": STRING,
    "task": STRING,
    "strategy": STRING,
    "code_mode": BOOLEAN,
    "model": STRING,
    "client": {"type": "string", "description": "On whose behalf it is."},
    "also": {**STRINGS, "description": "Other vaults that it looks through."},
    "state": {"enum": [*_STATES]},
    "reasons": {**STRINGS, "description": "Why it isn't complete."},
    "limits": _of_runs("RunLimits"),
    "created": STRING,
    "updated": STRING,
    "is_live": {"type": "boolean", "description": "Whether somebody carries it out right now."},
}
RUN_CONTENT: Final = json_content(_RUN_PROPERTIES)
_OPEN_QUESTIONS: Final[Mapping[str, Any]] = {
    **INTEGER,
    "description": "Questions to a person that nobody has answered.",
}
RUNS_CONTENT: Final = page_content("results", object_schema({**_RUN_PROPERTIES, "asks": _OPEN_QUESTIONS}))
RUN_DETAIL_CONTENT: Final = json_content(
    {
        **_RUN_PROPERTIES,
        "answer": STRING,
        "citations": _CITATIONS,
        "removed": _REMOVED,
        "usage": SPENT_SCHEMA,
        "cached": INTEGER,
        "node_count": INTEGER,
        "nodes": {**_list_of(_NODE_PROPERTIES), "description": "In brief, parents before their parts."},
        "checkpoints": {
            "type": "array",
            "items": _of_runs("CheckpointEvent"),
            "description": "What it asks a person, and nobody has answered.",
        },
    }
)
NODE_CONTENT: Final = json_content(
    {
        **_NODE_PROPERTIES,
        "task": STRING,
        "why": {"type": "string", "description": "Why it is split, or isn't."},
        "hard": {**STRINGS, "description": "Nodes whose answers it needs."},
        "soft": {**STRINGS, "description": "Nodes whose answers help it."},
        "impact": {"enum": ["none", "security", "data_model", "architecture", "contract"]},
        "high_impact": BOOLEAN,
        "retrieval": {"anyOf": [_of_runs("RetrievedContext"), {"type": "null"}]},
        "answer": STRING,
        "citations": _CITATIONS,
        "removed": _REMOVED,
        "sources": _SOURCES,
        "checkpoint": {"anyOf": [_of_runs("NodeQuestion"), {"type": "null"}]},
        "usage": SPENT_SCHEMA,
        "notes": STRINGS,
    }
)
USED_NOTES_CONTENT: Final = json_content(
    {
        "id": STRING,
        "notes": {"type": "array", "items": _of_runs("UsedNote"), "description": "Each once; cited ones first."},
    }
)
STALE_CONTENT: Final = json_content(
    {
        "id": STRING,
        "stale": {
            "type": "object",
            "additionalProperties": STRINGS,
            "description": "By the nodes' ids, the notes that have changed since.",
        },
    }
)
EXPORT_CONTENT: Final = json_content({"status": {"enum": ["applied", "proposed"]}})
ANSWER_CONTENT: Final = json_content({"id": STRING, "run": STRING, "node": STRING, "answer": {"type": "object"}})
CANCEL_RUN_CONTENT: Final = json_content(
    {"id": STRING, "cancelled": BOOLEAN, "ended": BOOLEAN, "state": {"enum": [*_STATES]}}
)
DELETE_CONTENT: Final = json_content({"deleted": STRING})
OPTIONS_CONTENT: Final = json_content(
    {
        "strategies": _list_of({"name": STRING, "summary": STRING, "own": BOOLEAN}),
        "strategy": {"type": "string", "description": "The one that is taken where none is said."},
        "code_mode": BOOLEAN,
        "profiles": STRINGS,
        "limits": {"type": "object", "additionalProperties": {"type": "number"}, "description": "What is usual."},
        "ranges": {
            "type": "object",
            "additionalProperties": object_schema({"least": {"type": "number"}, "most": {"type": "number"}}),
        },
        "model": {"type": ["string", "null"], "description": "The configured model; null where there is none."},
        "model_hint": STRING,
        "sandbox_ready": {
            "type": ["boolean", "null"],
            "description": "False where scripts have to be prepared first; null where they can't be run here.",
        },
        "sandbox_hint": STRING,
    }
)
RUN_STREAM_CONTENT: Final = stream_content(
    "`start` comes first, with run_id and task; then `run_started`, `node`, `checkpoint`, `notice`, `usage` and "
    "`error`, as they happen; `run_done` comes last, with the answer."
)

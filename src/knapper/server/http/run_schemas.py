"""Parameters and answers of the routes of runs, as the OpenAPI document shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from knapper.server.http.binding import VAULT_PARAMETER, Parameter
from knapper.server.http.openapi import json_content, object_schema, page_content, stream_content

if TYPE_CHECKING:
    from collections.abc import Mapping

_STRING: Final[Mapping[str, Any]] = {"type": "string"}
_INTEGER: Final[Mapping[str, Any]] = {"type": "integer"}
_BOOLEAN: Final[Mapping[str, Any]] = {"type": "boolean"}
_NUMBER: Final[Mapping[str, Any]] = {"type": "number"}
_STRINGS: Final[Mapping[str, Any]] = {"type": "array", "items": _STRING}


def _list_of(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": object_schema(properties)}


TASK_PARAMETER: Final = Parameter(name="task", doc="What is to be done.", required=True, maximum=50_000)
STRATEGY_PARAMETER: Final = Parameter(name="strategy", doc="How it is split and done; see /runs/options.", maximum=40)
CODE_MODE_PARAMETER: Final = Parameter(
    name="code_mode", doc="Whether scripts retrieve; otherwise search does.", kind="flag"
)
PROFILE_PARAMETER: Final = Parameter(
    name="profile",
    doc="What else scripts may read, where the owner configured any.",
    choices=("strict", "local", "extended"),
)
FRESH_PARAMETER: Final = Parameter(name="fresh", doc="Take nothing from the cache.", kind="flag")
MODEL_PARAMETER: Final = Parameter(
    name="model", doc="Another model than the configured one; only a person may name any.", maximum=200
)
ALSO_PARAMETER: Final = Parameter(name="also", doc="Other vaults to look through, by name.", kind="texts", maximum=200)
LIMIT_PARAMETERS: Final = (
    Parameter(name="depth", doc="Levels of subtasks at most.", kind="count", maximum=8),
    Parameter(name="nodes", doc="Nodes at most.", kind="count", minimum=1, maximum=500),
    Parameter(name="minutes", doc="How long it may take, from now.", kind="number", minimum=0.01, maximum=1_440),
    Parameter(name="tokens", doc="Tokens at most; 0 for no limit.", kind="count", maximum=10**9),
    Parameter(name="cents", doc="What it may cost; 0 for no limit.", kind="count", maximum=10**6),
)
"""Whoever isn't a person may only lower what the owner configured."""
REPLAY_PARAMETER: Final = Parameter(
    name="replay",
    doc="`stale` does again what read notes that have changed, a node's id that and all below.",
    maximum=200,
)
ANSWER_PARAMETER: Final = Parameter(
    name="answer", doc="`go on`, `skip`, notes by their paths, or where to look.", required=True, maximum=20_000
)
EXPORT_TO_PARAMETER: Final = Parameter(name="to", doc="A note, by its ending .md; otherwise a folder.", required=True)
PAGE_LIMIT_PARAMETER: Final = Parameter(
    name="limit", doc="How many at most; 50 where it is left out.", kind="count", maximum=500
)
PAGE_OFFSET_PARAMETER: Final = Parameter(name="offset", doc="How many are passed over.", kind="count", maximum=10**9)
NEW_RUN_PARAMETERS: Final = (
    TASK_PARAMETER,
    STRATEGY_PARAMETER,
    CODE_MODE_PARAMETER,
    PROFILE_PARAMETER,
    FRESH_PARAMETER,
    MODEL_PARAMETER,
    ALSO_PARAMETER,
    *LIMIT_PARAMETERS,
    VAULT_PARAMETER,
)
RESUME_PARAMETERS: Final = (REPLAY_PARAMETER, *LIMIT_PARAMETERS, VAULT_PARAMETER)
PAGE_PARAMETERS: Final = (PAGE_LIMIT_PARAMETER, PAGE_OFFSET_PARAMETER, VAULT_PARAMETER)

_LIMITS: Final[Mapping[str, Any]] = object_schema(
    {
        "depth": _INTEGER,
        "nodes": _INTEGER,
        "seconds": _NUMBER,
        "tokens": _INTEGER,
        "cents": _INTEGER,
        "parallel": _INTEGER,
    }
)
_SPEND: Final[Mapping[str, Any]] = object_schema(
    {
        "requests": _INTEGER,
        "input_tokens": _INTEGER,
        "output_tokens": _INTEGER,
        "total_tokens": _INTEGER,
        "cost_usd": {"type": ["number", "null"], "description": "Null where no price is known."},
    }
)
_SOURCES: Final[Mapping[str, Any]] = _list_of(
    {"vault": _STRING, "path": _STRING, "start_line": _INTEGER, "end_line": _INTEGER, "hash": _STRING}
)
_CITATIONS: Final[Mapping[str, Any]] = _list_of(
    {
        "vault": _STRING,
        "path": _STRING,
        "heading": _STRING,
        "start_line": _INTEGER,
        "end_line": _INTEGER,
        "hash": _STRING,
    }
)
_REMOVED: Final[Mapping[str, Any]] = {
    **_list_of({"citation": _STRING, "reason": _STRING}),
    "description": "Citations that were dropped, each with the reason.",
}
_CHECKPOINTS: Final[Mapping[str, Any]] = {
    **_list_of(
        {
            "node_id": _STRING,
            "id": _STRING,
            "question": _STRING,
            "options": _STRINGS,
            "answer": _STRING,
            "unattended": _BOOLEAN,
        }
    ),
    "description": "What it asks a person, and nobody has answered.",
}
_NODE_PROPERTIES: Final[Mapping[str, Any]] = {
    "id": {"type": "string", "description": "`root`, `1`, `1.2`."},
    "parent": _STRING,
    "title": _STRING,
    "depth": _INTEGER,
    "state": {"enum": ["pending", "running", "done", "partial", "failed", "blocked", "cut"]},
    "reason": {"type": "string", "description": "Why it has no answer, or a part of one."},
    "cached": _BOOLEAN,
    "children": _STRINGS,
    "score": {"type": ["number", "null"], "description": "Of what was found, 0 to 1; null before."},
    "tier": {"type": "string", "description": "Empty where the first attempt did; A, B, C or direct otherwise."},
    "citation_count": _INTEGER,
    "tokens": _INTEGER,
    "cost_usd": {"type": ["number", "null"], "description": "Its own, without its children's; null where unknown."},
    "spans": {
        **_list_of({"doing": _STRING, "started": _STRING, "ended": {"type": ["string", "null"]}}),
        "description": "When it was at what, in order; `ended` is null while it lasts.",
    },
}
_ATTEMPT_NOTE: Final = "Each script with its outcome: step, kind, error, score, calls, wall_s, usage, script."
_RETRIEVAL: Final[Mapping[str, Any]] = object_schema(
    {
        "score": _NUMBER,
        "parts": {"type": "object", "additionalProperties": _NUMBER},
        "confidence": _NUMBER,
        "tier": _STRING,
        "script": _STRING,
        "attempts": {
            "type": "array",
            "items": {"type": "object", "additionalProperties": True},
            "description": _ATTEMPT_NOTE,
        },
        "sources": _SOURCES,
        "context_chars": _INTEGER,
        "notes": _STRINGS,
    }
)
_QUESTION: Final[Mapping[str, Any]] = object_schema(
    {"question": _STRING, "options": _STRINGS, "answer": _STRING, "unattended": _BOOLEAN}
)

_STATES: Final = ("pending", "running", "complete", "partial", "failed", "cancelled", "interrupted")
_RUN_PROPERTIES: Final[Mapping[str, Any]] = {
    "id": _STRING,
    "task": _STRING,
    "strategy": _STRING,
    "code_mode": _BOOLEAN,
    "model": _STRING,
    "client": {"type": "string", "description": "On whose behalf it is."},
    "also": {**_STRINGS, "description": "Other vaults that it looks through."},
    "state": {"enum": [*_STATES]},
    "reasons": {**_STRINGS, "description": "Why it isn't complete."},
    "limits": _LIMITS,
    "created": _STRING,
    "updated": _STRING,
    "is_live": {"type": "boolean", "description": "Whether somebody carries it out right now."},
}
RUN_CONTENT: Final = json_content(_RUN_PROPERTIES)
_OPEN_QUESTIONS: Final[Mapping[str, Any]] = {
    **_INTEGER,
    "description": "Questions to a person that nobody has answered.",
}
RUNS_CONTENT: Final = page_content("results", object_schema({**_RUN_PROPERTIES, "asks": _OPEN_QUESTIONS}))
RUN_DETAIL_CONTENT: Final = json_content(
    {
        **_RUN_PROPERTIES,
        "answer": _STRING,
        "citations": _CITATIONS,
        "removed": _REMOVED,
        "usage": _SPEND,
        "cached": _INTEGER,
        "node_count": _INTEGER,
        "nodes": {**_list_of(_NODE_PROPERTIES), "description": "In brief, parents before their parts."},
        "checkpoints": _CHECKPOINTS,
    }
)
NODE_CONTENT: Final = json_content(
    {
        **_NODE_PROPERTIES,
        "task": _STRING,
        "why": {"type": "string", "description": "Why it is split, or isn't."},
        "hard": {**_STRINGS, "description": "Nodes whose answers it needs."},
        "soft": {**_STRINGS, "description": "Nodes whose answers help it."},
        "impact": {"enum": ["none", "security", "data_model", "architecture", "contract"]},
        "high_impact": _BOOLEAN,
        "retrieval": {"anyOf": [_RETRIEVAL, {"type": "null"}]},
        "answer": _STRING,
        "citations": _CITATIONS,
        "removed": _REMOVED,
        "sources": _SOURCES,
        "checkpoint": {"anyOf": [_QUESTION, {"type": "null"}]},
        "usage": _SPEND,
        "notes": _STRINGS,
    }
)
STALE_CONTENT: Final = json_content(
    {
        "id": _STRING,
        "stale": {
            "type": "object",
            "additionalProperties": _STRINGS,
            "description": "By the nodes' ids, the notes that have changed since.",
        },
    }
)
EXPORT_CONTENT: Final = json_content({"status": {"enum": ["applied", "proposed"]}})
ANSWER_CONTENT: Final = json_content({"id": _STRING, "run": _STRING, "node": _STRING, "answer": {"type": "object"}})
CANCEL_CONTENT: Final = json_content(
    {"id": _STRING, "cancelled": _BOOLEAN, "ended": _BOOLEAN, "state": {"enum": [*_STATES]}}
)
DELETE_CONTENT: Final = json_content({"deleted": _STRING})
OPTIONS_CONTENT: Final = json_content(
    {
        "strategies": _list_of({"name": _STRING, "summary": _STRING, "own": _BOOLEAN}),
        "strategy": {"type": "string", "description": "The one that is taken where none is said."},
        "code_mode": _BOOLEAN,
        "profiles": _STRINGS,
        "limits": {"type": "object", "additionalProperties": {"type": "number"}, "description": "What is usual."},
        "ranges": {
            "type": "object",
            "additionalProperties": object_schema({"least": {"type": "number"}, "most": {"type": "number"}}),
        },
        "model": {"type": ["string", "null"], "description": "The configured model; null where there is none."},
        "model_hint": _STRING,
        "sandbox_ready": {
            "type": ["boolean", "null"],
            "description": "False where scripts have to be prepared first; null where they can't be run here.",
        },
        "sandbox_hint": _STRING,
    }
)
STREAM_CONTENT: Final = stream_content(
    "`start` comes first, with run_id and task; then `run_started`, `node`, `checkpoint`, `usage` and `error`, as they "
    "happen; `run_done` comes last, with the answer."
)

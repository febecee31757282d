"""Describe in the OpenAPI document what routes of tasks and presets give."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from knapper.agents.pipeline import scopes
from knapper.server.http import operations
from knapper.server.http.arguments import Take

_TEXT: Final[Mapping[str, Any]] = {"type": "string"}
_TEXTS: Final[Mapping[str, Any]] = {"type": "array", "items": _TEXT}
_FLAG: Final[Mapping[str, Any]] = {"type": "boolean"}
_COUNT: Final[Mapping[str, Any]] = {"type": "integer"}
_ROWS: Final[Mapping[str, Any]] = {"type": "array", "items": {"type": "object"}}
_OBJECT: Final[Mapping[str, Any]] = {"type": "object"}
_RANGE: Final[Mapping[str, Any]] = {"type": "array", "items": _COUNT, "minItems": 2, "maxItems": 2}
_QUESTION: Final[Mapping[str, Any]] = {
    "type": ["object", "null"],
    "description": "What the person is asked; the run goes on with `run_id` and `answer`.",
    "properties": {"question": _TEXT, "options": {"type": "array"}},
}
_OUTCOME: Final[Mapping[str, Any]] = {
    "run_id": _TEXT,
    "state": {"enum": ["complete", "asked", "cancelled"]},
    "answer": {"type": "string", "description": "Of the task; of the other agents where it wasn't to be done."},
    "pipeline": {**_OBJECT, "description": "What scout and web found, and tokens by agent."},
    "context": {**_OBJECT, "description": "The notes that the task was done with, as /ask/context shows them."},
    "proposed_edits": _ROWS,
    "edit_results": {**_OBJECT, "description": "How many edits could be made, and why others couldn't."},
    "proposals": {**_TEXTS, "description": "Ids of what waits for a person's word; see /proposals."},
    "opened": {**_TEXTS, "description": "Notes to be opened for the person."},
    "citations": _ROWS,
    "removed": {**_ROWS, "description": "Citations that were dropped, each with the reason."},
    "question": _QUESTION,
    "notices": _TEXTS,
    "usage": _OBJECT,
    "model": _TEXT,
    "session_id": _TEXT,
}
WHOLE: Final = operations.answer(_OUTCOME)
STREAM: Final[Mapping[str, Any]] = operations.streamed(
    "`start` comes first, with run_id and task; then `progress`, `selection`, `sources`, `context`, `navigate`, "
    "`notice`, `text`, `tool_call`, `tool_result`, `proposal`, `question`, `usage` and `error`, as they happen; "
    "`outcome` comes last. A lost connection doesn't end the run: GET /ask/{run_id}/events goes on."
)
CANCELLED: Final = operations.answer(
    {
        "run_id": _TEXT,
        "cancelled": _FLAG,
        "ended": _FLAG,
        "outcome": {"type": ["object", "null"], "description": "What there is, where it has ended."},
    }
)
WAITING: Final = operations.answer(
    {
        "results": {
            "type": "array",
            "items": operations.shape(
                {
                    "run_id": _TEXT,
                    "task": _TEXT,
                    "note": _TEXT,
                    "question": _TEXT,
                    "options": {"type": "array"},
                    "at": _TEXT,
                    "client": {"type": "string", "description": "On whose behalf it runs."},
                    "session_id": {"type": "string", "description": "Empty for none, or for another client's."},
                }
            ),
        }
    }
)
CONTEXT: Final = operations.answer(
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
        "notices": _TEXTS,
        "cut": {"type": ["string", "null"], "description": "The note of which only the beginning goes in."},
        "limit": _COUNT,
        "explored": {"type": "boolean", "description": "Whether the scout would choose more notes."},
    }
)
_SCOPE: Final = (
    Take(name="link_depth", doc="How many links are followed.", kind="count", most=scopes.MAX_LINK_DEPTH),
    Take(name="include_same_folder", doc="Whether the notes of its folder go with it.", kind="flag"),
    Take(name="excluded_folders", doc="Folders whose notes are left out.", kind="texts"),
)
_RULES: Final = (
    Take(name="editable", doc="Which notes may be edited.", choices=scopes.EDITABLE_SCOPES),
    Take(name="can", doc="What edits may do.", kind="texts", choices=scopes.ABILITIES),
)
_TOGGLES: Final = (
    Take(name="scout", doc="Whether the scout looks for notes.", kind="flag"),
    Take(name="web", doc="Whether the web is searched.", kind="flag"),
    Take(name="task", doc="Whether the task is done.", kind="flag"),
)
PRESET_TAKES: Final = (
    Take(name="scope", doc="Which notes go with the open one.", kind="object", fields=_SCOPE),
    Take(name="rules", doc="Which notes may be edited, and how.", kind="object", fields=_RULES),
    Take(name="added", doc="Paths of notes that go with it.", kind="texts"),
    Take(name="toggles", doc="Which agents work.", kind="object", fields=_TOGGLES),
)
PRESET: Final[Mapping[str, Any]] = operations.shape(
    {"name": _TEXT, "scope": _OBJECT, "rules": _OBJECT, "added": _TEXTS, "toggles": _OBJECT}
)
SWITCHES: Final = operations.answer({"switches": {**_OBJECT, "description": "scout, web and task, as kept."}})
DEFAULTS: Final = operations.answer(
    {
        "choice": {**PRESET, "description": "What the configuration says, as a preset shows itself."},
        "switches": {**_OBJECT, "description": "scout, web and task, as they were last."},
        "token_limit": _COUNT,
        "chat_history_length": _COUNT,
        "orchestrate": _FLAG,
        "ranges": {
            "type": "object",
            "description": "The lowest and the highest of each number.",
            "additionalProperties": _RANGE,
        },
        "editable": _TEXTS,
        "can": {**_TEXTS, "description": "What edits of this client may do at all."},
        "model": {"type": "string", "description": "The model's name; empty where none can answer."},
        "web": {"type": "boolean", "description": "Whether the owner allows the web."},
        "problems": {
            "type": "object",
            "description": "Why there is no model, or no web: each as an error shows itself.",
        },
    }
)

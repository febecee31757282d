"""Say what routes of chats and sessions give, for the OpenAPI document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from knapper.server.http.operations import answer, shape, streamed

_TEXT: Final[Mapping[str, Any]] = {"type": "string"}
_ROWS: Final[Mapping[str, Any]] = {"type": "array", "items": {"type": "object"}}
_QUESTION: Final[Mapping[str, Any]] = {
    "type": ["object", "null"],
    "description": "What the model asks; the next message in the session answers it.",
    "properties": {"question": _TEXT, "options": {"type": "array"}},
}
_TURN: Final[Mapping[str, Any]] = {
    "response": {"type": "string", "description": "The answer, with citations that hold only."},
    "session_id": _TEXT,
    "turn_id": _TEXT,
    "citations": {**_ROWS, "description": "Each with its path, lines and the note's hash."},
    "removed": {**_ROWS, "description": "Citations that were dropped, each with the reason."},
    "tools": _ROWS,
    "proposals": {**_ROWS, "description": "What waits for a person's word; see /proposals."},
    "changes": {"type": "array", "items": _TEXT, "description": "Ids of what was applied."},
    "question": _QUESTION,
    "usage": {"type": "object"},
    "model": _TEXT,
    "state": {"enum": ["complete", "limit", "asked", "cancelled"]},
    "notes": {"type": "array"},
}
REPLY: Final = answer(_TURN)
STREAM: Final[Mapping[str, Any]] = streamed(
    "`start` comes first, with turn_id, session_id and message; then `text`, `tool_call`, `tool_result`, `proposal`, "
    "`question`, `usage` and `error`, as they happen; `done` comes last, with the answer. A lost connection doesn't "
    "end the turn: GET /chat/{turn_id}/events goes on."
)
CANCELLED: Final = answer(
    {"turn_id": _TEXT, "session_id": _TEXT, "cancelled": {"type": "boolean"}, "ended": {"type": "boolean"}}
)
SESSION: Final[Mapping[str, Any]] = shape(
    {
        "id": _TEXT,
        "title": _TEXT,
        "active_file": {"type": ["string", "null"]},
        "kind": {"enum": ["file", "none", "own"], "description": "Found by its file, without a file, or by its id."},
        "created": _TEXT,
        "updated": _TEXT,
        "turns": {"type": "integer"},
        "forked_from": {"type": ["string", "null"]},
        "running": {"type": ["string", "null"], "description": "The turn that goes on, if one does."},
        "task": {"type": ["string", "null"], "description": "The run of a task of agents that goes on, if one does."},
        "busy": {"type": "boolean", "description": "Whether something goes on in it, also in another process."},
    }
)
MESSAGE: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "role": {"enum": ["user", "assistant"]},
        "content": _TEXT,
        "number": {"type": "integer", "description": "The turn's, from 1."},
        "at": _TEXT,
        "active_file": {"type": ["string", "null"]},
        "outcome": {"type": "object", "description": "As `done` tells it; of an answer only."},
    },
    "required": ["role", "content", "number", "at"],
}

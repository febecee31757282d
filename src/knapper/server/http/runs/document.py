"""Say what routes of runs take and give, for the OpenAPI document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from knapper.server.http.arguments import VAULT, Take
from knapper.server.http.operations import answer, listed, shape, streamed

if TYPE_CHECKING:
    from collections.abc import Mapping

_TEXT: Final[Mapping[str, Any]] = {"type": "string"}
_COUNT: Final[Mapping[str, Any]] = {"type": "integer"}
_FLAG: Final[Mapping[str, Any]] = {"type": "boolean"}
_ROWS: Final[Mapping[str, Any]] = {"type": "array", "items": {"type": "object"}}
_TEXTS: Final[Mapping[str, Any]] = {"type": "array", "items": _TEXT}

TASK: Final = Take(name="task", doc="What is to be done.", needed=True, most=50_000)
STRATEGY: Final = Take(name="strategy", doc="How it is split and done; see /runs/options.", most=40)
CODE_MODE: Final = Take(name="code_mode", doc="Whether scripts retrieve; otherwise search does.", kind="flag")
PROFILE: Final = Take(
    name="profile",
    doc="What else scripts may read, where the owner configured any.",
    choices=("strict", "local", "extended"),
)
FRESH: Final = Take(name="fresh", doc="Take nothing from the cache.", kind="flag")
MODEL: Final = Take(name="model", doc="Another model than the configured one; only a person may name any.", most=200)
ALSO: Final = Take(name="also", doc="Other vaults to look through, by name.", kind="texts", most=200)
LIMITS: Final = (
    Take(name="depth", doc="Levels of subtasks at most.", kind="count", most=8),
    Take(name="nodes", doc="Nodes at most.", kind="count", least=1, most=500),
    Take(name="minutes", doc="How long it may take, from now.", kind="number", least=0.01, most=1_440),
    Take(name="tokens", doc="Tokens at most; 0 for no limit.", kind="count", most=10**9),
    Take(name="cents", doc="What it may cost; 0 for no limit.", kind="count", most=10**6),
)
"""Whoever isn't a person may only lower what the owner configured."""
REPLAY: Final = Take(
    name="replay", doc="`stale` does again what read notes that have changed, a node's id that and all below.", most=200
)
ANSWER: Final = Take(
    name="answer", doc="`go on`, `skip`, notes by their paths, or where to look.", needed=True, most=20_000
)
TO: Final = Take(name="to", doc="A note, by its ending .md; otherwise a folder.", needed=True)
LIMIT: Final = Take(name="limit", doc="How many at most; 50 where it is left out.", kind="count", most=500)
OFFSET: Final = Take(name="offset", doc="How many are passed over.", kind="count", most=10**9)
NEW: Final = (TASK, STRATEGY, CODE_MODE, PROFILE, FRESH, MODEL, ALSO, *LIMITS, VAULT)
AGAIN: Final = (REPLAY, *LIMITS, VAULT)
PAGE: Final = (LIMIT, OFFSET, VAULT)

_STATES: Final = ("pending", "running", "complete", "partial", "failed", "cancelled", "interrupted")
_BRIEF: Final[Mapping[str, Any]] = {
    "id": _TEXT,
    "task": _TEXT,
    "strategy": _TEXT,
    "code_mode": _FLAG,
    "model": _TEXT,
    "client": {"type": "string", "description": "On whose behalf it is."},
    "also": {**_TEXTS, "description": "Other vaults that it looks through."},
    "state": {"enum": [*_STATES]},
    "reasons": {**_TEXTS, "description": "Why it isn't complete."},
    "limits": {"type": "object"},
    "created": _TEXT,
    "updated": _TEXT,
    "is_live": {"type": "boolean", "description": "Whether somebody carries it out right now."},
}
BRIEF: Final = answer(_BRIEF)
_ASKS: Final[Mapping[str, Any]] = {**_COUNT, "description": "Questions to a person that nobody has answered."}
LISTED: Final = listed("results", shape({**_BRIEF, "asks": _ASKS}))
SHOWN: Final = answer(
    {
        **_BRIEF,
        "answer": _TEXT,
        "citations": _ROWS,
        "removed": {**_ROWS, "description": "Citations that were dropped, each with the reason."},
        "usage": {"type": "object"},
        "cached": _COUNT,
        "node_count": _COUNT,
        "nodes": {**_ROWS, "description": "In brief, parents before their parts."},
        "checkpoints": {**_ROWS, "description": "What it asks a person, and nobody has answered."},
    }
)
NODE: Final = answer(
    {"id": _TEXT, "task": _TEXT, "state": _TEXT, "retrieval": {"type": ["object", "null"]}, "answer": _TEXT}
)
STALE: Final = answer(
    {
        "id": _TEXT,
        "stale": {
            "type": "object",
            "additionalProperties": _TEXTS,
            "description": "By the nodes' ids, the notes that have changed since.",
        },
    }
)
EXPORTED: Final = answer({"status": {"enum": ["applied", "proposed"]}})
ANSWERED: Final = answer({"id": _TEXT, "run": _TEXT, "node": _TEXT, "answer": {"type": "object"}})
CANCELLED: Final = answer({"id": _TEXT, "cancelled": _FLAG, "ended": _FLAG, "state": {"enum": [*_STATES]}})
DELETED: Final = answer({"deleted": _TEXT})
OPTIONS: Final = answer(
    {
        "strategies": _ROWS,
        "strategy": {"type": "string", "description": "The one that is taken where none is said."},
        "code_mode": _FLAG,
        "profiles": _TEXTS,
        "limits": {"type": "object", "additionalProperties": {"type": "number"}, "description": "What is usual."},
        "ranges": {
            "type": "object",
            "additionalProperties": shape({"least": {"type": "number"}, "most": {"type": "number"}}),
        },
        "model": {"type": ["string", "null"], "description": "The configured model; null where there is none."},
        "model_hint": _TEXT,
        "sandbox_ready": {
            "type": ["boolean", "null"],
            "description": "False where scripts have to be prepared first; null where they can't be run here.",
        },
        "sandbox_hint": _TEXT,
    }
)
STREAM: Final = streamed(
    "`start` comes first, with run_id and task; then `run_started`, `node`, `checkpoint`, `usage` and `error`, as they "
    "happen; `run_done` comes last, with the answer."
)

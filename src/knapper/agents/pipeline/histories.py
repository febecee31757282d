"""Read out of a session what was said, and what became of the edits that were proposed."""

from collections.abc import Callable, Mapping, Sequence

from knapper.agents.sessions.records import Exchange
from knapper.agents.task.records import ChatMessage, EditFailure, EditResults
from knapper.agents.task.replies import EditInstruction
from knapper.changes.proposals.store import Proposals
from knapper.errors import KnapError
from knapper.jsontypes import JSONValue

Fate = Callable[[str], str]
"""Tells in words what became of a proposal."""


def messages(turns: Sequence[Exchange], length: int, fate: Fate = lambda _: "") -> list[ChatMessage]:
    """Give the last messages of a session, the oldest first.

    Args:
        turns: Of the session.
        length: How many messages at most, questions and answers counted alike, 0 to 100.
        fate: Tells what became of a proposal.
    """
    if not length:
        return []
    found: list[ChatMessage] = []
    for turn in turns[-(length + 1) // 2 - 1 :]:
        found += [_asked(turn), _answered(turn, fate)]
    return found[-length:]


def fates(proposals: Proposals) -> Fate:
    """Ask the proposals what became of them."""

    def fate(proposal: str) -> str:
        try:
            return f"the proposal is {proposals.show(proposal).status.replace('_', ' ')}"
        except KnapError:
            return ""

    return fate


def _asked(turn: Exchange) -> ChatMessage:
    return ChatMessage(
        id=f"{turn.number}-user", role="user", content=turn.question, timestamp=turn.at, active_file=turn.file
    )


def _answered(turn: Exchange, fate: Fate) -> ChatMessage:
    outcome = turn.outcome
    told = [text for one in _list(outcome.get("proposals")) if (text := fate(str(one)))]
    return ChatMessage(
        id=f"{turn.number}-assistant",
        role="assistant",
        content=str(outcome.get("answer", "")),
        timestamp=turn.at,
        active_file=turn.file,
        proposed_edits=tuple(_edit(one) for one in _list(outcome.get("proposed_edits")) if isinstance(one, dict)),
        edit_results=_results(outcome.get("edit_results")),
        fate=", ".join(told),
    )


def _edit(row: Mapping[str, JSONValue]) -> EditInstruction:
    return EditInstruction(
        file=str(row.get("file", "")), position=str(row.get("position", "")), content=str(row.get("content", ""))
    )


def _results(given: JSONValue) -> EditResults | None:
    if not isinstance(given, dict) or not given:
        return None
    success = given.get("success")
    failures = tuple(
        EditFailure(
            file=str(one.get("file", "")),
            error=str(one.get("error", "")),
            code=str(one.get("code", "")),
            position=str(one.get("position", "")),
        )
        for one in _list(given.get("failures"))
        if isinstance(one, dict)
    )
    return EditResults(success=success if isinstance(success, int) else 0, failures=failures)


def _list(given: JSONValue) -> list[JSONValue]:
    return given if isinstance(given, list) else []

"""Tell how an index stands, and what a refresh did to it."""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from knapper.cli.output import plain
from knapper.cli.render.amounts import count, duration, size
from knapper.index.refresh import RefreshOutcome
from knapper.index.status import IndexStatus

_PROBLEMS = 5
"""Problems that a summary shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Hold what `knap index` did."""

    outcome: RefreshOutcome
    embedded: int
    status: IndexStatus
    seconds: float

    def text(self) -> str:
        """Say it to a person."""
        did = self.outcome
        lines = [
            f"{count(self.status.notes, 'note')}, {count(self.status.chunks, 'chunk')} in {duration(self.seconds)}",
            f"read {did.indexed}, removed {did.removed}, unchanged {did.unchanged}; "
            + f"embedded {count(self.embedded, 'chunk')}",
        ]
        if self.status.pending:
            lines.append(f"{count(self.status.pending, 'chunk')} found by words only until embedded: `knap index`")
        lines += _problems(did.problems)
        return "\n".join(lines)

    def as_dict(self) -> dict[str, object]:
        """Give it to a program."""
        return {
            "success": True,
            "indexed": self.outcome.indexed,
            "removed": self.outcome.removed,
            "unchanged": self.outcome.unchanged,
            "embedded": self.embedded,
            "notes": self.status.notes,
            "chunks": self.status.chunks,
            "pending": self.status.pending,
            "problems": self.outcome.problems,
            "seconds": round(self.seconds, 3),
        }


def of_vault(answer: Mapping[str, object], places: Mapping[str, str], *, busy: bool) -> str:
    """Say how a vault's index stands.

    Args:
        answer: From the tool ``vault_status``.
        places: ``vault`` and ``index``: where they are.
        busy: Somebody is just filling the index.
    """
    rows = {
        "vault": places["vault"],
        "notes": f"{answer['notes']}, and {_number(answer, 'files') - _number(answer, 'notes')} other files",
        "chunks": f"{answer['chunks']}: {answer['embedded']} embedded, {answer['pending']} waiting",
        "model": str(answer["model"]) or "none: search goes by words only",
        "index": f"{places['index']}, {size(_number(answer, 'size_bytes'))}",
        "state": _state(answer, busy=busy),
    }
    lines = [f"{name:<7} {text}" for name, text in rows.items()]
    return "\n".join([*lines, *_skipped(answer)])


def _state(answer: Mapping[str, object], *, busy: bool) -> str:
    if answer["index_incomplete"]:
        return f"incomplete: {'it is being filled right now; look again later' if busy else 'run `knap index`'}"
    built = dt.datetime.fromisoformat(str(answer["built"])).astimezone()
    more = "; it is being written right now" if busy else ""
    return f"complete, last change taken in {built:%Y-%m-%d %H:%M}{more}"


def _number(answer: Mapping[str, object], name: str) -> int:
    return cast("int", answer[name])


def _skipped(answer: Mapping[str, object]) -> list[str]:
    skipped = cast("Sequence[Mapping[str, object]]", answer["skipped"])
    if not skipped:
        return []
    lines = [f"  {row['path']}{_line(row)}  {row['problem']}" for row in skipped]
    return [f"{count(_number(answer, 'problems'), 'file')} with problems:", *map(plain, lines)]


def _line(row: Mapping[str, object]) -> str:
    return f":{row['line']}" if row["line"] else ""


def _problems(problems: Sequence[str]) -> list[str]:
    if not problems:
        return []
    lines = [f"  {plain(problem)}" for problem in problems[:_PROBLEMS]]
    if len(problems) > _PROBLEMS:
        lines.append(f"  and {len(problems) - _PROBLEMS} more: `knap status` lists them")
    return [f"{count(len(problems), 'problem')}:", *lines]

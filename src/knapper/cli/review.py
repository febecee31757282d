"""Go through a proposal with a person, part by part, by single keys."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, cast

from knapper.cli.render import outcomes, waiting
from knapper.cli.render.outcomes import Row

Answer = Literal["yes", "no", "skip"]

HELP: Final = """\
y  accept this
n  reject this
e  edit the new text, then accept it
s  leave it waiting
a  accept this and all that follows
d  reject this and all that follows
q  stop here; what you said so far is done
?  show this"""
_KEYS: Final[Mapping[str, Answer]] = {"y": "yes", "n": "no", "s": "skip"}
_REST: Final[Mapping[str, Answer]] = {"a": "yes", "d": "no", "q": "skip"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminal:
    """Hold how a person is shown something, and answers."""

    show: Callable[[str], None]
    key: Callable[[str], str]
    """Asks, and gives the key that was pressed; raises ``KeyboardInterrupt`` where the person ended all."""
    edit: Callable[[str], str | None]
    """Lets the person change a text; None where they left it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Hold what is asked about at once: a hunk, or files that go together."""

    text: str
    hunk: str = ""
    """Its id; empty where it is about whole files."""
    files: tuple[str, ...] = ()
    new: str | None = None
    """The text that can be edited; None where none can."""


@dataclass(slots=True, kw_only=True)
class Decisions:
    """Hold what the person said."""

    accepted: list[Part] = field(default_factory=list[Part])
    rejected: list[Part] = field(default_factory=list[Part])
    edited: dict[str, str] = field(default_factory=dict[str, str])
    """New texts by the hunk's id."""
    skipped: int = 0

    def put(self, part: Part, answer: Answer) -> None:
        """Note an answer."""
        match answer:
            case "yes":
                self.accepted.append(part)
            case "no":
                self.rejected.append(part)
            case "skip":
                self.skipped += 1


def parts(shown: Row) -> Iterator[Part]:
    """Take a proposal apart into what can be decided by itself; what is settled or stale is left out.

    Args:
        shown: From the tool ``show_proposal``.
    """
    groups: dict[object, list[Row]] = {}
    for row in outcomes.rows(shown, "files"):
        groups.setdefault(row["group"], []).append(row)
    for rows in groups.values():
        if len(rows) == 1 and rows[0]["kind"] == "edit":
            yield from _hunks(rows[0])
        elif all(row["state"] == "open" and not _is_stale(row) for row in rows):
            yield _whole(rows)


def go_through(shown: Row, terminal: Terminal) -> Decisions:
    """Ask about each part of a proposal.

    Args:
        shown: From the tool ``show_proposal``.
        terminal: Where the person is.
    """
    decisions = Decisions()
    rest: Answer | None = None
    every = list(parts(shown))
    for number, part in enumerate(every, start=1):
        if rest is None:
            terminal.show(part.text)
            answer, rest = _ask(part, f"({number}/{len(every)}) accept?", terminal, decisions)
        else:
            answer = rest
        decisions.put(part, answer)
    return decisions


def _ask(part: Part, question: str, terminal: Terminal, decisions: Decisions) -> tuple[Answer, Answer | None]:
    """Ask until there is an answer; gives it, and the answer to all that follows where that was given, too."""
    keys = "y,n,e,s,a,d,q,?" if part.new is not None else "y,n,s,a,d,q,?"
    while True:
        key = terminal.key(f"{question} [{keys}] ").lower()
        if key in _KEYS:
            return _KEYS[key], None
        if key in _REST:
            return _REST[key], _REST[key]
        if key == "e" and part.new is not None:
            text = terminal.edit(part.new)
            if text is not None and text != part.new:
                decisions.edited[part.hunk] = text
                return "yes", None
            terminal.show("the text is as it was")
            continue
        terminal.show(HELP)


def _hunks(row: Row) -> Iterator[Part]:
    for one in outcomes.rows(row, "hunks"):
        if one["state"] == "open" and not _is_stale(one):
            alone = {**row, "hunks": [one]}
            text = "\n".join(["", waiting.file_head(row), *waiting.file_body(alone)])
            yield Part(text=text, hunk=str(one["id"]), new=str(one["new"]))


def _whole(rows: list[Row]) -> Part:
    lines = [line for row in rows for line in ("", waiting.file_head(row), *waiting.file_body(row))]
    asked = tuple(str(row["path"]) for row in rows if not row.get("follows"))
    return Part(text="\n".join(lines), files=asked)


def _is_stale(row: Row) -> bool:
    return cast("object", row.get("stale")) is not None

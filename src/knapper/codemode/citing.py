"""Check a script's citations against the vaults as they are now, through the client's eyes."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from knapper.codemode import reading
from knapper.codemode.results import Written
from knapper.errors import KnapError, NotFound
from knapper.jsontypes import JSONValue
from knapper.tools.context import Context
from knapper.vault.parser import Note

MOST_TEXT: Final = 4_000_000
"""Characters of notes that one result's citations may make us read."""
MOST_READ: Final = 40_000_000
"""Bytes of files that are read for that; what is named after them is as what is too long."""
_MOST_SHOWN: Final = 200
_MOST_REASON: Final = 500
_TOO_LONG: Final = "the citations before it are too long for it to be looked at"


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """Hold a place that is there, as it was when it was looked at."""

    vault: str
    path: str
    start: int
    """Half-open span, in characters of the note's text."""
    stop: int
    first_line: int
    last_line: int
    hash: str
    """Of the whole note."""
    text: str
    """What stands there."""

    def as_dict(self) -> dict[str, JSONValue]:
        """Shape it as every surface shows it; the text is left to who reads the note."""
        return {
            "vault": self.vault,
            "path": self.path,
            "snip_start": self.start,
            "snip_end": self.stop,
            "start_line": self.first_line,
            "end_line": self.last_line,
            "hash": self.hash,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """Hold a citation that doesn't hold, and why."""

    path: str
    code: str
    reason: str

    def as_dict(self) -> dict[str, JSONValue]:
        """Shape it as every surface shows it."""
        return {"path": self.path, "code": self.code, "reason": self.reason}


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """Hold the citations that hold, each place once, and those that don't."""

    citations: tuple[Citation, ...] = ()
    dropped: tuple[Dropped, ...] = ()


def check(open_vault: Callable[[str], Context], written: Iterable[Written]) -> Checked:
    """Check citations: the note is there for this client, the span holds something, and a quotation stands in it.

    A span is brought inside its note; a missing one is the whole note.

    Args:
        open_vault: Opens a vault of the client's by its name; an empty one is the usual vault.
        written: As the script has written them.
    """
    citations: dict[Citation, None] = {}
    dropped: list[Dropped] = []
    left = MOST_TEXT
    notes = _Notes()
    for one in written:
        root = ""
        try:
            context = open_vault(one.vault)
            root = str(context.view.root)
            found, size = _find(context, one, left, notes)
        except KnapError as error:
            reason = error.message.replace(root, "the vault") if root else error.message
            dropped.append(Dropped(path=one.path[:_MOST_SHOWN], code=error.code, reason=reason[:_MOST_REASON]))
            continue
        left -= size
        citations[found] = None
    return Checked(citations=tuple(citations), dropped=tuple(dropped))


def whole(context: Context, path: str, start: int = 0, stop: int | None = None) -> Citation:
    """Cite a note, or a stretch of it.

    Raises:
        KnapError: It isn't there, or is empty there.
    """
    return _find(context, Written(path=path, start=start, stop=stop), MOST_TEXT, _Notes())[0]


class _Notes:
    """Read each note once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], tuple[Note, str]] = {}
        self._left = MOST_READ

    def find(self, context: Context, path: str) -> tuple[Note, str]:
        """Give a note and its text.

        Raises:
            KnapError: It isn't there, or too much was read before.
        """
        key = (context.vault, path)
        if key not in self._known:
            if self._left < 0:
                raise NotFound(_TOO_LONG, code="too_long")
            note = reading.note(context, path)
            if note is None:
                raise NotFound("there is no such note", code="no_note")
            self._left -= len(note.raw)
            self._known[key] = (note, reading.text(note))
        return self._known[key]


def _find(context: Context, written: Written, left: int, notes: _Notes) -> tuple[Citation, int]:
    note, text = notes.find(context, written.path)
    if len(text) > left:
        raise NotFound(_TOO_LONG, code="too_long")
    start = min(max(written.start or 0, 0), len(text))
    stop = len(text) if written.stop is None else min(max(written.stop, 0), len(text))
    if not text[start:stop].strip():
        raise NotFound("nothing stands at that place of the note", code="empty_span")
    if written.quote and _plain(written.quote) not in _plain(text[start:stop]):
        raise NotFound("what it quotes doesn't stand there", code="not_quoted")
    citation = Citation(
        vault=context.vault,
        path=note.path,
        start=start,
        stop=stop,
        first_line=text.count("\n", 0, start) + 1,
        last_line=text.count("\n", 0, stop - 1) + 1,
        hash=note.hash,
        text=text[start:stop],
    )
    return citation, len(text)


def _plain(text: str) -> str:
    return " ".join(text.split())

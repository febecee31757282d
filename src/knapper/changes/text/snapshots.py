"""Hold the one state of a note that all changes of a batch are made against."""

import re
from dataclasses import dataclass
from typing import Final

from knapper.changes.text import alignment
from knapper.changes.text.splices import Splice
from knapper.errors import BadInput
from knapper.vault import parser, source
from knapper.vault.outline import Outline

_ENDING: Final = re.compile(r"\r\n|\r|\n")
_LAST_ENDING: Final = re.compile(rb"(?:\r\n|\r|\n)\Z")
_BOM: Final = b"\xef\xbb\xbf"
_SCARCE: Final = 4
"""Of so many bytes of a text one at most is NUL; in UTF-16 it is about every second."""
_EXCERPT_LINES: Final = 8
_EXCERPT_WIDTH: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Hold a note's bytes and what they say about its structure."""

    raw: bytes
    outline: Outline

    @property
    def lines(self) -> source.Lines:
        """Answer which line an offset lies in."""
        return source.Lines(starts=self.outline.line_starts, size=len(self.raw))

    @property
    def count(self) -> int:
        """Count the lines; an empty file has one."""
        return len(self.outline.line_starts)

    @property
    def text_start(self) -> int:
        """Find the first byte that is text: after a byte-order mark."""
        return len(_BOM) if self.raw.startswith(_BOM) else 0

    def line(self, number: int) -> tuple[int, int, int]:
        """Find a line by its 1-based number: its start, the end of its text, and its end with the line ending."""
        starts = self.outline.line_starts
        start = max(starts[number - 1], self.text_start)
        stop = starts[number] if number < len(starts) else len(self.raw)
        ending = _LAST_ENDING.search(self.raw, start, stop)
        return start, ending.start() if ending else stop, stop

    def is_blank(self, number: int) -> bool:
        """Tell whether a line holds nothing but spaces."""
        start, stop, _ = self.line(number)
        return not self.raw[start:stop].strip()

    def newline(self, at: int) -> str:
        """Tell the line ending that text put at an offset takes: the file's own, or that of the lines beside it."""
        own = self.outline.newline
        if own != "mixed":
            return own
        number = self.lines.number(max(at - 1, 0))
        for beside in (number, number + 1, number - 1):
            if 1 <= beside <= self.count:
                _, stop, end = self.line(beside)
                if end > stop:
                    return self.raw[stop:end].decode()
        return "\n"

    def encode(self, text: str, at: int) -> bytes:
        """Turn text into bytes with the line ending that fits at an offset.

        Raises:
            BadInput: The text can't be written in the file's encoding.
        """
        converted = _ENDING.sub(self.newline(at), text)
        if self.outline.encoding == "unknown" and not converted.isascii():
            message = "The file isn't UTF-8, so only ASCII text can be put into it."
            raise BadInput(message, hint="Convert the file to UTF-8 first.", code="not_utf8")
        try:
            return converted.encode()
        except UnicodeEncodeError as error:
            raise BadInput(f"The text holds half a character at position {error.start}.") from None

    def put_lines(self, at: int, text: str, *, rank: int) -> Splice:
        """Insert whole lines where a line begins, or at the file's end.

        One line ending at the end of *text* is the line's own. A file without a last line ending stays without one.
        """
        body = self.encode(text, at)
        newline = self.newline(at).encode()
        if len(self.raw) == self.text_start:
            return Splice(start=at, stop=at, new=body, rank=rank)
        body = body.removesuffix(newline)
        open_end = at == len(self.raw) and not _LAST_ENDING.search(self.raw)
        return Splice(start=at, stop=at, new=newline + body if open_end else body + newline, rank=rank)

    def rewrite(self, start: int, stop: int, text: str) -> Splice:
        """Put text in the place of a span; where the file mixes line endings, lines that stay keep theirs."""
        new = self.encode(text, start)
        if self.outline.newline != "mixed":
            return Splice(start=start, stop=stop, new=new)
        before, after = (_rows(self.raw[start:stop]), _rows(new))
        for run in alignment.runs([row for row, _ in before], [row for row, _ in after]):
            kept = before[run.old : run.old + run.size]
            for index, (row, ending) in enumerate(kept, start=run.new):
                if ending and after[index][1]:
                    after[index] = (row, ending)
        return Splice(start=start, stop=stop, new=b"".join(row + ending for row, ending in after))

    def decode(self, start: int, stop: int) -> str:
        """Read a span as text, for people."""
        return self.raw[start:stop].decode(errors="replace")

    def excerpt(self, first: int) -> str:
        """Show lines with their numbers, ``12: text``, long ones cut; at most 8."""
        first = max(1, min(first, self.count))
        stop = min(self.count, first + _EXCERPT_LINES - 1)
        rows: list[str] = []
        for number in range(first, stop + 1):
            start, end, _ = self.line(number)
            text = self.decode(start, end)
            rows.append(f"{number}: {text[:_EXCERPT_WIDTH]}{'…' if len(text) > _EXCERPT_WIDTH else ''}")
        return "\n".join(rows)


def _rows(data: bytes) -> list[tuple[bytes, bytes]]:
    """Split lines from their endings."""
    rows = [(row.rstrip(b"\r\n"), row) for row in data.splitlines(keepends=True)]
    return [(text, row[len(text) :]) for text, row in rows]


def take(raw: bytes, outline: Outline | None = None) -> Snapshot:
    """Hold a note's state.

    Args:
        raw: The file's bytes.
        outline: What `parse` says of them; parsed here if None.

    Raises:
        BadInput: The file is UTF-16, whose spans don't count in its own bytes, or looks like it without its mark.
    """
    outline = outline or parser.parse_note(raw)
    if outline.encoding == "utf-16":
        hint = "Convert the file to UTF-8 first."
        raise BadInput("The file is UTF-16; it can be read, and not edited.", hint=hint, code="not_utf8")
    if raw.count(0) * _SCARCE > len(raw):
        hint = "If it is UTF-16, convert it to UTF-8 first."
        raise BadInput("The file is full of NUL bytes, as UTF-16 is; it isn't edited.", hint=hint, code="not_utf8")
    return Snapshot(raw=raw, outline=outline)

"""Find the blocks that Knapper writes into notes: pending edits and log entries."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal

from knapper.jsontypes import JSONValue, is_object
from knapper.vault import frontmatter, source
from knapper.vault.source import Lines, Outline, Span, SpanSet

EditKind = Literal["replace", "add", "delete"]
PendingProblem = Literal[
    "unclosed",
    "invalid_json",
    "invalid_fields",
    "missing_tag",
    "missing_fence",
    "missing_block",
    "indented",
    "duplicate_id",
]

_FENCE_OPENING: Final = re.compile(rb"(?P<lead>[ \t>]*)(?P<fence>`{3,})ai-edit[ \t]*")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
"""Lone surrogates, which JSON can hold and UTF-8 can't."""
_LINE_LEAD: Final = b" \t>"
_FENCE_MARK, _PENDING_TAG = source.PENDING_MARKS
_EDIT_KINDS: Final[dict[str, EditKind]] = {"replace": "replace", "add": "add", "delete": "delete"}
_EDIT_FIELDS: Final = frozenset({"id", "type", "before", "after"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingBlock:
    """One pending block of a note, or the remains of one."""

    start: int
    """First byte of the opening fence's line."""
    stop: int
    """After the tag's line and its line ending."""
    tag_stop: int
    """After the tag itself: *stop* without the line ending."""
    line: int
    id: str
    kind: EditKind | None
    """None where it can't be read."""
    before: str
    after: str
    problem: PendingProblem | None
    """Why the block can't be accepted or rejected as it is; None where it is intact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Edit:
    id: str
    kind: EditKind
    before: str
    after: str


def find_pending(raw: bytes, outline: Outline) -> tuple[PendingBlock, ...]:
    """Find all pending blocks in order; those that a person edited or partly deleted have a `problem`.

    A block that is quoted inside another fence, as in documentation about such blocks, doesn't count.

    Args:
        raw: The file.
        outline: Its outline.
    """
    data = source.utf8_bytes(raw, outline)
    if not any(mark in data for mark in source.PENDING_MARKS):
        return ()
    finder = _PendingFinder(data, outline)
    blocks = list(finder.blocks())
    blocks += finder.remnants(SpanSet((block.start, block.stop) for block in blocks))
    blocks.sort(key=lambda block: block.start)
    counts = Counter(block.id for block in blocks if block.id)
    return tuple(
        replace(block, problem="duplicate_id") if counts[block.id] > 1 and block.problem is None else block
        for block in blocks
    )


class _PendingFinder:
    """Scans a note's lines for pending blocks."""

    def __init__(self, data: bytes, outline: Outline) -> None:
        self._data: bytes = data
        self._starts: tuple[int, ...] = (frontmatter.find_text_start(data), *outline.line_starts[1:])
        self._lines: Lines = Lines(starts=outline.line_starts, size=len(data))
        self._code: SpanSet = SpanSet(outline.code_spans)

    def blocks(self) -> Iterator[PendingBlock]:
        """Find the blocks that begin with an opening fence."""
        at = self._data.find(_FENCE_MARK)
        while at >= 0:
            number = self._lines.line_number(at)
            match = _FENCE_OPENING.fullmatch(self._row(number))
            search_from = at + 1
            if match:
                fence = self._starts[number - 1] + match.start("fence")
                cover = self._code.find(fence)
                if cover is None or cover[0] == fence:  # not inside other code or a comment
                    block = self._block(number, match)
                    yield block
                    search_from = max(block.stop, search_from)
            at = self._data.find(_FENCE_MARK, search_from)

    def remnants(self, whole: SpanSet) -> Iterator[PendingBlock]:
        """Find tags whose block is missing, or has lost its opening fence."""
        at = self._data.find(_PENDING_TAG)
        while at >= 0:
            number = self._lines.line_number(at)
            if self._row(number).strip(_LINE_LEAD) == _PENDING_TAG and not whole.contains(at):
                edit = self._edit(number - 2, number - 2) if number > 2 else None
                if edit is not None and re.fullmatch(rb"`{3,}[ \t]*", self._row(number - 1)):
                    if number == 3 or not _FENCE_OPENING.fullmatch(self._row(number - 3)):
                        yield self._make_block(number - 2, number, edit, "missing_fence")
                elif not self._code.contains(at):
                    yield self._make_block(number, number, None, "missing_block")
            at = self._data.find(_PENDING_TAG, at + 1)

    def _row(self, number: int) -> bytes:
        """Return a line without its ending; empty beyond the last one."""
        if number > len(self._starts):
            return b""
        start = self._starts[number - 1]
        return self._data[start : self._lines.line_stop(start)].rstrip(b"\r\n")

    def _block(self, number: int, opening: re.Match[bytes]) -> PendingBlock:
        closing = self._closing(number + 1, len(opening["fence"]))
        edit = self._edit(number + 1, closing - 1) if closing else None
        if edit is None and self._edit(number + 1, number + 1) is not None:
            return self._make_block(number, number + 1, self._edit(number + 1, number + 1), "unclosed")
        if not closing:
            return self._make_block(number, number, None, "unclosed")
        tagged = self._row(closing + 1).strip(_LINE_LEAD) == _PENDING_TAG
        last = closing + 1 if tagged else closing
        if edit is None:
            problem: PendingProblem = "invalid_fields" if self._read_object(number + 1, closing - 1) else "invalid_json"
            return self._make_block(number, last, None, problem)
        if not tagged:
            return self._make_block(number, last, edit, "missing_tag")
        exact = not opening["lead"] and self._row(last) == _PENDING_TAG
        return self._make_block(number, last, edit, None if exact else "indented")

    def _closing(self, number: int, length: int) -> int:
        """Find the line of the fence that closes a block; 0 where there is none before another block opens."""
        pattern = re.compile(rb"[ \t>]*`{%d,}[ \t]*" % length)
        while number <= len(self._starts):
            row = self._row(number)
            if pattern.fullmatch(row):
                return number
            if _FENCE_OPENING.fullmatch(row):
                return 0
            number += 1
        return 0

    def _read_object(self, first: int, last: int) -> dict[str, JSONValue] | None:
        text = b"\n".join(self._row(number).lstrip(_LINE_LEAD) for number in range(first, last + 1))
        try:
            value: object = json.loads(text, object_pairs_hook=_reject_duplicate_keys)
        except (ValueError, RecursionError):
            return None
        return value if is_object(value) else None

    def _edit(self, first: int, last: int) -> _Edit | None:
        fields = self._read_object(first, last)
        if fields is None or fields.keys() != _EDIT_FIELDS:
            return None
        id_, before, after = fields["id"], fields["before"], fields["after"]
        kind = _EDIT_KINDS.get(str(fields["type"]))
        if kind is None or not (isinstance(id_, str) and isinstance(before, str) and isinstance(after, str)):
            return None
        if _SURROGATE.search(before + after):
            return None
        if not id_ or (kind == "add" and before) or (kind == "delete" and after):
            return None
        return _Edit(id=id_, kind=kind, before=before, after=after)

    def _make_block(self, first: int, last: int, edit: _Edit | None, problem: PendingProblem | None) -> PendingBlock:
        start = self._starts[first - 1]
        stop = self._lines.line_stop(self._starts[last - 1])
        return PendingBlock(
            start=start,
            stop=stop,
            tag_stop=self._starts[last - 1] + len(self._row(last)),
            line=first,
            id=edit.id if edit else "",
            kind=edit.kind if edit else None,
            before=edit.before if edit else "",
            after=edit.after if edit else "",
            problem=problem,
        )


def _reject_duplicate_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Raise for a duplicate key: which value was meant is unknown."""
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a key stands twice")
    return fields


LOG_MARK: Final = "[!knap-log]"
"""Begins each entry's first line, after ``> ``."""
_LOG_MARK_BYTES: Final = LOG_MARK.encode()
_LOG_OPENING: Final = re.compile(rb">[ ]?\[!knap-log\]")
_QUOTED_LINES: Final = re.compile(rb"(?:>[^\r\n]*(?:\r\n|\r|\n|\Z))+")


def find_log_entries(data: bytes, outline: Outline) -> tuple[Span, ...]:
    """Find the entries, in order: whole lines that all begin with ``>``.

    A line below an entry that continues its text without ``>`` was written by somebody else and isn't part of it. Text
    in code or in another quote isn't an entry.

    Args:
        data: The note as UTF-8.
        outline: Its outline.
    """
    if _LOG_MARK_BYTES not in data:
        return ()
    quotes = (block.start for block in outline.blocks if block.kind == "quote")
    entries: list[tuple[int, int]] = []
    for start in quotes:
        if _LOG_OPENING.match(data, start):
            quoted = _QUOTED_LINES.match(data, start)
            entries.append((start, quoted.end() if quoted else start))
    return tuple(entries)

"""Recognise edits that wait in a note for a person's word: a fenced ``ai-edit`` block with its tag below."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal, cast

from knapper.vault import frontmatter, source
from knapper.vault.covers import Cover
from knapper.vault.lines import Lines
from knapper.vault.outline import Outline

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

_OPENING: Final = re.compile(rb"(?P<lead>[ \t>]*)(?P<fence>`{3,})ai-edit[ \t]*")
_HALF_PAIR: Final = re.compile("[\ud800-\udfff]")
"""No UTF-8 can hold half a surrogate pair, though JSON can."""
_LEAD: Final = b" \t>"
_TAG: Final = b"#ai_edit"
_KINDS: Final[dict[str, EditKind]] = {"replace": "replace", "add": "add", "delete": "delete"}
_FIELDS: Final = frozenset({"id", "type", "before", "after"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingBlock:
    """Hold one block as it stands in the note, or what is left of one."""

    start: int
    """First byte of the opening fence's line."""
    stop: int
    """After the tag's line, its ending included where it has one."""
    tag_stop: int
    """After the tag itself: *stop* without the line ending."""
    line: int
    id: str
    kind: EditKind | None
    """None where it can't be told."""
    before: str
    after: str
    problem: PendingProblem | None
    """What keeps the block from being accepted or rejected as it is; None where it is whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Edit:
    id: str
    kind: EditKind
    before: str
    after: str


def may_hold(raw: bytes, outline: Outline) -> bool:
    """Tell whether `find` could find anything; of the outline only the encoding matters."""
    return _may_hold(_data(raw, outline))


def find(raw: bytes, outline: Outline) -> tuple[PendingBlock, ...]:
    """Find all pending blocks, in order; those that a person edited or half deleted have a `problem`.

    A block that is shown inside another fence, as in a page about such blocks, is none.

    Args:
        raw: The file.
        outline: What was read from it.
    """
    data = _data(raw, outline)
    if not _may_hold(data):
        return ()
    finder = _Finder(data, outline)
    found = list(finder.blocks())
    found += finder.remains(Cover((block.start, block.stop) for block in found))
    found.sort(key=lambda block: block.start)
    counts = Counter(block.id for block in found if block.id)
    return tuple(
        replace(block, problem="duplicate_id") if counts[block.id] > 1 and block.problem is None else block
        for block in found
    )


def _data(raw: bytes, outline: Outline) -> bytes:
    return source.decode(raw).data if outline.encoding == "utf-16" else raw


def _may_hold(data: bytes) -> bool:
    return b"`ai-edit" in data or _TAG in data


class _Finder:
    """Walk a note's lines."""

    def __init__(self, data: bytes, outline: Outline) -> None:
        self._data: bytes = data
        self._starts: tuple[int, ...] = (frontmatter.start(data), *outline.line_starts[1:])
        self._lines: Lines = Lines(starts=outline.line_starts, size=len(data))
        self._code: Cover = Cover(outline.code_spans)

    def blocks(self) -> Iterator[PendingBlock]:
        """Find what begins with an opening fence."""
        at = self._data.find(b"`ai-edit")
        while at >= 0:
            number = self._lines.number(at)
            match = _OPENING.fullmatch(self._row(number))
            done = at + 1
            if match and not self._is_quoted(self._starts[number - 1] + match.start("fence")):
                block = self._block(number, match)
                yield block
                done = max(block.stop, done)
            at = self._data.find(b"`ai-edit", done)

    def remains(self, whole: Cover) -> Iterator[PendingBlock]:
        """Find tags whose block is gone, or has lost its opening fence."""
        at = self._data.find(_TAG)
        while at >= 0:
            number = self._lines.number(at)
            if self._row(number).strip(_LEAD) == _TAG and not whole.holds(at):
                yield from self._remains(number, at)
            at = self._data.find(_TAG, at + 1)

    def _remains(self, number: int, at: int) -> Iterator[PendingBlock]:
        edit = self._edit(number - 2, number - 2) if number > 2 else None
        if edit is not None and re.fullmatch(rb"`{3,}[ \t]*", self._row(number - 1)):
            if not self._starts_with_opening(number - 3):
                yield self._made(number - 2, number, edit, "missing_fence")
        elif not self._code.holds(at):
            yield self._made(number, number, None, "missing_block")

    def _starts_with_opening(self, number: int) -> bool:
        return number >= 1 and _OPENING.fullmatch(self._row(number)) is not None

    def _is_quoted(self, fence: int) -> bool:
        """Tell whether other code, or a comment, holds the fence."""
        cover = self._code.at(fence)
        return cover is not None and cover[0] != fence

    def _row(self, number: int) -> bytes:
        """Give a line without its ending; empty beyond the last one."""
        if number > len(self._starts):
            return b""
        start = self._starts[number - 1]
        return self._data[start : self._lines.stop(start)].rstrip(b"\r\n")

    def _block(self, number: int, opening: re.Match[bytes]) -> PendingBlock:
        closing = self._closing(number + 1, len(opening["fence"]))
        edit = self._edit(number + 1, closing - 1) if closing else None
        if edit is None and self._edit(number + 1, number + 1) is not None:
            return self._made(number, number + 1, self._edit(number + 1, number + 1), "unclosed")
        if not closing:
            return self._made(number, number, None, "unclosed")
        tagged = self._row(closing + 1).strip(_LEAD) == _TAG
        last = closing + 1 if tagged else closing
        if edit is None:
            problem: PendingProblem = "invalid_fields" if self._json(number + 1, closing - 1) else "invalid_json"
            return self._made(number, last, None, problem)
        if not tagged:
            return self._made(number, last, edit, "missing_tag")
        exact = not opening["lead"] and self._row(last) == _TAG
        return self._made(number, last, edit, None if exact else "indented")

    def _closing(self, number: int, length: int) -> int:
        """Find the line of the fence that closes a block; 0 where there is none before another block opens."""
        pattern = re.compile(rb"[ \t>]*`{%d,}[ \t]*" % length)
        while number <= len(self._starts):
            row = self._row(number)
            if pattern.fullmatch(row):
                return number
            if _OPENING.fullmatch(row):
                return 0
            number += 1
        return 0

    def _json(self, first: int, last: int) -> dict[str, object] | None:
        text = b"\n".join(self._row(number).lstrip(_LEAD) for number in range(first, last + 1))
        try:
            value: object = json.loads(text, object_pairs_hook=_single)
        except (ValueError, RecursionError):
            return None
        return cast("dict[str, object]", value) if isinstance(value, dict) else None

    def _edit(self, first: int, last: int) -> _Edit | None:
        fields = self._json(first, last)
        if fields is None or fields.keys() != _FIELDS:
            return None
        id_, before, after = fields["id"], fields["before"], fields["after"]
        kind = _KINDS.get(str(fields["type"]))
        if kind is None or not (isinstance(id_, str) and isinstance(before, str) and isinstance(after, str)):
            return None
        if _HALF_PAIR.search(before + after):
            return None
        if not id_ or (kind == "add" and before) or (kind == "delete" and after):
            return None
        return _Edit(id=id_, kind=kind, before=before, after=after)

    def _made(self, first: int, last: int, edit: _Edit | None, problem: PendingProblem | None) -> PendingBlock:
        start = self._starts[first - 1]
        stop = self._lines.stop(self._starts[last - 1])
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


def _single(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Refuse a key that stands twice, for nobody can tell which was meant."""
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a key stands twice")
    return fields

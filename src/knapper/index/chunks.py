"""Split a note into the chunks that the index stores, along its structure."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import pairwise
from typing import Literal, NamedTuple

from knapper.index import cuts, originals, properties
from knapper.vault import parser, paths, pending, source
from knapper.vault.outline import Block, Outline, Section
from knapper.vault.parser import parse_note
from knapper.vault.paths import NotePath

ChunkKind = Literal["text", "list", "table", "code", "quote", "frontmatter", "canvas", "log"]
"""``log`` is what the program wrote about its own work; it is found only where it is asked for."""

LIMIT = 1_500
"""Characters in a chunk."""

HEADING_SLACK = 200
"""Characters by which headings may push the chunk they open over its limit."""

_LONGEST_TITLE = 200
_KINDS: dict[str, ChunkKind] = {"list": "list", "table": "table", "code": "code", "quote": "quote", "log": "log"}
_BLANK = b" \t\r\n\v\f"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    r"""Hold a stretch of one section.

    ``## Plan\n\nBuy milk.`` in ``Week.md`` has heading ``## Plan``, path ``("Plan",)`` and that whole text.
    """

    kind: ChunkKind
    heading: str
    """With its ``#`` signs; ``top-level`` before the first one, ``frontmatter`` for properties."""
    path: tuple[str, ...]
    """Titles from the outermost heading to this one."""
    start: int
    stop: int
    start_line: int
    end_line: int
    """The last line, itself included."""
    text: str
    digest: bytes
    """16 bytes over all that is embedded: an equal one means that a vector can be used again."""


class _Atom(NamedTuple):
    """A stretch that isn't cut any more."""

    kind: str
    start: int
    stop: int
    length: int
    """In characters."""


def split(path: NotePath, raw: bytes, outline: Outline, *, limit: int = LIMIT) -> list[Chunk]:
    """Split a note into chunks.

    Blocks of one section are packed together; a block is cut only where it is longer than *limit*: a list at its
    items, a table at its rows, code at its lines, text at sentence ends. A heading opens its section's first chunk; one
    that owns nothing but sub-headings opens the chunk of the first of them. Where an edit waits for a person's word,
    the text before the edit is split, and placed on the lines of the waiting block. Of files that aren't Markdown each
    passage is split by itself.

    Args:
        path: Gives the title.
        raw: The file's bytes.
        outline: What was read from *raw*.
        limit: Characters in a chunk, at least 1; headings may go beyond it by ``HEADING_SLACK``.

    Returns:
        Chunks in order; those of the frontmatter first. What lies between two of the body is white space.
    """
    data = source.decode(raw).data if outline.encoding == "utf-16" else raw
    splitter = _Splitter(title=paths.stem(path), path=path, data=data, outline=outline, limit=limit)
    original = originals.restore(raw, outline)
    if original is None:
        return splitter.chunks()
    of_original = replace(splitter, data=original.data, outline=parse_note(original.data))
    return [splitter.placed(chunk, *original.place(chunk.start, chunk.stop)) for chunk in of_original.chunks()]


def embed_text(title: str, path: Sequence[str], text: str) -> str:
    """Put a note's title and the headings in front of a chunk's text, as embedders read it.

    Gives ``[Title > H1 > H2] text``; a first heading that repeats the title is left out.
    """
    if path and path[0].casefold() == title.casefold():
        path = path[1:]
    names = " > ".join(name[:_LONGEST_TITLE] for name in (title, *path))
    return f"[{names}] {text}".encode(errors="replace").decode()  # a file's name may not be Unicode


@dataclass(frozen=True, slots=True, kw_only=True)
class _Splitter:
    title: str
    path: NotePath
    data: bytes
    outline: Outline
    limit: int

    def chunks(self) -> list[Chunk]:
        return [*self.frontmatter(), *self.body(), *self.passages()]

    def placed(self, chunk: Chunk, start: int, stop: int) -> Chunk:
        first, last = self._lines(start, stop)
        return replace(chunk, start=start, stop=stop, start_line=first, end_line=last)

    def frontmatter(self) -> Iterator[Chunk]:
        head = self.outline.frontmatter
        if head is None:
            return
        if head.valid:
            text = properties.render(head.values)
        else:
            text = properties.without_brackets(parser.decode_text(self.data[head.yaml_start : head.yaml_stop])).strip()
        for piece in self._pieces(text):
            yield self._chunk("frontmatter", "frontmatter", (), (head.start, head.stop), piece)

    def body(self) -> Iterator[Chunk]:
        carried: list[_Atom] = []
        logged = dict(pending.find_log_entries(self.data, self.outline))
        for section, blocks in _owned(self.outline):
            atoms = [*carried, *self._atoms(section, blocks, logged)]
            if section.own_stop < section.stop and all(atom.kind == "heading" for atom in atoms):
                carried = atoms
                continue
            carried = []
            for group in _pack(atoms, self.limit):
                yield from self._body_chunk(section, group)

    def passages(self) -> Iterator[Chunk]:
        kind: ChunkKind = "canvas" if paths.suffix(self.path) == ".canvas" else "text"
        for passage in self.outline.passages:
            for piece in self._pieces(passage.text):
                yield self._chunk(kind, "top-level", (), (passage.start, passage.stop), piece)

    def _pieces(self, text: str) -> Iterator[str]:
        """Cut text that doesn't stand in the file as it is shown."""
        at = 0
        for stop in cuts.stops(text, self.limit, "lines"):
            if piece := text[at:stop].strip():
                yield piece
            at = stop

    def _body_chunk(self, section: Section, group: Sequence[_Atom]) -> Iterator[Chunk]:
        start, stop = _trimmed(self.data, group[0].start, group[-1].stop)
        text = parser.decode_text(self.data[start:stop])
        if not text.strip():
            return
        kinds: set[ChunkKind] = {_KINDS.get(atom.kind, "text") for atom in group if atom.kind != "heading"}
        kind = kinds.pop() if len(kinds) == 1 else "text"
        heading = f"{'#' * section.level} {section.title}" if section.level else "top-level"
        yield self._chunk(kind, heading, section.path, (start, stop), text)

    def _chunk(self, kind: ChunkKind, heading: str, path: tuple[str, ...], span: tuple[int, int], text: str) -> Chunk:
        start, stop = span
        first, last = self._lines(start, stop)
        return Chunk(
            kind=kind,
            heading=heading,
            path=path,
            start=start,
            stop=stop,
            start_line=first,
            end_line=last,
            text=text,
            digest=_digest(kind, self.title, *path, text),
        )

    def _lines(self, start: int, stop: int) -> tuple[int, int]:
        starts = self.outline.line_starts
        return bisect_right(starts, start) or 1, bisect_right(starts, max(start, stop - 1)) or 1

    def _atoms(self, section: Section, blocks: Iterable[Block], logged: Mapping[int, int]) -> Iterator[_Atom]:
        """Yield all of a section's own text, in order, also what no block holds; *logged* are entries' spans."""
        at = max(section.start, self.outline.body_start)
        if section.level:
            yield from self._cut("heading", at, section.body_start)
            at = section.body_start
        for block in blocks:
            start, stop = max(block.start, at), min(block.stop, section.own_stop)
            if start >= stop:
                continue
            yield from self._cut("paragraph", at, start)
            if start in logged:
                yield from self._cut("log", start, logged[start])
                yield from self._cut("paragraph", logged[start], stop)
                at = stop
                continue
            bounds = [start, *(i for i in block.items if start < i < stop), stop]
            if len(bounds) > 2 and self._length(start, stop) > self.limit:
                for pair in pairwise(bounds):
                    yield from self._cut(block.kind, *pair)
            else:
                yield from self._cut(block.kind, start, stop)
            at = stop
        yield from self._cut("paragraph", at, section.own_stop)

    def _cut(self, kind: str, start: int, stop: int) -> Iterator[_Atom]:
        """Yield a span as one atom, in pieces where it is too long, not at all where it is blank."""
        data = self.data[start:stop]
        if not data.strip(_BLANK):
            return
        # Bytes that aren't UTF-8 become a surrogate each, so that pieces can be measured in bytes again.
        text = data.decode(errors="surrogateescape")
        if len(text) <= self.limit:
            yield _Atom(kind, start, stop, len(text))
            return
        at = 0
        for end in cuts.stops(text, self.limit, "prose" if kind == "paragraph" else "lines"):
            piece = text[at:end]
            size = len(piece.encode(errors="surrogateescape"))
            if not piece.isspace():
                yield _Atom(kind, start, start + size, len(piece))
            start, at = start + size, end

    def _length(self, start: int, stop: int) -> int:
        if stop - start <= self.limit:
            return stop - start
        return len(self.data[start:stop].decode(errors="surrogateescape"))


def _owned(outline: Outline) -> Iterator[tuple[Section, Sequence[Block]]]:
    """Give each section the blocks that stand in its own text."""
    starts = [block.start for block in outline.blocks]
    for section in outline.sections:
        first, last = bisect_left(starts, section.start), bisect_left(starts, section.own_stop)
        yield section, outline.blocks[first:last]


def _pack(atoms: Iterable[_Atom], limit: int) -> Iterator[list[_Atom]]:
    """Group neighbours until the limit; headings stay with what follows, and the program's log by itself."""
    group: list[_Atom] = []
    size = 0
    for atom in atoms:
        gap = atom.start - group[-1].stop if group else 0
        opened = bool(group) and group[-1].kind == "heading" and size <= HEADING_SLACK
        full = size + gap + atom.length > limit and not opened
        if group and (full or _is_apart(atom, group[-1])):
            yield group
            group, size, gap = [], 0, 0
        group.append(atom)
        size += gap + atom.length
    if group:
        yield group


def _is_apart(one: _Atom, other: _Atom) -> bool:
    """Tell whether one belongs to the program's log and the other doesn't."""
    return (one.kind == "log") != (other.kind == "log")


def _trimmed(data: bytes, start: int, stop: int) -> tuple[int, int]:
    """Leave out blank lines at the start, keeping the first line's indent, and white space at the end."""
    span = data[start:stop].rstrip(_BLANK)
    indent = len(span) - len(span.lstrip(_BLANK))
    first = max(span.rfind(b"\n", 0, indent), span.rfind(b"\r", 0, indent)) + 1
    return start + first, start + len(span)


def _digest(*parts: str) -> bytes:
    """Hash *parts* with their lengths, so that none can pass for another."""
    return blake2b(
        "".join(f"{len(part)}:{part}" for part in parts).encode(errors="surrogatepass"), digest_size=16
    ).digest()

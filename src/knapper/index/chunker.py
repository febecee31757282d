"""Cut a file into chunks and build all that the index keeps of it, here or in a second process."""

import contextlib
import datetime as dt
import gc
import json
import os
import pickle
import re
import subprocess
import sys
import time
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from knapper.errors import KnapError
from knapper.index import documents
from knapper.index.documents import Chunk, ChunkKind, FileRecord, FileRows
from knapper.jsontypes import JSONValue, replace_surrogates
from knapper.vault import canvas, parser, paths, pending, source
from knapper.vault.parser import Note, parse_note
from knapper.vault.paths import NotePath
from knapper.vault.source import Block, Outline, Problem, Section
from knapper.vault.view import View
from knapper.vault.walk import FileStat

CutGrain = Literal["prose", "lines"]

_LINE_END = re.compile(r"[\r\n]+")
_SENTENCE_END = re.compile(
    r"[.!?\u2026][\"'\u201d\u2019\u00bb)\]*_]*\s+"  # with closing quotes and emphasis
    r"|[\u3002\uff01\uff1f\uff0e\uff61][\u300d\u300f\u201d\u2019\uff09\u3009\u300b\u3011]*\s*"  # the same in CJK
    r"|[\r\n]\s*"
)
_SPACE = re.compile(r"\s+")
_BREAKS = {"prose": (_SENTENCE_END, _SPACE), "lines": (_LINE_END, _SENTENCE_END, _SPACE)}
_JOINER = "\u200d"
_MAX_CLUSTER_CHARS = 32
"""Characters that a cut moves back at most, to keep an emoji or a letter and its marks together."""


def cut_text(text: str, limit: int, grain: CutGrain) -> list[int]:
    """Cut *text* into pieces of at most *limit* characters, and return the end of each.

    ``cut_text("One. Two. Three.", 10, "prose")`` gives ``[10, 16]``.

    Args:
        text: The text to cut.
        limit: Characters in a piece, at least 1.
        grain: Where to cut first: ``prose`` at sentence and line ends, ``lines`` at line ends alone; then at white
            space, then anywhere.

    Returns:
        Ends of the pieces, the last one the text's; empty for an empty text.
    """
    ends: list[int] = []
    at = 0
    while len(text) - at > limit:
        at = _next_cut(text, at, limit, grain)
        ends.append(at)
    return [*ends, len(text)] if text else []


def _next_cut(text: str, at: int, limit: int, grain: CutGrain) -> int:
    for pattern in _BREAKS[grain]:
        best = at
        for match in pattern.finditer(text, at, at + limit):
            best = match.end()
        if best - at > limit // 3 or (pattern is _SPACE and best > at):
            return best
    stop = at + limit
    lowest = max(at, stop - _MAX_CLUSTER_CHARS)
    while stop > lowest and _is_inside_cluster(text, stop):
        stop -= 1
    return stop if stop > lowest else at + limit


def _is_inside_cluster(text: str, at: int) -> bool:
    """Return whether the characters on both sides of *at* belong to one grapheme cluster."""
    after, before = text[at], text[at - 1]
    skin_tone = "\U0001f3fb" <= after <= "\U0001f3ff"
    return skin_tone or _JOINER in {after, before} or unicodedata.category(after)[0] == "M" or before + after == "\r\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class _MappedSpan:
    start: int
    """Where it begins in the original."""
    disk_start: int
    disk_stop: int
    """Its span on disk, which has the same length except for a pending block."""
    waiting: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Original:
    """A note whose pending blocks are replaced by the text that they would change."""

    data: bytes
    stretches: tuple[_MappedSpan, ...]

    def place(self, start: int, stop: int) -> tuple[int, int]:
        """Return the span on disk of the text from *start* to *stop*."""
        first, last = self._at(start), self._at(max(start, stop - 1))
        begin = first.disk_start + (0 if first.waiting else start - first.start)
        end = last.disk_stop if last.waiting else last.disk_start + stop - last.start
        return begin, end

    def _at(self, offset: int) -> _MappedSpan:
        return self.stretches[bisect_right(self.stretches, offset, key=lambda passage: passage.start) - 1]


def restore_original(raw: bytes, outline: Outline) -> Original | None:
    """Replace each pending block by the text before its edit.

    A block that can't be read as an edit stays as it is.

    Returns:
        None where no edit is pending.
    """
    blocks = [block for block in pending.find_pending(raw, outline) if block.kind is not None]
    if not blocks:
        return None
    data = source.decode(raw).data if outline.encoding == "utf-16" else raw
    parts: list[bytes] = []
    stretches: list[_MappedSpan] = []
    position, size = 0, 0
    for block in blocks:
        if block.start < position:
            continue
        original_text = block.before.encode(errors="replace")
        stretches.append(_MappedSpan(start=size, disk_start=position, disk_stop=block.start, waiting=False))
        size += block.start - position
        stretches.append(_MappedSpan(start=size, disk_start=block.start, disk_stop=block.tag_stop, waiting=True))
        size += len(original_text)
        parts += [data[position : block.start], original_text]
        position = block.tag_stop
    stretches.append(_MappedSpan(start=size, disk_start=position, disk_stop=len(data), waiting=False))
    return Original(data=b"".join([*parts, data[position:]]), stretches=tuple(stretches))


def render_properties(values: Mapping[str, JSONValue]) -> str:
    r"""Write properties as ``key: value`` lines, without wikilink brackets; empty ones are left out.

    ``{"tags": ["a", "b"], "up": "[[Home]]", "x": None}`` gives ``tags: a, b\nup: Home``.
    """
    lines = (f"{key}: {text}" for key, value in values.items() if (text := _render_value(value)))
    # YAML's escapes can produce a lone surrogate.
    text = replace_surrogates("\n".join(lines))
    return strip_link_brackets(text)


def strip_link_brackets(text: str) -> str:
    """Remove the brackets of wikilinks, so that their names are indexed as words."""
    return text.replace("[[", "").replace("]]", "")


def _render_value(value: JSONValue) -> str:
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, list):
        return ", ".join(filter(None, map(_render_value, value)))
    if isinstance(value, dict):
        return ", ".join(f"{key}: {text}" for key, inner in value.items() if (text := _render_value(inner)))
    return "" if value is None else json.dumps(value)


MAX_CHUNK_CHARS = 1_500
"""Characters in a chunk."""

HEADING_SLACK = 200
"""Characters by which its headings may make a chunk exceed the limit."""

_MAX_TITLE_CHARS = 200
_CHUNK_KINDS: dict[str, ChunkKind] = {"list": "list", "table": "table", "code": "code", "quote": "quote", "log": "log"}
_BLANK = b" \t\r\n\v\f"


class _Atom(NamedTuple):
    """A span that isn't cut any further."""

    kind: str
    start: int
    stop: int
    length: int
    """In characters."""


def split_note(path: NotePath, raw: bytes, outline: Outline, *, limit: int = MAX_CHUNK_CHARS) -> list[Chunk]:
    """Split a note into chunks.

    Blocks of one section are packed together; a block is cut only where it is longer than *limit*: a list at its
    items, a table at its rows, code at its lines, text at sentence ends. A heading opens its section's first chunk; one
    that owns nothing but sub-headings opens the chunk of the first of them. Where an edit is pending,
    the text before the edit is split, with the lines of the pending block. Of files that aren't Markdown each
    passage is split by itself.

    Args:
        path: For the title.
        raw: The file's bytes.
        outline: The outline of *raw*.
        limit: Characters in a chunk, at least 1; headings may exceed it by ``HEADING_SLACK``.

    Returns:
        Chunks in order, those of the frontmatter first; only white space lies between two of the body.
    """
    data = source.decode(raw).data if outline.encoding == "utf-16" else raw
    splitter = _Splitter(title=paths.stem(path), path=path, data=data, outline=outline, limit=limit)
    original = restore_original(raw, outline)
    if original is None:
        return splitter.chunks()
    of_original = replace(splitter, data=original.data, outline=parse_note(original.data))
    return [splitter.placed(chunk, *original.place(chunk.start, chunk.stop)) for chunk in of_original.chunks()]


def embedding_text(title: str, path: Sequence[str], text: str) -> str:
    """Put a note's title and the headings in front of a chunk's text, as embedders read it.

    Gives ``[Title > H1 > H2] text``; a first heading that repeats the title is left out.
    """
    if path and path[0].casefold() == title.casefold():
        path = path[1:]
    names = " > ".join(name[:_MAX_TITLE_CHARS] for name in (title, *path))
    # A file's name may contain lone surrogates.
    return replace_surrogates(f"[{names}] {text}")


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
        return chunk._replace(start=start, stop=stop, start_line=first, end_line=last)

    def frontmatter(self) -> Iterator[Chunk]:
        head = self.outline.frontmatter
        if head is None:
            return
        if head.valid:
            text = render_properties(head.values)
        else:
            text = strip_link_brackets(parser.decode_text(self.data[head.yaml_start : head.yaml_stop])).strip()
        for piece in self._pieces(text):
            yield self._chunk("frontmatter", "frontmatter", (), (head.start, head.stop), piece)

    def body(self) -> Iterator[Chunk]:
        carried: list[_Atom] = []
        log_spans = dict(pending.find_log_entries(self.data, self.outline))
        starts = [block.start for block in self.outline.blocks]
        for section in self.outline.sections:
            # The blocks in its own text.
            first, last = bisect_left(starts, section.start), bisect_left(starts, section.own_stop)
            atoms = [*carried, *self._atoms(section, self.outline.blocks[first:last], log_spans)]
            if section.own_stop < section.stop and all(atom.kind == "heading" for atom in atoms):
                carried = atoms
                continue
            carried = []
            for group in _pack_atoms(atoms, self.limit):
                yield from self._body_chunk(section, group)

    def passages(self) -> Iterator[Chunk]:
        kind: ChunkKind = "canvas" if paths.suffix(self.path) == ".canvas" else "text"
        for passage in self.outline.passages:
            for piece in self._pieces(passage.text):
                yield self._chunk(kind, "top-level", (), (passage.start, passage.stop), piece)

    def _pieces(self, text: str) -> Iterator[str]:
        """Cut text that differs from the text in the file."""
        at = 0
        for stop in cut_text(text, self.limit, "lines"):
            if piece := text[at:stop].strip():
                yield piece
            at = stop

    def _body_chunk(self, section: Section, group: Sequence[_Atom]) -> Iterator[Chunk]:
        # Without blank lines at the start, but with the first line's indent, and without white space at the end.
        begin = group[0].start
        span = self.data[begin : group[-1].stop].rstrip(_BLANK)
        indent = len(span) - len(span.lstrip(_BLANK))
        first = max(span.rfind(b"\n", 0, indent), span.rfind(b"\r", 0, indent)) + 1
        start, stop = begin + first, begin + len(span)
        text = parser.decode_text(self.data[start:stop])
        if not text.strip():
            return
        kinds: set[ChunkKind] = {_CHUNK_KINDS.get(atom.kind, "text") for atom in group if atom.kind != "heading"}
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
            digest=documents.chunk_digest(kind, self.title, documents.HEADING_SEPARATOR.join(path), text),
        )

    def _lines(self, start: int, stop: int) -> tuple[int, int]:
        starts = self.outline.line_starts
        return bisect_right(starts, start) or 1, bisect_right(starts, max(start, stop - 1)) or 1

    def _atoms(self, section: Section, blocks: Iterable[Block], logged: Mapping[int, int]) -> Iterator[_Atom]:
        """Yield all of a section's own text in order, also text outside blocks; *logged* are log entries' spans."""
        at = max(section.start, self.outline.body_start)
        if section.level:
            yield from self._cut("heading", at, section.body_start)
            at = section.body_start
        for block in blocks:
            start, stop = max(block.start, at), min(block.stop, section.own_stop)
            if start >= stop:
                continue
            if at < start:
                yield from self._cut("paragraph", at, start)
            if start in logged:
                yield from self._cut("log", start, logged[start])
                yield from self._cut("paragraph", logged[start], stop)
                at = stop
                continue
            # A text has no more characters than bytes.
            is_long = stop - start > self.limit
            if block.items and is_long and len(self.data[start:stop].decode(errors="surrogateescape")) > self.limit:
                for pair in pairwise([start, *(i for i in block.items if start < i < stop), stop]):
                    yield from self._cut(block.kind, *pair)
            else:
                yield from self._cut(block.kind, start, stop)
            at = stop
        yield from self._cut("paragraph", at, section.own_stop)

    def _cut(self, kind: str, start: int, stop: int) -> Iterable[_Atom]:
        """Return a span as one atom, in pieces where it is too long, not at all where it is blank."""
        data = self.data[start:stop]
        if not data or data.isspace():
            return ()
        # Each byte that isn't UTF-8 becomes a surrogate, so that the pieces can be encoded to the same bytes again.
        text = data.decode(errors="surrogateescape")
        return (_Atom(kind, start, stop, len(text)),) if len(text) <= self.limit else self._pieces_of(kind, start, text)

    def _pieces_of(self, kind: str, start: int, text: str) -> Iterator[_Atom]:
        at = 0
        for end in cut_text(text, self.limit, "prose" if kind == "paragraph" else "lines"):
            piece = text[at:end]
            size = len(piece.encode(errors="surrogateescape"))
            if not piece.isspace():
                yield _Atom(kind, start, start + size, len(piece))
            start, at = start + size, end


def _pack_atoms(atoms: Iterable[_Atom], limit: int) -> Iterator[list[_Atom]]:
    """Group neighbours up to the limit; headings stay with the text after them, log entries by themselves."""
    group: list[_Atom] = []
    size = 0
    for atom in atoms:
        gap = atom.start - group[-1].stop if group else 0
        opened = bool(group) and group[-1].kind == "heading" and size <= HEADING_SLACK
        full = size + gap + atom.length > limit and not opened
        if group and (full or (atom.kind == "log") != (group[-1].kind == "log")):
            yield group
            group, size, gap = [], 0, 0
        group.append(atom)
        size += gap + atom.length
    if group:
        yield group


_PARSERS: Mapping[str, Callable[[bytes], Outline]] = {
    "note": parser.parse_note,
    "canvas": canvas.parse_canvas,
    "base": canvas.parse_base,
}
_RACY_NS = 100_000_000
"""A file saved this shortly before it is read may be saved again with the same time."""


def read_file(view: View, stat: FileStat) -> tuple[FileRecord, Sequence[Chunk]]:
    """Read one file; a file that can't be read gets a record with the problem and no chunks.

    Args:
        view: The vault.
        stat: Its status from *before* this reading, so that a later save is noticed.
    """
    if stat.kind == "attachment":
        return _describe_attachment(stat), ()
    racy = is_racy(stat)
    try:
        raw = view.read_listed(stat)
    except KnapError as error:
        return _describe_attachment(stat, (Problem(code="unreadable", message=error.message),)), ()
    outline = _PARSERS[stat.kind](raw)
    record = _describe_note(
        stat, Note(path=stat.path, raw=raw, hash=parser.content_hash(raw), outline=outline), racy=racy
    )
    return record, split_note(stat.path, raw, outline)


_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def _describe_note(stat: FileStat, note: Note, *, racy: bool) -> FileRecord:
    """Describe a note, canvas or base from its outline."""
    outline = note.outline
    values = outline.frontmatter.values if outline.frontmatter else {}
    aliases: list[str] = []
    for name in ("aliases", "alias"):
        value = next((v for k, v in values.items() if k.casefold() == name), None)
        if isinstance(value, str):
            aliases.extend(part.strip() for part in value.split(","))
        elif isinstance(value, list):
            aliases.extend(str(part).strip() for part in value if isinstance(part, str | int | float))
    modified = _local_date(stat.mtime_ns)
    first_section = next((section for section in outline.sections if section.level), None)
    title = next((value for name, value in values.items() if name.casefold() == "title"), None)
    names = [title.strip()] if isinstance(title, str) else []
    if first_section is not None and first_section.level == 1:
        names.append(first_section.title)
    return FileRecord(
        stat=stat,
        hash=note.hash,
        title=_title_of(stat),
        aliases=tuple(dict.fromkeys(alias for alias in aliases if alias)),
        names=tuple(dict.fromkeys(name for name in names if name)),
        headings=tuple((s.level, s.title, s.line) for s in outline.sections if s.level),
        created=_date_in_properties(values) or (_date_on_disk(stat) if stat.born_ns else modified),
        modified=modified,
        properties=values,
        tags=outline.tags,
        links=outline.links,
        problems=outline.problems,
        racy=racy,
    )


def _describe_attachment(stat: FileStat, problems: tuple[Problem, ...] = ()) -> FileRecord:
    """Describe a file that is listed but not read; *problems* give the reason where it should have been read."""
    return FileRecord(
        stat=stat,
        hash="",
        title=_title_of(stat),
        aliases=(),
        names=(),
        headings=(),
        created=_date_on_disk(stat),
        modified=_local_date(stat.mtime_ns),
        properties={},
        tags=(),
        links=(),
        problems=problems,
        racy=False,
        failed=bool(problems),
    )


def _title_of(stat: FileStat) -> str:
    """Return a file's title, the same one whether its content could be read or not."""
    return paths.stem(stat.path) if stat.kind == "note" else paths.base_name(stat.path)


def _date_on_disk(stat: FileStat) -> str:
    """Return the day when a file was created, at the latest that of its last change."""
    return _local_date(min(stat.born_ns or stat.mtime_ns, stat.mtime_ns))


def _date_in_properties(values: Mapping[str, JSONValue]) -> str:
    """Read the day from ``Date`` (or ``created``), which may be a link such as ``[[2023-08-11]]``."""
    lowered = {name.casefold(): value for name, value in values.items()}
    for name in ("date", "created"):
        match = _DATE.search(str(lowered.get(name, "")))
        if match:
            with contextlib.suppress(ValueError):
                _ = dt.date.fromisoformat(match.group())
                return match.group()
    return ""


def _local_date(ns: int) -> str:
    """Return the local day of a file time as an ISO date."""
    try:
        return dt.datetime.fromtimestamp(ns / 1e9, tz=dt.UTC).astimezone().date().isoformat()
    except (OverflowError, ValueError, OSError):
        return "1970-01-01"


def is_racy(stat: FileStat) -> bool:
    """Return whether a file may be saved again with the same time; false also for a time far in the future."""
    return abs(time.time_ns() - stat.mtime_ns) < _RACY_NS


def has_hash(view: View, stat: FileStat, hash_: str) -> bool:
    """Return whether a file's content has a hash; false where it can't be read or the hash is empty."""
    if not hash_:
        return False
    try:
        return parser.content_hash(view.read_listed(stat)) == hash_
    except KnapError:
        return False


MIN_PARALLEL_FILES = 500
"""Files from which on a second process pays off; starting it takes as long as reading about 150 files."""
MIN_PARALLEL_TOUCHED = 5_000
"""The same for files that were just written: one's start takes as much processor time as reading 1,500 small notes."""

ReadBatch = list[FileRows]


def read_batches(
    view: View, batches: Sequence[Sequence[FileStat]], *, min_parallel: int = MIN_PARALLEL_FILES
) -> Iterator[ReadBatch]:
    """Yield the rows of each batch's files, in order.

    Args:
        view: The vault.
        batches: The status of the files, by batch.
        min_parallel: From how many files on a second process is used; the first batch is always read here, while that
            process starts.
    """
    if sum(map(len, batches)) < min_parallel or (os.cpu_count() or 1) < 2:
        batches_done = 0
    else:
        batches_done = yield from _read_in_process(view, batches)
    for stats in batches[batches_done:]:
        yield _read_batch(view, stats)


def _read_batch(view: View, files: Sequence[FileStat]) -> ReadBatch:
    return [documents.rows_of(*read_file(view, stat)) for stat in files]


def _read_in_process(view: View, batches: Sequence[Sequence[FileStat]]) -> Generator[ReadBatch, None, int]:
    """Read the first batch here and the others in another process; return how many were read."""
    # In a frozen program the executable isn't Python, so no module can be started with it.
    if not sys.executable or getattr(sys, "frozen", False):
        return 0
    # -P: never import a module from the current folder.
    # Not -m: records pickled by a module that runs as __main__ name classes that nobody else has.
    command = [sys.executable, "-P", "-c", f"from {__name__} import run_child_process; run_child_process()"]
    try:
        process = subprocess.Popen(  # noqa: S603 - this Python, constant arguments
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
    except OSError:
        return 0
    batches_done = 0
    with process:
        try:
            first, rest = _read_batch(view, batches[0]), batches[1:]
            is_sent = _send_batches(process, view, rest)
            batches_done += 1
            yield first
            while is_sent and process.stdout and batches_done < len(batches):
                batch = pickle.load(process.stdout)  # noqa: S301 - written by the process that was started above
                batches_done += 1
                yield [_join_rows(values) for values in batch]
        except (OSError, EOFError, ValueError, pickle.UnpicklingError):  # a stream that was cut short may raise any
            return batches_done
        finally:
            # Also where the caller stops early: the rest of the batches isn't wanted any more.
            process.kill()
    return batches_done


def _send_batches(process: subprocess.Popen[bytes], view: View, batches: Sequence[Sequence[FileStat]]) -> bool:
    """Send the batches to a process; return false where it has already ended."""
    try:
        if process.stdin is not None:
            # Without the view's links to the index, which can't be pickled and aren't needed there.
            pickle.dump((replace(view, alike=None, named=None), batches), process.stdin)
            process.stdin.close()
    except OSError:
        return False
    return True


def _split_rows(rows: FileRows) -> tuple[object, ...]:
    """Return a file's rows without classes of our own, whose many objects would take ten times as long to pickle."""
    return (*rows[:-2], list(map(tuple, rows.chunks)), rows.problems)


def _join_rows(values: tuple[Any, ...]) -> FileRows:
    """Return the rows that `_split_rows` took apart."""
    rows = FileRows(*values)
    return rows._replace(chunks=list(map(Chunk._make, rows.chunks)))


def run_child_process() -> None:
    """Read the batches given on standard input, and write their rows to standard output."""
    view, batches = pickle.load(sys.stdin.buffer)  # noqa: S301 - written by the process that started this one
    # Outlines hold no cycles, and looking for some takes a tenth of the time.
    gc.disable()
    for stats in batches:
        pickle.dump(list(map(_split_rows, _read_batch(view, stats))), sys.stdout.buffer, pickle.HIGHEST_PROTOCOL)
        sys.stdout.buffer.flush()

"""Describe files as the index stores them."""

from __future__ import annotations

import datetime as dt
import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

from knapper.jsontypes import JSONValue
from knapper.vault import links, paths
from knapper.vault.paths import NotePath
from knapper.vault.source import Link, Outline, Problem, Tag
from knapper.vault.walk import FileStat

if TYPE_CHECKING:
    from knapper.vault.parser import Note


_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
HEADING_SEPARATOR = "\x1f"
"""Separates the headings of a stored heading path; no heading contains it."""
_MAX_VALUE_CHARS = 1_000
"""Characters of a property's text that filters compare."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRecord:
    """A file as the index stores it, without its chunks."""

    stat: FileStat
    hash: str
    """Empty for attachments, which aren't read."""
    title: str
    aliases: tuple[str, ...]
    names: tuple[str, ...]
    """Other names of the note: its first heading, where that is of level 1, and the property ``title``."""
    headings: tuple[tuple[int, str, int], ...]
    """Level, title, line."""
    created: str
    """ISO date."""
    modified: str
    properties: Mapping[str, JSONValue]
    tags: tuple[Tag, ...]
    links: tuple[Link, ...]
    problems: tuple[Problem, ...]
    racy: bool
    """The file was saved so shortly before it was read that its time may not change at the next save."""
    failed: bool = False
    """Reading the file failed."""

    @property
    def path(self) -> NotePath:
        """Return the file's path."""
        return self.stat.path


@dataclass(frozen=True, slots=True, kw_only=True)
class FileState:
    """A file's state on disk when it was indexed."""

    size: int
    mtime_ns: int
    racy: bool
    ctime_ns: int = 0
    inode: int = 0
    target: str = ""
    """Of a symbolic link; empty for other files."""
    failed_ns: int = 0
    """Time of the last change, permissions included, before reading failed; 0 where it was read."""

    def fits(self, stat: FileStat) -> bool:
        """Return whether a file has the size, time and target that it had when it was indexed."""
        known = (self.size, self.mtime_ns, self.target)
        return known == (stat.size, stat.mtime_ns, stat.target or "")

    def is_doubtful(self, stat: FileStat) -> bool:
        """Return whether a file that fits may still have been saved since."""
        if stat.kind == "attachment":
            return False
        # Inodes count on Windows only, where no time changes with every save: many network disks number files anew.
        was_replaced = sys.platform == "win32" and self.inode != stored_inode(stat.inode)
        return self.racy or self.ctime_ns != stat.ctime_ns or was_replaced or self.failed_ns not in {0, stat.ctime_ns}


def stored_inode(inode: int) -> int:
    """Return an inode as a number that SQLite can store: Windows has ids of 128 bits."""
    return inode & 0x7FFF_FFFF_FFFF_FFFF


def link_key(target: str) -> str:
    """Return the key that links and files are matched by: the folded last part of a path without ``.md``."""
    return links.lookup_key(target.replace("\\", "/").strip().rstrip("/").rsplit("/", 1)[-1].strip())


def link_keys(name_key: str) -> tuple[str, str]:
    """Return the keys of links that may mean a file of a name: a link ``x.md`` may also mean ``x.md.md``."""
    return name_key, name_key.removesuffix(".md")


def describe_note(stat: FileStat, note: Note, *, racy: bool) -> FileRecord:
    """Describe a note, canvas or base from its outline."""
    outline = note.outline
    values = outline.frontmatter.values if outline.frontmatter else {}
    return FileRecord(
        stat=stat,
        hash=note.hash,
        title=_title_of(stat),
        aliases=_read_aliases(values),
        names=_read_names(values, outline),
        headings=tuple((s.level, s.title, s.line) for s in outline.sections if s.level),
        created=_date_in_properties(values) or _date_on_disk(stat),
        modified=local_date(stat.mtime_ns),
        properties=values,
        tags=outline.tags,
        links=outline.links,
        problems=outline.problems,
        racy=racy,
    )


def describe_attachment(stat: FileStat, problems: tuple[Problem, ...] = ()) -> FileRecord:
    """Describe a file that is listed but not read; *problems* give the reason where it should have been read."""
    return FileRecord(
        stat=stat,
        hash="",
        title=_title_of(stat),
        aliases=(),
        names=(),
        headings=(),
        created=_date_on_disk(stat),
        modified=local_date(stat.mtime_ns),
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


def chunk_digest(kind: str, note: NotePath | str, headings: str, text: str) -> bytes:
    """Hash what is embedded and shown of a chunk; the parts are hashed with their lengths, so that they stay apart.

    Args:
        kind: The chunk's.
        note: The path of its note, of which only the title counts, so that a moved note keeps its vectors.
        headings: Its heading path, joined as it is stored.
        text: Its text.
    """
    parts = (kind, paths.stem(note), headings, text)
    joined = "".join(f"{len(part)}:{part}" for part in parts)
    return blake2b(joined.encode(errors="surrogatepass"), digest_size=16).digest()


def property_rows(properties: Mapping[str, JSONValue]) -> Iterator[tuple[str, str, str, str | None, float | None]]:
    """Return rows of key, name, shape, text and number; a list gives one an element, an empty list one of None."""
    for name, value in properties.items():
        key = paths.name_key(name)
        shape = "list" if isinstance(value, list) else "object" if isinstance(value, dict) else "scalar"
        for element in (value or [None]) if isinstance(value, list) else [value]:
            yield key, name, shape, None if element is None else fold_value(element), _sort_number(element)


def fold_value(value: JSONValue) -> str:
    """Return a property's value as the folded text that filters compare."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return paths.name_key(text[:_MAX_VALUE_CHARS])


def _sort_number(value: JSONValue) -> float | None:
    """Return the number that a value is sorted by, or None; a number too large for the index is sorted as text."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _date_on_disk(stat: FileStat) -> str:
    """Return the day when a file was created, at the latest that of its last change."""
    return local_date(min(stat.born_ns or stat.mtime_ns, stat.mtime_ns))


def _read_aliases(values: Mapping[str, JSONValue]) -> tuple[str, ...]:
    aliases: list[str] = []
    for name in ("aliases", "alias"):
        value = next((v for k, v in values.items() if k.casefold() == name), None)
        if isinstance(value, str):
            aliases.extend(part.strip() for part in value.split(","))
        elif isinstance(value, list):
            aliases.extend(str(part).strip() for part in value if isinstance(part, str | int | float))
    return tuple(dict.fromkeys(alias for alias in aliases if alias))


def _read_names(values: Mapping[str, JSONValue], outline: Outline) -> tuple[str, ...]:
    first_section = next((section for section in outline.sections if section.level), None)
    title = next((value for name, value in values.items() if name.casefold() == "title"), None)
    names = [title.strip()] if isinstance(title, str) else []
    if first_section is not None and first_section.level == 1:
        names.append(first_section.title)
    return tuple(dict.fromkeys(name for name in names if name))


def _date_in_properties(values: Mapping[str, JSONValue]) -> str:
    """Read the day from ``Date`` (or ``created``), which may be a link such as ``[[2023-08-11]]``."""
    lowered = {name.casefold(): value for name, value in values.items()}
    for name in ("date", "created"):
        match = _DATE.search(str(lowered.get(name, "")))
        if match and _is_date(match.group()):
            return match.group()
    return ""


def _is_date(text: str) -> bool:
    try:
        dt.date.fromisoformat(text)
    except ValueError:
        return False
    return True


def local_date(ns: int) -> str:
    """Return the local day of a file time as an ISO date."""
    try:
        return dt.datetime.fromtimestamp(ns / 1e9, tz=dt.UTC).astimezone().date().isoformat()
    except (OverflowError, ValueError, OSError):
        return "1970-01-01"

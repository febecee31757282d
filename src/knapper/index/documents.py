"""Describe files as the index stores them, digest their rows, and restrict a query to some of them."""

from __future__ import annotations

import json
import sqlite3
import sys
import threading
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, Generic, Literal, NamedTuple, TypeVar

from knapper.index import database
from knapper.index.database import state_of
from knapper.index.tokenizer import segment
from knapper.jsontypes import JSONValue
from knapper.system.arrays import np
from knapper.vault import paths
from knapper.vault.access import Policy
from knapper.vault.paths import NotePath
from knapper.vault.source import Link, Problem, Tag
from knapper.vault.walk import FileStat, IgnoreRules

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
    return paths.lookup_key(target.replace("\\", "/").strip().rstrip("/").rsplit("/", 1)[-1].strip())


def link_keys(name_key: str) -> tuple[str, str]:
    """Return the keys of links that may mean a file of a name: a link ``x.md`` may also mean ``x.md.md``."""
    return name_key, name_key.removesuffix(".md")


ChunkKind = Literal["text", "list", "table", "code", "quote", "frontmatter", "canvas", "log"]
"""``log`` is the program's log of its own work, which is found only on request."""


class Chunk(NamedTuple):
    r"""A part of one section, as it is indexed.

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
    """16-byte hash of all that is embedded; a vector is reused for an equal one."""


class FileRows(NamedTuple):
    """The rows of a file as plain values, but for its id: what one process hands to another, and to SQLite."""

    path: str
    title: str
    hash: str
    is_named: bool
    """Whether its names are indexed as words; those of an attachment aren't."""
    times: tuple[str | int, ...]
    """The values of `TIME_COLUMNS`."""
    content: tuple[str | int, ...]
    """The values of `CONTENT_COLUMNS`."""
    names: tuple[str, str, str, str]
    """The indexed texts of title, aliases and headings, and all names as they are."""
    links: Sequence[tuple[str, str, str, str, str, str | None, int, str]]
    tags: Sequence[tuple[str, str, int]]
    properties: Sequence[tuple[str, str, str, str | None, float | None]]
    aliases: Sequence[tuple[str, str]]
    headings: Sequence[tuple[int, str, int]]
    chunks: Sequence[Chunk]
    problems: Sequence[str]
    """A message each."""


TIME_COLUMNS: Final = ("target", "mtime_ns", "ctime_ns", "inode", "racy", "created", "modified")
"""Columns of a file that alone may change where its content doesn't."""
CONTENT_COLUMNS: Final = (
    *("path_key", "name_key", "folder_key", "kind", "title", "size", "failed_ns", "hash", "properties", "problems"),
    "title_row",
)
_PENDING_EDIT_TAG = "ai_edit"
"""The tag below each pending edit, as `knapper.vault.pending` reads it."""


_DUMP_JSON: Final = json.JSONEncoder(ensure_ascii=False).encode
"""`json.dumps` makes an encoder for each text."""


def rows_of(record: FileRecord, chunks: Sequence[Chunk]) -> FileRows:
    """Return the rows of a file and its chunks, which are in order of position."""
    # Of pending edits the tag is a word to index, since the chunks hold the text without them.
    pending = (_PENDING_EDIT_TAG,) if any(tag.name == _PENDING_EDIT_TAG for tag in record.tags) else ()
    stat = record.stat
    # The indexed texts are stored, too, as a later removal needs them.
    names = (
        segment(record.title),
        segment("\n".join((*record.aliases, *record.names))),
        segment("\n".join((*(title for _, title, _ in record.headings), *pending))),
        "\n".join((record.title, *record.aliases, *record.names)),
    )
    problems = _DUMP_JSON([asdict(problem) for problem in record.problems])
    return FileRows(
        path=str(record.path),
        title=str(record.title),
        hash=record.hash,
        is_named=stat.kind != "attachment",
        times=(
            *(str(stat.target or ""), stat.mtime_ns, stat.ctime_ns, stored_inode(stat.inode), int(record.racy)),
            *(record.created, record.modified),
        ),
        content=(
            *(paths.name_key(record.path), link_key(record.path), paths.name_key(paths.parent_folder(record.path))),
            *(stat.kind, str(record.title), stat.size, stat.ctime_ns if record.failed else 0, record.hash),
            *(_DUMP_JSON(record.properties), problems, _DUMP_JSON(names)),
        ),
        names=names,
        links=[
            (
                *(k.kind, k.target, "" if k.kind == "external" else link_key(k.target), "#".join(k.headings)),
                *(k.block, k.alias, k.line, k.key),
            )
            for k in record.links
        ],
        tags=[(paths.name_key(tag.name), tag.name, tag.line) for tag in record.tags],
        properties=list(property_rows(record.properties)),
        aliases=[(alias, paths.name_key(alias)) for alias in record.aliases],
        headings=record.headings,
        chunks=chunks,
        problems=[problem.message for problem in record.problems],
    )


def chunk_digest(kind: str, title: str, headings: str, text: str) -> bytes:
    """Hash what is embedded and shown of a chunk; the parts are hashed with their lengths, so that they stay apart.

    Args:
        kind: The chunk's.
        title: Its note's path without folders and suffix, so that a moved note keeps its vectors.
        headings: Its heading path, joined as it is stored.
        text: Its text.
    """
    joined = f"{len(kind)}:{kind}{len(title)}:{title}{len(headings)}:{headings}{len(text)}:{text}"
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


def damage_error(what: str) -> sqlite3.DatabaseError:
    """Build the error that SQLite itself raises for a damaged file."""
    error = sqlite3.DatabaseError(f"database disk image is malformed: {what}")
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    return error


def _joined(*columns: str) -> str:
    """Return the SQL of a row's values as one text; numbers and texts alone, which every SQLite writes alike."""
    return " || char(31) || ".join(columns)


def _listed(table: str, condition: str, *columns: str) -> str:
    """Return the SQL of a file's rows of a table as one text."""
    rows = f"SELECT {_joined(*columns)} AS row FROM {table} WHERE {condition} ORDER BY rowid"
    return f"(SELECT group_concat(row, char(30)) FROM ({rows}))"


_OF_FILE: Final = "file_id = ?1"
_ROWS_SQL: Final = "SELECT {} FROM files WHERE id = ?1".format(
    ", ".join(
        (
            _joined("path", "target", "path_key", "name_key", "folder_key", "kind", "title"),
            _joined("hash", "created", "modified", "properties", "problems", "title_row"),
            _listed(
                "links",
                _OF_FILE,
                *("kind", "target", "target_key", "headings", "block", "coalesce(alias, char(29))", "line", "key"),
            ),
            _listed("tags", _OF_FILE, "key", "name", "line"),
            _listed("properties", _OF_FILE, "key", "name", "shape", "coalesce(item, char(29))"),
            _listed("aliases", _OF_FILE, "alias", "key"),
            _listed("headings", _OF_FILE, "level", "title", "line"),
            _listed(
                "chunks",
                f"id >= ?1 << {database.CHUNK_BITS} AND id < (?1 + 1) << {database.CHUNK_BITS}",
                *("id", "position", "kind", "heading", "start", "stop", "start_line", "end_line", "hex(digest)"),
            ),
        )
    )
)
"""Selects what answers show of a file; its size and times are compared with the disk at each refresh."""


def vector_checksum(chunk_id: int, model: str, vector: bytes) -> int:
    """Return the checksum of a chunk's vector; with another model's name it would not be found any more."""
    return zlib.crc32(vector, zlib.crc32(model.encode(), chunk_id & 0xFFFFFFFF))


def store_rows_digest(connection: sqlite3.Connection, file_id: int) -> None:
    """Store the digest of a file's rows, which were just written in the same transaction."""
    connection.execute("UPDATE files SET rows_digest = ? WHERE id = ?", (digest_rows(connection, file_id), file_id))


def digest_rows(connection: sqlite3.Connection, file_id: int) -> bytes:
    """Return the digest of what answers show of a file."""
    values = connection.execute(_ROWS_SQL, (file_id,)).fetchone()
    return _digest_texts(value or "" for value in values)


def digest_rows_of(rows: FileRows, chunk_ids: Sequence[int]) -> bytes:
    """Return the same digest of rows before they are written; *chunk_ids* are those of the chunks, in their order."""
    target, *_, created, modified = rows.times
    path_key, name_key, folder_key, kind, title, _, _, hash_, *texts = rows.content
    chunks = sorted(zip(chunk_ids, enumerate(rows.chunks), strict=True))
    rows_by_table: tuple[Iterable[str], ...] = (
        ["\x1f".join(map(str, (rows.path, target, path_key, name_key, folder_key, kind, title)))],
        ["\x1f".join(map(str, (hash_, created, modified, *texts)))],
        # Formatted one by one: joining values that are made to texts takes twice as long.
        [
            f"{kind}\x1f{target}\x1f{key}\x1f{headings}\x1f{block}\x1f{_or_null(alias)}\x1f{line}\x1f{place}"
            for kind, target, key, headings, block, alias, line, place in rows.links
        ],
        [f"{key}\x1f{name}\x1f{line}" for key, name, line in rows.tags],
        [f"{key}\x1f{name}\x1f{shape}\x1f{_or_null(item)}" for key, name, shape, item, _ in rows.properties],
        [f"{alias}\x1f{key}" for alias, key in rows.aliases],
        [f"{level}\x1f{title}\x1f{line}" for level, title, line in rows.headings],
        [
            f"{i}\x1f{n}\x1f{c.kind}\x1f{c.heading}\x1f{c.start}\x1f{c.stop}"
            f"\x1f{c.start_line}\x1f{c.end_line}\x1f{c.digest.hex().upper()}"
            for i, (n, c) in chunks
        ],
    )
    return _digest_texts(map("\x1e".join, rows_by_table))


def _or_null(text: str | None) -> str:
    return "\x1d" if text is None else text


def _digest_texts(texts: Iterable[str]) -> bytes:
    return blake2b(b"\0".join([text.encode() for text in texts]), digest_size=8).digest()


def check_digests(rows: Iterable[tuple[str, str, str, str, bytes]]) -> None:
    """Compare chunks with their hashes, so that no text is shown that isn't the note's.

    Args:
        rows: The note, the chunk's kind, its joined headings, its text and its hash.

    Raises:
        sqlite3.DatabaseError: A chunk isn't what was stored.
    """
    for note, kind, headings, text, digest in rows:
        if chunk_digest(kind, paths.stem(note), headings, text) != digest:
            raise damage_error("a text isn't the one that was stored")


_Value = TypeVar("_Value")


class StateCache(Generic[_Value]):
    """A thread-safe cache of the latest few answers, each for one state of the index."""

    def __init__(self, max_entries: int) -> None:
        """Cache at most *max_entries* answers."""
        self._most = max_entries
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[str, int, str], _Value] = OrderedDict()

    def get(self, connection: sqlite3.Connection, name: str, compute: Callable[[], _Value]) -> _Value:
        """Return the cached value for the state that a connection sees, or compute it."""
        key = (*state_of(connection), name)
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key]
        value = compute()
        with self._lock:
            self._known[key] = value
            while len(self._known) > self._most:
                self._known.popitem(last=False)
        return value


_NOT_RESTRICTIONS: Final = frozenset({"include_log", "policy", "ignore"})
PropertyOp = Literal["contains", "equals", "exists", "is", "missing", "not_contains", "not_equals"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertyTest:
    """A test of one property; names and values are compared without case."""

    name: str
    op: PropertyOp = "exists"
    value: str = ""
    """For ``equals``, a whole value or a list's element; for ``is``, the whole property or a list's only element; for
    ``contains``, a list's element or a part of a text, with or without a link's brackets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """A restriction to some notes; empty fields restrict nothing, all others must match.

    ``Filter(folders=("Projects",), tags=("idea",))`` keeps notes below it with the tag ``#idea`` or ``#idea/x``.
    """

    folders: tuple[str, ...] = ()
    """Any of these folders, with all below them."""
    exclude_folders: tuple[str, ...] = ()
    directly_in: tuple[str, ...] = ()
    """Any of these folders, without those below."""
    paths: tuple[str, ...] = ()
    """Any of these files."""
    exclude_paths: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    """All of these, or tags nested below them."""
    exclude_tags: tuple[str, ...] = ()
    properties: tuple[PropertyTest, ...] = ()
    modified_from: str = ""
    """ISO date, inclusive, like the other three."""
    modified_to: str = ""
    created_from: str = ""
    created_to: str = ""
    kinds: tuple[str, ...] = ()
    """Kinds of file: note, canvas, base, attachment."""
    include_log: bool = False
    """Whether passages of the program's own log are found, too."""
    policy: Policy | None = None
    """The client's policy; what it hides doesn't exist for the query."""
    ignore: IgnoreRules | None = None
    """The vault's ignore rules, where the index was built with other ones."""

    @property
    def trivial(self) -> bool:
        """Return whether every file matches."""
        open_policy = self.policy is None or self.policy.sees_all
        return open_policy and self.ignore is None and not any(self._restrictions())

    @property
    def notes_meant(self) -> str:
        """Return how a remark calls the notes that it says something of; the kind of file is no filter of a note."""
        is_narrow = any(getattr(self, name) for name in _RESTRICTIONS if name != "kinds")
        return "note that passes the filters" if is_narrow else "note"

    @property
    def cache_key(self) -> str:
        """Return a key for caches, equal for equal filters."""
        policy = self.policy.fingerprint if self.policy else ""
        restrictions = map(repr, self._restrictions())
        return "|".join([*restrictions, policy, self.ignore.fingerprint if self.ignore else ""])

    def _restrictions(self) -> list[object]:
        return [getattr(self, name) for name in _RESTRICTIONS]


EVERYTHING: Final = Filter()
"""Restricts nothing; what asks for all shares it, as making another takes as long as a look-up."""
_RESTRICTIONS: Final = tuple(one.name for one in fields(Filter) if one.name not in _NOT_RESTRICTIONS)
"""Looked up once, as each search asks several times whether its filter restricts anything."""
SqlCondition = tuple[str, list[str]]
"""SQL about ``files f``, and its parameters."""

_DATE_CONDITIONS = (
    ("modified_from", "f.modified >= ?"),
    ("modified_to", "f.modified <= ?"),
    ("created_from", "f.created >= ?"),
    ("created_to", "f.created <= ?"),
)
# Uncorrelated, so that SQLite runs the subquery once and not for each file.
_FILES_WITH_PROPERTY = "SELECT p.file_id FROM properties p WHERE p.key = ?"
_OTHER_ELEMENTS = "SELECT 1 FROM properties q WHERE q.file_id = p.file_id AND q.key = p.key AND q.id != p.id"
_NEGATIVE_OPS = frozenset({"missing", "not_equals", "not_contains"})
_GRAM_CHARS = 3
"""Characters that a part needs for a look-up in the trigram index."""


def build_condition(where: Filter) -> SqlCondition:
    """Return the SQL condition on ``files f`` and its parameters; policy and ignore rules aren't part of it."""
    tests: list[SqlCondition] = []
    if where.folders:
        below = [_below_folder(folder) for folder in where.folders]
        tests.append((f"({' OR '.join(sql for sql, _ in below)})", [p for _, parameters in below for p in parameters]))
    tests.extend(_negate(_below_folder(folder)) for folder in where.exclude_folders)
    if where.directly_in:
        tests.append(_in_values("f.folder_key", [folder_key(folder) for folder in where.directly_in]))
    if where.paths:
        tests.append(_in_values("f.path_key", [paths.name_key(path) for path in where.paths]))
    if where.exclude_paths:
        tests.append(_negate(_in_values("f.path_key", [paths.name_key(path) for path in where.exclude_paths])))
    if where.kinds:
        # The unary plus keeps SQLite from using the index of kinds, which would scan all files of a kind.
        column = "+f.kind" if is_selective(where) else "f.kind"
        tests.append((f"{column} IN ({', '.join('?' * len(where.kinds))})", list(where.kinds)))
    tests.extend(_has_tag(tag) for tag in where.tags)
    tests.extend(_negate(_has_tag(tag)) for tag in where.exclude_tags)
    tests.extend(_matches_property(test) for test in where.properties)
    tests.extend((sql, [str(getattr(where, name))]) for name, sql in _DATE_CONDITIONS if getattr(where, name))
    condition = " AND ".join(sql for sql, _ in tests) or "1"
    return condition, [parameter for _, parameters in tests for parameter in parameters]


def is_selective(where: Filter) -> bool:
    """Return whether a test with a database index of its own leaves few files, so that it should run first."""
    positive = any(test.op not in _NEGATIVE_OPS for test in where.properties)
    return positive or bool(where.folders or where.directly_in or where.tags or where.paths)


def folder_key(folder: str) -> str:
    """Fold a folder for comparisons."""
    return paths.name_key(folder).strip("/")


def tag_key(tag: str) -> str:
    """Fold a tag for comparisons."""
    return paths.name_key(tag).strip().removeprefix("#").rstrip("/")


def _below_folder(folder: str) -> SqlCondition:
    key = folder_key(folder)
    if not key:
        return "1", []
    sql = "(f.folder_key = ? OR (f.folder_key >= ? AND f.folder_key < ?))"
    # "0" comes right after "/"
    return sql, [key, f"{key}/", f"{key}0"]


def _has_tag(tag: str) -> SqlCondition:
    key = tag_key(tag)
    sql = "f.id IN (SELECT t.file_id FROM tags t WHERE t.key = ? OR (t.key >= ? AND t.key < ?))"
    return sql, [key, f"{key}/", f"{key}0"]


def _matches_property(test: PropertyTest) -> SqlCondition:
    name, value = paths.name_key(test.name), fold_value(test.value)
    not_in = "NOT IN" if test.op in _NEGATIVE_OPS else "IN"
    match test.op:
        case "exists" | "missing":
            sql, parameters = _FILES_WITH_PROPERTY, [name]
        case "equals" | "not_equals":
            sql, parameters = f"{_FILES_WITH_PROPERTY} AND p.item = ?", [name, value]
        case "is":
            sql, parameters = f"{_FILES_WITH_PROPERTY} AND p.item = ? AND NOT EXISTS ({_OTHER_ELEMENTS})", [name, value]
        case "contains" | "not_contains":
            by_element = f"{_FILES_WITH_PROPERTY} AND p.item IN (?, ?)"
            if len(value) < _GRAM_CHARS or "\0" in value:
                by_part = f"{_FILES_WITH_PROPERTY} AND p.shape != 'list' AND instr(p.item, ?)"
                part_parameters = [name, value]
            else:
                quoted = value.replace('"', '""')
                grams = "SELECT rowid FROM property_grams WHERE property_grams MATCH ?"
                by_part = (
                    f"SELECT p.file_id FROM properties p WHERE p.id IN ({grams}) AND +p.key = ? AND instr(p.item, ?)"
                )
                part_parameters = [f'"{quoted}"', name, value]
            sql = f"{by_element} UNION ALL {by_part}"
            parameters = [name, value, f"[[{value}]]", *part_parameters]
    return f"f.id {not_in} ({sql})", parameters


def _in_values(column: str, values: Sequence[str]) -> SqlCondition:
    return f"{column} IN (SELECT value FROM json_each(?))", [json.dumps(values, ensure_ascii=False)]


def _negate(test: SqlCondition) -> SqlCondition:
    return f"NOT ({test[0]})", test[1]


VISIBLE_SQL: Final = "knap_shows(f.path, f.target)"
"""The condition on ``files f``; `VisibilityCache.register` defines its function."""
_MAX_CACHED_PATHS: Final = 300_000
"""Cached answers; the visibility of a path depends only on the rules."""


class VisibilityCache:
    """A thread-safe cache of which paths each policy shows."""

    def __init__(self) -> None:
        """Start with an empty cache."""
        self._known: dict[str, dict[str, bool]] = {}

    def register(self, connection: sqlite3.Connection, where: Filter) -> str:
        """Register the client's visibility as an SQL function; return the condition, empty where all is visible."""
        if sees_all(where):
            return ""
        connection.create_function("knap_shows", 2, self.predicate(where))
        return VISIBLE_SQL

    def predicate(self, where: Filter) -> Callable[[str, str], bool]:
        """Return a function that tells from a file's path and link target whether the client may see it."""
        if sees_all(where):
            return lambda _path, _target: True
        rules = [rule.fingerprint for rule in (where.policy, where.ignore) if rule is not None]
        visible_paths = self._known.setdefault("|".join(rules), {})
        if len(visible_paths) > _MAX_CACHED_PATHS:
            visible_paths.clear()

        def shows(path: str, target: str) -> bool:
            return _is_visible(visible_paths, where, path) and (not target or _is_visible(visible_paths, where, target))

        return shows


def sees_all(where: Filter) -> bool:
    """Return whether the client may see every file of the index."""
    return (where.policy is None or where.policy.sees_all) and where.ignore is None


def _is_visible(visible_paths: dict[str, bool], where: Filter, path: str) -> bool:
    is_shown = visible_paths.get(path)
    if is_shown is None:
        hidden = where.ignore is not None and where.ignore.hides(path)
        is_shown = not hidden and (where.policy is None or where.policy.visible(NotePath(path)))
        visible_paths[path] = is_shown
    return is_shown


_MAX_CACHED_MASKS = 32


class FilterMasks:
    """Masks over file ids by filter, cached while the index stays the same."""

    def __init__(self) -> None:
        """Start with an empty cache."""
        self.visibility = VisibilityCache()
        self._masks: StateCache[NDArray[np.bool_]] = StateCache(_MAX_CACHED_MASKS)

    def mask(self, connection: sqlite3.Connection, where: Filter) -> NDArray[np.bool_] | None:
        """Return a mask by file id of the matching files; None where all match."""
        if where is EVERYTHING or where.trivial:
            return None

        def compute() -> NDArray[np.bool_]:
            condition, parameters = build_condition(where)
            size = connection.execute("SELECT COALESCE(MAX(id), 0) + 1 FROM files").fetchone()[0]
            mask = np.zeros(size, np.bool_)
            rows = connection.execute(f"SELECT f.id, f.path, f.target FROM files f WHERE {condition}", parameters)
            shows = self.visibility.predicate(where)
            mask[[i for i, path, target in rows if shows(path, target)]] = True
            return mask

        return self._masks.get(connection, where.cache_key, compute)

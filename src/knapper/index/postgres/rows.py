"""What a note becomes in the database: its record and its chunks as JSON, and the words of each chunk in order."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import blake2b, sha256
from typing import TYPE_CHECKING, Any, Final, cast

from knapper.index import database
from knapper.index.documents import HEADING_SEPARATOR, FileRecord
from knapper.index.postgres.schema import FORMAT
from knapper.index.store import ChunkRow
from knapper.index.tokenizer import TOKENIZER, segment
from knapper.index.words.fts5 import CHUNKS
from knapper.system.arrays import np
from knapper.vault.paths import NotePath
from knapper.vault.source import Link, Problem, Tag
from knapper.vault.walk import FileStat

if TYPE_CHECKING:
    from numpy.typing import NDArray


GAP: Final = 0
"""Stands between the columns of a chunk's words, so that no phrase reaches from one into the next."""
NUMBER_BYTES: Final = 2
"""Of a stored vector, in half precision."""
_MAX_TERM_BYTES: Final = 400
"""PostgreSQL indexes texts of up to 2,700 bytes, and FTS5 has words of 32,000."""
_STATE_COLUMNS: Final = (
    "target, kind, title, size, mtime_ns, hash, created, modified, properties, problems, title_row, failed_ns"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """A file of the local index that may have to be published."""

    id: int
    path: NotePath
    state: bytes
    """A digest of all that its rows are made of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceChunk:
    """A chunk with what is stored of it."""

    kind: str
    position: int
    row: str
    """As JSON, since PostgreSQL's texts can't hold every character that a note can."""
    columns: tuple[str, str, str]
    """The texts of the full-text table, in the order of its columns."""
    vector: bytes | None


def list_files(connection: sqlite3.Connection, *, only: Collection[int] | None = None) -> Iterator[SourceFile]:
    """Yield the files of the local index with their states: all, or those of the ids that it holds."""
    sql, parameters = f"SELECT id, path, {_STATE_COLUMNS} FROM files", tuple[str, ...]()
    if only is not None:
        sql, parameters = f"{sql} WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(sorted(only)),)
    for i, path, *rest in connection.execute(f"{sql} ORDER BY id", parameters):
        raw = json.dumps([FORMAT, path, *rest], ensure_ascii=False)
        yield SourceFile(
            id=i, path=NotePath(path), state=blake2b(raw.encode(errors="surrogatepass"), digest_size=16).digest()
        )


def read_record(connection: sqlite3.Connection, file_id: int) -> FileRecord:
    """Read what the local index has stored of a file, spans aside."""
    row = connection.execute(
        "SELECT path, target, kind, title, size, mtime_ns, ctime_ns, hash, created, modified, properties, problems,"
        " title_row, failed_ns FROM files WHERE id = ?",
        (file_id,),
    ).fetchone()
    path, target, kind, title, size, mtime_ns, ctime_ns, hash_, created, modified, properties, problems, *rest = row
    title_row, failed_ns = rest
    aliases = [
        str(value)
        for (value,) in connection.execute("SELECT alias FROM aliases WHERE file_id = ? ORDER BY rowid", (file_id,))
    ]
    headings = connection.execute(
        "SELECT level, title, line FROM headings WHERE file_id = ? ORDER BY rowid", (file_id,)
    )
    tags = connection.execute("SELECT name, line FROM tags WHERE file_id = ? ORDER BY rowid", (file_id,))
    links = connection.execute(
        "SELECT kind, target, headings, block, alias, line, key FROM links WHERE file_id = ? ORDER BY rowid", (file_id,)
    )
    return FileRecord(
        stat=FileStat(
            path=NotePath(path),
            kind=kind,
            size=size,
            mtime_ns=mtime_ns,
            ctime_ns=ctime_ns,
            inode=0,
            target=NotePath(target) if target else None,
        ),
        hash=hash_,
        title=title,
        aliases=tuple(aliases),
        names=_read_names(title_row, title, aliases),
        headings=tuple((int(level), str(text), int(line)) for level, text, line in headings),
        created=created,
        modified=modified,
        properties=json.loads(properties or "{}"),
        tags=tuple(Tag(name=name, start=0, stop=0, line=line, origin="text") for name, line in tags),
        links=tuple(
            _link([kind, target, headings.split("#") if headings else [], block, alias, line, key])
            for kind, target, headings, block, alias, line, key in links
        ),
        problems=tuple(Problem(**problem) for problem in json.loads(problems or "[]")),
        racy=False,
        failed=bool(failed_ns),
    )


def _read_names(title_row: str, title: str, aliases: Sequence[str]) -> tuple[str, ...]:
    """Return a note's other names, which are stored in one text behind its title and its aliases."""
    if not title_row:
        return ()
    joined = str(json.loads(title_row)[-1])
    rest = joined.removeprefix("\n".join((title, *aliases))).removeprefix("\n")
    return tuple(filter(None, rest.split("\n")))


def _link(values: Sequence[Any]) -> Link:
    kind, target, headings, block, alias, line, key = values
    return Link(
        kind=kind,
        target=target,
        headings=tuple(headings),
        block=block,
        alias=alias,
        start=0,
        stop=0,
        target_start=0,
        target_stop=0,
        line=line,
        key=key,
    )


def encode_record(record: FileRecord) -> str:
    """Return a record as JSON."""
    stat = record.stat
    values = {
        "stat": [stat.path, stat.kind, stat.size, stat.mtime_ns, stat.ctime_ns, stat.target],
        "hash": record.hash,
        "title": record.title,
        "aliases": record.aliases,
        "names": record.names,
        "headings": record.headings,
        "dates": [record.created, record.modified],
        "properties": record.properties,
        "tags": [[tag.name, tag.line] for tag in record.tags],
        "links": [[k.kind, k.target, k.headings, k.block, k.alias, k.line, k.key] for k in record.links],
        "problems": [asdict(problem) for problem in record.problems],
        "failed": record.failed,
    }
    return json.dumps(values)


def decode_record(text: str, file_id: int) -> FileRecord:
    """Return the record of a file; the inode of its status is the file's id in the database."""
    values = cast("dict[str, Any]", json.loads(text))
    path, kind, size, mtime_ns, ctime_ns, target = values["stat"]
    return FileRecord(
        stat=FileStat(
            path=NotePath(path),
            kind=kind,
            size=size,
            mtime_ns=mtime_ns,
            ctime_ns=ctime_ns,
            inode=file_id,
            target=NotePath(target) if target else None,
        ),
        hash=values["hash"],
        title=values["title"],
        aliases=tuple(values["aliases"]),
        names=tuple(values["names"]),
        headings=tuple((level, title, line) for level, title, line in values["headings"]),
        created=values["dates"][0],
        modified=values["dates"][1],
        properties=values["properties"],
        tags=tuple(Tag(name=name, start=0, stop=0, line=line, origin="text") for name, line in values["tags"]),
        links=tuple(map(_link, values["links"])),
        problems=tuple(Problem(**problem) for problem in values["problems"]),
        racy=False,
        failed=values["failed"],
    )


def read_chunks(connection: sqlite3.Connection, file_id: int, record: FileRecord, model: str) -> list[SourceChunk]:
    """Read a file's chunks with their vectors, in order."""
    rows = connection.execute(
        "SELECT c.position, c.kind, c.heading, c.path, c.start, c.stop, c.start_line, c.end_line, c.text, v.vector"
        " FROM chunks c LEFT JOIN vectors v ON v.chunk_id = c.id AND v.model = ?"
        " WHERE c.id >= ? AND c.id < ? ORDER BY c.position, c.id",
        (model, *database.chunk_range(file_id)),
    )
    return [
        SourceChunk(
            kind=kind,
            position=position,
            row=json.dumps([record.path, record.title, record.hash, kind, heading, path, *spans, text]),
            columns=(segment(record.title), segment(path), segment(text)),
            vector=vector,
        )
        for position, kind, heading, path, *spans, text, vector in rows
    ]


def decode_chunk(chunk_id: int, row: str) -> ChunkRow:
    """Return a chunk as a search reads it."""
    note, title, hash_, kind, heading, path, start, stop, start_line, end_line, text = json.loads(row)
    return ChunkRow(
        id=chunk_id,
        note=NotePath(note),
        title=title,
        hash=hash_,
        kind=kind,
        heading=heading,
        path=tuple(path.split(HEADING_SEPARATOR)) if path else (),
        start=start,
        stop=stop,
        start_line=start_line,
        end_line=end_line,
        text=text,
    )


def term_key(term: str) -> str:
    """Return what stands for a word in the database: the word, or the beginning of a very long one and its hash."""
    raw = term.encode(errors="replace")
    if len(raw) <= _MAX_TERM_BYTES:
        return raw.decode()
    return f"{term[: _MAX_TERM_BYTES // 8]}\x01{sha256(raw).hexdigest()}"


class ChunkTokenizer:
    """Splits chunks into the very words that the local index has of them, by SQLite's own tokenizer."""

    def __init__(self) -> None:
        """Make the table."""
        self._connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._connection.text_factory = partial(str, errors="replace")
        columns = ", ".join(CHUNKS.columns)
        self._connection.execute(
            f"CREATE VIRTUAL TABLE texts USING fts5({columns}, content='', tokenize=\"{TOKENIZER}\")"
        )
        self._connection.execute("CREATE VIRTUAL TABLE words USING fts5vocab(texts, instance)")

    def split(self, chunks: Sequence[SourceChunk]) -> Sequence[Mapping[str, Sequence[str]]]:
        """Return for each chunk its words in order, by column."""
        marks = ", ".join("?" * len(CHUNKS.columns))
        self._connection.execute("BEGIN")
        self._connection.executemany(
            f"INSERT INTO texts (rowid, {', '.join(CHUNKS.columns)}) VALUES (?, {marks})",
            ((number, *chunk.columns) for number, chunk in enumerate(chunks)),
        )
        words: list[dict[str, list[str]]] = [{column: list[str]() for column in CHUNKS.columns} for _ in chunks]
        for number, column, term in self._connection.execute("SELECT doc, col, term FROM words ORDER BY doc, offset"):
            words[int(number)][str(column)].append(term_key(str(term)))
        self._connection.execute("ROLLBACK")
        return words

    def close(self) -> None:
        """Close the table."""
        self._connection.close()


def weigh(tokens: Sequence[int]) -> Counter[int]:
    """Return how much each word of a chunk weighs, by the columns in which it stands."""
    weights: Counter[int] = Counter()
    columns = iter(CHUNKS.columns.values())
    weight = next(columns)
    for token in tokens:
        if token == GAP:
            weight = next(columns)
        else:
            weights[token] += weight
    return weights


def wire_vector(vector: bytes) -> bytes:
    """Return a stored vector as pgvector's binary form of a `halfvec`: two numbers, and the elements' bytes swapped."""
    surrogates = np.frombuffer(vector, "<f2")
    return len(surrogates).to_bytes(2, "big") + b"\0\0" + surrogates.astype(">f2").tobytes()


def read_vectors(wires: Sequence[bytes]) -> NDArray[np.float32]:
    """Return vectors from pgvector's binary form, one below the other."""
    if not wires:
        return np.empty((0, 0), np.float32)
    return np.stack([np.frombuffer(wire, ">f2", offset=4) for wire in wires]).astype(np.float32)

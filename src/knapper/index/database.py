"""The index's SQLite file: schema, connections per thread, transactions, and what notices a change from outside."""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self, cast

from knapper.errors import StorageError
from knapper.index.tokenizer import TOKENIZER, segment
from knapper.system import private
from knapper.system.private import Fingerprint


class Connection(sqlite3.Connection):
    """A SQLite connection that caches what the index says of itself while it reads a snapshot."""

    is_snapshot = False
    meta: Mapping[str, object] | None = None
    state: tuple[str, int] | None = None

    def __del__(self) -> None:
        """Close it with its last user."""
        with suppress(sqlite3.ProgrammingError):  # it was never opened, as its file couldn't be
            self.close()

    def begin_snapshot(self) -> None:
        """Begin a snapshot."""
        self.execute("BEGIN")
        self.is_snapshot, self.meta, self.state = True, None, None

    def end_snapshot(self) -> None:
        """End it."""
        self.is_snapshot, self.meta, self.state = False, None, None
        self.execute("ROLLBACK" if self.in_transaction else "SELECT 1")


def meta_of(connection: sqlite3.Connection) -> Mapping[str, object]:
    """Return what the index says of itself, by key; in a snapshot it is read once."""
    snapshot = connection if isinstance(connection, Connection) and connection.is_snapshot else None
    if snapshot is not None and snapshot.meta is not None:
        return snapshot.meta
    meta = dict(connection.execute("SELECT key, value FROM meta"))
    if snapshot is not None:
        snapshot.meta = meta
    return meta


def state_of(connection: sqlite3.Connection) -> tuple[str, int]:
    """Return the state that a connection sees: the index's id, and its number of written transactions."""
    if isinstance(connection, Connection) and connection.state is not None:
        return connection.state
    meta = meta_of(connection)
    state = str(meta["uid"]), int(str(meta["generation"]))
    if isinstance(connection, Connection) and connection.is_snapshot:
        connection.state = state
    return state


def generation_of(connection: sqlite3.Connection) -> int:
    """Return the number of written transactions, as *connection* sees it."""
    return int(connection.execute("SELECT value FROM meta WHERE key = 'generation'").fetchone()[0])


def removed_since(connection: sqlite3.Connection) -> int:
    """Return the generation from which on removals and changed files are recorded."""
    row = connection.execute("SELECT value FROM meta WHERE key = 'removed_since'").fetchone()
    return int(row[0]) if row else 0


INDEX_FILE = "index.db"
POSTINGS_PREFIX = "postings-"
"""Start of the names of files of postings beside it; see `knapper.index.words.postings`."""
VECTORS_PREFIX = "vectors-"
"""Start of the names of files of vectors beside it; see `knapper.index.vectors`."""
SCHEMA_VERSION = 12
"""Version of the schema; an index of another version is dropped and rebuilt."""

CHUNK_BITS = 20
"""Bits of a chunk id that number the chunks of one file; ids are never reused."""

MAX_CHUNKS_PER_FILE = 1 << CHUNK_BITS

TABLES_SQL = f"""
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE files (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  path TEXT NOT NULL UNIQUE,
  target TEXT NOT NULL,
  path_key TEXT NOT NULL,
  name_key TEXT NOT NULL,
  folder_key TEXT NOT NULL,
  kind TEXT NOT NULL,
  title TEXT NOT NULL,
  size INTEGER NOT NULL,
  mtime_ns INTEGER NOT NULL,
  ctime_ns INTEGER NOT NULL,
  inode INTEGER NOT NULL,
  racy INTEGER NOT NULL,
  failed_ns INTEGER NOT NULL,
  hash TEXT NOT NULL,
  created TEXT NOT NULL,
  modified TEXT NOT NULL,
  properties TEXT NOT NULL,
  problems TEXT NOT NULL,
  title_row TEXT NOT NULL,
  next_chunk INTEGER NOT NULL,
  rows_digest BLOB NOT NULL DEFAULT x''
);
CREATE INDEX files_path_key ON files (path_key);
CREATE INDEX files_name_key ON files (name_key);
CREATE INDEX files_folder ON files (folder_key, kind, path);
CREATE INDEX files_kind ON files (kind, path);
CREATE INDEX files_title ON files (kind, name_key, path);
CREATE INDEX files_saved ON files (kind, mtime_ns);
CREATE INDEX files_modified ON files (kind, modified, path);
CREATE INDEX files_created ON files (kind, created, path);
CREATE INDEX files_problems ON files (path) WHERE problems != '[]';

CREATE TABLE chunks (
  id INTEGER PRIMARY KEY,
  position INTEGER NOT NULL,
  kind TEXT NOT NULL,
  heading TEXT NOT NULL,
  path TEXT NOT NULL,
  start INTEGER NOT NULL,
  stop INTEGER NOT NULL,
  start_line INTEGER NOT NULL,
  end_line INTEGER NOT NULL,
  digest BLOB NOT NULL,
  text TEXT NOT NULL
);
CREATE INDEX chunks_digest ON chunks (digest);
CREATE INDEX chunks_log ON chunks (id) WHERE kind = 'log';

CREATE TABLE vectors (
  chunk_id INTEGER PRIMARY KEY, generation INTEGER NOT NULL, model TEXT NOT NULL, vector BLOB NOT NULL,
  checksum INTEGER NOT NULL
);
CREATE INDEX vectors_generation ON vectors (generation);
CREATE TABLE waiting (chunk_id INTEGER PRIMARY KEY);
CREATE TABLE removed (generation INTEGER NOT NULL, chunk_id INTEGER NOT NULL);
CREATE INDEX removed_generation ON removed (generation);
CREATE TABLE changed_files (generation INTEGER NOT NULL, file_id INTEGER NOT NULL, name_key TEXT);
CREATE INDEX changed_files_generation ON changed_files (generation);

CREATE TABLE links (
  file_id INTEGER NOT NULL, kind TEXT NOT NULL, target TEXT NOT NULL, target_key TEXT NOT NULL,
  headings TEXT NOT NULL, block TEXT NOT NULL, alias TEXT, line INTEGER NOT NULL, key TEXT NOT NULL
);
CREATE INDEX links_file ON links (file_id);
CREATE INDEX links_target ON links (target_key);

CREATE TABLE tags (file_id INTEGER NOT NULL, key TEXT NOT NULL, name TEXT NOT NULL, line INTEGER NOT NULL);
CREATE INDEX tags_file ON tags (file_id);
CREATE INDEX tags_key ON tags (key, name, file_id);

CREATE TABLE properties (
  id INTEGER PRIMARY KEY, file_id INTEGER NOT NULL, key TEXT NOT NULL, name TEXT NOT NULL, shape TEXT NOT NULL,
  item TEXT, number REAL
);
CREATE INDEX properties_file ON properties (file_id, key);
CREATE INDEX properties_key ON properties (key, item, shape, file_id, number);

CREATE TABLE aliases (file_id INTEGER NOT NULL, alias TEXT NOT NULL, key TEXT NOT NULL);
CREATE INDEX aliases_file ON aliases (file_id);
CREATE INDEX aliases_key ON aliases (key);

CREATE TABLE headings (file_id INTEGER NOT NULL, level INTEGER NOT NULL, title TEXT NOT NULL, line INTEGER NOT NULL);
CREATE INDEX headings_file ON headings (file_id);

CREATE VIEW chunk_texts AS
  SELECT c.id AS id, knap_segment(f.title) AS title, knap_segment(c.path) AS heading, knap_segment(c.text) AS body
  FROM chunks c JOIN files f ON f.id = c.id >> {CHUNK_BITS};
CREATE VIEW title_texts AS
  SELECT id, knap_part(title_row, 0) AS title, knap_part(title_row, 1) AS aliases, knap_part(title_row, 2) AS headings,
    knap_part(title_row, 3) AS names
  FROM files WHERE title_row != '' AND kind != 'attachment';
CREATE VIEW property_texts AS SELECT id, item FROM properties WHERE shape != 'list' AND item IS NOT NULL;

CREATE VIRTUAL TABLE chunk_words USING fts5(
  title, heading, body, content='chunk_texts', content_rowid='id', tokenize="{TOKENIZER}"
);
CREATE VIRTUAL TABLE title_words USING fts5(
  title, aliases, headings, content='title_texts', content_rowid='id', tokenize="{TOKENIZER}"
);
CREATE VIRTUAL TABLE name_grams USING fts5(names, content='title_texts', content_rowid='id', tokenize='trigram');
CREATE VIRTUAL TABLE property_grams USING fts5(
  item, content='property_texts', content_rowid='id', columnsize=0, tokenize='trigram'
);

CREATE TABLE added_words (
  source TEXT NOT NULL, term TEXT NOT NULL, id INTEGER NOT NULL, weight INTEGER NOT NULL, words INTEGER NOT NULL,
  PRIMARY KEY (source, term, id)
) WITHOUT ROWID;
CREATE INDEX added_words_id ON added_words (source, id);
CREATE TABLE added_rows (
  source TEXT NOT NULL, id INTEGER NOT NULL, generation INTEGER NOT NULL, words INTEGER NOT NULL,
  PRIMARY KEY (source, id)
) WITHOUT ROWID;
CREATE TABLE dropped_rows (
  source TEXT NOT NULL, id INTEGER NOT NULL, generation INTEGER NOT NULL, PRIMARY KEY (source, id)
) WITHOUT ROWID;
"""

_BUFFERED_WORDS_BYTES = 16_000_000
"""Memory for the words of a transaction's chunks, some 3 MB; beyond it, 1 MB by itself, SQLite writes them apart."""

LOG_CHUNKS_SQL = "SELECT id FROM chunks WHERE kind = 'log'"
"""Selects the ids of log chunks, which have an index of their own."""

PER_FILE_TABLES = ("links", "tags", "properties", "aliases", "headings")
"""Tables with rows by ``file_id``; a file's rows are replaced as a whole."""


def file_of(chunk_id: int) -> int:
    """Return the id of the file that a chunk belongs to."""
    return chunk_id >> CHUNK_BITS


def chunk_range(file_id: int) -> tuple[int, int]:
    """Return the half-open range of a file's chunk ids."""
    return file_id << CHUNK_BITS, (file_id + 1) << CHUNK_BITS


def create_tables(connection: sqlite3.Connection) -> None:
    """Create all tables, empty."""
    for statement in TABLES_SQL.split(";"):
        if statement.strip():
            connection.execute(statement)
    connection.execute("INSERT INTO meta VALUES ('generation', '0'), ('uid', ?)", (new_uid(),))
    connection.execute("INSERT INTO chunk_words (chunk_words, rank) VALUES ('hashsize', ?)", (_BUFFERED_WORDS_BYTES,))
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def has_own_schema(connection: sqlite3.Connection) -> bool:
    """Return whether the tables, views and indexes are those of this version; a flipped bit may rename a column.

    Those that FTS5 makes for its own use are left to it, as each version of SQLite may declare them in its own way.
    """
    schema_sql = "SELECT type, name, tbl_name, sql FROM sqlite_master"
    blank = sqlite3.connect(":memory:", isolation_level=None)
    try:
        create_tables(blank)
        expected = {row for row in blank.execute(schema_sql) if not row[1].startswith(_FOREIGN_PREFIXES)}
    finally:
        blank.close()
    return expected <= set(connection.execute(schema_sql))


_FOREIGN_PREFIXES = ("sqlite_", "chunk_words_", "title_words_", "name_grams_", "property_grams_")
"""Beginnings of the names that SQLite and FTS5 give."""


def drop_tables(connection: sqlite3.Connection) -> None:
    """Drop all tables, virtual ones first: their shadow tables go with them."""
    rows = connection.execute(
        "SELECT type, name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY sql NOT LIKE 'CREATE VIRTUAL%'"
    )
    for kind, name in rows.fetchall():
        if not str(name).startswith("sqlite_"):
            connection.execute(f'DROP {kind} IF EXISTS "{name}"')


def part_of(title_row: str, number: int) -> str:
    """Return one text of a file's stored row of names; SQLite's own function would stop at a NUL character."""
    return str(json.loads(title_row)[number])


def new_uid() -> str:
    """Return a new unique id for an index."""
    return secrets.token_hex(8)


BUSY_MS = 30_000
"""How long a connection waits for another process's transaction."""
_RETRY_S = 0.01
_FILE_CHECK_S = 0.02
"""How long a reader trusts that its file is still the index; a search would check ten times otherwise."""
_DAMAGE_CODES = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_DAMAGE_SIGNS = _DAMAGE_CODES | {
    0,
    sqlite3.SQLITE_CONSTRAINT,
    sqlite3.SQLITE_ERROR,
    sqlite3.SQLITE_FORMAT,
    sqlite3.SQLITE_INTERNAL,
    sqlite3.SQLITE_MISMATCH,
}
"""Codes of errors that damage causes too, such as "vtable constructor failed"; Python's own, for text, have none."""
_REFUSAL_CODES = frozenset(
    {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY}
)
_DISK_CODES = _DAMAGE_CODES | {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_READONLY,
}


_READER_CACHE_KB = 1_000
"""Of one connection, and each thread of a server has one. Most pages come from mapped memory or the system's cache."""
_WRITER_CACHE_KB = 32_000
"""During a transaction only, of which there is one at a time."""


_CACHED_STATEMENTS = 64
"""Of one connection; statements with lists of many lengths would fill a larger cache for an hour."""


class Database:
    """The connections to one index file.

    Readers see a snapshot and never wait; writers wait for each other. Thread-safe.
    """

    def __init__(self, path: Path) -> None:
        """Open the file; create it where it is missing, and replace it where its schema has another version.

        Raises:
            StorageError: The file can't be opened or created.
        """
        self.path = path
        self._local = threading.local()
        self._connections: list[tuple[threading.Thread, Connection]] = []
        self._connections_lock = threading.Lock()
        self._write = threading.RLock()
        self._writing = False
        self.replaced = ""
        """Why the file had to be replaced by an empty index when it was opened; empty where it hadn't."""
        self.is_read_only = False
        """The disk refuses what SQLite has to write for reading, so that the file is read as it is."""
        self._fingerprint = Fingerprint(path.parent, (path.name, POSTINGS_PREFIX, VECTORS_PREFIX))
        self.is_trusted = self._fingerprint.fits()
        """Nothing else has changed the files since they were written, or the whole index was checked after that."""
        with self._storage_errors():
            try:
                self._prepare_or_replace()
            except sqlite3.Error as error:
                # Where the disk is full or can't be written, reading goes on from the file as it is.
                if _sqlite_code(error) not in _REFUSAL_CODES or not self.path.is_file():
                    raise
                self.close()
                self.is_read_only = True
                self._prepare()

    def reader(self, *, trusted_s: float = _FILE_CHECK_S) -> Connection:
        """Return this thread's connection; a new one where another process has replaced or removed the file.

        Args:
            trusted_s: Maximum age of the last check for a replaced file, in seconds.

        Raises:
            StorageError: The new file can't be opened or created.
        """
        connection: Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            return self._connect()
        if connection.in_transaction or self._has_same_file(trusted_s):
            return connection
        # Read from the old file before it is closed, to recognise a restored copy with the same id.
        uid = _read_uid(connection)
        self.is_trusted = self._fingerprint.fits()
        with self._connections_lock:
            self._connections = [one for one in self._connections if one[1] is not connection]
        del self._local.connection
        connection.close()
        with self._storage_errors():
            self._prepare()
        if uid and _read_uid(self.reader()) == uid:  # an older copy, to which no cache applies
            with suppress(StorageError), self.transaction() as writing:
                writing.execute("UPDATE meta SET value = ? WHERE (key, value) = ('uid', ?)", (new_uid(), uid))
        return self.reader()

    @contextmanager
    def snapshot(self) -> Generator[sqlite3.Connection]:
        """Read one state of the index in several queries."""
        connection = self.reader(trusted_s=0)
        if connection.in_transaction:
            yield connection
            return
        connection.begin_snapshot()
        try:
            yield connection
        finally:
            connection.end_snapshot()

    @contextmanager
    def transaction(self, *, counts: bool = True) -> Generator[sqlite3.Connection]:
        """Write all changes of the block or none; increments the generation unless told not to.

        Raises:
            StorageError: The disk is full, the file is read-only or damaged.
        """
        with self._write:
            connection = self.reader(trusted_s=0)
            if self._writing:
                yield connection
                return
            try:
                connection.execute(f"PRAGMA cache_size = -{_WRITER_CACHE_KB}")
                # Takes SQLite's write lock at once: a snapshot that turned into a write could fail as busy.
                connection.execute("BEGIN IMMEDIATE")
                self._writing = True
                try:
                    if counts:
                        connection.execute("UPDATE meta SET value = value + 1 WHERE key = 'generation'")
                    yield connection
                    connection.execute("COMMIT")
                    self._record_files()
                finally:
                    self._writing = False
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    connection.execute(f"PRAGMA cache_size = -{_READER_CACHE_KB}")
            except sqlite3.Error as error:
                raise StorageError(
                    f"the index {self.path} can't be written: {error}",
                    hint="check free space and permissions, then run `knap index --full`",
                ) from error

    def rebuild(self) -> None:
        """Rebuild with empty tables; readers see the old ones until the commit, unless the file is damaged.

        Raises:
            StorageError: The disk is full, or the file can't be written.
        """
        try:
            with self.transaction() as connection:
                drop_tables(connection)
                create_tables(connection)
        except StorageError as error:
            # A busy, full or read-only disk is no reason to replace the file; damage is.
            if _sqlite_code(error.__cause__) in _DISK_CODES - _DAMAGE_CODES:
                raise
            with self._storage_errors():
                # Damage shows as various errors, such as "vtable constructor failed".
                self._replace()

    def size_bytes(self) -> int:
        """Return the size on disk, with the write-ahead log and the files that are derived."""
        files = [Path(f"{self.path}{suffix}") for suffix in ("", "-wal")]
        for prefix in (POSTINGS_PREFIX, VECTORS_PREFIX):
            files += self.path.parent.glob(f"{prefix}*")
        return sum(file.stat().st_size for file in files if file.exists())

    def is_larger(self, size: int) -> bool:
        """Return whether the files take more than *size* bytes; the database alone often tells."""
        with suppress(OSError):  # a path's own stat takes twice as long, and each search asks
            return os.stat(self.path).st_size > size or self.size_bytes() > size  # noqa: PTH116
        return self.size_bytes() > size

    def close(self) -> None:
        """Close every connection; one that another thread is using closes as soon as that thread is done with it."""
        current = threading.current_thread()
        with self._connections_lock:
            for thread, connection in self._connections:
                # SQLite's library would go on in what was freed, and take the process along.
                if thread is current or not thread.is_alive():
                    connection.close()
            self._connections.clear()
            self._local = threading.local()
        # The last connection has taken the log into the file.
        self._record_files()

    def trust(self) -> None:
        """Take the files as they are for what was stored, since the whole index was checked or rebuilt."""
        self.is_trusted = True
        self._record_files()

    def _record_files(self) -> None:
        if self.is_trusted and not self.is_read_only:
            self._fingerprint.record()

    def __enter__(self) -> Self:
        """Return the database as a context manager."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    @contextmanager
    def _storage_errors(self) -> Generator[None]:
        try:
            private.make_folder(self.path.parent)
            yield
        except (OSError, sqlite3.Error) as error:
            raise StorageError(
                f"the index {self.path} can't be opened: {error}",
                hint="check the folder's permissions and free space; the index can be deleted, it comes back",
            ) from error

    def _has_same_file(self, trusted_s: float) -> bool:
        """Return whether this thread's connection has the current file open, or had it at the last recent check."""
        now = time.monotonic()
        if now - self._local.seen < trusted_s:
            return True
        try:
            is_same = os.path.samestat(os.stat(self.path), self._local.file)  # noqa: PTH116
        except OSError:
            return False
        self._local.seen = now
        return is_same

    def _connect(self) -> Connection:
        # Taken before opening: a file that is replaced in between is noticed at the next check.
        stat_before = self.path.stat() if self.path.exists() else None
        # An immutable file needs no log and no shared memory beside it; what a log holds is missing, and found stale.
        connection = cast(
            "Connection",
            private.connect(
                self.path,
                timeout_s=BUSY_MS / 1000,
                statements=_CACHED_STATEMENTS,
                factory=Connection,
                is_immutable=self.is_read_only,
            ),
        )
        try:
            # For the views by which FTS5 compares its words with the texts that they come from.
            connection.create_function("knap_segment", 1, segment, deterministic=True)
            connection.create_function("knap_part", 2, part_of, deterministic=True)
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA temp_store = MEMORY")
            connection.execute(f"PRAGMA cache_size = -{_READER_CACHE_KB}")
            # Mapped memory counts as resident for each connection; more isn't faster.
            connection.execute("PRAGMA mmap_size = 67108864")
        except BaseException:
            connection.close()  # or Windows doesn't let a damaged file be replaced
            raise
        with self._connections_lock:
            # Those of threads that have ended are closed.
            alive = [entry for entry in self._connections if entry[0].is_alive()]
            for entry in self._connections:
                if entry not in alive:
                    entry[1].close()
            self._connections = [*alive, (threading.current_thread(), connection)]
        self._local.connection, self._local.file, self._local.seen = (
            connection,
            stat_before or self.path.stat(),
            -_FILE_CHECK_S,
        )
        return connection

    def _prepare_or_replace(self) -> None:
        """Replace a damaged file: everything in it can be derived from the vault again."""
        try:
            self._prepare()
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            # SQLite quotes a damaged schema in its message, which Python then can't decode.
            if not (isinstance(error, UnicodeDecodeError) or is_damage(error)) or "no such module" in str(error):
                raise
            self._replace()
            self.replaced = describe_damage(error)

    def _replace(self) -> None:
        """Replace the file by an empty index."""
        self.close()
        for suffix in ("", "-wal", "-shm"):
            Path(f"{self.path}{suffix}").unlink(missing_ok=True)
        self._prepare()

    def _prepare(self) -> None:
        connection = self.reader()
        if _schema_version(connection) == SCHEMA_VERSION:
            return
        # With WAL, readers don't wait for a writer; SQLite's busy time-out doesn't apply to the switch.
        deadline = time.monotonic() + BUSY_MS / 1000
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                break
            except sqlite3.OperationalError as error:
                if _sqlite_code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(_RETRY_S)
        connection.execute("BEGIN IMMEDIATE")
        try:
            # Checked again under the write lock: another process may have created the tables first.
            if _schema_version(connection) != SCHEMA_VERSION:
                drop_tables(connection)
                create_tables(connection)
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")


def _read_uid(connection: sqlite3.Connection) -> str:
    try:
        return state_of(connection)[0]
    except (sqlite3.DatabaseError, KeyError):
        # A damaged file: no cached answer applies to it.
        return ""


def as_storage_error(error: Exception) -> StorageError | None:
    """Return the error for a damaged or unreadable state file; None where the error has another cause."""
    if _sqlite_code(error) not in _DISK_CODES:
        return None
    return StorageError(
        f"a file of the program's state can't be read: {error}",
        hint="`knap doctor` tells whether it is the index, which comes back with `knap index --full`",
    )


def describe_damage(error: BaseException) -> str:
    """Return what is damaged, without any text of a note: whoever is told may not be allowed to see it."""
    cause = error.__cause__ if isinstance(error, StorageError) and error.__cause__ is not None else error
    if isinstance(cause, sqlite3.Error):
        # Such as: Could not decode to UTF-8 column 'title' with text '…'
        return str(cause).split(" with text ")[0]
    return f"a value can't be read ({type(cause).__name__})"


def is_damage(error: BaseException | None) -> bool:
    """Return whether an error, or its cause, is a sign of a damaged database; a busy or full disk isn't one."""
    if isinstance(error, StorageError):
        error = error.__cause__
    is_of_data = isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.ProgrammingError)
    return is_of_data and _sqlite_code(error) in _DAMAGE_SIGNS


def is_certain_damage(error: BaseException | None) -> bool:
    """Return whether SQLite says itself, in an error or its cause, that the database is damaged."""
    if isinstance(error, StorageError):
        error = error.__cause__
    return isinstance(error, sqlite3.DatabaseError) and _sqlite_code(error) in _DAMAGE_CODES


_MARK_FILE: Final = "damaged"


def mark_damage(folder: Path, reason: str) -> None:
    """Record that the index in *folder* is damaged, in a file beside it, since the index itself may not be writable."""
    # Where the disk is full or read-only, the next one to see the damage tries again.
    with suppress(OSError):
        private.write_text(folder / _MARK_FILE, reason)


def read_damage_mark(folder: Path) -> str:
    """Return why the index is marked as damaged; an empty text where it isn't."""
    try:
        return (folder / _MARK_FILE).read_text(encoding="utf-8", errors="replace") or "it is marked as damaged"
    except OSError:
        return ""


def remove_damage_mark(folder: Path) -> None:
    """Remove the mark of an index that was rebuilt.

    Raises:
        OSError: The folder can't be written.
    """
    (folder / _MARK_FILE).unlink(missing_ok=True)


@contextmanager
def marking_damage(folder: Path) -> Generator[None]:
    """Mark the index as damaged where that is what keeps it from being written, so that it is rebuilt."""
    try:
        yield
    except (sqlite3.DatabaseError, StorageError) as error:
        if is_certain_damage(error):
            mark_damage(folder, describe_damage(error))
        raise


def _sqlite_code(error: BaseException | None) -> int:
    """Return SQLite's primary error code, without the extended bits; 0 where there is none."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _schema_version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])

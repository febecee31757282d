"""Publish a vault's index to PostgreSQL: what the local index holds, note by note, from one machine at a time."""

from __future__ import annotations

import hashlib
import platform
import secrets
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from knapper.errors import ConflictError, KnapError, StorageError
from knapper.index import database
from knapper.index.documents import FileRecord
from knapper.index.postgres import rows, schema
from knapper.index.postgres.connection import PostgresServer, use_schema
from knapper.index.postgres.rows import GAP, ChunkTokenizer, SourceChunk, SourceFile
from knapper.index.store import floor_key
from knapper.index.words.fts5 import CHUNKS
from knapper.vault.access import Policy

if TYPE_CHECKING:
    from collections.abc import Generator

    from knapper.index.postgres.connection import Session
    from knapper.index.refresh import Progress
    from knapper.index.store import IndexStore
    from knapper.vault.view import View

_BATCH_NOTES: Final = 64
_BATCH_CHUNKS: Final = 1_000
"""Notes, and chunks, that share a transaction where many are published; one saved note has its own."""
_LOCK_WAIT_S: Final = 5.0
_LOCK_PAUSE_S: Final = 0.1
_KEPT_GENERATIONS: Final = 10_000
"""How far behind a reader may be without reading all records again."""
_MIN_VACUUMED_CHUNKS: Final = 1_000
MIN_GRAPH_VECTORS: Final = 200_000
"""Vectors from which on a graph (HNSW) is built; below, all are compared: 45 ms for 100,000, and none is missed."""
_GRAPH_OPTIONS: Final = "m = 32, ef_construction = 200"
"""Finds .98 of the nearest with `knapper.index.postgres.snapshot` following it; pgvector's own defaults find .92."""
_GRAPH_ROW_BYTES: Final = 1_700
"""Of the server's memory that building takes for each vector, beside its numbers: half a million of 160 took 1 GB."""
_MAX_GRAPH_MB: Final = 4_096
"""Beyond, the rest is built on the server's disk, which takes several times as long."""
_MAX_GRAPH_DIMENSIONS: Final = 4_000
GRAPH: Final = "vectors_graph"
_MAX_CHANGES: Final = 10_000
"""Changed files that are looked up one by one; beyond, all are compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """What was published."""

    notes: int = 0
    removed: int = 0
    generation: int = 0


@dataclass(slots=True, kw_only=True)
class _Note:
    """A note as it is written, in its order of work."""

    source: SourceFile
    record: FileRecord
    content: bytes | None
    chunks: list[SourceChunk]
    id: int = 0
    tokens: list[list[int]] = field(default_factory=list[list[int]])


class Publisher:
    """Publishes one vault's index; safe to use from any thread."""

    def __init__(
        self, server: PostgresServer, *, readers: Mapping[str, Policy | None], lock_wait_s: float = _LOCK_WAIT_S
    ) -> None:
        """Store what is published where; nothing is opened yet.

        Args:
            server: The team's, for this vault.
            readers: Roles that may read the tables, each with the policy whose notes it may see; None for all.
            lock_wait_s: How long to wait while another process publishes the vault.
        """
        self.server = server
        self._readers = readers
        self._lock_wait_s = lock_wait_s
        self._lock = threading.Lock()
        self._has_migrated = False
        """Whether tables of an older version were brought up, which leaves dead rows in them."""
        self._has_compared = False
        """Whether all notes were compared since the process began; from then on, those that change are enough."""

    def publish(
        self,
        store: IndexStore,
        view: View,
        *,
        model: str,
        take_over: bool = False,
        stop: threading.Event | None = None,
        progress: Progress | None = None,
    ) -> Published:
        """Bring the database up to what the local index holds; each note is replaced in one transaction.

        Args:
            store: The local index.
            view: The vault as its owner sees it, for the notes' bytes.
            model: The embedder's id; empty for none.
            take_over: Write a vault that another machine has written.
            stop: Ends the work after the running transaction.
            progress: Called after each transaction.

        Raises:
            ConflictError: Another process publishes the vault, or it is another machine's, or another index publishes
                vectors of another length under the model's name.
            StorageError: The server can't be reached or written.
            SetupError: The server is too old, or lacks a role.
        """
        with self._lock, self._writing(view, take_over=take_over) as session:
            with store.database.snapshot() as source:
                work = _Work(session, source, view, self.server.schema, dict(schema.read_meta(session)), model)
                work.follows = self._has_compared and not take_over
                work.set_readers(self._readers)
                work.count_vectors()
                if not (stop and stop.is_set()):
                    work.replace_other_vectors(take_over=take_over)
                done = work.carry_out(stop, progress)
                if not (stop and stop.is_set()):
                    work.finish(store)
                    self._has_compared = True
            work.tokenizer.close()
            if work.written_chunks >= _MIN_VACUUMED_CHUNKS or self._has_migrated:
                self._has_migrated = False
                # Index-only scans need the map of visible pages, which nothing else makes in time after a first load.
                for table in ("postings", "chunks", "vectors", "files", "terms"):
                    session.execute(f'VACUUM (ANALYZE) "{self.server.schema}"."{table}"')
            work.build_graph()
            return done

    @contextmanager
    def _writing(self, view: View, *, take_over: bool) -> Generator[Session]:
        """Lend a connection that holds the vault's lock; the lock goes with the connection, however that ends."""
        session = self.server.connect()
        try:
            schema.check_server(session)
            self._take_lock(session)
            with session.transaction():
                _make_extension(session)
                use_schema(session, self.server.schema)
                self._has_migrated |= schema.migrate(session, self.server.schema)
                self._check_writer(session, view, take_over=take_over)
            yield session
        except KnapError:
            raise
        except Exception as error:
            explained = self.server.explain(error)
            if explained is None:
                raise
            raise explained from error
        finally:
            session.close()

    def _take_lock(self, session: Session) -> None:
        deadline = time.monotonic() + self._lock_wait_s
        while True:
            row = session.execute(
                "SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", (self.server.schema,)
            ).fetchone()
            if row and row[0]:
                return
            if time.monotonic() > deadline:
                raise ConflictError(
                    f"another process is publishing the vault '{self.server.vault}' to {self.server.shown}",
                    hint="wait for it to end; it publishes what it has indexed",
                )
            time.sleep(_LOCK_PAUSE_S)

    def _check_writer(self, session: Session, view: View, *, take_over: bool) -> None:
        """Check that this machine is the vault's writer; two would undo each other's work."""
        # The folder by its hash alone: readers can see it.
        own = f"{platform.node() or 'a machine'}#{hashlib.sha256(str(view.root).encode()).hexdigest()[:12]}"
        writer = schema.read_meta(session).get("writer", own)
        if writer != own and not take_over:
            raise ConflictError(
                f"the vault '{self.server.vault}' in {self.server.shown} is published by {writer.partition('#')[0]}",
                code="other_writer",
                hint="search there or here, but publish from one machine; `knap index --full` here takes it over",
            )
        schema.write_meta(session, {"writer": own})

    def describe(self, store: IndexStore) -> str:
        """Say how what is published stands beside the local index.

        Raises:
            StorageError: The server doesn't answer, or doesn't hold the vault.
            SetupError: It is too old, or the extra isn't installed.
        """
        with self.server.snapshot() as session:
            schema.check_server(session)
            meta = schema.read_meta(session)
        with store.database.snapshot() as connection:
            uid, generation = database.state_of(connection)
        is_current = (meta.get("source"), meta.get("source_generation")) == (uid, str(generation))
        how = "current" if is_current else "behind the local index: `knap index` publishes what is missing"
        writer = meta.get("writer", "").partition("#")[0]
        return f"published to {self.server.shown} by {writer}, {how}"

    def close(self) -> None:
        """Close the connections."""
        self.server.close()


def _make_extension(session: Session) -> None:
    """Add pgvector to the database where this user may; whoever uses it next says what is missing otherwise."""
    if session.execute("SELECT 1 FROM pg_extension WHERE extname = 'vector'").fetchone() is None:
        row = session.execute("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'").fetchone()
        if row is None:
            raise StorageError(
                "the server has no pgvector", code="no_pgvector", hint="let its administrator install pgvector"
            )
        session.execute("CREATE EXTENSION vector")


class _Work:
    """One run of a publisher, under its lock."""

    def __init__(
        self,
        session: Session,
        source: sqlite3.Connection,
        view: View,
        schema_name: str,
        meta: dict[str, str],
        model: str,
    ) -> None:
        self._session = session
        self._source = source
        self._view = view
        self._schema = schema_name
        self._meta = meta
        self._model = model
        self._terms: dict[str, int] = {}
        self._masks: dict[str, tuple[Policy, bytearray]] = {}
        self._has_skipped = False
        self.tokenizer = ChunkTokenizer()
        self.written_chunks = 0
        self.follows = False
        """Whether only files that have changed since the last publishing are compared, where these are known."""

    @property
    def _generation(self) -> int:
        return int(self._meta.get("generation", "0"))

    def set_readers(self, readers: Mapping[str, Policy | None]) -> None:
        """Grant the tables to just these roles, and say which notes each may see."""
        known = {str(role): (str(rules), mask) for role, rules, mask in self._session.execute("SELECT * FROM sight")}
        with self._session.transaction():
            schema.grant(self._session, self._schema, sorted(readers))
            for role, policy in readers.items():
                rules = "all" if policy is None or policy.sees_all else policy.fingerprint
                old_rules, old_mask = known.get(role, ("", None))
                mask = None
                if rules != "all" and policy is not None:
                    if rules == old_rules and old_mask is not None:
                        mask = bytearray(old_mask)
                    else:
                        mask = bytearray()
                        for file, path, target in self._session.execute("SELECT id, path, target FROM files"):
                            _show(mask, file, policy, path, target)
                    self._masks[role] = policy, mask
                if rules != old_rules:
                    self._session.execute(
                        "INSERT INTO sight VALUES (%s, %s, %s)"
                        " ON CONFLICT (role) DO UPDATE SET rules = EXCLUDED.rules, mask = EXCLUDED.mask",
                        (role, rules, None if mask is None else bytes(mask)),
                    )

    def count_vectors(self) -> None:
        """Count the vectors where a version has published that didn't: the count tells readers how many are missing."""
        if "vectors" not in self._meta:
            row = self._session.execute("SELECT COUNT(*) FROM vectors").fetchone()
            self._meta["vectors"] = str(row[0] if row else 0)

    def replace_other_vectors(self, *, take_over: bool) -> None:
        """Remove the vectors of another model, or of another length, before the notes that get new ones are chosen.

        The server can't compare a question with vectors of two lengths, so all go at once; until a note is written
        again, readers find it by words, and are told so. The source goes with them: whoever publishes next, also after
        a kill, counts the vectors of each note.

        Raises:
            ConflictError: The published ones have another length under the same name, and another index's.
        """
        is_other_model = self._meta.get("model", self._model) != self._model
        # All vectors of the local index have as many numbers.
        row = self._source.execute(
            "SELECT length(vector) FROM vectors WHERE model = ? LIMIT 1", (self._model,)
        ).fetchone()
        old = "" if is_other_model else self._meta.get("dimensions", "")
        new = str(row[0] // rows.NUMBER_BYTES) if row else ""
        is_other_length = bool(old and new) and old != new
        if is_other_length and not take_over:
            self._check_lengths_source(old, new)
        self._meta |= {"model": self._model, "dimensions": new or old}
        if is_other_model or is_other_length:
            with self._session.transaction():
                self._session.execute(f"DROP INDEX IF EXISTS {GRAPH}")
                self._session.execute("DELETE FROM vectors")
                self._session.execute("UPDATE files SET vectors = 0")
                self._meta["generation"] = str(self._generation + 1)
                self._write_meta({"source": "", "floor": "", "graph": "0", "vectors": "0"})

    def _check_lengths_source(self, old: str, new: str) -> None:
        """Check that vectors of another length are this index's own earlier ones; two indexes would go on replacing."""
        if self._meta.get("source") not in {"", database.state_of(self._source)[0]}:
            raise ConflictError(
                f"another index of this vault publishes vectors of {old} numbers under the model name '{self._model}',"
                f" and this one has vectors of {new}",
                code="other_vectors",
                hint="use the same model for both; `knap index --full` here replaces what is published",
            )

    def carry_out(self, stop: threading.Event | None, progress: Progress | None) -> Published:
        """Write what differs, whole notes in each transaction; files that are gone leave with the first ones."""
        changed, gone = self._compare()
        done, removed = 0, 0
        for batch in self._batches(changed):
            if stop and stop.is_set():
                return Published(notes=done, removed=removed, generation=self._generation)
            self._write(batch, [] if removed else gone)
            done, removed = done + len(batch), len(gone)
            if progress:
                progress("publish", done, len(changed))
        if gone and not removed:
            self._write([], gone)
        return Published(notes=done, removed=len(gone), generation=self._generation)

    def _compare(self) -> tuple[list[SourceFile], list[int]]:
        """Return the files whose rows differ, and the ids of those that the local index doesn't have."""
        sql = "SELECT path, id, state, vectors FROM files"
        embedded, recorded = self._embedded_since(), self._changed_since()
        files = [] if recorded is None else list(rows.list_files(self._source, only=recorded | embedded))
        if recorded is None or len(files) < len(recorded | embedded):  # of a removed file, no path is known here
            listed = self._session.execute(sql)
            files = rows.list_files(self._source)
        else:
            listed = self._session.execute(f"{sql} WHERE path = ANY(%s)", ([file.path for file in files],))
        stored = {str(path): (int(i), bytes(state), int(vectors)) for path, i, state, vectors in listed}
        counts = self._vector_counts()
        changed: list[SourceFile] = []
        for file in files:
            known = stored.pop(file.path, None)
            if (
                known is None
                or known[1] != file.state
                or counts.get(file.id, known[2]) != known[2]
                or file.id in embedded
            ):
                changed.append(file)
        return changed, [i for i, _, _ in stored.values()]

    def _changed_since(self) -> frozenset[int] | None:
        """Return the files that were changed, added or removed since all was published; None where that isn't known."""
        since = int(self._meta.get("compared") or "-1")
        is_same = (self._meta.get("source"), self._meta.get("format")) == (
            database.state_of(self._source)[0],
            schema.FORMAT,
        )
        if not self.follows or not is_same or since < database.removed_since(self._source):
            return None
        changes = self._source.execute(
            "SELECT DISTINCT file_id FROM changed_files WHERE generation > ? LIMIT ?", (since, _MAX_CHANGES + 1)
        ).fetchall()
        return frozenset(int(i) for (i,) in changes) if len(changes) <= _MAX_CHANGES else None

    def _vector_counts(self) -> Mapping[int, int]:
        """Count the vectors of each file, where the index isn't the one that was published last."""
        uid, _ = database.state_of(self._source)
        if self._meta.get("source") == uid:
            return {}
        counts = {int(i): 0 for (i,) in self._source.execute("SELECT id FROM files")}
        sql = f"SELECT chunk_id >> {database.CHUNK_BITS}, COUNT(*) FROM vectors WHERE model = ? GROUP BY 1"
        counts.update((int(i), int(n)) for i, n in self._source.execute(sql, (self._model,)))
        return counts

    def _embedded_since(self) -> frozenset[int]:
        """Return the files of which a vector came after the last time that all was published."""
        uid, _ = database.state_of(self._source)
        if self._meta.get("source") != uid:
            return frozenset()
        sql = f"SELECT DISTINCT chunk_id >> {database.CHUNK_BITS} FROM vectors WHERE generation > ? AND model = ?"
        rows_since = self._source.execute(sql, (int(self._meta.get("source_generation", "0")), self._model))
        return frozenset(int(i) for (i,) in rows_since)

    def _batches(self, files: Sequence[SourceFile]) -> Iterator[list[_Note]]:
        batch: list[_Note] = []
        chunks = 0
        for file in files:
            note = self._read(file)
            if note is None:
                self._has_skipped = True
                continue
            batch.append(note)
            chunks += len(note.chunks)
            if len(batch) >= _BATCH_NOTES or chunks >= _BATCH_CHUNKS:
                yield batch
                batch, chunks = [], 0
        if batch:
            yield batch

    def _read(self, file: SourceFile) -> _Note | None:
        """Read a note from the local index and its bytes from the disk; None where it was saved in between."""
        record = rows.read_record(self._source, file.id)
        content = None
        if record.hash:
            try:
                content = self._view.read_bytes(record.path)
            except KnapError:
                return None
            from knapper.vault import parser  # noqa: PLC0415 - 60 ms, which a reader doesn't need

            if parser.content_hash(content) != record.hash:
                # It is published once the local index has it, so that text and words belong together.
                return None
        chunks = rows.read_chunks(self._source, file.id, record, self._model)
        return _Note(source=file, record=record, content=content, chunks=chunks)

    def _write(self, notes: Sequence[_Note], gone: Sequence[int]) -> None:
        """Replace notes, and remove files, in one transaction."""
        if not notes and not gone:
            return
        changes: Counter[str] = Counter()
        with self._session.transaction():
            self._meta["generation"] = str(self._generation + 1)
            words_by_note = [self.tokenizer.split(note.chunks) for note in notes]
            self._learn_terms(
                word for words in words_by_note for chunk in words for column in chunk.values() for word in column
            )
            uses: Counter[int] = Counter()
            known = {
                str(path): int(i)
                for path, i in self._session.execute(
                    "SELECT path, id FROM files WHERE path = ANY(%s)", ([note.record.path for note in notes],)
                )
            }
            self._drop_chunks([*known.values(), *gone], uses, changes)
            if gone:
                self._session.execute("DELETE FROM files WHERE id = ANY(%s)", ([*gone],))
                sql = "INSERT INTO removed SELECT %s, unnest(%s::bigint[])"
                self._session.execute(sql, (self._generation, [*gone]))
            for note, words in zip(notes, words_by_note, strict=True):
                note.tokens = [self._join(chunk) for chunk in words]
                note.id = self._store_file(note, known.get(note.record.path))
            self._store_chunks(notes, uses, changes)
            self._session.execute(
                "UPDATE terms SET rows = rows + d.n FROM unnest(%s::int[], %s::int[]) AS d(id, n)"
                " WHERE terms.id = d.id",
                ([term for term, n in uses.items() if n], [n for n in uses.values() if n]),
            )
            for role, (_, mask) in self._masks.items():
                self._session.execute("UPDATE sight SET mask = %s WHERE role = %s", (bytes(mask), role))
            self._write_meta({name: str(int(self._meta.get(name, "0")) + n) for name, n in changes.items()})

    def _learn_terms(self, words: Iterator[str]) -> None:
        """Find the ids of words, and give one to each new word; the only writer is here."""
        unknown = sorted({word for word in words if word not in self._terms})
        if not unknown:
            return
        find = "SELECT term, id FROM terms WHERE term = ANY(%s)"
        self._terms.update((str(term), int(i)) for term, i in self._session.execute(find, (unknown,)))
        new = [word for word in unknown if word not in self._terms]
        if new:
            sql = "INSERT INTO terms (term, rows) SELECT unnest(%s::text[]), 0 RETURNING term, id"
            self._terms.update((str(term), int(i)) for term, i in self._session.execute(sql, (new,)))

    def _join(self, words: Mapping[str, Sequence[str]]) -> list[int]:
        """Return a chunk's words as numbers, column by column."""
        tokens: list[int] = []
        for column in CHUNKS.columns:
            tokens += [GAP] if column != next(iter(CHUNKS.columns)) else []
            tokens += [self._terms[word] for word in words.get(column, ())]
        return tokens

    def _drop_chunks(self, files: Sequence[int], uses: Counter[int], changes: Counter[str]) -> None:
        """Remove the chunks of files, with their words and vectors."""
        if not files:
            return
        ranges = [database.chunk_range(file) for file in files]
        old = self._session.execute(
            "SELECT c.id, c.tokens, c.words FROM unnest(%s::bigint[], %s::bigint[]) AS r(a, b)"
            " JOIN chunks c ON c.id >= r.a AND c.id < r.b",
            ([a for a, _ in ranges], [b for _, b in ranges]),
        ).fetchall()
        pairs = [(term, int(chunk)) for chunk, tokens, _ in old for term in {*tokens} - {GAP}]
        uses.subtract(term for term, _ in pairs)
        changes["chunks"] -= len(old)
        changes["words"] -= sum(int(words) for _, _, words in old)
        self._session.execute(
            "DELETE FROM postings p USING unnest(%s::int[], %s::bigint[]) AS d(term, chunk)"
            " WHERE p.term = d.term AND p.chunk = d.chunk",
            ([term for term, _ in pairs], [chunk for _, chunk in pairs]),
        )
        ids = [int(chunk) for chunk, _, _ in old]
        changes["vectors"] -= self._session.execute("DELETE FROM vectors WHERE chunk = ANY(%s)", (ids,)).rowcount
        self._session.execute("DELETE FROM chunks WHERE id = ANY(%s)", (ids,))

    def _store_file(self, note: _Note, known: int | None) -> int:
        """Write a file's row, and return its id."""
        record = note.record
        values = {
            "path": record.path,
            "target": record.stat.target or "",
            "state": note.source.state,
            "generation": self._generation,
            "vectors": sum(chunk.vector is not None for chunk in note.chunks),
            "chunks": len(note.chunks),
            "record": rows.encode_record(record),
            "content": note.content,
            "id": known,
        }
        sql = (
            "INSERT INTO files (path, target, state, generation, vectors, chunks, record, content) VALUES"
            " (%(path)s, %(target)s, %(state)s, %(generation)s, %(vectors)s, %(chunks)s, %(record)s, %(content)s)"
            " RETURNING id"
        )
        if known is not None:
            sql = (
                "UPDATE files SET target = %(target)s, state = %(state)s, generation = %(generation)s,"
                " vectors = %(vectors)s, chunks = %(chunks)s, record = %(record)s, content = %(content)s"
                " WHERE id = %(id)s RETURNING id"
            )
        row = self._session.execute(sql, values).fetchone()
        file = int(row[0]) if row else 0
        for policy, mask in self._masks.values():
            _show(mask, file, policy, record.path, record.stat.target or "")
        return file

    def _store_chunks(self, notes: Sequence[_Note], uses: Counter[int], changes: Counter[str]) -> None:
        """Write the chunks of notes, with their words and vectors."""
        numbered = [
            ((note.id << database.CHUNK_BITS) + place, chunk, tokens)
            for note in notes
            for place, (chunk, tokens) in enumerate(zip(note.chunks, note.tokens, strict=True))
        ]
        gaps = len(CHUNKS.columns) - 1
        with self._session.cursor() as cursor:
            with cursor.copy("COPY chunks FROM STDIN") as copy:
                for i, chunk, tokens in numbered:
                    copy.write_row((i, chunk.kind, chunk.position, len(tokens) - gaps, tokens, chunk.row))
            with cursor.copy("COPY postings FROM STDIN") as copy:
                for i, _, tokens in numbered:
                    weights = rows.weigh(tokens)
                    uses.update(weights.keys())
                    for term, weight in weights.items():
                        copy.write_row((term, i, weight, len(tokens) - gaps))
            vectors = [(i, rows.wire_vector(chunk.vector)) for i, chunk, _ in numbered if chunk.vector is not None]
            if vectors:
                with cursor.copy("COPY vectors FROM STDIN (FORMAT BINARY)") as copy:
                    copy.set_types(["int8", "bytea"])
                    for row in vectors:
                        copy.write_row(row)
        changes["chunks"] += len(numbered)
        changes["words"] += sum(len(tokens) - gaps for _, _, tokens in numbered)
        changes["vectors"] += len(vectors)
        self.written_chunks += len(numbered)

    def _write_meta(self, values: Mapping[str, str]) -> None:
        """Store values with the generation, and tell all who listen, once the transaction is committed."""
        self._meta.update(values)
        _ = self._meta.setdefault("generation", "0")  # of an empty vault, of which nothing was written yet
        names = ("generation", "model", "dimensions", "graph", *values)
        schema.write_meta(self._session, {name: self._meta.get(name, "") for name in dict.fromkeys(names)})
        # Tells a reader whether a generation is the one that it knows: after a backup came back, it may be another.
        self._session.execute(
            "INSERT INTO history VALUES (%s, %s) ON CONFLICT (generation) DO NOTHING",
            (self._generation, secrets.token_hex(8)),
        )
        self._session.execute("SELECT pg_notify(%s, %s)", (schema.CHANNEL, f"{self._schema} {self._generation}"))

    def finish(self, store: IndexStore) -> None:
        """Record which state of the local index is published, as far as it is complete."""
        uid, generation = database.state_of(self._source)
        known = self._meta.get("source", "")
        values = {
            # Without it, the next publishing counts the vectors of each note, also of one that was skipped here.
            "source": "" if self._has_skipped and known != uid else uid,
            "source_generation": str(generation),
            "compared": "" if self._has_skipped else str(generation),
            "format": schema.FORMAT,
            "complete": store.meta("complete") or "0",
            "built": store.meta("built"),
            "model": self._model,
            "floor": store.meta(floor_key(self._model)) if self._model else "",
        }
        if all(self._meta.get(name) == value for name, value in values.items()):
            return
        with self._session.transaction():
            self._write_meta(values)
            oldest = max(self._generation - _KEPT_GENERATIONS, 0)
            for table in ("removed", "history"):
                self._session.execute(f"DELETE FROM {table} WHERE generation < %s", (oldest,))
            schema.write_meta(self._session, {"removed_since": str(oldest)})

    def build_graph(self) -> None:
        """Build the graph of a large vault's vectors where there is none; it is kept up to date by the server."""
        dimensions = int(self._meta.get("dimensions") or "0")
        if not 0 < dimensions <= _MAX_GRAPH_DIMENSIONS:
            return
        count = int(self._meta.get("vectors", "0"))
        row = self._session.execute(f"SELECT to_regclass('{GRAPH}')").fetchone()
        if count >= MIN_GRAPH_VECTORS and row and row[0] is None:
            needed_mb = 1 + (count * (rows.NUMBER_BYTES * dimensions + _GRAPH_ROW_BYTES) >> 20)
            self._session.execute(f"SET maintenance_work_mem = '{min(needed_mb, _MAX_GRAPH_MB)}MB'")
            self._session.execute(
                f"CREATE INDEX {GRAPH} ON vectors USING hnsw ((vector::halfvec({dimensions})) halfvec_ip_ops)"
                f" WITH ({_GRAPH_OPTIONS})"
            )
            self._write_meta({"graph": "1"})


def _show(mask: bytearray, file: int, policy: Policy, path: str, target: str) -> None:
    """Set a file's bit where a policy shows it."""
    place, bit = file >> 3, 1 << (file & 7)
    if len(mask) <= place:
        mask.extend(bytes(place + 1 - len(mask)))
    is_shown = policy.visible(path) and (not target or policy.visible(target))
    mask[place] = mask[place] | bit if is_shown else mask[place] & ~bit

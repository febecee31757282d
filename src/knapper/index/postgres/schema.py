"""The tables of one vault in PostgreSQL, a schema each: their versions, and which role may read which rows."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final

from knapper.errors import SetupError, StorageError
from knapper.index import database
from knapper.index.postgres.connection import MIN_SERVER, NOT_PUBLISHED_HINT

if TYPE_CHECKING:
    from knapper.index.postgres.connection import Session
    from knapper.index.store import IndexStore

CHANNEL: Final = "knapper"
"""What is notified of a vault's changes, with its schema and generation."""
STATE_META: Final = "published"
"""Under which a mirror stores its state: the vault's id, this role's rules, and the generation with its stamp."""
FORMAT: Final = f"1.{database.SCHEMA_VERSION}"
"""Version of what the rows hold: a writer of another one writes all of them anew, a reader of another one refuses."""

_SIGHT: Final = "SELECT {} FROM sight s WHERE s.role = current_user"
_SEES_ALL: Final = f"COALESCE(({_SIGHT.format('s.mask IS NULL')}), false)"
# The concatenation makes one flat value of the mask, once for a query; else each row would unpack it again.
_MASK: Final = "(" + _SIGHT.format("s.mask || ''::bytea") + ")"
_MASK_BITS: Final = f"COALESCE(({_SIGHT.format('8 * length(s.mask)')}), 0)"


def _sees(file: str) -> str:
    """Return the condition that the current role may see a file; subqueries without a tie to the row run once."""
    return f"{_SEES_ALL} OR CASE WHEN {file} < {_MASK_BITS} THEN get_bit({_MASK}, {file}) = 1 ELSE false END"


_TABLES: Final[Sequence[str]] = (
    "CREATE TABLE meta (key text PRIMARY KEY, value text NOT NULL)",
    """CREATE TABLE files (
      id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      path text COLLATE "C" NOT NULL UNIQUE,
      target text NOT NULL,
      state bytea NOT NULL,
      generation bigint NOT NULL,
      vectors int NOT NULL,
      record text NOT NULL,
      content bytea
    )""",
    "CREATE INDEX files_generation ON files (generation)",
    "CREATE TABLE removed (generation bigint NOT NULL, file bigint NOT NULL)",
    "CREATE INDEX removed_generation ON removed (generation)",
    "CREATE TABLE history (generation bigint PRIMARY KEY, stamp text NOT NULL)",
    """CREATE TABLE chunks (
      id bigint PRIMARY KEY, kind text NOT NULL, position int NOT NULL, words int NOT NULL, tokens int[] NOT NULL,
      row text NOT NULL
    )""",
    "CREATE INDEX chunks_log ON chunks (id) WHERE kind = 'log'",
    """CREATE TABLE terms (
      id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, term text COLLATE "C" NOT NULL UNIQUE, rows int NOT NULL
    ) WITH (fillfactor = 70)""",
    """CREATE TABLE postings (
      term int NOT NULL, chunk bigint NOT NULL, weight int NOT NULL, words int NOT NULL,
      PRIMARY KEY (term, chunk) INCLUDE (weight, words)
    )""",
    "CREATE TABLE vectors (chunk bigint PRIMARY KEY, vector halfvec NOT NULL)",
    "CREATE TABLE sight (role text PRIMARY KEY, rules text NOT NULL, mask bytea)",
)
_FILE_OF: Final[Mapping[str, str]] = {
    "files": "id",
    "chunks": f"(id >> {database.CHUNK_BITS})",
    "postings": f"(chunk >> {database.CHUNK_BITS})",
    "vectors": f"(chunk >> {database.CHUNK_BITS})",
}
"""For each table with rows of notes, the SQL expression of the file's id."""
# A word is known to a role that may see a chunk with it; the policy of the postings applies in the subquery.
_KNOWN_WORD: Final = "EXISTS (SELECT 1 FROM postings p WHERE p.term = terms.id)"


def _policies() -> list[str]:
    statements: list[str] = []
    for table, file in _FILE_OF.items():
        statements += [
            f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
            f"CREATE POLICY sight ON {table} FOR SELECT USING ({_sees(file)})",
        ]
    return [
        *statements,
        "ALTER TABLE terms ENABLE ROW LEVEL SECURITY",
        f"CREATE POLICY sight ON terms FOR SELECT USING ({_SEES_ALL} OR {_KNOWN_WORD})",
        "ALTER TABLE sight ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY own ON sight FOR SELECT USING (role = current_user)",
    ]


_CHUNK_COUNTS: Final[Sequence[str]] = (
    "ALTER TABLE files ADD COLUMN chunks int NOT NULL DEFAULT 0",
    f"UPDATE files SET chunks = c.n FROM (SELECT id >> {database.CHUNK_BITS} AS file, COUNT(*) AS n FROM chunks"
    " GROUP BY 1) AS c WHERE c.file = files.id",
    "DROP INDEX files_generation",
    "CREATE INDEX files_generation ON files (generation) INCLUDE (id, chunks)",
)
"""Tells a reader where the chunks of each file are, without a look at them."""
MIGRATIONS: Final[Sequence[Sequence[str]]] = ((*_TABLES, *_policies()), _CHUNK_COUNTS)
"""The statements that lead from each version of the tables to the next; the first makes them."""
VERSION: Final = len(MIGRATIONS)


def check_server(session: Session) -> None:
    """Check that the server is one that this program can use.

    Raises:
        SetupError: It is too old.
    """
    version = session.info.server_version
    if version < MIN_SERVER:
        raise SetupError(
            f"the server has PostgreSQL {version // 10_000}, and this needs 17 or newer",
            hint="let its administrator upgrade it, or name another one in index.engine",
        )


def migrate(session: Session, schema: str) -> bool:
    """Make a vault's tables, or bring them up to this version; inside a transaction.

    Returns:
        Whether older ones were brought up.

    Raises:
        StorageError: A newer program made them.
    """
    # Two machines may begin at once.
    session.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 1))", (schema,))
    has_schema = session.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (schema,)).fetchone()
    if has_schema is None:
        session.execute(f'CREATE SCHEMA "{schema}"')
    present = session.execute("SELECT to_regclass(%s)", (f'"{schema}".meta',)).fetchone()
    version = int(read_meta(session).get("schema", "0")) if present and present[0] else 0
    if version > VERSION:
        raise _newer_error()
    for statements in MIGRATIONS[version:]:
        for statement in statements:
            session.execute(statement)
    if version < VERSION:
        # Of this vault's tables alone: a mirror of others that had the same name knows that they are others.
        write_meta(session, {"schema": str(VERSION), **({} if version else {"id": secrets.token_hex(8)})})
    return 0 < version < VERSION


def read_meta(session: Session) -> dict[str, str]:
    """Read what is stored about the vault's tables."""
    return {str(key): str(value) for key, value in session.execute("SELECT key, value FROM meta")}


def write_meta(session: Session, values: Mapping[str, str]) -> None:
    """Store values about the vault's tables."""
    session.execute(
        "INSERT INTO meta SELECT * FROM unnest(%s::text[], %s::text[])"
        " ON CONFLICT (key) DO UPDATE SET value = EXCLUDED.value",
        (list(values), list(values.values())),
    )


def check_meta(meta: Mapping[str, str]) -> None:
    """Check that a reader of this version understands the tables.

    Raises:
        StorageError: It doesn't, or they aren't filled yet.
    """
    version = int(meta.get("schema", "0"))
    if version > VERSION:
        raise _newer_error()
    if version < VERSION or meta.get("format") != FORMAT:
        raise StorageError(
            "the vault in the database was published by another version of Knapper",
            code="not_published",
            hint="install the same version here and on the machine with the files, and run `knap index` there",
        )
    if meta.get("complete") != "1":
        raise StorageError("the vault isn't wholly in the database yet", code="not_published", hint=NOT_PUBLISHED_HINT)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableState:
    """Which state of a vault's tables something was read from."""

    vault_id: str = ""
    rules: str = ""
    generation: int = -1
    stamp: str = ""

    @classmethod
    def read(cls, store: IndexStore) -> TableState:
        """Read that of a mirror."""
        parts = store.meta(STATE_META).split()
        if len(parts) != len(fields(cls)):
            return cls()
        vault_id, rules, generation, stamp = parts
        return cls(vault_id=vault_id, rules=rules, generation=int(generation), stamp=stamp)

    def __str__(self) -> str:
        """Return how the mirror stores it."""
        return f"{self.vault_id} {self.rules} {self.generation} {self.stamp}"

    def is_in(self, session: Session) -> bool:
        """Return whether the tables were in this state, and keep what has changed since."""
        sql = "SELECT 1 FROM history WHERE generation = %s AND stamp = %s"
        return session.execute(sql, (self.generation, self.stamp)).fetchone() is not None


def read_state(session: Session) -> tuple[dict[str, str], TableState]:
    """Return what is stored about the tables, and the state that a session sees, in one query.

    Raises:
        StorageError: A reader of this version doesn't understand the tables, or they aren't filled yet.
    """
    found = session.execute(
        "SELECT key, value FROM meta"
        " UNION ALL SELECT ' rules', rules FROM sight WHERE role = current_user"
        # The CASE keeps the planner from reading another key's value as a number.
        " UNION ALL SELECT ' stamp', stamp FROM history WHERE generation ="
        " (SELECT CASE WHEN key = 'generation' THEN value::bigint END FROM meta WHERE key = 'generation')"
    )
    meta = {str(key): str(value) for key, value in found}
    rules, stamp = meta.pop(" rules", "-"), meta.pop(" stamp", "-")
    check_meta(meta)
    generation = int(meta.get("generation", "0"))
    return meta, TableState(vault_id=meta.get("id", "-"), rules=rules, generation=generation, stamp=stamp)


def grant(session: Session, schema: str, roles: Sequence[str]) -> None:
    """Let just these roles read the vault's tables; inside a transaction.

    Raises:
        SetupError: The server has no such role.
    """
    known = {str(name) for (name,) in session.execute("SELECT rolname FROM pg_roles")}
    missing = [role for role in roles if role not in known]
    if missing:
        raise SetupError(
            f"index.readers names '{missing[0]}', which is no role of the server",
            hint=f'let its administrator run: CREATE ROLE "{missing[0]}" LOGIN',
        )
    old = {str(role) for (role,) in session.execute("SELECT role FROM sight")}
    for role in sorted(old - {*roles}):
        session.execute("DELETE FROM sight WHERE role = %s", (role,))
        if role in known:
            _execute_for(session, "REVOKE ALL ON ALL TABLES IN SCHEMA {schema} FROM {role}", schema, role)
            _execute_for(session, "REVOKE ALL ON SCHEMA {schema} FROM {role}", schema, role)
    for role in roles:
        _execute_for(session, "GRANT USAGE ON SCHEMA {schema} TO {role}", schema, role)
        _execute_for(session, "GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}", schema, role)


def _execute_for(session: Session, statement: str, schema: str, role: str) -> None:
    """Carry out a statement about a role; both names are quoted by the server."""
    template = statement.format(schema="%%1$I", role="%%2$I")
    row = session.execute(f"SELECT format('{template}', %s::text, %s::text)", (schema, role)).fetchone()
    session.execute(str(row[0]) if row else "")


def _newer_error() -> StorageError:
    return StorageError(
        "the vault in the database was written by a newer version of Knapper",
        code="not_published",
        hint="update Knapper here",
    )

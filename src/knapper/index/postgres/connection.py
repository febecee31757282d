"""Connect to a team's PostgreSQL: the address without its password, a pool, and errors that say what to do."""

from __future__ import annotations

import re
import threading
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cached_property
from importlib import import_module
from types import ModuleType, TracebackType
from typing import Any, Final, Protocol, Self, TypeAlias
from urllib.parse import unquote

from knapper import extras
from knapper.errors import ConflictError, KnapError, SetupError, StorageError

Values: TypeAlias = "Sequence[Any] | Mapping[str, Any]"


class Rows(Protocol):
    """What a statement gives."""

    rowcount: int

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the next row; None where there is none."""
        ...

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return all rows that are left."""
        ...

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """Yield all rows that are left."""
        ...


class Copy(Protocol):
    """Rows on their way into a table."""

    def set_types(self, types: Sequence[str]) -> None:
        """Say which types binary values have."""
        ...

    def write_row(self, row: Sequence[object]) -> None:
        """Write a row."""
        ...


class Cursor(Protocol):
    """What is used of a cursor."""

    def copy(self, statement: str) -> AbstractContextManager[Copy]:
        """Begin to copy rows into a table."""
        ...


class Session(Protocol):
    """What is used of a connection of psycopg's, whose own class takes constant statements alone."""

    closed: bool
    info: Any

    def execute(self, query: str, params: Values | None = None, *, binary: bool = False) -> Rows:
        """Carry out a statement; *binary* asks for values as the server stores them."""
        ...

    def cursor(self) -> AbstractContextManager[Cursor]:
        """Open a cursor."""
        ...

    def transaction(self) -> AbstractContextManager[object]:
        """Carry out the block wholly or not at all."""
        ...

    def notifies(self, *, timeout: float, stop_after: int) -> Iterator[Any]:
        """Yield what others told, until nothing came for a while."""
        ...

    def close(self) -> None:
        """Close it."""
        ...


SCHEMES: Final = ("postgresql://", "postgres://")
MIN_SERVER: Final = 170_000
"""PostgreSQL 17."""
UNREACHABLE: Final = "engine_unreachable"
"""Code of the error that the server doesn't answer."""
_APPLICATION: Final = "knapper"
_CONNECT_TIMEOUT_S: Final = 5
_MAX_IDLE: Final = 16
"""Connections that are kept for the next question."""
_LOGIN: Final = re.compile(r"^(?P<scheme>[a-z]+://)(?P<login>[^/@]*)@")
_IDENTIFIER: Final = re.compile(r"[^a-z0-9_]+")
_MAX_NAME_CHARS: Final = 40


def is_address(engine: str) -> bool:
    """Return whether a value of ``index.engine`` names a PostgreSQL."""
    return engine.startswith(SCHEMES)


def split_password(address: str) -> tuple[str, str]:
    """Return an address without its password, and the password; the latter is empty where it holds none.

    Raises:
        SetupError: The password is where it couldn't be hidden from those who are shown the address.
    """
    head, _, query = address.partition("?")
    if re.search(r"(?:^|&)(?:password|passfile|sslpassword)=", query, re.IGNORECASE):
        raise SetupError(
            "index.engine can't be used: a password stands behind its '?'",
            code="config_invalid",
            hint="set index.password or PGPASSWORD, or keep the password in ~/.pgpass",
        )
    match = _LOGIN.match(head)
    if match is None or ":" not in match["login"]:
        return address, ""
    user, _, password = match["login"].partition(":")
    return f"{match['scheme']}{user}@{address[match.end() :]}", unquote(password)


def schema_of(vault: str) -> str:
    """Return the name of the schema that holds a vault; equal on every machine that calls the vault so."""
    import hashlib  # noqa: PLC0415 - as for all of this module, only a team's index needs it

    plain = _IDENTIFIER.sub("_", vault.lower()).strip("_")[:_MAX_NAME_CHARS]
    mark = "" if plain == vault else f"_{hashlib.sha256(vault.encode()).hexdigest()[:8]}"
    return f"knapper_{plain}{mark}"


class PostgresServer:
    """A thread-safe pool of connections to one database."""

    def __init__(self, address: str, vault: str, password: str = "") -> None:
        """Store where the server is; nothing is opened yet.

        Args:
            address: ``postgresql://…``, as the person configured it.
            vault: The vault's name, which tells its schema.
            password: Where the address holds none; empty to let PostgreSQL's own client look for it, in ``PGPASSWORD``
                and ``~/.pgpass``.

        Raises:
            SetupError: The password is where it couldn't be hidden.
        """
        self.vault = vault
        self.schema = schema_of(vault)
        self.shown, own = split_password(address)
        self._password = password or own
        self._idle: list[Session] = []
        self._lock = threading.Lock()

    def connect(self) -> Session:
        """Open a connection of one's own, which commits each statement unless a transaction is begun.

        Raises:
            StorageError: The server doesn't answer, or doesn't let this user in.
            SetupError: The address can't be used, or the extra isn't installed.
        """
        try:
            named = self._driver.conninfo.conninfo_to_dict(self.shown)
        except self._driver.Error:
            # Its message quotes the address.
            raise SetupError(
                "index.engine can't be used: it isn't an address of PostgreSQL",
                code="config_invalid",
                hint="write it as postgresql://user@host:5432/database",
            ) from None
        parameters: dict[str, Any] = {
            "connect_timeout": _CONNECT_TIMEOUT_S,
            "application_name": _APPLICATION,
            **named,
        }
        if self._password:
            parameters["password"] = self._password
        try:
            opened = self._driver.connect(autocommit=True, prepare_threshold=None, **parameters)
        except self._driver.Error as error:
            raise self._explained(error) from None
        return opened

    @cached_property
    def _driver(self) -> ModuleType:
        """Return psycopg, which is imported when a connection is first needed.

        Raises:
            SetupError: The extra isn't installed.
        """
        try:
            driver = import_module("psycopg")
            for name in ("conninfo", "errors"):
                _ = import_module(f"psycopg.{name}")
        except ImportError:
            raise extras.missing("postgres", "index.engine = postgresql://…") from None
        return driver

    @contextmanager
    def borrow(self, first: str = "SELECT 1") -> Generator[Session]:
        """Lend a connection for the block; one on which anything failed isn't used again.

        Args:
            first: The first statement, which shows whether a kept connection is still there.

        Raises:
            StorageError: The server doesn't answer, or the connection was lost within the block.
        """
        session = self._begin(first)
        try:
            yield session
        except self._driver.Error as error:
            _close_quietly(session)
            raise self._explained(error) from error
        except BaseException:
            _close_quietly(session)
            raise
        with self._lock:
            if len(self._idle) < _MAX_IDLE and not session.closed:
                self._idle.append(session)
                return
        _close_quietly(session)

    @contextmanager
    def snapshot(self) -> Generator[Session]:
        """Read one state of the vault's tables in several queries.

        Raises:
            StorageError: As for `borrow`, or the database has no pgvector.
        """
        with self.borrow("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY") as session:
            yield session
            session.execute("COMMIT")

    def _begin(self, first: str) -> Session:
        while True:
            with self._lock:
                kept = self._idle.pop() if self._idle else None
            session = kept or self._connect_prepared()
            try:
                session.execute(first)
            except self._driver.Error as error:
                _close_quietly(session)
                if kept is None:
                    raise self._explained(error) from error
                # Such as after a restart of the server: the others are lost too.
                self.close()
            else:
                return session

    def _connect_prepared(self) -> Session:
        session = self.connect()
        try:
            use_schema(session, self.schema)
        except BaseException:
            _close_quietly(session)
            raise
        return session

    def explain(self, error: Exception) -> KnapError | None:
        """Return the error for what went wrong in the database, in words that hold neither password nor text.

        Returns:
            None where the database isn't the cause.
        """
        if not isinstance(error, self._driver.Error):
            return None
        errors = self._driver.errors
        kinds = (
            (
                (errors.InsufficientPrivilege, errors.InvalidPassword),
                "doesn't allow that",
                "engine_refused",
                _REFUSED_HINT,
            ),
            ((errors.DiskFull, errors.OutOfMemory), "has no room left", "engine_full", "make room on the server"),
            ((self._driver.OperationalError,), "doesn't answer", UNREACHABLE, _UNREACHABLE_HINT),
            ((self._driver.Error,), "failed", "engine_failed", _FAILED_HINT),
        )
        if isinstance(error, (errors.UndefinedTable, errors.InvalidSchemaName)):
            # A schema that the role may not use is passed over, as if it weren't there.
            message = f"{self.shown} doesn't hold the vault '{self.vault}', or not for this role"
            return StorageError(message, code="not_published", hint=NOT_PUBLISHED_HINT)
        if isinstance(error, (errors.LockNotAvailable, errors.SerializationFailure, errors.DeadlockDetected)):
            return ConflictError(f"{self.shown} is busy: {self._brief(error)}", hint="try again")
        what, code, hint = next(rest for classes, *rest in kinds if isinstance(error, classes))
        return StorageError(f"{self.shown} {what}: {self._brief(error)}", code=code, hint=hint)

    def _explained(self, error: Exception) -> Exception:
        return self.explain(error) or error

    def close(self) -> None:
        """Close all connections that nobody uses."""
        with self._lock:
            idle, self._idle = self._idle, []
        for session in idle:
            _close_quietly(session)

    def __enter__(self) -> Self:
        """Return the server as a context manager."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def _brief(self, error: Exception) -> str:
        """Return the first line of a message; the lines below it may quote values."""
        diagnosis = getattr(getattr(error, "diag", None), "message_primary", None)
        first = str(diagnosis or error).strip().partition("\n")[0]
        return first.replace(self._password, "(set)") if self._password else first


_REFUSED_HINT: Final = "the owner of the vault lets a role in with index.readers, and then runs `knap index`"
_UNREACHABLE_HINT: Final = "see that the server runs and index.engine names it; `knap doctor` tries it"
_FAILED_HINT: Final = "`knap index --full` on the machine with the files writes the vault's tables again"
NOT_PUBLISHED_HINT: Final = (
    "run `knap index` on the machine with the vault's files: its configuration names this server in index.engine, and "
    "the roles that may read in index.readers"
)


def use_schema(session: Session, schema: str) -> None:
    """Let names mean a vault's tables on this connection, and besides these only the system's and pgvector's.

    Raises:
        StorageError: The database has no pgvector.
    """
    row = session.execute(
        "SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'"
    ).fetchone()
    if row is None:
        raise StorageError(
            "the database has no pgvector",
            code="no_pgvector",
            hint="`knap index` on the machine with the files adds it, or its administrator: CREATE EXTENSION vector",
        )
    session.execute("SELECT set_config('search_path', format('%%I, %%I', %s::text, %s::text), false)", (schema, row[0]))


def _close_quietly(session: Session) -> None:
    with suppress(Exception):
        session.close()

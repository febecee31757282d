"""Check the SQLite files of a vault's state that can't be derived again, and keep daily backups of them."""

import contextlib
import os
import shutil
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from knapper.changes.disk import files
from knapper.errors import StorageError
from knapper.system import private

BACKUP_FOLDER: Final = "backups"
ASIDE_FOLDER: Final = "set-aside"
_DERIVED_FOLDERS: Final = frozenset({BACKUP_FOLDER, ASIDE_FOLDER, "index"})
_BACKED_UP: Final = ("journal.db", "proposals.db", "sessions.db", "chats/*/sessions.db")
_KEPT_DAYS: Final = 3
"""Backups of one file, of as many days."""
_BUSY_S: Final = 10.0
_REFUSAL_CODES: Final = frozenset(
    {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY}
)
_DAMAGE_CODES: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


def is_damage(error: sqlite3.Error) -> bool:
    """Return whether SQLite says that a file is damaged, and not that it is busy, full or closed to us."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE_CODES


def storage_error(error: sqlite3.Error, what: str) -> StorageError:
    """Build the error for a state file that can't be used; *what* names it."""
    if is_damage(error):
        return StorageError(
            f"{what} is damaged: {error}",
            code="damaged",
            hint="`knap doctor` tells what is damaged, and `knap doctor --repair` saves what can be saved",
        )
    return StorageError(
        f"{what} can't be used: {error}", hint="check the disk's free space and the folder's permissions"
    )


def check_emptied(path: Path) -> None:
    """Refuse a file that is empty although it has been in use: it would be taken for a new one.

    Raises:
        StorageError: There is a backup of it, so it wasn't empty.
    """
    try:
        is_empty = path.stat().st_size == 0
    except OSError:
        return
    if is_empty and not _has_log(path) and list_backups(path):
        raise StorageError(
            f"'{path}' is empty, although it was in use",
            code="damaged",
            hint="`knap doctor --repair` brings it back from its backup, and keeps the empty file aside",
        )


def _has_log(path: Path) -> bool:
    try:
        return Path(f"{path}-wal").stat().st_size > 0
    except OSError:
        return False


def find_databases(folder: Path) -> list[Path]:
    """List the databases below a vault's state folder, without those that are derived from the notes."""
    found = (path for path in folder.rglob("*.db") if not _DERIVED_FOLDERS & set(path.relative_to(folder).parts))
    return sorted(found)


def find_damage(path: Path) -> str:
    """Check a whole database, with the contents of a journal.

    Returns:
        What is wrong; empty where nothing is.
    """
    try:
        check_emptied(path)
        with contextlib.closing(connect_to_read(path)) as database:
            verdict = " ".join(str(database.execute("PRAGMA integrity_check(1)").fetchone()[0]).split())
            if verdict != "ok":
                return verdict
            bad_contents = len(list(find_bad_contents(database)))
            return f"{bad_contents} stored contents aren't those that were stored" if bad_contents else ""
    except StorageError as error:
        return error.message
    except (sqlite3.Error, UnicodeDecodeError) as error:
        return str(error)


class _CopyConnection(sqlite3.Connection):
    """A connection to a temporary copy of a database, which goes with it."""

    folder: "TemporaryDirectory[str] | None" = None

    def close(self) -> None:
        """Close the connection, and remove the copy."""
        super().close()
        if self.folder is not None:
            self.folder.cleanup()


def open_or_read(
    path: Path,
    prepare: Callable[[sqlite3.Connection], None],
    *,
    version: int,
    make_tables: Callable[[sqlite3.Connection, int], None],
) -> tuple[sqlite3.Connection, bool]:
    """Open a database; where the disk is full or can't be written, only to read it as it is.

    Nothing is written beside it then: what an earlier version of the tables lacks is added to a copy in the memory, and
    a log that nobody keeps in order is read in a temporary copy. A file that isn't there is read as one without rows.

    Args:
        path: Of the database; it's created where there is none.
        prepare: Makes missing tables under the write lock, and sets the connection's options.
        version: Of the tables.
        make_tables: Makes those that a version lacks, without a lock.

    Returns:
        The connection, and whether it can only read.

    Raises:
        sqlite3.Error: It can't be opened.
        OSError: It can't be read.
        StorageError: A newer version made the file.
    """
    if os.access(path.parent, os.W_OK):
        try:
            return _connect(path, prepare), not os.access(path, os.W_OK)
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _REFUSAL_CODES or not path.is_file():
                raise
    database = _open_to_read(path)
    database.row_factory = sqlite3.Row
    found = int(database.execute("PRAGMA user_version").fetchone()[0])
    if found > version:
        database.close()
        raise StorageError(f"'{path}' was made by a newer version", hint="update this program")
    if found < version:
        database = _copy_to_memory(database)
        make_tables(database, found)
    database.execute("PRAGMA query_only = ON").fetchone()
    return database, True


def _open_to_read(path: Path) -> sqlite3.Connection:
    """Open a database without writing to its folder."""
    if not path.is_file():
        return _connect_memory()
    if _has_log(path):
        # In place it can be read with what a living process shares of the log; SQLite would have to make that.
        with contextlib.suppress(sqlite3.Error):
            database = sqlite3.connect(
                f"{path.absolute().as_uri()}?mode=ro",
                uri=True,
                timeout=_BUSY_S,
                isolation_level=None,
                check_same_thread=False,
            )
            try:
                _ = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
            except sqlite3.Error:
                database.close()
                raise
            return database
        with contextlib.suppress(OSError):  # on a full disk, what the log has is left out
            return _open_copy(path)
    return private.connect(path, timeout_s=_BUSY_S, is_immutable=True)


def _connect_memory() -> sqlite3.Connection:
    database = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    database.row_factory = sqlite3.Row
    return database


def _copy_to_memory(database: sqlite3.Connection) -> sqlite3.Connection:
    copy = _connect_memory()
    database.backup(copy)
    database.close()
    return copy


def _open_copy(path: Path) -> sqlite3.Connection:
    """Open a temporary copy of a database and its log."""
    folder = TemporaryDirectory(prefix="knapper-")
    try:
        for name in (path.name, f"{path.name}-wal"):
            shutil.copyfile(path.with_name(name), Path(folder.name, name))
        database = sqlite3.connect(
            Path(folder.name, path.name), isolation_level=None, check_same_thread=False, factory=_CopyConnection
        )
    except BaseException:
        folder.cleanup()
        raise
    database.folder = folder
    return database


def _connect(path: Path, prepare: Callable[[sqlite3.Connection], None]) -> sqlite3.Connection:
    database = private.connect(path, timeout_s=_BUSY_S)
    database.row_factory = sqlite3.Row
    try:
        prepare(database)
    except BaseException:
        database.close()
        raise
    return database


def connect_to_read(path: Path) -> sqlite3.Connection:
    """Open a database to read it; also one in a folder that can't be written.

    Raises:
        sqlite3.Error: It can't be opened.
    """
    mode = "mode=ro" if os.access(path.parent, os.W_OK) else "immutable=1"
    return sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True, timeout=_BUSY_S, isolation_level=None)


def find_bad_contents(database: sqlite3.Connection) -> Iterator[str]:
    """Yield the names of stored contents that don't have the hash that they are named by."""
    has_contents = database.execute("SELECT 1 FROM sqlite_master WHERE name = 'blobs'").fetchone()
    for name, packed in database.execute("SELECT hash, content FROM blobs") if has_contents else ():
        try:
            content = zlib.decompress(packed)
        except (TypeError, zlib.error):
            yield name
            continue
        if str(name).startswith("sha256:") and files.hash_content(content) != name:
            yield name


def list_backups(path: Path) -> list[Path]:
    """List a database's backups, the newest first."""
    return sorted((path.parent / BACKUP_FOLDER).glob(f"{path.name}.????-??-??"), reverse=True)


def back_up_daily(folder: Path, *, max_bytes: int, today: date | None = None) -> list[str]:
    """Copy the databases that can't be derived again, each once a day, and drop the oldest copies.

    Args:
        folder: The vault's state folder.
        max_bytes: Of all copies together; a larger database isn't copied.
        today: The day; None for now.

    Returns:
        What couldn't be copied, and why; `knap doctor` tells it too, by the age of the copies.
    """
    day = (today or datetime.now(UTC).date()).isoformat()
    problems: list[str] = []
    has_copied = False
    for path in (path for pattern in _BACKED_UP for path in folder.glob(pattern)):
        target = path.parent / BACKUP_FOLDER / f"{path.name}.{day}"
        if target.exists():
            continue
        problem = _copy(path, target, max_bytes)
        has_copied |= not problem
        problems += [f"{path.name}: {problem}"] if problem else []
    if has_copied:
        _prune(folder, max_bytes)
    return problems


def _copy(path: Path, target: Path, max_bytes: int) -> str:
    """Copy a database, and return why that failed; a damaged one doesn't replace a sound copy."""
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        size = path.stat().st_size
        if size > max_bytes:
            return f"its {size} bytes are more than backups may take"
        private.make_folder(target.parent)
        os.close(private.open_new(part))
        with (
            contextlib.closing(connect_to_read(path)) as source,
            contextlib.closing(private.connect(part, timeout_s=_BUSY_S)) as copy,
        ):
            source.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE").fetchone()
            verdict = str(copy.execute("PRAGMA quick_check(1)").fetchone()[0])
        if verdict != "ok":
            return verdict
        files.sync_file(part)
        part.replace(target)
    except (OSError, sqlite3.Error, UnicodeDecodeError) as error:
        return str(error)
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
    return ""


def _prune(folder: Path, max_bytes: int) -> None:
    """Drop copies of earlier days, and the oldest of all until the rest fits."""
    by_name: dict[Path, list[Path]] = {}
    for backup in folder.glob(f"**/{BACKUP_FOLDER}/*.db.????-??-??"):
        by_name.setdefault(backup.with_suffix(""), []).append(backup)
    kept: list[Path] = []
    for backups in by_name.values():
        backups.sort(reverse=True)
        kept += backups[:_KEPT_DAYS]
        for old in backups[_KEPT_DAYS:]:
            old.unlink(missing_ok=True)
    kept.sort(key=lambda backup: backup.suffix, reverse=True)
    total = 0
    for backup in kept:
        total += backup.stat().st_size
        if total > max_bytes:
            backup.unlink(missing_ok=True)

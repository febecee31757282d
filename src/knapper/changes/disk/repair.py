"""Repair a damaged database of the state: save its readable rows, fill up from a backup, and keep the damaged file."""

import contextlib
import functools
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal, TypeAlias

from knapper.changes.disk import files, storage
from knapper.system import private

_LOCK_TIMEOUT_S: Final = 10.0
_WHOLE: Final = frozenset({"journal.db", "proposals.db"})
"""Databases whose entries are dropped where a part of one may be lost: half a change must not be undone or accepted."""

_Key: TypeAlias = tuple[object, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Repaired:
    """How a database was repaired."""

    path: Path
    outcome: Literal["saved", "restored", "new"]
    """*Saved*: from its own rows. *Restored*: from its backup alone. *New*: neither could be read."""
    rows: int
    """Rows that were read from the damaged file."""
    is_whole: bool
    """Nothing was lost."""
    backup: str
    """Name of the backup that filled it up; empty for none."""
    aside: Path
    """Folder with the damaged file."""


@dataclass(slots=True, kw_only=True)
class _Salvage:
    """What was read from a damaged file."""

    rows: int = 0
    gaps: dict[str, tuple[_Key | None, _Key | None]] = field(
        default_factory=dict[str, "tuple[_Key | None, _Key | None]"]
    )
    """By table: the last key before what can't be read, and the first one after it."""
    dropped: int = 0
    """Contents that weren't those that were stored."""

    @property
    def is_whole(self) -> bool:
        return not self.gaps and not self.dropped


def repair(path: Path) -> Repaired:
    """Repair one database; other processes must have closed it.

    Raises:
        ConflictError: Another process is writing.
        OSError: The disk refuses; the damaged file is where it was.
        sqlite3.Error: The new file can't be written.
    """
    with storage.hold_write_lock(path.parent, timeout_s=_LOCK_TIMEOUT_S):
        fresh = path.with_name(f"{path.name}.repaired")
        _remove(fresh)
        salvage = _Salvage()
        outcome: Literal["saved", "restored", "new"] = "saved"
        backup = next((one for one in storage.list_backups(path) if not storage.find_damage(one)), None)
        try:
            _save_rows(path, fresh, salvage)
            if not salvage.is_whole and backup is not None:
                _fill_up(fresh, backup)
        except (sqlite3.DatabaseError, UnicodeDecodeError):
            # Not even its schema can be read.
            _remove(fresh)
            salvage = _Salvage()
            outcome = "new" if backup is None else "restored"
            if backup is not None:
                files.Files().copy(backup, fresh)
        # the damaged file with its log goes to a folder of its own; nothing deletes that
        aside = path.parent / private.ASIDE_NAME / f"{datetime.now(UTC):%Y-%m-%dT%H%M%S.%f}"
        private.make_folder(aside)
        for suffix in ("-wal", "-shm", ""):
            part = Path(f"{path}{suffix}")
            if part.exists():
                part.rename(aside / part.name)
        if outcome != "new":
            with contextlib.closing(private.connect(fresh, timeout_s=0)) as database:
                database.execute("PRAGMA journal_mode = WAL").fetchone()
            files.sync_file(fresh)
            fresh.replace(path)
    is_used = backup is not None and (outcome == "restored" or not salvage.is_whole)
    return Repaired(
        path=path,
        outcome=outcome,
        rows=salvage.rows,
        is_whole=outcome == "saved" and salvage.is_whole,
        backup=backup.name if backup is not None and is_used else "",
        aside=aside,
    )


def _remove(path: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)


def _save_rows(path: Path, fresh: Path, salvage: _Salvage) -> None:
    """Copy schema and readable rows."""
    if path.stat().st_size == 0:
        raise sqlite3.DatabaseError("the file is empty")
    with (
        contextlib.closing(storage.connect_to_read(path)) as source,
        contextlib.closing(private.connect(fresh, timeout_s=0)) as target,
    ):
        source.text_factory = functools.partial(bytes.decode, errors="replace")
        schema = source.execute(
            "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'"
            " ORDER BY type <> 'table'"
        ).fetchall()
        if not schema:
            raise sqlite3.DatabaseError("no table can be read")
        for pragma in ("auto_vacuum", "user_version"):
            target.execute(f"PRAGMA {pragma} = {int(source.execute(f'PRAGMA {pragma}').fetchone()[0])}")
        target.execute("BEGIN")
        for kind, name, sql in schema:
            target.execute(sql)
            if kind == "table":
                _copy_table(source, target, name, salvage)
        salvage.dropped += _drop_bad_contents(target)
        if path.name in _WHOLE:
            # the entries of which parts lay in what can't be read, and those next to it, are deleted
            for table, _, parent, parent_column in _references(target):
                if table not in salvage.gaps:
                    continue
                low, high = ((key[0] if key else None) for key in salvage.gaps[table])
                where = f'(:low IS NULL OR "{parent_column}" >= :low) AND (:high IS NULL OR "{parent_column}" <= :high)'
                bounds = {"low": low, "high": high}
                if parent == "changes":
                    target.execute(
                        "INSERT OR IGNORE INTO pruned SELECT id, at, run, proposal,"  # noqa: S608 - names of our own schema
                        f" undone = 0 AND id NOT IN (SELECT change FROM undoes) FROM changes WHERE {where}",
                        bounds,
                    )
                target.execute(f'DELETE FROM "{parent}" WHERE {where}', bounds)  # noqa: S608 - as above
        _drop_orphans(target)
        target.execute("COMMIT")


def _drop_bad_contents(target: sqlite3.Connection) -> int:
    """Delete contents that aren't what was stored, and return how many; only some databases have any."""
    bad_contents = list(storage.find_bad_contents(target))
    for name in bad_contents:
        target.execute("DELETE FROM blobs WHERE hash = ?", (name,))
    return len(bad_contents)


def _copy_table(source: sqlite3.Connection, target: sqlite3.Connection, table: str, salvage: _Salvage) -> None:
    """Copy a table's rows from its beginning and, where one can't be read, from its end."""
    columns = source.execute(f'PRAGMA table_info("{table}")').fetchall()
    insert = f'INSERT OR IGNORE INTO "{table}" VALUES ({", ".join("?" * len(columns))})'  # noqa: S608 - names of our own schema
    keys = [str(name) for _, name in sorted((column[5], column[1]) for column in columns if column[5])]
    with contextlib.suppress(sqlite3.OperationalError):  # a table WITHOUT ROWID
        source.execute(f'SELECT rowid FROM "{table}" LIMIT 0')  # noqa: S608 - as above
        keys = ["rowid"]
    names = ", ".join(f'"{key}"' for key in keys)
    ends: list[_Key | None] = []
    for direction in ("ASC", "DESC"):
        order = ", ".join(f'"{key}" {direction}' for key in keys)
        last: _Key | None = None
        is_done = True
        try:
            for row in source.execute(f'SELECT {names}, * FROM "{table}" NOT INDEXED ORDER BY {order}'):  # noqa: S608 - as above
                key, values = row[: len(keys)], row[len(keys) :]
                if direction == "DESC" and key == ends[0]:
                    break
                salvage.rows += target.execute(insert, values).rowcount
                last = key
        except (sqlite3.DatabaseError, OverflowError, ValueError):
            is_done = False
        if direction == "ASC" and is_done:
            return
        ends.append(last)
    salvage.gaps[table] = (ends[0], ends[1])


def _references(target: sqlite3.Connection) -> Iterator[tuple[str, str, str, str]]:
    """Yield table, column, and the table and column that it refers to."""
    tables = target.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    for (table,) in tables.fetchall():
        for row in target.execute(f'PRAGMA foreign_key_list("{table}")').fetchall():
            yield table, str(row[3]), str(row[2]), str(row[4] or row[3])


def _drop_orphans(target: sqlite3.Connection) -> None:
    """Delete rows whose entry is lost."""
    for table, column, parent, parent_column in _references(target):
        target.execute(
            f'DELETE FROM "{table}" WHERE "{column}" NOT IN (SELECT "{parent_column}" FROM "{parent}")'  # noqa: S608 - as above
        )


def _fill_up(fresh: Path, backup: Path) -> None:
    """Add what a backup has and the damaged file lost; what is there already stays."""
    with contextlib.closing(private.connect(fresh, timeout_s=0)) as target:
        target.execute("ATTACH ? AS backup", (str(backup),))
        target.execute("BEGIN")
        tables = target.execute(
            "SELECT name FROM backup.sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        ).fetchall()
        for (table,) in tables:
            target.execute(f'INSERT OR IGNORE INTO main."{table}" SELECT * FROM backup."{table}"')  # noqa: S608 - as above
        if ("changes",) in tables:
            target.execute("DELETE FROM pruned WHERE id IN (SELECT id FROM changes)")
        _drop_orphans(target)
        target.execute("COMMIT")

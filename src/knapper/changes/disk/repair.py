"""Back up the state's databases each day, and repair a damaged one from its readable rows and its backup."""

import contextlib
import functools
import json
import os
import shutil
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final, Literal, TypeAlias

from knapper.changes.disk import files, storage
from knapper.jsontypes import objects_in, strings_in
from knapper.system import private

_BACKED_UP: Final = ("journal.db", "proposals.db", "usage.db", "work.db")
"""The most important first, and the largest last: these get what space there is.

Questions that wait (``checkpoints.db``) aren't among them: a copy would ask what was answered since."""
_LEFT_OUT: Final[Mapping[str, str]] = {"work.db": "paused"}
"""Tables that a copy leaves out for the same reason."""
_RECREATABLE: Final[Mapping[str, tuple[str, ...]]] = {"work.db": ("nodes", "cache")}
"""Tables that a copy leaves out where it wouldn't fit otherwise, the first the most important: a run that has lost its
steps keeps its task and its answer, and finds them anew when it is continued."""
_KEPT_DAYS: Final = 3
"""Backups of one file, of as many days."""
_REPORT_FILE: Final = "report.json"
"""Beside the backups where one of them isn't whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupGap:
    """What a database's backup of one day lacks."""

    name: str
    """Of the database's file."""
    day: str
    """ISO date; empty where no backup was tried yet."""
    size: int
    """The database's bytes."""
    room: int
    """Bytes that the other backups left for this one."""
    left_out: tuple[str, ...] = ()
    """Tables without their rows in the copy."""
    problem: str = ""
    """Why there is no copy of that day; empty where there is one."""
    fits: bool = True
    """Whether the space for backups wasn't the reason."""


def find_backup_gaps(folder: Path, max_bytes: int) -> list[BackupGap]:
    """List what the backups of a vault lack: databases that weren't copied when that was last tried, or not wholly.

    Args:
        folder: The vault's state folder.
        max_bytes: As for `back_up_daily`.
    """
    gaps: dict[str, BackupGap] = {}
    for gap in _read_gaps(folder):
        backups = storage.list_backups(folder / gap.name)
        if not backups or gap.day >= backups[0].suffix[1:]:  # an older copy may lack what the latest has
            gaps[gap.name] = gap
    for path in _find_backed_up(folder):
        size = path.stat().st_size
        if size > max_bytes and path.name not in gaps and not storage.list_backups(path):
            gaps[path.name] = BackupGap(
                name=path.name, day="", size=size, room=max_bytes, problem="it is too large", fits=False
            )
    return [gap for gap in gaps.values() if (folder / gap.name).is_file()]


def find_left_out(backup: Path) -> tuple[str, ...]:
    """List the tables whose rows a backup was made without."""
    name, day = backup.stem, backup.suffix[1:]
    gaps = _read_gaps(backup.parent.parent)
    return next((gap.left_out for gap in gaps if (gap.name, gap.day) == (name, day)), ())


def back_up_daily(folder: Path, *, max_bytes: int, today: date | None = None) -> list[str]:
    """Copy the databases that can't be derived again, each once a day, and drop the oldest copies.

    A database that doesn't fit beside the day's other copies is copied without what can be made again; `knap doctor`
    tells that, and where even that doesn't fit.

    Args:
        folder: The vault's state folder.
        max_bytes: Of all copies together; 0 makes none.
        today: The day; None for now.

    Returns:
        What couldn't be copied, and why.
    """
    today = today or datetime.now(UTC).date()
    earlier = _read_gaps(folder)
    gaps = [gap for gap in earlier if (folder / storage.BACKUP_FOLDER / f"{gap.name}.{gap.day}").exists()]
    has_copied = False
    room = max_bytes
    for path in _find_backed_up(folder) if max_bytes else ():
        target = path.parent / storage.BACKUP_FOLDER / f"{path.name}.{today.isoformat()}"
        if not target.exists():
            gap = _find_same(earlier, path, target, room) or _copy(path, target, room)
            has_copied |= not gap.problem
            gaps += [gap] if gap.problem or gap.left_out else []
        with contextlib.suppress(OSError):  # not copied
            room -= target.stat().st_size
    if has_copied:
        _drop_old_backups(folder, max_bytes, today)
    problems = [f"{gap.name}: {gap.problem}" for gap in gaps if gap.problem]
    return problems + ([problem] if gaps != earlier and (problem := _write_gaps(folder, gaps)) else [])


def _find_same(gaps: Sequence[BackupGap], path: Path, target: Path, room: int) -> BackupGap | None:
    """Return why a database didn't fit earlier that day, where nothing has changed: trying it takes seconds."""
    for gap in gaps:
        if (gap.name, gap.day, gap.room) == (path.name, target.suffix[1:], room) and not gap.fits:
            return gap if path.stat().st_size > room else None
    return None


def _read_gaps(folder: Path) -> list[BackupGap]:
    try:
        rows: object = json.loads((folder / storage.BACKUP_FOLDER / _REPORT_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):  # there are none, or the next backup writes it anew
        return []
    return [
        BackupGap(
            name=str(row.get("name") or ""),
            day=str(row.get("day") or ""),
            size=size if isinstance(size := row.get("size"), int) else 0,
            room=room if isinstance(room := row.get("room"), int) else 0,
            left_out=tuple(strings_in(row.get("left_out"))),
            problem=str(row.get("problem") or ""),
            fits=bool(row.get("fits")),
        )
        for row in objects_in(rows)
    ]


def _write_gaps(folder: Path, gaps: Sequence[BackupGap]) -> str:
    """Store what backups lack; return why that failed."""
    path = folder / storage.BACKUP_FOLDER / _REPORT_FILE
    try:
        if gaps:
            private.make_folder(path.parent)
            private.write_text(path, json.dumps([asdict(gap) for gap in gaps], indent=1))
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        return f"{_REPORT_FILE}: {error}"
    return ""


def _drop_old_backups(folder: Path, max_bytes: int, today: date) -> None:
    """Remove copies of earlier days, and the oldest of all until the rest fits; of one day, the least important first.

    No new copies push out those of a database that is gone, as what it held is kept in another one now.
    """
    ranks = {
        path.parent / storage.BACKUP_FOLDER / path.name: number for number, path in enumerate(_find_backed_up(folder))
    }
    by_name: dict[Path, list[Path]] = {}
    for backup in folder.glob(f"**/{storage.BACKUP_FOLDER}/*.db.????-??-??"):
        by_name.setdefault(backup.with_suffix(""), []).append(backup)
    kept: list[Path] = []
    first_day = (today - timedelta(days=_KEPT_DAYS)).isoformat()
    for name, backups in by_name.items():
        is_gone = not (name.parent.parent / name.name).exists()
        recent = [backup for backup in backups if not is_gone or backup.suffix[1:] > first_day]
        recent = sorted(recent, reverse=True)[:_KEPT_DAYS]
        kept += recent
        for old in {*backups} - {*recent}:
            old.unlink(missing_ok=True)
    kept.sort(key=lambda backup: ranks.get(backup.with_suffix(""), len(ranks)))
    kept.sort(key=lambda backup: backup.suffix, reverse=True)
    total = 0
    for backup in kept:
        total += backup.stat().st_size
        if total > max_bytes:
            backup.unlink(missing_ok=True)


def _find_backed_up(folder: Path) -> list[Path]:
    return [path for name in _BACKED_UP if (path := folder / name).is_file()]


def _copy(path: Path, target: Path, room: int) -> BackupGap:
    """Copy a database, as far as it fits; a damaged one doesn't replace a sound copy."""
    gap = BackupGap(name=path.name, day=target.suffix[1:], size=path.stat().st_size, room=room)
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        private.make_folder(target.parent)
        with contextlib.closing(storage.connect_to_read(path)) as source:
            # With what is in the log, which the file's size doesn't tell.
            gap = replace(gap, size=_read_number(source, "page_count") * _read_number(source, "page_size"))
            if gap.size > room and path.name not in _RECREATABLE:
                problem = f"its {gap.size} bytes are more than what backups may still take"
                return replace(gap, problem=problem, fits=False)
            os.close(private.open_new(part))
            with contextlib.closing(private.connect(part, timeout_s=storage.BUSY_S)) as copy:
                if gap.size > room:
                    gap = replace(gap, left_out=_copy_rows(source, copy, path.name, room))
                else:
                    _copy_whole(source, copy, path.name)
                verdict = str(copy.execute("PRAGMA quick_check(1)").fetchone()[0])
        if verdict != "ok":
            return replace(gap, problem=verdict)
        files.sync_file(part)
        part.replace(target)
    except (OSError, sqlite3.Error, UnicodeDecodeError) as error:
        return _explain_failure(gap, error, target.parent)
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
    return gap


def _explain_failure(gap: BackupGap, error: Exception, folder: Path) -> BackupGap:
    is_full = gap.size > gap.room and getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_FULL
    if is_full and shutil.disk_usage(folder).free > gap.room:  # else the disk may be the reason
        problem = f"its {gap.size} bytes are more than what backups may still take, also without what can be made again"
        return replace(gap, problem=problem, fits=False)
    return replace(gap, problem=str(error))


def _copy_whole(source: sqlite3.Connection, target: sqlite3.Connection, name: str) -> None:
    source.backup(target)
    target.execute("PRAGMA journal_mode = DELETE").fetchone()
    if table := _LEFT_OUT.get(name):
        target.execute(f"DELETE FROM {table}")  # noqa: S608 - a constant


def _copy_rows(source: sqlite3.Connection, target: sqlite3.Connection, name: str, room: int) -> tuple[str, ...]:
    """Copy a database row by row, first what can't be made again and then as many of the other tables as fit.

    Its unused pages take no room in the copy.

    Args:
        source: The database.
        target: The copy, which is empty.
        name: Of the database's file.
        room: How many bytes the copy may take.

    Returns:
        The tables that didn't fit.

    Raises:
        sqlite3.OperationalError: What can't be made again doesn't fit (``SQLITE_FULL``).
    """
    source.execute("BEGIN")  # one state of all tables
    for pragma in ("page_size", "user_version"):
        target.execute(f"PRAGMA {pragma} = {_read_number(source, pragma)}")
    target.execute(f"PRAGMA max_page_count = {max(room // _read_number(source, 'page_size'), 1)}").fetchone()
    tables = _make_schema(source, target)
    recreatable = _RECREATABLE[name]
    for table in (*(table for table in tables if table not in {*recreatable, _LEFT_OUT[name]}), *recreatable):
        try:
            target.execute("BEGIN")
            rows = source.execute(f'SELECT * FROM "{table}"')  # noqa: S608 - names of our own schema
            places = ", ".join("?" * len(rows.description))
            target.executemany(f'INSERT INTO "{table}" VALUES ({places})', rows)  # noqa: S608 - as above
            target.execute("COMMIT")
        except sqlite3.OperationalError as error:
            if target.in_transaction:  # SQLite may have ended it itself
                target.execute("ROLLBACK")
            if error.sqlite_errorcode != sqlite3.SQLITE_FULL or table not in recreatable:
                raise
            return recreatable[recreatable.index(table) :]
    return ()


def _make_schema(source: sqlite3.Connection, target: sqlite3.Connection) -> list[str]:
    """Make a database's tables and indexes in another one, and return the names of the tables."""
    schema = source.execute(
        "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'"
        " ORDER BY type <> 'table'"
    ).fetchall()
    for _, _, sql in schema:
        target.execute(sql)
    return [name for kind, name, _ in schema if kind == "table"]


def _read_number(database: sqlite3.Connection, name: str) -> int:
    return int(database.execute(f"PRAGMA {name}").fetchone()[0])


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
        if outcome == "new":
            storage.forget_use(path)
        else:
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

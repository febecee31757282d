"""Keep the files and hunks of proposals in the tables of an SQLite file: contents once each, compressed."""

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Final, cast

from knapper.changes.disk import blobs
from knapper.changes.review import hunking, proposal_records
from knapper.changes.review.proposal_records import ItemState, ProposedFile, ProposedHunk, Stale
from knapper.changes.text.diff import Hunk
from knapper.errors import NotFound, StorageError
from knapper.vault import parser, source
from knapper.vault.paths import NotePath

_COLUMNS: Final = (
    "path",
    "kind",
    "target",
    "trash",
    "base",
    "before",
    "content",
    "needs",
    "anchored",
    "cause",
    "requests",
    "state",
    "stale",
    "reason",
    "edited",
)
_KEEP: Final = f"""INSERT INTO files (proposal, number, {", ".join(_COLUMNS)})
    VALUES (?, ?{", ?" * len(_COLUMNS)})
    ON CONFLICT (proposal, number) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in _COLUMNS)}"""  # noqa: S608
_UNUSED: Final = " AND ".join(
    f"NOT EXISTS (SELECT 1 FROM {table} WHERE {column} = :name)"  # noqa: S608  # constants
    for table, column in (("files", "before"), ("files", "content"), ("hunks", "origin"), ("hunks", "new"))
)


def put(database: sqlite3.Connection, proposal_id: str, files: Sequence[ProposedFile]) -> None:
    """Keep what is proposed for files in the place of what was proposed for them before."""
    numbers = {file.number for file in files}
    old = names(database, proposal_id, numbers)
    keys = [(proposal_id, number) for number in numbers]
    database.executemany("DELETE FROM hunks WHERE proposal = ? AND file = ?", keys)
    contents = _Stored(database)
    database.executemany(_KEEP, [_row(proposal_id, file, contents) for file in files])
    hunks = [row for file in files if file.kind == "edit" for row in _hunk_rows(proposal_id, file, contents)]
    database.executemany("INSERT INTO hunks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", hunks)
    drop_unused(database, old - contents.names)


def read(database: sqlite3.Connection, proposal_id: str) -> tuple[ProposedFile, ...]:
    """Give a proposal's files, in order.

    Raises:
        StorageError: Their texts are damaged.
    """
    contents = _Contents(database)
    files = database.execute("SELECT * FROM files WHERE proposal = ? ORDER BY number", (proposal_id,)).fetchall()
    hunks: dict[int, list[sqlite3.Row]] = {}
    for one in database.execute("SELECT * FROM hunks WHERE proposal = ? ORDER BY file, number", (proposal_id,)):
        hunks.setdefault(one["file"], []).append(one)
    return tuple(_file(one, hunks.get(one["number"], []), contents) for one in files)


def names(database: sqlite3.Connection, proposal_id: str, numbers: Iterable[int] | None = None) -> set[str]:
    """Name the contents of a proposal's files; of all where no numbers are given."""
    wanted = None if numbers is None else set(numbers)
    files = database.execute("SELECT number, before, content FROM files WHERE proposal = ?", (proposal_id,))
    hunks = database.execute("SELECT file, origin, new FROM hunks WHERE proposal = ?", (proposal_id,))
    rows = (*files.fetchall(), *hunks.fetchall())
    return {name for number, *held in rows if wanted is None or number in wanted for name in held if name}


def drop_unused(database: sqlite3.Connection, wanted: Iterable[str]) -> None:
    """Delete those of some contents that no proposal names any more."""
    statement = f"DELETE FROM blobs WHERE hash = :name AND {_UNUSED}"  # noqa: S608  # constants of this module
    database.executemany(statement, [{"name": name} for name in wanted])


class _Stored:
    """Keep each content once, and remember the names."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database: sqlite3.Connection = database
        self._known: dict[int, tuple[bytes, str]] = {}

    @property
    def names(self) -> set[str]:
        return {name for _, name in self._known.values()}

    def put(self, content: bytes | None) -> str | None:
        if content is None:
            return None
        held = self._known.get(id(content))
        if held is None:
            held = (content, parser.content_hash(content))  # held on to, so that no other content gets its id
            blobs.put(self._database, held[1], content)
            self._known[id(content)] = held
        return held[1]


def _row(proposal_id: str, file: ProposedFile, contents: _Stored) -> tuple[object, ...]:
    return (
        proposal_id,
        file.number,
        file.path,
        file.kind,
        file.target,
        file.trash,
        file.base,
        contents.put(file.before),
        contents.put(file.content),
        json.dumps(sorted(file.needs)),
        file.anchored,
        file.cause,
        json.dumps(sorted(file.requests)),
        file.state,
        _stale_text(file.stale),
        file.reason,
        file.kind != "edit" and any(one.edited for one in file.hunks),
    )


def _hunk_rows(proposal_id: str, file: ProposedFile, contents: _Stored) -> list[tuple[object, ...]]:
    return [
        (
            proposal_id,
            file.number,
            one.number,
            contents.put(one.origin),
            one.hunk.start,
            one.hunk.start + len(one.hunk.old),
            contents.put(one.hunk.new),
            one.state,
            _stale_text(one.stale),
            one.reason,
            one.edited,
        )
        for one in file.hunks
    ]


class _Contents:
    """Read each content once."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database: sqlite3.Connection = database
        self._known: dict[str, bytes] = {}

    def get(self, name: str | None) -> bytes | None:
        return None if name is None else self.need(name)

    def need(self, name: str) -> bytes:
        if name not in self._known:
            try:
                self._known[name] = blobs.get(self._database, name)
            except NotFound as error:
                msg = f"the text {name} of a proposal is missing"
                raise StorageError(msg, hint="restore the vault's state from a backup") from error
        return self._known[name]


def _file(row: sqlite3.Row, hunks: Sequence[sqlite3.Row], contents: _Contents) -> ProposedFile:
    made = ProposedFile(
        number=row["number"],
        path=NotePath(row["path"]),
        kind=row["kind"],
        target=row["target"],
        trash=row["trash"],
        base=row["base"],
        before=contents.get(row["before"]),
        content=contents.get(row["content"]),
        needs=frozenset(json.loads(row["needs"])),
        anchored=bool(row["anchored"]),
        cause=row["cause"],
        requests=frozenset(json.loads(row["requests"])),
        state=row["state"],
        stale=_stale(row["stale"]),
        reason=row["reason"],
    )
    found = [_hunk(row["proposal"], row["number"], one, contents) for one in hunks]
    return hunking.with_hunks(made, row["proposal"], found, edited=bool(row["edited"]))


def _hunk(proposal: str, file: int, row: sqlite3.Row, contents: _Contents) -> ProposedHunk:
    origin = contents.need(row["origin"])
    hunk = Hunk(
        id=proposal_records.hunk_id(proposal, file, row["number"]),
        start=row["start"],
        old=origin[row["start"] : row["stop"]],
        new=contents.need(row["new"]),
        old_start_line=source.line_number_at(origin, row["start"]),
        new_start_line=0,
    )
    return ProposedHunk(
        number=row["number"],
        id=f"{file}.{row['number']}",
        hunk=hunk,
        origin=origin,
        state=cast("ItemState", row["state"]),
        stale=_stale(row["stale"]),
        edited=bool(row["edited"]),
        reason=row["reason"],
    )


def _stale_text(stale: Stale | None) -> str | None:
    return json.dumps(asdict(stale)) if stale else None


def _stale(text: str | None) -> Stale | None:
    return Stale(**cast("Mapping[str, str]", json.loads(text))) if text else None  # pyright: ignore[reportArgumentType]

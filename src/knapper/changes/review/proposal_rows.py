"""Keep proposals in the tables of an SQLite file: contents once each, compressed."""

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import cast

from knapper.changes.disk import blobs
from knapper.changes.drafts import Rewritten
from knapper.changes.review import hunking, proposal_records
from knapper.changes.review.proposal_records import ItemState, Proposal, ProposedFile, ProposedHunk, Stale, Status
from knapper.changes.text.diff import Hunk
from knapper.errors import NotFound, StorageError
from knapper.vault import lines, notes
from knapper.vault.grants import Scope
from knapper.vault.paths import NotePath

_USED = (
    "SELECT 1 FROM files WHERE before = :name",
    "SELECT 1 FROM files WHERE content = :name",
    "SELECT 1 FROM hunks WHERE origin = :name",
    "SELECT 1 FROM hunks WHERE new = :name",
)


def add(database: sqlite3.Connection, proposal: Proposal) -> None:
    """Keep a new proposal."""
    database.execute(
        "INSERT INTO proposals (id, client, run, created, expires, status, reason, why, tainted, by_query, folders,"
        " notices, rewritten, scope) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            proposal.id,
            proposal.client,
            proposal.run,
            moment(proposal.created),
            moment(proposal.expires),
            proposal.status,
            proposal.reason,
            proposal.why,
            proposal.tainted,
            proposal.by_query,
            json.dumps(proposal.folders),
            json.dumps(proposal.notices),
            json.dumps([asdict(one) for one in proposal.rewritten]),
            None if proposal.scope.paths is None else json.dumps(sorted(proposal.scope.paths)),
        ),
    )
    for file in proposal.files:
        put_file(database, proposal.id, file)


def put_file(database: sqlite3.Connection, proposal_id: str, file: ProposedFile) -> None:
    """Keep a file's state in the place of its last one."""
    old = _names(database, proposal_id, file.number)
    database.execute("DELETE FROM hunks WHERE proposal = ? AND file = ?", (proposal_id, file.number))
    edited = file.kind != "edit" and any(one.edited for one in file.hunks)
    row = (
        file.path,
        file.kind,
        file.target,
        file.trash,
        file.base,
        _put(database, file.before),
        _put(database, file.content),
        json.dumps(sorted(file.needs)),
        file.anchored,
        file.cause,
        json.dumps(sorted(file.requests)),
        file.state,
        _stale_text(file.stale),
        file.reason,
        edited,
        proposal_id,
        file.number,
    )
    if old is None:
        database.execute(f"INSERT INTO files VALUES (?16, ?17, {', '.join(f'?{n}' for n in range(1, 16))})", row)  # noqa: S608
    else:
        database.execute(
            "UPDATE files SET path = ?, kind = ?, target = ?, trash = ?, base = ?, before = ?, content = ?, needs = ?,"
            " anchored = ?, cause = ?, requests = ?, state = ?, stale = ?, reason = ?, edited = ?"
            " WHERE proposal = ? AND number = ?",
            row,
        )
    if file.kind == "edit":
        _put_hunks(database, proposal_id, file)
    drop_unused(database, old or ())


def _put_hunks(database: sqlite3.Connection, proposal_id: str, file: ProposedFile) -> None:
    names = {id(one.origin): one.origin for one in file.hunks}
    origins = {key: _put(database, origin) for key, origin in names.items()}
    rows = [
        (
            proposal_id,
            file.number,
            one.number,
            origins[id(one.origin)],
            one.hunk.start,
            one.hunk.start + len(one.hunk.old),
            _put(database, one.hunk.new),
            one.state,
            _stale_text(one.stale),
            one.reason,
            one.edited,
        )
        for one in file.hunks
    ]
    database.executemany("INSERT INTO hunks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)


def get(database: sqlite3.Connection, proposal_id: str) -> Proposal:
    """Give a proposal.

    Raises:
        NotFound: There is none of this id.
        StorageError: Its texts are damaged.
    """
    row = database.execute("SELECT * FROM proposals WHERE id = ?", (proposal_id,)).fetchone()
    if row is None:
        raise missing(proposal_id)
    contents = _Contents(database)
    files = database.execute("SELECT * FROM files WHERE proposal = ? ORDER BY number", (proposal_id,)).fetchall()
    hunks: dict[int, list[sqlite3.Row]] = {}
    for one in database.execute("SELECT * FROM hunks WHERE proposal = ? ORDER BY file, number", (proposal_id,)):
        hunks.setdefault(one["file"], []).append(one)
    changes = database.execute(
        "SELECT change FROM acceptances WHERE proposal = ? AND change IS NOT NULL ORDER BY at", (proposal_id,)
    )
    found = Proposal(
        id=row["id"],
        client=row["client"],
        run=row["run"],
        created=datetime.fromisoformat(row["created"]),
        expires=datetime.fromisoformat(row["expires"]),
        status=cast("Status", row["status"]),
        reason=row["reason"],
        why=row["why"],
        tainted=bool(row["tainted"]),
        by_query=bool(row["by_query"]),
        files=tuple(_file(one, hunks.get(one["number"], []), contents) for one in files),
        folders=tuple((NotePath(source), NotePath(target)) for source, target in json.loads(row["folders"])),
        notices=tuple(json.loads(row["notices"])),
        rewritten=tuple(Rewritten(**one) for one in json.loads(row["rewritten"])),
        scope=Scope(paths=None if row["scope"] is None else frozenset(json.loads(row["scope"]))),
        rejection=row["rejection"],
        superseded_by=row["superseded_by"],
        changes=tuple(one["change"] for one in changes.fetchall() if one["change"]),
    )
    return replace(found, digest=proposal_records.digest(found))


def blocks(database: sqlite3.Connection, proposal_id: str, number: int) -> dict[str, tuple[str, ...]]:
    """Tell which blocks in a note show hunks of a file: block ids, each with the hunks' ids."""
    rows = database.execute(
        "SELECT block, hunks FROM shown WHERE proposal = ? AND file = ? ORDER BY block", (proposal_id, number)
    )
    return {row["block"]: tuple(json.loads(row["hunks"])) for row in rows.fetchall()}


def put_blocks(database: sqlite3.Connection, proposal_id: str, number: int, shown: Mapping[str, Iterable[str]]) -> None:
    """Keep which blocks in a note show hunks of a file, in the place of those that did."""
    database.execute("DELETE FROM shown WHERE proposal = ? AND file = ?", (proposal_id, number))
    rows = [(proposal_id, number, block, json.dumps(list(hunks))) for block, hunks in shown.items()]
    database.executemany("INSERT INTO shown VALUES (?, ?, ?, ?)", rows)


def missing(proposal_id: str) -> NotFound:
    """Make the error for a proposal that isn't there, or that a client may not see."""
    hint = "list the proposals for their ids"
    return NotFound(f"no proposal '{proposal_id}'", hint=hint, code="proposal_not_found")


def moment(at: datetime) -> str:
    """Write a time so that texts sort as times do."""
    return at.isoformat(timespec="milliseconds")


def drop(database: sqlite3.Connection, proposal_id: str) -> None:
    """Delete a proposal, and contents that nothing else names."""
    names = _names(database, proposal_id)
    database.execute("DELETE FROM proposals WHERE id = ?", (proposal_id,))
    drop_unused(database, names or ())


def drop_unused(database: sqlite3.Connection, names: Iterable[str]) -> None:
    """Delete those contents of *names* that nothing names any more."""
    unused = " AND ".join(f"NOT EXISTS ({used})" for used in _USED)
    statement = f"DELETE FROM blobs WHERE hash = :name AND {unused}"  # noqa: S608  # constants of this module
    database.executemany(statement, [{"name": name} for name in set(names)])


def _names(database: sqlite3.Connection, proposal_id: str, number: int | None = None) -> list[str] | None:
    """List the contents that a proposal, or one of its files, names; None where there is no such file."""
    which = {"proposal": proposal_id, "number": number}
    files = database.execute(
        "SELECT before, content FROM files WHERE proposal = :proposal AND (:number IS NULL OR number = :number)", which
    ).fetchall()
    hunks = database.execute(
        "SELECT origin, new FROM hunks WHERE proposal = :proposal AND (:number IS NULL OR file = :number)", which
    ).fetchall()
    return [name for row in (*files, *hunks) for name in row if name] if files else None


def _put(database: sqlite3.Connection, content: bytes | None) -> str | None:
    if content is None:
        return None
    name = notes.hash_of(content)
    blobs.put(database, name, content)
    return name


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
    before, content = contents.get(row["before"]), contents.get(row["content"])
    made = ProposedFile(
        number=row["number"],
        path=NotePath(row["path"]),
        kind=row["kind"],
        target=row["target"],
        trash=row["trash"],
        base=row["base"],
        before=before,
        content=content,
        needs=frozenset(json.loads(row["needs"])),
        anchored=bool(row["anchored"]),
        cause=row["cause"],
        requests=frozenset(json.loads(row["requests"])),
        state=row["state"],
        stale=_stale(row["stale"]),
        reason=row["reason"],
    )
    found = _hunks(row["proposal"], row["number"], hunks, contents)
    return hunking.with_hunks(made, row["proposal"], found, edited=bool(row["edited"]))


def _hunks(proposal: str, file: int, rows: Sequence[sqlite3.Row], contents: _Contents) -> tuple[ProposedHunk, ...]:
    found: list[ProposedHunk] = []
    for row in rows:
        origin = contents.need(row["origin"])
        hunk = Hunk(
            id=proposal_records.hunk_id(proposal, file, row["number"]),
            start=row["start"],
            old=origin[row["start"] : row["stop"]],
            new=contents.need(row["new"]),
            old_start_line=lines.count(origin, row["start"]),
            new_start_line=0,
        )
        found.append(
            ProposedHunk(
                number=row["number"],
                id=f"{file}.{row['number']}",
                hunk=hunk,
                origin=origin,
                state=cast("ItemState", row["state"]),
                stale=_stale(row["stale"]),
                edited=bool(row["edited"]),
                reason=row["reason"],
            )
        )
    return tuple(found)


def _stale_text(stale: Stale | None) -> str | None:
    return json.dumps(asdict(stale)) if stale else None


def _stale(text: str | None) -> Stale | None:
    return Stale(**cast("Mapping[str, str]", json.loads(text))) if text else None  # pyright: ignore[reportArgumentType]

"""SQLite tables of proposals, their files, hunks and contents, and the log of what was accepted of them."""

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Final

from knapper.changes.disk import storage
from knapper.changes.disk.journal import Change, Journal
from knapper.changes.disk.storage import DataVersion, SharedDatabase
from knapper.changes.drafts import Draft, LinkRewrite
from knapper.changes.proposals import model, parts
from knapper.changes.proposals.model import (
    Decision,
    ItemState,
    Proposal,
    ProposalStatus,
    ProposedFile,
    ProposedHunk,
    Stale,
)
from knapper.changes.proposals.parts import ChosenHunks, Selection
from knapper.changes.text.diff import Hunk
from knapper.errors import NotFound, StorageError
from knapper.vault import parser, source
from knapper.vault.access import Scope
from knapper.vault.paths import NotePath

_TABLES = f"""
CREATE TABLE IF NOT EXISTS proposals (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    client TEXT NOT NULL,
    run TEXT NOT NULL,
    created TEXT NOT NULL,
    expires TEXT NOT NULL,
    status TEXT NOT NULL,
    reason TEXT NOT NULL,
    why TEXT NOT NULL,
    tainted INTEGER NOT NULL,
    by_query INTEGER NOT NULL,
    folders TEXT NOT NULL,
    notices TEXT NOT NULL,
    rewritten TEXT NOT NULL,
    scope TEXT,
    rejection TEXT NOT NULL DEFAULT '',
    superseded_by TEXT NOT NULL DEFAULT ''
);
CREATE TABLE IF NOT EXISTS files (
    proposal TEXT NOT NULL REFERENCES proposals(id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    path TEXT NOT NULL,
    kind TEXT NOT NULL,
    target TEXT,
    trash TEXT,
    base TEXT,
    before TEXT,
    content TEXT,
    needs TEXT NOT NULL,
    anchored INTEGER NOT NULL,
    cause TEXT NOT NULL,
    requests TEXT NOT NULL,
    state TEXT NOT NULL,
    stale TEXT,
    reason TEXT NOT NULL,
    edited INTEGER NOT NULL,
    PRIMARY KEY (proposal, number)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS hunks (
    proposal TEXT NOT NULL,
    file INTEGER NOT NULL,
    number INTEGER NOT NULL,
    origin TEXT NOT NULL,
    start INTEGER NOT NULL,
    stop INTEGER NOT NULL,
    new TEXT NOT NULL,
    state TEXT NOT NULL,
    stale TEXT,
    reason TEXT NOT NULL,
    edited INTEGER NOT NULL,
    PRIMARY KEY (proposal, file, number),
    FOREIGN KEY (proposal, file) REFERENCES files(proposal, number) ON DELETE CASCADE
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS acceptances (
    token TEXT PRIMARY KEY,
    proposal TEXT NOT NULL REFERENCES proposals(id) ON DELETE CASCADE,
    at TEXT NOT NULL,
    chosen TEXT NOT NULL,
    plain TEXT NOT NULL,
    expected TEXT NOT NULL,
    blocks TEXT NOT NULL,
    change TEXT
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS shown (
    proposal TEXT NOT NULL,
    file INTEGER NOT NULL,
    block TEXT NOT NULL,
    hunks TEXT NOT NULL,
    PRIMARY KEY (proposal, file, block),
    FOREIGN KEY (proposal, file) REFERENCES files(proposal, number) ON DELETE CASCADE
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS drawings (
    proposal TEXT NOT NULL,
    file INTEGER NOT NULL,
    block TEXT NOT NULL,
    texts TEXT NOT NULL,
    PRIMARY KEY (proposal, file, block),
    FOREIGN KEY (proposal, file) REFERENCES files(proposal, number) ON DELETE CASCADE
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS behalves (
    proposal TEXT PRIMARY KEY REFERENCES proposals(id) ON DELETE CASCADE,
    client TEXT NOT NULL
) WITHOUT ROWID;
CREATE VIEW IF NOT EXISTS items AS
    SELECT proposal, file, state, stale FROM hunks
    UNION ALL SELECT proposal, number, state, stale FROM files WHERE kind <> 'edit';
CREATE INDEX IF NOT EXISTS by_status ON proposals(status);
CREATE INDEX IF NOT EXISTS by_path ON files(path);
CREATE INDEX IF NOT EXISTS by_before ON files(before);
CREATE INDEX IF NOT EXISTS by_content ON files(content);
CREATE INDEX IF NOT EXISTS by_origin ON hunks(origin);
CREATE INDEX IF NOT EXISTS by_new ON hunks(new);
CREATE INDEX IF NOT EXISTS by_proposal ON acceptances(proposal);
{storage.BLOB_SCHEMA}
"""  # noqa: S608  # made of constants
_DECISIONS = """
CREATE TABLE IF NOT EXISTS decisions (
    proposal TEXT NOT NULL REFERENCES proposals(id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    state TEXT NOT NULL,
    at TEXT NOT NULL,
    client TEXT NOT NULL,
    reason TEXT NOT NULL,
    items TEXT NOT NULL,
    PRIMARY KEY (proposal, number)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS decided ON decisions(at);
CREATE TABLE IF NOT EXISTS refusals (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    client TEXT NOT NULL,
    run TEXT NOT NULL,
    path TEXT NOT NULL,
    action TEXT NOT NULL,
    reason TEXT NOT NULL,
    at TEXT NOT NULL,
    times INTEGER NOT NULL,
    UNIQUE (client, run, path, action, reason)
);
CREATE INDEX IF NOT EXISTS refused ON refusals(at);
"""
_DUE = """
CREATE INDEX IF NOT EXISTS due ON proposals(expires) WHERE status IN ('open', 'stale');
"""
SCHEMAS: Final = ("", "", _TABLES, _DECISIONS, _DUE)
"""What each version adds; the tables of the first three are made only where they are missing."""

_FILE_COLUMNS: Final = (
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
_UPSERT_FILE: Final = f"""INSERT INTO files (proposal, number, {", ".join(_FILE_COLUMNS)})
    VALUES (?, ?{", ?" * len(_FILE_COLUMNS)})
    ON CONFLICT (proposal, number) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in _FILE_COLUMNS)}"""  # noqa: S608
_UNUSED: Final = " AND ".join(
    f"NOT EXISTS (SELECT 1 FROM {table} WHERE {column} = :name)"  # noqa: S608  # constants
    for table, column in (("files", "before"), ("files", "content"), ("hunks", "origin"), ("hunks", "new"))
)


def put_files(database: sqlite3.Connection, proposal_id: str, files: Sequence[ProposedFile]) -> None:
    """Store proposed files with their hunks, in place of what was stored for them before."""
    numbers = {file.number for file in files}
    old = content_names(database, proposal_id, numbers)
    keys = [(proposal_id, number) for number in numbers]
    database.executemany("DELETE FROM hunks WHERE proposal = ? AND file = ?", keys)
    contents = _ContentWriter(database)
    database.executemany(_UPSERT_FILE, [_file_row(proposal_id, file, contents) for file in files])
    hunks = [
        (
            proposal_id,
            file.number,
            one.number,
            contents.put(one.origin),
            one.hunk.start,
            one.hunk.start + len(one.hunk.old),
            contents.put(one.hunk.new),
            one.state,
            _dump_stale(one.stale),
            one.reason,
            one.edited,
        )
        for file in files
        if file.kind == "edit"
        for one in file.hunks
    ]
    database.executemany("INSERT INTO hunks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", hunks)
    drop_unused_contents(database, old - contents.names)


def read_files(database: sqlite3.Connection, proposal_id: str) -> tuple[ProposedFile, ...]:
    """Return a proposal's files, in order.

    Raises:
        StorageError: Their texts are damaged.
    """
    contents = _ContentReader(database)
    files = database.execute("SELECT * FROM files WHERE proposal = ? ORDER BY number", (proposal_id,)).fetchall()
    hunks: dict[int, list[sqlite3.Row]] = {}
    for one in database.execute("SELECT * FROM hunks WHERE proposal = ? ORDER BY file, number", (proposal_id,)):
        hunks.setdefault(one["file"], []).append(one)
    return tuple(_read_file(one, hunks.get(one["number"], []), contents) for one in files)


def content_names(database: sqlite3.Connection, proposal_id: str, numbers: Iterable[int] | None = None) -> set[str]:
    """Return the hashes of the contents of a proposal's files; of all files if *numbers* is None."""
    numbers_wanted = None if numbers is None else set(numbers)
    files = database.execute("SELECT number, before, content FROM files WHERE proposal = ?", (proposal_id,))
    hunks = database.execute("SELECT file, origin, new FROM hunks WHERE proposal = ?", (proposal_id,))
    rows = (*files.fetchall(), *hunks.fetchall())
    return {
        name
        for number, *hashes in rows
        if numbers_wanted is None or number in numbers_wanted
        for name in hashes
        if name
    }


def drop_unused_contents(database: sqlite3.Connection, hashes: Iterable[str]) -> None:
    """Delete those of the given contents that no proposal refers to any more."""
    statement = f"DELETE FROM blobs WHERE hash = :name AND {_UNUSED}"  # noqa: S608  # constants of this module
    database.executemany(statement, [{"name": name} for name in hashes])


class _ContentWriter:
    """Writer that stores each content once, and remembers the hashes."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database: sqlite3.Connection = database
        self._known: dict[int, tuple[bytes, str]] = {}

    @property
    def names(self) -> set[str]:
        return {name for _, name in self._known.values()}

    def put(self, content: bytes | None) -> str | None:
        if content is None:
            return None
        stored = self._known.get(id(content))
        if stored is None:
            # The content is kept alive with its hash: otherwise another one could get the same `id`.
            stored = (content, parser.content_hash(content))
            storage.put_blob(self._database, stored[1], content)
            self._known[id(content)] = stored
        return stored[1]


def _file_row(proposal_id: str, file: ProposedFile, contents: _ContentWriter) -> tuple[object, ...]:
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
        _dump_stale(file.stale),
        file.reason,
        file.kind != "edit" and any(one.edited for one in file.hunks),
    )


class _ContentReader:
    """Reader that loads each content once."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database: sqlite3.Connection = database
        self._known: dict[str, bytes] = {}

    def get(self, name: str | None) -> bytes | None:
        return None if name is None else self.need(name)

    def need(self, name: str) -> bytes:
        if name not in self._known:
            try:
                self._known[name] = storage.get_blob(self._database, name)
            except NotFound as error:
                msg = f"the text {name} of a proposal is missing"
                raise StorageError(msg, hint="restore the vault's state from a backup") from error
        return self._known[name]


def _read_file(row: sqlite3.Row, hunks: Sequence[sqlite3.Row], contents: _ContentReader) -> ProposedFile:
    proposed = ProposedFile(
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
        stale=_load_stale(row["stale"]),
        reason=row["reason"],
    )
    number, proposed_hunks = row["number"], list[ProposedHunk]()
    for one in hunks:
        origin = contents.need(one["origin"])
        hunk = Hunk(
            id=model.make_hunk_id(row["proposal"], number, one["number"]),
            start=one["start"],
            old=origin[one["start"] : one["stop"]],
            new=contents.need(one["new"]),
            old_start_line=source.line_number_at(origin, one["start"]),
            new_start_line=0,
        )
        proposed_hunks.append(
            ProposedHunk(
                number=one["number"],
                id=f"{number}.{one['number']}",
                hunk=hunk,
                origin=origin,
                state=one["state"],
                stale=_load_stale(one["stale"]),
                edited=bool(one["edited"]),
                reason=one["reason"],
            )
        )
    return parts.with_hunks(proposed, row["proposal"], proposed_hunks, edited=bool(row["edited"]))


def _dump_stale(stale: Stale | None) -> str | None:
    return json.dumps(asdict(stale)) if stale else None


def _load_stale(text: str | None) -> Stale | None:
    return Stale(**json.loads(text)) if text else None


class ProposalReader:
    """Reader of proposals that caches the last one until something is written to the file."""

    def __init__(self, own: SharedDatabase) -> None:
        """Wrap an open file."""
        self._ledger = own
        self._last: tuple[DataVersion, Proposal] | None = None

    def get(self, database: sqlite3.Connection, proposal_id: str) -> Proposal:
        """Return a proposal.

        Args:
            database: The file's, inside a `reading` or `writing` block.
            proposal_id: Which.

        Raises:
            NotFound: There is none of this id.
            StorageError: Its texts are damaged.
        """
        stamp = self._ledger.stamp(database)
        if stamp is not None and self._last is not None:
            then, last = self._last
            if (then, last.id) == (stamp, proposal_id):
                return last
        proposal = get_proposal(database, proposal_id)
        if stamp is not None:
            self._last = (stamp, proposal)
        return proposal


def add_proposal(database: sqlite3.Connection, proposal: Proposal) -> None:
    """Store a new proposal."""
    database.execute(
        "INSERT INTO proposals (id, client, run, created, expires, status, reason, why, tainted, by_query, folders,"
        " notices, rewritten, scope) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            proposal.id,
            proposal.client,
            proposal.run,
            format_time(proposal.created),
            format_time(proposal.expires),
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
    if proposal.behalf:
        database.execute("INSERT INTO behalves VALUES (?, ?)", (proposal.id, proposal.behalf))
    put_files(database, proposal.id, proposal.files)


def get_proposal(database: sqlite3.Connection, proposal_id: str) -> Proposal:
    """Return a proposal.

    Raises:
        NotFound: There is none of this id.
        StorageError: Its texts are damaged.
    """
    row = database.execute(
        "SELECT proposals.*, behalves.client AS behalf FROM proposals LEFT JOIN behalves ON proposal = id WHERE id = ?",
        (proposal_id,),
    ).fetchone()
    if row is None:
        raise proposal_not_found(proposal_id)
    decided_at, decided_by = read_outcome(database, proposal_id, row["status"])
    proposal = Proposal(
        id=row["id"],
        client=row["client"],
        run=row["run"],
        created=datetime.fromisoformat(row["created"]),
        expires=datetime.fromisoformat(row["expires"]),
        status=row["status"],
        reason=row["reason"],
        why=row["why"],
        tainted=bool(row["tainted"]),
        by_query=bool(row["by_query"]),
        files=read_files(database, proposal_id),
        folders=tuple((NotePath(source), NotePath(target)) for source, target in json.loads(row["folders"])),
        notices=tuple(json.loads(row["notices"])),
        rewritten=tuple(LinkRewrite(**one) for one in json.loads(row["rewritten"])),
        scope=Scope(paths=None if row["scope"] is None else frozenset(json.loads(row["scope"]))),
        behalf=row["behalf"] or "",
        rejection=row["rejection"],
        superseded_by=row["superseded_by"],
        decided_at=decided_at,
        decided_by=decided_by,
        changes=change_ids(database, proposal_id),
    )
    return model.seal(proposal)


def change_ids(database: sqlite3.Connection, proposal_id: str) -> tuple[str, ...]:
    """Return the ids of the changes that accepting parts of a proposal made, in order."""
    rows = database.execute(
        "SELECT change FROM acceptances WHERE proposal = ? AND change > '' ORDER BY at", (proposal_id,)
    )
    return tuple(row["change"] for row in rows.fetchall())


def read_blocks(database: sqlite3.Connection, proposal_id: str) -> dict[NotePath, dict[str, tuple[str, ...]]]:
    """Return which blocks in notes show hunks: for each path its block ids, each with the ids of the hunks."""
    rows = database.execute(
        "SELECT path, block, hunks FROM shown JOIN files ON files.proposal = shown.proposal AND number = file"
        " WHERE shown.proposal = ? ORDER BY file, block",
        (proposal_id,),
    )
    by_path: dict[NotePath, dict[str, tuple[str, ...]]] = {}
    for row in rows.fetchall():
        by_path.setdefault(NotePath(row["path"]), {})[row["block"]] = tuple(json.loads(row["hunks"]))
    return by_path


def has_blocks(database: sqlite3.Connection, proposal_id: str) -> bool:
    """Return whether notes have blocks of a proposal, or may have, as the text of such is stored."""
    sql = "SELECT 1 FROM shown WHERE proposal = :id UNION ALL SELECT 1 FROM drawings WHERE proposal = :id LIMIT 1"
    return database.execute(sql, {"id": proposal_id}).fetchone() is not None


def put_blocks(database: sqlite3.Connection, proposal_id: str, number: int, shown: Mapping[str, Iterable[str]]) -> None:
    """Store which blocks in a note show hunks of a file, in place of those stored before."""
    database.execute("DELETE FROM shown WHERE proposal = ? AND file = ?", (proposal_id, number))
    rows = [(proposal_id, number, block, json.dumps(list(hunks))) for block, hunks in shown.items()]
    database.executemany("INSERT INTO shown VALUES (?, ?, ?, ?)", rows)


def proposal_not_found(proposal_id: str) -> NotFound:
    """Build the error for a proposal that doesn't exist, or that a client may not see."""
    hint = "list the proposals for their ids"
    return NotFound(f"no proposal '{proposal_id}'", hint=hint, code="proposal_not_found")


def format_time(at: datetime) -> str:
    """Format a time so that the texts sort like the times."""
    return at.isoformat(timespec="milliseconds")


def delete_proposal(database: sqlite3.Connection, proposal_id: str) -> None:
    """Delete a proposal, and the contents that nothing else refers to."""
    names = content_names(database, proposal_id)
    database.execute("DELETE FROM proposals WHERE id = ?", (proposal_id,))
    drop_unused_contents(database, names)


def mark_accepted(
    database: sqlite3.Connection, token: str, proposal: Proposal, chosen: ChosenHunks, change_id: str
) -> Proposal:
    """Record that the chosen parts were applied; a repeated call does nothing."""
    row = database.execute("SELECT * FROM acceptances WHERE token = ?", (token,)).fetchone()
    if row is None or row["change"] is not None:
        return proposal
    draft = parts.draft_chosen(proposal, chosen)
    now, then = parts.expected_outcomes(draft), json.loads(row["plain"])
    unchanged_files = {file.path: file for file in draft.files if now[file.path] == then.get(file.path)}
    updated_files = [
        parts.mark_file_accepted(file, chosen[file.number], unchanged_files.get(file.path))
        for file in proposal.files
        if file.number in chosen
    ]
    for path, blocks in json.loads(row["blocks"]).items():
        put_blocks(database, proposal.id, parts.file_at(proposal, path).number, blocks)
    database.execute("UPDATE acceptances SET change = ? WHERE token = ?", (change_id, token))
    changes = (*proposal.changes, change_id) if change_id else proposal.changes
    return save_progress(database, replace(proposal, changes=changes), updated_files)


def close_chosen(
    database: sqlite3.Connection, proposal: Proposal, chosen: ChosenHunks, state: ItemState, reason: str
) -> Proposal:
    """Mark the chosen parts as accepted or rejected."""
    updated_files = [
        parts.close_hunks(file, chosen[file.number], state, reason) for file in proposal.files if file.number in chosen
    ]
    return save_progress(database, proposal, updated_files)


def reject_chosen(
    database: sqlite3.Connection, proposal: Proposal, chosen: ChosenHunks, decision: Decision
) -> Proposal:
    """Mark the chosen parts as rejected, and record the decision; without files, the whole proposal is."""
    items: list[str] = []
    for file in (file for file in proposal.files if file.number in chosen):
        if file.kind == "edit":
            items += [one.id for one in file.hunks if one.number in chosen[file.number] and one.state == "open"]
        elif file.state == "open":
            items.append(str(file.number))
    updated = close_chosen(database, proposal, chosen, "rejected", decision.reason)
    if not proposal.files:
        updated = replace(updated, status="rejected")
        database.execute("UPDATE proposals SET status = 'rejected' WHERE id = ?", (proposal.id,))
    if items or not proposal.files:
        log_decision(database, proposal.id, replace(decision, items=tuple(items)))
    decided_at, decided_by = read_outcome(database, proposal.id, updated.status)
    return replace(updated, decided_at=decided_at, decided_by=decided_by)


def log_decision(database: sqlite3.Connection, proposal_id: str, decision: Decision) -> None:
    """Record that a proposal, or a part of it, ended without being applied."""
    database.execute(
        "INSERT INTO decisions SELECT :proposal, coalesce(max(number), 0) + 1, :state, :at, :client, :reason, :items"
        " FROM decisions WHERE proposal = :proposal",
        {
            "proposal": proposal_id,
            "state": decision.state,
            "at": format_time(decision.at),
            "client": decision.client,
            "reason": decision.reason,
            "items": json.dumps(decision.items),
        },
    )


def read_outcome(database: sqlite3.Connection, proposal_id: str, status: ProposalStatus) -> tuple[datetime | None, str]:
    """Return when a proposal was rejected, expired or was replaced, and by whom; None and empty if it wasn't."""
    if status not in {"rejected", "expired", "superseded"}:
        return None, ""
    sql = "SELECT at, client FROM decisions WHERE proposal = ? AND state = ? ORDER BY number DESC LIMIT 1"
    row = database.execute(sql, (proposal_id, status)).fetchone()
    return (None, "") if row is None else (datetime.fromisoformat(row["at"]), row["client"])


def save_progress(database: sqlite3.Connection, proposal: Proposal, changed: Iterable[ProposedFile]) -> Proposal:
    """Store the changed files of a proposal, and update its status."""
    fresh = {file.number: parts.refresh_hunks(file, proposal.id) for file in changed}
    put_files(database, proposal.id, tuple(fresh.values()))
    files = tuple(fresh.get(file.number, file) for file in proposal.files)
    updated = model.seal(replace(proposal, files=files))
    status = model.current_status(updated)
    if status != updated.status:
        database.execute("UPDATE proposals SET status = ? WHERE id = ?", (status, updated.id))
    return replace(updated, status=status)


def log_attempt(database: sqlite3.Connection, selection: Selection, plain: Draft, at: str) -> None:
    """Record an attempt to accept before anything is applied.

    Args:
        database: Of the proposals.
        selection: What was chosen.
        plain: Its draft before blocks were put into notes again.
        at: The time of the attempt.
    """
    chosen = {number: sorted(numbers) for number, numbers in selection.chosen.items()}
    columns = (chosen, parts.expected_outcomes(plain), parts.expected_outcomes(selection.draft), dict(selection.blocks))
    database.execute(
        "INSERT INTO acceptances (token, proposal, at, chosen, plain, expected, blocks) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (selection.token, selection.proposal, at, *map(json.dumps, columns)),
    )


def is_being_applied(database: sqlite3.Connection, proposal_id: str, since: str) -> bool:
    """Return whether a part of a proposal is being applied since a time later than *since*."""
    sql = "SELECT 1 FROM acceptances WHERE proposal = ? AND change IS NULL AND at > ?"
    return database.execute(sql, (proposal_id, since)).fetchone() is not None


def log_change(database: sqlite3.Connection, proposal_id: str, change_id: str) -> None:
    """Record a change that accepted blocks in a note, for which there was no attempt."""
    database.execute(
        "INSERT OR IGNORE INTO acceptances (token, proposal, at, chosen, plain, expected, blocks, change)"
        " VALUES (:change || ':' || :proposal, :proposal, strftime('%Y-%m-%dT%H:%M:%f+00:00', 'now'),"
        " '{}', '{}', '{}', '{}', :change)",
        {"proposal": proposal_id, "change": change_id},
    )


def forget_attempt(database: sqlite3.Connection, token: str) -> None:
    """Delete an attempt that changed nothing."""
    database.execute("DELETE FROM acceptances WHERE token = ? AND change IS NULL", (token,))


def reconcile_attempts(own: SharedDatabase, reader: ProposalReader, journal: Journal, lost: str) -> list[str]:
    """Mark attempts that were applied but not marked, and delete those from before *lost* that changed nothing.

    Returns:
        Ids of the proposals of which a part was marked.
    """
    with own.reading() as database:
        open_attempts = database.execute("SELECT * FROM acceptances WHERE change IS NULL ORDER BY at").fetchall()
    proposal_ids: list[str] = []
    for attempt in open_attempts:
        values = {"id": attempt["proposal"]}
        candidates = journal.select("proposal = :id AND phase IN ('applied', 'done') ORDER BY seq", values)
        with own.writing() as database:
            rows = database.execute("SELECT change FROM acceptances WHERE proposal = ?", (attempt["proposal"],))
            known_changes = {row["change"] for row in rows}
            unknown = (change for change in candidates if change.id not in known_changes)
            expected: dict[str, str] = json.loads(attempt["expected"])
            change = next((change for change in unknown if _matches_expected(change, expected)), None)
            if change is not None:
                chosen = {int(number): frozenset(part) for number, part in json.loads(attempt["chosen"]).items()}
                mark_accepted(database, attempt["token"], reader.get(database, attempt["proposal"]), chosen, change.id)
                proposal_ids.append(attempt["proposal"])
    with own.writing() as database:
        database.execute("DELETE FROM acceptances WHERE change IS NULL AND at < ?", (lost,))
    return proposal_ids


def _matches_expected(change: Change, expected: dict[str, str]) -> bool:
    """Return whether a change has the outcomes expected of the files, by path, as far as it is about them."""
    answers: list[bool] = []
    for path, outcome in expected.items():
        place, _, name = outcome.rpartition(" sha256:")
        for result in change.files:
            if result.is_folder:
                if path.startswith(f"{result.before_path}/"):
                    answers.append(True)
            elif name and result.after_path == place:
                answers.append(result.after_hash == f"sha256:{name}")
            elif not name and result.before_path == path:
                answers.append(True)
    return True in answers and False not in answers

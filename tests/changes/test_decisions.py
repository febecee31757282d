"""When and by whom proposals and their parts were rejected, or ended; and files of an earlier version, without that."""

import os
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from knapper.changes.disk import repair, storage
from knapper.changes.disk.transaction import State
from knapper.changes.drafts import Draft
from knapper.changes.proposals import store as proposals_store
from knapper.changes.proposals.parts import ProposalTerms
from knapper.changes.proposals.store import ProposalFilter, Proposals
from knapper.errors import StorageError
from knapper.vault.paths import NotePath
from tests.changes.waiting import META, Clock, create, edit, move, propose

BEFORE = b"# A\n\none\ntwo\nthree\n\nfour\nfive\nsix\n\nseven\n"
AFTER = b"# A\n\nONE\ntwo\nthree\n\nfour\nfive\nsix\n\nSEVEN\neight\n"
VERSION_3 = """
CREATE TABLE proposals (
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
CREATE TABLE files (
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
CREATE TABLE hunks (
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
CREATE TABLE acceptances (
    token TEXT PRIMARY KEY,
    proposal TEXT NOT NULL REFERENCES proposals(id) ON DELETE CASCADE,
    at TEXT NOT NULL,
    chosen TEXT NOT NULL,
    plain TEXT NOT NULL,
    expected TEXT NOT NULL,
    blocks TEXT NOT NULL,
    change TEXT
) WITHOUT ROWID;
CREATE TABLE shown (
    proposal TEXT NOT NULL,
    file INTEGER NOT NULL,
    block TEXT NOT NULL,
    hunks TEXT NOT NULL,
    PRIMARY KEY (proposal, file, block),
    FOREIGN KEY (proposal, file) REFERENCES files(proposal, number) ON DELETE CASCADE
) WITHOUT ROWID;
CREATE TABLE drawings (
    proposal TEXT NOT NULL,
    file INTEGER NOT NULL,
    block TEXT NOT NULL,
    texts TEXT NOT NULL,
    PRIMARY KEY (proposal, file, block),
    FOREIGN KEY (proposal, file) REFERENCES files(proposal, number) ON DELETE CASCADE
) WITHOUT ROWID;
CREATE TABLE behalves (
    proposal TEXT PRIMARY KEY REFERENCES proposals(id) ON DELETE CASCADE,
    client TEXT NOT NULL
) WITHOUT ROWID;
CREATE VIEW items AS
    SELECT proposal, file, state, stale FROM hunks
    UNION ALL SELECT proposal, number, state, stale FROM files WHERE kind <> 'edit';
CREATE INDEX by_status ON proposals(status);
CREATE INDEX by_path ON files(path);
CREATE INDEX by_before ON files(before);
CREATE INDEX by_content ON files(content);
CREATE INDEX by_origin ON hunks(origin);
CREATE INDEX by_new ON hunks(new);
CREATE INDEX by_proposal ON acceptances(proposal);
CREATE TABLE blobs (
    hash TEXT PRIMARY KEY,
    packed INTEGER NOT NULL,
    content BLOB NOT NULL
) WITHOUT ROWID;
PRAGMA user_version = 3;
"""
"""How the file was made before decisions were recorded."""
ALL = ProposalFilter()


def make_old(folder: Path) -> Path:
    """Turn the file of the proposals into one of version 3, with all that this version knew."""
    path = folder / proposals_store.FILE
    new = path.rename(folder / "new.db")
    with closing(sqlite3.connect(path)) as database:
        _ = database.execute("PRAGMA journal_mode = WAL").fetchone()
        _ = database.executescript(VERSION_3)
        _ = database.execute("ATTACH ? AS new", (str(new),))
        tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'sqlite_sequence'")
        for (table,) in tables.fetchall():
            _ = database.execute(f"INSERT INTO main.{table} SELECT * FROM new.{table}")
        database.commit()
    for part in folder.glob("new.db*"):
        part.unlink()
    return path


def test_each_rejection_has_its_time_its_person_and_its_files(store: Proposals, clock: Clock) -> None:
    made = propose(store, edit("a.md", BEFORE, AFTER), create("b.md", b"x"))
    part = store.reject(made.id, "not so", hunks=["1.1"], client="cli")
    clock.pass_days(1)
    whole = store.reject(made.id, "not at all", client="page")

    last, first = store.rejections(ALL, limit=9)
    assert (first.at, first.client, first.reason, first.paths) == (made.created, "cli", "not so", ("a.md",))
    assert (last.at, last.client, last.paths) == (clock.now, "page", ("a.md", "b.md"))
    assert (part.decided_at, part.decided_by) == (None, "")
    assert (whole.decided_at, whole.decided_by) == (clock.now, "page")
    assert store.show(made.id) == whole
    (row,) = store.find().proposals
    assert (row.decided_at, row.decided_by, row.has_undated_rejection) == (clock.now, "page", False)


def test_rejections_are_filtered_by_their_own_time_and_client(store: Proposals, clock: Clock) -> None:
    made = propose(store, create("a.md", b"x"))
    other = propose(store, create("Hidden/b.md", b"x"))
    clock.pass_days(2)
    for one in (made, other):
        store.reject(one.id, "no", client="cli")

    def is_shown(path: NotePath) -> bool:
        return not path.startswith("Hidden")

    def listed(**criteria: object) -> list[str]:
        rows = store.rejections(ProposalFilter(**criteria), limit=9)  # pyright: ignore[reportArgumentType]  # any criteria
        return sorted(row.proposal.path for row in rows)

    assert listed(since=clock.now, until=clock.now) == ["Hidden/b.md", "a.md"]
    assert listed(until=clock.now - timedelta(days=1)) == []
    assert listed(client="cli", path="a.md") == ["a.md"]
    assert listed(client=META.client) == []
    assert listed(work=other.id, visible=is_shown) == []
    assert listed(work=META.run, visible=is_shown) == ["a.md"]
    assert [row.proposal.id for row in store.rejections(ALL, limit=1, offset=2)] == []


def test_a_proposal_without_files_is_rejected_as_a_whole(store: Proposals) -> None:
    made = store.save(Draft(files=(), folders=((NotePath("A"), NotePath("B")),)), META)

    assert store.reject(made.id, "stays", client="cli").decided_by == "cli"
    assert [(row.reason, row.paths) for row in store.rejections(ALL, limit=9)] == [("stays", ())]


def test_what_expires_or_is_replaced_ends_at_a_time(store: Proposals, clock: Clock) -> None:
    due = store.save(Draft(files=(create("a.md", b"x"),)), META, ProposalTerms(days=1))
    old = propose(store, create("b.md", b"x"))
    clock.pass_days(3)
    new = store.save(Draft(files=(create("b.md", b"y"),)), META, ProposalTerms(supersedes=old.id))

    expired, replaced = store.show(due.id), store.show(old.id)
    assert (expired.status, expired.decided_at, expired.decided_by) == ("expired", due.expires, "")
    assert (replaced.status, replaced.decided_at, replaced.decided_by) == ("superseded", new.created, META.client)
    assert store.rejections(ALL, limit=9) == []


def test_what_was_accepted_in_part_names_nobody_who_rejected_the_whole(store: Proposals) -> None:
    made = propose(store, edit("a.md", BEFORE, AFTER))
    store.note_blocks.mark(made.id, {"1.1": "rejected"}, client="cli")
    both = store.note_blocks.mark(made.id, {"1.2": "accepted"})

    assert (both.status, both.decided_at) == ("partly_accepted", None)
    assert [(row.client, row.paths) for row in store.rejections(ALL, limit=9)] == [("cli", ("a.md",))]


def test_what_is_deleted_takes_its_decisions_along(state: State, store: Proposals, clock: Clock) -> None:
    store.reject(propose(store, move("a.md", "b.md", b"x")).id, "no")
    clock.pass_days(9)

    assert store.prune(max_age_days=1) == 1
    with closing(sqlite3.connect(state.folder / proposals_store.FILE)) as database:
        assert database.execute("SELECT count(*) FROM decisions").fetchone() == (0,)


def test_a_file_of_the_version_before_is_taken_over_and_its_rejections_stay_undated(
    state: State, store: Proposals, clock: Clock
) -> None:
    made = propose(store, edit("a.md", BEFORE, AFTER), create("b.md", b"x"))
    store.reject(made.id, "not so", hunks=["1.1"], client="cli")
    shown = store.show(made.id)
    store.shut()
    _ = make_old(state.folder)

    new = proposals_store.open_proposals(state.folder, clock=clock)
    try:
        assert new.show(made.id) == shown
        assert (new.find().proposals[0].has_undated_rejection, new.rejections(ALL, limit=9)) == (True, [])
        clock.pass_days(1)
        assert new.reject(made.id, "nor that", client="page").decided_at == clock.now
        (row,) = new.rejections(ALL, limit=9)
        assert (row.reason, row.proposal.has_undated_rejection) == ("nor that", True)
    finally:
        new.shut()


def test_a_backup_of_the_version_before_fills_up_what_is_damaged(state: State, store: Proposals, clock: Clock) -> None:
    made = propose(store, create("a.md", b"x"))
    lost = propose(store, create("b.md", b"y"))
    store.shut()
    path = make_old(state.folder)
    assert repair.back_up_daily(state.folder, max_bytes=10_000_000) == []
    new = proposals_store.open_proposals(state.folder, clock=clock)
    new.reject(made.id, "no", client="cli")
    new.shut()
    with closing(sqlite3.connect(path)) as database:
        _ = database.execute("UPDATE blobs SET content = x'00' WHERE hash = (SELECT max(hash) FROM blobs)")
        database.commit()
        _ = database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    assert repair.repair(path).outcome == "saved"
    mended = proposals_store.open_proposals(state.folder, clock=clock)
    try:
        assert (mended.show(made.id).decided_by, mended.show(lost.id).status) == ("cli", "open")
        assert [row.reason for row in mended.rejections(ALL, limit=9)] == ["no"]
    finally:
        mended.shut()


def test_an_older_program_refuses_the_newer_file(state: State, store: Proposals) -> None:
    assert not store.is_read_only

    with pytest.raises(StorageError, match="newer version"):
        _ = storage.open_shared_database(state.folder / proposals_store.FILE, VERSION_3, 3)


def test_what_has_expired_is_listed_even_where_nothing_can_be_written(
    state: State, store: Proposals, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = propose(store, create("a.md", b"x"))
    store.shut()
    clock.pass_days(400)
    path = state.folder / proposals_store.FILE
    content = path.read_bytes()

    def may_write_folders(place: Path, _: int) -> bool:
        return place.is_dir()

    monkeypatch.setattr(os, "access", may_write_folders)
    kept = proposals_store.open_proposals(state.folder, clock=clock)
    try:
        assert kept.is_read_only
        assert [one.id for one in kept.find().proposals] == [made.id]
    finally:
        kept.shut()
    assert path.read_bytes() == content

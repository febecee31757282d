"""Two processes, and processes that die between applying and telling."""

import multiprocessing
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from knapper.changes import rules
from knapper.changes.disk.transaction import State
from knapper.changes.drafts import Draft
from knapper.changes.proposals import store as proposals_store
from knapper.changes.proposals.store import Proposals
from knapper.errors import ConflictError, KnapError, RefusedError, StorageError
from knapper.vault import access
from knapper.vault.access import Policy
from knapper.vault.paths import NotePath
from knapper.vault.view import View
from tests.changes import waiting
from tests.changes.disks import opened, write
from tests.changes.waiting import META, Clock, create, edit, move, propose, trash

BEFORE = b"one\n\ntwo\n\nthree\n\nfour\n"
AFTER = b"ONE\n\ntwo\n\nTHREE\n\nFOUR\n"


@pytest.fixture
def store(state: State) -> Iterator[Proposals]:
    """Open what waits by the real clock, which the other processes have, too."""
    own = proposals_store.open_proposals(state.folder)
    yield own
    own.shut()


def accept_in_process(root: Path, proposal_id: str, number: int) -> None:
    """Accept a hunk, again and again until it is done or was done by the other.

    While another one's hunk is applied, but not marked yet, this one's seems not to fit its note.
    """
    state = opened(root)
    own = proposals_store.open_proposals(state.folder)
    own.reconcile(state.journal)
    until = time.monotonic() + 100
    while time.monotonic() < until:
        try:
            waiting.accept(state, own, own.show(proposal_id), hunks=[f"1.{number}"])
        except KnapError as error:
            if error.code == "not_open":
                break
            time.sleep(0.01)
    own.shut()
    state.journal.shut()


def propose_in_process(folder: Path, name: str) -> None:
    own = proposals_store.open_proposals(folder)
    for number in range(20):
        propose(own, create(f"{name}/{number}.md", b"x"))
    own.shut()


@pytest.mark.slow
def test_two_processes_accept_at_once_and_each_part_is_applied_once(root: Path, state: State, store: Proposals) -> None:
    write(root, NotePath("a.md"), BEFORE)
    made = propose(store, edit("a.md", BEFORE, AFTER))
    spawn = multiprocessing.get_context("spawn")
    others = [spawn.Process(target=accept_in_process, args=(root, made.id, number)) for number in (1, 2, 2, 3)]

    for one in others:
        one.start()
    for one in others:
        one.join()

    assert [one.exitcode for one in others] == [0] * 4
    assert (root / "a.md").read_bytes() == AFTER
    done = store.show(made.id)
    assert (done.status, len(done.changes)) == ("accepted", 3)
    assert state.journal.count("proposal = :id", {"id": made.id}) == 3


@pytest.mark.slow
def test_two_processes_open_a_new_store_and_propose_at_once(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    others = [spawn.Process(target=propose_in_process, args=(tmp_path, name)) for name in ("a", "b", "c")]
    for one in others:
        one.start()
    for one in others:
        one.join()
    own = proposals_store.open_proposals(tmp_path)

    assert [one.exitcode for one in others] == [0] * 3
    assert own.find().total == 60
    own.shut()


def test_what_was_applied_before_a_kill_is_marked_at_the_next_start(root: Path, state: State, store: Proposals) -> None:
    for path in ("a.md", "c.md", "d.md"):
        write(root, NotePath(path), BEFORE)
    made = propose(
        store, edit("a.md", BEFORE, AFTER), create("b.md", b"x"), move("c.md", "x/c.md", BEFORE), trash("d.md", BEFORE)
    )
    selection = store.select(made.id, made.digest, hunks=["1.2"])
    first = waiting.do(state, selection)
    del selection  # the process ends here

    found = proposals_store.open_proposals(state.folder)
    again = found.reconcile(state.journal)
    half = found.show(made.id)
    rest = found.select(made.id, half.digest)
    second = waiting.do(state, rest)

    assert again == [made.id]
    assert (half.status, half.changes) == ("open", (first,))
    assert [one.state for one in half.files[0].hunks] == ["open", "accepted", "open"]
    assert found.reconcile(state.journal) == [made.id]
    assert found.reconcile(state.journal) == []
    done = found.mark_accepted(rest, second)
    assert (done.status, done.changes) == ("accepted", (first, second))
    assert (root / "a.md").read_bytes() == AFTER
    found.shut()


def test_what_was_not_applied_before_a_kill_stays_open(root: Path, state: State, store: Proposals) -> None:
    write(root, NotePath("a.md"), BEFORE)
    made = propose(store, edit("a.md", BEFORE, AFTER))
    store.select(made.id, made.digest)
    waiting.accept(state, store, made, hunks=["1.1"])

    assert store.reconcile(state.journal) == []
    assert [one.state for one in store.show(made.id).files[0].hunks] == ["accepted", "open", "open"]


def test_an_attempt_that_failed_is_forgotten(root: Path, state: State, store: Proposals) -> None:
    write(root, NotePath("a.md"), b"other\n")
    made = propose(store, edit("a.md", BEFORE, AFTER))
    selection = store.select(made.id, made.digest)
    with pytest.raises(ConflictError):
        waiting.do(state, selection)

    store.abandon(selection)

    assert store.reconcile(state.journal) == []
    assert store.show(made.id).status == "open"


def test_an_attempt_that_was_never_made_is_forgotten_after_a_day(state: State) -> None:
    clock = Clock()
    own = proposals_store.open_proposals(state.folder, clock=clock)
    made = propose(own, create("a.md", b"x"))
    own.select(made.id, made.digest)
    with sqlite3.connect(state.folder / proposals_store.FILE) as database:
        left = [database.execute("SELECT count(*) FROM acceptances").fetchone()[0]]
        for days in (0.5, 1):
            clock.pass_days(days)
            own.reconcile(state.journal)
            left.append(database.execute("SELECT count(*) FROM acceptances").fetchone()[0])
    database.close()

    assert left == [1, 1, 0]
    own.shut()


def test_a_change_by_another_process_between_applying_and_marking_moves_nothing_wrongly(
    root: Path, state: State, store: Proposals
) -> None:
    write(root, NotePath("a.md"), BEFORE)
    made = propose(store, edit("a.md", BEFORE, AFTER))
    selection = store.select(made.id, made.digest, hunks=["1.1"])
    change = waiting.do(state, selection)
    write(root, NotePath("a.md"), b"new first line\n" + (root / "a.md").read_bytes())
    store.rebase(made.id, waiting.look(root, made))

    half = store.mark_accepted(selection, change)
    waiting.accept(state, store, half)

    assert (root / "a.md").read_bytes() == b"new first line\n" + AFTER


def test_a_note_that_became_a_link_to_outside_is_not_written(root: Path, state: State, store: Proposals) -> None:
    write(root, NotePath("a.md"), BEFORE)
    made = propose(store, edit("a.md", BEFORE, AFTER))
    outside = root.parent / "outside.md"
    outside.write_bytes(BEFORE)
    (root / "a.md").unlink()
    (root / "a.md").symlink_to(outside)
    ground = rules.facts_of(View.open(root, Policy()))

    selection = store.select(made.id, made.digest)
    verdict = rules.judge_acceptance(selection.draft, access.default_grants("cli"), ground)

    assert [one.code for one in verdict.refusals] == ["outside_vault"]
    with pytest.raises(RefusedError):
        waiting.do(state, selection)
    assert outside.read_bytes() == BEFORE


def test_a_hidden_note_is_not_accepted_by_who_may_not_see_it(root: Path, store: Proposals) -> None:
    made = propose(store, create("Journal/a.md", b"x"))
    root.mkdir(exist_ok=True)
    ground = rules.facts_of(View.open(root, Policy(client="mcp", hidden=("Journal/",))))

    verdict = rules.judge_acceptance(store.select(made.id, made.digest).draft, access.default_grants("mcp"), ground)

    assert [one.code for one in verdict.refusals] == ["untouchable"]


def test_a_damaged_store_is_told_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / proposals_store.FILE).write_bytes(b"no database" * 1000)

    with pytest.raises(StorageError, match=r"proposals\.db"):
        proposals_store.open_proposals(tmp_path)

    assert (tmp_path / proposals_store.FILE).read_bytes() == b"no database" * 1000


def test_a_newer_store_is_not_touched(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / proposals_store.FILE) as database:
        database.execute("PRAGMA user_version = 99")
    database.close()

    with pytest.raises(StorageError, match="newer version"):
        proposals_store.open_proposals(tmp_path)


def test_a_lost_text_is_told(tmp_path: Path) -> None:
    own = proposals_store.open_proposals(tmp_path)
    made = own.save(Draft(files=(create("a.md", b"x"),)), META)
    with sqlite3.connect(tmp_path / proposals_store.FILE) as database:
        database.execute("DELETE FROM blobs")
    database.close()

    with pytest.raises(StorageError, match="is missing"):
        own.show(made.id)
    assert own.find().total == 1
    own.shut()


def test_who_looks_while_a_part_is_being_applied_calls_nothing_stale(
    root: Path, state: State, store: Proposals
) -> None:
    write(root, NotePath("a.md"), BEFORE)
    made = propose(store, edit("a.md", BEFORE, AFTER))
    selection = store.select(made.id, made.digest, hunks=["1.1"])
    change = waiting.do(state, selection)
    seen = store.rebase(made.id, waiting.look(root, made))

    settled = store.mark_accepted(selection, change)

    assert seen.status == "open"
    assert not any(one.stale for one in (*seen.files[0].hunks, *settled.files[0].hunks))
    waiting.accept(state, store, settled)
    assert (root / "a.md").read_bytes() == AFTER

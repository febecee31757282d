import multiprocessing
import random
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from knapper.changes.disk import apply, files, journal, plan, undo
from knapper.changes.disk.journal import Journal
from knapper.changes.disk.plan import ChangeMeta, Rename, Write
from knapper.changes.disk.transaction import State
from knapper.changes.disk.undo import ChangeFilter
from knapper.errors import NotFound, StorageError
from knapper.vault.paths import NotePath
from tests.changes.disks import opened, write

A = NotePath("a.md")
SPAWN = multiprocessing.get_context("spawn")


@pytest.fixture
def state(tmp_path: Path) -> State:
    return opened(tmp_path / "vault")


def make(state: State, path: str, content: bytes, meta: ChangeMeta | None = None) -> str:
    return apply.apply_effects(
        state, [Write(path=NotePath(path), content=content)], meta or ChangeMeta(client="cli")
    ).change_id


def edit(state: State, path: str, content: bytes) -> str:
    base = files.hash_content((state.root / path).read_bytes())
    effects = [Write(path=NotePath(path), base=base, content=content)]
    return apply.apply_effects(state, effects, ChangeMeta(client="cli")).change_id


def test_a_change_tells_who_when_why_and_what(state: State) -> None:
    base = write(state.root, "x/a.md", b"one")
    earlier = datetime.now(UTC) - timedelta(seconds=1)
    effects = [
        Rename(source=NotePath("x/a.md"), target=A),
        Write(path=A, base=base, content=b"two"),
    ]
    applied = apply.apply_effects(state, effects, ChangeMeta(client="mcp", run="r1", reason="tidy", proposal="p1"))

    told = state.journal.show(applied.change_id)

    assert (told.client, told.run, told.reason, told.proposal) == ("mcp", "r1", "tidy", "p1")
    assert earlier < told.at < datetime.now(UTC) + timedelta(seconds=1)
    assert told.phase == "done"
    assert told.files == applied.files
    assert (told.files[0].before_path, told.files[0].after_path) == ("x/a.md", "a.md")
    assert state.journal.content(told.files[0].before_hash or "") == b"one"
    assert state.journal.content(told.files[0].after_hash or "") == b"two"


def test_the_list_is_newest_first_in_pages(state: State) -> None:
    made = [make(state, f"{number}.md", b"x") for number in range(5)]

    page = undo.list_changes(state.journal, limit=2, offset=1)

    assert [change.id for change in page.changes] == [made[3], made[2]]
    assert (page.total, page.limit, page.offset) == (5, 2, 1)


def test_the_list_is_filtered_by_who_run_proposal_and_time(state: State) -> None:
    make(state, "1.md", b"x", ChangeMeta(client="cli"))
    make(state, "2.md", b"x", ChangeMeta(client="agent", run="r1"))
    make(state, "3.md", b"x", ChangeMeta(client="agent", run="r2", proposal="p"))

    def total(wanted: ChangeFilter) -> int:
        return undo.list_changes(state.journal, wanted).total

    assert total(ChangeFilter(client="agent")) == 2
    assert total(ChangeFilter(client="agent", run="r1")) == 1
    assert total(ChangeFilter(proposal="p")) == 1
    assert total(ChangeFilter(since=datetime.now(UTC) - timedelta(hours=1))) == 3
    assert total(ChangeFilter(since=datetime.now(UTC) + timedelta(hours=1))) == 0


def test_the_list_is_filtered_by_a_file_before_and_after_and_by_its_folders(state: State) -> None:
    make(state, "x/a.md", b"x")
    make(state, "xy.md", b"x")
    apply.apply_effects(state, [Rename(source=NotePath("x"), target=NotePath("y"))], ChangeMeta(client="cli"))

    found = {
        path: undo.list_changes(state.journal, ChangeFilter(path=path)).total
        for path in ("x/a.md", "y/a.md", "x", "y", "xy.md", "other.md")
    }

    assert found == {"x/a.md": 2, "y/a.md": 1, "x": 2, "y": 1, "xy.md": 1, "other.md": 0}


def test_equal_contents_are_kept_once_and_compressed(state: State) -> None:
    for number in range(3):
        make(state, f"{number}.md", b"the same " * 1000)

    with state.journal.reading() as database:
        rows = database.execute("SELECT packed FROM blobs").fetchall()
    assert len(rows) == 1
    assert rows[0]["packed"] < 200


def test_the_oldest_go_first_when_the_journal_is_too_large(state: State) -> None:
    make(state, "a.md", b"0" * 10)
    for number in range(30):
        edit(state, "a.md", plan.make_id().encode() * 100 + b"%d" % number)

    dropped = state.journal.prune(max_bytes=1500)

    page = undo.list_changes(state.journal, limit=100)
    assert 0 < page.total == 31 - dropped
    assert state.journal.content(page.changes[0].files[0].after_hash or "") == (state.root / A).read_bytes()
    with state.journal.reading() as database:
        assert database.execute("SELECT sum(packed) FROM blobs").fetchone()[0] <= 1500
        assert database.execute("SELECT count(*) FROM steps").fetchone()[0] == page.total


def test_of_large_changes_no_more_go_than_must_and_the_newest_stays(state: State) -> None:
    make(state, "a.md", random.Random(0).randbytes(100_000))
    for number in range(1, 10):
        edit(state, "a.md", random.Random(number).randbytes(100_000))

    first = state.journal.prune(max_bytes=550_000)
    rest = state.journal.prune(max_bytes=1)

    assert (first, rest) == (6, 3)
    assert undo.list_changes(state.journal).total == 1


def test_a_journal_with_a_limit_stays_below_it_while_it_is_open(state: State) -> None:
    state.journal.limit(max_bytes=300_000, max_age_days=365)
    make(state, "a.md", random.Random(0).randbytes(50_000))

    for number in range(1, 12):
        edit(state, "a.md", random.Random(number).randbytes(50_000))

    with state.journal.reading() as database:
        assert 200_000 < database.execute("SELECT sum(packed) FROM blobs").fetchone()[0] <= 300_000


def test_a_pruned_journal_gives_its_place_on_the_disk_back(state: State) -> None:
    make(state, "a.md", random.Random(0).randbytes(2_000_000))
    make(state, "b.md", b"b")

    state.journal.prune(max_bytes=1)

    with state.journal.reading() as database:
        assert database.execute("PRAGMA page_count").fetchone()[0] < 50


def test_changes_older_than_the_limit_go(state: State) -> None:
    old, new = make(state, "1.md", b"1"), make(state, "2.md", b"2")
    with state.journal.reading() as database:
        database.execute("UPDATE changes SET at = '2020-01-01T00:00:00.000+00:00' WHERE id = ?", (old,))

    assert state.journal.prune(max_age_days=365) == 1

    assert [change.id for change in undo.list_changes(state.journal).changes] == [new]
    with pytest.raises(NotFound):
        state.journal.content(files.hash_content(b"1"))


def test_an_unfinished_change_is_never_pruned(state: State) -> None:
    state.journal.begin("unfinished", ChangeMeta(client="cli"), [])

    state.journal.prune(max_bytes=0, max_age_days=0)

    assert [change.id for change in state.journal.unfinished()] == ["unfinished"]
    assert undo.list_changes(state.journal).total == 0


def test_an_unknown_change_isnt_found(state: State) -> None:
    with pytest.raises(NotFound, match="no change 'nope'"):
        state.journal.show("nope")


def test_a_damaged_journal_is_named(tmp_path: Path) -> None:
    (tmp_path / journal.JOURNAL_FILE).write_bytes(b"not a database" * 100)

    with pytest.raises(StorageError, match=r"journal\.db"):
        journal.open_journal(tmp_path)


def test_a_damaged_content_is_named(state: State) -> None:
    make(state, "a.md", b"text")
    with state.journal.reading() as database:
        database.execute("UPDATE blobs SET content = x'00'")

    with pytest.raises(StorageError, match="damaged"):
        state.journal.content(files.hash_content(b"text"))


def test_a_newer_programs_journal_is_left_alone(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / journal.JOURNAL_FILE)
    database.execute("PRAGMA user_version = 99")
    database.close()

    with pytest.raises(StorageError, match="newer version"):
        journal.open_journal(tmp_path)


def test_a_journal_that_cant_be_written_stops_the_change(state: State) -> None:
    write(state.root, "a.md", b"one")
    with state.journal.reading() as database:
        database.execute("PRAGMA query_only = ON")

    with pytest.raises(StorageError, match="journal"):
        edit(state, "a.md", b"two")

    assert (state.root / "a.md").read_bytes() == b"one"
    assert [path.name for path in state.root.iterdir()] == ["a.md"]


def write_many(root: Path, name: str) -> None:
    state = opened(root)
    waiting = State(root=state.root, folder=state.folder, journal=state.journal, lock_timeout_s=60)
    for number in range(20):
        make(waiting, f"{name}/{number}.md", name.encode())
    state.journal.shut()


@pytest.mark.slow
def test_two_processes_write_to_one_new_vault(tmp_path: Path) -> None:
    root = tmp_path / "vault"
    pair = [SPAWN.Process(target=write_many, args=(root, name)) for name in ("one", "two")]
    for process in pair:
        process.start()
    for process in pair:
        process.join()

    opened_again: Journal = opened(root).journal
    assert [process.exitcode for process in pair] == [0, 0]
    assert undo.list_changes(opened_again).total == 40
    assert len(list(root.rglob("*.md"))) == 40


def test_ids_are_short_sort_by_time_and_differ() -> None:
    made = [plan.make_id() for _ in range(200)]

    assert len(set(made)) == 200
    assert all(len(one) == 18 for one in made)
    assert [one[:9] for one in made] == sorted(one[:9] for one in made)

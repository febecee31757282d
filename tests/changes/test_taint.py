import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from knapper.changes.disk import repair, storage
from knapper.changes.proposals import taint
from knapper.changes.proposals.taint import Reader, Taints
from knapper.errors import RefusedError, StorageError
from knapper.vault import access


@pytest.fixture
def taints(tmp_path: Path) -> Iterator[Taints]:
    own = taint.open_taints(tmp_path)
    yield own
    own.shut()


def test_who_read_foreign_text_is_remembered_after_a_restart(tmp_path: Path, taints: Taints) -> None:
    assert taints.mark("mcp", "session-1", "https://example.org")
    assert not taints.mark("mcp", "session-1", "Clippings/b.md")
    other = taint.open_taints(tmp_path)

    assert other.is_tainted("mcp", "session-1")
    assert [(one.client, one.run, one.source) for one in other.entries()] == [
        ("mcp", "session-1", "https://example.org")
    ]
    other.shut()


@pytest.mark.parametrize("run", ["", "session-1"])
def test_an_emptied_list_is_damage_and_one_that_was_never_made_is_none(tmp_path: Path, run: str) -> None:
    path = tmp_path / taint.FILE
    path.touch()  # as a process leaves it that is killed before it makes the tables
    taints = taint.open_taints(tmp_path)
    taints.mark("mcp", run, "Clippings/a.md")
    taints.shut()
    path.write_bytes(b"")

    with pytest.raises(StorageError, match="is empty, although it was in use") as refused:
        taint.open_taints(tmp_path)
    assert "begins a new one, as there is no backup" in refused.value.hint
    assert storage.find_damage(path) == refused.value.message
    assert repair.repair(path).outcome == "new"
    path.touch()
    taint.open_taints(tmp_path).shut()


def test_all_clients_of_a_run_share_what_one_has_read_and_other_runs_do_not(taints: Taints) -> None:
    taints.mark("web", "run-1", "https://example.org")

    assert taints.is_tainted("task", "run-1")
    assert not taints.is_tainted("web", "run-2")
    assert not taints.is_tainted("web")


def test_what_a_client_read_outside_of_runs_counts_in_each_of_them(taints: Taints) -> None:
    taints.mark("mcp", "", "Clippings/a.md")

    assert taints.is_tainted("mcp")
    assert taints.is_tainted("mcp", "session-9")
    assert not taints.is_tainted("http")
    assert not taints.is_tainted("")


@pytest.mark.parametrize("client", ["mcp", "http", "agent", "script", "mine"])
def test_only_a_person_clears(client: str, taints: Taints) -> None:
    taints.mark("mcp", "", "Clippings/a.md")

    with pytest.raises(RefusedError):
        taints.clear("mcp", by=replace(access.default_grants(client), small="apply", large="apply"))
    assert taints.is_tainted("mcp")
    assert taints.clear("mcp", by=access.default_grants("cli"))
    assert not taints.clear("mcp", by=access.default_grants("cli"))
    assert not taints.is_tainted("mcp")


@dataclass
class Clock:
    """A clock that a test sets."""

    time: datetime = datetime(2026, 3, 14, 9, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time

    def wait(self, minutes: float) -> None:
        self.time += timedelta(minutes=minutes)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def timed(tmp_path: Path, clock: Clock) -> Iterator[Taints]:
    own = taint.open_taints(tmp_path, now=clock)
    yield own
    own.shut()


def test_a_client_without_a_run_is_free_again_an_hour_after_its_last_foreign_text(timed: Taints, clock: Clock) -> None:
    timed.mark("http", "", "Clippings/a.md")
    clock.wait(50)
    assert not timed.mark("http", "", "Clippings/b.md")
    clock.wait(59)
    before = timed.is_tainted("http"), timed.entries()
    clock.wait(3)

    assert before[0]
    assert [(one.source, one.until) for one in before[1]] == [
        ("Clippings/a.md", datetime(2026, 3, 14, 10, 51, tzinfo=UTC))
    ]
    assert not timed.is_tainted("http")
    assert not timed.is_tainted("http", "session-1")
    assert timed.entries() == ()
    assert timed.mark("http", "", "Clippings/c.md")
    assert [one.source for one in timed.entries()] == ["Clippings/c.md"]


def test_readings_that_follow_at_once_never_shorten_the_hour(timed: Taints, clock: Clock) -> None:
    timed.mark("http", "", "Clippings/a.md")
    clock.wait(0.9)
    timed.mark("http", "", "Clippings/b.md")
    clock.wait(60)

    assert timed.is_tainted("http")


def test_a_run_or_session_keeps_its_taint(timed: Taints, clock: Clock) -> None:
    timed.mark("agent", "session-1", "https://example.org")
    clock.wait(60 * 24 * 365)

    assert timed.is_tainted("agent", "session-1")
    assert [one.until for one in timed.entries()] == [None]


def test_the_owner_can_have_taint_stay_or_end_sooner(tmp_path: Path, clock: Clock) -> None:
    for name, lifetime in (("stays", None), ("short", timedelta(minutes=5))):
        (tmp_path / name).mkdir()
        own = taint.open_taints(tmp_path / name, lifetime=lifetime, now=clock)
        own.mark("http", "", "Clippings/a.md")
        clock.wait(7)

        assert own.is_tainted("http") is (lifetime is None)
        own.shut()


def test_a_clock_that_was_set_back_ends_nothing(timed: Taints, clock: Clock) -> None:
    timed.mark("http", "", "Clippings/a.md")
    clock.wait(-600)

    assert timed.is_tainted("http")


def test_a_list_of_an_earlier_version_counts_from_its_times(tmp_path: Path, clock: Clock) -> None:
    with closing(sqlite3.connect(tmp_path / taint.FILE)) as database:
        database.executescript(
            "CREATE TABLE taints (client TEXT NOT NULL, run TEXT NOT NULL, at TEXT NOT NULL, source TEXT NOT NULL,"
            " PRIMARY KEY (client, run)) WITHOUT ROWID; PRAGMA user_version = 1;"
            "INSERT INTO taints VALUES ('http', '', '2026-03-14T08:30:00+00:00', 'a');"
            "INSERT INTO taints VALUES ('mcp', '', '2026-03-13T08:30:00+00:00', 'b');"
            "INSERT INTO taints VALUES ('agent', 'run-1', '2025-03-13T08:30:00+00:00', 'c');"
        )
    own = taint.open_taints(tmp_path, now=clock)

    assert own.is_tainted("http")
    assert not own.is_tainted("mcp")
    assert own.is_tainted("agent", "run-1")
    own.shut()


def test_what_an_agent_reads_taints_all_that_it_works_for_where_they_hear_it(timed: Taints, clock: Clock) -> None:
    agent = timed.shared_with(Reader(client="mcp", run="session-1")).shared_with(Reader(client="http"))
    agent.mark("agent", "run-1", "https://example.org")

    assert timed.is_tainted("agent", "run-1")
    assert timed.is_tainted("mcp", "session-1")
    assert not timed.is_tainted("mcp", "session-2")
    assert timed.is_tainted("http")
    clock.wait(62)
    assert not timed.is_tainted("http")


def test_a_run_that_a_tainted_client_begins_is_tainted_and_stays_so(timed: Taints, clock: Clock) -> None:
    agent = timed.shared_with(Reader(client="http"))
    timed.mark("http", "", "Clippings/a.md")
    before = agent.is_tainted("agent", "run-1")
    agent.begin("agent", "run-1")
    clock.wait(600)

    assert before
    assert agent.is_tainted("agent", "run-1")
    assert not timed.is_tainted("http")
    assert not timed.is_tainted("agent", "run-2")


def test_hearing_a_run_that_only_the_client_itself_tainted_does_not_prolong_its_hour(
    timed: Taints, clock: Clock
) -> None:
    agent = timed.shared_with(Reader(client="http"))
    timed.mark("http", "", "Clippings/a.md")
    for number in range(3):
        clock.wait(30)
        agent.begin("agent", f"run-{number}")
        agent.end("agent", f"run-{number}")

    assert not timed.is_tainted("http")


def test_the_hour_counts_from_when_a_runs_answer_is_heard(timed: Taints, clock: Clock) -> None:
    agent = timed.shared_with(Reader(client="http"))
    agent.begin("agent", "run-1")
    agent.mark("agent", "run-1", "https://example.org")
    clock.wait(90)
    agent.end("agent", "run-1")
    clock.wait(59)

    assert timed.is_tainted("http")


def test_a_session_and_a_run_in_it_have_what_the_other_has_read(timed: Taints) -> None:
    reading = timed.within(Reader(client="agent", run="session-1"))
    reading.mark("agent", "run-1", "https://example.org")
    going_on = timed.shared_with(Reader(client="http")).within(Reader(client="agent", run="session-1"))

    assert timed.is_tainted("agent", "session-1")
    assert going_on.is_tainted("agent", "run-2")
    going_on.begin("agent", "run-2")
    assert timed.is_tainted("agent", "run-2")
    assert timed.is_tainted("http")


def test_a_copy_of_a_session_keeps_its_taint(timed: Taints) -> None:
    timed.mark("agent", "session-1", "https://example.org")
    timed.copy("session-1", Reader(client="agent", run="copy-1"))
    timed.copy("session-2", Reader(client="agent", run="copy-2"))

    assert timed.is_tainted("agent", "copy-1")
    assert not timed.is_tainted("agent", "copy-2")


@pytest.mark.parametrize("client", ["mcp", "http", "agent", "script", "mine"])
def test_only_a_person_clears_all(client: str, taints: Taints) -> None:
    taints.mark("mcp", "", "Clippings/a.md")
    taints.mark("agent", "run-1", "Clippings/a.md")

    with pytest.raises(RefusedError):
        taints.clear_all(by=replace(access.default_grants(client), small="apply", large="apply"))
    assert len(taints.entries()) == 2
    taints.clear_all(by=access.default_grants("page"))
    assert taints.entries() == ()


def nothing_is_stored() -> frozenset[str]:
    return frozenset()


def runs(taints: Taints) -> list[str]:
    return sorted(one.run for one in taints.entries())


def test_what_ended_is_pruned_a_day_later(tmp_path: Path, clock: Clock) -> None:
    dead = taint.open_taints(tmp_path, now=clock)
    dead.mark("mcp", "connection-1", "Clippings/a.md")
    dead.mark("http", "", "Clippings/a.md")
    dead.shut()
    own = taint.open_taints(tmp_path, now=clock)
    clock.wait(60 * 23)

    assert own.prune(nothing_is_stored) == 1  # the client's own, whose hour is over
    assert runs(own) == ["connection-1"]
    clock.wait(60 * 2)
    assert own.prune(nothing_is_stored) == 0  # not twice a day
    clock.wait(60 * 24)
    assert own.prune(nothing_is_stored) == 1
    assert own.entries() == ()
    assert list((tmp_path / taint.HOLDERS_FOLDER).iterdir()) == []
    own.shut()


def test_what_is_stored_or_goes_on_in_another_process_is_never_pruned(tmp_path: Path, clock: Clock) -> None:
    alive, own = taint.open_taints(tmp_path, now=clock), taint.open_taints(tmp_path, now=clock)
    alive.mark("mcp", "connection-1", "Clippings/a.md")
    dead = taint.open_taints(tmp_path, now=clock)
    dead.mark("agent", "session-1", "Clippings/a.md")
    dead.mark("agent", "run-1", "Clippings/a.md")
    dead.shut()
    clock.wait(60 * 24 * 400)

    assert own.prune(lambda: frozenset({"session-1"})) == 1
    assert runs(own) == ["connection-1", "session-1"]
    assert alive.is_tainted("mcp", "connection-1")
    alive.shut()
    own.shut()


def test_a_connection_of_a_process_that_was_killed_is_pruned(tmp_path: Path, clock: Clock) -> None:
    code = (
        "import os, sys; from pathlib import Path; from knapper.changes.proposals import taint\n"
        "taint.open_taints(Path(sys.argv[1])).mark('mcp', 'killed', 'a'); os._exit(9)"
    )
    _ = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    clock.time = datetime.now(UTC) + timedelta(days=2)
    own = taint.open_taints(tmp_path, now=clock)

    assert runs(own) == ["killed"]
    assert own.prune(nothing_is_stored) == 1
    own.shut()


def test_a_session_that_another_process_goes_on_with_is_held_by_that(tmp_path: Path, clock: Clock) -> None:
    first = taint.open_taints(tmp_path, now=clock)
    first.mark("agent", "run-1", "Clippings/a.md")
    second = taint.open_taints(tmp_path, now=clock)
    second.begin("agent", "run-1")
    first.shut()
    clock.wait(60 * 24 * 3)
    own = taint.open_taints(tmp_path, now=clock)

    assert own.prune(nothing_is_stored) == 0
    assert second.is_tainted("agent", "run-1")
    second.shut()
    own.shut()


def test_where_it_is_not_known_what_is_stored_nothing_is_pruned(tmp_path: Path, clock: Clock) -> None:
    dead = taint.open_taints(tmp_path, now=clock)
    dead.mark("agent", "session-1", "Clippings/a.md")
    dead.shut()
    own = taint.open_taints(tmp_path, now=clock)
    clock.wait(60 * 24 * 3)

    assert own.prune(lambda: None) == 0
    assert runs(own) == ["session-1"]
    own.shut()


def test_what_is_read_again_while_it_is_pruned_stays(tmp_path: Path, clock: Clock) -> None:
    dead = taint.open_taints(tmp_path, now=clock)
    dead.mark("agent", "session-1", "Clippings/a.md")
    dead.shut()
    own, other = taint.open_taints(tmp_path, now=clock), taint.open_taints(tmp_path, now=clock)
    clock.wait(60 * 24 * 3)

    def meanwhile() -> frozenset[str]:
        other.begin("agent", "session-1")
        return frozenset()

    assert own.prune(meanwhile) == 0
    assert runs(own) == ["session-1"]
    other.shut()
    own.shut()


def test_a_list_of_the_version_before_is_taken_over(tmp_path: Path, clock: Clock) -> None:
    with closing(sqlite3.connect(tmp_path / taint.FILE)) as database:
        database.executescript(
            "CREATE TABLE taints (client TEXT NOT NULL, run TEXT NOT NULL, at TEXT NOT NULL, source TEXT NOT NULL,"
            " seen TEXT NOT NULL DEFAULT '', inherited INTEGER NOT NULL DEFAULT 0,"
            " PRIMARY KEY (client, run)) WITHOUT ROWID; PRAGMA user_version = 2;"
            "INSERT INTO taints VALUES ('mcp', 'new', '2026-03-10T08:30:00+00:00', 'a', '2026-03-10T08:30:00', 0);"
            "INSERT INTO taints VALUES ('mcp', 'old', '2025-03-10T08:30:00+00:00', 'a', '2025-03-10T08:30:00', 0);"
        )
    own = taint.open_taints(tmp_path, now=clock)

    assert own.prune(nothing_is_stored) == 1  # who holds it isn't known: a process of the version before may go on
    assert runs(own) == ["new"]
    own.shut()


def test_locks_that_nothing_stands_for_are_removed(tmp_path: Path, clock: Clock) -> None:
    own = taint.open_taints(tmp_path, now=clock)
    own.mark("agent", "run-1", "Clippings/a.md")
    own.mark("http", "", "Clippings/a.md")
    stray, fresh = (tmp_path / taint.HOLDERS_FOLDER / name for name in ("stray.lock", "fresh.lock"))
    for file in (stray, fresh):
        file.touch()
    for file in stray.parent.iterdir():
        os.utime(file, (0, 0))
    os.utime(fresh)
    clock.wait(60 * 24 * 3)
    _ = own.prune(nothing_is_stored)

    assert not stray.exists()
    assert fresh.exists()
    assert runs(own) == ["run-1"]
    assert len(list(stray.parent.iterdir())) == 2
    own.shut()

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from knapper.changes.proposals import taint
from knapper.changes.proposals.taint import Reader, Taints
from knapper.errors import RefusedError
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

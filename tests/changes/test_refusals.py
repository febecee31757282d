"""The log of refused requests: what it holds, and that no client can fill it or push others out of it."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from knapper.changes.disk.transaction import State
from knapper.changes.drafts import Create, EditText
from knapper.changes.proposals import store as proposals_store
from knapper.changes.proposals.refusals import UNRECORDED, RefusedRequest
from knapper.changes.proposals.store import Proposals
from knapper.changes.writer import SubmitOptions
from knapper.errors import RefusedError
from tests.changes import desks
from tests.changes.waiting import Clock

SECRET = "the text of a note"


def wish(path: str, reason: str = "no") -> RefusedRequest:
    return RefusedRequest(path=path, action="edited", reason=reason)


def rows(store: Proposals) -> list[tuple[str, str, int]]:
    return [(row.client, row.request.path, row.request.times) for row in store.refusals.latest(limit=5_000)]


def test_equal_requests_are_one_row_with_their_number_and_latest_time(store: Proposals, clock: Clock) -> None:
    store.refusals.log("mcp", "run", [wish("a.md")])
    store.refusals.log("mcp", "run", [wish("b.md")])
    clock.pass_days(1)
    store.refusals.log("mcp", "run", [wish("a.md")])

    assert rows(store) == [("mcp", "a.md", 2), ("mcp", "b.md", 1)]
    (last, first) = store.refusals.latest(limit=5)
    assert (last.at, last.run, first.at < last.at) == (clock.now, "run", True)
    assert store.refusals.latest(since=clock.now, limit=5) == [last]
    assert store.refusals.latest(client="http", limit=5) == []


def test_who_asks_again_and_again_is_counted_and_writes_no_more(state: State, store: Proposals, clock: Clock) -> None:
    for number in range(1_000):
        store.refusals.log("mcp", "", [wish(f"{number}.md", "x" * 10_000)])
    with closing(sqlite3.connect(state.folder / proposals_store.FILE)) as database:
        written = database.execute("SELECT count(*), max(length(reason)) FROM refusals").fetchone()
    clock.pass_days(1)
    store.refusals.log("mcp", "", [wish("last.md")])

    assert written == (31, 500)
    assert sum(times for _, _, times in rows(store)) == 1_001
    assert [row.request.times for row in store.refusals.latest(limit=99) if row.request.reason == UNRECORDED] == [970]


def test_many_files_of_one_request_are_bounded(store: Proposals) -> None:
    store.refusals.log("mcp", "", [wish(f"{number}.md") for number in range(500)])

    assert len(rows(store)) == 31
    assert sum(times for _, _, times in rows(store)) == 500


def test_no_client_pushes_out_the_refusals_of_another(store: Proposals, clock: Clock) -> None:
    store.refusals.log("http", "", [wish("mine.md")])
    for number in range(300):
        clock.pass_days(1)
        store.refusals.log("mcp", "", [wish(f"{number}.md")])

    assert len(rows(store)) == 201
    assert rows(store)[-1] == ("http", "mine.md", 1)
    for client in range(6):
        for number in range(200):
            clock.pass_days(1)
            store.refusals.log(f"c{client}", "", [wish(f"{number}.md")])
    assert len(rows(store)) == 1_000


def test_what_rules_refuse_a_program_is_recorded_without_its_text(tmp_path: Path) -> None:
    with desks.world(tmp_path, {"A.md": "alpha\n", "B.md": "gamma\n"}) as world:
        grants = replace(world.writer.grants, kind="mcp", client="mcp", read_only=("B.md",))
        writer = replace(world.writer, grants=grants)
        edit = EditText(path="B.md", old="gamma", new=SECRET)
        with pytest.raises(RefusedError):
            _ = writer.submit([edit], SubmitOptions(run="r1", reason=SECRET))
        with pytest.raises(RefusedError):
            _ = writer.submit([edit], SubmitOptions(dry_run=True))
        _ = writer.submit([EditText(path="A.md", old="alpha", new="x"), edit], SubmitOptions(run="r1"))
        none = replace(writer, grants=replace(grants, small="refuse", large="refuse"))
        with pytest.raises(RefusedError):
            _ = none.submit([Create(path="C.md", content=SECRET)])
        with pytest.raises(RefusedError):
            _ = replace(none, grants=replace(none.grants, kind="person")).submit([edit])
        logged = world.writer.proposals.refusals.latest(limit=9)

        assert [(row.request.path, row.request.action, row.request.times, row.run) for row in logged] == [
            ("C.md", "created", 1, ""),
            ("B.md", "edited", 2, "r1"),
        ]
        assert "may not" in logged[0].request.reason
        assert SECRET not in repr(logged)


def test_a_client_is_told_its_refusal_on_a_disk_that_cannot_be_written(tmp_path: Path) -> None:
    with desks.world(tmp_path, {"B.md": "gamma\n"}) as world:
        grants = replace(world.writer.grants, kind="mcp", client="mcp", is_read_only=True)
        with closing(sqlite3.connect(tmp_path / "state" / proposals_store.FILE)) as database:
            _ = database.execute("CREATE TRIGGER no BEFORE INSERT ON refusals BEGIN SELECT RAISE(ABORT, 'full'); END")
            database.commit()

        with pytest.raises(RefusedError, match="may only read"):
            _ = replace(world.writer, grants=grants).submit([EditText(path="B.md", old="gamma", new="x")])

"""Sessions: one for each open note, kept, and never mixed up."""

import asyncio
import datetime as dt
import threading
from collections.abc import Generator
from pathlib import Path

import pytest

from knapper.agents.sessions import store
from knapper.agents.sessions.store import Exchange, FileIdentity, HistorySummary, SessionStore
from knapper.agents.work_store import open_work
from knapper.changes.disk import storage
from knapper.errors import BadInput, ConflictError, NotFound
from tests.agents.scripted import NOW


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> dt.datetime:
        self.now += dt.timedelta(seconds=1)
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def kept(tmp_path: Path, clock: Clock) -> Generator[SessionStore]:
    work = open_work(tmp_path)
    yield SessionStore(work, clock)
    work.shut()


def exchange(question: str = "What?", answer: str = "That.", messages: str = "[]") -> Exchange:
    return Exchange(number=0, at=NOW, question=question, file="a.md", outcome={"answer": answer}, messages=messages)


def file(path: str, digest: str = "", node: str = "") -> FileIdentity:
    return FileIdentity(path=path, hash=digest, node=node)


def test_the_same_note_goes_on_and_another_one_has_its_own(kept: SessionStore) -> None:
    first = kept.by_file(file("a.md"))
    other = kept.by_file(file("b.md"))
    again = kept.by_file(file("a.md"))

    assert first.id == again.id
    assert first.id != other.id


def test_no_note_at_all_has_a_session_of_its_own(kept: SessionStore) -> None:
    first = kept.without_file()

    assert kept.without_file().id == first.id
    assert kept.by_file(file("a.md")).id != first.id
    assert first.as_dict()["active_file"] is None


def test_sessions_outlast_the_program(tmp_path: Path, clock: Clock) -> None:
    work = open_work(tmp_path)
    opened = SessionStore(work, clock)
    session = opened.by_file(file("a.md"))
    _ = opened.append(session.id, 0, exchange("Who?"))
    work.shut()

    work = open_work(tmp_path)
    again = SessionStore(work, clock)

    assert again.by_file(file("a.md")).id == session.id
    assert [turn.question for turn in again.turns(session.id)] == ["Who?"]
    work.shut()


@pytest.mark.parametrize(
    ("was", "now", "earlier"),
    [
        (file("a.md"), file("b.md"), ("a.md",)),
        (file("a.md"), file("c/b.md"), ("b.md", "a.md")),
        (file("a.md", "h"), file("b.md", "h"), ()),
        (file("a.md", "h", "1:2"), file("b.md", "other", "1:2"), ()),
    ],
)
def test_a_renamed_note_keeps_its_session(
    kept: SessionStore, was: FileIdentity, now: FileIdentity, earlier: tuple[str, ...]
) -> None:
    session = kept.by_file(was)

    found = kept.by_file(now, earlier, lambda path: path == "a.md")

    assert found.id == session.id
    assert found.file == now.path
    assert kept.by_file(file("a.md")).id != session.id


def test_a_copy_of_a_note_begins_its_own_session(kept: SessionStore) -> None:
    session = kept.by_file(file("a.md", "h"))

    assert kept.by_file(file("b.md", "h"), (), lambda _: False).id != session.id


def test_an_unknown_session_is_not_found(kept: SessionStore) -> None:
    for act in (kept.get, kept.turns, kept.history, kept.fork, kept.clear, kept.delete):
        with pytest.raises(NotFound) as told:
            act("nobody")
        assert told.value.code == "no_session"


def test_turns_are_numbered_and_name_the_session(kept: SessionStore) -> None:
    session = kept.begin()

    assert kept.append(session.id, 0, exchange("  What is\n  green?  ")) == 1
    assert kept.append(session.id, 1, exchange("And blue?")) == 2

    assert kept.get(session.id).name == "What is green?"
    assert kept.get(session.id).turns == 2
    assert [turn.as_dict()["outcome"] for turn in kept.turns(session.id)] == [{"answer": "That."}] * 2


def test_a_writer_that_missed_a_turn_is_refused(kept: SessionStore) -> None:
    session = kept.begin()
    _ = kept.append(session.id, 0, exchange())

    with pytest.raises(ConflictError) as told:
        kept.append(session.id, 0, exchange())

    assert told.value.code == "session_changed"
    assert kept.get(session.id).turns == 1


def test_many_writers_leave_whole_turns_only(tmp_path: Path, clock: Clock) -> None:
    works = [open_work(tmp_path) for _ in range(4)]
    opened = [SessionStore(work, clock) for work in works]
    session = opened[0].begin()
    refused: list[int] = []

    def write(own: SessionStore) -> None:
        for _ in range(10):
            try:
                own.append(session.id, own.last(session.id), exchange("q" * 1_000))
            except ConflictError:
                refused.append(1)

    threads = [threading.Thread(target=write, args=(own,)) for own in opened]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    numbers = [turn.number for turn in opened[0].turns(session.id)]
    assert numbers == list(range(1, 41 - len(refused)))
    for work in works:
        work.shut()


def test_two_that_ask_for_one_notes_session_at_once_get_the_same(tmp_path: Path, clock: Clock) -> None:
    works = [open_work(tmp_path) for _ in range(4)]
    opened = [SessionStore(work, clock) for work in works]
    found: list[str] = []

    def ask(own: SessionStore) -> None:
        found.append(own.by_file(file("a.md")).id)

    threads = [threading.Thread(target=ask, args=(own,)) for own in opened]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(found) == 4
    assert len(set(found)) == 1
    for work in works:
        work.shut()


def test_a_session_can_be_renamed(kept: SessionStore) -> None:
    session = kept.begin()

    assert kept.rename(session.id, " Fence \n").name == "Fence"
    with pytest.raises(BadInput):
        kept.rename(session.id, "  ")


def test_a_fork_goes_on_by_itself(kept: SessionStore) -> None:
    session = kept.begin(name="Plan")
    for number in range(3):
        _ = kept.append(session.id, number, exchange(f"q{number}"))

    whole = kept.fork(session.id)
    early = kept.fork(session.id, upto=2)
    _ = kept.append(early.id, 2, exchange("another way"))

    assert [turn.question for turn in kept.turns(whole.id)] == ["q0", "q1", "q2"]
    assert [turn.question for turn in kept.turns(early.id)] == ["q0", "q1", "another way"]
    assert kept.get(session.id).turns == 3
    assert early.forked_from == session.id


def test_a_cleared_session_begins_anew_and_keeps_its_id(kept: SessionStore) -> None:
    session = kept.by_file(file("a.md"))
    _ = kept.append(session.id, 0, exchange())
    kept.sum_up(session.id, HistorySummary(messages="[1]", upto=1))

    cleared = kept.clear(session.id)

    assert (cleared.id, cleared.turns) == (session.id, 0)
    assert list(kept.turns(session.id)) == []
    assert kept.history(session.id)[0].messages == "[]"
    assert kept.append(session.id, 1, exchange()) == 2


def test_a_session_that_was_cleared_while_it_was_summed_up_stays_so(kept: SessionStore) -> None:
    session = kept.begin()
    _ = kept.append(session.id, 0, exchange())
    _ = kept.clear(session.id)

    kept.sum_up(session.id, HistorySummary(messages="[1]", upto=1))

    assert kept.history(session.id)[0] == HistorySummary()


def test_a_summary_stands_for_the_turns_before_it_which_stay_readable(kept: SessionStore) -> None:
    session = kept.begin()
    for number in range(3):
        _ = kept.append(session.id, number, exchange(f"q{number}"))

    kept.sum_up(session.id, HistorySummary(messages="[2]", upto=2))

    assert [turn.question for turn in kept.history(session.id)[1]] == ["q2"]
    assert len(kept.turns(session.id)) == 3


def test_a_deleted_session_is_gone_with_its_turns(kept: SessionStore) -> None:
    session = kept.begin()
    _ = kept.append(session.id, 0, exchange())

    kept.delete(session.id)

    assert kept.list() == ([], 0)


def test_sessions_are_listed_by_their_last_use(kept: SessionStore) -> None:
    ids = [kept.begin().id for _ in range(3)]
    _ = kept.append(ids[0], 0, exchange())

    found, total = kept.list(limit=2)

    assert total == 3
    assert [session.id for session in found] == [ids[0], ids[2]]


def test_old_sessions_go_and_then_the_oldest_of_too_many(kept: SessionStore, clock: Clock) -> None:
    old = kept.begin()
    clock.now += dt.timedelta(days=40)
    sessions = [kept.begin() for _ in range(4)]
    for session in sessions:
        _ = kept.append(session.id, 0, exchange(messages="[" + " " * 10_000 + "]"))

    gone = kept.prune(max_days=30, max_bytes=25_000)

    assert gone == 3
    assert {session.id for session in kept.list()[0]} == {sessions[2].id, sessions[3].id}
    assert old.id not in {session.id for session in kept.list()[0]}


def test_a_session_that_is_larger_than_allowed_stays_while_it_is_the_last(kept: SessionStore) -> None:
    session = kept.begin()
    _ = kept.append(session.id, 0, exchange(messages="[" + " " * 10_000 + "]"))

    assert kept.prune(max_days=30, max_bytes=10) == 0


def test_a_session_is_exported_as_markdown(kept: SessionStore) -> None:
    session = kept.begin(name="Fence")
    _ = kept.append(session.id, 0, exchange("What\ncolour?", "Green. [[Garden]] (line 1)"))

    text = store.write_session_markdown(kept.get(session.id), kept.turns(session.id))

    assert text == ("# Fence\n\n## 2026-03-14 09:26 What colour?\n\n> What\n> colour?\n\nGreen. [[Garden]] (line 1)\n")


def test_ids_are_uuids(kept: SessionStore) -> None:
    assert len(kept.begin().id) == 36
    assert store.FileIdentity(path="a").hash == ""


def test_several_who_look_whether_a_turn_goes_on_hold_up_nobody(
    kept: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "_PROBE_S", 1.0)  # one who looks may stand still meanwhile, on a busy machine

    async def turn() -> bool:
        async with kept.lock("s", wait_s=0):
            return await asyncio.to_thread(kept.is_locked, "s")

    async def all_at_once() -> tuple[list[bool], list[bool]]:
        before = [kept.is_locked("s")]
        held = await turn()
        looks = [asyncio.to_thread(kept.is_locked, "s") for _ in range(3)]
        return [*before, held], await asyncio.gather(*looks)

    told, looked = asyncio.run(all_at_once())

    assert told == [False, True]
    assert looked == [False] * 3

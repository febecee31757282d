"""The lists of words that a reader keeps in memory answer as the tables do, whatever was published or forgotten."""

import random
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from knapper.errors import StorageError
from knapper.index.documents import Filter
from knapper.index.postgres import lists, rows
from knapper.index.postgres.connection import Session
from knapper.index.postgres.reader import Mirror
from knapper.index.postgres.schema import TableState
from knapper.index.refresh import RefreshOutcome
from knapper.vault.access import Policy
from tests.index import published, word_engines
from tests.index.published import Team
from tests.postgres import LocalServer

pytestmark = pytest.mark.timeout(60)
_FILTERS = (
    Filter(),
    Filter(include_log=True),
    Filter(policy=Policy(client="x", hidden=(f"{word_engines.WORDS[0]}*",))),
)


@pytest.fixture
def team(tmp_path: Path, postgres: LocalServer) -> Generator[Team]:
    with published.open_team(tmp_path, postgres.address(), word_engines.vault(random.Random(7), 40)) as team:
        yield team


def check(team: Team, *, kept: published.ReaderEngine, limit: int) -> int:
    """Compare a reader's answers with those of one that reads all anew; returns how many chunks were found."""
    found, fresh = 0, team.reader()
    for question in word_engines.QUESTIONS[::3]:
        # Names are scored by how rare words are in the texts that may be found.
        assert published.hits(kept, question, "keyword", _FILTERS[-1]) == published.hits(
            fresh, question, "keyword", _FILTERS[-1]
        )
    with published.snapshot(kept) as old, published.snapshot(fresh) as new:
        for question in word_engines.QUESTIONS:
            for where in _FILTERS:
                expected = published.ranked(new, question, where, limit)
                answer = published.ranked(old, question, where, limit)
                assert list(answer) == list(expected), question
                assert answer == pytest.approx(expected, rel=1e-9), question
                found += len(answer)
    return found


@pytest.mark.parametrize(("short", "limit"), [(0, 2), (3, 15), (2_000, 15)])
def test_lists_that_follow_answer_as_lists_that_are_read_anew(
    team: Team, short: int, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = team.reader()
    monkeypatch.setattr(lists, "_SHORT_ROWS", short)
    for seed in range(3):
        assert check(team, kept=reader, limit=limit) > 20
        word_engines.change(team.root, random.Random(seed))
        team.publish()
    assert check(team, kept=reader, limit=limit) > 20


def test_the_words_of_a_question_that_decide_nothing_are_looked_up_and_read_once_that_would_be_faster(
    tmp_path: Path, postgres: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "_SHORT_ROWS", 10)
    notes = {f"{i}.md": f"often {'seldom seldom' if i < 9 else ''}\n" for i in range(80)}
    read: list[int] = []
    with published.open_team(tmp_path, postgres.address(), notes) as team:
        reader = team.reader()
        original = lists.StateLists.read

        def record(self: lists.StateLists, tokens: list[int], session: object) -> None:
            read.extend(tokens)
            original(self, tokens, session)  # pyright: ignore[reportArgumentType]

        monkeypatch.setattr(lists.StateLists, "read", record)
        for _ in range(30):
            with published.snapshot(reader) as opened:
                assert len(published.ranked(opened, "seldom often", limit=5)) == 5
            if len(read) > 1:
                break
        assert len(read) == 2, "the frequent word was read at once, or never"


def test_a_first_question_with_an_exclusion_is_scored_like_a_later_one(team: Team) -> None:
    with published.snapshot(team.reader()) as opened:
        assert published.ranked(opened, "rain storm")
        expected = published.ranked(opened, "rain -storm")
    assert expected
    with published.snapshot(team.reader()) as opened:
        assert published.ranked(opened, "rain -storm") == pytest.approx(expected, rel=1e-9)


def test_lists_that_are_too_many_are_forgotten_and_read_again(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "MAX_LIST_BYTES", 40)
    reader = team.reader()
    for _ in range(2):
        assert check(team, kept=reader, limit=10) > 20


def test_a_question_that_began_before_something_was_published_gets_the_state_that_it_began_with(team: Team) -> None:
    reader, word = team.reader(), word_engines.WORDS[0]

    def ask() -> dict[published.Place, float]:
        with published.snapshot(reader) as opened:
            return published.ranked(opened, word)

    with ThreadPoolExecutor() as pool, published.snapshot(reader) as before:
        old = published.ranked(before, word)
        team.save({"new.md": f"{word} " * 5})
        new = pool.submit(ask).result()
        assert published.ranked(before, word) == old
        assert pool.submit(ask).result() == new
    assert any(path == "new.md" for path, _ in new)
    assert not any(path == "new.md" for path, _ in old)


def test_tables_of_the_version_before_are_refused_until_the_writer_brings_them_up(team: Team) -> None:
    with team.publisher.server.borrow() as session:
        for statement in (
            "DROP INDEX files_generation",
            "ALTER TABLE files DROP COLUMN chunks",
            "CREATE INDEX files_generation ON files (generation)",
            "UPDATE meta SET value = '1' WHERE key = 'schema'",
        ):
            session.execute(statement)
    with pytest.raises(StorageError, match="another version") as refused:
        team.reader().refresh()
    assert "knap index" in refused.value.hint
    team.publish()
    assert published.is_whole(team)
    assert check(team, kept=team.reader(), limit=10) > 20


def test_a_word_that_is_asked_for_and_excluded_is_read_once(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    original = lists.StateLists.read

    def record(self: lists.StateLists, tokens: Sequence[int], session: Session) -> None:
        read.extend(tokens)
        original(self, tokens, session)

    monkeypatch.setattr(lists.StateLists, "read", record)
    with published.snapshot(team.reader()) as opened:
        _ = published.ranked(opened, "wind rain -rain")
    assert len(read) == 2, "its size was counted twice"


def test_a_word_that_weighs_much_in_a_note_that_was_published_since_weighs_as_much_in_a_kept_list(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = rows.weigh

    def weigh(tokens: Sequence[int]) -> Counter[int]:
        # As in a heading of 30,000 words, which takes long to index.
        return Counter({token: 30_000 * weight for token, weight in plain(tokens).items()})

    reader, word = team.reader(), word_engines.WORDS[0]
    with published.snapshot(reader) as opened:
        assert published.ranked(opened, word)
    monkeypatch.setattr(rows, "weigh", weigh)
    team.save({"new.md": f"{word} " * 5})
    with published.snapshot(reader) as opened, published.snapshot(team.reader()) as fresh:
        assert published.ranked(opened, word, limit=200) == pytest.approx(published.ranked(fresh, word, limit=200))


def test_a_filter_is_computed_anew_after_another_process_has_read_all_records_again(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, where = team.reader(), Filter(policy=Policy(client="x", hidden=("nothing/",)))
    follow: Callable[..., RefreshOutcome] = vars(Mirror)["_follow"]

    def follow_and_lose(self: Mirror, *arguments: object, **options: object) -> RefreshOutcome:
        outcome = follow(self, *arguments, **options)
        # `knap index --full` of another process begins so.
        self.store.clear()
        return outcome

    with monkeypatch.context() as patch:
        patch.setattr(Mirror, "_follow", follow_and_lose)
        with published.snapshot(reader) as opened:
            assert not published.ranked(opened, "rain", where)
    reader.refresh(full=True)
    with published.snapshot(reader) as opened:
        assert published.ranked(opened, "rain", where)


def test_lists_of_a_state_that_came_back_from_a_backup_are_kept(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, made = team.reader(), list[int]()

    def ask() -> None:
        with published.snapshot(reader) as opened:
            assert published.ranked(opened, "rain")

    tables = ("meta", "files", "history", "chunks", "terms", "postings")
    with team.publisher.server.borrow() as session:
        for table in tables:
            session.execute(f"CREATE TABLE kept_{table} AS SELECT * FROM {table}")
    team.save({"new.md": "rain\n"})
    ask()
    with team.publisher.server.borrow() as session, session.transaction():
        for table in tables:
            session.execute(f"DELETE FROM {table}")
            session.execute(f"INSERT INTO {table} OVERRIDING SYSTEM VALUE SELECT * FROM kept_{table}")
    original = lists.StateLists.__init__

    def record(self: lists.StateLists, session: Session, state: TableState, meta: Mapping[str, str]) -> None:
        made.append(state.generation)
        original(self, session, state, meta)

    monkeypatch.setattr(lists.StateLists, "__init__", record)
    for _ in range(5):
        ask()
    assert len(made) == 2, "each question read all anew, as if it had begun before the one that was published later"


def test_vectors_of_a_note_that_is_lost_in_the_database_are_told_as_tables_that_do_not_fit(
    team: Team, postgres: LocalServer
) -> None:
    team.save({"new.md": "umbrella\n"})
    reader = team.reader()
    reader.refresh()
    with postgres.connect() as session:
        session.execute(f'DELETE FROM "{team.schema}".files WHERE path = %s', ("new.md",))

    with pytest.raises(StorageError, match="don't fit together"):
        published.hits(reader, "umbrella", "semantic")


def test_a_question_does_not_wait_for_one_that_waits_for_it_on_the_server(
    team: Team, postgres: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "_LOCK_WAIT_S", 0.2)
    reader = team.reader()

    def ask() -> dict[published.Place, float]:
        with published.snapshot(reader) as opened:
            return published.ranked(opened, "rain")

    def lock() -> None:
        with postgres.connect() as session, session.transaction():
            session.execute(f'LOCK TABLE "{team.schema}".postings IN ACCESS EXCLUSIVE MODE')

    def wait_for(count: int) -> None:
        with postgres.connect() as session:
            sql = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = %s::regclass"
            while session.execute(sql, (f"{team.schema}.postings",)).fetchall() != [(count,)]:
                time.sleep(0.01)

    with ThreadPoolExecutor() as pool, published.snapshot(reader) as opened:
        # The beginning of a word is looked up in the postings before the lists are asked for.
        expected = published.ranked(opened, "win*")
        assert expected
        locked = pool.submit(lock)
        wait_for(1)
        other = pool.submit(ask)
        wait_for(2)
        assert published.ranked(opened, "win*") == expected
        opened.state.session.execute("ROLLBACK")
        locked.result()
        assert other.result()

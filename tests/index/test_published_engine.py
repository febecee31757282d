"""What is published to PostgreSQL answers as the local index does, whoever writes, reads, stops or dies meanwhile."""

import gc
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from knapper.errors import ConflictError, KnapError, SetupError, StorageError
from knapper.index.documents import Filter
from knapper.index.models.base import EmbedderError
from knapper.index.postgres import publish, rows, schema
from knapper.index.postgres.connection import PostgresServer
from knapper.index.postgres.publish import Publisher
from knapper.index.postgres.reader import ReaderEngine
from knapper.index.postgres.rows import SourceFile
from knapper.index.refresh import Publishing
from knapper.index.search import SearchRequest
from knapper.vault.access import Policy
from knapper.vault.view import View
from tests.index import published, word_engines, worlds
from tests.index.published import Team
from tests.postgres import LocalServer

pytestmark = pytest.mark.timeout(60)
_CUT_SQL = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE pid <> pg_backend_pid() AND application_name = 'knapper'"
)


class _StoppedError(Exception):
    pass


@pytest.fixture
def team(tmp_path: Path, postgres: LocalServer) -> Generator[Team]:
    with published.open_team(tmp_path, postgres.address(), word_engines.vault(random.Random(5), 18)) as team:
        yield team


def change(team: Team, seed: int) -> None:
    word_engines.change(team.root, random.Random(seed))
    team.publish()


def test_whole_searches_answer_as_the_local_index_does(team: Team) -> None:
    reader = team.reader()
    guest = Filter(policy=Policy(client="x", hidden=(f"{word_engines.WORDS[0]}*",)))
    for seed in range(2):
        for question in word_engines.QUESTIONS:
            for mode in ("keyword", "semantic", "hybrid"):
                # Vectors are stored in half precision in both, and compared in another order.
                assert published.hits(reader, question, mode) == published.hits(team.engine, question, mode), question
            # Names are scored by how rare words are in the texts that the client may find.
            found, expected = (published.hits(one, question, "keyword", guest) for one in (reader, team.engine))
            assert found == expected, question
        change(team, seed)


def test_every_filter_leaves_as_many_chunks_as_exist(tmp_path: Path, postgres: LocalServer) -> None:
    notes = {
        f"{'One' if n % 7 else 'Two'}/{n}.md": f"---\nkind: {n % 3}\n---\n#tag{n % 4} rain wind {n}\n"
        for n in range(60)
    }
    wheres = (
        Filter(folders=("Two",)),
        Filter(tags=("tag1",)),
        Filter(exclude_folders=("One",), tags=("tag2",)),
        Filter(policy=Policy(client="x", hidden=("One/",))),
        Filter(policy=Policy(client="x", read=("One/1*.md",))),
        Filter(folders=("Three",)),
    )
    with published.open_team(tmp_path, postgres.address(), notes) as team:
        reader = team.reader()
        for where in wheres:
            for mode in ("keyword", "semantic"):
                local = published.hits(team.engine, "rain wind", mode, where)
                assert published.hits(reader, "rain wind", mode, where) == local
        with published.snapshot(reader) as opened:
            for where in wheres:
                visible = {path for path in notes if where.policy is None or where.policy.visible(path)}
                found = published.ranked(opened, "rain", where, limit=500)
                assert {path for path, _ in found} <= visible
        found = published.hits(reader, "rain", "keyword", Filter(policy=Policy(client="x", hidden=("One/",))))

    assert {path for _, path, _ in found} == {path for path in notes if path.startswith("Two")}


def test_phrases_stay_within_a_column_and_excluded_words_out(tmp_path: Path, postgres: LocalServer) -> None:
    notes = {
        "rain.md": "wind storm\n",  # the title's last word and the text's first aren't a phrase
        "a.md": "# x\n\nrain wind\n",
        "b.md": "wind rain\n",
        "c.md": "windy raindrops in sun-dial weather\n",
        "日本.md": "日本語のノート\n",
    }
    with published.open_team(tmp_path, postgres.address(), notes) as team:
        reader = team.reader()
        for question in (
            '"rain wind"',
            "wind -rain",
            'wind -"rain wind"',
            "rain*",
            '"sun dial"',
            "日本語",
            '"wind r"*',
        ):
            local = published.hits(team.engine, question, "keyword")
            assert published.hits(reader, question, "keyword") == local, question
        with published.snapshot(reader) as opened:
            assert {path for path, _ in published.ranked(opened, '"rain wind"')} == {"a.md"}


def test_an_empty_vault_is_published_and_read(tmp_path: Path, postgres: LocalServer) -> None:
    with published.open_team(tmp_path, postgres.address(), {}) as team:
        reader = team.reader()
        reader.refresh()
        nothing = reader.search(SearchRequest(text="rain")).hits
        team.save({"first.md": "rain\n"})

        assert nothing == ()
        assert [note for _, note, _ in published.hits(reader, "rain", "hybrid")] == ["first.md"]


def test_only_what_changed_is_published(team: Team) -> None:
    nothing = team.publish()
    one = team.save({"new.md": "one\n"})
    (team.root / "new.md").unlink()
    gone = team.publish()

    assert (nothing.notes, nothing.removed) == (0, 0)
    assert (one.notes, one.removed) == (1, 0)
    assert (gone.notes, gone.removed) == (0, 1)
    assert nothing.generation < one.generation < gone.generation


def states(team: Team) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Give the states of all files, as the local index has them and as they are published."""
    with team.engine.store.database.snapshot() as connection:
        own = {str(file.path): file.state for file in rows.list_files(connection)}
    with team.publisher.server.snapshot() as session:
        return own, {str(path): bytes(state) for path, state in session.execute("SELECT path, state FROM files")}


def test_a_saved_note_is_compared_alone(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[int] = []

    def count(connection: sqlite3.Connection, *, only: Collection[int] | None = None) -> Iterator[SourceFile]:
        files = [*list_files(connection, only=only)]
        compared.append(len(files))
        return iter(files)

    list_files = rows.list_files
    monkeypatch.setattr(rows, "list_files", count)
    new, again = team.save({"new.md": "one\n"}), team.save({"new.md": "two\n"})
    os.utime(team.root / "new.md", (1, 1))
    touched, nothing = team.publish(), team.publish()
    monkeypatch.undo()

    assert compared == [1, 1, 1, 0]
    assert [one.notes for one in (new, again, touched, nothing)] == [1, 1, 1, 0]
    own, theirs = states(team)
    assert own == theirs


def test_a_new_process_and_a_replaced_index_have_all_compared(team: Team, postgres: LocalServer) -> None:
    def publish_without_one(publisher: Publisher) -> int:
        with postgres.connect() as other:
            other.execute(f'DELETE FROM "{team.schema}".files WHERE id = (SELECT MIN(id) FROM "{team.schema}".files)')
        return publisher.publish(team.engine.store, team.engine.view, model=team.engine.model).notes

    team.publish()
    unaware = publish_without_one(team.publisher)
    aware = publish_without_one(Publisher(team.publisher.server, readers={}))  # as another process has
    team.engine.store.set_meta("uid", "another one", counts=False)  # as where a backup came back
    replaced = publish_without_one(team.publisher)

    assert (unaware, aware, replaced) == (0, 2, 1)
    own, theirs = states(team)
    assert own == theirs


def test_a_renamed_note_is_published_under_its_new_name_alone(team: Team) -> None:
    _ = team.save({"old name.md": "one\n"})
    (team.root / "old name.md").rename(team.root / "new name.md")
    renamed = team.publish()

    own, theirs = states(team)
    assert (renamed.notes, renamed.removed) == (1, 1)
    assert own == theirs
    assert "new name.md" in theirs


def test_an_index_that_was_built_anew_publishes_nothing_twice(team: Team) -> None:
    team.engine.refresh(full=True)
    again = team.publish()

    assert again.notes == 0
    assert published.is_whole(team)


def test_a_reader_notices_that_an_older_state_came_back(team: Team, postgres: LocalServer) -> None:
    reader = team.reader()
    team.save({"lost.md": "zebra\n"})
    reader.refresh()
    with postgres.connect() as other:
        # As after a backup: one generation back, and then on with another note.
        other.execute(f'SET search_path TO "{team.schema}"')
        other.execute("DELETE FROM history WHERE generation = (SELECT max(generation) FROM history)")
        file = "(SELECT id FROM files WHERE path = 'lost.md')"
        for table, column in (("postings", "chunk"), ("vectors", "chunk"), ("chunks", "id")):
            other.execute(f"DELETE FROM {table} WHERE {column} >> 20 = {file}")
        other.execute("DELETE FROM files WHERE path = 'lost.md'")
        other.execute("UPDATE meta SET value = value::int - 1 WHERE key = 'generation'")
    reader.refresh()
    gone = [stat.path for stat in reader.view.list_files() if stat.path == "lost.md"]
    (team.root / "lost.md").unlink()
    team.save({"other.md": "zebra\n"})
    reader.refresh()

    assert gone == []
    assert {"other.md"} == {note for _, note, _ in published.hits(reader, "zebra", "keyword")}


def test_another_model_replaces_all_vectors(team: Team) -> None:
    reader = team.reader()
    team.embedder.model_id = "other"
    team.publish()
    with published.snapshot(reader, "other") as opened:
        counts = opened.count(Filter())

    assert counts[0] == counts[1] > 0
    assert published.hits(reader, "rain wind", "semantic") == published.hits(team.engine, "rain wind", "semantic")
    stale = team.reader(embedder=worlds.WordEmbedder("words"))
    remarks = stale.search(SearchRequest(text="rain")).remarks
    assert any("searched by words only" in remark for remark in remarks)


def test_odd_texts_come_through_as_they_are(tmp_path: Path, postgres: LocalServer) -> None:
    long = "я" * 9_000
    notes = {
        "nul.md": "before\0after \u2028 rain\n",
        "long.md": f"# {long}\n\nrain\n",
        "Ünï Ç😀.md": "# 日本\n\nrain\n",
        "empty.md": "",
    }
    with published.open_team(tmp_path, postgres.address(), notes) as team:
        reader = team.reader()
        reader.refresh()
        for path, text in notes.items():
            assert reader.view.read_bytes(path) == text.encode()
        assert published.hits(reader, "rain", "keyword") == published.hits(team.engine, "rain", "keyword")
        assert [note for _, note, _ in published.hits(reader, long, "keyword")] == ["long.md"] * 5


@pytest.mark.slow  # kills processes
def test_a_writer_killed_while_it_replaces_vectors_is_completed_by_the_next(
    tmp_path: Path, postgres: LocalServer
) -> None:
    notes = {f"{number}.md": f"rain {number}\n" for number in range(90)}
    with published.open_team(tmp_path, postgres.address(), notes) as team:
        reader = team.reader()
        before = counts_of(reader)
        command = [sys.executable, "-m", "tests.index.published", "--dying"]
        command += map(str, (team.root, team.folder / "state", team.address, team.name, 64))
        ended = subprocess.run(command, check=False, cwd=Path(__file__).parents[2])
        killed = counts_of(reader)
        is_whole = published.is_whole(team)
        team.embedder.dimensions = 64
        retry(team.publish)

        assert ended.returncode == -signal.SIGKILL
        assert before == (90, 90)
        assert 0 < killed[1] < killed[0] == 90
        assert is_whole
        assert published.is_whole(team)
        assert counts_of(reader) == (91, 91)
        assert published.hits(reader, "rain 7", "semantic") == published.hits(team.engine, "rain 7", "semantic")


@pytest.mark.slow  # kills processes
def test_a_writer_killed_anywhere_leaves_whole_notes(tmp_path: Path, postgres: LocalServer) -> None:
    notes = word_engines.vault(random.Random(1), 12)
    with published.open_team(tmp_path, postgres.address(), notes) as team:
        reader = team.reader()
        for kill in range(3):
            command = [sys.executable, "-m", "tests.index.published"]
            command += map(str, (team.root, team.folder / "state", team.address, team.name, kill))
            writer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])
            assert writer.stdout is not None
            with writer.stdout as output:
                assert output.readline() == "ready\n"
            time.sleep(0.15 + 0.1 * kill)
            writer.send_signal(signal.SIGKILL)
            writer.wait()

            assert published.is_whole(team)
            assert reader.search(SearchRequest(text="rain wind")).hits
            retry(team.publish)
            assert published.is_whole(team)
            assert published.hits(reader, "rain wind", "hybrid") == published.hits(team.engine, "rain wind", "hybrid")


def retry(work: object) -> None:
    """Do something again until the server has noticed that a killed client is gone, and given its lock back."""
    for _ in range(50):
        try:
            assert callable(work)
            work()
        except ConflictError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError("the lock was never given back")


def test_a_stopped_server_is_told_and_found_again(team: Team, postgres: LocalServer) -> None:
    reader = team.reader()
    before = published.hits(reader, "rain", "hybrid")
    postgres.stop("immediate")
    try:
        with pytest.raises(StorageError, match="doesn't answer") as raised:
            reader.search(SearchRequest(text="rain"))
        freshness = reader.freshen()
        listed = [stat.path for stat in reader.view.list_files()]
        with pytest.raises(StorageError, match="doesn't answer"):
            reader.view.read_bytes(listed[0])
        with pytest.raises(StorageError, match="doesn't answer"):
            team.save({"while down.md": "rain\n"})
        team.engine.publishing = publishing_of(team)
        team.engine.embed()
        failed = team.engine.publishing.error
    finally:
        postgres.start()

    assert raised.value.code == "engine_unreachable"
    assert "knap doctor" in raised.value.hint
    assert freshness.unchecked
    assert any("search doesn't work until it answers" in notice for notice in freshness.notices)
    assert len(listed) == 18
    assert isinstance(failed, StorageError)
    assert published.hits(reader, "rain", "hybrid") == before
    team.engine.embed()
    assert team.engine.publishing.error is None
    assert "while down.md" in {note for _, note, _ in published.hits(reader, "while down", "keyword")}


def publishing_of(team: Team) -> Publishing:
    return Publishing(team.publisher)


def test_a_connection_that_is_cut_within_a_search_is_told(team: Team, postgres: LocalServer) -> None:
    reader = team.reader()

    def search_while_cut() -> None:
        with published.snapshot(reader) as opened:
            with postgres.connect() as other:
                other.execute(_CUT_SQL)
            published.ranked(opened, "rain")

    with pytest.raises(StorageError, match="doesn't answer"):
        search_while_cut()
    assert published.hits(reader, "rain", "keyword")


def test_a_copy_that_is_stopped_after_its_connection_was_cut_tells_why_and_leaves_nothing_open(
    team: Team, postgres: LocalServer
) -> None:
    reader = team.reader()

    def cut_and_stop(phase: str, done: int, total: int) -> None:
        del phase, done, total
        with postgres.connect() as other:
            other.execute(_CUT_SQL)
        raise _StoppedError

    with pytest.raises(_StoppedError):
        reader.refresh(progress=cut_and_stop)
    gc.collect()  # whatever was left open warns here, which fails the test

    assert reader.refresh().indexed == 18


def test_a_second_publisher_waits_and_is_then_told(team: Team) -> None:
    held = threading.Event()
    end = threading.Event()

    def hold() -> None:
        with closing(team.publisher.server.connect()) as session:
            session.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", (team.schema,))
            held.set()
            end.wait(20)

    with ThreadPoolExecutor(1) as pool:
        holding = pool.submit(hold)
        held.wait(20)
        with pytest.raises(ConflictError, match="another process is publishing the vault"):
            team.publish()
        end.set()
        holding.result()
    assert team.publish().notes == 0


def test_another_machine_is_refused_until_it_takes_over(team: Team, tmp_path: Path) -> None:
    other_root = worlds.fill(tmp_path / "other", {"only here.md": "rain on another machine\n"})
    with worlds.engine(other_root, tmp_path / "s2", team.embedder) as other:
        other.refresh()
        other.embed()
        with pytest.raises(ConflictError, match="is published by") as raised:
            team.publisher.publish(other.store, other.view, model="words")
        team.publisher.publish(other.store, other.view, model="words", take_over=True)
        reader = team.reader()
        reader.refresh()
        paths = [stat.path for stat in reader.view.list_files()]
        with pytest.raises(ConflictError):
            team.publish()
        team.publish(take_over=True)
        reader.refresh()

    assert raised.value.code == "other_writer"
    assert "knap index --full" in raised.value.hint
    assert paths == ["only here.md"]
    assert len(list(reader.view.list_files())) == 18
    assert published.is_whole(team)


def test_twenty_readers_at_once_beside_a_writer(team: Team) -> None:
    readers = [team.reader() for _ in range(4)]
    stop = threading.Event()

    def write() -> int:
        count = 0
        while not stop.is_set():
            worlds.fill(team.root, {"pair one.md": f"zebra{count} rain\n", "pair two.md": f"zebra{count} rain\n"})
            team.publish()
            count += 1
        return count

    def ask(number: int) -> int:
        reader = readers[number % len(readers)]
        for _ in range(3):
            with published.snapshot(reader) as opened:
                # Two queries of one state agree, whatever is published in between.
                first, second = (published.ranked(opened, "rain", limit=500) for _ in range(2))
                assert first == second
            assert reader.search(SearchRequest(text="rain wind")).hits
        return 1

    with ThreadPoolExecutor(21) as pool:
        writing = pool.submit(write)
        answered = sum(pool.map(ask, range(20)))
        stop.set()
        writes = writing.result()

    assert answered == 20
    assert writes >= 1
    assert published.is_whole(team)


def test_a_listener_is_told_of_what_is_published(team: Team) -> None:
    reader, stop, told = team.reader(), threading.Event(), threading.Event()
    outcomes: list[int] = []

    def on_change(outcome: object) -> None:
        outcomes.append(getattr(outcome, "indexed", 0))
        told.set()

    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(reader.follow_source, stop, on_change)
        assert told.wait(20)
        told.clear()
        team.save({"told.md": "news\n"})
        was_told = told.wait(20)
        stop.set()
        assert following.result() is True

    assert was_told
    assert outcomes == [18, 1]


def test_a_large_vault_is_searched_by_a_graph_and_loses_next_to_nothing(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = published.hits(team.reader(), "rain wind storm", "semantic")
    monkeypatch.setattr(publish, "MIN_GRAPH_VECTORS", 10)
    team.embedder.model_id = "small"
    team.embedder.dimensions = 64
    team.publish()
    reader = team.reader()
    few = Filter(policy=Policy(client="x", read=("*1*.md",)))
    with team.publisher.server.snapshot() as session:
        meta = schema.read_meta(session)

    assert meta["graph"] == "1"
    assert len(exact) == 30
    for where in (Filter(), few):
        local = published.hits(team.engine, "rain wind storm", "semantic", where)
        assert published.hits(reader, "rain wind storm", "semantic", where) == local


def test_tables_of_a_newer_program_are_left_alone(team: Team) -> None:
    reader = team.reader()
    with team.publisher.server.borrow() as session:
        schema.write_meta(session, {"schema": str(schema.VERSION + 1)})
    with pytest.raises(StorageError, match="newer version of Knapper"):
        team.publish()
    with pytest.raises(StorageError, match="newer version of Knapper"):
        reader.refresh()


def test_rows_of_another_format_are_refused_and_written_anew(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = team.reader()
    monkeypatch.setattr(schema, "FORMAT", "9.9")
    monkeypatch.setattr("knapper.index.postgres.rows.FORMAT", "9.9")
    with pytest.raises(StorageError, match="another version of Knapper"):
        reader.refresh()
    again = team.publish()

    assert again.notes == 18
    assert reader.refresh().indexed == 18


def test_a_database_without_the_vault_says_who_fills_it(tmp_path: Path, postgres: LocalServer) -> None:
    with published.open_team(tmp_path, postgres.address(), {"a.md": "a\n"}) as team:
        team.name = "nobody published this"
        with pytest.raises(StorageError, match="doesn't hold the vault") as raised:
            team.reader().refresh()

    assert "knap index" in raised.value.hint


def test_a_missing_role_is_named_with_the_command_that_makes_it(team: Team) -> None:
    publisher = Publisher(team.publisher.server, readers={"no such role": None})
    with pytest.raises(SetupError, match="no role of the server") as raised:
        publisher.publish(team.engine.store, team.engine.view, model="words")

    assert 'CREATE ROLE "no such role" LOGIN' in raised.value.hint


def test_a_wrong_user_is_told_without_the_password(postgres: LocalServer) -> None:
    address = postgres.address("nobody-here:s3cret-word")
    server = PostgresServer(address, "v")
    with pytest.raises(KnapError) as raised:
        server.connect()

    assert "s3cret-word" not in f"{raised.value.message}{raised.value.hint}{server.shown}{server!r}{raised.value!r}"
    assert raised.value.__cause__ is None


def test_one_publishing_after_the_vectors_changed_their_length_leaves_no_note_without(team: Team) -> None:
    reader = team.reader()
    team.embedder.dimensions = 64
    team.save({"new.md": "rain on the roof\n"})
    with published.snapshot(reader) as opened:
        chunks, embedded = opened.count(Filter())

    assert chunks == embedded > 18
    assert published.hits(reader, "rain wind", "semantic") == published.hits(team.engine, "rain wind", "semantic")


def counts_of(reader: ReaderEngine) -> tuple[int, int]:
    with published.snapshot(reader) as opened:
        return opened.count(Filter())


def shorten_vectors(team: Team) -> None:
    """Give the team's index vectors of another length under the same name, without publishing them."""
    team.embedder.dimensions = 64
    worlds.fill(team.root, {"new.md": "rain on the roof\n"})
    team.engine.refresh(check=False)
    team.engine.embed()


def publish_one_batch(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    """Publish a few notes of many, and stop there as a killed process does."""
    monkeypatch.setattr(publish, "_BATCH_NOTES", 4)
    stop = threading.Event()

    def end(phase: str, done: int, total: int) -> None:
        del phase, done, total
        stop.set()

    team.publisher.publish(team.engine.store, team.engine.view, model="words", stop=stop, progress=end)


def test_what_a_stopped_replacement_of_vectors_left_out_is_told_and_published_next(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, stale = team.reader(), team.reader(embedder=published.make_embedder())
    shorten_vectors(team)
    publish_one_batch(team, monkeypatch)
    chunks, embedded = counts_of(reader)
    pending, by_words = reader.freshen().pending, published.hits(reader, "rain wind", "keyword")
    remarks = stale.search(SearchRequest(text="rain wind")).remarks
    expected = published.hits(team.engine, "rain wind", "keyword")
    is_whole = published.is_whole(team)
    team.publish()

    assert 0 < embedded < chunks
    assert pending == chunks - embedded
    assert by_words
    assert {note for _, note, _ in by_words} == {note for _, note, _ in expected} - {"new.md"}
    assert any("searched by words only" in remark for remark in remarks)
    assert is_whole
    assert published.is_whole(team)
    assert len({*counts_of(reader)}) == 1
    assert reader.freshen().pending == 0
    assert published.hits(reader, "rain wind", "hybrid") == published.hits(team.engine, "rain wind", "hybrid")


def test_a_note_that_cannot_be_read_while_vectors_are_replaced_is_published_next(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = team.reader()
    shorten_vectors(team)
    readable = type(team.engine.view).read_bytes

    def read_bytes(view: View, raw: str, **limits: int) -> bytes:
        if raw == "new.md":
            return readable(view, raw, **limits)
        raise StorageError("the file is locked")

    with monkeypatch.context() as patch:
        patch.setattr(type(team.engine.view), "read_bytes", read_bytes)
        team.publish()
    told = reader.freshen().pending
    team.publish()

    assert told > 18
    assert len({*counts_of(reader)}) == 1
    assert "current" in team.publisher.describe(team.engine.store)


def test_two_indexes_of_a_vault_with_other_lengths_do_not_replace_each_others_vectors(
    team: Team, tmp_path: Path
) -> None:
    reader = team.reader()
    before = published.hits(reader, "rain wind", "semantic")
    short = published.make_embedder()
    short.dimensions = 64
    with worlds.engine(team.root, tmp_path / "other state", short) as other:
        other.refresh()
        other.embed()
        with pytest.raises(ConflictError, match="vectors of 256 numbers under the model name 'words'") as raised:
            team.publisher.publish(other.store, other.view, model="words")
        after = published.hits(reader, "rain wind", "semantic")
        team.publisher.publish(other.store, other.view, model="words", take_over=True)
        taken = len({*counts_of(reader)})
        with pytest.raises(ConflictError, match="vectors of 64 numbers"):
            team.publish()

    assert raised.value.code == "other_vectors"
    assert "knap index --full" in raised.value.hint
    assert before == after
    assert taken == 1


def test_a_reader_with_another_model_is_told_where_vectors_are_made(team: Team) -> None:
    other = published.make_embedder()
    other.dimensions = 128
    reader = team.reader(embedder=other)
    reader.refresh()

    with pytest.raises(EmbedderError) as caught:
        reader.search(SearchRequest(text="tomatoes", mode="semantic"))

    assert "the machine with the files" in caught.value.hint

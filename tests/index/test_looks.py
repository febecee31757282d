"""What is ranked in threads of its own is what the one who asks would have found."""

from collections.abc import Generator
from pathlib import Path

import numpy as np
import pytest

from knapper.index import tokenizer
from knapper.index.documents import Filter
from knapper.index.engine import Engine
from knapper.index.snapshot import SqliteSnapshot, SqliteSnapshotCache
from knapper.vault.access import Policy
from tests.index import worlds
from tests.index.worlds import WordEmbedder

NOTES = {
    "Rain.md": "It pours.",
    "Rain barrel.md": "Below the roof.",
    "Sun.md": "# Rain\n\nNone.",
    "Wind.md": "It rains.",
}
ALL = Filter()
UNSEEN = Filter(policy=Policy(client="guest", hidden=("Rain.md",)))


def ranked(look: SqliteSnapshot, where: Filter) -> dict[str, float]:
    found = look.nearest(WordEmbedder().query("rain"), where, limit=9)()
    paths = dict(look.connection.execute("SELECT id, path FROM files"))
    return {paths[look.note(i)]: score for i, score in found.items()}


@pytest.fixture
def engine(tmp_path: Path) -> Generator[Engine]:
    with worlds.engine(worlds.fill(tmp_path / "vault", NOTES), tmp_path / "state", WordEmbedder()) as engine:
        engine.refresh()
        engine.embed()
        yield engine


@pytest.fixture
def beside(engine: Engine) -> Generator[SqliteSnapshotCache]:
    looks = SqliteSnapshotCache(engine.store, min_parallel=1)
    yield looks
    looks.close()


@pytest.mark.parametrize(("where", "unseen"), [(ALL, set[str]()), (UNSEEN, {"Rain.md"})])
def test_threads_find_what_the_asker_finds(
    engine: Engine, beside: SqliteSnapshotCache, where: Filter, unseen: set[str]
) -> None:
    alone = SqliteSnapshotCache(engine.store)
    with alone.snapshot("words") as look:
        expected = ranked(look, where)
    alone.close()
    with beside.snapshot("words") as look:
        found = ranked(look, where)

    assert found == expected
    assert set(found) == {"Rain.md", "Rain barrel.md", "Sun.md"} - unseen


def test_threads_find_what_was_embedded_since(engine: Engine, beside: SqliteSnapshotCache) -> None:
    with beside.snapshot("words") as look:
        before = ranked(look, ALL)
    worlds.fill(engine.view.root, {"Rain today.md": "Again."})
    engine.refresh()
    engine.embed()
    with beside.snapshot("words") as look:
        after = ranked(look, ALL)

    assert set(after) - set(before) == {"Rain today.md"}


def test_names_are_scored_as_they_are_by_now(engine: Engine, beside: SqliteSnapshotCache) -> None:
    query = tokenizer.parse_query("rain barrel")
    with beside.snapshot("") as look:
        before = look.names(query, ALL).by_file
        again = look.names(query, ALL).by_file
    worlds.fill(engine.view.root, {"Sun.md": "---\naliases: [rain barrel]\n---\nNone."})
    engine.refresh()
    anew = SqliteSnapshotCache(engine.store)
    with beside.snapshot("") as look, anew.snapshot("") as other:
        after, expected = look.names(query, ALL).by_file, other.names(query, ALL).by_file
        (sun,) = look.connection.execute("SELECT id FROM files WHERE path = 'Sun.md'").fetchone()
    anew.close()

    assert (again, after) == (before, expected)
    assert before[sun] < 0.1 < after[sun] == 1


def test_a_question_of_another_length_than_the_vectors_finds_nothing(beside: SqliteSnapshotCache) -> None:
    with beside.snapshot("words") as look:
        found = look.nearest(np.ones(3, np.float32), ALL, limit=9)()

    assert found == {}

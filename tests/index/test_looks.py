"""What is ranked in threads of its own is what the one who asks would have found."""

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from knapper.index import segment
from knapper.index.engine import Engine
from knapper.index.filters import Filter
from knapper.index.looks import SqliteLook, SqliteLooks
from knapper.vault.policy import Policy
from tests.index import worlds
from tests.index.worlds import WordEmbedder

NOTES = {
    "Rain.md": "It pours.",
    "Rain barrel.md": "Below the roof.",
    "Sun.md": "# Rain\n\nNone.",
    "Wind.md": "It rains.",
}
QUERY = segment.terms("rain")
ALL = Filter()
UNSEEN = Filter(policy=Policy(client="guest", hidden=("Rain.md",)))

Ranked = tuple[dict[str, float], dict[str, float]]


def ranked(look: SqliteLook, where: Filter) -> Ranked:
    vector, names = look.vector(WordEmbedder().query("rain"), where, limit=9), look.names(QUERY, where)
    paths = dict(look.connection.execute("SELECT id, path FROM files"))
    return {paths[i]: s for i, s in names().items()}, {paths[look.note(i)]: s for i, s in vector().items()}


@pytest.fixture
def engine(tmp_path: Path) -> Generator[Engine]:
    with worlds.engine(worlds.fill(tmp_path / "vault", NOTES), tmp_path / "state", WordEmbedder()) as engine:
        engine.refresh()
        engine.embed()
        yield engine


@pytest.fixture
def beside(engine: Engine) -> Generator[SqliteLooks]:
    looks = SqliteLooks(engine.store, many=1)
    yield looks
    looks.close()


@pytest.mark.parametrize(("where", "unseen"), [(ALL, set[str]()), (UNSEEN, {"Rain.md"})])
def test_threads_find_what_the_asker_finds(
    engine: Engine, beside: SqliteLooks, where: Filter, unseen: set[str]
) -> None:
    alone = SqliteLooks(engine.store)
    with alone.look("words") as look:
        expected = ranked(look, where)
    alone.close()
    with beside.look("words") as look:
        found = ranked(look, where)

    assert found == expected
    assert set(found[0]) == {"Rain.md", "Rain barrel.md", "Sun.md"} - unseen


def test_threads_find_nothing_that_was_written_after_the_asker_began(engine: Engine, beside: SqliteLooks) -> None:
    with beside.look("words") as look:
        before = ranked(look, ALL)
        worlds.fill(engine.view.root, {"Rain today.md": "Again."})
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(engine.refresh).result().indexed == 1
        after = ranked(look, ALL)
    with beside.look("words") as look:
        anew = ranked(look, ALL)

    assert after == before
    assert "Rain today.md" in anew[0]

"""A killed indexer leaves an index that is whole, and that comes to hold what the vault holds."""

from pathlib import Path

import pytest

from tests.stress import index_kill


@pytest.mark.slow
def test_a_killed_indexer_leaves_nothing_wrong(tmp_path: Path) -> None:
    result = index_kill.run(tmp_path, kills=8, notes=250, compare_every=4)

    assert (result.corrupt, result.different) == ([], [])
    assert (result.kills, result.compared) == (8, 2)


def test_the_check_sees_words_that_belong_to_no_chunk(tmp_path: Path) -> None:
    (tmp_path / "v").mkdir()
    (tmp_path / "v" / "a.md").write_text("alpha\n", encoding="utf-8")
    with index_kill.engine(tmp_path / "v", tmp_path / "s") as engine:
        engine.refresh()
        with engine.store.database.transaction() as connection:
            connection.execute("DELETE FROM chunks")

    wrong = [f"{name} don't belong together" for name in ("words of chunks", "chunks that wait")]
    assert index_kill.broken(tmp_path / "s" / "index.db") == wrong
    assert index_kill.held(tmp_path / "s") == {"a.md": []}

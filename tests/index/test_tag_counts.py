"""Counts of tags, beside what plain Python counts."""

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from knapper.index import catalog
from knapper.index.database import Database
from knapper.vault import paths
from tests.properties import scaled

NAMES = st.sampled_from(["a", "A", "a/b", "A/B", "a/B", "b", "É", "é", "\U0001f600", "\uffff", "zz"])
HELD = st.lists(st.tuples(st.integers(1, 6), NAMES), min_size=1, max_size=30)
SEEN = st.none() | st.lists(st.booleans(), min_size=7, max_size=7)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    with Database(tmp_path_factory.mktemp("tags") / "index.db") as database:
        yield database


@example(held=[(1, "A"), (1, "A"), (1, "a/b"), (2, "a"), (3, "a")], seen=None, prefix="", page=(5, 0))
@given(
    held=HELD,
    seen=SEEN,
    prefix=st.sampled_from(["", "a", "a/", "é", "none"]),
    page=st.tuples(st.integers(1, 9), st.integers(0, 2)),
)
@settings(max_examples=scaled(80), deadline=None)
def test_notes_count_once_a_tag_and_the_spelling_of_most_is_shown(
    *, database: Database, held: list[tuple[int, str]], seen: list[bool] | None, prefix: str, page: tuple[int, int]
) -> None:
    limit, offset = page
    with database.transaction() as connection:
        connection.execute("DELETE FROM tags")
        rows = [(i, paths.name_key(name), name, 1) for i, name in held]
        connection.executemany("INSERT INTO tags (file_id, key, name, line) VALUES (?, ?, ?, ?)", rows)
    allowed = None if seen is None else np.array(seen)
    counts = catalog.count_tags(database.reader(), allowed, prefix, limit, offset)

    shown = {(i, name) for i, name in held if (seen is None or seen[i]) and paths.name_key(name).startswith(prefix)}
    notes = Counter(key for key, _ in {(paths.name_key(name), i) for i, name in shown})
    uses = Counter(name for _, name in shown)
    spelled = {key: min((-n, name) for name, n in uses.items() if paths.name_key(name) == key)[1] for key in notes}
    ordered = sorted(notes, key=lambda key: (-notes[key], key))
    assert [(tag.name, tag.notes) for tag in counts.tags] == [
        (spelled[key], notes[key]) for key in ordered[offset : offset + limit]
    ]
    assert counts.total == len(notes)

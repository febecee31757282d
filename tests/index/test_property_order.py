"""The order of a property, beside what Python's own sort makes of the same values."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeGuard

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from knapper.index import catalog, documents
from knapper.index.catalog import ListingQuery, SortOrder
from knapper.index.database import Database
from knapper.index.documents import Filter, PropertyTest
from knapper.jsontypes import JSONValue
from tests.index import worlds
from tests.properties import scaled

ALIKE = [
    "",
    "1",
    "1.0",
    "-0.0",
    "A",
    "a",
    "é",
    "e\u0301",
    "\uffff",
    "\U0001f600",
    "a\0b",
    "nan",
    "x" * 1000,
    "x" * 1001,
]
NUMBERS = [0, 1, 1.0, -0.0, 0.0, 2**53, 2**53 + 1, 10**400, -(10**400), 1e300, 5e-324, math.inf, -math.inf, math.nan]
SCALARS: st.SearchStrategy[JSONValue] = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from(NUMBERS),
    st.sampled_from(ALIKE),
    st.integers(-2, 2),
    st.floats(),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=2),
)
ELEMENTS: st.SearchStrategy[JSONValue] = st.one_of(SCALARS, st.lists(SCALARS, max_size=1))
VALUES: st.SearchStrategy[JSONValue] = st.one_of(
    SCALARS,
    st.lists(ELEMENTS, max_size=4),
    st.dictionaries(st.sampled_from("ab"), SCALARS, max_size=2),
)
HELD = st.dictionaries(st.integers(1, 30), VALUES, max_size=12)
IDS = st.lists(st.integers(1, 30), unique=True, max_size=20)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    with Database(tmp_path_factory.mktemp("order") / "index.db") as database:
        yield database


@pytest.mark.parametrize("looked_up", [0, 100])
@example(held={1: 0, 2: 0.0, 3: -0.0, 4: [0.0, -0.0, "0"], 5: "0", 6: 0.25}, ids=[6, 5, 1, 2, 7, 3, 4], down=False)
@example(held={1: 10.25, 2: 9.75, 3: [None, 0.2], 4: [None, "a"], 5: None, 6: []}, ids=[4, 1, 2, 3, 6, 5], down=True)
@given(held=HELD, ids=IDS, down=st.booleans())
@settings(max_examples=scaled(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_files_stand_as_python_sorts_what_they_hold(
    *,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    looked_up: int,
    held: Mapping[int, JSONValue],
    ids: list[int],
    down: bool,
) -> None:
    monkeypatch.setattr(catalog, "_MAX_LOOKUPS", looked_up)
    fill(database, held)
    found = catalog.sort_by_property(database.reader(), np.array(ids, np.int64), "k", descending=down)

    parts = {part: [i for i in ids if i in held and least(held[i])[0] == part] for part in (0, 1)}
    ordered = [i for part in parts.values() for i in sorted(part, key=lambda i: least(held[i]), reverse=down)]
    assert found.tolist() == [*ordered, *(i for i in ids if i not in held)]


def test_few_notes_are_sorted_without_reading_all_that_others_hold_for_each(tmp_path: Path) -> None:
    notes = {f"{number}.md": f"---\nstatus: open\nrank: {number}\n---\n" for number in range(200)}
    steps: list[None] = []
    with worlds.engine(worlds.fill(tmp_path / "v", notes), tmp_path / "s") as engine:
        engine.refresh()
        where = Filter(properties=(PropertyTest(name="status", op="is", value="open"),))
        engine.store.database.reader().set_progress_handler(lambda: steps.append(None), 100)
        listing = engine.catalog.find(ListingQuery(where=where, order=SortOrder(by="property", name="rank"), limit=2))

    assert [entry.path for entry in listing.entries] == ["0.md", "1.md"]
    assert 0 < len(steps) * 100 < 100_000


def fill(database: Database, held: Mapping[int, JSONValue]) -> None:
    """Write what files hold as ``k``; each holds something else beside it."""
    with database.transaction() as connection:
        connection.execute("DELETE FROM properties")
        connection.executemany(
            "INSERT INTO properties (file_id, key, name, shape, item, number) VALUES (?, ?, ?, ?, ?, ?)",
            [
                (i, *row)
                for i, value in held.items()
                for row in documents.property_rows({"j": -1, "K": value, "l": "x"})
            ],
        )


def least(value: JSONValue) -> tuple[int, tuple[float, str]]:
    """Give what a value is sorted by: its least number, or else its least text; nothing comes before any text."""
    elements: Sequence[JSONValue] = (value or [None]) if isinstance(value, list) else [value]
    numbers = [(float(each), documents.fold_value(each)) for each in elements if is_number(each)]
    texts = [(0.0, "") if each is None else (1.0, documents.fold_value(each)) for each in elements]
    return (0, min(numbers)) if numbers else (1, min(texts))


def is_number(value: JSONValue) -> TypeGuard[int | float]:
    """Tell whether a value is sorted as a number; what no float holds is sorted as text."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < 10**309 if isinstance(value, int) else not math.isnan(value)

"""Listing files from the index: how it is asked, order, counts, and where all links lead."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from knapper.index import documents
from knapper.index.catalog import ListingQuery, SortOrder
from knapper.index.documents import Filter, PropertyTest
from knapper.index.engine import Engine
from knapper.vault.access import Policy
from knapper.vault.paths import NotePath
from tests.index import worlds
from tests.properties import scaled

NOTES = {
    "a.md": "---\nn: 2\nwords: some thing\nlist: [x, y]\n---\n[[b]] #One\n",
    "b.md": "---\nn: 10\nlist: [x]\n---\n#one/two #ONE\n",
    "In/c.md": "---\nn: ten\n---\n[[nowhere]] [[c]]\n",
    "In/Deep/d.md": "[x](../c.md) ![[p.png]]\n",
    "p.png": "",
}


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    engine = worlds.engine(worlds.fill(tmp_path / "v", NOTES), tmp_path / "s")
    engine.refresh()
    return engine


def found(engine: Engine, where: Filter, order: SortOrder | None = None) -> list[str]:
    return [entry.path for entry in engine.catalog.find(ListingQuery(where=where, order=order or SortOrder())).entries]


@pytest.mark.parametrize(
    ("test", "paths"),
    [
        (PropertyTest(name="LIST", op="equals", value="X"), ["a.md", "b.md"]),
        (PropertyTest(name="list", op="is", value="x"), ["b.md"]),
        (PropertyTest(name="words", op="contains", value="e th"), ["a.md"]),
        (PropertyTest(name="words", op="contains", value="me"), ["a.md"]),
        (PropertyTest(name="n", op="not_contains", value="ten"), ["In/Deep/d.md", "a.md", "b.md", "p.png"]),
        (PropertyTest(name="n", op="missing"), ["In/Deep/d.md", "p.png"]),
        (PropertyTest(name="words", op="contains", value='"*^'), []),
        (PropertyTest(name="words", op="contains", value="some\0thing"), []),
        (PropertyTest(name="words", op="contains", value=""), ["a.md"]),
    ],
)
def test_properties_are_tested(engine: Engine, test: PropertyTest, paths: list[str]) -> None:
    assert found(engine, Filter(properties=(test,))) == paths


@pytest.mark.parametrize(
    "where",
    [
        Filter(folders=("In",)),
        Filter(directly_in=("In",)),
        Filter(tags=("one",)),
        Filter(paths=("a.md",)),
        Filter(properties=(PropertyTest(name="n", op="equals", value="2"),)),
        Filter(properties=(PropertyTest(name="n", op="is", value="2"),)),
        Filter(properties=(PropertyTest(name="n", op="contains", value="ten"),)),
        Filter(modified_from="2020-01-01", modified_to="2020-01-31"),
        Filter(created_from="2020-01-01", created_to="2020-01-31"),
    ],
)
def test_no_filter_goes_through_all_files(engine: Engine, where: Filter) -> None:
    condition, parameters = documents.build_condition(replace(where, kinds=("note",)))
    by = "+f.path" if documents.is_selective(where) else "f.path"

    plan = engine.store.database.reader().execute(
        f"EXPLAIN QUERY PLAN SELECT f.id FROM files f WHERE {condition} ORDER BY {by} LIMIT 10", parameters
    )

    steps = [str(row[3]) for row in plan]
    assert not [step for step in steps if step.startswith("SCAN") and "VIRTUAL TABLE" not in step]
    assert "SEARCH f USING COVERING INDEX files_kind (kind=?)" not in steps


def test_backlinks_are_looked_up_and_not_searched_for(engine: Engine) -> None:
    asked: list[str] = []
    connection = engine.store.database.reader()
    connection.set_trace_callback(asked.append)
    engine.graph.incoming(NotePath("b.md"))
    connection.set_trace_callback(None)

    selects = [sql for sql in asked if sql.startswith("SELECT")]
    plans = [str(row[3]) for sql in selects for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}")]
    assert plans
    assert not [step for step in plans if step.startswith("SCAN")]


def test_numbers_are_sorted_as_numbers_and_before_texts(engine: Engine) -> None:
    by = SortOrder(by="property", name="N")

    assert found(engine, Filter(kinds=("note",)), by) == ["a.md", "b.md", "In/c.md", "In/Deep/d.md"]
    assert found(engine, Filter(kinds=("note",)), replace(by, descending=True)) == [
        "b.md",
        "a.md",
        "In/c.md",
        "In/Deep/d.md",
    ]


ELEMENTS = st.one_of(st.integers(0, 3), st.sampled_from("abc"))


@given(values=st.lists(st.lists(ELEMENTS, max_size=3), min_size=1, max_size=6), down=st.booleans(), few=st.booleans())
@settings(max_examples=scaled(12), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_property_sorts_by_its_least_element_numbers_before_texts(
    tmp_path_factory: pytest.TempPathFactory, values: list[list[int | str]], down: bool, few: bool
) -> None:
    lines = [f"k: {json.dumps(held[0] if len(held) == 1 else held)}\n" if held else "" for held in values]
    notes = {f"{n}.md": f"---\ntags: [t]\n{line}---\n" for n, line in enumerate(lines)}
    base = tmp_path_factory.mktemp("sorted")
    with worlds.engine(worlds.fill(base / "v", notes), base / "s") as engine:
        engine.refresh()
        where = Filter(kinds=("note",), tags=("t",) if few else ())
        names = found(engine, where, SortOrder(by="property", name="k", descending=down))

    numbers = {n: [each for each in held if isinstance(each, int)] for n, held in enumerate(values)}
    first = [(min(held), n) for n, held in numbers.items() if held]
    texts = [(min(map(str, held)), n) for n, held in enumerate(values) if held and not numbers[n]]
    none = [("", n) for n, held in enumerate(values) if not held]
    parts = [sorted(first, reverse=down), sorted(texts, reverse=down), sorted(none, reverse=down)]
    assert names == [f"{n}.md" for part in parts for _, n in part]


def test_an_order_that_is_remembered_follows_changes_and_keeps_to_who_asks(engine: Engine) -> None:
    by, notes = SortOrder(by="property", name="N"), Filter(kinds=("note",))
    before = found(engine, notes, by)
    seen = found(engine, replace(notes, policy=Policy(hidden=("b.md",))), by)
    (engine.view.root / "b.md").write_text("---\nN: 0\n---\nnow the first\n", encoding="utf-8")
    engine.refresh()

    assert before[0] == "a.md"
    assert "b.md" not in seen
    assert found(engine, notes, by)[0] == "b.md"


def test_tags_count_notes_in_the_spelling_that_most_use(engine: Engine) -> None:
    counts = engine.catalog.tag_counts(Filter())
    guest = engine.catalog.tag_counts(Filter(policy=Policy(hidden=("b.md",))), prefix="one")

    assert [(tag.name, tag.notes) for tag in counts.tags] == [("ONE", 2), ("one/two", 1)]
    assert [(tag.name, tag.notes) for tag in guest.tags] == [("One", 1)]


def test_folders_are_counted_at_any_depth(engine: Engine) -> None:
    notes = Filter(kinds=("note",))

    assert [(each.path, each.files) for each in engine.catalog.folders(notes, "")] == [("In", 2)]
    assert [(each.path, each.files) for each in engine.catalog.folders(notes, "in")] == [("In/Deep", 1)]


def test_a_note_without_links_to_others_stands_alone_for_who_sees_no_others(engine: Engine) -> None:
    hidden = Filter(policy=Policy(hidden=("b.md", "Deep/")))

    assert engine.catalog.orphans(Filter()) == []
    assert engine.catalog.orphans(hidden) == ["In/c.md", "a.md"]
    assert [edge.target for edge in engine.graph.edges(engine.catalog.broken(hidden))] == ["nowhere", "b"]


NAMES = st.sampled_from(["a", "b", "x/a", "x/y/a", "y/b", "c.d", "x/c"])
TARGETS = st.sampled_from(
    ["a", "A.md", "x/a", "./a", "../a", "y/a", "/a", "b", "c", "c.d", "nothing", "x\\a", "\xa0a", "#h"]
)


@given(vault=st.dictionaries(NAMES, st.lists(TARGETS, max_size=4), min_size=1, max_size=6))
@settings(max_examples=scaled(30), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_all_links_lead_where_each_alone_does(
    tmp_path_factory: pytest.TempPathFactory, vault: Mapping[str, list[str]]
) -> None:
    base = tmp_path_factory.mktemp("v")
    notes = {f"{name}.md": " ".join(f"[[{target}]]" for target in targets) for name, targets in vault.items()}
    with worlds.engine(worlds.fill(base / "v", notes), base / "s") as engine:
        engine.refresh()
        ends = engine.graph.link_ends.get()
        paths = dict(ends.notes)
        together = [
            (paths[source], paths.get(target))
            for source, target in zip(ends.sources.tolist(), ends.targets.tolist(), strict=True)
        ]
        alone = [
            (edge.source, edge.path)
            for path in sorted(paths.values())
            for edge in engine.graph.outgoing(path)
            if edge.target and edge.kind != "external"
        ]

    assert together == alone


@pytest.mark.parametrize(
    ("name", "hidden", "is_set"),
    [("N", "", True), ("words", "", True), ("none", "", False), ("words", "a.md", False), ("n", "a.md", True)],
)
def test_whether_a_note_has_a_property_is_told_of_those_that_are_shown(
    engine: Engine, name: str, hidden: str, is_set: bool
) -> None:
    policy = Policy(client="mcp", hidden=(hidden,) if hidden else ())

    assert engine.catalog.is_set(name, Filter(policy=policy, kinds=("note",))) is is_set
    assert not engine.catalog.is_set(name, Filter(policy=policy, kinds=("canvas",)))

"""Where links lead is brought up to date name by name, and is always what a new index says."""

import os
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from knapper.index import graph
from knapper.index.engine import Engine
from knapper.vault.links import PreparedTarget
from knapper.vault.paths import NotePath
from tests.index import worlds
from tests.properties import scaled

NAMES = st.sampled_from(["a", "x/a", "x/A", "x/y/a", "x/y/b", "y/b", "c.d", "x", "a.md", " ", "z/x", "y/a.png"])
TARGETS = st.sampled_from(
    ["a", "A.md", "x/a", "./a", "../a", "../", "..", "./", "y/a", "/a", "b", "c.d", "a.md.md", "no", "x\\a", "\xa0a"]
)
FOLDERS = st.sampled_from(["x", "x/y", "y", "z", "w/v"])
TEXTS = st.tuples(st.lists(TARGETS, max_size=4), st.sampled_from(["", "a", "b"])).map(
    lambda parts: f"---\naliases: ['{parts[1]}']\n---\n" + " ".join(f"[t](<{t}>) [[{t}]]" for t in parts[0])
)
STEPS = st.one_of(
    st.tuples(st.just("save"), NAMES, TEXTS),
    st.tuples(st.just("delete"), NAMES, st.just("")),
    st.tuples(st.just("rename"), NAMES, NAMES),
    st.tuples(st.just("rename"), FOLDERS, FOLDERS),
)


@given(steps=st.lists(STEPS, min_size=3, max_size=12))
@settings(max_examples=scaled(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_changes_leave_the_links_of_a_new_index(
    tmp_path_factory: pytest.TempPathFactory, steps: Sequence[tuple[str, str, str]]
) -> None:
    base = tmp_path_factory.mktemp("v")
    root = worlds.fill(base / "v", {"a.md": "[[b]] [[x/a]] [u](../)", "x/a.md": "[[a]]", "y/b.md": "[[A]] [[ ]]"})
    with worlds.engine(root, base / "s") as engine:
        engine.refresh()
        engine.graph.link_ends.get()
        for step in steps:
            take(root, *step)
            engine.refresh(check=False)
            engine.graph.link_ends.get()
        kept = all_links(engine)
    with worlds.engine(root, base / "t") as engine:
        engine.refresh()
        fresh = all_links(engine)

    assert kept == fresh


def take(root: Path, kind: str, name: str, other: str) -> None:
    """Do one thing to the vault; nothing where that isn't possible."""
    is_folder = kind == "rename" and (root / name).is_dir()
    file = root / (name if is_folder or "." in name[1:] else f"{name}.md")
    target = root / (other if is_folder or "." in other[1:] else f"{other}.md")
    if kind == "save" and not any(parent.is_file() for parent in file.parents):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(other, encoding="utf-8")
    elif kind == "delete":
        file.unlink(missing_ok=True)
    elif kind == "rename" and file.exists() and not target.exists() and file not in target.parents:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(file, target)


def all_links(engine: Engine) -> dict[str, object]:
    """Return all that is known of links, without ids."""
    ends = engine.graph.link_ends.get()
    paths = engine.store.file_states()
    ids = {entry.id: entry.path for entry in engine.catalog.entries(list(paths)).values()}
    edges = engine.graph.edges(ends.rows.tolist())
    return {
        "notes": [path for _, path in ends.notes],
        "all": [
            (ids[source], ids.get(target), edge)
            for source, target, edge in zip(ends.sources.tolist(), ends.targets.tolist(), edges, strict=True)
        ],
        "broken": engine.graph.broken(),
        "orphans": ends.orphans(),
        "incoming": {path: engine.graph.incoming(path) for path in sorted(paths)},
    }


def test_a_saved_note_costs_its_own_links_and_those_to_its_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = {f"n{i}.md": f"[[n{i + 1}]] [[hub]]\n" for i in range(50)}
    root = worlds.fill(tmp_path / "v", {**notes, "hub.md": "here"})
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()
        engine.graph.link_ends.get()
        resolved: list[str] = []

        def prepare(target: str, lookup: Callable[[str], Sequence[NotePath]]) -> PreparedTarget:
            resolved.append(target)
            return PreparedTarget(target, lookup)

        monkeypatch.setattr(graph, "PreparedTarget", prepare)
        monkeypatch.setattr(graph, "_resolve_all", None)
        costs: list[list[str]] = []
        for name, text in (("n3.md", "[[n7]] [[n7]] [[gone]]"), ("n50.md", "[[n4]]"), ("n3.md", "no link")):
            worlds.fill(root, {name: text})
            engine.refresh(check=False)
            resolved.clear()
            engine.graph.link_ends.get()
            costs.append(sorted(resolved))

    assert costs == [["gone", "n7"], ["n4", "n50"], []]


def test_files_with_other_times_alone_cost_no_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = worlds.fill(tmp_path / "v", {f"n{i}.md": f"[[n{i + 1}]]\n" for i in range(5)})
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()
        before = all_links(engine)
        monkeypatch.setattr(graph, "PreparedTarget", None)
        monkeypatch.setattr(graph, "_resolve_all", None)
        monkeypatch.setattr(graph, "_MAX_CHANGES", 2)  # fewer than are touched, as by a tool that copies a vault
        for file in root.iterdir():
            os.utime(file, (1, 1))
        outcome = engine.refresh(check=False)

        assert (outcome.indexed, outcome.unchanged) == (0, 5)
        assert all_links(engine) == before


def test_links_are_read_anew_where_changes_were_forgotten(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "[[b]]", "b.md": ""})
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()
        broken_before = engine.graph.broken()
        (root / "b.md").unlink()
        engine.refresh()
        engine.store.forget(keep=0)
        engine.store.forget(keep=0)
        broken_after = engine.graph.broken()

    assert broken_before == []
    assert [edge.target for edge in broken_after] == ["b"]


def test_a_reader_of_an_older_state_gets_the_links_of_that_state(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "[[b]]", "b.md": ""})
    with worlds.engine(root, tmp_path / "s") as engine, worlds.engine(root, tmp_path / "s") as other:
        engine.refresh()
        cache = engine.graph.link_ends
        with engine.store.database.snapshot():
            before = cache.get().broken()
            (root / "b.md").unlink()
            other.refresh()
            with ThreadPoolExecutor(1) as executor:
                later = executor.submit(lambda: cache.get().broken()).result()
            still = cache.get().broken()

    assert (before, len(later), still) == ([], 1, [])


def test_a_note_named_like_a_folder_gets_the_links_to_that_folder(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"x/y/n.md": "[up](../)", "x/n.md": "[here](./)"})
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()
        broken = [len(engine.graph.broken())]
        for name in ("x.md", "x.md"):
            if (root / name).exists():
                (root / name).unlink()
            else:
                worlds.fill(root, {name: "both lead here"})
            engine.refresh(check=False)
            broken.append(len(engine.graph.link_ends.get().broken()))

    assert broken == [2, 0, 2]

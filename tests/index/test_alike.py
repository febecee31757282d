"""Names like a mistyped one's, told by the index instead of a walk through all files."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from knapper.errors import NotFound
from knapper.index import catalog
from knapper.index.engine import Engine
from knapper.vault import files, walk
from knapper.vault.access import Policy
from knapper.vault.paths import NotePath
from knapper.vault.view import View
from tests.index import worlds

NOTES = {
    "Plan.md": "1",
    "In/Plan.md": "2",
    "In/plans.md": "3",
    "Other/Plan of all.md": "4",
    "Secret/Plano.md": "5",
    "Two\nlines/CAFÉ.md": "6",
    "board.canvas": "{}",
}


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    engine = worlds.engine(worlds.fill(tmp_path / "v", NOTES), tmp_path / "s")
    engine.refresh()
    return engine


def nearest(view: View, path: str) -> Sequence[str]:
    with pytest.raises(NotFound) as raised:
        view.path(path)
    return raised.value.as_dict()["nearest"]  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("path", "near"),
    [
        ("In/Plam.md", ["In/Plan.md", "Plan.md", "In/plans.md"]),
        ("Plam.md", ["Plan.md", "In/Plan.md", "In/plans.md"]),
        ("cafe.md", ["Two\nlines/CAFÉ.md"]),
        ("bord.canvas", ["board.canvas"]),
        ("zzzzzzz.md", []),
    ],
)
def test_the_most_like_come_first_and_those_of_the_same_folder_before_others(
    engine: Engine, path: str, near: list[str]
) -> None:
    assert nearest(engine.view, path) == near


def test_no_file_is_looked_at_but_those_that_are_told(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def walked(*_: object, **__: object) -> None:
        raise AssertionError("the vault was walked through")

    monkeypatch.setattr(walk, "list_files", walked)

    assert nearest(engine.view, "Plam.md")


def test_what_a_client_may_not_see_is_not_told(engine: Engine) -> None:
    view = engine.view.with_policy(Policy(client="mcp", hidden=("Secret/",)))

    assert nearest(view, "Secret/Plano.md") == ["Plan.md", "In/Plan.md", "In/plans.md"]


def test_what_is_gone_is_not_told_and_what_is_spelled_anew_as_it_is_now(engine: Engine) -> None:
    (engine.view.root / "Plan.md").unlink()
    (engine.view.root / "In/Plan.md").rename(engine.view.root / "In/PLAN.md")

    assert nearest(engine.view, "Plam.md") == ["In/PLAN.md", "In/plans.md", "Secret/Plano.md"]


def test_more_are_looked_at_where_the_first_are_hidden(tmp_path: Path) -> None:
    notes = {f"Secret/Plan of {number}.md": "x" for number in range(60)}
    engine = worlds.engine(worlds.fill(tmp_path / "v", {**notes, "Open/Plan of all.md": "x"}), tmp_path / "s")
    engine.refresh()
    view = engine.view.with_policy(Policy(client="mcp", hidden=("Secret/",)))

    assert nearest(view, "Secret/Plan of 6x.md") == ["Open/Plan of all.md"]


def test_an_index_that_knows_nothing_leaves_it_to_the_files(tmp_path: Path) -> None:
    engine = worlds.engine(worlds.fill(tmp_path / "v", NOTES), tmp_path / "s")

    assert nearest(engine.view, "bord.canvas") == ["board.canvas"]


def test_a_damaged_index_leaves_it_to_the_files(engine: Engine) -> None:
    engine.close()
    worlds.damage(engine.folder / "index.db")

    assert nearest(engine.view, "bord.canvas") == ["board.canvas"]


def test_a_folders_own_names_are_looked_at_among_however_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "_MAX_COMPARED_NAMES", 3)
    notes = {f"In/aaa {number}.md": "x" for number in range(10)}
    engine = worlds.engine(worlds.fill(tmp_path / "v", {**notes, "Out/zebra.md": "x"}), tmp_path / "s")
    engine.refresh()

    assert nearest(engine.view, "Out/zebar.md") == ["Out/zebra.md"]
    assert nearest(engine.view, "zebar.md") == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(path=st.text("PlanofCAFÉéca s1/\n", min_size=1, max_size=20))
def test_the_index_tells_what_a_walk_through_all_files_tells(engine: Engine, path: str) -> None:
    names = [file.path for file in engine.view.list_files()]

    assert list(engine.catalog.similar_paths(NotePath(path)) or ()) == files.nearest_paths(path, names, limit=100)

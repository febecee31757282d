import json
import os
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from knapper.errors import Ambiguous, BadInput, KnapError, NotFound, RefusedError
from knapper.system import opening
from knapper.vault import paths
from knapper.vault.access import Policy
from knapper.vault.paths import NotePath
from knapper.vault.view import View
from knapper.vault.walk import Skipped

FILES = [
    "Open/note.md",
    "Open/Café.md",
    "Open/board.canvas",
    "Secret/key.md",
    "Secret/Deep/plan.md",
    "Templates/daily.md",
    "root.md",
    "two\nlines.md",
    "*?.md",
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    vault = tmp_path / "vault"
    for file in FILES:
        (vault / file).parent.mkdir(parents=True, exist_ok=True)
        (vault / file).write_text(f"text of {file}", encoding="utf-8")
    (vault / ".obsidian").mkdir()
    (vault / ".obsidian/app.json").write_text(json.dumps({"userIgnoreFilters": ["Templates/"]}), encoding="utf-8")
    (tmp_path / "outside.md").write_text("not ours", encoding="utf-8")
    return vault


@pytest.fixture
def view(root: Path) -> View:
    return View.open(root, Policy(client="mcp", hidden=("Secret/",)))


def paths_of(view: View) -> list[str]:
    return [file.path for file in view.list_files()]


def error_of(view: View, raw: str) -> dict[str, object]:
    with pytest.raises(KnapError) as error:
        view.path(raw)
    shape = error.value.as_dict()
    with pytest.raises(KnapError) as again:
        view.read(raw)
    assert again.value.as_dict() == shape
    return shape


def test_files_are_those_that_are_neither_ignored_nor_hidden(view: View) -> None:
    assert paths_of(view) == ["*?.md", "root.md", "two\nlines.md", "Open/Café.md", "Open/board.canvas", "Open/note.md"]


def test_every_listed_file_can_be_read_under_its_path(view: View) -> None:
    for path in paths_of(view):
        assert view.visible(view.path(path))
        assert view.path(path) == path
        assert view.read(path).raw == view.read_bytes(path) == f"text of {path}".encode()


@pytest.mark.parametrize(
    "raw", ["open/NOTE.md", "./Open/note.md", "Open/x/../note.md", "Secret/../Open/note.md", "{root}/Open/note.md"]
)
def test_other_spellings_give_the_listed_path(view: View, root: Path, raw: str) -> None:
    assert view.path(raw.format(root=root)) == "Open/note.md"
    assert view.path("OPEN/Cafe\u0301.md") == "Open/Café.md"


@pytest.mark.parametrize(
    "raw",
    [
        "Secret/key.md",
        "secret/KEY.md",
        "./Secret//key.md",
        "Open/../Secret/key.md",
        "Secret/Deep/../key.md",
        "Secret/none.md",
        "Secret",
        "Secret/",
        "Secret/Deep",
        "Templates/daily.md",
        "TEMPLATES/daily.md",
        ".obsidian/app.json",
        ".Obsidian/App.json",
        ".obsidian",
        "Open/.hidden.md",
        "alias.md",
        "Open/way/key.md",
        "Open/way/Deep/plan.md",
        "Open/way/none.md",
        "Open/way/out.md",
        "Open/way/loop.md",
        "open/WAY/key.md",
        "config/app.json",
        "none.md",
        "root.md/below.md",
    ],
)
def test_hidden_ignored_and_missing_files_give_the_same_error(view: View, root: Path, tmp_path: Path, raw: str) -> None:
    (root / "alias.md").symlink_to("Secret/key.md")
    (root / "Open/way").symlink_to("../Secret")
    (root / "config").symlink_to(".obsidian")
    (root / "Secret/out.md").symlink_to(tmp_path / "outside.md")
    (root / "Secret/loop.md").symlink_to("loop.md")

    shape = error_of(view, raw.format(root=root))

    assert shape["code"] == "not_found"
    assert str(shape["error"]).startswith("no file ")
    assert not any(
        name in str([shape.get("hint"), shape["nearest"]]) for name in ("Secret", "Templates", "key.md", "plan")
    )


def test_an_error_says_the_same_whether_the_hidden_file_is_there_or_not(view: View, root: Path) -> None:
    before = [error_of(view, raw) for raw in ("Secret/key.md", "SECRET/key.md", "Secret/new.md", "Open/secret-key.md")]
    (root / "Secret/key.md").rename(root / "Secret/new.md")

    assert [
        error_of(view, raw) for raw in ("Secret/key.md", "SECRET/key.md", "Secret/new.md", "Open/secret-key.md")
    ] == before


def test_a_mistyped_path_is_told_with_visible_names_alone(view: View) -> None:
    shape = error_of(view, "Open/kye.md")
    near = error_of(view, "Open/ntoe.md")

    assert "Secret/key.md" not in str(shape)
    assert near["nearest"] == ["Open/note.md"]


@pytest.mark.parametrize(
    "raw",
    [
        "../outside.md",
        "/etc/passwd",
        "Open/../../outside.md",
        "{root}/../outside.md",
        "{root}2/a.md",
        "//x/y",
        "C:\\a.md",
        "out.md",
        "way/outside.md",
    ],
)
def test_nothing_outside_is_read(view: View, root: Path, tmp_path: Path, raw: str) -> None:
    (root / "out.md").symlink_to(tmp_path / "outside.md")
    (root / "way").symlink_to(tmp_path)

    shape = error_of(view, raw.format(root=root))

    assert shape["code"] == "outside_vault"
    with pytest.raises(RefusedError):
        view.read_bytes(raw.format(root=root))


@pytest.mark.parametrize("raw", ["", ".", "a\0.md", "\ud800.md", "x" * 300])
def test_text_that_is_no_path_is_bad_input(view: View, raw: str) -> None:
    with pytest.raises(BadInput):
        view.read(raw)


def test_a_readable_folder_shows_its_files_and_nothing_else(root: Path) -> None:
    view = View.open(root, Policy(read=("/Open/*.md",)))

    assert paths_of(view) == ["Open/Café.md", "Open/note.md"]
    assert view.path("open/note.md") == "Open/note.md"
    with pytest.raises(NotFound):
        view.path("root.md")


def test_a_link_shows_no_more_than_what_it_leads_to(view: View, root: Path) -> None:
    (root / "alias.md").symlink_to("Secret/key.md")
    (root / "fine.md").symlink_to("Open/note.md")

    assert "alias.md" not in paths_of(view)
    assert view.path("FINE.md") == "fine.md"
    assert view.read("fine.md").raw == b"text of Open/note.md"


def test_problems_of_hidden_files_are_not_told(view: View, root: Path) -> None:
    problems: list[Skipped] = []
    (root / "Secret/nothing.md").symlink_to("gone.md")
    (root / "Open/nothing.md").symlink_to("gone.md")

    list(view.list_files(on_problem=problems.append))

    assert [problem.path for problem in problems] == ["Open/nothing.md"]


def test_two_spellings_that_both_fit_are_ambiguous(view: View, root: Path) -> None:
    (root / "Open/NOTE.md").touch()
    if len(os.listdir(root / "Open")) == 3:  # noqa: PTH208
        pytest.skip("this file system ignores case")

    with pytest.raises(Ambiguous):
        view.path("Open/Note.md")


def test_a_vault_below_a_hidden_folder_is_seen(tmp_path: Path) -> None:
    root = tmp_path / ".git" / "Secret"
    root.mkdir(parents=True)
    (root / "a.md").touch()

    view = View.open(root, Policy(hidden=("Secret/",)))

    assert paths_of(view) == ["a.md"]
    assert view.path(str(root / "a.md")) == "a.md"


def test_the_files_at_a_path_on_disk_are_the_visible_ones(view: View, root: Path, tmp_path: Path) -> None:
    (root / "Open/alias.md").symlink_to("../Secret/key.md")
    (tmp_path / "link").symlink_to(root)

    for top in (root, tmp_path / "link"):
        inside, files = view.list_files_at(top / "Open")

        assert (inside, [file.path for file in files]) == (
            "Open",
            ["Open/Café.md", "Open/board.canvas", "Open/note.md"],
        )
        assert [file.path for file in view.list_files_at(top / "Open/note.md")[1]] == ["Open/note.md"]
    assert view.list_files_at(root / "Open/alias.md") == ("Open/alias.md", [])
    assert view.list_files_at(root / "Secret") == ("Secret", [])
    assert view.list_files_at(root / "gone.md") == ("gone.md", [])


@pytest.mark.parametrize("path", [".", "..", "../outside.md", "caf\udce9.md"])
def test_a_path_on_disk_that_names_no_file_of_the_vault_has_none(view: View, root: Path, path: str) -> None:
    assert view.list_files_at(root / path) == (None, [])


def test_another_client_sees_the_same_vault_by_its_own_policy(view: View) -> None:
    owner = view.with_policy(Policy())

    assert owner.path("Secret/key.md") == "Secret/key.md"
    assert not view.visible(owner.path("Secret/key.md"))
    assert owner.policy.sees_all
    assert not view.policy.sees_all


def test_a_folder_is_called_one_only_where_something_in_it_is_seen(view: View) -> None:
    with pytest.raises(NotFound, match="'Open' is a folder"):
        view.read("Open")
    for hidden in ("Secret", "Templates", ".obsidian", "Nothing"):
        with pytest.raises(NotFound, match="no file"):
            view.read(hidden)


@pytest.mark.parametrize("name", ["Secret", "secret", "Templates"])
def test_no_file_is_made_by_a_name_that_a_hidden_folder_may_have(view: View, root: Path, name: str) -> None:
    told: list[str] = []
    for _ in range(2):
        with pytest.raises(KnapError) as caught:
            view.new_path(name)
        told.append(f"{caught.value.code} {caught.value.message}")
        shutil.rmtree(root / name.title(), ignore_errors=True)

    assert told[0] == told[1]


def test_a_file_that_may_be_missing_is_read_without_a_search_for_similar_names(view: View) -> None:
    def refuse(_: NotePath) -> None:
        raise AssertionError("nothing similar is wanted")

    own = replace(view, alike=refuse)

    assert own.read_optional(NotePath("Open/nope.md")) is None
    assert own.read_optional(NotePath("Open/note.md")) == b"text of Open/note.md"


@pytest.mark.parametrize("path", ["Secret/key.md", "Templates/daily.md", "Open"])
def test_what_is_no_visible_file_counts_as_missing_where_a_file_may_be(view: View, path: str) -> None:
    assert view.read_optional(NotePath(path)) is None


def test_on_windows_a_title_may_hold_what_no_file_name_can(view: View, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "parse", partial(paths.parse, windows=True))
    titles = {"Garden: the plan": [NotePath("Open/note.md")]}

    def named(name: str, policy: Policy, *, certain: bool) -> list[NotePath]:
        del policy, certain
        return titles.get(name, [])

    titled = replace(view, named=named)

    assert titled.locate("Garden: the plan") == "Open/note.md"
    with pytest.raises(BadInput, match="can't be a name on Windows"):
        titled.locate("Garden: another plan")


def test_a_note_that_is_replaced_just_then_is_no_folder(view: View, monkeypatch: pytest.MonkeyPatch) -> None:
    # Windows has no name for it for a moment.
    is_file, seen = opening.is_file, iter([False])

    def is_file_later(path: Path) -> bool:
        return next(seen, True) and is_file(path)

    monkeypatch.setattr(opening, "is_file", is_file_later)

    assert view.locate("Open/note.md") == "Open/note.md"

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from knapper.errors import StorageError
from knapper.vault import files, paths, walk
from knapper.vault.walk import FileStat, IgnoreRules, Skipped
from tests.properties import scaled

PLAIN = ["a", "b", "B", "c.md", "C.MD", "d.canvas", "e.Base", ".git", ".hidden.md", "md", "x.markdown", "z.tar.gz"]
ODD = ["two\nlines.md", "🗂️ hub.md", "*?.md", 'it\'s "q".md', "Caf\u00e9.md", "Cafe\u0301.md", "trailing. ", "-rf"]
NAMES = st.sampled_from([*PLAIN, *ODD])
TREES = st.lists(st.lists(NAMES, min_size=1, max_size=4), max_size=12)


def make(root: Path, *files: str) -> None:
    for file in files:
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(file, encoding="utf-8")


def make_empty(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.exists():
        file.touch()


def listed(root: Path, ignore: IgnoreRules | None = None) -> tuple[list[str], list[Skipped]]:
    problems: list[Skipped] = []
    found = [file.path for file in walk.list_files(root, ignore or IgnoreRules(), on_problem=problems.append)]
    return [str(path) for path in found], problems


def naive(root: Path) -> Iterator[str]:
    for at, folders, names in os.walk(root):
        folders[:] = sorted(folder for folder in folders if not folder.startswith("."))
        for file in sorted(file for file in names if not file.startswith(".")):
            yield (Path(at) / file).relative_to(root).as_posix()


@settings(max_examples=scaled(60))
@given(TREES)
@example([["b", "c.md"], ["b0.md"], ["b", "a", "c.md"], ["B", "c.md"]])
def test_the_listing_is_that_of_a_plain_walk(tmp_path_factory: pytest.TempPathFactory, tree: list[list[str]]) -> None:
    root = tmp_path_factory.mktemp("vault")
    for parts in tree:
        if not any(above.is_file() for above in root.joinpath(*parts).parents):
            make_empty(root.joinpath(*parts))

    found, problems = listed(root)

    assert found == list(naive(root))
    assert problems == []
    assert [files.resolve_path(root, paths.parse(path, root=root)).path for path in found] == found


def test_a_file_is_told_with_what_the_system_knows(tmp_path: Path) -> None:
    make(tmp_path, "Notes/a.md")
    status = (tmp_path / "Notes/a.md").stat()

    assert list(walk.list_files(tmp_path, IgnoreRules())) == [
        FileStat(
            path=paths.NotePath("Notes/a.md"),
            kind="note",
            size=10,
            mtime_ns=status.st_mtime_ns,
            ctime_ns=status.st_ctime_ns,
            inode=status.st_ino,
        )
    ]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.md", "note"),
        ("a.MD", "note"),
        ("a.b.markdown", "note"),
        ("a.canvas", "canvas"),
        ("a.Base", "base"),
        ("a.md.txt", "attachment"),
        ("md", "attachment"),
        ("x.md/readme", "attachment"),
        ("a.", "attachment"),
    ],
)
def test_the_ending_tells_the_kind(name: str, kind: str) -> None:
    assert walk.kind_of(name) == kind


@pytest.mark.parametrize("above", [".git", ".obsidian", ".trash/.venv", "Excluded"])
def test_a_vault_below_a_folder_named_like_an_excluded_one_is_not_empty(tmp_path: Path, above: str) -> None:
    make(tmp_path / above / "vault", "a.md", ".git/b.md", ".venv/c.md", ".chroma_db/d.md", ".trash/e.md")

    assert listed(tmp_path / above / "vault") == (["a.md"], [])


def test_ordinary_folders_of_programs_are_part_of_the_vault(tmp_path: Path) -> None:
    make(tmp_path, "node_modules/readme.md", "venv/a.md")

    assert listed(tmp_path)[0] == ["node_modules/readme.md", "venv/a.md"]


def test_a_link_to_a_file_inside_is_listed_with_its_target(tmp_path: Path) -> None:
    make(tmp_path, "Notes/a.md")
    (tmp_path / "alias.md").symlink_to("Notes/a.md")

    found = {file.path: file for file in walk.list_files(tmp_path, IgnoreRules())}

    assert [*found] == ["alias.md", "Notes/a.md"]
    assert found[paths.NotePath("alias.md")].target == "Notes/a.md"
    assert found[paths.NotePath("alias.md")].size == 10


def test_links_that_leave_the_vault_are_told_and_not_followed(tmp_path: Path) -> None:
    root = tmp_path / "vault"
    make(root, "a.md")
    make(tmp_path, "vault2/secret.md", "outside.md")
    (root / "file.md").symlink_to(tmp_path / "outside.md")
    (root / "chain.md").symlink_to("file.md")
    (root / "folder").symlink_to(tmp_path / "vault2")
    (root / "up").symlink_to("..")

    found, problems = listed(root)

    assert found == ["a.md"]
    assert {problem.path for problem in problems} == {"file.md", "chain.md", "folder", "up"}
    assert {problem.code for problem in problems} == {"outside_vault"}
    assert not any(str(tmp_path) in problem.message for problem in problems)


def test_links_to_folders_inside_list_no_file_twice(tmp_path: Path) -> None:
    make(tmp_path, "Notes/a.md")
    (tmp_path / "Again").symlink_to("Notes")
    (tmp_path / "Notes/loop").symlink_to("..")
    (tmp_path / "Notes/self").symlink_to(tmp_path)

    assert listed(tmp_path) == (["Notes/a.md"], [])


def test_links_to_what_is_not_part_of_the_vault_are_not_either(tmp_path: Path) -> None:
    make(tmp_path, ".trash/old.md", "Private/p.md")
    (tmp_path / "undead.md").symlink_to(".trash/old.md")
    (tmp_path / "open.md").symlink_to("Private/p.md")
    (tmp_path / "bin").symlink_to(".trash")

    assert listed(tmp_path, IgnoreRules(prefixes=("private/",))) == ([], [])


def test_links_to_nothing_and_in_circles_are_told(tmp_path: Path) -> None:
    (tmp_path / "nothing.md").symlink_to("gone.md")
    (tmp_path / "circle.md").symlink_to("circle.md")

    found, problems = listed(tmp_path)

    assert found == []
    assert [(problem.path, problem.code) for problem in problems] == [
        ("circle.md", "broken_link"),
        ("nothing.md", "broken_link"),
    ]


def test_a_vault_reached_through_a_link_is_listed_alike(tmp_path: Path) -> None:
    make(tmp_path / "real", "Notes/a.md")
    (tmp_path / "real/alias.md").symlink_to("Notes/a.md")
    (tmp_path / "link").symlink_to("real")

    assert listed(tmp_path / "link") == listed(tmp_path / "real") == (["alias.md", "Notes/a.md"], [])


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such names")
def test_names_that_are_no_text_are_told(tmp_path: Path) -> None:
    make(tmp_path, "a.md")
    try:
        os.mkdir(os.fsencode(tmp_path) + b"/caf\xe9")  # noqa: PTH102  # a name in bytes
    except OSError:
        pytest.skip("this file system takes only UTF-8")

    found, problems = listed(tmp_path)

    assert found == ["a.md"]
    assert [(problem.path, problem.code) for problem in problems] == [("caf\\udce9", "not_unicode")]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_named_like_a_note_is_told(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")

    found, problems = listed(tmp_path)

    assert found == []
    assert [(problem.path, problem.code) for problem in problems] == [("pipe.md", "not_a_file")]


def test_a_path_too_long_for_any_tool_is_told(tmp_path: Path) -> None:
    names = ["x" * 250] * 17
    here = os.open(tmp_path, os.O_RDONLY)
    for name in names:  # one step at a time: the whole path is longer than the system takes
        os.mkdir(name, dir_fd=here)
        below = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)

    found, problems = listed(tmp_path)

    assert found == []
    assert {problem.code for problem in problems} <= {"too_long", "unreadable"}
    assert len(problems) == 1


def test_a_folder_that_vanishes_during_the_walk_is_told_and_the_walk_goes_on(tmp_path: Path) -> None:
    make(tmp_path, "a.md", "b.md", "c.md", "Folder/d.md", "Other/e.md")
    problems: list[Skipped] = []
    walked = walk.list_files(tmp_path, IgnoreRules(), on_problem=problems.append)

    first = next(walked)
    (tmp_path / "b.md").unlink()
    (tmp_path / "Folder/d.md").unlink()
    (tmp_path / "Folder").rmdir()

    # A folder is listed at one moment: what vanishes from it later is noticed by who reads it.
    assert [file.path for file in (first, *walked)] == ["a.md", "b.md", "c.md", "Other/e.md"]
    assert [(problem.path, problem.code) for problem in problems] == [("Folder", "unreadable")]


def test_a_vault_that_is_not_there_is_an_error_and_not_an_empty_vault(tmp_path: Path) -> None:
    with pytest.raises(StorageError) as error:
        list(walk.list_files(tmp_path / "unmounted", IgnoreRules()))

    assert "unmounted" in error.value.message
    assert error.value.hint


@settings(max_examples=scaled(40))
@given(TREES, st.lists(NAMES, min_size=1, max_size=3).map("/".join))
def test_what_is_at_a_path_is_what_the_listing_has_there(
    tmp_path_factory: pytest.TempPathFactory, tree: list[list[str]], path: str
) -> None:
    root = tmp_path_factory.mktemp("vault")
    for parts in tree:
        if not any(above.is_file() for above in root.joinpath(*parts).parents):
            make_empty(root.joinpath(*parts))
    every = list(walk.list_files(root, IgnoreRules()))

    found = list(walk.list_files_at(root, IgnoreRules(), paths.NotePath(path)))

    assert found == [file for file in every if file.path == path or file.path.startswith(f"{path}/")]


@pytest.mark.parametrize(
    "path", ["way/a.md", "way/Deep", "out/a.md", "out", "way", ".git/a.md", ".git", "none.md", "a.md/b"]
)
def test_nothing_is_at_a_path_that_the_listing_does_not_have(tmp_path: Path, path: str) -> None:
    root = tmp_path / "vault"
    make(root, "Notes/a.md", "Notes/Deep/b.md", ".git/a.md", "a.md")
    make(tmp_path, "outside/a.md")
    (root / "way").symlink_to("Notes")
    (root / "out").symlink_to(tmp_path / "outside")

    assert list(walk.list_files_at(root, IgnoreRules(), paths.NotePath(path))) == []


def test_one_file_of_a_large_folder_is_found_without_listing_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path, "Notes/a.md", "Notes/b.md")
    whole = [file for file in walk.list_files(tmp_path, IgnoreRules()) if file.path == "Notes/a.md"]
    listed: list[str] = []
    monkeypatch.setattr(os, "scandir", listed.append)

    assert list(walk.list_files_at(tmp_path, IgnoreRules(), paths.NotePath("Notes/a.md"))) == whole
    assert list(walk.list_files_at(tmp_path, IgnoreRules(), paths.NotePath("Notes/none.md"))) == []
    assert listed == []


def test_a_file_that_answers_to_two_spellings_is_looked_up_in_the_listing(tmp_path: Path) -> None:
    make(tmp_path, "a.md")
    with contextlib.suppress(FileExistsError):  # a system that ignores case answers to it already
        (tmp_path / "A.MD").hardlink_to(tmp_path / "a.md")
    known = (tmp_path / "a.md").lstat()

    assert not paths.is_exact_name(str(tmp_path), "a.md", known)
    assert [file.path for file in walk.list_files_at(tmp_path, IgnoreRules(), paths.NotePath("a.md"))] == ["a.md"]


def test_on_windows_only_the_listing_tells_how_a_name_is_spelled(tmp_path: Path) -> None:
    make(tmp_path, "a.md")
    known = (tmp_path / "a.md").lstat()

    assert paths.is_exact_name(str(tmp_path), "a.md", known, windows=False)
    assert not paths.is_exact_name(str(tmp_path), "a.md", known, windows=True)


def test_several_places_are_listed_as_each_of_them_alone(tmp_path: Path) -> None:
    root = tmp_path / "vault"
    make(root, "Notes/a.md", "Notes/Deep/b.md", ".git/a.md", "a.md", "Other/c.md")
    (root / "way").symlink_to("Notes")
    names = ["Notes/Deep/b.md", "a.md", "none/x.md", "Notes", "way/a.md", "Notes/a.md", "a.md/b", ".git/a.md", "Other"]
    places = list(map(paths.NotePath, names))

    assert walk.list_places(root, IgnoreRules(), places) == [
        walk.list_files_at(root, IgnoreRules(), place) for place in places
    ]


def test_one_file_of_a_vault_that_is_not_there_is_an_error_and_not_gone(tmp_path: Path) -> None:
    with pytest.raises(StorageError):
        list(walk.list_files_at(tmp_path / "unmounted", IgnoreRules(), paths.NotePath("a.md")))

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from knapper.errors import Ambiguous, KnapError, NotFound, RefusedError, StorageError
from knapper.vault import files
from knapper.vault.paths import NotePath
from tests.properties import scaled

NFC, NFD = "Café.md", "Cafe\u0301.md"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    vault = tmp_path / "vault"
    for path in ("Notes/Deep/one.md", "Notes/two.md", "Secret/key.md", "three.md"):
        (vault / path).parent.mkdir(parents=True, exist_ok=True)
        (vault / path).write_text(path, encoding="utf-8")
    (tmp_path / "outside.md").write_text("not ours", encoding="utf-8")
    return vault


@pytest.mark.parametrize(
    "name", ["🗂️ hub.md", 'it\'s "q".md', "two\nlines.md", "*?.md", "a ", "-rf", "b\\c.md", "x\u2028y.md"]
)
def test_odd_names_are_found_exactly(root: Path, name: str) -> None:
    (root / name).touch()

    assert files.resolve_path(root, NotePath(name)).file == root.resolve() / name
    assert files.resolve_path(root, NotePath(name)).path == name


@pytest.mark.parametrize("spelling", ["notes/DEEP/One.md", "Notes/deep/one.MD"])
def test_another_case_finds_the_one_file_that_fits(root: Path, spelling: str) -> None:
    assert files.resolve_path(root, NotePath(spelling)).path == "Notes/Deep/one.md"
    assert files.resolve_path(root, NotePath(spelling)).file.read_text(encoding="utf-8") == "Notes/Deep/one.md"


@pytest.mark.parametrize(("on_disk", "asked"), [(NFC, NFD), (NFD, NFC)])
def test_another_unicode_form_finds_the_one_file_that_fits(root: Path, on_disk: str, asked: str) -> None:
    (root / on_disk).touch()

    assert files.resolve_path(root, NotePath(asked)).path == on_disk


def test_an_exact_spelling_wins_over_others(root: Path) -> None:
    (root / "Three.md").touch()

    assert files.resolve_path(root, NotePath("three.md")).path == "three.md"
    assert files.resolve_path(root, NotePath("Three.md")).path == "Three.md"


def test_two_spellings_that_both_fit_are_ambiguous(root: Path) -> None:
    (root / "Notes/TWO.md").touch()

    with pytest.raises(Ambiguous) as error:
        files.resolve_path(root, NotePath("notes/Two.md"))

    assert error.value.details == {"candidates": ["Notes/TWO.md", "Notes/two.md"]}
    assert "'Notes/two.md'" in error.value.hint


def test_one_file_under_two_names_is_not_taken_for_a_system_that_ignores_case(root: Path) -> None:
    (root / "THREE.MD").hardlink_to(root / "three.md")

    assert files.resolve_path(root, NotePath("THREE.MD")).path == "THREE.MD"


@pytest.mark.parametrize("path", ["Notes/tow.md", "tow.md", "Nots/Two.md"])
def test_a_missing_file_is_told_with_the_nearest_names(root: Path, path: str) -> None:
    with pytest.raises(NotFound) as error:
        files.resolve_path(root, NotePath(path))

    assert repr(path) in error.value.message
    assert "'Notes/two.md'" in error.value.hint


def test_nothing_near_still_gives_a_next_step(root: Path) -> None:
    with pytest.raises(NotFound) as error:
        files.resolve_path(root, NotePath("zzzzzz/qqqqqq.md"))

    assert error.value.hint


def test_names_in_hidden_folders_are_no_hints(root: Path) -> None:
    (root / ".trash").mkdir()
    (root / ".trash/four.md").touch()

    with pytest.raises(NotFound) as error:
        files.resolve_path(root, NotePath("fuor.md"))

    assert ".trash" not in str(error.value.as_dict())


def test_a_path_below_a_file_is_missing(root: Path) -> None:
    with pytest.raises(NotFound):
        files.resolve_path(root, NotePath("three.md/x.md"))


def test_a_file_to_be_created_gets_the_spelling_of_the_folders_there(root: Path) -> None:
    assert files.resolve_path(root, NotePath("notes/new/A.md"), must_exist=False).path == "Notes/new/A.md"
    assert files.resolve_path(root, NotePath("notes/A.md"), must_exist=False).file == root.resolve() / "Notes/A.md"
    assert files.resolve_path(root, NotePath("Notes/TWO.MD"), must_exist=False).path == "Notes/two.md"


def test_a_vault_reached_through_a_link_is_the_same_vault(root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(root)

    assert files.resolve_path(tmp_path / "link", NotePath("three.md")).file == root.resolve() / "three.md"


def test_a_link_to_a_file_keeps_its_name_and_tells_its_target(root: Path) -> None:
    (root / "alias.md").symlink_to("Notes/two.md")

    found = files.find_path(root, NotePath("ALIAS.md"))

    assert (found.path, found.target) == ("alias.md", "Notes/two.md")
    assert found.file == root.resolve() / "Notes/two.md"


def test_a_link_to_a_folder_is_followed_in_the_name(root: Path) -> None:
    (root / "short").symlink_to(root / "Notes/Deep")
    (root / "shorter").symlink_to("short")

    assert files.resolve_path(root, NotePath("shorter/ONE.md")).path == "Notes/Deep/one.md"


@pytest.mark.parametrize("must_exist", [True, False])
@pytest.mark.parametrize(
    "path",
    [
        "out.md",
        "chain.md",
        "folder/outside.md",
        "folder/new.md",
        "FOLDER/outside.md",
        "dangling.md",
        "up/vault/../outside.md",
    ],
)
def test_links_that_leave_the_vault_are_refused(root: Path, tmp_path: Path, path: str, must_exist: bool) -> None:
    (root / "out.md").symlink_to(tmp_path / "outside.md")
    (root / "chain.md").symlink_to("out.md")
    (root / "folder").symlink_to(tmp_path)
    (root / "up").symlink_to("..")
    (root / "dangling.md").symlink_to(tmp_path / "not there.md")

    with pytest.raises(RefusedError) as refusal:
        files.resolve_path(root, NotePath(path), must_exist=must_exist)

    assert refusal.value.code == "outside_vault"
    assert str(tmp_path) not in str(refusal.value.as_dict())


def test_a_sibling_whose_name_begins_like_the_vaults_is_outside(root: Path, tmp_path: Path) -> None:
    (tmp_path / "vault2").mkdir()
    (root / "sibling").symlink_to(tmp_path / "vault2")

    with pytest.raises(RefusedError):
        files.resolve_path(root, NotePath("sibling/a.md"), must_exist=False)


@pytest.mark.parametrize("target", ["self", "self/x", "../vault/self", "pong"])
def test_links_in_a_circle_are_told(root: Path, target: str) -> None:
    (root / "self").symlink_to(target)
    (root / "pong").symlink_to("self")

    with pytest.raises(StorageError) as error:
        files.resolve_path(root, NotePath("self/a.md"))

    assert error.value.code == "link_loop"


def test_a_folder_that_links_to_itself_is_the_folder(root: Path) -> None:
    (root / "Notes/again").symlink_to(".")

    assert files.resolve_path(root, NotePath("Notes/again/again/two.md")).path == "Notes/two.md"


def test_a_path_through_too_many_links_is_told(root: Path) -> None:
    (root / "here").symlink_to(".")

    with pytest.raises(StorageError) as error:
        files.resolve_path(root, NotePath("here/" * 800 + "three.md"))

    assert error.value.code == "link_loop"


def test_a_link_to_nothing_inside_is_missing_or_names_the_file_to_be(root: Path) -> None:
    (root / "later.md").symlink_to("Notes/later.md")

    with pytest.raises(NotFound):
        files.resolve_path(root, NotePath("later.md"))
    assert files.resolve_path(root, NotePath("later.md"), must_exist=False).file == root.resolve() / "Notes/later.md"


@pytest.mark.parametrize(
    "path",
    [
        "Secret/key.md",
        "secret/KEY.md",
        "open/key.md",
        "Open/KEY.md",
        "alias.md",
        "open/none.md",
        "Secret/out.md",
        "open/out.md",
    ],
)
def test_what_is_not_visible_is_missing_whichever_way_it_is_reached(root: Path, tmp_path: Path, path: str) -> None:
    (root / "open").symlink_to("Secret")
    (root / "alias.md").symlink_to("Secret/key.md")
    (root / "Secret/out.md").symlink_to(tmp_path / "outside.md")

    with pytest.raises(NotFound) as error:
        files.find_path(root, NotePath(path), visible=lambda other: not other.startswith(("Secret/", "secret/")))

    assert error.value.message == f"no file {path!r} in the vault"


@settings(max_examples=scaled(30), deadline=None)
@given(
    st.lists(
        st.sampled_from(["Notes", "notes", "Deep", "out", "loop", "..x", "one.md", "two.md"]), min_size=1, max_size=6
    )
)
def test_no_path_leads_out(tmp_path_factory: pytest.TempPathFactory, parts: list[str]) -> None:
    top = tmp_path_factory.mktemp("top")
    root = top / "vault"
    (root / "Notes/Deep").mkdir(parents=True)
    (root / "Notes/Deep/one.md").touch()
    (root / "Notes/two.md").symlink_to("Deep/one.md")
    (root / "Notes/out").symlink_to(top)
    (root / "loop").symlink_to("Notes/../loop")
    (root / "Notes/loop").symlink_to("../Notes")
    try:
        file = files.resolve_path(root, NotePath("/".join(parts))).file
    except KnapError:
        return

    assert file.is_relative_to(root.resolve())
    assert "notes" in parts or file.samefile(root.joinpath(*parts))


def test_folders_that_are_looked_up_once_lead_to_the_same_files(root: Path) -> None:
    (root / "way").symlink_to("Notes")
    (root / "alias.md").symlink_to("Notes/Deep/one.md")
    (root / "out").symlink_to(root.parent)
    known = files.KnownFolders(root)
    names = ["notes/DEEP/One.md", "Notes/two.md", "Notes/Deep/one.md", "way/two.md", "WAY/Deep/one.md", "alias.md"]
    names += ["out/outside.md", "Notes/none.md", "none/a.md", "none/b.md", "three.md/a", "three.md"]

    def outcome(name: str, folders: files.KnownFolders | None) -> object:
        try:
            found = files.find_path(root, NotePath(name), known=folders)
        except KnapError as error:
            return type(error), error.message
        return found, found.file, found.place == str(found.file)

    assert [outcome(name, known) for name in names] == [outcome(name, None) for name in names]

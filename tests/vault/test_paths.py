import errno
import os
import posixpath
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from knapper.errors import BadInput, KnapError, RefusedError
from knapper.vault import paths
from knapper.vault.paths import NotePath

ROOT = Path("/no/such/vault")
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("a.md", "a.md"),
        ("./a.md", "a.md"),
        ("Notes//./a.md", "Notes/a.md"),
        ("Notes/../a.md", "a.md"),
        ("Notes/Deep/../../a.md", "a.md"),
        ("Notes/", "Notes"),
        ("trailing /space .md ", "trailing /space .md "),
        ("non\u00a0breaking.md", "non\u00a0breaking.md"),
        ("two\nlines.md", "two\nlines.md"),
        ("...", "..."),
        ("a..b/..c.md", "a..b/..c.md"),
        ("~/a.md", "~/a.md"),
        ("Q: why?.md", "Q: why?.md"),
        ("back\\slash.md", "back\\slash.md"),
        ("🗂️ \"quoted\" 'name' *.md", "🗂️ \"quoted\" 'name' *.md"),
        ("%2e%2e/a.md", "%2e%2e/a.md"),
        ("/no/such/vault/Notes/a.md", "Notes/a.md"),
        ("/no/such/./vault/x/../a.md", "a.md"),
        ("/no/such/other/../vault/a.md", "a.md"),
    ],
)
def test_a_path_inside_the_vault_is_normalised(raw: str, expected: str) -> None:
    assert paths.parse(raw, root=ROOT, windows=False) == expected


@pytest.mark.parametrize(
    "raw",
    [
        "..",
        "../a.md",
        "../vault/a.md",
        "Notes/../../a.md",
        "Notes/../../vault/a.md",
        "./../a.md",
        ".//..//a.md",
        "/",
        "/etc/passwd",
        "/no/such",
        "/no/such/vault2/a.md",
        "/no/such/vault/../a.md",
        "/no/such/vault/Notes/../../../etc/passwd",
        "//no/such/vault/a.md",
        "//server/share/a.md",
        "\\\\server\\share\\a.md",
        "\\\\?\\C:\\a.md",
        "C:\\a.md",
        "c:/a.md",
    ],
)
@pytest.mark.parametrize("windows", [False, True])
def test_a_path_outside_the_vault_is_refused(raw: str, windows: bool) -> None:
    with pytest.raises(RefusedError) as refusal:
        paths.parse(raw, root=ROOT, windows=windows)

    assert refusal.value.code == "outside_vault"
    assert refusal.value.hint


@pytest.mark.parametrize(
    "raw",
    [
        "",
        ".",
        "./",
        "a/..",
        "/no/such/vault",
        "/no/such/vault/",
        "a\0.md",
        "\udc80.md",
        "x" * 256,
        "é" * 128,
        "a/" * 2049,
    ],
)
def test_text_that_can_be_no_path_is_bad_input(raw: str) -> None:
    with pytest.raises(BadInput) as refusal:
        paths.parse(raw, root=ROOT, windows=False)

    assert len(refusal.value.message) < 400
    assert refusal.value.hint


@pytest.mark.parametrize("raw", ["..\\a.md", "Notes\\..\\..\\a.md", "\\a.md", "Notes/..\\../a.md"])
def test_on_windows_a_backslash_leads_no_further_than_a_slash(raw: str) -> None:
    with pytest.raises(RefusedError):
        paths.parse(raw, root=ROOT, windows=True)


@pytest.mark.parametrize("raw", ["a.md:stream", "C:a.md", "Notes/.. /a.md", "Notes/... /a.md", ". ./a.md"])
def test_on_windows_names_that_mean_something_else_are_bad_input(raw: str) -> None:
    with pytest.raises(BadInput):
        paths.parse(raw, root=ROOT, windows=True)


def test_on_windows_a_backslash_separates() -> None:
    assert paths.parse(".\\Notes\\a.md", root=ROOT, windows=True) == "Notes/a.md"


def test_a_longest_name_is_accepted() -> None:
    assert paths.parse("x" * 255, root=ROOT) == "x" * 255


def test_absolute_paths_may_reach_the_vault_in_any_way(tmp_path: Path) -> None:
    real = tmp_path / "real"
    (real / "sub").mkdir(parents=True)
    (tmp_path / "link").symlink_to(real)
    (tmp_path / "up").symlink_to(tmp_path)
    roots = [real, tmp_path / "link", tmp_path / "up" / "link"]

    parsed = {paths.parse(str(spelling / "new.md"), root=root) for spelling in roots for root in roots}

    assert parsed == {"new.md"}


def test_a_vault_may_lie_below_folders_named_like_hidden_ones(tmp_path: Path) -> None:
    root = tmp_path / ".git" / ".obsidian"
    root.mkdir(parents=True)

    assert paths.parse(str(root / "a.md"), root=root) == "a.md"


@given(TEXT)
@example("a/../../b")
@example("//x")
def test_what_is_accepted_stays_inside_and_parses_to_itself(raw: str) -> None:
    try:
        path = paths.parse(raw, root=ROOT, windows=False)
    except KnapError:
        return

    assert posixpath.normpath(posixpath.join("/v", path)) == f"/v/{path}"
    assert paths.parse(path, root=ROOT, windows=False) == path


@given(TEXT)
def test_no_accepted_path_means_more_to_windows(raw: str) -> None:
    try:
        path = paths.parse(raw, root=ROOT, windows=True)
    except KnapError:
        return

    assert "\\" not in path
    assert ":" not in path
    assert not any(part.rstrip(". ") == "" for part in path.split("/"))


@pytest.mark.parametrize(
    ("one", "other"), [("CAFÉ.md", "cafe\u0301.md"), ("Straße", "STRASSE"), ("A\u030a", "å"), ("ǰ", "J\u030c")]
)
def test_names_compare_without_case_and_unicode_form(one: str, other: str) -> None:
    assert paths.name_key(one) == paths.name_key(other)


@given(TEXT)
def test_an_ascii_text_has_the_same_key_by_either_way(raw: str) -> None:
    text = raw.encode("ascii", "ignore").decode()

    assert paths.name_key(text + "é").removesuffix("é") == paths.name_key(text)


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("a.md", ("a.md", "a", ".md", "")),
        ("x/y.z/b.c.MD", ("b.c.MD", "b.c", ".MD", "x/y.z")),
        ("x/.md", (".md", ".md", "", "x")),
        ("Etc.", ("Etc.", "Etc.", "", "")),
        ("no ending", ("no ending", "no ending", "", "")),
    ],
)
def test_a_path_is_taken_apart(path: str, parts: tuple[str, str, str, str]) -> None:
    assert (paths.base_name(path), paths.stem(path), paths.suffix(path), paths.parent_folder(path)) == parts


def test_parent_folders_are_listed_outermost_first() -> None:
    assert paths.parent_folders("a/b/c.md") == ("a", "a/b")
    assert paths.parent_folders("c.md") == ()


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("a\nb.md", "forbidden_character"),
        ("a\tb.md", "forbidden_character"),
        ("a\\b.md", "forbidden_character"),
        ("What?.md", "forbidden_character"),
        ("12:30.md", "forbidden_character"),
        ('a "b".md', "forbidden_character"),
        ("a|b.md", "forbidden_character"),
        ("CON", "reserved_name"),
        ("nul.md", "reserved_name"),
        ("aux .tar.gz", "reserved_name"),
        ("Com1/a.md", "reserved_name"),
        ("lpt³.md", "reserved_name"),
        ("folder /a.md", "trailing_dot_or_space"),
        ("folder./a.md", "trailing_dot_or_space"),
        ("a.md ", "trailing_dot_or_space"),
    ],
)
def test_a_new_name_that_some_system_cannot_hold_is_refused(tmp_path: Path, path: str, code: str) -> None:
    with pytest.raises(BadInput) as refusal:
        paths.check_new(NotePath(path), root=tmp_path)

    assert refusal.value.code == code


@pytest.mark.parametrize("path", ["What?.md", "CON", "a.md ", "folder./a.md"])
def test_a_vault_for_one_system_only_may_have_such_names(tmp_path: Path, path: str) -> None:
    assert len(paths.check_new(NotePath(path), root=tmp_path, portable=False)) == 1


def test_control_characters_are_refused_in_any_vault(tmp_path: Path) -> None:
    with pytest.raises(BadInput):
        paths.check_new(NotePath("a\x07.md"), root=tmp_path, portable=False)


@pytest.mark.parametrize("path", ["C#.md", "a^b.md", "[x].md", "100%%.md"])
def test_a_name_that_breaks_links_is_told(tmp_path: Path, path: str) -> None:
    (problem,) = paths.check_new(NotePath(path), root=tmp_path)

    assert problem.code == "breaks_links"


@pytest.mark.parametrize(
    "path", ["A note.md", "Konsole/auxiliary.md", "COM10.md", "Déjà vu 🗂️.md", "50% off (new) - it's.md"]
)
def test_an_ordinary_new_name_has_no_problem(tmp_path: Path, path: str) -> None:
    assert paths.check_new(NotePath(path), root=tmp_path) == ()


def test_a_new_name_that_differs_only_in_form_from_another_is_refused(tmp_path: Path) -> None:
    (tmp_path / "Café.md").touch()

    with pytest.raises(BadInput) as refusal:
        paths.check_new(NotePath("CAFE\u0301.md"), root=tmp_path)

    assert refusal.value.code == "case_clash"
    assert "'Café.md'" in refusal.value.message


def test_a_file_that_another_makes_meanwhile_does_not_clash_with_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lexists(path: Path) -> bool:
        assert path == tmp_path / "Day.md"
        return False  # it wasn't there yet

    (tmp_path / "Day.md").touch()
    monkeypatch.setattr("os.path.lexists", lexists)

    assert paths.check_new(NotePath("Day.md"), root=tmp_path) == ()


def test_parts_that_exist_already_are_not_blamed_on_a_new_file(tmp_path: Path) -> None:
    (tmp_path / "Why?").mkdir()

    assert paths.check_new(NotePath("Why?/a.md"), root=tmp_path) == ()


def test_windows_refuses_to_look_for_names_that_it_cannot_hold_so_nothing_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: str) -> os.stat_result:
        raise OSError(errno.EINVAL, "Invalid name", path)

    monkeypatch.setattr(os, "lstat", refused)

    assert paths.lstat_or_none(f"{tmp_path}/What is it?", windows=True) is None
    assert paths.lstat_or_none(f"{tmp_path}/con.md", windows=True) is None
    for name, windows in (("note.md", True), ("What is it?", False)):
        with pytest.raises(OSError, match="Invalid name"):
            paths.lstat_or_none(f"{tmp_path}/{name}", windows=windows)


def test_a_device_that_windows_finds_in_every_folder_is_not_there() -> None:
    assert paths.lstat_or_none(os.devnull, windows=True) is None
    assert paths.lstat_or_none(os.devnull, windows=False) is not None

"""What a link leads to."""

from collections.abc import Callable, Sequence

import pytest

from knapper.vault import links, paths
from knapper.vault.links import Resolution
from knapper.vault.paths import NotePath


def vault(*files: str) -> Callable[[str], Sequence[NotePath]]:
    by_key: dict[str, list[NotePath]] = {}
    for file in files:
        by_key.setdefault(paths.lookup_key(paths.base_name(file)), []).append(NotePath(file))
    return lambda key: by_key.get(key, ())


def found(target: str, source: str, *files: str) -> str | None:
    return links.resolve(target, NotePath(source), vault(*files)).path


@pytest.mark.parametrize(
    ("target", "wanted"),
    [
        ("Note", "a/Note.md"),
        ("note.MD", "a/Note.md"),
        ("NOTE", "a/Note.md"),
        ("a/Note", "a/Note.md"),
        ("A/note.md", "a/Note.md"),
        ("/a/Note", "a/Note.md"),
        ("/Note", None),
        ("b/Note", None),
        ("ote", None),
        ("Note.canvas", None),
        ("img.png", "files/img.png"),
        ("img", None),
        ("v1.2", "v1.2.md"),
        ("v1", None),
        ("Board.canvas", "Board.canvas"),
        ("Board", None),
        ("\u00fcber", "u\u0308ber.md"),
        ("Stra\u00dfe", "STRASSE.md"),
        ("No\u00a0break", "No break.md"),
        ("a\\Note", "a/Note.md"),
        ("x.md", "x.md.md"),
    ],
)
def test_a_target_names_a_file_as_in_obsidian(target: str, wanted: str | None) -> None:
    files = ("a/Note.md", "files/img.png", "v1.2.md", "Board.canvas", "u\u0308ber.md", "STRASSE.md", "No break.md")

    assert found(target, "z/Source.md", *files, "x.md.md") == wanted


@pytest.mark.parametrize(
    ("target", "wanted"),
    [
        ("NOTE", "NOTE.md"),
        ("Note", "Note.md"),
        ("note.md", "note.md"),
        ("nOtE", "note.md"),
        ("./Note", "Note.md"),
        ("/NOTE", "NOTE.md"),
        ("A/x", "A/x.md"),
        ("a/x", "a/x.md"),
        ("U\u0308ber", "Über.md"),
        ("über", "über.md"),
    ],
)
def test_of_files_that_differ_only_in_case_the_one_spelled_so_is_meant(target: str, wanted: str) -> None:
    files = ("NOTE.md", "Note.md", "note.md", "A/x.md", "a/x.md", "Über.md", "über.md")

    assert found(target, "Source.md", *files) == wanted


def test_an_empty_target_is_the_note_itself() -> None:
    assert links.resolve("", NotePath("a/b.md"), vault()) == Resolution(path=NotePath("a/b.md"))


def test_a_path_from_the_root_wins_over_the_notes_own_folder() -> None:
    assert found("Note", "a/Source.md", "Note.md", "a/Note.md") == "Note.md"
    assert found("b/Note", "a/Source.md", "b/Note.md", "a/b/Note.md") == "b/Note.md"


def test_the_notes_own_folder_wins_over_a_shorter_path() -> None:
    assert found("Note", "long/folder/Source.md", "b/Note.md", "long/folder/Note.md") == "long/folder/Note.md"


def test_a_folder_above_the_note_counts_for_nothing() -> None:
    assert found("Note", "zzzz/deep/Source.md", "b/Note.md", "zzzz/Note.md") == "b/Note.md"


def test_the_shortest_path_wins_and_not_the_one_with_the_fewest_folders() -> None:
    assert found("Note", "Source.md", "a/b/Note.md", "Archive/Note.md") == "a/b/Note.md"


def test_of_paths_of_one_length_the_first_by_name_wins() -> None:
    assert found("Note", "Source.md", "b/Note.md", "a/Note.md") == "a/Note.md"


def test_a_folder_and_a_name_may_end_a_longer_path() -> None:
    assert found("b/Note", "Source.md", "a/b/Note.md", "a/xb/Note.md") == "a/b/Note.md"


def test_a_path_below_the_notes_folder_wins_over_the_same_elsewhere() -> None:
    assert found("b/Note.md", "zz/Source.md", "a/b/Note.md", "zz/b/Note.md") == "zz/b/Note.md"


@pytest.mark.parametrize(
    ("target", "wanted"),
    [
        ("./Note", "a/b/Note.md"),
        ("../Note.md", "a/Note.md"),
        ("../../Note", "Note.md"),
        ("../../../Note", None),
        ("./c/Note", "a/b/c/Note.md"),
        ("./Other", None),
        ("../x/../Note", "a/Note.md"),
    ],
)
def test_dots_lead_from_the_notes_folder_and_nowhere_else(target: str, wanted: str | None) -> None:
    files = ("Note.md", "a/Note.md", "a/b/Note.md", "a/b/c/Note.md", "z/Other.md")

    assert found(target, "a/b/Source.md", *files) == wanted


def test_several_files_that_fit_are_told() -> None:
    resolution = links.resolve("Note", NotePath("S.md"), vault("b/Note.md", "aa/Note.md", "c/Note.canvas"))

    assert resolution == Resolution(
        path=NotePath("b/Note.md"), ambiguous=(NotePath("b/Note.md"), NotePath("aa/Note.md"))
    )


def test_a_path_from_the_root_is_not_ambiguous() -> None:
    assert links.resolve("b/Note", NotePath("S.md"), vault("b/Note.md", "a/b/Note.md")).ambiguous == ()


def test_a_note_wins_over_a_file_without_suffix() -> None:
    assert found("Note", "S.md", "Note", "Note.md") == "Note.md"


@pytest.mark.parametrize(
    ("wanted", "title"),
    [
        ("What's new", "What's new?"),
        ("a  b", "A B"),
        ("v1.2 (beta)", "v1 2 beta"),
        ("bold", "**Bold**"),
        ("x [[y]]", "X [[y]]"),
        ("\u00fcber", "U\u0308ber"),
        ("a/b", "a|b"),
    ],
)
def test_headings_compare_without_punctuation_space_and_case(wanted: str, title: str) -> None:
    assert links.heading_matches(wanted, title)


@pytest.mark.parametrize(("wanted", "title"), [("a", "b"), ("ab", "a b"), ("a-b", "a b"), ("", "a")])
def test_other_headings_do_not_match(wanted: str, title: str) -> None:
    assert not links.heading_matches(wanted, title)


@pytest.mark.parametrize("target", ["https://a.b", "mailto:a@b", "//a.b", "obsidian://open", "C:\\x", "x-y.z+1:w"])
def test_an_address_is_external(target: str) -> None:
    assert links.is_external(target)


@pytest.mark.parametrize("target", ["a.md", "/a", "a/b:c", "1:2", "#a:b", ""])
def test_a_path_is_not_external(target: str) -> None:
    assert not links.is_external(target)

import pytest
from hypothesis import given

from knapper.changes.text import properties, splices
from knapper.changes.text.splices import Splice
from knapper.errors import BadInput, KnapError, NotFound
from knapper.vault import parser
from tests.changes import generated, writing


def renamed(raw: bytes, old: str, new: str) -> bytes:
    return writing.result(raw, lambda note: properties.rename_tag(note, old, new).splices)


def test_a_tag_and_those_below_it_are_renamed_in_text_and_properties() -> None:
    raw = b'---\ntags: [proj/a, "other", Proj] # kept\ntag: proj\n---\n#proj #PROJ/x/y #project\n`#proj`\n'

    assert renamed(raw, "#proj", "work/p") == (
        b'---\ntags: [work/p/a, "other", work/p] # kept\ntag: work/p\n---\n#work/p #work/p/x/y #project\n`#proj`\n'
    )


def test_a_nested_tag_is_renamed_by_itself() -> None:
    assert renamed(b"#a #a/b #a/b/c #a/bc\n", "a/b", "x") == b"#a #x #x/c #a/bc\n"


def test_the_case_of_a_tag_can_be_changed() -> None:
    assert renamed(b"#Idea #IDEA\n", "Idea", "idea") == b"#idea #idea\n"


@pytest.mark.parametrize(
    ("raw", "wanted"),
    [
        (b"---\ntags: [a, b]\n---\n", b"---\ntags: [b]\n---\n"),
        (b"---\ntags: [b, x, a]\n---\n", b"---\ntags: [b, x]\n---\n"),
        (b"---\ntags: [a, A, b]\n---\n", b"---\ntags: [b]\n---\n"),
        (b"---\ntags: [x, a, A]\n---\n", b"---\ntags: [x, b]\n---\n"),
        (b"---\ntags:\n  - a # one\n  - x\n  - B\n---\n", b"---\ntags:\n  - x\n  - B\n---\n"),
        (b"---\ntags:\r\n- b\r\n- '#a'\r\n---\r\n", b"---\ntags:\r\n- b\r\n---\r\n"),
        (b"---\ntags: a, b\n---\n", b"---\ntags: b\n---\n"),
        (b"---\ntags: b a x\n---\n", b"---\ntags: b x\n---\n"),
    ],
)
def test_a_tag_that_would_stand_twice_in_a_list_is_merged(raw: bytes, wanted: bytes) -> None:
    assert renamed(raw, "a", "b") == wanted


@pytest.mark.parametrize("new", ["", "#", "123", "a b", "a,b", "a//b", "/a", "a#b"])
def test_what_is_no_tag_is_refused(new: str) -> None:
    with pytest.raises(BadInput):
        renamed(b"#a\n", "a", new)


def test_the_same_name_is_refused() -> None:
    with pytest.raises(BadInput) as caught:
        renamed(b"#a\n", "#a", "a")

    assert caught.value.code == "no_change"


def test_a_tag_that_is_not_there_is_not_found() -> None:
    with pytest.raises(NotFound):
        renamed(b"#ab\n", "a", "b")


def test_the_lines_that_change_are_told() -> None:
    assert properties.rename_tag(splices.take_snapshot(b"x #a\n\n#a/b #a\n"), "a", "b").lines == (1, 3, 3)


@given(generated.notes())
def test_renaming_a_tag_there_and_back_is_the_identity(raw: bytes) -> None:
    note = splices.take_snapshot(raw)
    try:
        there = splices.merge(raw, properties.rename_tag(note, "tag", "quite/new").splices)
    except KnapError:
        return
    names = [tag.name for tag in parser.parse_note(there).tags]

    assert not any(name == "tag" or name.startswith("tag/") for name in names)
    assert len(names) == len(note.outline.tags)
    assert renamed(there, "quite/new", "tag") == raw


def test_a_batch_can_hold_a_rename_beside_other_changes() -> None:
    note = splices.take_snapshot(b"#a\nb\n")
    made = [*properties.rename_tag(note, "a", "x").splices, Splice(start=3, stop=4, new=b"B")]

    assert splices.merge(note.raw, made) == b"#x\nB\n"

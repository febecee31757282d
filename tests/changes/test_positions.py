import pytest
from hypothesis import given
from hypothesis import strategies as st

from knapper.changes.text import positions, splices
from knapper.changes.text.positions import AfterHeading, BeforeLine, LineSpan, NamedPosition, Position
from knapper.changes.text.splices import Snapshot, Splice
from knapper.errors import BadInput, KnapError
from tests.changes import generated, writing
from tests.vault import cases


def act(note: Snapshot, target: str, text: str) -> Splice:
    return positions.resolve_position(note, positions.parse_position(target), text)


@pytest.mark.parametrize(("raw", "wanted"), cases.load("positions"))
def test_positions(raw: bytes, wanted: str) -> None:
    assert writing.played(raw, wanted, act) == wanted


numbers = st.integers(1, 40)
spans = st.builds(
    LineSpan, word=st.sampled_from(["replace", "delete"]), first=st.integers(1, 9), last=st.integers(9, 30)
)
every = st.one_of(
    st.sampled_from(
        [
            NamedPosition(word="start"),
            NamedPosition(word="end"),
            NamedPosition(word="create"),
            NamedPosition(word="open"),
        ]
    ),
    numbers.map(lambda line: BeforeLine(line=line)),
    st.sampled_from(["## Two", "# One > ## Two", "Setext"]).map(lambda heading: AfterHeading(heading=heading)),
    spans,
)


@given(every)
def test_a_position_reads_as_it_was_written(position: Position) -> None:
    assert positions.parse_position(positions.render_position(position)) == position


@given(generated.notes(), every, generated.texts)
def test_only_the_span_changes_and_text_stands_on_lines_of_its_own(raw: bytes, position: Position, text: str) -> None:
    note = splices.take_snapshot(raw)
    try:
        splice = positions.resolve_position(note, position, text)
    except KnapError:
        return
    after = splices.merge(raw, [splice])

    assert after.startswith(raw[: splice.start])
    assert after.endswith(raw[splice.stop :])
    assert splice.start in {0, 3, len(raw), *note.outline.line_starts}
    if not isinstance(position, LineSpan):
        lines = after.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        assert set(text.removesuffix("\n").encode().split(b"\n")) <= {
            line.removeprefix(b"\xef\xbb\xbf") for line in lines
        }
        assert len(after) > len(raw)


@given(generated.notes(), st.lists(every, min_size=2, max_size=4), st.randoms(use_true_random=False))
def test_a_batch_of_positions_has_one_result_or_is_refused(raw: bytes, batch: list[Position], chance: object) -> None:
    del chance
    note = splices.take_snapshot(raw)
    results: set[bytes | str] = set()
    for order in (batch, batch[::-1]):
        try:
            made = [positions.resolve_position(note, one, positions.render_position(one)) for one in order]
            results.add(splices.merge(raw, made))
        except KnapError:
            results.add("refused")

    assert len(results) == 1


def test_a_line_beyond_the_end_is_refused_with_the_count_and_the_last_lines() -> None:
    note = splices.take_snapshot(b"".join(b"line %d\n" % number for number in range(1, 11)))
    with pytest.raises(BadInput, match="no line 99; the note has 10") as caught:
        positions.resolve_position(note, positions.parse_position("replace:98-99"), "x")

    assert caught.value.details == {"lines": 10, "excerpt": "7: line 7\n8: line 8\n9: line 9\n10: line 10"}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("start", "add"),
        ("end", "add"),
        ("after:## H", "add"),
        ("insert:3", "add"),
        ("replace:3-4", "replace"),
        ("delete:3", "delete"),
        ("create", "create"),
        ("open", "navigate"),
    ],
)
def test_a_position_tells_what_its_change_does(text: str, kind: str) -> None:
    assert positions.position_kind(positions.parse_position(text)) == kind


def test_line_numbers_count_pending_blocks_as_they_lie_on_disk() -> None:
    raw = b'a\n```ai-edit\n{"id":"x","type":"add","before":"","after":"b"}\n```\n#ai_edit\nc\n'

    assert writing.result(raw, lambda note: act(note, "replace:6", "C")) == raw.replace(b"\nc\n", b"\nC\n")


def test_a_utf_16_file_is_not_edited() -> None:
    with pytest.raises(BadInput, match="UTF-16"):
        splices.take_snapshot("a\n".encode("utf-16"))


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le"])
def test_a_utf_16_file_without_its_mark_is_not_edited_either(encoding: str) -> None:
    with pytest.raises(BadInput, match="NUL bytes"):
        splices.take_snapshot("a line\nof text\n".encode(encoding))


def test_a_nul_byte_in_a_text_is_no_reason_not_to_edit_it() -> None:
    raw = b"a\0b\n"

    assert writing.result(raw, lambda note: act(note, "end", "ok")) == raw + b"ok\n"


def test_a_file_that_is_no_utf_8_takes_ascii_only() -> None:
    raw = b"caf\xe9\n"

    assert writing.result(raw, lambda note: act(note, "end", "ok")) == b"caf\xe9\nok\n"
    with pytest.raises(BadInput, match="UTF-8"):
        writing.result(raw, lambda note: act(note, "end", "né"))


def test_half_a_character_is_refused() -> None:
    with pytest.raises(BadInput, match="half a character"):
        writing.result(b"a\n", lambda note: act(note, "end", "\ud800"))

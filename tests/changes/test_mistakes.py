"""Hold what earlier systems got wrong in writing; each test has the mistake's name."""

import pytest

from knapper.changes.text import positions, properties, splices
from knapper.errors import BadInput
from knapper.vault import parser
from tests.changes import writing


def test_overlapping_edits_do_not_corrupt_but_are_refused() -> None:
    note = splices.take_snapshot(b"a\nb\nc\nd\n")
    made = [
        positions.resolve_position(note, positions.parse_position(where), "x")
        for where in ("replace:1-2", "replace:2-3")
    ]
    with pytest.raises(BadInput, match="overlap: lines 1-2 and lines 2-3"):
        splices.merge(note.raw, made)


def test_an_edit_does_not_shift_the_lines_of_another_one_in_its_batch() -> None:
    note = splices.take_snapshot(b"1\n2\n3\n4\n")
    made = [
        positions.resolve_position(note, positions.parse_position(where), "x\ny\nz")
        for where in ("insert:1", "delete:2", "replace:4")
    ]

    assert splices.merge(note.raw, made) == b"x\ny\nz\n1\n3\nx\ny\nz\n"


def test_frontmatter_loses_no_comments_order_or_quotes() -> None:
    raw = b"---\nz: 'q' # why\n# above\na: \"7\"\nl: [ b,a ]\n---\n"

    assert writing.result(raw, lambda note: properties.set_property(note, "a", "8").splices) == raw.replace(
        b'"7"', b'"8"'
    )


def test_crlf_does_not_become_lf() -> None:
    raw = b"# A\r\n\r\none\r\ntwo"
    after = writing.result(raw, lambda note: positions.append_to_section(note, "# A", "new\nlines"))

    assert after == raw + b"\r\n\r\nnew\r\nlines"


def test_a_fence_inside_a_fence_hides_no_heading() -> None:
    raw = b"````\n```\n````\n# A\ntext\n~~~\n```\n~~~\n# B\n"
    after = writing.result(raw, lambda note: positions.append_to_section(note, "# A", "new"))

    assert [section.title for section in parser.parse_note(after).sections if section.level] == ["A", "B"]
    assert after.endswith(b"~~~\n\nnew\n\n# B\n")


def test_a_section_edit_that_does_nothing_does_not_report_success() -> None:
    note = splices.take_snapshot(b"# A\n\ntext\n\n# B\n")
    for act in (positions.replace_section, positions.replace_section_body):
        with pytest.raises(BadInput) as caught:
            act(note, "# A", "# A\n\ntext\n" if act is positions.replace_section else "text")

        assert caught.value.code == "no_change"


def test_a_heading_is_not_doubled() -> None:
    raw = b"# A\n\ntext\n"
    for act in (positions.replace_section_body, positions.append_to_section, positions.prepend_to_section):
        after = writing.result(raw, lambda note, act=act: act(note, "# A", "# A\n\nnew"))

        assert after.count(b"# A") == 1

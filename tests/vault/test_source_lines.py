"""Bytes read as text, and where their lines begin."""

import codecs
import re

import hypothesis
import pytest
from hypothesis import strategies as st

from knapper.vault import source
from knapper.vault.parser import parse_note

BYTES = st.binary() | st.text(alphabet="a\r\n\u2028\x0b\x0c\x85é", max_size=40).map(str.encode)


@hypothesis.given(BYTES)
def test_lines_begin_after_each_of_three_endings(data: bytes) -> None:
    ends = [match.end() for match in re.finditer(rb"\r\n|\n|\r", data)]

    assert source.find_line_starts(data) == (0, *(end for end in ends if end < len(data)))


@hypothesis.given(BYTES, st.data())
def test_every_byte_stands_in_the_line_that_holds_it(data: bytes, draw: st.DataObject) -> None:
    offset = draw.draw(st.integers(0, max(0, len(data) - 1)))
    place = source.measure_lines(data)

    number = place.line_number(offset)

    assert place.line_start(offset) <= offset < max(place.line_stop(offset), 1)
    assert number == source.line_number_at(data, offset)
    assert (
        data[place.line_start(offset) : place.line_stop(offset)]
        == (data.splitlines(keepends=True) or [b""])[number - 1]
    )


@pytest.mark.parametrize(
    ("data", "wanted"),
    [(b"", "\n"), (b"a", "\n"), (b"a\n", "\n"), (b"a\r\nb\r\n", "\r\n"), (b"a\rb", "\r"), (b"a\r\nb\n", "mixed")],
)
def test_the_ending_of_lines_is_named(data: bytes, wanted: str) -> None:
    assert source.detect_newline(data) == wanted


@hypothesis.given(st.binary())
def test_bytes_that_are_no_utf8_keep_every_place(raw: bytes) -> None:
    hypothesis.assume(not raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)))

    read = source.decode(raw)

    assert len(read.data) == len(raw)
    assert read.data.decode() == raw.decode(errors="surrogateescape").translate(
        dict.fromkeys(range(0xDC80, 0xDD00), "?")
    )


@hypothesis.given(st.text())
def test_utf8_is_taken_as_it_is(text: str) -> None:
    assert source.decode(text.encode()).data == text.encode()


@pytest.mark.parametrize(
    ("raw", "encoding", "problems"),
    [
        (b"a", "utf-8", []),
        (b"\xef\xbb\xbfa", "utf-8-sig", []),
        (b"a\n\xe9", "unknown", [("not_utf8", 2)]),
        (b"\xef\xbb\xbf\xe9", "utf-8-sig", [("not_utf8", 1)]),
        (b"a\r\n\0", "utf-8", [("nul_bytes", 2)]),
        ("a".encode("utf-16-le"), "utf-8", [("nul_bytes", 1)]),
        (codecs.BOM_UTF16_BE + "ä".encode("utf-16-be"), "utf-16", [("not_utf8", 1)]),
        (codecs.BOM_UTF16_LE + b"a\0b", "utf-16", [("not_utf8", 1)]),
        (codecs.BOM_UTF16_LE + b"\0\xd8", "utf-16", [("not_utf8", 1)]),
    ],
)
def test_an_encoding_is_told_with_what_is_wrong(raw: bytes, encoding: str, problems: list[tuple[str, int]]) -> None:
    outline = parse_note(raw)

    assert outline.encoding == encoding
    assert [(problem.code, problem.line) for problem in outline.problems] == problems


def test_a_utf16_note_is_read_in_the_places_of_its_text() -> None:
    raw = "---\ntags: [é]\n---\n# Ä\n[[ö]]".encode("utf-16")
    data = source.decode(raw).data

    outline = parse_note(raw)

    (link,) = outline.links
    assert data[link.start : link.stop].decode() == "[[ö]]"
    assert [tag.name for tag in outline.tags] == ["é"]
    assert outline.sections[0].title == "Ä"

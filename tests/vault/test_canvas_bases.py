"""Links and texts of canvases and bases."""

import json

import hypothesis
import pytest
from hypothesis import strategies as st

from knapper import jsonscan
from knapper.jsontypes import JSONValue
from knapper.vault import canvas
from tests.vault import dumps
from tests.vault.cases import load


@pytest.mark.parametrize(("raw", "wanted"), load("canvas"))
def test_canvas(raw: bytes, wanted: str) -> None:
    outline = canvas.parse_canvas(raw)

    assert dumps.canvas(raw, outline) == wanted.splitlines()


@pytest.mark.parametrize(("raw", "wanted"), load("bases"))
def test_base(raw: bytes, wanted: str) -> None:
    outline = canvas.parse_base(raw)

    assert dumps.links(raw, outline) + dumps.problems(outline) == wanted.splitlines()


def test_a_base_has_its_text_as_passage() -> None:
    (passage,) = canvas.parse_base(b"views: []\n").passages

    assert (passage.text, passage.start, passage.stop, passage.line) == ("views: []\n", 0, 10, 1)


@pytest.mark.parametrize("depth", [500, 100_000])
def test_deep_nesting_is_no_crash(depth: int) -> None:
    raw = b"[" * depth + b"]" * depth

    assert canvas.parse_canvas(raw).links == canvas.parse_base(raw).links == ()


def test_a_canvas_of_another_encoding_is_read() -> None:
    text = '{"nodes":[{"id":"ü","type":"file","file":"ä.md"}]}'

    outline = canvas.parse_canvas(text.encode("utf-16"))

    assert outline.encoding == "utf-16"
    assert [link.target for link in outline.links] == ["ä.md"]


@hypothesis.given(st.binary())
def test_no_bytes_break_a_canvas_or_a_base(raw: bytes) -> None:
    for outline in (canvas.parse_canvas(raw), canvas.parse_base(raw)):
        assert all(0 <= link.start <= link.stop <= len(raw) for link in outline.links)


JSON: st.SearchStrategy[JSONValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=20,
)


def strings_of(value: JSONValue, path: tuple[str | int, ...] = ()) -> list[tuple[tuple[str | int, ...], str]]:
    if isinstance(value, str):
        return [(path, value)]
    if isinstance(value, list):
        return [found for index, item in enumerate(value) for found in strings_of(item, (*path, index))]
    if isinstance(value, dict):
        return [found for key, item in value.items() for found in strings_of(item, (*path, key))]
    return []


@hypothesis.given(JSON, st.booleans(), st.sampled_from([None, 2]))
def test_every_string_is_found_where_it_stands(value: JSONValue, ascii_only: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)

    found = list(jsonscan.find_strings(text))

    assert [(string.path, string.value) for string in found] == strings_of(value)
    assert all(json.loads(f'"{text[string.start : string.stop]}"') == string.value for string in found)


@hypothesis.given(st.text(), st.booleans())
def test_a_place_in_a_value_is_found_in_the_file(value: str, ascii_only: bool) -> None:
    written = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
    places = jsonscan.OffsetMap(written, 7)

    for index in range(len(value) + 1):
        head = json.dumps(value[:index], ensure_ascii=ascii_only)[1:-1]
        assert places.file_offset(len(value[:index].encode())) == 7 + len(head.encode())


@hypothesis.given(st.text(alphabet='ab[]|# "\\\né🔥', max_size=30))
def test_a_link_in_a_card_is_the_link_that_its_span_holds(text: str) -> None:
    raw = json.dumps({"nodes": [{"id": "n", "text": text}]}).encode()

    for link in canvas.parse_canvas(raw).links:
        alone = b'{"nodes":[{"text":"' + raw[link.start : link.stop] + b'"}]}'
        assert [part.target for part in canvas.parse_canvas(alone).links] == [link.target]

"""Values of a JSON text are found where they stand."""

import json

import hypothesis
import pytest
from hypothesis import strategies as st

from knapper import jsonscan
from knapper.jsonscan import InvalidJSONError
from knapper.jsontypes import JSONValue

JSON: st.SearchStrategy[JSONValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=20,
)


def values_of(value: JSONValue, path: jsonscan.JSONPath = ()) -> list[tuple[jsonscan.JSONPath, JSONValue]]:
    inner: list[tuple[str | int, JSONValue]] = []
    if isinstance(value, list):
        inner = list(enumerate(value))
    elif isinstance(value, dict):
        inner = list(value.items())
    return [*(found for name, item in inner for found in values_of(item, (*path, name))), (path, value)]


def kind_of(value: JSONValue) -> jsonscan.JSONKind:
    if isinstance(value, str):
        return "string"
    if isinstance(value, list):
        return "array"
    return "object" if isinstance(value, dict) else "other"


@hypothesis.given(JSON, st.booleans(), st.sampled_from([None, 2, "\t"]))
def test_every_value_is_found_where_it_stands(value: JSONValue, ascii_only: bool, indent: int | str | None) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)

    found = list(jsonscan.find_values(text))

    wanted = values_of(value)
    assert [(one.path, json.loads(text[one.start : one.stop])) for one in found] == wanted
    assert [one.kind for one in found] == [kind_of(inner) for _, inner in wanted]


@pytest.mark.parametrize("text", ["", "{", '{"a": 1,}', '["a" "b"]', "[" * 100_000, "1" * 5000])
def test_what_is_no_json_is_told(text: str) -> None:
    with pytest.raises(InvalidJSONError) as error:
        list(jsonscan.find_strings(text))

    assert error.value.reason
    assert 0 <= error.value.index <= len(text)


def test_half_a_surrogate_pair_is_a_question_mark_in_a_string_and_itself_in_a_name() -> None:
    (string,) = jsonscan.find_strings('{"\\ud83d": "a\\ud83db"}')

    assert (string.path, string.value) == (("\ud83d",), "a?b")


def test_space_after_the_value_is_passed_over_once() -> None:
    assert [value.kind for value in jsonscan.find_values("{}" + " " * 200_000)] == ["object"]

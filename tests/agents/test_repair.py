"""Arguments that small models get wrong."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knapper.agents.model import replies
from knapper.app import tables
from knapper.jsontypes import JSONValue
from knapper.tools import registry

SCHEMA: dict[str, JSONValue] = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "paths": {"type": "array", "items": {"type": "string"}},
        "limit": {"type": "integer", "default": 5},
        "ratio": {"type": "number", "default": 1.0},
        "deep": {"type": "boolean", "default": False},
        "mode": {"enum": ["a", "b"], "type": "string", "default": "a"},
        "folder": {"type": "string", "default": ""},
        "moves": {"type": "array", "items": {"$ref": "#/$defs/Move"}},
        "value": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
        "content": {"type": "string", "default": ""},
        "more": {"type": "object"},
    },
    "required": ["path"],
    "$defs": {"Move": {"type": "object", "properties": {"to": {"type": "string"}, "n": {"type": "integer"}}}},
}


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ('{"path": "a.md"}', {"path": "a.md"}),
        ("{'path': 'a.md', 'deep': True, 'folder': None}", {"path": "a.md", "deep": True}),
        ('{"path": "a.md",}', {"path": "a.md"}),
        ('{"path": "a.md"', {"path": "a.md"}),
        ('"{\\"path\\": \\"a.md\\"}"', {"path": "a.md"}),
        ('```json\n{"path": "a.md"}\n```', {"path": "a.md"}),
        ('<|tool_call|>{"path": "a.md"}<|end|>', {"path": "a.md"}),
        ('{"path": "a.md<|im_end|>"}', {"path": "a.md"}),
        ('{"path": "a.md</s>"}', {"path": "a.md"}),
        ('{"path": "a.md", "folder": "<s>gone</s>"}', {"path": "a.md", "folder": "<s>gone</s>"}),
        ('{"path": "a.md", "folder": "a<S>b</S> c</s>"}', {"path": "a.md", "folder": "a<S>b</S> c</s>"}),
        ('{"arguments": {"path": "a.md"}}', {"path": "a.md"}),
        ('{"arguments": "{\\"path\\": \\"a.md\\"}"}', {"path": "a.md"}),
        ('[{"path": "a.md"}]', {"path": "a.md"}),
        ("", {}),
        ("nothing that means anything", {}),
        ("5", {}),
        ("{'path': 'a.md', 'paths': ('a.md', 'b.md')}", {"path": "a.md", "paths": ["a.md", "b.md"]}),
        ("{'path': 'a.md', 7: True}", {"path": "a.md", "7": True}),
    ],
)
def test_arguments_are_read_whatever_a_model_sends(raw: str, expected: dict[str, JSONValue]) -> None:
    assert replies.fit_arguments(replies.read_arguments(raw), SCHEMA) == expected


@pytest.mark.parametrize("raw", ["{'path': {'a.md', 'b.md'}}", "{'path': b'a.md'}", "{'path': 1j}", "({'a.md'}, 2)"])
def test_what_json_has_nothing_for_is_no_argument(raw: str) -> None:
    arguments = replies.read_arguments(raw)

    assert json.loads(json.dumps(arguments)) == arguments


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ('{"path": "a.md", "content": "Half of', True),
        ('{"path": "a.md", "content": "Half of {a}', True),
        ('{"path": "a.md", "content": "all"', True),
        ('{"path": "a.md", "items": ["one"', True),
        (b'{"path": "a.md", "content": "Half of', True),
        ('```json\n{"path": "a.md", "content": "Half of', True),
        ('{"name": "write_file", "arguments": "{\\"path\\": \\"a.md\\", \\"content\\": \\"Half"}', True),
        ({"arguments": '{"path": "a.md", "content": "Half'}, True),
        ('{"path": "a.md", "content": "all of {it"}', False),
        ('{"path": "a.md", "content": "all \\" of it",}', False),
        ('{"path": "a.md", "content": "two\nlines",}', False),
        ("{'path': 'a.md', 'content': 'say \"it'}", False),
        ({"path": "a.md", "input": 'say "it'}, False),
        ("", False),
        ("nothing that means anything", False),
        (None, False),
    ],
)
def test_arguments_that_end_in_the_middle_are_told_from_others(raw: object, expected: bool) -> None:
    assert replies.is_truncated(raw) is expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"paths": "['a.md', 'b.md']"}, {"paths": ["a.md", "b.md"]}),
        ({"paths": '["a.md", "b.md"]'}, {"paths": ["a.md", "b.md"]}),
        ({"paths": "('a.md', 'b.md')"}, {"paths": ["a.md", "b.md"]}),
        ({"paths": "Plans, old and new.md"}, {"paths": ["Plans, old and new.md"]}),
        ({"paths": ["a.md<|end|>", 5]}, {"paths": ["a.md", "5"]}),
        ({"limit": "5"}, {"limit": 5}),
        ({"limit": "5.0"}, {"limit": 5}),
        ({"limit": 5.0}, {"limit": 5}),
        ({"limit": "many"}, {"limit": "many"}),
        ({"ratio": "0.5"}, {"ratio": 0.5}),
        ({"deep": "True"}, {"deep": True}),
        ({"deep": "false"}, {"deep": False}),
        ({"folder": "None"}, {}),
        ({"folder": None}, {}),
        ({"value": None}, {"value": None}),
        ({"value": "none"}, {"value": "none"}),
        ({"content": "None"}, {"content": "None"}),
        ({"content": None}, {}),
        ({"value": ["a"]}, {"value": ["a"]}),
        ({"value": "['a']"}, {"value": "['a']"}),
        ({"path": 7}, {"path": "7"}),
        ({"path": ["a.md"]}, {"path": "a.md"}),
        ({"path": "None"}, {"path": "None"}),
        ({"moves": '[{"to": "x", "n": "2"}]'}, {"moves": [{"to": "x", "n": 2}]}),
        ({"moves": {"to": "x"}}, {"moves": [{"to": "x"}]}),
        ({"more": "{'a': 1}"}, {"more": {"a": 1}}),
        ({"mode": "b<|end|>"}, {"mode": "b"}),
        ({"unknown": "kept"}, {"unknown": "kept"}),
    ],
)
def test_arguments_are_fitted_to_the_schema(given: dict[str, JSONValue], expected: dict[str, JSONValue]) -> None:
    assert replies.fit_arguments(given, SCHEMA) == expected


@pytest.mark.parametrize("text", ["a\u00a0b.md", "a\u202fb.md"])
def test_spaces_that_do_not_break_become_plain_ones_in_paths(text: str) -> None:
    assert replies.plain_spaces(text) == "a b.md"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda one: st.lists(one) | st.dictionaries(st.text(), one)
)


@given(st.dictionaries(st.text(), JSON) | JSON | st.text())
def test_nothing_that_a_model_sends_breaks_the_reader(given: object) -> None:
    raw = given if isinstance(given, str) else json.dumps(given)

    assert isinstance(replies.fit_arguments(replies.read_arguments(raw), SCHEMA), dict)


@pytest.mark.parametrize("begin", ["[", '{"a":'])
@pytest.mark.parametrize("levels", [60, 350, 600, 100_000])
def test_what_nests_too_deep_is_no_argument(begin: str, levels: int) -> None:
    end = "]" if begin == "[" else "}"
    deep = f"{begin * levels}1{end * levels}"

    assert replies.read_arguments(f'{{"path": {deep}}}') == {}
    assert not replies.is_too_deep(replies.fit_arguments({"path": "a.md", "paths": deep, "more": deep}, SCHEMA))


TEXT = st.text(st.characters(blacklist_characters="<>|[]", codec="utf-8")).filter(
    lambda text: text.strip().lower() not in {"none", "null", "undefined"}
)


@given(st.fixed_dictionaries({"path": TEXT, "paths": st.lists(TEXT), "limit": st.integers(), "deep": st.booleans()}))
def test_arguments_that_are_right_stay_as_they_are(given: dict[str, JSONValue]) -> None:
    assert replies.fit_arguments(replies.read_arguments(json.dumps(given)), SCHEMA) == given


def test_every_tools_schema_can_be_fitted_to() -> None:
    for row in tables.build_table().specs:
        assert replies.fit_arguments({"path": "a.md"}, registry.parameter_schema(row))


def test_null_stays_where_any_value_is_taken() -> None:
    row = tables.build_table().find("update_frontmatter")

    fitted = replies.fit_arguments(
        {"path": "a.md", "field": "k", "value": None, "operation": None}, registry.parameter_schema(row)
    )

    assert fitted == {"path": "a.md", "field": "k", "value": None}

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from knapper.changes.text import properties, splices, yaml_values
from knapper.errors import Ambiguous, BadInput, KnapError, NotFound
from knapper.jsontypes import JSONValue
from knapper.vault import parser
from tests.changes import generated, writing

NOTE = b"""---
# top
title: 'x' # beside
Tags:
  - a # one
  # above b
  - b

  - c
flow: [p, "q", ] # c
n: 007
date: 2024-01-01
empty:
aliases: X, Y
lit: |
  foo
  bar

map: {a: 1}
anchor: &z [1]
alias: *z
# last
---
body
"""


def assigned(raw: bytes, key: str, value: JSONValue) -> bytes:
    return writing.result(raw, lambda note: properties.set_property(note, key, value).splices)


def removed(raw: bytes, key: str) -> bytes:
    return writing.result(raw, lambda note: properties.remove_property(note, key).splices)


def appended(raw: bytes, key: str, value: JSONValue) -> bytes:
    return writing.result(raw, lambda note: properties.append_to_property(note, key, value).splices)


def values(raw: bytes) -> dict[str, JSONValue]:
    block = parser.parse_note(raw).frontmatter
    return block.values if block else {}


def block(*rows: str) -> bytes:
    return "\n".join(("---", *rows, "---", "")).encode()


@pytest.mark.parametrize(
    ("key", "value", "old", "new"),
    [
        ("title", "no", "'x' #", "'no' #"),
        ("TITLE", "y", "'x' #", "'y' #"),
        ("title", None, "title: 'x' #", "title: #"),
        ("title", ["l"], "'x' #", "['l'] #"),
        ("date", "2025-02-02", "2024-01-01", "2025-02-02"),
        ("n", "008", "007", '"008"'),
        ("empty", "full", "empty:", "empty: full"),
        ("map", {"b": [1, None]}, "{a: 1}", "{b: [1, null]}"),
        ("alias", [2], "*z", "[2]"),
        ("lit", "one\ntwo\n", "  foo\n  bar", "  one\n  two"),
        ("lit", "one", "|\n  foo\n  bar", "one"),
        ("flow", ["q", "r"], '[p, "q", ]', "[q, r]"),
        ("tags", "s", "Tags:\n  - a # one\n  # above b\n  - b\n\n  - c", "Tags: s"),
        ("tags", [], "Tags:\n  - a # one\n  # above b\n  - b\n\n  - c", "Tags: []"),
        ("tags", ["b", "d", "a"], "  - a # one\n  # above b\n  - b\n\n  - c", "  # above b\n  - b\n  - d\n  - a # one"),
    ],
)
def test_only_the_propertys_lines_change(key: str, value: JSONValue, old: str, new: str) -> None:
    assert assigned(NOTE, key, value) == NOTE.replace(old.encode(), new.encode(), 1)


def test_a_new_property_goes_below_the_others() -> None:
    assert assigned(NOTE, "new", "v") == NOTE.replace(b"# last\n", b"# last\nnew: v\n")


@pytest.mark.parametrize(
    ("rows", "wanted"),
    [
        (["l: [a]"], ["l: [a]", "new: [x, w]"]),
        (["l:", "- a"], ["l:", "- a", "new:", "- x", "- w"]),
        (["l:", "    - a"], ["l:", "    - a", "new:", "    - x", "    - w"]),
        (["l: []"], ["l: []", "new:", "  - x", "  - w"]),
        (["  a: 1"], ["  a: 1", "  new:", "    - x", "    - w"]),
    ],
)
def test_a_new_list_is_written_as_the_notes_other_lists(rows: list[str], wanted: list[str]) -> None:
    assert assigned(block(*rows), "new", ["x", "w"]) == block(*wanted)


WRITTEN: list[tuple[JSONValue, list[str]]] = [
    ("plain text", ["k: plain text"]),
    ("007", ['k: "007"']),
    ("no", ['k: "no"']),
    ("Yes", ['k: "Yes"']),
    ("null", ['k: "null"']),
    ("~", ['k: "~"']),
    ("12", ['k: "12"']),
    ("1e3", ['k: "1e3"']),
    ("0x1F", ['k: "0x1F"']),
    ("10:30", ['k: "10:30"']),
    ("2024-01-01", ["k: 2024-01-01"]),
    ("2024-01-01T10:30", ["k: 2024-01-01T10:30"]),
    ("[[Note]]", ['k: "[[Note]]"']),
    ("a: b", ['k: "a: b"']),
    ("a #b", ['k: "a #b"']),
    ("#b", ['k: "#b"']),
    ("http://x.y/z", ["k: http://x.y/z"]),
    ('say "a: b"', ["k: 'say \"a: b\"'"]),
    ("ends:", ['k: "ends:"']),
    (" lead", ['k: " lead"']),
    ("-dash", ["k: -dash"]),
    ("- dash", ['k: "- dash"']),
    ("", ['k: ""']),
    ("*x", ['k: "*x"']),
    ("tab\tin", ['k: "tab\\tin"']),
    ("\u2028", ['k: "\\u2028"']),
    ("🪨 中", ["k: 🪨 中"]),
    ("a\nb", ["k: |-", "  a", "  b"]),
    ("a\n\nb\n", ["k: |", "  a", "", "  b"]),
    (" a\nb", ['k: " a\\nb"']),
    (5, ["k: 5"]),
    (1.5, ["k: 1.5"]),
    (1e16, ["k: 1.0e+16"]),
    (True, ["k: true"]),
    (None, ["k:"]),
    ([], ["k: []"]),
    ({}, ["k: {}"]),
    (["no", 1, None], ["k:", '  - "no"', "  - 1", "  - null"]),
    ({"a": [1], "no": {"b": "x"}}, ["k:", "  a:", "    - 1", '  "no":', "    b: x"]),
    ([{"a": 1, "b": []}, [2, 3]], ["k:", "  - a: 1", "    b: []", "  - - 2", "    - 3"]),
]


@pytest.mark.parametrize(("value", "rows"), WRITTEN)
def test_a_value_is_written_so_that_every_reader_takes_it_for_the_same(value: JSONValue, rows: list[str]) -> None:
    assert assigned(b"", "k", value) == block(*rows)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(min_size=1, max_size=6), inner, max_size=3),
    max_leaves=6,
)


@given(
    json_values,
    st.sampled_from([b"", b"---\nl: [a]\n---\n", b"---\r\nl:\r\n- 'a'\r\n---\r\n", b"---\nk: 'old'\n---\n"]),
)
def test_a_value_reads_as_it_was_set(value: JSONValue, raw: bytes) -> None:
    try:
        after = assigned(raw, "k", value)
    except KnapError as error:
        assert error.code in {"bad_input", "no_change", "unsafe_yaml"}  # noqa: PT017  # half characters, blank or repeated keys
        return

    assert json.dumps(values(after)["k"]) == json.dumps(value)


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=20))
def test_text_is_text_for_a_reader_of_yaml_1_1_too(text: str) -> None:
    after = assigned(b"", "k", [text])
    read = yaml.safe_load(after.decode().split("---\n")[1]) if "---\n" not in text else {"k": [text]}
    (found,) = read["k"]

    assert str(found) == text or text[:4].isdecimal()  # a date reads as a date, as Obsidian writes it


ROUND_TRIP_VALUES: list[JSONValue] = ["v", "007", ["a", "no"], "l\nm\n", {"a": [1, {"b": None}]}, None, True, 1.5]


@given(generated.notes(), st.sampled_from(ROUND_TRIP_VALUES))
def test_set_and_remove_gives_back_the_file(raw: bytes, value: JSONValue) -> None:
    try:
        there = assigned(raw, "knapper", value)
    except KnapError as error:
        assert error.code in {"invalid_yaml", "duplicate_key", "unsafe_yaml"}  # noqa: PT017
        return

    assert values(there)["knapper"] == value
    assert removed(there, "knapper") == raw


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"abc",
        b"\xef\xbb\xbf",
        b"\xef\xbb\xbfabc",
        b"a\rb\r",
        b"a\r\nb",
        b"---\nno closing line\n",
        b"\n---\na: 1\n---\n",
        b"---\n---\n",
        b"---\n---",
        b"---\r\n---\r\ntext",
        b"---\n\n---\ntext",
        b"---\n\n\n---\ntext",
        b"---\n \n---\n",
        b"---\n# only a comment\n---\n",
        b"---\n# c\n\n---\n",
        b"---\na: 1\n---",
        b"---\na: 1\n\n\n---\n",
        b"---\na: |+\n  x\n\n---\n",
        b"\xef\xbb\xbf---\r\na: 1\r\n---\r\n",
        b"--- \na: &x 1\nb: *x\n# end\n---  \ntext",
        b"---\n  a: 1\n---\n",
        b"---\n---\n---\na: 1\n---\n",
        NOTE,
    ],
)
def test_the_frontmatter_that_was_there_before_is_there_afterwards(raw: bytes) -> None:
    one = assigned(raw, "k", ["v"])
    two = assigned(one, "z", "w")

    assert removed(one, "k") == raw
    assert removed(removed(two, "z"), "k") == raw
    assert removed(removed(two, "k"), "z") == raw


def test_removing_takes_the_lines_of_the_property_and_leaves_comments_around_it() -> None:
    after = removed(NOTE, "tags")

    assert after == NOTE.replace(b"Tags:\n  - a # one\n  # above b\n  - b\n\n  - c\n", b"")


def test_text_that_would_become_frontmatter_keeps_the_empty_one_above_it() -> None:
    raw = b"---\nk: v\n---\n---\nnot: mine\n---\n"

    assert removed(raw, "k") == b"---\n---\n---\nnot: mine\n---\n"


@pytest.mark.parametrize(
    ("key", "value", "old", "new"),
    [
        ("tags", "d", b"  - c\n", b"  - c\n  - d\n"),
        ("tags", "#d", b"  - c\n", b"  - c\n  - d\n"),
        ("tags", ["d", "A", "e"], b"  - c\n", b"  - c\n  - d\n  - e\n"),
        ("flow", "r, s", b'"q", ]', b'"q", "r, s", ]'),
        ("empty", "e", b"empty:", b"empty: [e]"),
        ("aliases", "Z", b"aliases: X, Y", b'aliases: [X, "Y", Z]'),
        ("title", "z", b"'x' #", b"['x', 'z'] #"),
        ("n", "8", b"n: 007", b'n: ["007", "8"]'),
        ("new", "e", b"# last\n", b"# last\nnew: [e]\n"),
    ],
)
def test_appending_adds_to_a_list_or_makes_one(key: str, value: JSONValue, old: bytes, new: bytes) -> None:
    assert appended(NOTE, key, value) == NOTE.replace(old, new, 1)


def test_appending_what_is_there_changes_nothing_and_is_no_error() -> None:
    outcome = properties.append_to_property(splices.take_snapshot(NOTE), "tags", ["A", "#b"])

    assert (outcome.splices, outcome.after) == ((), ["a", "b", "c"])


@pytest.mark.parametrize(
    ("rows", "wanted"),
    [
        (["k: []"], ["k: [x]"]),
        (["k: [ ]"], ["k: [x ]"]),
        (["k: [a]"], ["k: [a, x]"]),
        (["k: ['a']"], ["k: ['a', 'x']"]),
        (["k: [", "  a, # c", "  b,", "]"], ["k: [", "  a, # c", "  b, x,", "]"]),
        (["k: &a [a]", "l: *a"], None),
        (["k:", "- a", "-"], ["k:", "- a", "-", "- x"]),
        (["k:", "  - |", "    a"], ["k:", "  - |", "    a", "  - x"]),
        (["k:", "  - a: 1"], ["k:", "  - a: 1", "  - x"]),
    ],
)
def test_appending_keeps_a_lists_style(rows: list[str], wanted: list[str] | None) -> None:
    if wanted is None:
        with pytest.raises(BadInput, match="left alone"):
            appended(block(*rows), "k", "x")
        return

    assert appended(block(*rows), "k", "x") == block(*wanted)


def test_nothing_can_be_appended_to_a_map() -> None:
    with pytest.raises(BadInput, match="holds further properties"):
        appended(NOTE, "map", "x")


def test_renaming_keeps_place_and_value() -> None:
    after = writing.result(NOTE, lambda note: properties.rename_property(note, "tags", "new: name").splices)

    assert after == NOTE.replace(b"Tags:", b'"new: name":')


def test_renaming_to_a_name_that_is_taken_is_refused() -> None:
    with pytest.raises(BadInput) as caught:
        properties.rename_property(splices.take_snapshot(NOTE), "title", "FLOW")

    assert caught.value.code == "exists"


def test_the_case_of_a_name_can_be_changed() -> None:
    after = writing.result(NOTE, lambda note: properties.rename_property(note, "tags", "tags").splices)

    assert after == NOTE.replace(b"Tags:", b"tags:")


@pytest.mark.parametrize(
    "raw", [b"---\na: [1\n---\ntext", b"---\n{{date}}\n---\n", b"---\na: 1\n\tb: 2\n---\n", b"---\n- a\n---\n"]
)
def test_invalid_yaml_is_refused_and_left_alone(raw: bytes) -> None:
    with pytest.raises(BadInput, match="left alone") as caught:
        assigned(raw, "k", "v")

    assert caught.value.code == "invalid_yaml"
    assert caught.value.details["line"]


def test_keys_that_stand_twice_are_refused_with_the_line() -> None:
    with pytest.raises(BadInput, match="is repeated in line 4") as caught:
        assigned(block("a: 1", "b: 2", "a: 3"), "k", "v")

    assert caught.value.code == "duplicate_key"


@pytest.mark.parametrize(
    ("rows", "key"),
    [(["{a: 1, b: 2}"], "a"), (["? a", ": 1"], "a"), (["k: &x", "  - a"], "k"), (["a: &x 1", "b: *x"], "a")],
)
def test_what_cannot_be_done_by_lines_is_refused(rows: list[str], key: str) -> None:
    with pytest.raises(BadInput) as caught:
        assigned(block(*rows), key, [{"new": 1}])

    assert caught.value.code == "unsafe_yaml"


def test_a_property_that_is_missing_is_answered_with_the_nearest() -> None:
    with pytest.raises(NotFound) as caught:
        removed(NOTE, "titel")

    assert caught.value.hint.startswith("it has title")


def test_the_nearest_properties_do_not_pass_for_all_of_them() -> None:
    with pytest.raises(NotFound) as caught:
        removed(block("one: 1", "two: 2", "three: 3", "four: 4", "five: 5"), "tow")

    assert caught.value.hint.endswith(" and 2 more")


def test_keys_that_differ_in_case_only_have_to_be_written_exactly() -> None:
    raw = block("Key: 1", "KEY: 2")

    assert removed(raw, "KEY") == block("Key: 1")
    with pytest.raises(Ambiguous):
        removed(raw, "key")


def test_setting_the_value_that_is_there_says_so() -> None:
    with pytest.raises(BadInput) as caught:
        assigned(NOTE, "n", "007")

    assert caught.value.code == "no_change"


@pytest.mark.parametrize("key", ["", " ", "a\nb", "k" * 2000])
def test_what_cannot_name_a_property_is_refused(key: str) -> None:
    with pytest.raises(BadInput):
        assigned(b"", key, "v")


@pytest.mark.parametrize(
    ("key", "text", "wanted"),
    [
        ("new", "007", "007"),
        ("new", "no", "no"),
        ("new", "5", "5"),
        ("new", '"5"', "5"),
        ("new", '[1, "a"]', [1, "a"]),
        ("new", '{"a": null}', {"a": None}),
        ("new", "[[Note]]", "[[Note]]"),
        ("new", "[[2024]]", "[[2024]]"),
        ("new", "[[A]] and [[B]]", "[[A]] and [[B]]"),
        ("new", '[["a"]]', [["a"]]),
        ("new", "[t](x.md)", "[t](x.md)"),
        ("new", "{{date}}", "{{date}}"),
        ("num", "5", 5),
        ("num", "1.50", 1.5),
        ("num", "007", "007"),
        ("num", "five", "five"),
        ("flag", "no", False),
        ("flag", "TRUE", True),
        ("flag", "maybe", "maybe"),
        ("FLAG", "yes", True),
        ("list", "a", ["a"]),
        ("text", "5", "5"),
        ("none", "x", "x"),
    ],
)
def test_typed_text_takes_the_type_that_is_there(key: str, text: str, wanted: JSONValue) -> None:
    note = splices.take_snapshot(block("num: 1", "flag: true", "list: [a]", "text: x", "none:"))
    found = yaml_values.interpret_value(note, key, text)

    assert json.dumps(found) == json.dumps(wanted)


@pytest.mark.parametrize(
    ("key", "text"), [("new", "[a, b]"), ("new", "{a: 1}"), ("new", '"open'), ("map", "x"), ("new", "[NaN]")]
)
def test_typed_text_that_begins_like_json_and_is_none_is_refused(key: str, text: str) -> None:
    with pytest.raises(BadInput):
        yaml_values.interpret_value(splices.take_snapshot(NOTE), key, text)


def test_an_item_takes_the_type_of_the_items_that_are_there() -> None:
    note = splices.take_snapshot(block("years: [2020, 2021]", "tags: [a]"))

    assert yaml_values.interpret_item(note, "years", "2022") == 2022
    assert yaml_values.interpret_item(note, "tags", "2022") == "2022"
    assert yaml_values.interpret_item(note, "tags", '["x"]') == ["x"]

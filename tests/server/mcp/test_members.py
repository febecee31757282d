"""One member of a client's settings is set, and nothing beside it is written anew."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knapper.server.mcp import install
from knapper.server.mcp.install import UnreadableError

NAMES = st.text(max_size=6)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '{\n  "s": {\n    "k": {\n      "a": 1\n    }\n  }\n}\n'),
        ("{}", '{"s": {"k": {"a": 1}}}'),
        ("{\n}\n", '{\n  "s": {\n    "k": {\n      "a": 1\n    }\n  }\n}\n'),
        ('{"x":1.10,"y":"\\u00e9\\/"}', '{"x":1.10,"y":"\\u00e9\\/", "s": {"k": {"a": 1}}}'),
        (
            '{\n\t"s": {\n\t\t"o": [1, 2]\n\t}\n}',
            '{\n\t"s": {\n\t\t"o": [1, 2],\n\t\t"k": {\n\t\t\t"a": 1\n\t\t}\n\t}\n}',
        ),
        (
            '{\r\n    "s": {},\r\n    "z": 1E5\r\n}\r\n',
            '{\r\n    "s": {\r\n        "k": {\r\n            "a": 1\r\n        }\r\n    },\r\n    "z": 1E5\r\n}\r\n',
        ),
        ('{\n  "s": { "o": 1, "k": 2, "p": 3 }\n}', '{\n  "s": { "o": 1, "k": {"a": 1}, "p": 3 }\n}'),
        ('{"s": {"k": {"a" :1}}, "\\ud83d": 1}', '{"s": {"k": {"a" :1}}, "\\ud83d": 1}'),
    ],
)
def test_only_the_member_is_written(before: str, after: str) -> None:
    assert install.put_member(before, "s", "k", {"a": 1}) == after


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"s": {}, "s": {}}', "twice"),
        ('{"s": {"k": 1, "\\u006b": 2}}', "twice"),
        ('{"x": NaN}', "NaN"),
        ('{"x": 1, // why\n}', "plain JSON"),
        ('{"s": null}', "'s' isn't an object"),
        ("[]", "isn't an object"),
        ("[" * 100_000, "plain JSON"),
    ],
)
def test_what_programs_read_in_more_than_one_way_is_left_alone(text: str, why: str) -> None:
    with pytest.raises(UnreadableError, match=why):
        install.put_member(text, "s", "k", 1)


@given(
    st.dictionaries(NAMES, VALUES, max_size=4),
    st.dictionaries(NAMES, VALUES, max_size=3),
    NAMES,
    VALUES,
    st.sampled_from([None, 1, "\t"]),
)
def test_whatever_the_settings_all_else_stays(
    settings: dict[str, Any], servers: dict[str, Any], name: str, value: object, indent: int | str | None
) -> None:
    settings["servers"] = servers
    before = json.dumps(settings, indent=indent)

    after = install.put_member(before, "servers", name, value)

    assert json.loads(after) == {**settings, "servers": {**servers, name: value}}
    assert list(json.loads(after)) == list(settings)
    assert install.get_member(after, "servers", name) == value
    assert install.put_member(after, "servers", name, value) == after

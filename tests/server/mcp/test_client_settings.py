"""One entry is set in or taken out of settings with comments, trailing commas or tables, and all else stays."""

import json
import re
import tomllib
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knapper import jsonscan
from knapper.server.mcp import install
from knapper.server.mcp.install import UnreadableError

ENTRY = {"command": "/usr/bin/python", "args": ["-m", "knapper.cli"], "env": {"KNAP_STATE_DIR": "/s"}}
JSONC = """\
// Zed settings
{
  /* the size */ "size": 1, // points
  "url": "http://a/*b*/", // not a comment: "//"
  "servers": {
    "other": {
      "command": "x", // why
    }, // the other one
    // and a last word
  },
}
"""
TOML = """\
# mine
model = "x"  # the model

[mcp_servers.other]
command = "a"

# about profiles
[profiles.x]
text = '''
[mcp_servers.knapper]
no table
'''
"""
COMMENTS = st.sampled_from(["", "// c\n", "/* c */", " ", "\n", "\r\n", '/* a\n , " } */', '// ] } , "\n'])
NAMES = st.text('abc"\\/é,}]', max_size=4)


def put(text: str) -> str:
    return install.put_member(text, "servers", "knapper", ENTRY, "jsonc")


def plain(text: str) -> dict[str, Any]:
    return json.loads(jsonscan.blank_trailing_commas(jsonscan.blank_comments(text)))


def test_comments_and_trailing_commas_stay_byte_for_byte() -> None:
    after = put(JSONC)

    begin, stop = after.index('"knapper"'), after.index("}", after.index("KNAP_STATE_DIR"))
    assert plain(after)["servers"]["knapper"] == ENTRY
    assert after.replace(re.findall(r'\n    "knapper": \{.*?\n    \},', after, re.DOTALL)[0], "") == JSONC
    assert begin < stop


def test_an_entry_that_was_put_is_taken_out_without_a_trace() -> None:
    assert install.remove_member(put(JSONC), "servers", "knapper", "jsonc") == JSONC


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"servers": {"knapper": 1}}', '{"servers": {}}'),
        ('{"servers": {"knapper": 1, "b": 2}}', '{"servers": { "b": 2}}'),
        ('{"servers": {"a": 1, "knapper": 1, "b": 2}}', '{"servers": {"a": 1, "b": 2}}'),
        ('{"servers": {"a": 1, "knapper": 1}}', '{"servers": {"a": 1}}'),
        (
            '{\n "servers": {\n  "a": 1, // a\n  "knapper": 1 // ours\n }\n}',
            '{\n "servers": {\n  "a": 1 // a // ours\n }\n}',
        ),
        ('{"servers": {// c\n"knapper": 1}}', '{"servers": {// c\n}}'),
        ('{"servers": {"kn\\u0061pper": 1}}', '{"servers": {}}'),
        ('{"servers": {"other": "knapper"}}', '{"servers": {"other": "knapper"}}'),
        ("", ""),
    ],
)
def test_only_the_entry_is_taken_out(before: str, after: str) -> None:
    assert install.remove_member(before, "servers", "knapper", "jsonc") == after


def test_an_empty_object_keeps_its_comment() -> None:
    after = put('{\n  "servers": {\n    // none yet\n  }\n}\n')

    assert after.startswith('{\n  "servers": {\n    // none yet\n    "knapper": {')
    assert plain(after)["servers"] == {"knapper": ENTRY}


@st.composite
def commented(draw: st.DrawFn, members: dict[str, Any]) -> str:
    """Write an object with comments and spaces at every place where they may stand, and perhaps a last comma."""
    parts: list[str] = ["{"]
    for number, (name, value) in enumerate(members.items()):
        written = draw(commented(cast("dict[str, Any]", value))) if isinstance(value, dict) else json.dumps(value)
        comma = "," if number < len(members) - 1 or draw(st.booleans()) else ""
        parts += [draw(COMMENTS), json.dumps(name), draw(COMMENTS), ":", draw(COMMENTS), written, draw(COMMENTS), comma]
    return "".join([*parts, draw(COMMENTS), "}"])


@given(st.data(), st.dictionaries(NAMES, st.integers() | st.text('a/*",', max_size=4), max_size=3), st.booleans())
def test_whatever_the_comments_all_else_stays(data: st.DataObject, others: dict[str, Any], has_servers: bool) -> None:
    settings: dict[str, Any] = {"first": "//", **({"servers": others} if has_servers else {}), "last": 1}
    before = data.draw(commented(settings))

    after = put(before)
    taken_out = install.remove_member(after, "servers", "knapper", "jsonc")

    others = {name: value for name, value in others.items() if name != "knapper"}
    assert plain(after) == {**settings, "servers": {**(others if has_servers else {}), "knapper": ENTRY}}
    assert plain(taken_out) == {**settings, "servers": others if has_servers else {}}
    assert put(after) == after
    without_strings = re.sub(
        r'"(?:[^"\\]|\\.)*"|(/\*.*?\*/|//[^\n]*)', lambda match: match[1] or "", before, flags=re.DOTALL
    )
    for comment in re.findall(r"/\*.*?\*/|//[^\n]*", without_strings, re.DOTALL):
        assert comment in after
        assert comment in taken_out


@pytest.mark.parametrize(
    "text", ['{"a": 1 /* no end', "{'a': 1}", "{a: 1}", '{"a": 1,,}', "// nothing else", '{"a": "\\x"}']
)
def test_what_isnt_json_with_comments_is_left_alone(text: str) -> None:
    with pytest.raises(UnreadableError):
        put(text)


def test_blanking_keeps_every_place() -> None:
    text = '{"a//": "/*", // x\r\n /* , */ "b": [1,],}'

    blanked = jsonscan.blank_trailing_commas(jsonscan.blank_comments(text))

    assert len(blanked) == len(text)
    assert json.loads(blanked) == {"a//": "/*", "b": [1]}


def put_toml(text: str, entry: dict[str, Any] | None = None) -> str:
    return install.put_member(text, "mcp_servers", "knapper", entry or ENTRY, "toml")


def remove_toml(text: str) -> str:
    return install.remove_member(text, "mcp_servers", "knapper", "toml")


@pytest.mark.parametrize("before", ["", TOML, TOML.replace("\n", "\r\n"), 'model = "x"\n', "[mcp_servers]\n"])
def test_a_table_is_appended_and_taken_out_without_a_trace(before: str) -> None:
    after = put_toml(before)

    assert after.startswith(before)
    assert tomllib.loads(after.replace("\r\n", "\n"))["mcp_servers"]["knapper"] == ENTRY
    assert ("\r\n" in before) == ("\r\n" in after)
    assert remove_toml(after) == before
    assert put_toml(after) == after


@pytest.mark.parametrize(
    "before",
    [
        'mcp_servers = { other = { command = "a" } } # why\n',
        '[mcp_servers]\nknapper = { command = "old", startup_timeout_sec = 9 }\n# last\n',
        "[mcp_servers.'knapper'] # why\ncommand = 'old'\nstartup_timeout_sec = 9\n[mcp_servers.other]\ncommand = 'b'\n",
    ],
)
def test_an_entry_in_any_form_is_changed_in_its_place(before: str) -> None:
    comments = re.findall(r"# \w+", before)
    entry = {**ENTRY, "startup_timeout_sec": 9}

    after = put_toml(before, entry)
    taken_out = remove_toml(after)

    rest = tomllib.loads(before).get("mcp_servers", {})
    assert tomllib.loads(after)["mcp_servers"] == {**rest, "knapper": entry}
    assert "knapper" not in tomllib.loads(taken_out).get("mcp_servers", {})
    assert all(comment in after for comment in comments)


def test_keys_with_dots_are_changed_rightly_or_not_at_all() -> None:
    before = 'mcp_servers.knapper.command = "old" # why\nmcp_servers.knapper.startup_timeout_sec = 9\n'
    try:
        after = put_toml(before)
    except UnreadableError:
        return

    assert tomllib.loads(after)["mcp_servers"]["knapper"] == ENTRY


def test_what_belongs_to_the_next_table_stays() -> None:
    before = put_toml("a = 1\n") + "args = []\n\n# about profiles\n[profiles.x]\ny = 1\n"
    before = before.replace('KNAP_STATE_DIR = "/s"\nargs = []', 'KNAP_STATE_DIR = "/s"')

    assert remove_toml(before) == "a = 1\n\n# about profiles\n[profiles.x]\ny = 1\n"


@pytest.mark.parametrize("text", ["[", "a = ", 'mcp_servers = "x"\n', "[[mcp_servers]]\na = 1\n"])
def test_what_isnt_toml_or_holds_something_else_is_left_alone(text: str) -> None:
    with pytest.raises(UnreadableError):
        put_toml(text)


@given(st.dictionaries(st.text(max_size=4), st.text(max_size=6), max_size=3), st.text(max_size=8))
def test_any_text_in_an_entry_comes_back_from_toml(environment: dict[str, str], argument: str) -> None:
    entry = {"command": argument, "args": [argument], "env": environment}
    try:
        after = put_toml(TOML, entry)
    except UnreadableError:  # TOML can't hold it, and nothing is written
        return

    assert install.get_member(after, "mcp_servers", "knapper", "toml") == entry

"""Absolute paths in what a program asks for: no tool's answer tells where the vault lies."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.parity.examples import CALLS, NOTES
from tests.tools import opened

_PLACES = ("path", "note", "folder", "file", "source", "destination", "moves")
_OUTSIDE = "/nowhere/at/all"
_VARYING = re.compile(r'"(as_of|index_as_of)": "[^"]*"')


def _calls_with(place: str, arguments: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Put a path into each argument in turn that takes one."""
    for name, value in arguments.items():
        if not any(word in name for word in _PLACES):
            continue
        if isinstance(value, str):
            yield {**arguments, name: place}
        elif isinstance(value, list) and name != "moves":
            yield {**arguments, name: [place]}
        elif isinstance(value, list):
            yield {**arguments, name: [{**value[0], "source": place}]}
            yield {**arguments, name: [{**value[0], "destination": place}]}


_EXAMPLES = [
    pytest.param(tool, number, id=f"{tool}-{number}")
    for tool, arguments in dict(CALLS).items()
    if tool not in {"call_tool", "find_tool", "run_agent", "log_interaction"}
    for number, _ in enumerate(_calls_with("", arguments))
]


@pytest.mark.parametrize(("tool", "number"), _EXAMPLES)
def test_no_tool_tells_a_program_where_the_vault_lies(tmp_path: Path, tool: str, number: int) -> None:
    vault = opened.vault(tmp_path, NOTES)

    with vault.open("http") as context:
        for tail in ("", "/", "/Nope.md", "/Plans", "/../vault"):
            inside, outside = f"{vault.root}{tail}", f"{_OUTSIDE}{tail}"
            answers = [
                opened.call(context, tool, **list(_calls_with(place, dict(CALLS)[tool]))[number])
                for place in (outside, inside)
            ]
            texts = [_VARYING.sub("", json.dumps(answer)) for answer in answers]

            # What the caller wrote may be repeated.
            assert texts[1].replace(inside, outside) == texts[0]

"""Say in plain texts which notes are meant."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from typing_extensions import TypedDict

from knapper.errors import BadInput
from knapper.index.filters import Filter, PropertyOp, PropertyTest
from knapper.tools import checks

_SIGN: Final = re.compile(r"!~|!=|~|=")
_OPS: Mapping[str, PropertyOp] = {"!~": "not_contains", "!=": "not_equals", "~": "contains", "=": "equals"}
_MOST: Final = 50
"""Tests of one kind."""


class Tests(TypedDict, total=False):
    """Hold what notes are filtered by; all that is given must hold."""

    exclude_folders: Sequence[str]
    tags: Sequence[str]
    exclude_tags: Sequence[str]
    properties: Sequence[str]
    modified_from: str
    modified_to: str
    created_from: str
    created_to: str


class Where(Tests, total=False):
    """Hold the same, with the folders that notes lie in."""

    folders: Sequence[str]


def read(where: Where | Tests, *, kinds: tuple[str, ...] = (), include_log: bool = False) -> Filter:
    """Turn texts into a filter.

    Args:
        where: What was given.
        kinds: Kinds of file that pass; empty for all.
        include_log: What this program logged is found, too.

    Raises:
        BadInput: A test tests nothing, a day is none, or a text can't be one.
    """
    return Filter(
        folders=_texts("folders", where.get("folders", ())),
        exclude_folders=_texts("exclude_folders", where.get("exclude_folders", ())),
        tags=_texts("tags", where.get("tags", ())),
        exclude_tags=_texts("exclude_tags", where.get("exclude_tags", ())),
        properties=tuple(property_test(each) for each in _texts("properties", where.get("properties", ()))),
        modified_from=checks.day("modified_from", where.get("modified_from", "")),
        modified_to=checks.day("modified_to", where.get("modified_to", "")),
        created_from=checks.day("created_from", where.get("created_from", "")),
        created_to=checks.day("created_to", where.get("created_to", "")),
        kinds=kinds,
        include_log=include_log,
    )


def property_test(text: str) -> PropertyTest:
    """Read a test of a property: ``name``, ``!name``, ``name=value``, ``name!=value``, ``name~part``, ``name!~part``.

    Raises:
        BadInput: There is no name.
    """
    sign = _SIGN.search(text, 1)  # the first one: a value may hold others
    if sign is not None and text[: sign.start()].strip():
        name, value = text[: sign.start()].strip(), text[sign.end() :].strip()
        return PropertyTest(name=name, op=_OPS[sign.group()], value=value)
    name = text.removeprefix("!").strip()
    if not name:
        raise BadInput(
            f"'{text}' tests no property", hint="write name, !name, name=value, name!=value, name~part or name!~part"
        )
    return PropertyTest(name=name, op="missing" if text.startswith("!") else "exists")


def _texts(name: str, values: Sequence[str]) -> tuple[str, ...]:
    found = (values,) if isinstance(values, str) else tuple(values)
    if len(found) > _MOST:
        raise BadInput(f"{name} has {len(found)} items", hint=f"give at most {_MOST}")
    return checks.texts(name, found)

"""Read what a person or a model typed as a property's value."""

import json
import re
from collections.abc import Sequence
from typing import Final, cast

from knapper.changes.text.snapshots import Snapshot
from knapper.errors import BadInput
from knapper.jsontypes import JSONValue

_WIKILINK: Final = re.compile(r"!?\[\[[^\[\]\",]+\]\]")
_TEXT_STARTS: Final = ("[[", "{{")
_MARKDOWN_LINK: Final = re.compile(r"\[[^\]]*\]\(.*", re.DOTALL)
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_SHOWN: Final = 200
_BOOLEANS: Final = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def interpret(snapshot: Snapshot, key: str, text: str) -> JSONValue:
    """Read the value that *text* means for a property.

    It is JSON only where it begins with ``[``, ``{`` or ``"``; else it takes the type that the property has; else it
    is text, so that ``007`` and ``no`` stay what they are. ``[[Note]]``, ``[text](address)`` and ``{{date}}`` are text.

    Args:
        snapshot: The note.
        key: The property.
        text: As typed.

    Raises:
        BadInput: It begins like JSON and isn't, or the property holds a map, which a word can't replace.
    """
    found = _json(text)
    if found is not None:
        return found[0]
    return _typed(current(snapshot, key), key, text)


def interpret_item(snapshot: Snapshot, key: str, text: str) -> JSONValue:
    """Read the value that *text* means as an item of a list: by the type of the items that are there.

    Raises:
        BadInput: It begins like JSON and isn't.
    """
    found = _json(text)
    if found is not None:
        return found[0]
    there = current(snapshot, key)
    if isinstance(there, list) and there and all(_is_number(value) for value in there):
        return _typed(there[0], key, text)
    return text


def current(snapshot: Snapshot, key: str) -> JSONValue:
    """Tell a property's value; None where the note doesn't have it. Case matters only where two keys differ in it."""
    block = snapshot.outline.frontmatter
    values = block.values if block else {}
    if key in values:
        return values[key]
    same = [name for name in values if name.casefold() == key.casefold()]
    return values[same[0]] if len(same) == 1 else None


def _json(text: str) -> tuple[JSONValue] | None:
    """Read JSON; None where the text isn't meant as such."""
    bare = text.strip()
    if not bare.startswith(("[", "{", '"')) or _WIKILINK.fullmatch(bare):
        return None
    try:
        return (cast("JSONValue", json.loads(bare, parse_constant=_no_constant)),)
    except (ValueError, RecursionError) as error:
        if bare.startswith(_TEXT_STARTS) or _MARKDOWN_LINK.fullmatch(bare):
            return None
        quoted = json.dumps(bare[:_SHOWN], ensure_ascii=False)
        hint = f'A list is written ["a", "b"]. For this very text, write it as a JSON string: {quoted}'
        message = f"The value begins with {bare[0]} and isn't JSON: {error}."
        raise BadInput(message, hint=hint, code="invalid_json") from None


def _no_constant(name: str) -> JSONValue:
    raise ValueError(f"{name} is no JSON")


def _typed(there: JSONValue, key: str, text: str) -> JSONValue:
    match there:
        case bool():
            return _BOOLEANS.get(text.strip().casefold(), text)
        case int() | float():
            return cast("JSONValue", json.loads(text)) if _NUMBER.fullmatch(text.strip()) else text
        case list():
            return [text]
        case dict():
            hint = "Give the whole value as JSON, or remove the property first."
            raise BadInput(f"The property {key!r} holds further properties, and {text!r} is one word.", hint=hint)
        case _:
            return text


def _is_number(value: JSONValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def as_list(key: str, value: JSONValue) -> list[JSONValue]:
    """Read a property as the list that Obsidian sees: ``tags: a, b`` has two items, an empty property none."""
    if value is None:
        return []
    if isinstance(value, list):
        return list(value)
    if isinstance(value, str):
        if key.casefold() in {"tags", "tag", "cssclasses", "cssclass"}:
            return [part for part in re.split(r"[,\s]+", value) if part]
        if key.casefold() in {"aliases", "alias"}:
            return [part.strip() for part in value.split(",") if part.strip()]
    return [value]


def same(key: str, one: JSONValue, other: JSONValue) -> bool:
    """Tell whether a list already holds a value: tags are compared without ``#`` and case."""
    if key.casefold() in {"tags", "tag"} and isinstance(one, str) and isinstance(other, str):
        return one.removeprefix("#").casefold() == other.removeprefix("#").casefold()
    return json.dumps(one) == json.dumps(other)


def fresh(key: str, there: Sequence[JSONValue], values: Sequence[JSONValue]) -> list[JSONValue]:
    """List what a property doesn't hold yet, each once; tags without their ``#``."""
    found: list[JSONValue] = []
    for value in values:
        tag = key.casefold() in {"tags", "tag"} and isinstance(value, str)
        bare = value.removeprefix("#") if tag and isinstance(value, str) else value
        if not any(same(key, bare, other) for other in (*there, *found)):
            found.append(bare)
    return found

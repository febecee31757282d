"""Write a note's properties as the text that is searched."""

import json
from collections.abc import Iterator, Mapping

from knapper.jsontypes import JSONValue


def render(values: Mapping[str, JSONValue]) -> str:
    r"""Write properties as ``key: value`` lines, without wikilink brackets; empty ones are left out.

    ``{"tags": ["a", "b"], "up": "[[Home]]", "x": None}`` gives ``tags: a, b\nup: Home``.
    """
    lines = (f"{key}: {text}" for key, value in values.items() if (text := _text(value)))
    text = "\n".join(lines).encode(errors="replace").decode()  # YAML's escapes can write half a character
    return without_brackets(text)


def without_brackets(text: str) -> str:
    """Leave out the brackets of wikilinks, so that their names are found as words."""
    return text.replace("[[", "").replace("]]", "")


def _text(value: JSONValue) -> str:
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, list | dict):
        return ", ".join(_parts(value))
    return "" if value is None else json.dumps(value)


def _parts(value: list[JSONValue] | dict[str, JSONValue]) -> Iterator[str]:
    if isinstance(value, list):
        yield from filter(None, map(_text, value))
    else:
        yield from (f"{key}: {text}" for key, inner in value.items() if (text := _text(inner)))

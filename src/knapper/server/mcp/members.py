"""Set one member of an object within JSON text, and leave every character beside it as it stands."""

import json
import re
from dataclasses import dataclass
from typing import Final, NoReturn, cast

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_INDENT: Final = re.compile(r"\n([ \t]+)\S")
_HALF_PAIR: Final = re.compile("[\ud800-\udfff]")
_USUAL: Final = "  "
_DECODER: Final = json.JSONDecoder()


class UnreadableError(ValueError):
    """Say why a text is left alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Object:
    """Say where an object stands in its text."""

    start: int
    """Of its opening brace."""
    stop: int
    """Behind its closing brace."""
    values: dict[str, tuple[int, int]]
    """Of its members: where each value begins and stops."""


def get(text: str, key: str, name: str) -> object:
    """Give the member *name* of the object *key*; None where there is none.

    Raises:
        UnreadableError: The text isn't plain JSON, names a member twice, or holds something else there.
    """
    found = _settings(text, key).get(key)
    return cast("dict[str, object]", found).get(name) if isinstance(found, dict) else None


def put(text: str, key: str, name: str, value: object) -> str:
    """Set the member *name* of the object *key*, which is made where it isn't there.

    Raises:
        UnreadableError: As ``get`` does.
    """
    settings = _settings(text, key)
    if not text.strip():
        return _dumped({key: {name: value}}, _USUAL) + "\n"
    whole = _object(text, _skip(text, 0))
    if key not in settings:
        return _insert(text, whole, 1, key, {name: value})
    inner = _object(text, whole.values[key][0])
    if name not in inner.values:
        return _insert(text, inner, 2, name, value)
    start, stop = inner.values[name]
    if json.loads(text[start:stop]) == value:
        return text
    return text[:start] + _written(text, inner, 2, value) + text[stop:]


def _settings(text: str, key: str) -> dict[str, object]:
    """Read the whole text, and refuse what not all programs read alike."""
    if not text.strip():
        return {}
    try:
        found: object = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse)
    except UnreadableError:
        raise
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"it isn't plain JSON ({error})") from None
    if not isinstance(found, dict):
        raise UnreadableError("it isn't an object")
    settings = cast("dict[str, object]", found)
    if not isinstance(settings.get(key, {}), dict):
        raise UnreadableError(f"'{key}' isn't an object")
    return settings


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made: dict[str, object] = {}
    for name, value in pairs:
        if name in made:
            raise UnreadableError(f"{name!r} stands in one object twice")
        made[name] = value
    return made


def _refuse(constant: str) -> NoReturn:
    raise UnreadableError(f"it isn't plain JSON ({constant})")


def _object(text: str, start: int) -> _Object:
    """Find the members of the object that begins at *start*; the text has been read before, so that it is one."""
    values: dict[str, tuple[int, int]] = {}
    at = _skip(text, start + 1)
    while text[at] != "}":
        at = _skip(text, at + 1) if text[at] == "," else at
        name, at = _DECODER.raw_decode(text, at)
        begin = _skip(text, _skip(text, at) + 1)  # behind the colon
        _, at = _DECODER.raw_decode(text, begin)
        values[name] = (begin, at)
        at = _skip(text, at)
    return _Object(start=start, stop=at + 1, values=values)


def _skip(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space else at


def _insert(text: str, into: _Object, depth: int, name: str, value: object) -> str:
    """Add a member behind the last one, on lines of its own where the others stand on such."""
    member = f"{_dumped(name)}: {_written(text, into, depth, value)}"
    is_long = _has_lines(text, into)
    before = _line(text, depth) if is_long else ""
    if not into.values:
        after = _line(text, depth - 1) if is_long else ""
        return f"{text[: into.start + 1]}{before}{member}{after}{text[into.stop - 1 :]}"
    last = max(stop for _, stop in into.values.values())
    return f"{text[:last]},{before or ' '}{member}{text[last:]}"


def _written(text: str, into: _Object, depth: int, value: object) -> str:
    if not _has_lines(text, into):
        return _dumped(value)
    return _dumped(value, _indent(text)).replace("\n", _line(text, depth))


def _dumped(value: object, indent: str | None = None) -> str:
    """Write JSON that can be encoded: half a surrogate pair stays an escape."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return _HALF_PAIR.sub(lambda half: f"\\u{ord(half[0]):04x}", text)


def _has_lines(text: str, into: _Object) -> bool:
    """Tell whether members stand on lines of their own; in an empty object as elsewhere in the text."""
    return "\n" in (text[into.start : into.stop] if into.values else text.strip())


def _line(text: str, depth: int) -> str:
    return ("\r\n" if "\r\n" in text else "\n") + _indent(text) * depth


def _indent(text: str) -> str:
    found = _INDENT.search(text)
    return found[1] if found else _USUAL

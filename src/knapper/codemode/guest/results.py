"""Turn what a script found into JSON."""

import dataclasses
import datetime
import enum
import json
import pathlib
from collections.abc import Mapping, Set
from typing import Final, cast

_KINDS: Final = "texts, numbers, lists, dictionaries, None and what is plainly one of these"


def encode(result: object, most: int) -> str:
    """Make a script's outcome of its result.

    Args:
        result: What `__result__` holds.
        most: Bytes of JSON.
    """
    try:
        text = clean(json.dumps(result, ensure_ascii=False, allow_nan=False, default=plain))
    except (TypeError, ValueError, RecursionError) as error:
        return _failed(f"__result__ isn't JSON: {error}; it takes {_KINDS}")
    size = len(text.encode())
    if size > most:
        return _failed(f"__result__ has {size:,} bytes of JSON, and {most:,} are the most; keep less of each note")
    return f'{{"kind": "ok", "result": {text}}}'


def plain(value: object) -> object:
    """Give what is plainly JSON in another form.

    Raises:
        TypeError: It isn't.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    match value:
        case datetime.date() | datetime.time():
            return value.isoformat()
        case enum.Enum():
            return value.value
        case pathlib.PurePath():
            return value.as_posix()
        case Mapping():
            return dict(cast("Mapping[object, object]", value))
        case Set():
            return sorted(cast("Set[object]", value), key=str)
        case _:
            raise TypeError(f"a value is of type {type(value).__name__}")


def clean(text: str) -> str:
    """Replace halves of characters, which no JSON can hold."""
    return text.encode(errors="replace").decode()


def _failed(error: str) -> str:
    return json.dumps({"kind": "result", "error": clean(error)}, ensure_ascii=False)

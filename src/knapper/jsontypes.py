"""Types of JSON values, dataclasses shown as objects, checks of types, and what JSON has that UTF-8 lacks."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, ClassVar, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pydantic import GetCoreSchemaHandler
    from typing_extensions import TypeIs

T = TypeVar("T")

JSONValue: TypeAlias = "bool | int | float | str | list[JSONValue] | dict[str, JSONValue] | None"
"""What ``json.loads`` returns; also the values of a note's frontmatter."""
_FieldValue: TypeAlias = "JSONValue | Record | tuple[_FieldValue, ...]"


class Record:
    """Base of the dataclasses that every surface shows as an object with their fields, in their order."""

    __slots__ = ()
    shown: ClassVar[tuple[str, ...]] = ()
    """Names of the fields and properties that are shown; empty for all fields."""

    @classmethod
    def shown_names(cls) -> tuple[str, ...]:
        """Return the names of what is shown, in its order."""
        return cls.shown or tuple(one.name for one in fields(cls))  # pyright: ignore[reportArgumentType] - subclasses are dataclasses

    def as_dict(self) -> dict[str, JSONValue]:
        """Return the fields by name: ``{"path": "A.md", "lines": [3, 5]}``; records are objects, and tuples lists."""
        return {name: _show_field(getattr(self, name)) for name in self.shown_names()}


@dataclass(frozen=True, slots=True)
class ShownAs:
    """Says of a JSON value that it is what a record is shown as: ``Annotated[dict[str, JsonValue], ShownAs(Note)]``."""

    kind: type[Record]

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> Mapping[str, object]:
        """Have the value described as the record."""
        del source
        return handler.generate_schema(self.kind)


def _show_field(value: _FieldValue) -> JSONValue:
    if isinstance(value, Record):
        return value.as_dict()
    return [_show_field(one) for one in value] if isinstance(value, tuple) else value


def loads(text: str | bytes) -> JSONValue:
    """Parse JSON.

    Raises:
        ValueError: It isn't valid.
        RecursionError: It is nested too deeply.
    """
    value: JSONValue = json.loads(text)
    return value


def is_object(value: object) -> TypeIs[dict[str, JSONValue]]:
    """Return whether a value that came as JSON is an object."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeIs[list[JSONValue]]:
    """Return whether a value that came as JSON is a list."""
    return isinstance(value, list)


def is_sequence(value: object) -> TypeIs[list[object] | tuple[object, ...]]:
    """Return whether a value is a list or a tuple, of whatever it holds."""
    return isinstance(value, list | tuple)


def one_of(value: object, choices: Iterable[T]) -> T | None:
    """Return the one of some choices that a value equals; None where it is none of them."""
    return next((choice for choice in choices if choice == value), None)


def object_or_empty(value: object) -> dict[str, JSONValue]:
    """Return an object that came as JSON; an empty one for anything else."""
    return value if is_object(value) else {}


def list_or_empty(value: object) -> list[JSONValue]:
    """Return a list that came as JSON; an empty one for anything else."""
    return value if is_list(value) else []


def objects_in(value: object) -> list[dict[str, JSONValue]]:
    """Return the objects of a list; none of anything else."""
    return [one for one in list_or_empty(value) if is_object(one)]


def strings_in(value: object) -> list[str]:
    """Return the strings of a list; none of anything else."""
    return [one for one in list_or_empty(value) if isinstance(one, str)]


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates by question marks: JSON can hold them, but no file, and no model reads them."""
    if text.isascii():
        return text
    try:
        _ = text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="replace").decode()
    return text

"""Say what a route takes, and read it: small JSON objects, or values in the address."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, cast

from starlette.requests import Request

from knapper.errors import BadInput
from knapper.jsontypes import JSONValue
from knapper.server.http import faces
from knapper.server.http.faces import Face

_MAX_TEXT: Final = 2_000
_MAX_ROWS: Final = 1_000
"""Of a list."""
Kind = Literal["text", "count", "number", "flag", "texts", "object"]
_TYPES: Final[Mapping[Kind, str]] = {
    "text": "string",
    "count": "integer",
    "number": "number",
    "flag": "boolean",
    "texts": "array",
    "object": "object",
}
_NUMBERS: Final[Mapping[str, tuple[type[int] | type[float], ...]]] = {"count": (int,), "number": (int, float)}
_PYTHON: Final[Mapping[Kind, tuple[type, str]]] = {
    "text": (str, "a text"),
    "flag": (bool, "true or false"),
    "texts": (list, "a list of texts"),
    "object": (dict, "an object"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Take:
    """Say that a route takes a value."""

    name: str
    doc: str
    kind: Kind = "text"
    needed: bool = False
    """Whether it may be left out, or be null."""
    least: float = 0
    """The lowest number."""
    most: float = _MAX_TEXT
    """Characters of a text, or of each in a list; or the highest number."""
    choices: tuple[str, ...] = ()
    """What a text, or each of a list, may be; empty for anything."""
    fields: tuple["Take", ...] = ()
    """What an object holds."""

    @property
    def schema(self) -> dict[str, JSONValue]:
        """Describe it as JSON Schema."""
        kind = _TYPES[self.kind]
        found: dict[str, JSONValue] = {"type": kind if self.needed else [kind, "null"], "description": self.doc}
        if self.kind in _NUMBERS:
            return {**found, "minimum": self.least, "maximum": self.most}
        if self.kind == "texts":
            return {**found, "maxItems": _MAX_ROWS, "items": {"type": "string", **self._text()}}
        if self.kind == "object":
            return {**found, "properties": {one.name: one.schema for one in self.fields}, "additionalProperties": False}
        return {**found, **self._text(or_none=not self.needed)} if self.kind == "text" else found

    @property
    def type(self) -> str:
        """Name its type in JSON Schema."""
        return _TYPES[self.kind]

    def _text(self, *, or_none: bool = False) -> dict[str, JSONValue]:
        if not self.choices:
            return {"maxLength": self.most}
        return {"enum": [*self.choices, *([None] if or_none else [])]}


VAULT: Final = Take(name="vault", doc="Which vault; the first one where it is left out.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """Hold what was said, checked."""

    values: Mapping[str, object]

    def text(self, name: str) -> str:
        """Give a text; empty where it was left out."""
        return cast("str | None", self.values.get(name)) or ""

    def count(self, name: str, usual: int) -> int:
        """Give a number, or the usual one."""
        value = self.whole(name)
        return usual if value is None else value

    def whole(self, name: str) -> int | None:
        """Give a whole number; None where it was left out."""
        return cast("int | None", self.values.get(name))

    def number(self, name: str) -> float | None:
        """Give a number; None where it was left out."""
        return cast("float | None", self.values.get(name))

    def flag(self, name: str) -> bool | None:
        """Give true or false; None where it was left out."""
        return cast("bool | None", self.values.get(name))

    def texts(self, name: str) -> list[str] | None:
        """Give a list of texts; None where it was left out."""
        return cast("list[str] | None", self.values.get(name))

    def plain(self) -> dict[str, JSONValue]:
        """Give all that was said, without what is null."""
        return {name: cast("JSONValue", value) for name, value in self.values.items() if value is not None}

    def object(self, name: str) -> "Given":
        """Give an object; empty where it was left out."""
        return Given(values=cast("Mapping[str, object] | None", self.values.get(name)) or {})


async def read(request: Request, takes: Sequence[Take]) -> Given:
    """Read the body of a request, or its query where it has no body.

    Raises:
        BadInput: It has something that isn't taken, lacks what is needed, or a value can't be used.
        CallerError: The body isn't JSON.
    """
    in_query = request.method in {"GET", "HEAD", "DELETE"}
    face = Face(method="GET" if in_query else "POST", path="/", tool="")
    shown: dict[str, JSONValue] = {take.name: _plain(take) for take in takes}
    given = await faces.arguments(face, request, shown)
    values = {name: value for name, value in given.items() if name not in request.path_params}
    _check_all(takes, values)
    return Given(values=values)


def _check_all(takes: Sequence[Take], values: Mapping[str, object]) -> None:
    known = [take.name for take in takes]
    for name in values.keys() - set(known):
        raise _wrong(f"'{name[:60]}' isn't taken here", f"it takes {', '.join(known) or 'nothing'}")
    for take in takes:
        _check(take, values.get(take.name))


def _plain(take: Take) -> dict[str, JSONValue]:
    return {"type": take.type}


def _check(take: Take, value: object) -> None:
    if value is None:
        if take.needed:
            raise _wrong(f"'{take.name}' is needed", take.doc)
    elif take.kind in _NUMBERS:
        kinds = _NUMBERS[take.kind]
        if isinstance(value, bool) or not isinstance(value, kinds) or not take.least <= value <= take.most:
            raise _wrong(f"'{take.name}' isn't a number that can be used", f"give {take.least:,} to {take.most:,}")
    else:
        kind, shown = _PYTHON[take.kind]
        if not isinstance(value, kind):
            raise _wrong(f"'{take.name}' isn't {shown}", take.doc)
        _check_inside(take, cast("object", value))


def _check_inside(take: Take, value: object) -> None:
    if isinstance(value, str):
        _check_text(take, value)
    elif isinstance(value, list):
        rows = cast("list[object]", value)
        if len(rows) > _MAX_ROWS:
            raise _wrong(f"'{take.name}' has {len(rows):,} items", f"give at most {_MAX_ROWS:,}")
        for row in rows:
            if not isinstance(row, str):
                raise _wrong(f"'{take.name}' isn't a list of texts", take.doc)
            _check_text(take, row)
    elif isinstance(value, dict):
        _check_all(take.fields, cast("dict[str, object]", value))


def _check_text(take: Take, text: str) -> None:
    if take.choices and text not in take.choices:
        raise _wrong(f"'{take.name}' can't be '{text[:60]}'", f"give {', '.join(take.choices)}")
    if len(text) > take.most:
        raise _wrong(f"'{take.name}' has {len(text):,} characters", f"give at most {take.most:,}")


def _wrong(problem: str, hint: str) -> BadInput:
    return BadInput(problem, hint=hint, code="bad_arguments")

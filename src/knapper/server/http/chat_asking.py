"""Read what is said to a chat: small JSON objects, or values in the address."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, cast

from starlette.requests import Request

from knapper.errors import BadInput
from knapper.server.http import faces
from knapper.server.http.faces import Face
from knapper.vault.outline import JSONValue

_MAX_TEXT: Final = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Take:
    """Say that a route takes a value."""

    name: str
    doc: str
    kind: Literal["text", "count"] = "text"
    needed: bool = False
    """Whether it may be left out, or be null."""
    most: int = _MAX_TEXT
    """Characters of a text, or the highest number."""

    @property
    def schema(self) -> dict[str, JSONValue]:
        """Describe it as JSON Schema."""
        if self.kind == "count":
            bounds: dict[str, JSONValue] = {"type": "integer", "minimum": 0, "maximum": self.most}
        else:
            bounds = {"type": "string", "maxLength": self.most}
        kinds: JSONValue = bounds["type"] if self.needed else [bounds["type"], "null"]
        return {**bounds, "type": kinds, "description": self.doc}


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
        value = cast("int | None", self.values.get(name))
        return usual if value is None else value


async def read(request: Request, takes: Sequence[Take]) -> Given:
    """Read the body of a request, or its query where it has no body.

    Raises:
        BadInput: It has something that isn't taken, lacks what is needed, or a value can't be used.
        CallerError: The body isn't JSON.
    """
    known = {take.name: take for take in takes}
    in_query = request.method in {"GET", "DELETE"}
    face = Face(method="GET" if in_query else "POST", path="/", tool="")
    shown: dict[str, JSONValue] = {take.name: _plain(take) for take in takes}
    given = await faces.arguments(face, request, shown)
    values = {name: value for name, value in given.items() if name not in request.path_params}
    for name in values.keys() - known.keys():
        raise _wrong(f"'{name[:60]}' isn't taken here", f"it takes {', '.join(known) or 'nothing'}")
    for take in takes:
        _check(take, values.get(take.name))
    return Given(values=values)


def _plain(take: Take) -> dict[str, JSONValue]:
    return {"type": "integer" if take.kind == "count" else "string"}


def _check(take: Take, value: object) -> None:
    if value is None:
        if take.needed:
            raise _wrong(f"'{take.name}' is needed", take.doc)
    elif take.kind == "text" and not isinstance(value, str):
        raise _wrong(f"'{take.name}' isn't a text", take.doc)
    elif isinstance(value, str) and take.kind == "text":
        if len(value) > take.most:
            raise _wrong(f"'{take.name}' has {len(value):,} characters", f"give at most {take.most:,}")
    elif isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= take.most:
        raise _wrong(f"'{take.name}' isn't a number that can be used", f"give 0 to {take.most:,}")


def _wrong(problem: str, hint: str) -> BadInput:
    return BadInput(problem, hint=hint, code="bad_arguments")

"""Answer what a client sends that is no message: the library drops it, and the client would wait for ever."""

import contextlib
import json
import re
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any, Final, Self, cast

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError
from pydantic import ValidationError

_HALF_PAIR: Final = re.compile("[\ud800-\udfff]")
_UNPARSED: Final = frozenset({"json_invalid", "string_unicode"})
"""What the library calls text that isn't JSON, and text that isn't UTF-8."""
_PARSE: Final = "Parse error: a line has to be JSON in UTF-8, without half a surrogate pair"
_REQUEST: Final = "Invalid request: a line has to be a message of JSON-RPC 2.0"


class Heard:
    """Read messages as the library does, and answer what is none with an error of JSON-RPC."""

    def __init__(self, reading: Any, writing: Any) -> None:  # noqa: ANN401 - the library's own streams have no public type
        """Take the two streams of a connection."""
        self._reading = reading
        self._writing = writing

    @property
    def last_context(self) -> Any:  # noqa: ANN401 - as above
        """Give the context that the last message was sent in, which the library asks for."""
        return self._reading.last_context

    async def receive(self) -> SessionMessage | Exception:
        """Give the next message, or what went wrong elsewhere than in the client's text."""
        while True:
            item = await self._reading.receive()
            if not isinstance(item, ValidationError):
                return item
            error = answer(item)
            if error is not None:
                with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # nobody listens
                    await self._writing.send(SessionMessage(error))

    async def aclose(self) -> None:
        """Close the reading end."""
        await self._reading.aclose()

    def __aiter__(self) -> Self:
        """Give each message."""
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        """Give the next message, until the client has closed its end."""
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        """Read in a block."""
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        """Close the reading end."""
        await self.aclose()


def answer(error: ValidationError) -> JSONRPCError | None:
    """Answer text that is no message, under its id where one can be told; nothing for an empty line."""
    found = error.errors(include_url=False, include_context=False)
    if found[0]["type"] not in _UNPARSED:
        return _error(INVALID_REQUEST, _REQUEST, next(_ids(one["input"] for one in found), None))
    line = str(found[0]["input"])
    if not line.strip():
        return None
    try:
        said = json.loads(line)  # more lenient: halves of pairs pass, so that the id is known
    except (ValueError, RecursionError):
        said = None
    return _error(PARSE_ERROR, _PARSE, next(_ids([said]), None))


def _error(code: int, message: str, request: int | str | None) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=request, error=ErrorData(code=code, message=message))


def _ids(inputs: Iterable[object]) -> Iterator[int | str]:
    for given in inputs:
        name = cast("dict[str, object]", given).get("id") if isinstance(given, dict) else None
        if isinstance(name, str) and not _HALF_PAIR.search(name):
            yield name
        if isinstance(name, int) and not isinstance(name, bool):
            yield name

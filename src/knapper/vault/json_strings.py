"""Find the strings of a JSON text, each with its place."""

import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]', re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})(?:\\u([dD][c-fC-F][0-9a-fA-F]{2}))?|.)", re.DOTALL)

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class String:
    """Hold one string value.

    In ``{"a": ["x"]}`` the string ``x`` has the path ``("a", 0)``.
    """

    path: Path
    value: str
    """Decoded; half a surrogate pair is a question mark."""
    start: int
    """Character after the opening quote."""
    stop: int
    """The closing quote."""


class InvalidJSONError(Exception):
    """Say that a text isn't JSON, and at which character."""

    def __init__(self, reason: str, index: int) -> None:
        super().__init__(reason)
        self.reason: str = reason
        self.index: int = index


def read(text: str) -> Iterator[String]:
    """List all string values in order; keys are none.

    Raises:
        InvalidJSONError: The text isn't JSON, or nested too deep.
    """
    try:
        _ = json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidJSONError(error.msg, error.pos) from None
    except (RecursionError, ValueError) as error:  # nested too deep, or a number of too many digits
        raise InvalidJSONError(str(error), 0) from None
    yield from _strings(text)


def _strings(text: str) -> Iterator[String]:
    """Walk the tokens of a text that is known to be JSON."""
    path: list[str | int] = []
    expects_key = False
    for match in _TOKEN.finditer(text):
        mark = match.group()
        if mark == "{":
            path.append("")
            expects_key = True
        elif mark == "[":
            path.append(0)
            expects_key = False
        elif mark in "}]":
            _ = path.pop()
        elif mark == ",":
            last = path[-1]
            expects_key = isinstance(last, str)
            if isinstance(last, int):
                path[-1] = last + 1
        elif mark == ":":
            expects_key = False
        elif expects_key:
            path[-1] = _decoded(mark)
        else:
            yield String(path=tuple(path), value=_decoded(mark), start=match.start() + 1, stop=match.end() - 1)


class Places:
    r"""Map offsets into a string's value to offsets into the file.

    In ``"a\\u00e9b"`` written with its escape, byte 3 of the value is byte 7 after the quote.
    """

    def __init__(self, written: str, start: int) -> None:
        """Measure a string.

        Args:
            written: The string between its quotes.
            start: Its byte offset in the file.
        """
        self._value: list[int] = [0]
        self._file: list[int] = [start]
        done = value = 0
        place = start
        for match in _ESCAPE.finditer(written):
            plain = len(written[done : match.start()].encode())
            value += plain
            place += plain
            self._add(value, place)
            value += len(_decoded(f'"{match.group()}"').encode())
            place += len(match.group())
            self._add(value, place)
            done = match.end()

    def _add(self, value: int, place: int) -> None:
        self._value.append(value)
        self._file.append(place)

    def at(self, value: int) -> int:
        """Tell where the byte at *value* of the decoded string stands in the file."""
        index = bisect_right(self._value, value) - 1
        return self._file[index] + value - self._value[index]


def _decoded(quoted: str) -> str:
    return str(json.loads(quoted)).encode(errors="replace").decode()

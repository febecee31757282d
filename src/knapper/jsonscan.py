"""Scan JSON, with or without comments, for its values and their positions, so that a text can be changed in place."""

import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

JSONPath = tuple[str | int, ...]
JSONKind = Literal["object", "array", "string", "other"]

_TOKEN: Final = re.compile(r'("[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\]]|[^\s,:"{}\[\]]+)', re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})(?:\\u([dD][c-fC-F][0-9a-fA-F]{2}))?|.)", re.DOTALL)
_STRING: Final = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_COMMENT: Final = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?\*/", re.DOTALL)
_TRAILING_COMMA: Final = re.compile(rf"{_STRING}|,(?=\s*[}}\]])", re.DOTALL)
_DECODER: Final = json.JSONDecoder()
_KINDS: Final[dict[str, JSONKind]] = {"{": "object", "[": "array", '"': "string"}


class InvalidJSONError(Exception):
    """A text that isn't JSON, with the index of the character at fault."""

    def __init__(self, reason: str, index: int) -> None:
        super().__init__(reason)
        self.reason: str = reason
        self.index: int = index


@dataclass(frozen=True, slots=True, kw_only=True)
class JSONSpan:
    """A value and its span, quotes and brackets included.

    In ``{"a": [7]}`` the number has the path ``("a", 0)``, starts at 7 and stops at 8.
    """

    path: JSONPath
    kind: JSONKind
    start: int
    stop: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JSONString:
    """A string value and its span, without its quotes.

    In ``{"a": ["x"]}`` the string ``x`` has the path ``("a", 0)``.
    """

    path: JSONPath
    value: str
    """Decoded; a lone surrogate is a question mark."""
    start: int
    """Character after the opening quote."""
    stop: int
    """The closing quote."""


def blank_comments(text: str) -> str:
    """Return JSONC with spaces in the place of its comments, so that all else keeps its position; lines stay."""
    return _COMMENT.sub(_blank, text)


def blank_trailing_commas(text: str) -> str:
    """Return JSON without comments with a space in the place of each comma before a closing bracket."""
    return _TRAILING_COMMA.sub(_blank, text)


def _blank(match: re.Match[str]) -> str:
    found = match.group()
    return found if found.startswith('"') else re.sub(r"[^\r\n]", " ", found)


def find_strings(text: str) -> Iterator[JSONString]:
    """Read all string values in order, without the keys.

    Raises:
        InvalidJSONError: The text isn't JSON, or nested too deep.
    """
    try:
        _ = json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidJSONError(error.msg, error.pos) from None
    except (RecursionError, ValueError) as error:
        # Nested too deep, or a number with too many digits.
        raise InvalidJSONError(str(error), 0) from None
    for value in find_values(text):
        if value.kind == "string":
            decoded = _decoded(text, value.start)
            yield JSONString(path=value.path, value=decoded, start=value.start + 1, stop=value.stop - 1)


def find_values(text: str) -> Iterator[JSONSpan]:
    """Scan all values in the order of their ends: the members of an object or array come before it.

    Args:
        text: Valid JSON (``json.loads`` has read it before); nothing is checked here.
    """
    path: list[str | int] = []
    starts: list[int] = []
    expects_key = False
    for match in _TOKEN.finditer(text):
        start, stop = match.span(1)
        first = text[start]
        if first in "{[":
            path.append("" if first == "{" else 0)
            starts.append(start)
            expects_key = first == "{"
            continue
        if first in "}]":
            _ = path.pop()
            start = starts.pop()
            first = text[start]
        elif expects_key:
            path[-1] = str(_DECODER.raw_decode(text, start)[0])
            expects_key = False
            continue
        yield JSONSpan(path=tuple(path), kind=_KINDS.get(first, "other"), start=start, stop=stop)
        last = path[-1] if path else None
        expects_key = isinstance(last, str)
        if isinstance(last, int):
            path[-1] = last + 1


class OffsetMap:
    r"""Map offsets into a string's value to offsets into the file.

    In ``"a\\u00e9b"`` written with its escape, byte 3 of the value is byte 7 after the quote.
    """

    def __init__(self, written: str, start: int) -> None:
        """Index a string.

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
            value += len(_decoded(f'"{match.group()}"', 0).encode())
            place += len(match.group())
            self._add(value, place)
            done = match.end()

    def _add(self, value: int, place: int) -> None:
        self._value.append(value)
        self._file.append(place)

    def file_offset(self, value: int) -> int:
        """Return the file offset of the byte at *value* of the decoded string."""
        index = bisect_right(self._value, value) - 1
        return self._file[index] + value - self._value[index]


def _decoded(text: str, start: int) -> str:
    """Return the string whose opening quote is at *start*."""
    return str(_DECODER.raw_decode(text, start)[0]).encode(errors="replace").decode()

"""Parse JSON from untrusted sources."""

import json
from collections.abc import Mapping
from typing import Final, NoReturn, cast

from knapper.jsontypes import JSONValue

MAX_DEPTH: Final = 64
_CALL_DIGITS: Final = 19
"""Most digits of whole numbers in calls, so that databases can hold them."""
_LONG_DIGITS: Final = 1_000


class UntrustedJSONError(Exception):
    """Input that isn't JSON within the limits here; the message reveals nothing of the host."""


def read(content: bytes, *, digits: int = _LONG_DIGITS) -> JSONValue:
    """Read one value.

    Args:
        content: UTF-8.
        digits: Most digits of a whole number.

    Raises:
        UntrustedJSONError: It isn't UTF-8 or JSON, holds NaN or unpaired surrogates, or is nested too deeply.
    """

    # Before int(): converting thousands of digits takes quadratic time.
    def whole(text: str) -> int:
        if len(text) > digits:
            raise UntrustedJSONError("a number is too large")
        return int(text)

    try:
        text = content.decode()
        value = cast("JSONValue", json.loads(text, parse_int=whole, parse_constant=_refuse_constant))
    except (ValueError, RecursionError):
        raise UntrustedJSONError("it isn't JSON") from None
    # Only an escape can bring a surrogate into valid UTF-8, and most texts have none.
    if "\\u" in text:
        _check_surrogates(value)
    # An upper bound on the depth: most values needn't be walked.
    if text.count("[") + text.count("{") > MAX_DEPTH:
        _check_depth(value)
    return value


def read_call(content: bytes) -> tuple[str, Mapping[str, JSONValue]]:
    """Read a call: ``{"method": …, "arguments": {…}}`` and nothing else.

    Raises:
        UntrustedJSONError: It isn't a call.
    """
    value = read(content, digits=_CALL_DIGITS)
    if isinstance(value, dict) and value.keys() == {"method", "arguments"}:
        method, arguments = value["method"], value["arguments"]
        if isinstance(method, str) and isinstance(arguments, dict):
            return method, arguments
    raise UntrustedJSONError("it isn't a call")


def _refuse_constant(name: str) -> NoReturn:
    raise UntrustedJSONError(f"{name} isn't a number")


def _check_surrogates(value: JSONValue) -> None:
    try:
        _ = json.dumps(value, ensure_ascii=False).encode()
    except (UnicodeEncodeError, RecursionError):
        raise UntrustedJSONError("it holds an unpaired surrogate") from None


def _check_depth(value: JSONValue) -> None:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [inner for one in level for inner in _containers_in(one)]
        if not level:
            return
    raise UntrustedJSONError("it is nested too deeply")


def _containers_in(value: JSONValue) -> list[JSONValue]:
    """Return the lists and dictionaries in one."""
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return [one for one in inner if isinstance(one, list | dict)]

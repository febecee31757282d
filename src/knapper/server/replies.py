"""Write JSON replies, errors among them, in one shape."""

import json
import math
from collections.abc import Mapping
from typing import Final, cast

from starlette.datastructures import MutableHeaders
from starlette.responses import Response

from knapper.errors import KnapError
from knapper.server import statuses

HEADERS: Final = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
"""What every reply of the API says to browsers."""
_RETRY_S: Final = "1"


class Json(Response):
    """Reply with JSON, whatever text and numbers a note holds."""

    media_type = "application/json"

    def __init__(self, content: object, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        """Write *content*, a plain JSON value, with the headers of every reply."""
        super().__init__(content, status, {**HEADERS, **(headers or {})})

    def render(self, content: object) -> bytes:
        """Write the value; halves of characters become JSON's escapes, and numbers that JSON lacks become null."""
        try:
            text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        except ValueError:
            text = json.dumps(_finite(content), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8", "backslashreplace")  # a lone surrogate \udc80 is written \udc80: that is JSON


def failure(error: KnapError, headers: Mapping[str, str] | None = None) -> Json:
    """Reply with an error."""
    status = statuses.of(error)
    more: dict[str, str] = {}
    if status == statuses.UNKNOWN:
        more["www-authenticate"] = 'Bearer realm="knapper"'
    if status in {statuses.TOO_MANY, statuses.BUSY}:
        more["retry-after"] = _RETRY_S
    return Json(error.as_dict(), status, {**more, **(headers or {})})


def add_header(headers: MutableHeaders, name: str, value: str) -> None:
    """Add a value to a header that lists several, such as ``Vary``, unless it is there."""
    known = [one.strip().lower() for one in headers.get(name, "").split(",")]
    if value.lower() not in known:
        headers[name] = ", ".join(filter(None, [headers.get(name, ""), value]))


def _finite(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in cast("dict[str, object]", value).items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in cast("list[object]", value)]
    return value

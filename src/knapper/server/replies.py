"""JSON replies and error replies, with the HTTP status of each error."""

import json
import math
from collections.abc import Mapping
from typing import Final, cast

from starlette.datastructures import MutableHeaders
from starlette.responses import Response

from knapper.errors import CallerError, ConflictError, KnapError, NotFound, RefusedError, SetupError, StorageError
from knapper.jsontypes import is_object

BAD_REQUEST: Final = 400
UNAUTHORIZED: Final = 401
FORBIDDEN: Final = 403
NOT_FOUND: Final = 404
METHOD_NOT_ALLOWED: Final = 405
REQUEST_TIMEOUT: Final = 408
CONFLICT: Final = 409
CONTENT_TOO_LARGE: Final = 413
UNSUPPORTED_MEDIA_TYPE: Final = 415
UNPROCESSABLE_CONTENT: Final = 422
TOO_MANY_REQUESTS: Final = 429
CLIENT_CLOSED_REQUEST: Final = 499
"""Nobody hears it: the client has closed its connection. It stands in the log alone."""
INTERNAL_SERVER_ERROR: Final = 500
SERVICE_UNAVAILABLE: Final = 503

_STATUS_BY_CODE: Final = {
    "bad_request": BAD_REQUEST,
    "invalid_json": BAD_REQUEST,
    "not_an_object": BAD_REQUEST,
    "invalid_text": BAD_REQUEST,
    "unauthorized": UNAUTHORIZED,
    "method_not_allowed": METHOD_NOT_ALLOWED,
    "too_slow": REQUEST_TIMEOUT,
    "too_large": CONTENT_TOO_LARGE,
    "wrong_content_type": UNSUPPORTED_MEDIA_TYPE,
    "too_many_requests": TOO_MANY_REQUESTS,
    "client_gone": CLIENT_CLOSED_REQUEST,
    "internal": INTERNAL_SERVER_ERROR,
    "busy": SERVICE_UNAVAILABLE,
    "stopping": SERVICE_UNAVAILABLE,
}
"""Codes of this surface's own; they are raised nowhere else, but for ``invalid_json``, which means the same there."""
_STATUS_BY_CLASS: Final[tuple[tuple[type[KnapError], int], ...]] = (
    (NotFound, NOT_FOUND),
    (CallerError, UNPROCESSABLE_CONTENT),
    (SetupError, FORBIDDEN),  # asking again doesn't help until the owner has changed the configuration
    (RefusedError, FORBIDDEN),
    (ConflictError, CONFLICT),
    (StorageError, SERVICE_UNAVAILABLE),
)
DOCUMENTED_STATUSES: Final = {
    BAD_REQUEST: "The request can't be read.",
    UNAUTHORIZED: "The token is missing or wrong.",
    FORBIDDEN: "The policy, the configuration or the request's origin doesn't allow it.",
    NOT_FOUND: "There is no such thing, or the client doesn't see it.",
    CONFLICT: "Something changed meanwhile, or is there already.",
    CONTENT_TOO_LARGE: "The request is too large.",
    UNSUPPORTED_MEDIA_TYPE: "The body isn't JSON.",
    UNPROCESSABLE_CONTENT: "An argument can't be used as it is.",
    TOO_MANY_REQUESTS: "The client asks too often; `Retry-After` says when to go on.",
    SERVICE_UNAVAILABLE: "The server has too much to do, stops, or can't use its disk.",
}
"""What each documented error status means, for every route that takes a token."""


def status_of(error: KnapError) -> int:
    """Return the status of an error; its code decides before its class."""
    by_code = _STATUS_BY_CODE.get(error.code)
    if by_code is not None:
        return by_code
    return next((status for kind, status in _STATUS_BY_CLASS if isinstance(error, kind)), UNPROCESSABLE_CONTENT)


REPLY_HEADERS: Final = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
"""What every reply of the API says to browsers."""
_RETRY_AFTER_S: Final = "1"


def render_json(content: object) -> bytes:
    """Write a plain JSON value; lone surrogates become JSON escapes, and NaN and infinity become null."""
    try:
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:
        text = json.dumps(_replace_nonfinite(content), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace")  # a lone surrogate \udc80 is written \udc80: that is JSON


class JsonReply(Response):
    """A JSON reply for any text and number that a note may contain."""

    media_type = "application/json"

    def __init__(self, content: object, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        """Write *content*, a plain JSON value, or bytes that are JSON, with the headers of every reply."""
        super().__init__(content, status, {**REPLY_HEADERS, **(headers or {})})

    def render(self, content: object) -> bytes:
        """Write the value; see `render_json`."""
        return content if isinstance(content, bytes) else render_json(content)


def error_reply(error: KnapError, headers: Mapping[str, str] | None = None) -> JsonReply:
    """Reply with an error."""
    status = status_of(error)
    extra_headers: dict[str, str] = {}
    if status == UNAUTHORIZED:
        extra_headers["www-authenticate"] = 'Bearer realm="knapper"'
    if status in {TOO_MANY_REQUESTS, SERVICE_UNAVAILABLE}:
        extra_headers["retry-after"] = _RETRY_AFTER_S
    return JsonReply(error.as_dict(), status, {**extra_headers, **(headers or {})})


def add_header(headers: MutableHeaders, name: str, value: str) -> None:
    """Add a value to a header that lists several, such as ``Vary``, unless it is there."""
    present_values = [each_value.strip().lower() for each_value in headers.get(name, "").split(",")]
    if value.lower() not in present_values:
        headers[name] = ", ".join(filter(None, [headers.get(name, ""), value]))


def _replace_nonfinite(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if is_object(value):
        return {name: _replace_nonfinite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_replace_nonfinite(each) for each in cast("list[object]", value)]
    return value

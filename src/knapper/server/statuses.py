"""Say which HTTP status tells which error: the one mapping of the HTTP surface."""

from typing import Final

from knapper.errors import CallerError, ConflictError, KnapError, NotFound, RefusedError, SetupError, StorageError

BAD_REQUEST: Final = 400
UNKNOWN: Final = 401
FORBIDDEN: Final = 403
NOT_FOUND: Final = 404
NO_SUCH_METHOD: Final = 405
TOO_SLOW: Final = 408
CONFLICT: Final = 409
TOO_LARGE: Final = 413
WRONG_TYPE: Final = 415
UNFIT: Final = 422
TOO_MANY: Final = 429
GONE: Final = 499
"""Nobody hears it: the client has closed its connection. It stands in the log alone."""
BROKEN: Final = 500
BUSY: Final = 503

_OF_CODES: Final = {
    "bad_request": BAD_REQUEST,
    "invalid_json": BAD_REQUEST,
    "not_an_object": BAD_REQUEST,
    "invalid_text": BAD_REQUEST,
    "unauthorized": UNKNOWN,
    "method_not_allowed": NO_SUCH_METHOD,
    "too_slow": TOO_SLOW,
    "too_large": TOO_LARGE,
    "wrong_content_type": WRONG_TYPE,
    "too_many_requests": TOO_MANY,
    "client_gone": GONE,
    "internal": BROKEN,
    "busy": BUSY,
    "stopping": BUSY,
}
"""Codes of this surface's own; they are raised nowhere else, but for ``invalid_json``, which means the same there."""
_OF_CLASSES: Final[tuple[tuple[type[KnapError], int], ...]] = (
    (NotFound, NOT_FOUND),
    (CallerError, UNFIT),
    (SetupError, FORBIDDEN),  # asking again doesn't help until the owner has changed the configuration
    (RefusedError, FORBIDDEN),
    (ConflictError, CONFLICT),
    (StorageError, BUSY),
)
DOCUMENTED: Final = {
    BAD_REQUEST: "The request can't be read.",
    UNKNOWN: "The token is missing or wrong.",
    FORBIDDEN: "The policy, the configuration or the request's origin doesn't allow it.",
    NOT_FOUND: "There is no such thing, or the client doesn't see it.",
    CONFLICT: "Something changed meanwhile, or is there already.",
    TOO_LARGE: "The request is too large.",
    WRONG_TYPE: "The body isn't JSON.",
    UNFIT: "An argument can't be used as it is.",
    TOO_MANY: "The client asks too often; `Retry-After` says when to go on.",
    BUSY: "The server has too much to do, stops, or can't use its disk.",
}
"""What each documented error status means, for every route that takes a token."""


def of(error: KnapError) -> int:
    """Give the status of an error; its code decides before its class."""
    by_code = _OF_CODES.get(error.code)
    if by_code is not None:
        return by_code
    return next((status for kind, status in _OF_CLASSES if isinstance(error, kind)), UNFIT)

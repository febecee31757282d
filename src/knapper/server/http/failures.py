"""Turn every error into a reply of the one shape."""

import logging
from typing import Final

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from knapper.errors import BadInput, KnapError, NotFound, StorageError
from knapper.server import places, replies, statuses, tracing
from knapper.server.http import methods

LOG: Final = logging.getLogger("knapper.server.failures")


def handle(app: FastAPI) -> None:
    """Have the app answer errors.

    What answers is async, so that it needs no thread, and comes through even while the server ends.
    """
    app.add_exception_handler(KnapError, _of_knapper)
    app.add_exception_handler(OSError, _of_system)
    app.add_exception_handler(HTTPException, _of_routing)
    app.add_exception_handler(RequestValidationError, _of_validation)
    app.add_exception_handler(Exception, _unforeseen)


async def _of_knapper(request: Request, error: Exception) -> Response:
    failure = error if isinstance(error, KnapError) else KnapError("something failed")
    return replies.failure(places.told(request.scope, failure))


async def _of_system(request: Request, error: Exception) -> Response:
    name = error.strerror if isinstance(error, OSError) else ""
    LOG.warning("%s the system refused: %s", tracing.id_of(request.scope), type(error).__name__)
    hint = "`knap doctor` checks folders, permissions and space"
    return replies.failure(StorageError(f"the system refused: {name or type(error).__name__}", hint=hint))


async def _of_routing(request: Request, error: Exception) -> Response:
    """Answer what the router refuses: an unknown path, or a method that a path doesn't have."""
    if not isinstance(error, HTTPException) or error.status_code == statuses.NOT_FOUND:
        return replies.failure(NotFound("there is no such path", hint="/openapi.json lists what there is"))
    if error.status_code == statuses.NO_SUCH_METHOD:
        allowed = methods.allowed(request.scope)  # the error knows of one route alone, and a path may have several
        return replies.failure(
            BadInput("this path doesn't take that method", hint=f"it takes {allowed}", code="method_not_allowed"),
            {"allow": allowed},
        )
    return replies.failure(BadInput("the request can't be read", code="bad_request"), error.headers)


async def _of_validation(request: Request, error: Exception) -> Response:
    del request, error
    return replies.failure(BadInput("the request has not the form that is wanted", hint="see /openapi.json"))


async def _unforeseen(request: Request, error: Exception) -> Response:
    """Answer a mistake of ours; the log tells where it is, and neither it nor the reply what it was about."""
    del error
    name = tracing.id_of(request.scope)
    failure = KnapError(
        "the server made a mistake", code="internal", hint=f"its log tells more; the request's id is {name}"
    )
    return replies.failure(failure, {tracing.HEADER: name} if name else None)

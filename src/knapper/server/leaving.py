"""Do nothing more for a client that has gone."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.types import Receive

from knapper.errors import CallerError, StorageError

T = TypeVar("T")


async def unless_gone(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """Do *work* for a client, and leave it once the client has closed its connection.

    Args:
        receive: Of the request, whose body has been taken in.
        work: What is cancelled then; what has begun in a thread goes on there, and what waits for its turn is left.

    Raises:
        CallerError: The client has gone (code ``client_gone``); nobody reads the answer.
        StorageError: The server stops, and waits no longer (code ``stopping``).
    """
    working, leaving = asyncio.create_task(work), asyncio.create_task(_left(receive))
    try:
        _ = await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise CallerError("the client has gone", code="client_gone")
        return working.result()
    except asyncio.CancelledError:
        raise StorageError("the server stops", hint="try again in a moment", code="stopping") from None
    finally:
        _ = working.cancel(), leaving.cancel()


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass

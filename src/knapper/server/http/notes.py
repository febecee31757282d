"""Read notes: ``GET /notes/Projects/Garden.md``; the note's hash is the ETag."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from knapper.server import replies
from knapper.server.http.calling import Endpoint, Serving
from knapper.server.http.faces import Face

FACES: Final = (Face(method="GET", path="/notes/{path:path}", tool="read_file", tag="notes", is_tagged=True),)
_CACHED: Final = {"cache-control": "private, no-cache"}


def reading(serving: Serving, face: Face) -> Endpoint:
    """Make what answers with a note, or tells that the asker's copy is still good."""

    async def endpoint(request: Request) -> Response:
        answer = await serving.answer(face, request)
        if "embeds" in answer:  # what it shows of other notes isn't in its hash
            return replies.Json(answer)
        tag = f'"{answer["hash"]}"'
        headers = {"etag": tag, **_CACHED}
        if _has(request, tag):
            return Response(status_code=304, headers={**replies.HEADERS, **headers})
        return replies.Json(answer, headers=headers)

    return endpoint


def _has(request: Request, tag: str) -> bool:
    known = request.headers.get("if-none-match", "")
    return known.strip() == "*" or tag in {one.strip().removeprefix("W/") for one in known.split(",")}

"""Hold the page's files in memory, as they are sent."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from knapper.errors import NotFound

FOLDER: Final = Path(__file__).parents[3] / "web"
_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
_ALLOWED: Final = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
)
HEADERS: Final = {
    "cache-control": "no-cache",
    "content-security-policy": "; ".join(_ALLOWED),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
"""What the page may do in a browser: load its own files, and call its own server; nothing else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """Hold one file."""

    content: bytes = field(repr=False)
    kind: str
    tag: str
    """Its ETag."""


def load(folder: Path = FOLDER) -> Mapping[str, File]:
    """Read the page's files, by their path below the folder; nothing else is ever sent."""
    found: dict[str, File] = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix in _TYPES and path.is_file():
            content = path.read_bytes()
            tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
            found[path.relative_to(folder).as_posix()] = File(content=content, kind=_TYPES[path.suffix], tag=tag)
    return found


def reply(files: Mapping[str, File], name: str, request: Request) -> Response:
    """Answer with a file, or tell that the asker's copy is still good.

    Raises:
        NotFound: The page has no such file.
    """
    file = files.get(name)
    if file is None:
        raise NotFound("the page has no such file", hint="the page itself is at /")
    headers = {**HEADERS, "etag": file.tag}
    known = {one.strip().removeprefix("W/") for one in request.headers.get("if-none-match", "").split(",")}
    if file.tag in known:
        return Response(status_code=304, headers=headers)
    return Response(file.content, media_type=file.kind, headers=headers)

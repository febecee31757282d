"""Serve what a reader of notes shows beside their text: attachments, a note's surroundings, and pending edits."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO, Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from knapper.changes.writer import SubmitOptions
from knapper.errors import BadInput
from knapper.server import security
from knapper.server.http import openapi
from knapper.server.http.app import Mount
from knapper.server.http.binding import PAGE_LIMIT, VAULT_PARAMETER, Parameter, count_parameter
from knapper.server.http.openapi import STRING, RouteSpec
from knapper.tools import answers, links, proposals
from knapper.tools.shapes.read import LinkingNotePage, NoteGraph, NoteSurroundings
from knapper.tools.shapes.write import PendingBlockList
from knapper.vault import files, paths

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from knapper.app import Hub
    from knapper.server.http.binding import RequestArguments
    from knapper.server.workers import WorkerThreads
    from knapper.tools.context import Context
    from knapper.vault.paths import NotePath


MEDIA_TYPES: Final[Mapping[str, str]] = {
    "avif": "image/avif",
    "bmp": "image/bmp",
    "gif": "image/gif",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "png": "image/png",
    "svg": "image/svg+xml",
    "webp": "image/webp",
    "pdf": "application/pdf",
    "3gp": "audio/3gpp",
    "flac": "audio/flac",
    "m4a": "audio/mp4",
    "mp3": "audio/mpeg",
    "ogg": "audio/ogg",
    "opus": "audio/ogg",
    "wav": "audio/wav",
    "mkv": "video/x-matroska",
    "mov": "video/quicktime",
    "mp4": "video/mp4",
    "ogv": "video/ogg",
    "webm": "video/webm",
}
"""What is sent, by the ending of its name: what Obsidian shows, and nothing that a browser would run."""
MAX_ATTACHMENT_BYTES: Final = files.DEFAULT_MAX_BYTES
_PIECE_BYTES: Final = 1024 * 1024
_RANGE: Final = re.compile(r"bytes=(\d{0,15})-(\d{0,15})", re.ASCII)
_PARTIAL_CONTENT: Final = 206
_NOT_MODIFIED: Final = 304
_RANGE_NOT_SATISFIABLE: Final = 416
_ATTACHMENT_HEADERS: Final = {
    **security.REPLY_HEADERS,
    "accept-ranges": "bytes",
    "cache-control": "private, no-cache",
    # Opened by itself an SVG is a document: it runs nothing, loads nothing, and belongs to no origin.
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox; frame-ancestors 'none'",
    "cross-origin-resource-policy": "same-origin",
}
_ATTACHMENT_PARAMETERS: Final = (VAULT_PARAMETER,)
_ATTACHMENT_CONTENT: Final[Mapping[str, Any]] = {
    media_type: {"schema": {"type": "string", "format": "binary"}} for media_type in sorted({*MEDIA_TYPES.values()})
}
_ATTACHMENT_RESPONSES: Final[Mapping[str, Any]] = {
    "206": {"description": "The part that was asked for.", "content": _ATTACHMENT_CONTENT},
    "304": {"description": "It is as the asker knows it."},
    "416": {"description": "It has no such part."},
}
_BY_PARAMETER: Final = Parameter(
    name="by",
    doc="What ties notes: `links`, `meaning` or `both`; links where it is left out.",
    choices=links.GRAPH_TIES,
)
_GRAPH_PARAMETERS: Final = (
    count_parameter("depth", "Steps from the note; 2 where it is left out.", 1, 3),
    _BY_PARAMETER,
    count_parameter("limit", "Most notes; 300 where it is left out.", 1, links.MAX_GRAPH_NODES),
    VAULT_PARAMETER,
)
_BETWEEN_PARAMETERS: Final = (
    Parameter(name="paths", doc="Paths of notes; what isn't visible is left out.", kind="texts", required=True),
    _BY_PARAMETER,
    VAULT_PARAMETER,
)
_BACKLINK_PARAMETERS: Final = (
    count_parameter("limit", f"Most notes; {PAGE_LIMIT} where it is left out.", 1, 1_000),
    count_parameter("offset", "How many to skip.", 0, answers.MAX_OFFSET),
    VAULT_PARAMETER,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """An attachment as it was found."""

    path: NotePath
    media_type: str
    size: int
    stamp: str
    """Another one after each change."""

    @property
    def etag(self) -> str:
        """Return its ETag."""
        return f'"{self.stamp}"'


def mount_browsing(hub: Hub, threads: WorkerThreads) -> Mount:
    """Create the mount for ``/attachments/PATH``, ``/backlinks/PATH``, ``/graph/PATH`` and ``/graph``.

    All show what the client's policy lets it see, persons and agents alike.

    Args:
        hub: The vaults; the caller closes it.
        threads: Where files and the index are read; the caller closes them.
    """

    async def send_attachment(request: Request, args: RequestArguments) -> Response:
        """Send an image, a PDF, a recording or a film of the vault.

        As bytes, and as a part of them where `Range` asks for one. Other kinds of file aren't sent.
        """
        client, path = security.client_of(request.scope), str(request.path_params["path"])
        context = await threads.run("read", partial(hub.context, client=client, vault=args.text("vault")))
        attachment = await threads.run("read", partial(find_attachment, context, path))
        name = quote(attachment.path.rpartition("/")[2], safe="")
        headers = {
            **_ATTACHMENT_HEADERS,
            "etag": attachment.etag,
            "content-disposition": f"inline; filename*=UTF-8''{name}",
        }
        if attachment.etag in request.headers.get("if-none-match", ""):
            return Response(status_code=_NOT_MODIFIED, headers=headers)
        span = requested_span(request.headers.get("range", ""), attachment.size)
        if span is None:
            headers["content-range"] = f"bytes */{attachment.size}"
            return Response(status_code=_RANGE_NOT_SATISFIABLE, headers=headers)
        start, stop = span
        headers["content-length"] = str(stop - start)
        # The status of a reply with these bytes of a file.
        status = 200 if (start, stop) == (0, attachment.size) else _PARTIAL_CONTENT
        if status == _PARTIAL_CONTENT:
            headers["content-range"] = f"bytes {start}-{stop - 1}/{attachment.size}"
        if request.method == "HEAD":
            return Response(status_code=status, media_type=attachment.media_type, headers=headers)
        pieces = _read_pieces(threads, context, attachment, start, stop)
        return StreamingResponse(pieces, status, media_type=attachment.media_type, headers=headers)

    attachments = openapi.bind_route(
        "GET", "/attachments/{path:path}", "attachments", send_attachment, _ATTACHMENT_PARAMETERS, _ATTACHMENT_CONTENT
    )
    specs = (replace(attachments, responses=_ATTACHMENT_RESPONSES), *_link_routes(hub, threads))
    return Mount(routes=[*map(openapi.make_route, specs)])


def _link_routes(hub: Hub, threads: WorkerThreads) -> tuple[RouteSpec, ...]:
    """List the routes that show how notes hang together."""

    async def read(
        request: Request, args: RequestArguments, work: Callable[[Context], Mapping[str, object]]
    ) -> Response:
        context = partial(hub.context, client=security.client_of(request.scope), vault=args.text("vault"))
        return security.JsonReply(await threads.run("read", lambda: work(context())))

    async def list_backlinks(request: Request, args: RequestArguments) -> Response:
        """List the notes that link to one, each with the lines that do.

        By path; at most 20 lines of a note.
        """
        path = str(request.path_params["path"])
        limit, offset = args.page()
        return await read(request, args, lambda context: links.backlink_lines(context, path, limit, offset))

    async def show_around(request: Request, args: RequestArguments) -> Response:
        """Show the notes around one, and what ties them.

        By links in either direction, by nearness in meaning, or both.
        """
        path = str(request.path_params["path"])
        by: links.GraphTies = args.choice("by", links.GRAPH_TIES, "links")
        depth, limit = args.integer_or_default("depth", 2), args.integer_or_default("limit", 300)
        return await read(
            request, args, lambda context: links.surroundings(context, path, depth=depth, by=by, limit=limit)
        )

    async def show_between(request: Request, args: RequestArguments) -> Response:
        """Show some notes, and what ties them.

        Such as those that a run read; in the order that they were asked for.
        """
        names = args.texts("paths") or ()
        by: links.GraphTies = args.choice("by", links.GRAPH_TIES, "links")
        return await read(request, args, lambda context: links.graph_between(context, names, by=by))

    bind, content, by_path = openapi.bind_route, openapi.type_content, "{path:path}"
    return (
        bind("GET", f"/backlinks/{by_path}", "notes", list_backlinks, _BACKLINK_PARAMETERS, content(LinkingNotePage)),
        bind("GET", f"/graph/{by_path}", "graph", show_around, _GRAPH_PARAMETERS, content(NoteSurroundings)),
        bind("POST", "/graph", "graph", show_between, _BETWEEN_PARAMETERS, content(NoteGraph)),
    )


def requested_span(header: str, size: int) -> tuple[int, int] | None:
    """Return which bytes of a file a ``Range`` asks for; all where it asks for several parts or in another unit.

    ``bytes=-3`` of 10 gives ``(7, 10)``, and ``bytes=10-`` None: there are no such bytes.
    """
    match = _RANGE.fullmatch(header.strip())
    if match is None or match.groups() == ("", ""):
        return 0, size
    first, last = match.groups()
    start = int(first) if first else max(size - int(last), 0)
    stop = min(int(last) + 1, size) if first and last else size
    return (start, stop) if start < stop else None


def find_attachment(context: Context, path: str) -> Attachment:
    """Find an attachment; a client that isn't a person is tainted by one of others.

    Raises:
        NotFound: No such file is visible.
        BadInput: It isn't of a kind that is sent (code ``not_an_attachment``), or is too large (code ``too_large``).
    """
    # The name is resolved first, so that a hidden file of any kind is one that isn't there.
    found = context.view.path(path)
    media_type = MEDIA_TYPES.get(found.rpartition(".")[2].lower())
    if media_type is None:
        raise BadInput(
            f"{paths.quote_path(found)} isn't an attachment that is sent",
            hint="images, PDFs, recordings and films are; a note is read as a note",
            code="not_an_attachment",
        )
    _ = answers.mark_foreign_paths(context, [found])
    with context.view.open_bytes(found, max_bytes=MAX_ATTACHMENT_BYTES) as stream:
        size, stamp = _stamp(stream)
    return Attachment(path=found, media_type=media_type, size=size, stamp=stamp)


def _stamp(stream: BinaryIO) -> tuple[int, str]:
    state = os.fstat(stream.fileno())
    return state.st_size, f"{state.st_ino:x}-{state.st_size:x}-{state.st_mtime_ns:x}"


async def _read_pieces(
    threads: WorkerThreads, context: Context, attachment: Attachment, start: int, stop: int
) -> AsyncGenerator[bytes]:
    """Yield the bytes in pieces, each from the file as it was found; where it has changed, the reply breaks off."""

    def read_piece(at: int) -> bytes:
        with context.view.open_bytes(attachment.path, max_bytes=MAX_ATTACHMENT_BYTES) as stream:
            if _stamp(stream)[1] != attachment.stamp:
                return b""
            _ = stream.seek(at)
            return stream.read(min(_PIECE_BYTES, stop - at))

    for at in range(start, stop, _PIECE_BYTES):
        piece = await threads.run("read", partial(read_piece, at))
        if not piece:
            return
        yield piece


_TAG: Final = "blocks"
_PATH: Final = Parameter(name="path", doc="Path of an existing note.", required=True)
_IDS: Final = Parameter(name="ids", doc="Ids of blocks; `all` alone for every one.", kind="texts", required=True)
_HASH: Final = Parameter(
    name="hash", doc="The note's hash as it was listed: another state of it is left alone.", maximum=200
)
_DRY_RUN: Final = Parameter(name="dry_run", doc="Report what would happen, and change nothing.", kind="flag")
_DRAW_PARAMETERS: Final = (_DRY_RUN, VAULT_PARAMETER)
_LIST_PARAMETERS: Final = (_PATH, VAULT_PARAMETER)
_HUNKS: Final = Parameter(
    name="hunks", doc="Ids of the hunks whose new text the notes have now.", kind="texts", required=True
)
_APPLIED_PARAMETERS: Final = (_HUNKS, VAULT_PARAMETER)
_DECIDE_PARAMETERS: Final = (_PATH, _IDS, _HASH, _DRY_RUN, VAULT_PARAMETER)
WRITE_CONTENT: Final = openapi.json_content({"status": {"enum": ["applied", "planned"]}})


def mount_blocks(hub: Hub, threads: WorkerThreads) -> Mount:
    """Create the mount for ``/blocks``, and for drawing a proposal into its notes.

    Args:
        hub: The vaults; the caller closes it.
        threads: Where notes are read and written; the caller closes them.
    """
    routes = _BlockRoutes(hub=hub, threads=threads)
    bind = openapi.bind_route
    proposal = "/proposals/{proposal_id}"
    applied_content = openapi.json_content({"id": STRING, "status": STRING})
    specs = (
        bind("POST", f"{proposal}/draw", "proposals", routes.draw, _DRAW_PARAMETERS, WRITE_CONTENT),
        bind("POST", f"{proposal}/applied", "proposals", routes.record_applied, _APPLIED_PARAMETERS, applied_content),
        bind("GET", "/blocks", _TAG, routes.list_all, _LIST_PARAMETERS, openapi.type_content(PendingBlockList)),
        bind("POST", "/blocks/accept", _TAG, routes.accept, _DECIDE_PARAMETERS, WRITE_CONTENT),
        bind("POST", "/blocks/reject", _TAG, routes.reject, _DECIDE_PARAMETERS, WRITE_CONTENT),
    )
    return Mount(routes=[*map(openapi.make_route, specs)])


@dataclass(frozen=True, slots=True, kw_only=True)
class _BlockRoutes:
    """The handlers of requests about pending edits in notes."""

    hub: Hub
    threads: WorkerThreads

    async def draw(self, request: Request, args: RequestArguments) -> Response:
        """Show the open parts of a proposal as blocks in its notes.

        What can't be a block, such as a change of properties, stays in the proposal; `notes` names it. Only a person
        may.
        """
        proposal_id = str(request.path_params["proposal_id"])
        return await self._write(
            request,
            args,
            "put blocks into notes",
            lambda context: proposals.show_proposal_in_notes(context, proposal_id),
        )

    async def record_applied(self, request: Request, args: RequestArguments) -> Response:
        """Record that an editor with unsaved text applied hunks itself.

        The saved notes must have the new text. Only a person may.
        """
        proposal_id = str(request.path_params["proposal_id"])

        def record(context: Context) -> Mapping[str, object]:
            proposal = context.reviewer.record_applied(proposal_id, args.texts("hunks") or ())
            return {"success": True, "id": proposal.id, "status": proposal.status}

        return await self._write(request, args, "record what an editor applied", record)

    async def list_all(self, request: Request, args: RequestArguments) -> Response:
        """List the blocks of pending edits in a note.

        Also those of other programs, which belong to no proposal.
        """
        path = args.text("path")
        return security.JsonReply(
            await self.threads.run("read", lambda: proposals.list_blocks(self._context(request, args), path))
        )

    async def accept(self, request: Request, args: RequestArguments) -> Response:
        """Put the new text of blocks in their places.

        All of them or none. Only a person may.
        """
        path, note_hash, ids = args.text("path"), args.text("hash"), args.texts("ids") or ()
        return await self._write(
            request,
            args,
            "accept blocks",
            lambda context: proposals.resolve_blocks(context, path, accept=ids, base=note_hash),
        )

    async def reject(self, request: Request, args: RequestArguments) -> Response:
        """Put the old text of blocks back in their places.

        All of them or none. Only a person may.
        """
        path, note_hash, ids = args.text("path"), args.text("hash"), args.texts("ids") or ()
        return await self._write(
            request,
            args,
            "reject blocks",
            lambda context: proposals.resolve_blocks(context, path, reject=ids, base=note_hash),
        )

    async def _write(
        self, request: Request, args: RequestArguments, action: str, work: Callable[[Context], Mapping[str, object]]
    ) -> Response:
        """Do in a thread, on behalf of the request's client, what only persons may do.

        Args:
            request: The request.
            args: Its arguments.
            action: What is done, for the error that refuses it: ``accept blocks``.
            work: Does it, and returns the reply.

        Raises:
            RefusedError: The client isn't a person.
        """
        security.check_person(self.hub.settings, request.scope, action)
        options = SubmitOptions(dry_run=args.flag("dry_run") is True)

        def write() -> Mapping[str, object]:
            return work(replace(self._context(request, args), submit_options=options))

        return security.JsonReply(await self.threads.run("write", write))

    def _context(self, request: Request, args: RequestArguments) -> Context:
        """Open the context of the request's client and vault; called in a thread."""
        return self.hub.context(client=security.client_of(request.scope), vault=args.text("vault"))

"""Serve pending edits inside notes: draw, list, accept and reject blocks; record what an editor applied itself."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

from starlette.requests import Request
from starlette.responses import Response

from knapper.changes.writer import SubmitOptions
from knapper.server import replies, security
from knapper.server.http import binding, openapi
from knapper.server.http.app import Mount
from knapper.server.http.binding import VAULT_PARAMETER, Parameter
from knapper.server.http.openapi import RouteSpec
from knapper.tools import proposals

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from knapper.app import Hub
    from knapper.server.http.binding import Endpoint, RequestArguments
    from knapper.server.workers import WorkerThreads, WorkKind
    from knapper.tools.context import Context
    from knapper.tools.shapes import Answer

    BlockHandler = Callable[[Context, Request, RequestArguments], Answer]
    """Does what a route is for, in a thread, on behalf of the request's client."""

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

_STRING: Final[Mapping[str, Any]] = {"type": "string"}
_BLOCK_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "id": _STRING,
        "type": {"type": ["string", "null"], "description": "What its edit does: add, delete or replace."},
        "line": {"type": "integer"},
        "before": _STRING,
        "after": _STRING,
        "problem": {"type": "string", "description": "Why it can't be decided, such as that it was edited by hand."},
    },
    "required": ["id", "type", "line", "before", "after"],
}
LIST_CONTENT: Final = openapi.json_content(
    {
        "path": _STRING,
        "hash": {"type": "string", "description": "Of the whole note."},
        "results": {"type": "array", "items": _BLOCK_SCHEMA},
        "total": {"type": "integer"},
    }
)
WRITE_CONTENT: Final = openapi.json_content({"status": {"enum": ["applied", "planned"]}})


def mount_blocks(hub: Hub, threads: WorkerThreads) -> Mount:
    """Create the mount for ``/blocks``, and for drawing a proposal into its notes.

    Args:
        hub: The vaults; the caller closes it.
        threads: Where notes are read and written; the caller closes them.
    """
    endpoint = partial(_make_endpoint, hub, threads)
    specs = (*_proposal_specs(endpoint), *_block_specs(endpoint))
    return Mount(routes=[*map(openapi.make_route, specs)])


def _proposal_specs(endpoint: Callable[..., Endpoint]) -> Sequence[RouteSpec]:
    draw_description = "What can't be a block, such as a change of properties, stays in the proposal; `notes` names it."
    return (
        RouteSpec(
            "POST",
            "/proposals/{proposal_id}/draw",
            "proposals",
            "Show the open parts of a proposal as blocks in its notes.",
            endpoint(_draw, _DRAW_PARAMETERS, "put blocks into notes"),
            f"{draw_description} Only a person may.",
            _DRAW_PARAMETERS,
            WRITE_CONTENT,
        ),
        RouteSpec(
            "POST",
            "/proposals/{proposal_id}/applied",
            "proposals",
            "Record that an editor with unsaved text applied hunks itself.",
            endpoint(_record_applied, _APPLIED_PARAMETERS, "record what an editor applied"),
            "The saved notes must have the new text. Only a person may.",
            _APPLIED_PARAMETERS,
            openapi.json_content({"id": _STRING, "status": _STRING}),
        ),
    )


def _block_specs(endpoint: Callable[..., Endpoint]) -> Sequence[RouteSpec]:
    decide_description = "All of them or none. Only a person may."
    return (
        RouteSpec(
            "GET",
            "/blocks",
            _TAG,
            "List the blocks of pending edits in a note.",
            endpoint(_list, _LIST_PARAMETERS, ""),
            "Also those of other programs, which belong to no proposal.",
            _LIST_PARAMETERS,
            LIST_CONTENT,
        ),
        RouteSpec(
            "POST",
            "/blocks/accept",
            _TAG,
            "Put the new text of blocks in their places.",
            endpoint(partial(_decide, "accept"), _DECIDE_PARAMETERS, "accept blocks"),
            decide_description,
            _DECIDE_PARAMETERS,
            WRITE_CONTENT,
        ),
        RouteSpec(
            "POST",
            "/blocks/reject",
            _TAG,
            "Put the old text of blocks back in their places.",
            endpoint(partial(_decide, "reject"), _DECIDE_PARAMETERS, "reject blocks"),
            decide_description,
            _DECIDE_PARAMETERS,
            WRITE_CONTENT,
        ),
    )


def _make_endpoint(
    hub: Hub, threads: WorkerThreads, work: BlockHandler, parameters: tuple[Parameter, ...], persons_act: str
) -> Endpoint:
    """Create an endpoint; *persons_act* says what only persons may do, and is empty for what everybody may."""
    kind: WorkKind = "write" if persons_act else "read"

    async def endpoint(request: Request) -> Response:
        args = await binding.read_arguments(request, parameters)
        if persons_act:
            security.check_person(hub.settings, request.scope, persons_act)
        client = security.client_of(request.scope)

        def carry_out() -> Answer:
            options = SubmitOptions(dry_run=args.flag("dry_run") is True)
            context = hub.context(client=client, vault=args.text("vault"))
            return work(replace(context, submit_options=options), request, args)

        return replies.JsonReply(await threads.run(kind, carry_out))

    return endpoint


def _draw(context: Context, request: Request, _: RequestArguments) -> Answer:
    return proposals.show_proposal_in_notes(context, str(request.path_params["proposal_id"]))


def _record_applied(context: Context, request: Request, args: RequestArguments) -> Answer:
    proposal_id = str(request.path_params["proposal_id"])
    proposal = context.reviewer.record_applied(proposal_id, args.texts("hunks") or ())
    return {"success": True, "id": proposal.id, "status": proposal.status}


def _list(context: Context, _: Request, args: RequestArguments) -> Answer:
    return proposals.list_blocks(context, args.text("path"))


def _decide(choice: Literal["accept", "reject"], context: Context, _: Request, args: RequestArguments) -> Answer:
    chosen = args.texts("ids") or ()
    accepted, rejected = (chosen, ()) if choice == "accept" else ((), chosen)
    return proposals.resolve_blocks(
        context, args.text("path"), accept=accepted, reject=rejected, base=args.text("hash")
    )

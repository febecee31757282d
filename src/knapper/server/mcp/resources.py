"""Offer notes, the vault's status and what waits as resources."""

import json
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath
from typing import Any, Final
from urllib.parse import quote

import mcp_types
from fastmcp.resources import ResourceContent, ResourceResult
from fastmcp.resources.base import Resource
from fastmcp.resources.security import ResourceSecurity
from fastmcp.resources.template import ResourceTemplate
from fastmcp.server.completions import CompletionReference, CompletionValues
from fastmcp.server.providers.base import Provider
from mcp.shared.exceptions import MCPError
from pydantic import AnyUrl, PrivateAttr

from knapper.errors import CallerError, KnapError
from knapper.server.mcp.callers import Desk
from knapper.tools.context import Context
from knapper.tools.registry import VaultOpener

NOTE: Final = "vault://{vault}/notes/{path*}"
PROPOSAL: Final = "vault://{vault}/proposals/{proposal_id}"
_LIMIT: Final = 100
"""Values that one completion gives at most."""
_OWN: Final = ResourceSecurity(exempt_params={"path"})
"""The view checks paths as for each tool; the library would take ``a:b.md`` for a Windows drive."""
_META: Final = {"knapper/untrusted": True}
_KINDS: Final = {".md": "text/markdown", ".canvas": "application/json"}
"""What a file's text is, by how its name ends; all other text is plain."""


class _Status(Resource):
    """Tell how a vault's index stands."""

    _desk: Desk = PrivateAttr()
    _vault: str = PrivateAttr()

    @classmethod
    def of(cls, vault: str, desk: Desk) -> "_Status":
        made = cls(
            uri=AnyUrl(f"vault://{quote(vault, safe='')}/status"),  # a folder's name may hold anything
            name=f"Status of {vault}",
            description="How many notes the index holds, and what it may miss.",
            mime_type="application/json",
        )
        made._vault, made._desk = vault, desk
        return made

    async def read(self) -> ResourceResult:
        def work(open_vault: VaultOpener) -> str:
            from knapper.tools import notes  # noqa: PLC0415 - the handshake needn't pay for it

            return json.dumps(notes.vault_status(open_vault(self._vault)), ensure_ascii=False)

        return _content(await _work(self._desk, work), "application/json")


class Resources(Provider):
    """List each vault's status, and the templates of what can be asked for by name."""

    def __init__(self, vaults: Sequence[str], desk: Desk) -> None:
        """Take the names of the vaults."""
        super().__init__()
        self._desk = desk
        self._static = [_Status.of(vault, desk) for vault in vaults]
        self._templates = [
            ResourceTemplate.from_function(
                self._note,
                NOTE,
                name="Note",
                description="A note as it stands.",
                mime_type="text/markdown",
                security=_OWN,
            ),
            ResourceTemplate.from_function(
                self._proposal,
                PROPOSAL,
                name="Proposal",
                description="What a proposal would change, as a unified diff.",
                mime_type="text/x-diff",
            ),
        ]

    async def _list_resources(self) -> Sequence[Resource]:
        return self._static

    async def _list_resource_templates(self) -> Sequence[ResourceTemplate]:
        return self._templates

    async def _note(self, vault: str, path: str) -> ResourceResult:
        def work(open_vault: VaultOpener) -> str:
            from knapper.tools import answers, reading  # noqa: PLC0415 - the handshake needn't pay for the parser
            from knapper.vault import parser  # noqa: PLC0415 - the same

            context = open_vault(vault)
            note = reading.read_note(context, path)
            _ = answers.mark_if_foreign(context, note)
            return parser.decode_text(note.raw)

        return _content(await _work(self._desk, work), _KINDS.get(PurePosixPath(path).suffix.casefold(), "text/plain"))

    async def _proposal(self, vault: str, proposal_id: str) -> ResourceResult:
        def work(open_vault: VaultOpener) -> str:
            from knapper.tools import proposals  # noqa: PLC0415 - the handshake needn't pay for it

            shown: Any = proposals.show_proposal(open_vault(vault), proposal_id)
            return "".join(file["diff"] for file in shown["files"])

        return _content(await _work(self._desk, work), "text/x-diff")


class Completer:
    """Complete the arguments of templates and prompts."""

    def __init__(self, vaults: Sequence[str], desk: Desk) -> None:
        """Take the names of the vaults."""
        self._vaults = vaults
        self._desk = desk

    async def __call__(
        self,
        reference: CompletionReference,
        argument: mcp_types.CompletionArgument,
        context: mcp_types.CompletionContext | None,
    ) -> CompletionValues:
        """Give the values that begin with, or hold, what was typed."""
        del reference
        given = (context.arguments if context else None) or {}
        vault = given.get("vault", "")
        if argument.name == "vault":
            return [name for name in self._vaults if name.startswith(argument.value)]
        find = {"path": _paths, "note": _paths, "proposal_id": _waiting}.get(argument.name)
        if find is None:
            return None
        try:
            found = await self._desk.work(lambda open_vault: find(open_vault(vault), argument.value))
        except KnapError:
            return None
        return mcp_types.Completion(values=found[:_LIMIT], total=len(found), has_more=len(found) > _LIMIT)


def _paths(context: Context, typed: str) -> list[str]:
    wanted = typed.casefold()
    found = [path for path in context.index.store.known() if wanted in path.casefold() and context.sees(path)]
    return sorted(found, key=lambda path: (not path.casefold().startswith(wanted), path))


def _waiting(context: Context, typed: str) -> list[str]:
    from knapper.tools import proposals  # noqa: PLC0415 - the handshake needn't pay for it

    answer: Any = proposals.list_proposals(context, "open")
    return [one["id"] for one in answer["results"] if one["id"].startswith(typed)]


def _content(text: str, kind: str) -> ResourceResult:
    return ResourceResult(contents=[ResourceContent(text, mime_type=kind, meta=_META)], meta=_META)


async def _work(desk: Desk, do: Callable[[VaultOpener], str]) -> str:
    try:
        return await desk.work(do)
    except KnapError as error:
        code = mcp_types.INVALID_PARAMS if isinstance(error, CallerError) else mcp_types.INTERNAL_ERROR
        raise MCPError(code=code, message=error.message, data=error.as_dict()) from None

"""Show persons which clients and runs only propose because of what they have read, and trust them again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from knapper.errors import BadInput, NotFound, RefusedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from knapper.changes.proposals.taint import Taint
    from knapper.jsontypes import JSONValue
    from knapper.tools.context import Context


def list_restricted(context: Context) -> Sequence[Taint]:
    """List the restricted clients and runs: clients that call without a session first, then the newest.

    Raises:
        RefusedError: The client isn't a person.
    """
    writer = context.writer
    if not writer.grants.is_person:
        raise RefusedError(
            "only a person is shown who has read foreign text",
            hint="use `knap trust`, or the page",
            code="persons_only",
        )
    return sorted(writer.taints.entries(), key=lambda taint: bool(taint.run))


def trust(context: Context, *, client: str = "", run: str = "", everyone: bool = False) -> Sequence[Taint]:
    """Lift the restriction of a client, of one of its runs, or of all; proposals that were made stay as they are.

    Args:
        context: A vault, as the person sees it; what is lifted holds for all vaults.
        client: The client's name.
        run: Only this run or session of the client; empty for all of its own.
        everyone: Lift all restrictions.

    Returns:
        What was lifted.

    Raises:
        RefusedError: The client of the context isn't a person.
        NotFound: That client or run isn't restricted (code ``not_tainted``).
        BadInput: Nobody is named, or a client beside all.
    """
    if bool(client) == everyone:
        raise BadInput("it isn't clear who is to be trusted", hint="name one client, or all")
    restricted = list_restricted(context)
    writer = context.writer
    if everyone:
        writer.taints.clear_all(by=writer.grants)
        return restricted
    named = [taint for taint in restricted if taint.client == client and run in {"", taint.run}]
    if not named:
        clients = ", ".join(dict.fromkeys(taint.client for taint in restricted)) or "nobody"
        raise NotFound(f"'{client}' isn't held to proposals", hint=f"who is: {clients}", code="not_tainted")
    for taint in named:
        _ = writer.taints.clear(taint.client, taint.run, by=writer.grants)
    return named


def describe(taint: Taint) -> dict[str, JSONValue]:
    """Return a restriction in the shape that every surface shows."""
    return {
        "client": taint.client,
        "run": taint.run,
        "since": taint.at.isoformat(timespec="seconds"),
        "until": taint.until and taint.until.isoformat(timespec="seconds"),
        "source": taint.source,
        "inherited": taint.inherited,
    }

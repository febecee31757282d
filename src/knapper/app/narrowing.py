"""Keep an agent within what its client may see and change, beside its own rules."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from knapper.errors import SetupError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from knapper.changes.writer import Writer
    from knapper.config import Client
    from knapper.tools.context import Context
    from knapper.vault.access import EditableScope, Grants, Outcome, Policy


_STRICTNESS: Final[Sequence[Outcome]] = ("apply", "propose", "refuse")
_MOST_LISTS: Final = 2


def narrowed(context: Context, asker: Client) -> Context:
    """Give a vault as an agent sees it that works for a client.

    Args:
        context: The vault as the agent sees it by its own rules.
        asker: The client, whose rules hold too.

    Raises:
        SetupError: The lists of what both may see, or write, can't hold at once.
    """
    policy = _policy(context.view.policy, asker)
    view = context.view.seen_by(policy)
    open_writer, open_vault = context.open_writer, context.scripting.open_vault

    def writer() -> Writer:
        found = open_writer()
        taints = found.taints if asker.grants.is_person else found.taints.heard_by(asker.name)
        desk = replace(found.desk, view=view)
        return replace(found, grants=grants(found.grants, asker.grants), desk=desk, taints=taints)

    def other(name: str) -> Context:
        return narrowed(open_vault(name), asker)

    scripting = replace(context.scripting, open_vault=other)
    return replace(context, view=view, open_writer=writer, scripting=scripting)


def covers(wider: Policy, narrower: Policy) -> bool:
    """Tell whether whoever sees by one policy sees all that is seen by another one, as far as the rules' words tell.

    Rules are compared, not what they match: the answer may be no where it could be yes, and never the other way round.
    """
    if any(pattern.startswith("!") for pattern in narrower.hidden):
        hides = wider.hidden == narrower.hidden
    else:
        hides = set(wider.hidden) <= set(narrower.hidden)
    known = {narrower.read, narrower.within}
    return hides and all(lines in known for lines in (wider.read, wider.within) if lines)


def grants(own: Grants, asker: Grants) -> Grants:
    """Join what an agent and its client may change: only what both may, in the way of the stricter one.

    Raises:
        SetupError: Both name where they may write, and not the same.
    """
    if own.write and asker.write and own.write != asker.write:
        raise _unjoined("write", asker.client)
    return replace(
        own,
        capabilities=own.capabilities & asker.capabilities,
        write=own.write or asker.write,
        read_only=(*own.read_only, *asker.read_only),
        is_read_only=own.is_read_only or asker.is_read_only,
        editable=_editable(own.editable, asker.editable),
        small=max(own.small, asker.small, key=_STRICTNESS.index),
        large=max(own.large, asker.large, key=_STRICTNESS.index),
        guarded=(*own.guarded, *asker.guarded),
        behalf=own.behalf or ("" if asker.is_person else asker.client),
    )


def _editable(own: EditableScope, asker: EditableScope) -> EditableScope:
    """Join two scopes; neither of *linked* and *context* holds the other, but the open note lies in both."""
    if own == "all":
        return asker
    return own if asker in {own, "all"} else "current"


def _policy(own: Policy, asker: Client) -> Policy:
    lists = list(dict.fromkeys(filter(None, (own.read, own.within, asker.read))))
    if len(lists) > _MOST_LISTS:
        raise _unjoined("read", asker.name)
    read, within = (*lists, (), ())[:_MOST_LISTS]
    return replace(own, read=read, within=within, hidden=(*own.hidden, *asker.hidden))


def _unjoined(name: str, client: str) -> SetupError:
    return SetupError(
        f"chats of the client '{client}' can't hold to its own '{name}', the agent's and the vault's at once",
        hint=f"say '{name}' in [clients.{client}] or in [clients.agent], and take away with 'hidden' or 'read_only'",
        code="config_invalid",
    )

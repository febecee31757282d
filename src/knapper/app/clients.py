"""Open vaults for an agent that acts for clients, within the rules of all of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from knapper.changes.proposals.taint import Reader
from knapper.changes.writer import SubmitOptions
from knapper.errors import NotFound, SetupError
from knapper.vault import access

if TYPE_CHECKING:
    from collections.abc import Iterable

    from knapper.app.hub import Hub
    from knapper.changes.writer import Writer
    from knapper.config import ClientSettings
    from knapper.tools.context import Context
    from knapper.vault.access import EditableScope, Grants, Policy


_MAX_READ_LISTS: Final = 2


def narrow_context(context: Context, asker: ClientSettings, asker_run: str = "") -> Context:
    """Return a vault as an agent that works for a client sees it.

    Args:
        context: The vault as the agent sees it by its own rules.
        asker: The client, whose rules hold too.
        asker_run: The session or connection in which it hears of the answer; empty for none.

    Raises:
        NotFound: The client may not open this vault.
        SetupError: The lists of what both may see, or write, can't hold at once.
    """
    if not asker.may_open(context.vault):
        raise NotFound(f"there is no vault '{context.vault}'", hint="name one that you may open", code="no_vault")
    policy = _join_policies(context.view.policy, asker)
    view = context.view.with_policy(policy)
    open_writer, open_vault = context.open_writer, context.scripting.open_vault

    def writer() -> Writer:
        agent_writer = open_writer()
        taints = agent_writer.taints
        if not asker.grants.is_person:
            taints = taints.shared_with(Reader(client=asker.name, run=asker_run))
        draft_context = replace(agent_writer.context, view=view)
        return replace(
            agent_writer, grants=join_grants(agent_writer.grants, asker.grants), context=draft_context, taints=taints
        )

    def other(name: str) -> Context:
        return narrow_context(open_vault(name), asker, asker_run)

    scripting = replace(context.scripting, open_vault=other)
    return replace(context, view=view, open_writer=writer, scripting=scripting)


def policy_covers(wider: Policy, narrower: Policy) -> bool:
    """Return whether one policy shows at least everything that another shows, judged by the text of their rules.

    Rules are compared, not what they match: the answer may be no where it could be yes, and never the other way round.
    """
    if any(pattern.startswith("!") for pattern in narrower.hidden):
        hides_no_more = wider.hidden == narrower.hidden
    else:
        hides_no_more = set(wider.hidden) <= set(narrower.hidden)
    narrower_lists = {narrower.read, narrower.within}
    return hides_no_more and all(lines in narrower_lists for lines in (wider.read, wider.within) if lines)


def join_grants(own: Grants, asker: Grants) -> Grants:
    """Combine the rights of an agent and its client: only what both may change, under the stricter rule.

    Raises:
        SetupError: Both restrict where they may write, and differ.
    """
    if own.write and asker.write and own.write != asker.write:
        raise _conflict_error("write", asker.client)
    return replace(
        own,
        capabilities=own.capabilities & asker.capabilities,
        write=own.write or asker.write,
        read_only=(*own.read_only, *asker.read_only),
        is_read_only=own.is_read_only or asker.is_read_only,
        editable=_join_editable(own.editable, asker.editable),
        small=access.stricter(own.small, asker.small),
        large=access.stricter(own.large, asker.large),
        max_files=min(own.max_files, asker.max_files),
        guarded=(*own.guarded, *asker.guarded),
        behalf=own.behalf or ("" if asker.is_person else asker.client),
    )


def _join_editable(own: EditableScope, asker: EditableScope) -> EditableScope:
    """Combine two scopes; neither of *linked* and *context* includes the other, but both include the open note."""
    if own == "all":
        return asker
    return own if asker in {own, "all"} else "current"


def _join_policies(own: Policy, asker: ClientSettings) -> Policy:
    read_lists = list(dict.fromkeys(filter(None, (own.read, own.within, asker.read))))
    if len(read_lists) > _MAX_READ_LISTS:
        raise _conflict_error("read", asker.name)
    read, within = (*read_lists, (), ())[:_MAX_READ_LISTS]
    return replace(own, read=read, within=within, hidden=(*own.hidden, *asker.hidden))


def _conflict_error(name: str, client: str) -> SetupError:
    return SetupError(
        f"chats of the client '{client}' can't hold to its own '{name}', the agent's and the vault's at once",
        hint=f"say '{name}' in [clients.{client}] or in [clients.agent], and take away with 'hidden' or 'read_only'",
        code="config_invalid",
    )


AGENT_CLIENT: Final = "agent"
"""Whose policy holds for what a model does."""


def open_as_agent(hub: Hub, vault: str, run_id: str, clients: Iterable[str], asker_run: str = "") -> Context:
    """Open a vault for a run or a turn.

    Args:
        hub: Holds the vaults.
        vault: The vault's name.
        run_id: The run's, or the turn's.
        clients: For whom the agent acts; empty for nobody but itself.
        asker_run: The session or connection in which they hear of the answer; empty for none.

    Raises:
        NotFound: One of them may not open this vault.
        SetupError: The rules of all can't be combined.
    """
    context = hub.context(client=AGENT_CLIENT, vault=vault, submit_options=SubmitOptions(run=run_id))
    for name in dict.fromkeys(clients):
        context = narrow_context(context, hub.settings.client(name), asker_run)
    return context


def check_can_act(hub: Hub, vault: str, client: str) -> None:
    """Check that an agent can act for a client in a vault, before any work starts.

    Raises:
        SetupError: The rules of both can't be combined.
    """
    _ = open_as_agent(hub, vault, "", (client,))
    _ = join_grants(hub.settings.client(AGENT_CLIENT).grants, hub.settings.client(client).grants)

"""Tell which notes have changed since a run read them, and which nodes rest on these; no model is needed for that."""

from collections.abc import Iterable, Sequence

from knapper.agents.run.nodes import Node, Source
from knapper.errors import KnapError
from knapper.tools.context import Context


def changed(context: Context, sources: Iterable[Source]) -> list[str]:
    """List the notes that aren't as they were, those of other vaults with their vault's name before them.

    Args:
        context: The run's vault, as the run sees it; what is gone, or hidden by now, isn't as it was.
        sources: The notes, each with the hash that it had.
    """
    known = dict.fromkeys((source.vault, source.path, source.hash) for source in sources)
    return [f"{vault}:{path}" if vault else path for vault, path, was in known if _hash(context, vault, path) != was]


def stale(context: Context, nodes: Sequence[Node]) -> dict[str, list[str]]:
    """List the nodes whose notes have changed, each with those notes."""
    found = ((node.id, changed(context, node.sources)) for node in nodes if node.answer)
    return {node_id: notes for node_id, notes in found if notes}


def of_vault(context: Context, name: str) -> Context:
    """Give the vault of a source."""
    own = not name or name == context.vault
    return context if own else context.scripting.open_vault(name)


def _hash(context: Context, vault: str, path: str) -> str:
    try:
        return of_vault(context, vault).view.read(path).hash
    except KnapError:
        return ""

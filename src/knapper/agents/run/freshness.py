"""Tell which notes have changed since a run read them, and which nodes rest on these; no model is needed for that."""

from collections.abc import Iterable, Sequence

from knapper.agents.run.nodes import ALL, Node, Source
from knapper.errors import KnapError
from knapper.tools import notes
from knapper.tools.context import Context


def changed(context: Context, sources: Iterable[Source]) -> list[str]:
    """List the notes that aren't as they were, those of other vaults with their vault's name before them.

    Args:
        context: The run's vault, as the run sees it; what is gone, or hidden by now, isn't as it was.
        sources: The notes, each with the hash that it had.
    """
    return _changed(_Hashes(context), sources)


def stale(context: Context, nodes: Sequence[Node]) -> dict[str, list[str]]:
    """List the nodes whose notes have changed, each with those notes; `ALL` for one that found none before."""
    hashes = _Hashes(context)
    found = ((node.id, _changed(hashes, node.sources)) for node in nodes if node.answer)
    return {node_id: notes for node_id, notes in found if notes}


def everything(context: Context, vault: str = "") -> Source:
    """Give all notes of a vault as they are: what a node rests on that found none of them.

    Args:
        context: The run's vault, as the run sees it.
        vault: Another one's name.
    """
    return Source(vault=vault, path=ALL, hash=_Hashes(context).of(vault, ALL))


def of_vault(context: Context, name: str) -> Context:
    """Give the vault of a source."""
    own = not name or name == context.vault
    return context if own else context.scripting.open_vault(name)


class _Hashes:
    """Look up what each note is now, once."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._known: dict[tuple[str, str], str] = {}

    def of(self, vault: str, path: str) -> str:
        if (vault, path) not in self._known:
            self._known[vault, path] = self._look(vault, path)
        return self._known[vault, path]

    def _look(self, vault: str, path: str) -> str:
        try:
            context = of_vault(self._context, vault)
            return notes.fingerprint_notes(context) if path == ALL else context.view.read(path).hash
        except KnapError:
            return ""


def _changed(hashes: _Hashes, sources: Iterable[Source]) -> list[str]:
    known = dict.fromkeys((source.vault, source.path, source.hash) for source in sources)
    return [f"{vault}:{path}" if vault else path for vault, path, was in known if hashes.of(vault, path) != was]

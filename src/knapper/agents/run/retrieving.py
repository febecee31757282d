"""Find what a node needs, keep it, and ask a person where nothing was found and much depends on it."""

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from knapper.agents.run import freshness
from knapper.agents.run.asking import Account, Asker
from knapper.agents.run.cache import Cache
from knapper.agents.run.engine import Engine, Need
from knapper.agents.run.events import Checkpoint
from knapper.agents.run.nodes import GO_ON, SKIP, Asking, Found, Node, Source
from knapper.agents.run.records import Order
from knapper.agents.run.tree import Tree
from knapper.codemode.tasks import RegenerationBudget, Thresholds
from knapper.errors import RefusedError

OPTIONS: Final = (GO_ON, SKIP)
_ASKED: Final = "Go on with that, skip it, or say where to look?"
_SKIPPED: Final = "the person left it out"
_UNATTENDED: Final = "little was found for it, and nobody was there to be asked"


class Retrieving:
    """Retrieve for the nodes of one run."""

    def __init__(self, engine: Engine, order: Order, asker: Asker, cache: Cache, used: int = 0) -> None:
        """Take what the run works with.

        Args:
            engine: Retrieves, and asks the person.
            order: Says how.
            asker: The model.
            cache: Tells whether notes are as they were.
            used: Scripts that the run had written anew before.
        """
        self._engine = engine
        self._order = order
        self._asker = asker
        self._cache = cache
        self._context = cache.context
        self._known: tuple[int, Source] | None = None
        self._regenerations = RegenerationBudget(Thresholds().regens_per_run, used)

    async def find(self, tree: Tree, node: Node) -> None:
        """Find what a node needs; what a run that was cut short has found already counts, if the notes are the same.

        Raises:
            RefusedError: The person says that the node is to be left out.
            KnapError: It can't be looked for, or nothing is left for it.
        """
        if node.asking and node.asking.answer == SKIP:
            raise RefusedError(_SKIPPED, code="skipped")
        if node.found is not None and self._cache.is_current(node.found.all_sources):
            await self._settle(tree, node)
            return
        account = Account()
        before = node.spent
        base = await asyncio.to_thread(self._base)
        _ = tree.change(node.id, "retrieving", state="running")
        try:
            found = await self._ask(node, account)
        finally:
            node = tree.change(node.id, spent=before + account.spent)
        node = tree.change(node.id, found=await self._based(found, base))
        await self._settle(tree, node)
        tree.tell_usage()

    async def _settle(self, tree: Tree, node: Node) -> None:
        """Ask the person how to go on with a node for which little was found; without one, go on and say so."""
        if node.found is None or node.found.tier != "C" or (node.asking and node.asking.settled):
            return
        question = f"Little was found in the notes for '{node.name}', on which much depends. {_ASKED}"
        asking = node.asking or Asking(question=question, options=OPTIONS)
        if not asking.answer and self._engine.person is not None:
            point = _told(node, asking)
            node = tree.change(node.id, "asking", asking=asking)
            tree.tell(point)
            asking = replace(asking, answer=(await self._engine.person(point)).strip())
        asking = replace(asking, unattended=not asking.answer)
        node = tree.change(node.id, asking=asking)
        tree.tell(_told(node, asking))
        if asking.answer == SKIP:
            raise RefusedError(_SKIPPED, code="skipped")
        if asking.answer:
            await self._again(tree, node, asking.answer)
        notes = (*node.notes, _UNATTENDED) if asking.unattended else node.notes
        _ = tree.change(node.id, asking=replace(asking, settled=True), notes=notes)

    async def _again(self, tree: Tree, node: Node, word: str) -> None:
        """Look once more, with what the person said."""
        account = Account()
        before = node.spent
        base = await asyncio.to_thread(self._base)
        try:
            found = await self._ask(node, account, word)
        finally:
            node = tree.change(node.id, spent=before + account.spent)
        if found.context.strip() or not node.found:
            found = await self._based(found, base)
            _ = tree.change(node.id, found=replace(found, tier="C"))

    def _base(self) -> Source:
        """Give all notes as they are before they are looked through; worked out once for each state of the index."""
        _ = self._context.freshen(meaning=False)
        generation = self._context.index.store.generation()
        if self._known is None or self._known[0] != generation:
            self._known = (generation, freshness.everything(self._context))
        return self._known[1]

    async def _based(self, found: Found, base: Source) -> Found:
        """Have a node rest on all notes that found nothing, since a new one may say what it looked for.

        So does one whose script called tools: which notes these have read is not noted anywhere.
        """
        if not (found.is_empty or found.used_tools):
            return found
        others = [await asyncio.to_thread(freshness.everything, self._context, name) for name in found.others]
        return replace(found, reads=(*found.reads, base, *others))

    async def _ask(self, node: Node, account: Account, word: str = "") -> Found:
        need = Need(
            node=node,
            order=self._order,
            context=self._context,
            asker=self._asker,
            account=account,
            regenerations=self._regenerations,
            attended=self._engine.person is not None,
            word=word,
            checkpoint=node.found.checkpoint if node.found and word else "",
        )
        return await self._engine.retrieve(need)


def regenerated(nodes: Iterable[Node]) -> int:
    """Count the scripts that were written anew, as nodes remember."""
    found = (node.found for node in nodes)
    return sum(attempt.get("step") == "again" for one in found if one for attempt in one.attempts)


def _told(node: Node, asking: Asking) -> Checkpoint:
    return Checkpoint(
        node_id=node.id,
        id=node.found.checkpoint if node.found else "",
        question=asking.question,
        options=asking.options,
        answer=asking.answer,
        unattended=asking.unattended,
    )

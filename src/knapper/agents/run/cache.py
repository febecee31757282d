"""Give again what was made before from exactly the same: task, way, model, prompts, policy, and notes as they are."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from pydantic import TypeAdapter

from knapper.agents.run import freshness
from knapper.agents.run.engine import Engine
from knapper.agents.run.nodes import ANSWERED, Node, Source
from knapper.agents.run.planning import Judgement, Plan
from knapper.agents.run.records import Order
from knapper.agents.run.strategies import Strategy
from knapper.codemode import authoring
from knapper.tools import answers
from knapper.tools.context import Context

VERSION: Final = 2
"""Of how prompts are put together; another one makes all that was kept useless."""
_SOURCES: Final = TypeAdapter(tuple[Source, ...])
_NODE: Final = TypeAdapter(Node)


@dataclass(frozen=True, slots=True)
class Planned:
    """Hold what was decided about a task: whether it is split, and into what."""

    judgement: Judgement
    plan: Plan | None


_PLANNED: Final = TypeAdapter(Planned)


class Cache:
    """Find and keep answers and plans for one run."""

    def __init__(self, engine: Engine, order: Order, context: Context) -> None:
        """Take what all keys of the run have in common.

        Args:
            engine: Has the model and the prompts.
            order: What is done, and how.
            context: The vault, as the agent sees it.
        """
        self._store = engine.store
        self._order = order
        self.context = context
        texts = [engine.words.load(name) for name in ("judge", "plan", "answer", "join")]
        texts += authoring.prompt_texts() if order.code_mode else []
        self._common = [
            VERSION,
            engine.name,
            _digest([*texts, engine.prompts.load("repair")]),
            context.vault,
            context.view.policy.fingerprint,
            order.code_mode,
            order.profile,
            [[name, context.scripting.open_vault(name).view.policy.fingerprint] for name in order.also],
            *_beyond(order, context),
        ]

    def inputs(self, node: Node, strategy: Strategy, around: Iterable[Node]) -> str:
        """Identify all that a node is answered from, the notes apart.

        Args:
            node: Which.
            strategy: How it is done.
            around: What it builds on: its children, or the nodes that it depends on.
        """
        built_on = [[one.name, one.answer if one.state in ANSWERED else None, one.reason] for one in around]
        asked = node.asking.answer if node.asking else ""
        whole = self._order.task if node.task != self._order.task else ""
        ways = [strategy.name, strategy.prompt]
        return _digest(["answer", self._common, node.task, whole, ways, bool(node.split), built_on, asked])

    def answer(self, inputs: str) -> Node | None:
        """Give a node that was answered from the same inputs, if every note that it read is as it was."""
        if self._order.fresh:
            return None
        for sources, data in self._store.recall(inputs):
            if self.is_current(_SOURCES.validate_json(sources)):
                return _NODE.validate_json(data)
        return None

    def keep(self, node: Node) -> None:
        """Keep an answered node."""
        bare = replace(node, cached=False)
        self._store.remember(node.inputs, _SOURCES.dump_json(node.sources).decode(), _NODE.dump_json(bare).decode())

    def planned(self, task: str, ways: Iterable[str]) -> Planned | None:
        """Give what was decided about a task before."""
        if self._order.fresh:
            return None
        found = self._store.recall(self._plan_key(task, ways))
        return _PLANNED.validate_json(found[0][1]) if found else None

    def keep_plan(self, task: str, ways: Iterable[str], planned: Planned) -> None:
        """Keep what was decided about a task."""
        self._store.remember(self._plan_key(task, ways), "[]", _PLANNED.dump_json(planned).decode())

    def is_current(self, sources: Iterable[Source]) -> bool:
        """Tell whether notes are as they were; one that is gone, or hidden by now, isn't."""
        return not self.changed(sources)

    def changed(self, sources: Iterable[Source]) -> list[str]:
        """List the notes that aren't as they were, those of other vaults with their vault's name before them."""
        return freshness.changed(self.context, sources)

    def shown(self, sources: Iterable[Source]) -> None:
        """Remember, where others wrote some of the notes, that their text was read."""
        by_vault: dict[str, list[str]] = {}
        for source in sources:
            by_vault.setdefault(source.vault, []).append(source.path)
        for vault, paths in by_vault.items():
            answers.mark_shown_paths(freshness.of_vault(self.context, vault), paths)

    def _plan_key(self, task: str, ways: Iterable[str]) -> str:
        return _digest(["plan", self._common, task, list(ways)])


def _beyond(order: Order, context: Context) -> list[list[str]]:
    """Name what scripts may read beside the vaults: others who may not read it mustn't be told what came of it."""
    if order.profile == "strict":
        return []
    scripting = context.scripting
    return [[str(root) for root in scripting.roots], [*scripting.hosts]]


def _digest(data: object) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()

"""Decide whether a node is split, and into what: by limits first, then by the cache, then by a cheap question."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from knapper.agents.run import planning
from knapper.agents.run.asking import Account
from knapper.agents.run.cache import Planned
from knapper.agents.run.nodes import ROOT
from knapper.errors import BadInput, KnapError

if TYPE_CHECKING:
    from knapper.agents.run.asking import Asker
    from knapper.agents.run.cache import Cache
    from knapper.agents.run.course import Course
    from knapper.agents.run.nodes import Node
    from knapper.agents.run.planning import Plan
    from knapper.agents.run.tree import Tree

_CUT: Final = "budget_spent"


class Deciding:
    """Decide about the nodes of one run."""

    def __init__(self, course: Course, tree: Tree, asker: Asker, cache: Cache) -> None:
        """Take a run.

        Args:
            course: Its order and strategy.
            tree: Its nodes.
            asker: Asks its model.
            cache: Knows what was decided about the same tasks before.
        """
        self._course = course
        self._tree = tree
        self._asker = asker
        self._cache = cache

    async def decide(self, node: Node) -> Node:
        """Decide about a node, and put its children below it where it is split.

        Raises:
            KnapError: The budget is used up. A model that can't plan is no error: the node isn't split then.
        """
        tree = self._tree
        if why := self._forbidden(node):
            return tree.change(node.id, split=False, why=why)
        _ = tree.change(node.id, "deciding", state="running")
        account = Account()
        try:
            planned = await self._planned(node, account)
        except KnapError as error:
            if error.code == _CUT:
                raise
            return tree.change(node.id, split=False, why=f"it couldn't be planned: {error.message}")
        finally:
            _ = tree.change(node.id, spent=tree.get(node.id).spent + account.spent)
        node = tree.get(node.id)
        if node.id == ROOT and self._course.is_open:
            self._course.choose(planned.judgement.strategy)
        if planned.plan is None:
            return tree.change(node.id, split=False, why=planned.judgement.why)
        if len(planned.plan.parts) > self._room():  # others have split meanwhile
            return tree.change(node.id, split=False, why="the run has no room for more nodes")
        return self._adopted(node, planned.plan, planned.judgement.why)

    def _adopted(self, node: Node, plan: Plan, why: str) -> Node:
        grown, children = planning.adopt(node, plan)
        self._tree.grow(grown, children)
        return self._tree.change(node.id, "planned", why=why)

    async def _planned(self, node: Node, account: Account) -> Planned:
        """Give what was decided about the same task before, or ask."""
        room = self._room()
        ways = [
            self._course.run.order.strategy,
            self._course.strategy.skeleton,
            str(self._course.run.order.limits.depth - node.depth),
        ]
        known = self._cache.planned(node.task, ways)
        if known is not None and (known.plan is None or _fits(known.plan, room)):
            return known
        engine = self._course.engine
        judgement = await planning.judge(node, self._asker, engine.words, engine.strategies, account)
        plan = None
        if judgement.split:
            if self._course.is_open:
                self._course.choose(judgement.strategy)
            _ = self._tree.change(node.id, "planning")
            ask = planning.wanted(node, engine.words, self._course.strategy, room)
            plan = await planning.plan(node, self._asker, ask, account, room)
        planned = Planned(judgement, plan)
        self._cache.keep_plan(node.task, ways, planned)
        return planned

    def _forbidden(self, node: Node) -> str:
        """Say why a node can't be split; empty where it can."""
        if node.depth >= self._course.run.order.limits.depth:
            return f"it lies {node.depth} deep, and the run may go no deeper"
        if self._room() < planning.LEAST_PARTS:
            return "the run has no room for more nodes"
        if node.id != ROOT and not node.large:
            return "the plan takes it for one piece"
        return ""

    def _room(self) -> int:
        return min(planning.MOST_PARTS, self._course.run.order.limits.nodes - len(self._tree.all))


def _fits(plan: Plan, room: int) -> bool:
    try:
        planning.check(plan, room)
    except BadInput:
        return False
    return True

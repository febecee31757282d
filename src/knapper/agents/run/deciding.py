"""Decide whether a node is split, and into what: by limits first, then by the cache, then by a cheap question."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from knapper.agents.run import planning
from knapper.agents.run.asking import Account
from knapper.agents.run.cache import Planned
from knapper.agents.run.nodes import ROOT
from knapper.agents.run.strategies import AUTO
from knapper.errors import BadInput, KnapError

if TYPE_CHECKING:
    from knapper.agents.run.executor import Execution
    from knapper.agents.run.nodes import Node
    from knapper.agents.run.planning import Plan

_CUT: Final = "budget_spent"


async def decide(execution: Execution, node: Node) -> Node:
    """Decide about a node, and put its children below it where it is split.

    Raises:
        KnapError: The budget is used up. A model that can't plan is no error: the node isn't split then.
    """
    tree = execution.tree
    if why := _forbidden(execution, node):
        return tree.change(node.id, split=False, why=why)
    _ = tree.change(node.id, "deciding", state="running")
    account = Account()
    try:
        planned = await _planned(execution, node, account)
    except KnapError as error:
        if error.code == _CUT:
            raise
        return tree.change(node.id, split=False, why=f"it couldn't be planned: {error.message}")
    finally:
        _ = tree.change(node.id, spent=tree.get(node.id).spent + account.spent)
    node = tree.get(node.id)
    if node.id == ROOT and execution.run.order.strategy == AUTO:
        execution.choose(planned.judgement.strategy)
    if planned.plan is None:
        return tree.change(node.id, split=False, why=planned.judgement.why)
    if len(planned.plan.parts) > _room(execution):  # others have split meanwhile
        return tree.change(node.id, split=False, why="the run has no room for more nodes")
    return _adopted(execution, node, planned.plan, planned.judgement.why)


def _adopted(execution: Execution, node: Node, plan: Plan, why: str) -> Node:
    grown, children = planning.adopt(node, plan)
    execution.tree.grow(grown, children)
    return execution.tree.change(node.id, "planned", why=why)


async def _planned(execution: Execution, node: Node, account: Account) -> Planned:
    """Give what was decided about the same task before, or ask."""
    room = _room(execution)
    ways = [
        execution.run.order.strategy,
        execution.strategy.skeleton,
        str(execution.run.order.limits.depth - node.depth),
    ]
    known = execution.cache.planned(node.task, ways)
    if known is not None and (known.plan is None or _fits(known.plan, room)):
        return known
    engine = execution.engine
    judgement = await planning.judge(node, execution.asker, engine.words, engine.strategies, account)
    plan = None
    if judgement.split:
        name = execution.run.order.strategy
        if name == AUTO:
            execution.choose(judgement.strategy)
        _ = execution.tree.change(node.id, "planning")
        ask = planning.wanted(node, engine.words, execution.strategy, room)
        plan = await planning.plan(node, execution.asker, ask, account, room)
    planned = Planned(judgement, plan)
    execution.cache.keep_plan(node.task, ways, planned)
    return planned


def _forbidden(execution: Execution, node: Node) -> str:
    """Say why a node can't be split; empty where it can."""
    if node.depth >= execution.run.order.limits.depth:
        return f"it lies {node.depth} deep, and the run may go no deeper"
    if _room(execution) < planning.LEAST_PARTS:
        return "the run has no room for more nodes"
    if node.id != ROOT and not node.large:
        return "the plan takes it for one piece"
    return ""


def _room(execution: Execution) -> int:
    return min(planning.MOST_PARTS, execution.run.order.limits.nodes - len(execution.tree.all))


def _fits(plan: Plan, room: int) -> bool:
    try:
        planning.check(plan, room)
    except BadInput:
        return False
    return True

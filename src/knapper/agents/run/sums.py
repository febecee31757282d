"""Sum up a run from its nodes: what it cost, what is missing, and the event that ends it."""

from collections.abc import Iterable, Sequence
from typing import cast

from knapper.agents import usage
from knapper.agents.events import Usage
from knapper.agents.run.events import RunDone
from knapper.agents.run.nodes import ANSWERED, ROOT, Node
from knapper.agents.run.records import Run
from knapper.codemode.model import ModelSpend
from knapper.jsontypes import JSONValue


def spent(nodes: Iterable[Node]) -> ModelSpend:
    """Add up what nodes cost: each counts itself alone, so nothing counts twice."""
    return sum((node.spent for node in nodes), ModelSpend())


def used(nodes: Iterable[Node]) -> Usage:
    """Give the event that tells what nodes cost."""
    return usage.event(spent(nodes))


def lost(nodes: Iterable[Node]) -> list[Node]:
    """List the nodes below the root without an answer, or with half of one for a reason of their own."""
    return [
        node
        for node in nodes
        if node.id != ROOT and (node.state not in ANSWERED or (node.state == "partial" and not node.children))
    ]


def done(run: Run, nodes: Sequence[Node]) -> RunDone:
    """Give the event that ends a run."""
    return RunDone(
        run_id=run.id,
        state=run.state,
        answer=run.answer,
        reasons=run.reasons,
        failed=[node.brief() for node in lost(nodes)],
        citations=[cast("JSONValue", one) for one in run.citations],
        removed=[cast("JSONValue", one) for one in run.removed],
        nodes=len(nodes),
        cached=sum(node.cached for node in nodes),
        usage=spent(nodes).as_dict(),
        model=run.model,
    )

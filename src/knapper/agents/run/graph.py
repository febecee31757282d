"""Order the nodes of a plan: who waits for whom, who is blocked, and on whom much depends. No model, no disk."""

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Final

from knapper.agents.run.nodes import ANSWERED, ENDED, Impact, Node
from knapper.errors import BadInput

IMPACT_DEPTH: Final = 1
"""How deep a node can lie that much depends on."""
_NEEDED_BY: Final = 0.5
"""Share of the nodes beside it that need it."""
_LEAST_OTHERS: Final = 2
"""Of fewer, half says nothing."""

Needs = Mapping[str, Sequence[str]]
"""By each part, those that it waits for."""


def check(needs: Needs) -> None:
    """Refuse a plan whose parts wait for each other, for themselves, or for what isn't there.

    Raises:
        BadInput: They do (codes ``plan_cycle``, ``plan_unknown``).
    """
    for one, others in needs.items():
        if unknown := [other for other in others if other not in needs]:
            raise BadInput(f"'{one}' depends on '{unknown[0]}', which is no part", code="plan_unknown")
    try:
        TopologicalSorter({one: set(others) for one, others in needs.items()}).prepare()
    except CycleError as error:
        ring = " -> ".join(str(one) for one in error.args[1])
        raise BadInput(f"parts wait for each other: {ring}", hint="drop one of these", code="plan_cycle") from None


def ready(nodes: Sequence[Node]) -> list[Node]:
    """List the nodes of a plan that can be worked on now: what they wait for has ended, and hard needs are answered."""
    states = {node.id: node.state for node in nodes}
    return [
        node
        for node in nodes
        if node.state == "pending"
        and all(states[other] in ANSWERED for other in node.hard)
        and all(states[other] in ENDED for other in node.soft)
    ]


def blocked(nodes: Sequence[Node]) -> list[tuple[Node, str]]:
    """List the nodes that never will be worked on, each with why: a node that they need has no answer."""
    by_id = {node.id: node for node in nodes}
    found: list[tuple[Node, str]] = []
    for node in nodes:
        if node.state != "pending":
            continue
        lost = [by_id[other] for other in node.hard if by_id[other].state in ENDED - ANSWERED]
        if lost:
            found.append((node, f"it needs '{lost[0].name}', which has no answer"))
    return found


def high(own: str, impact: Impact, depth: int, needs: Needs) -> bool:
    """Tell whether much depends on a part.

    Args:
        own: The part.
        impact: What the plan marks it as.
        depth: Its depth.
        needs: The hard needs of all parts of its plan.
    """
    if depth > IMPACT_DEPTH:
        return False
    others = [one for one in needs if one != own]
    needing = [one for one in others if own in _below(one, needs)]
    return impact != "none" or (len(others) >= _LEAST_OTHERS and len(needing) >= _NEEDED_BY * len(others))


def _below(one: str, needs: Needs) -> set[str]:
    """Collect all that a part needs, directly or through others."""
    seen: set[str] = set()
    todo = [one]
    while todo:
        for other in needs.get(todo.pop(), ()):
            if other not in seen:
                seen.add(other)
                todo.append(other)
    return seen

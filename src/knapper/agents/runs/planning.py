"""Plans of a run: whether a task is split, and its checked and ordered parts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from typing import Final

from pydantic import BaseModel, Field

from knapper.agents.loop import Reading, StageSpec
from knapper.agents.runs.model import ANSWERED, ENDED, ROOT, Impact, RunNode
from knapper.errors import BadInput

MAX_IMPACT_DEPTH: Final = 1
"""Greatest depth of a node on which much can depend."""
_NEEDED_SHARE: Final = 0.5
"""The share of its siblings that must need a node."""
_MIN_SIBLINGS: Final = 2
"""With fewer siblings the share says nothing."""

Dependencies = Mapping[str, Sequence[str]]
"""The parts that each part waits for."""


def check_dependencies(needs: Dependencies) -> None:
    """Check that the parts of a plan don't wait for each other, for themselves or for unknown parts.

    Raises:
        BadInput: They do (codes ``plan_cycle``, ``plan_unknown``).
    """
    for one, others in needs.items():
        if unknown := [other for other in others if other not in needs]:
            raise BadInput(f"'{one}' depends on '{unknown[0]}', which isn't a part", code="plan_unknown")
    try:
        TopologicalSorter({one: set(others) for one, others in needs.items()}).prepare()
    except CycleError as error:
        cycle = " -> ".join(str(one) for one in error.args[1])
        raise BadInput(f"parts wait for each other: {cycle}", hint="drop one of these", code="plan_cycle") from None


def list_ready_nodes(nodes: Sequence[RunNode]) -> list[RunNode]:
    """List the nodes that can start: their soft dependencies have ended, and their hard ones are answered."""
    states = {node.id: node.state for node in nodes}
    return [
        node
        for node in nodes
        if node.state == "pending"
        and all(states[other] in ANSWERED for other in node.hard)
        and all(states[other] in ENDED for other in node.soft)
    ]


def list_blocked_nodes(nodes: Sequence[RunNode]) -> list[tuple[RunNode, str]]:
    """List the nodes that can't be started any more, with the reason: a node that they need has no answer."""
    by_id = {node.id: node for node in nodes}
    unreachable: list[tuple[RunNode, str]] = []
    for node in nodes:
        if node.state != "pending":
            continue
        failed_needs = [by_id[other] for other in node.hard if by_id[other].state in ENDED - ANSWERED]
        if failed_needs:
            unreachable.append((node, f"it needs '{failed_needs[0].name}', which has no answer"))
    return unreachable


def is_high_impact(part: str, impact: Impact, depth: int, needs: Dependencies) -> bool:
    """Return whether much depends on a part.

    Args:
        part: The part's id.
        impact: Its impact according to the plan.
        depth: Its depth.
        needs: The hard dependencies of all parts of the plan.
    """
    if depth > MAX_IMPACT_DEPTH:
        return False
    # The part itself, then those that need it directly, then those that need these.
    reached = {part}
    while more := {one for one, own in needs.items() if one not in reached and not reached.isdisjoint(own)}:
        reached |= more
    siblings, needing = len(needs.keys() - {part}), len(reached) - 1
    return impact != "none" or (siblings >= _MIN_SIBLINGS and needing >= _NEEDED_SHARE * siblings)


MAX_PARTS: Final = 8
"""Parts of one plan."""
MIN_PARTS: Final = 2
JUDGE: Final = StageSpec(prompt="run-judge", corrections=1, reply_tokens=2_000)
"""Decides whether a task is split; its length is enough for a short reply with some reasoning before it."""
PLAN: Final = StageSpec(prompt="run-plan", corrections=1, reply_tokens=4_500)
"""Splits a task into parts."""
_MAX_TITLE: Final = 120
_MAX_TASK: Final = 8_000


class Judgement(BaseModel):
    """A decision whether a task is split."""

    split: bool
    why: str = ""
    strategy: str = ""


class PlanPart(BaseModel):
    """One part of a task."""

    id: str = Field(description="A short name that other parts refer to, such as a1.")
    title: str = Field(description="A few words.")
    task: str = Field(description="What is to be answered, complete in itself.")
    needs: list[str] = Field(default_factory=list, description="Ids of parts without whose answers it can't be done.")
    uses: list[str] = Field(default_factory=list, description="Ids of parts whose answers would help.")
    impact: Impact = "none"
    large: bool = False


class TaskPlan(BaseModel):
    """The parts of a task."""

    parts: list[PlanPart]


def check_plan(plan: TaskPlan, max_parts: int) -> Reading[TaskPlan]:
    """Read a plan, and check that it can be carried out.

    Raises:
        BadInput: It has too few or too many parts, duplicate ids, an empty part, or impossible dependencies.
    """
    count = len(plan.parts)
    if not MIN_PARTS <= count <= max_parts:
        raise BadInput(f"the plan has {count} parts", hint=f"give {MIN_PARTS} to {max_parts}", code="plan_size")
    ids = [part.id for part in plan.parts]
    if len(set(ids)) < count or not all(ids):
        raise BadInput("two parts have the same id, or one has none", hint="give each its own", code="plan_ids")
    if empty := next((part for part in plan.parts if not part.task.strip()), None):
        raise BadInput(f"the part '{empty.id}' has no task", hint="say what is to be answered", code="plan_empty")
    check_dependencies({part.id: [*part.needs, *part.uses] for part in plan.parts})
    return Reading(reply=plan)


def make_child_nodes(node: RunNode, plan: TaskPlan) -> tuple[RunNode, list[RunNode]]:
    """Make a plan's parts the children of a node.

    Returns:
        The node, and its children.
    """
    prefix = "" if node.id == ROOT else f"{node.id}."
    ids = {part.id: f"{prefix}{number}" for number, part in enumerate(plan.parts, 1)}
    needs = {part.id: part.needs for part in plan.parts}
    depth = node.depth + 1
    children = [
        RunNode(
            id=ids[part.id],
            task=part.task.strip()[:_MAX_TASK],
            title=" ".join(part.title.split())[:_MAX_TITLE],
            depth=depth,
            hard=tuple(dict.fromkeys(ids[one] for one in part.needs)),
            soft=tuple(dict.fromkeys(ids[one] for one in part.uses if one not in part.needs)),
            impact=part.impact,
            large=part.large,
            high=is_high_impact(part.id, part.impact, depth, needs),
        )
        for part in plan.parts
    ]
    return replace(node, split=True, children=tuple(ids.values())), children


@dataclass(frozen=True, slots=True)
class CachedPlan:
    """A decision about a task: whether it is split, and into which parts."""

    judgement: Judgement
    plan: TaskPlan | None

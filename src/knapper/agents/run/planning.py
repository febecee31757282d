"""Have the model judge whether a task is split, and into what."""

from dataclasses import replace
from typing import Final

from pydantic import BaseModel, Field

from knapper.agents.run import graph, wording
from knapper.agents.run.asking import Account, Asker
from knapper.agents.run.nodes import ROOT, Impact, Node
from knapper.agents.run.strategies import Strategies, Strategy
from knapper.agents.run.wording import Wording
from knapper.errors import BadInput

MOST_PARTS: Final = 8
"""Of one plan."""
LEAST_PARTS: Final = 2
_JUDGE_TOKENS: Final = 1_500
"""Of a reply that needs few, but may be thought about before."""
_PLAN_TOKENS: Final = 4_000
_MAX_TITLE: Final = 120
_MAX_TASK: Final = 8_000


class Judgement(BaseModel):
    """Say whether a task is split."""

    split: bool
    why: str = ""
    strategy: str = ""


class Part(BaseModel):
    """Hold one part of a task."""

    id: str = Field(description="A short name that other parts refer to, such as a1.")
    title: str = Field(description="A few words.")
    task: str = Field(description="What is to be answered, complete in itself.")
    needs: list[str] = Field(default_factory=list, description="Ids of parts without whose answers it can't be done.")
    uses: list[str] = Field(default_factory=list, description="Ids of parts whose answers would help.")
    impact: Impact = "none"
    large: bool = False


class Plan(BaseModel):
    """Hold the parts of a task."""

    parts: list[Part]


async def judge(node: Node, asker: Asker, words: Wording, known: Strategies, account: Account) -> Judgement:
    """Ask whether a task is split; cheap.

    Raises:
        KnapError: The model can't answer, or nothing is left for it.
    """
    ask = (words.load("judge"), wording.judging(node, known.all()))
    return await asker.shape(Judgement, ask, account, check=lambda _: None, most=_JUDGE_TOKENS)


async def plan(node: Node, asker: Asker, ask: tuple[str, str], account: Account, most: int) -> Plan:
    """Ask for the parts of a task; a plan that can't be carried out is sent back once.

    Args:
        node: What is split.
        asker: The model.
        ask: The instructions, and the prompt.
        account: What it costs is added here.
        most: Parts at most.

    Raises:
        KnapError: The model can't answer, or not with such a plan, or nothing is left for it.
    """
    del node
    return await asker.shape(Plan, ask, account, check=lambda made: check(made, most), most=_PLAN_TOKENS)


def wanted(node: Node, words: Wording, strategy: Strategy, most: int) -> tuple[str, str]:
    """Give the instructions and the prompt that ask for a plan."""
    return words.load("plan"), wording.planning(node, strategy, most)


def check(plan: Plan, most: int) -> None:
    """Refuse a plan that can't be carried out.

    Raises:
        BadInput: It has too few or too many parts, two of one id, an empty one, or dependencies that can't be met.
    """
    count = len(plan.parts)
    if not LEAST_PARTS <= count <= most:
        raise BadInput(f"the plan has {count} parts", hint=f"give {LEAST_PARTS} to {most}", code="plan_size")
    ids = [part.id for part in plan.parts]
    if len(set(ids)) < count or not all(ids):
        raise BadInput("two parts have the same id, or one has none", hint="give each its own", code="plan_ids")
    if empty := next((part for part in plan.parts if not part.task.strip()), None):
        raise BadInput(f"the part '{empty.id}' has no task", hint="say what is to be answered", code="plan_empty")
    graph.check({part.id: [*part.needs, *part.uses] for part in plan.parts})


def adopt(node: Node, plan: Plan) -> tuple[Node, list[Node]]:
    """Make a plan's parts the children of a node.

    Returns:
        The node, and its children.
    """
    prefix = "" if node.id == ROOT else f"{node.id}."
    ids = {part.id: f"{prefix}{number}" for number, part in enumerate(plan.parts, 1)}
    needs = {part.id: part.needs for part in plan.parts}
    depth = node.depth + 1
    children = [
        Node(
            id=ids[part.id],
            task=part.task.strip()[:_MAX_TASK],
            title=" ".join(part.title.split())[:_MAX_TITLE],
            depth=depth,
            hard=tuple(dict.fromkeys(ids[one] for one in part.needs)),
            soft=tuple(dict.fromkeys(ids[one] for one in part.uses if one not in part.needs)),
            impact=part.impact,
            large=part.large,
            high=graph.high(part.id, part.impact, depth, needs),
        )
        for part in plan.parts
    ]
    return replace(node, split=True, children=tuple(ids.values())), children

"""Have a node's answer written, from what was found for it or from its parts, and check what it cites."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, cast

from pydantic import JsonValue
from pydantic_ai.usage import RunUsage

from knapper.agents import citations, defusing, mending, untrusted
from knapper.agents.citations import Checked
from knapper.agents.mending import Mender
from knapper.agents.run import budget as budgets
from knapper.agents.run import wording
from knapper.agents.run.asking import Account, Asker, Text
from knapper.agents.run.budget import Stage
from knapper.agents.run.engine import Engine
from knapper.agents.run.nodes import Node, Source
from knapper.agents.run.strategies import Strategy
from knapper.errors import KnapError, RefusedError
from knapper.tools.context import Context

ANSWER_TOKENS: Final = 4_000
"""Of one answer at most."""
LEAST_TOKENS: Final = 200
"""For which a model is asked at all."""
_SHARE: Final = 0.5
"""Of what is left, that an answer itself may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """Hold what answers are written with."""

    engine: Engine
    asker: Asker
    context: Context
    """The vault, as the agent sees it."""
    whole: str
    """The run's task."""
    strategy: Strategy


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Hold an answer with the citations that hold."""

    answer: str
    citations: tuple[dict[str, JsonValue], ...] = ()
    removed: tuple[dict[str, JsonValue], ...] = ()
    sources: tuple[Source, ...] = ()
    """Notes that it cites."""
    notes: tuple[str, ...] = ()
    joined: bool = True
    """A model has joined its parts, where it has any."""


async def answer(desk: Desk, node: Node, earlier: Sequence[Node], account: Account, stage: Stage) -> Written:
    """Write a node's answer from what was found for it.

    Args:
        desk: What it is written with.
        node: With what was found.
        earlier: The nodes that it depends on.
        account: What it costs is added here.
        stage: What it counts as.

    Raises:
        OutOfBudget: Nothing is left for it.
        KnapError: The model can't answer.
    """
    most = _most(desk, stage)
    words = desk.engine.words.load("answer")
    prompt = wording.answering(node, desk.whole, desk.strategy, earlier, untrusted.new_mark())
    said = await desk.asker.text(words, prompt, account, stage, most=most)
    return await _checked(desk, said, account, stage)


async def join(desk: Desk, node: Node, children: Sequence[Node], account: Account, stage: Stage) -> Written:
    """Write a node's answer from those of its parts: all of them, however they came to be.

    Args:
        desk: What it is written with.
        node: What is answered.
        children: Its parts.
        account: What it costs is added here.
        stage: What it counts as.

    Raises:
        OutOfBudget: Nothing is left for it.
        KnapError: The model can't answer.
    """
    most = _most(desk, stage)
    words = desk.engine.words.load("join")
    left = desk.asker.budget.tokens_left(stage)
    readable = desk.engine.context_tokens - most
    tokens = readable if left is None else min(readable, left - most)
    bare = budgets.estimate(words, wording.joining(node, [], desk.strategy, "", 0))
    room = int((tokens - bare) * budgets.CHARS_PER_TOKEN * _SHARE)
    prompt = wording.joining(node, children, desk.strategy, untrusted.new_mark(), room)
    said = await desk.asker.text(words, prompt, account, stage, most=most)
    return await _checked(desk, said, account, stage)


def stitched(node: Node, children: Sequence[Node]) -> str:
    """Put the parts' answers one below the other: what there is where no model can join them."""
    parts = [f"## {one.name}\n\n{one.answer.strip()}" for one in children if one.answer.strip()]
    return "\n\n".join([f"# {node.name}", *parts]) if parts else ""


def listed(node: Node) -> str:
    """Name what was found for a node that has no answer."""
    sources = node.found.sources if node.found else ()
    lines = [f"- {citations.spelled(one.path, one.vault, one.first, one.last)}" for one in sources]
    if not lines:
        return ""
    return "No answer could be written. These places of the notes bear on it:\n\n" + "\n".join(dict.fromkeys(lines))


def missing(lost: Sequence[Node]) -> str:
    """Name the parts that have no answer, and why."""
    lines = [f"- **{one.name}**: {one.reason or one.state}" for one in lost]
    return "## What is missing\n\n" + "\n".join(lines) if lines else ""


def _most(desk: Desk, stage: Stage) -> int:
    left = desk.asker.budget.tokens_left(stage)
    most = min(ANSWER_TOKENS, desk.engine.context_tokens // 4)
    if left is None:
        return most
    if left < LEAST_TOKENS:
        desk.asker.budget.check(left + 1, stage)
    return min(most, int(left * _SHARE))


async def _checked(desk: Desk, said: Text, account: Account, stage: Stage) -> Written:
    text, notes = defusing.defused(said.text.strip())
    if not text:
        raise KnapError("the model said nothing", hint="try again, or take another model", code="model_reply")
    checked = await asyncio.to_thread(citations.check, desk.context, text)
    if checked.failures:
        checked = await _mended(desk, checked, account, stage)
    checked = mending.settled(checked)
    cited = [one.passage for one in checked.citations]
    found = [Source(vault=one.vault, path=one.path, hash=one.hash) for one in cited]
    return Written(
        answer=checked.answer,
        citations=tuple(cast("dict[str, JsonValue]", one.as_dict()) for one in checked.citations),
        removed=tuple(cast("dict[str, JsonValue]", one.as_dict()) for one in checked.failures),
        sources=tuple(dict.fromkeys(found)),
        notes=(*notes, *said.notes),
    )


async def _mended(desk: Desk, checked: Checked, account: Account, stage: Stage) -> Checked:
    """Have failing citations mended, where the budget still allows it."""
    used = RunUsage()
    asker = desk.asker
    try:
        with asker.budget.hold(budgets.estimate(checked.answer) * 4, stage):
            try:
                prompt = desk.engine.prompts.load("repair")
                mender = Mender(model=asker.model, prompt=prompt, usage=used, limits=asker.allowed())
                return await mending.mend(checked, desk.context, mender)
            finally:
                asker.count(used, account)
    except RefusedError:  # of the run's own budget, or of the owner's other limits
        return checked

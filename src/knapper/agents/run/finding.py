"""Retrieve for nodes by Code Mode, or by direct search where that is off."""

import asyncio
import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, cast

from pydantic import JsonValue

from knapper.agents import untrusted
from knapper.agents.run.engine import Need
from knapper.agents.run.events import Checkpoint
from knapper.agents.run.nodes import GO_ON, SKIP, Found, Source
from knapper.codemode.checkpoints import CheckpointAnswer, CheckpointChoice, CheckpointStore
from knapper.codemode.model import AskModel, Prompt, Reply
from knapper.codemode.retrieval import NOBODY_TO_ASK, Retriever
from knapper.codemode.tasks import ImpactMark, Retrieval, RetrievalOptions, RetrievalTask
from knapper.errors import ConflictError, KnapError, RefusedError
from knapper.tools.context import CancelSignal, Context
from knapper.vault import access

SCRIPT_TOKENS: Final = 4_000
_SEPARATORS: Final = re.compile(r"[,\n]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Find what a node needs."""

    checkpoints: CheckpointStore | None = None
    """Where questions to a person are kept; None where nobody ever answers."""
    timeout_s: float | None = None
    """Of one script; None for what the owner allows."""

    async def __call__(self, need: Need) -> Found:
        """Find it.

        Raises:
            RefusedError: A person said not to go on with the node.
            KnapError: The vault can't be searched, or the state can't be kept.
        """
        loop = asyncio.get_running_loop()
        over = CancelSignal()
        held = replace(need, context=replace(need.context, on_cancel=over.on))

        def ask(prompt: Prompt) -> Reply:
            if over.is_told:
                raise RefusedError("the run doesn't wait for this any more", code="budget_spent")
            return asyncio.run_coroutine_threadsafe(_reply(need, prompt), loop).result()

        try:
            return await asyncio.to_thread(self._find, held, ask)
        finally:  # also where the run is cancelled: a script ends at once
            over.tell()

    def _find(self, need: Need, ask: AskModel) -> Found:
        kept = self._kept(need)
        if need.word and kept is not None and need.checkpoint:
            with contextlib.suppress(ConflictError):  # somebody was quicker, and their word counts
                _ = kept.answer(need.checkpoint, answer_of(need.context, need.word), access.default_grants("cli"))
        options = RetrievalOptions(
            code_mode=need.order.code_mode,
            profile=need.order.profile,
            timeout_s=self.timeout_s,
            vaults=(need.context.vault, *need.order.also) if need.order.also else (),
        )
        with contextlib.closing(
            Retriever(
                need.context,
                ask=ask,
                options=options,
                regenerations=need.regenerations,
                checkpoints=kept,
                run=need.asker.run,
            )
        ) as retriever:
            found = retriever.retrieve(_task(need))
        if found.state == "stopped":
            raise RefusedError("the person left it out", code="skipped")
        return _told(found, need.context.vault)

    def _kept(self, need: Need) -> CheckpointStore | None:
        """Give the questions, where somebody answers them or has done so."""
        if self.checkpoints is None or need.attended:
            return self.checkpoints
        asked = self.checkpoints.find(need.asker.run, need.node.id, need.node.task)
        return self.checkpoints if asked and asked.answer else None


async def polled(checkpoints: CheckpointStore, point: Checkpoint, *, look_s: float = 1.0, most_s: float = 0) -> str:
    """Wait until a question is answered on whatever surface, and give what was said there.

    Args:
        checkpoints: Where the answer will be kept.
        point: The question; one that can't be answered elsewhere gives an empty word at once.
        look_s: How often is looked.
        most_s: How long to wait, after which nobody is there, and the word is empty; 0 for as long as it takes.
    """
    if not point.id:
        return ""
    try:
        async with asyncio.timeout(most_s or None):
            while not (said := (await asyncio.to_thread(checkpoints.get, point.id)).answer):  # noqa: ASYNC110 - others answer
                await asyncio.sleep(look_s)
    except TimeoutError:
        return ""
    return _word(said)


def _word(answer: CheckpointAnswer) -> str:
    """Say an answer in words, as it would have been typed."""
    words: dict[CheckpointChoice, str] = {"continue": GO_ON, "stop": SKIP}
    return words.get(answer.choice) or answer.text.strip() or ", ".join(answer.notes)


async def _reply(need: Need, prompt: Prompt) -> Reply:
    mark = untrusted.new_mark()
    blocks = [untrusted.enclose(one.source, untrusted.escape(one.value), mark) for one in prompt.data]
    before = need.account.spent
    said = await need.asker.text(
        prompt.instructions, "\n\n".join([prompt.request, *blocks]), need.account, "work", most=SCRIPT_TOKENS
    )
    return Reply(text=said.text, usage=need.account.spent - before)  # for the trace; the run's account has it already


def _task(need: Need) -> RetrievalTask:
    node = need.node
    marks: Sequence[ImpactMark] = () if node.impact == "none" else (node.impact,)
    share = 1.0 if node.high else 0.0
    return RetrievalTask(text=node.task, node=node.id, depth=node.depth, marks=tuple(marks), needed_share=share)


def answer_of(context: Context, word: str) -> CheckpointAnswer:
    """Read what a person said: the words of the question, notes by their paths, or a text of their own.

    Args:
        context: The vault in which notes are looked for.
        word: As they said it.
    """
    choices: dict[str, CheckpointChoice] = {GO_ON: "continue", SKIP: "stop"}
    if word in choices:
        return CheckpointAnswer(choice=choices[word])
    named = [one.strip().removeprefix("[[").removesuffix("]]") for one in _SEPARATORS.split(word)]
    paths = [_path(context, one) for one in named if one]
    if paths and all(paths):
        return CheckpointAnswer(choice="use", notes=tuple(paths))
    return CheckpointAnswer(choice="use", text=word)


def _path(context: Context, named: str) -> str:
    for spelling in (named, f"{named}.md"):
        with contextlib.suppress(KnapError):
            return context.view.read(spelling).path
    return ""


def _told(found: Retrieval, own: str) -> Found:
    sources = [
        Source(vault=_other(one.vault, own), path=one.path, hash=one.hash, first=one.first_line, last=one.last_line)
        for one in found.citations
    ]
    reads = [Source(vault=_other(one.vault, own), path=one.path, hash=one.hash) for one in found.reads]
    tiers = {"script": "", "direct": "direct"}
    asks = found.state == "waiting" or NOBODY_TO_ASK in found.notes
    attempts = tuple(cast("dict[str, JsonValue]", one.as_dict()) for one in found.attempts)
    parts = found.parts.parts()
    return Found(
        context=found.context,
        sources=tuple(dict.fromkeys(sources)),
        reads=tuple(dict.fromkeys(reads)),
        others=tuple(name for name in found.others if _other(name, own)),
        score=found.score,
        parts={name: float(str(value)) for name, value in parts.items()},
        confidence=found.confidence or 0.0,
        tier="C" if asks else tiers.get(found.tier, found.tier),
        script=found.script,
        attempts=attempts,
        notes=found.notes,
        checkpoint=found.checkpoint,
        used_tools=found.used_tools,
        used_outside=found.used_outside,
    )


def _other(vault: str, own: str) -> str:
    return "" if vault == own else vault

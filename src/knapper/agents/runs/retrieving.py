"""Retrieve notes for nodes by Code Mode or search, and ask a person where little is found."""

import asyncio
import contextlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from knapper.agents import loop, prompting
from knapper.agents.loop import StageSpec, TextTask
from knapper.agents.runs import planning
from knapper.agents.runs.engine import BudgetedModel, NodeCost, RetrievalRequest, RunEngine
from knapper.agents.runs.model import (
    GO_ON,
    SKIP,
    CheckpointEvent,
    NodeQuestion,
    RetrievedContext,
    RunNode,
    RunOrder,
    SourceRef,
)
from knapper.agents.runs.planning import RunCache
from knapper.agents.runs.store import RunTree
from knapper.codemode.checkpoints import CheckpointAnswer, CheckpointChoice, CheckpointStore
from knapper.codemode.retrieval import NOBODY_TO_ASK, Retriever
from knapper.codemode.tasks import (
    AskModel,
    ImpactMark,
    Prompt,
    RegenerationBudget,
    Reply,
    Retrieval,
    RetrievalOptions,
    RetrievalTask,
    Thresholds,
)
from knapper.errors import ConflictError, KnapError, RefusedError
from knapper.tools.context import CancelSignal, Context
from knapper.vault import access

SCRIPT: Final = StageSpec(prompt="", reply_tokens=4_000)
"""Writes a script that finds the notes for a node."""
_SEPARATORS: Final = re.compile(r"[,\n]")


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultRetriever:
    """The retrieval of notes for a node."""

    checkpoints: CheckpointStore | None = None
    """The store of questions to a person; None where nobody ever answers."""
    timeout_s: float | None = None
    """Time limit of one script; None for the owner's setting."""
    thresholds: Thresholds = field(default_factory=Thresholds)
    """What is good enough."""

    async def __call__(self, need: RetrievalRequest) -> RetrievedContext:
        """Retrieve the notes for a node.

        Raises:
            RefusedError: The person chose to skip the node.
            KnapError: The vault can't be searched, or the state can't be stored.
        """
        loop = asyncio.get_running_loop()
        cancelling = CancelSignal()
        request = replace(need, context=replace(need.context, on_cancel=cancelling.subscribe))

        # Called in the retrieval's thread: the model belongs to the event loop, so the request is handed over to it.
        def ask(prompt: Prompt) -> Reply:
            if cancelling.is_cancelled:
                raise RefusedError("the run doesn't wait for this any more", code="budget_spent")
            return asyncio.run_coroutine_threadsafe(_ask_model(need, prompt), loop).result()

        try:
            return await asyncio.to_thread(self._find, request, ask)
        # Also for a cancelled run: this stops the script in the thread, which can't be cancelled itself.
        finally:
            cancelling.cancel()

    def _find(self, need: RetrievalRequest, ask: AskModel) -> RetrievedContext:
        checkpoints = self._checkpoints_for(need)
        if need.person_answer and checkpoints is not None and need.checkpoint:
            # Another surface was quicker, and its answer counts.
            with contextlib.suppress(ConflictError):
                _ = checkpoints.answer(
                    need.checkpoint, read_answer(need.context, need.person_answer), access.default_grants("cli")
                )
        options = RetrievalOptions(
            code_mode=need.order.code_mode,
            profile=need.order.profile,
            timeout_s=self.timeout_s,
            vaults=(need.context.vault, *need.order.also) if need.order.also else (),
            thresholds=self.thresholds,
        )
        with contextlib.closing(
            Retriever(
                need.context,
                ask=ask,
                options=options,
                regenerations=need.regenerations,
                checkpoints=checkpoints,
                run=need.model.run,
            )
        ) as retriever:
            retrieval = retriever.retrieve(_retrieval_task(need))
        if retrieval.state == "stopped":
            raise RefusedError("the person skipped it", code="skipped")
        return _retrieved_context(retrieval, need.context.vault)

    def _checkpoints_for(self, need: RetrievalRequest) -> CheckpointStore | None:
        """Return the store of questions, where somebody can answer them or has done so."""
        if self.checkpoints is None or need.attended:
            return self.checkpoints
        checkpoint = self.checkpoints.find(need.model.run, need.node.id, need.node.task)
        return self.checkpoints if checkpoint and checkpoint.answer else None


async def wait_for_answer(
    checkpoints: CheckpointStore, point: CheckpointEvent, *, look_s: float = 1.0, most_s: float = 0
) -> str:
    """Wait until a question is answered on any surface, and return the answer in words.

    Args:
        checkpoints: The store in which the answer will appear.
        point: The question; where it can't be answered elsewhere, an empty text is returned at once.
        look_s: Seconds between two checks.
        most_s: Seconds to wait before an empty text is returned; 0 for no limit.
    """
    if not point.id:
        return ""
    try:
        async with asyncio.timeout(most_s or None):
            # Polled, since the answer may be given in another process.
            while not (answer := (await asyncio.to_thread(checkpoints.get, point.id)).answer):  # noqa: ASYNC110 - see above
                await asyncio.sleep(look_s)
    except TimeoutError:
        return ""
    # An answer in the words in which it would have been typed.
    words: dict[CheckpointChoice, str] = {"continue": GO_ON, "stop": SKIP}
    return words.get(answer.choice) or answer.text.strip() or ", ".join(answer.notes)


async def _ask_model(need: RetrievalRequest, prompt: Prompt) -> Reply:
    mark = prompting.new_mark()
    blocks = [prompting.enclose(one.source, prompting.escape(one.value), mark) for one in prompt.data]
    before = need.account.spent
    task = TextTask(
        system=prompt.instructions, prompt="\n\n".join([prompt.request, *blocks]), output=str, read=loop.accept
    )
    written = await need.model.ask(SCRIPT, task, need.account)
    # The usage is for the script's trace only; the run's account already contains it.
    return Reply(text=written.reply, usage=need.account.spent - before)


def _retrieval_task(need: RetrievalRequest) -> RetrievalTask:
    node = need.node
    marks: Sequence[ImpactMark] = () if node.impact == "none" else (node.impact,)
    share = 1.0 if node.high else 0.0
    return RetrievalTask(text=node.task, node=node.id, depth=node.depth, marks=tuple(marks), needed_share=share)


def read_answer(context: Context, word: str) -> CheckpointAnswer:
    """Read a person's answer: one of the fixed answers, notes by their paths, or a text of their own.

    Args:
        context: The vault in which notes are looked up.
        word: The answer as it was typed.
    """
    choices: dict[str, CheckpointChoice] = {GO_ON: "continue", SKIP: "stop"}
    if word in choices:
        return CheckpointAnswer(choice=choices[word])
    candidates = [one.strip().removeprefix("[[").removesuffix("]]") for one in _SEPARATORS.split(word)]
    paths = [_find_note(context, one) for one in candidates if one]
    if paths and all(paths):
        return CheckpointAnswer(choice="use", notes=tuple(paths))
    return CheckpointAnswer(choice="use", text=word)


def _find_note(context: Context, named: str) -> str:
    with contextlib.suppress(KnapError):
        return context.view.read(context.view.locate(named)).path
    return ""


def _retrieved_context(retrieval: Retrieval, own_vault: str) -> RetrievedContext:
    sources = [
        SourceRef(
            vault=_other_vault(one.vault, own_vault),
            path=one.path,
            hash=one.hash,
            first=one.first_line,
            last=one.last_line,
        )
        for one in retrieval.citations
    ]
    reads = [
        SourceRef(vault=_other_vault(one.vault, own_vault), path=one.path, hash=one.hash) for one in retrieval.reads
    ]
    tiers = {"script": "", "direct": "direct"}
    asks = retrieval.state == "waiting" or NOBODY_TO_ASK in retrieval.notes
    attempts = tuple(one.as_dict() for one in retrieval.attempts)
    parts = retrieval.parts.parts()
    return RetrievedContext(
        context=retrieval.context,
        sources=tuple(dict.fromkeys(sources)),
        reads=tuple(dict.fromkeys(reads)),
        others=tuple(name for name in retrieval.others if _other_vault(name, own_vault)),
        score=retrieval.score,
        parts={name: float(str(value)) for name, value in parts.items()},
        confidence=retrieval.confidence or 0.0,
        tier="C" if asks else tiers.get(retrieval.tier, retrieval.tier),
        script=retrieval.script,
        attempts=attempts,
        notes=retrieval.notes,
        checkpoint=retrieval.checkpoint,
        used_tools=retrieval.used_tools,
        used_outside=retrieval.used_outside,
        limited=retrieval.broken_off,
    )


def _other_vault(vault: str, own_vault: str) -> str:
    return "" if vault == own_vault else vault


QUESTION_OPTIONS: Final = (GO_ON, SKIP)
_QUESTION: Final = "Go on with that, skip it, or say where to look?"
_SKIPPED_BY_PERSON: Final = "the person skipped it"
_UNATTENDED: Final = "little was found for it, and nobody was there to be asked"


class RunRetrieval:
    """The retrieval for the nodes of one run."""

    def __init__(
        self, engine: RunEngine, order: RunOrder, asker: BudgetedModel, cache: RunCache, used: int = 0
    ) -> None:
        """Prepare for one run.

        Args:
            engine: The retriever, and the way to ask the person.
            order: The run's options.
            asker: The run's model.
            cache: Used to check whether notes have changed.
            used: Number of scripts that the run had regenerated before.
        """
        self._engine = engine
        self._order = order
        self._asker = asker
        self._cache = cache
        self._context = cache.context
        self._known: tuple[int, SourceRef] | None = None
        self._regenerations = RegenerationBudget(engine.thresholds.regens_per_run, used)

    async def find(self, tree: RunTree, node: RunNode) -> None:
        """Retrieve the notes for a node; an earlier result of this run is used where its notes haven't changed.

        Raises:
            RefusedError: The person chose to skip the node.
            KnapError: The retrieval fails, or the budget is used up.
        """
        if node.asking and node.asking.answer == SKIP:
            raise RefusedError(_SKIPPED_BY_PERSON, code="skipped")
        if node.found is not None and self._cache.is_current(node.found.all_sources):
            await self._settle(tree, node)
            return
        account = NodeCost()
        before = node.spent
        # Taken before the search: a note that is added meanwhile must make the result stale.
        base = await asyncio.to_thread(self._all_notes)
        _ = tree.change(node.id, "retrieving", state="running")
        try:
            retrieved = await self._ask(node, account)
        finally:
            node = tree.change(node.id, spent=before + account.spent)
        node = tree.change(node.id, found=await self._add_base(retrieved, base))
        await self._settle(tree, node)
        tree.tell_usage()

    async def _settle(self, tree: RunTree, node: RunNode) -> None:
        """Ask the person about a node for which little was found; where nobody is there, continue and note that."""
        if node.found is None or node.found.tier != "C" or (node.asking and node.asking.settled):
            return
        question = f"Little was found in the notes for '{node.name}', on which much depends. {_QUESTION}"
        asking = node.asking or NodeQuestion(question=question, options=QUESTION_OPTIONS)
        if not asking.answer and self._engine.ask_person is not None:
            point = _checkpoint_event(node, asking)
            node = tree.change(node.id, "asking", asking=asking)
            tree.tell(point)
            asking = replace(asking, answer=(await self._engine.ask_person(point)).strip())
        asking = replace(asking, unattended=not asking.answer)
        node = tree.change(node.id, asking=asking)
        tree.tell(_checkpoint_event(node, asking))
        if asking.answer == SKIP:
            raise RefusedError(_SKIPPED_BY_PERSON, code="skipped")
        if asking.answer:
            await self._retry(tree, node, asking.answer)
        notes = (*node.notes, _UNATTENDED) if asking.unattended else node.notes
        _ = tree.change(node.id, asking=replace(asking, settled=True), notes=notes)

    async def _retry(self, tree: RunTree, node: RunNode, word: str) -> None:
        """Retrieve once more with the person's answer."""
        account = NodeCost()
        before = node.spent
        base = await asyncio.to_thread(self._all_notes)
        try:
            retrieved = await self._ask(node, account, word)
        finally:
            node = tree.change(node.id, spent=before + account.spent)
        if retrieved.context.strip() or not node.found:
            retrieved = await self._add_base(retrieved, base)
            _ = tree.change(node.id, found=replace(retrieved, tier="C"))

    def _all_notes(self) -> SourceRef:
        """Return all notes with their current hash, which is computed once for each generation of the index."""
        _ = self._context.freshen(meaning=False)
        generation = self._context.index.store.generation()
        if self._known is None or self._known[0] != generation:
            self._known = (generation, planning.all_notes_source(self._context))
        return self._known[1]

    async def _add_base(self, retrieved: RetrievedContext, base: SourceRef) -> RetrievedContext:
        """Make a result depend on all notes where it found nothing, since a new note may contain what was missing.

        The same holds for a result whose script called tools, since it isn't recorded which notes these have read.
        """
        if not (retrieved.is_empty or retrieved.used_tools):
            return retrieved
        others = [await asyncio.to_thread(planning.all_notes_source, self._context, name) for name in retrieved.others]
        return replace(retrieved, reads=(*retrieved.reads, base, *others))

    async def _ask(self, node: RunNode, account: NodeCost, word: str = "") -> RetrievedContext:
        need = RetrievalRequest(
            node=node,
            order=self._order,
            context=self._context,
            model=self._asker,
            account=account,
            regenerations=self._regenerations,
            attended=self._engine.ask_person is not None,
            person_answer=word,
            checkpoint=node.found.checkpoint if node.found and word else "",
        )
        return await self._engine.retrieve(need)


def count_regenerated(nodes: Iterable[RunNode]) -> int:
    """Count the regenerated scripts in the nodes' attempts."""
    retrievals = (node.found for node in nodes)
    return sum(attempt.get("step") == "again" for one in retrievals if one for attempt in one.attempts)


def _checkpoint_event(node: RunNode, asking: NodeQuestion) -> CheckpointEvent:
    return CheckpointEvent(
        node_id=node.id,
        id=node.found.checkpoint if node.found else "",
        question=asking.question,
        options=asking.options,
        answer=asking.answer,
        unattended=asking.unattended,
    )

"""Carry out runs: decide on splits, retrieve, write answers and join them, with children in parallel, until the end."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from pydantic import JsonValue
from pydantic_ai import PromptedOutput
from pydantic_ai.usage import RunUsage

from knapper.agents import citations, loop, prompting
from knapper.agents.citations import REPAIR
from knapper.agents.events import Notice
from knapper.agents.loop import StageSpec, TextTask
from knapper.agents.model import replies
from knapper.agents.runs import engine, model, planning, retrieving
from knapper.agents.runs.engine import (
    AUTO_STRATEGY,
    ActiveRun,
    BudgetedModel,
    NodeCost,
    RunEngine,
    Share,
)
from knapper.agents.runs.model import (
    ANSWERED,
    ENDED,
    ROOT,
    NodeState,
    RunEventSink,
    RunLimits,
    RunNode,
    RunOrder,
    RunRecord,
    RunStarted,
    RunState,
    SourceRef,
)
from knapper.agents.runs.planning import CachedPlan, Judgement, TaskPlan
from knapper.agents.runs.retrieving import RunCache, RunRetrieval, count_regenerated
from knapper.agents.runs.store import RunTree
from knapper.errors import BadInput, KnapError, RefusedError, StorageError
from knapper.tools import answers

ANSWER: Final = StageSpec(prompt="run-answer", reply_tokens=4_000)
"""Answers a node from the notes that were found for it."""
JOIN: Final = StageSpec(prompt="run-join", reply_tokens=4_000)
"""Answers a node from the answers of its parts."""
MIN_ANSWER_TOKENS: Final = 200
"""Tokens below which no answer is requested."""
_ANSWER_SHARE: Final = 0.5
"""The share of the remaining tokens that the answer itself may use; the prompt needs the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenAnswer:
    """An answer with its verified citations."""

    answer: str
    citations: tuple[dict[str, JsonValue], ...] = ()
    removed: tuple[dict[str, JsonValue], ...] = ()
    sources: tuple[SourceRef, ...] = ()
    """Notes that it cites."""
    notes: tuple[str, ...] = ()
    joined: bool = True
    """Whether a model has joined the answers of its parts, where it has any."""


def concatenate_answers(node: RunNode, children: Sequence[RunNode]) -> str:
    """Return the children's answers one below the other, for when no model can join them."""
    parts = [f"## {one.name}\n\n{one.answer.strip()}" for one in children if one.answer.strip()]
    return "\n\n".join([f"# {node.name}", *parts]) if parts else ""


def list_sources(node: RunNode) -> str:
    """Return a list of the retrieved sources, for a node without an answer."""
    sources = node.found.sources if node.found else ()
    lines = [f"- {citations.format_citation(one.path, one.vault, one.first, one.last)}" for one in sources]
    if not lines:
        return ""
    return "No answer could be written. These places of the notes bear on it:\n\n" + "\n".join(dict.fromkeys(lines))


_BUDGET_SPENT: Final = "budget_spent"


_NO_ROOM: Final = "the run has no room for more nodes"


@dataclass(frozen=True, slots=True)
class SplitDecider:
    """The decisions whether the nodes of one run are split."""

    _active_run: ActiveRun
    _tree: RunTree
    _asker: BudgetedModel
    _cache: RunCache
    """Earlier decisions about the same tasks."""

    async def decide(self, node: RunNode) -> RunNode:
        """Decide on a node, and add its children where it is split.

        Raises:
            KnapError: The budget is used up. Where the model can't plan, the node isn't split.
        """
        tree = self._tree
        why = ""
        if node.depth >= self._active_run.run.order.limits.depth:
            why = f"it lies {node.depth} deep, and the run may go no deeper"
        elif self._room() < planning.MIN_PARTS:
            why = _NO_ROOM
        elif node.id != ROOT and not node.large:
            why = "the plan doesn't allow it to be split"
        if why:
            # How deep a run goes is its form; how many nodes it may have is a limit that it has run into.
            return tree.change(node.id, split=False, why=why, limited=why if node.large and why == _NO_ROOM else "")
        _ = tree.change(node.id, "deciding", state="running")
        account = NodeCost()
        try:
            planned = await self._find_plan(node, account)
        except KnapError as error:
            if error.code == _BUDGET_SPENT:
                raise
            why = f"it couldn't be planned: {error.message}"
            return tree.change(node.id, split=False, why=why, limited=why)
        finally:
            _ = tree.change(node.id, spent=tree.get(node.id).spent + account.spent)
        node = tree.get(node.id)
        if node.id == ROOT and self._active_run.chooses_strategy:
            self._active_run.choose(planned.judgement.strategy)
        if planned.plan is None:
            return tree.change(node.id, split=False, why=planned.judgement.why)
        # Other nodes may have been split while the model was planning.
        if len(planned.plan.parts) > self._room():
            return tree.change(node.id, split=False, why=_NO_ROOM, limited=_NO_ROOM)
        grown, children = planning.make_child_nodes(node, planned.plan)
        self._tree.grow(grown, children)
        return self._tree.change(node.id, "planned", why=planned.judgement.why)

    async def _find_plan(self, node: RunNode, account: NodeCost) -> CachedPlan:
        """Return an earlier decision about the same task, or ask the model."""
        room = self._room()
        ways = [
            self._active_run.run.order.strategy,
            self._active_run.strategy.skeleton,
            str(self._active_run.run.order.limits.depth - node.depth),
        ]
        cached = self._cache.planned(node.task, ways)
        if cached is not None:
            # A plan may have more parts than there is room for now.
            with suppress(BadInput):
                if cached.plan is not None:
                    _ = planning.check_plan(cached.plan, room)
                return cached
        prompt = engine.write_judge_prompt(node, self._active_run.engine.strategies.all())
        asked = TextTask(prompt=prompt, output=PromptedOutput(Judgement), read=loop.accept)
        judgement = (await self._asker.ask(planning.JUDGE, asked, account)).reply
        plan = None
        if judgement.split:
            if self._active_run.chooses_strategy:
                self._active_run.choose(judgement.strategy)
            _ = self._tree.change(node.id, "planning")
            prompt = engine.write_plan_prompt(node, self._active_run.strategy, room)
            parts = TextTask(
                prompt=prompt, output=PromptedOutput(TaskPlan), read=lambda plan: planning.check_plan(plan, room)
            )
            plan = (await self._asker.ask(planning.PLAN, parts, account)).reply
        planned = CachedPlan(judgement, plan)
        self._cache.keep_plan(node.task, ways, planned)
        return planned

    def _room(self) -> int:
        return min(planning.MAX_PARTS, self._active_run.run.order.limits.nodes - len(self._tree.all))


REPLAY_STALE: Final = "stale"
"""Repeat the nodes whose notes have changed since."""
_TIME_USED_UP: Final = "the time was used up before it was done"
CANCELLED: Final = "the run was cancelled"
INTERRUPTED: Final = "the program ended before the run did"


class RunExecution:
    """The execution of one run; made anew each time."""

    def __init__(self, engine: RunEngine, run: RunRecord, tree: RunTree, anew: frozenset[str] = frozenset()) -> None:
        """Prepare the execution.

        Args:
            engine: The model and the services of the run.
            run: The run.
            tree: The run's nodes.
            anew: Nodes that mustn't be answered from the cache.
        """
        self.tree = tree
        self._anew = anew
        self.engine = engine
        self.active_run = ActiveRun(engine, run)
        context = engine.context(run)
        budget = engine.open_budget(run, tree.spent)
        self.model = BudgetedModel(
            model=engine.model, name=engine.name, run=run.id, budget=budget, prompts=engine.prompts, meter=engine.meter
        )
        self.cache = RunCache(engine, run.order, context)
        self.context = context
        self.stop_reason = ""
        """The reason why nodes are cut off; empty where they aren't."""
        self._slots = asyncio.Semaphore(run.order.limits.parallel)
        self._retrieval = RunRetrieval(engine, run.order, self.model, self.cache, count_regenerated(tree.all))
        self._splitter = SplitDecider(self.active_run, tree, self.model, self.cache)

    @property
    def run(self) -> RunRecord:
        """Return the run in its current state."""
        return self.active_run.run

    async def work(self) -> None:
        """Do all work before the run's answer, until that share of the budget is used up."""
        try:
            async with asyncio.timeout(self.model.budget.seconds_left("work")):
                await self._prepare(self.tree.root)
        except TimeoutError:
            self.stop_reason = _TIME_USED_UP
        except KnapError as error:
            self.stop_reason = error.message
        self.tree.cut(self.stop_reason or _TIME_USED_UP)

    async def answer(self) -> None:
        """Write the run's answer with the reserved share of the budget; where that fails, use what there is."""
        root = self.tree.root
        try:
            async with asyncio.timeout(self.model.budget.seconds_left("answer")):
                await self._answer(root, "answer")
        except TimeoutError:
            self._fall_back(_TIME_USED_UP)
        except KnapError as error:
            self._fall_back(error.message)

    async def _work_on_child(self, node: RunNode) -> None:
        """Work on a node below the root, and record how it ended."""
        try:
            await self._prepare(node)
            await self._answer(self.tree.get(node.id), "work")
        except asyncio.CancelledError:
            is_time_up = self.model.budget.seconds_left("work") <= 0
            self._end(node.id, "cut", self.stop_reason or (_TIME_USED_UP if is_time_up else CANCELLED))
            raise
        except KnapError as error:
            self._end(node.id, "cut" if error.code == _BUDGET_SPENT else "failed", error.message)

    async def _prepare(self, node: RunNode) -> None:
        """Do the work on a node that comes before its answer."""
        if self._is_kept(node):
            return
        if node.split is None:
            async with self._slots:
                node = await self._splitter.decide(node)
        if node.split:
            await self._children(node)
        elif self._find_cached(node) is None:
            async with self._slots:
                await self._retrieval.find(self.tree, node)

    async def _children(self, node: RunNode) -> None:
        """Work on a node's children in parallel, each as soon as those that it waits for have ended."""
        running: set[asyncio.Task[None]] = set()
        try:
            while True:
                # Children that need a node without an answer end, and then those that need these.
                while blocked := planning.list_blocked_nodes(self.tree.children(node)):
                    for child, why in blocked:
                        _ = self.tree.change(child.id, state="blocked", reason=why)
                for child in planning.list_ready_nodes(self.tree.children(node)):
                    _ = self.tree.change(child.id, "waiting", state="running")
                    running.add(
                        asyncio.create_task(self._work_on_child(self.tree.get(child.id)), name=f"node {child.id}")
                    )
                if not running:
                    return
                finished, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in finished:
                    task.result()
        # No child may outlive its parent's task: it would spend tokens and change the tree of a run that has ended.
        finally:
            for task in running:
                _ = task.cancel()
            _ = await asyncio.gather(*running, return_exceptions=True)

    async def _answer(self, node: RunNode, share: Share) -> None:
        if self._is_kept(node):
            _ = self.tree.change(node.id, state=self.tree.previous_state(node.id))
            return
        cached = self._find_cached(node)
        if cached is not None:
            await asyncio.to_thread(self.cache.mark_read, cached.sources)
            _ = self.tree.change(
                node.id,
                state="done",
                reason="",
                answer=cached.answer,
                citations=cached.citations,
                removed=cached.removed,
                sources=cached.sources,
                found=cached.found,
                notes=cached.notes,
                inputs=cached.inputs,
                cached=True,
            )
            return
        account = NodeCost()
        async with self._slots:
            try:
                written = await self._write(node, account, share)
            finally:
                spent = self.tree.get(node.id).spent + account.spent
                node = self.tree.change(node.id, spent=spent)
                self.tree.tell_usage()
        self._record_answer(node, written, self._inputs(node))

    async def _write(self, node: RunNode, account: NodeCost, share: Share) -> WrittenAnswer:
        if not node.split:
            if node.found is None:
                await self._retrieval.find(self.tree, node)
            node = self.tree.change(node.id, "answering", state="running")
            task, strategy, mark = self.run.order.task, self.active_run.strategy, prompting.new_mark()
            prompt = engine.write_answer_prompt(node, task, strategy, self._built_on(node), mark)
            return await self._ask_for_answer(ANSWER, prompt, self._max_tokens(share), account, share)
        children = self.tree.children(node)
        if not any(child.state in ANSWERED for child in children):
            raise KnapError("none of its parts has an answer", hint="`knap run trace` shows why", code="no_parts")
        _ = self.tree.change(node.id, "joining", state="running")
        try:
            return await self._join(node, children, account, share)
        except KnapError as error:
            if share == "answer":
                raise
            # A node below the root passes its parts' answers on unjoined.
            notes = (f"its parts were put together without a model: {error.message}",)
            return WrittenAnswer(answer=concatenate_answers(node, children), notes=notes, joined=False)

    async def _join(self, node: RunNode, children: Sequence[RunNode], account: NodeCost, share: Share) -> WrittenAnswer:
        """Write a node's answer from as much of its parts' answers as the model and the budget allow."""
        strategy, max_tokens = self.active_run.strategy, self._max_tokens(share)
        tokens_left, readable = self.model.budget.tokens_left(share), self.engine.context_tokens - max_tokens
        tokens = readable if tokens_left is None else min(readable, tokens_left - max_tokens)
        instructions = self.engine.prompts.load(JOIN.prompt).strip()
        bare = engine.write_join_prompt(node, [], strategy, "", 0)
        room = int((tokens - engine.estimate_tokens(instructions, bare)) * engine.CHARS_PER_TOKEN * _ANSWER_SHARE)
        prompt = engine.write_join_prompt(node, children, strategy, prompting.new_mark(), room)
        return await self._ask_for_answer(JOIN, prompt, max_tokens, account, share)

    async def _ask_for_answer(
        self, stage: StageSpec, prompt: str, max_tokens: int, account: NodeCost, share: Share
    ) -> WrittenAnswer:
        """Return an answer of the model, with checked citations.

        Raises:
            OutOfBudget: The budget is used up.
            KnapError: The model can't answer.
        """
        task = TextTask(prompt=prompt, output=str, read=loop.accept)
        written = await self.model.ask(stage, task, account, share, max_tokens=max_tokens)
        text, notes = prompting.sanitize_answer(written.reply.strip())
        if not text:
            raise KnapError("the model's reply is empty", hint="try again, or take another model", code="model_reply")
        checked = await asyncio.to_thread(citations.check_citations, self.context, text)
        if checked.failures:
            used, model = RunUsage(), self.model
            # The run's own budget or another limit of the owner may be used up: then the answer is kept as it is.
            with suppress(RefusedError), model.budget.reserve(engine.estimate_tokens(checked.answer) * 4, share):
                try:
                    checked = await citations.repair_citations(checked, self.context, model.open_stage(REPAIR), used)
                finally:
                    model.count(used, account)
        checked = citations.drop_failed_citations(checked)
        cited_passages = [one.passage for one in checked.citations]
        sources = [SourceRef(vault=one.vault, path=one.path, hash=one.hash) for one in cited_passages]
        return WrittenAnswer(
            answer=checked.answer,
            citations=tuple(one.as_dict() for one in checked.citations),
            removed=tuple(one.as_dict() for one in checked.failures),
            sources=tuple(dict.fromkeys(sources)),
            notes=(*notes, *written.notices),
        )

    def _max_tokens(self, share: Share) -> int:
        """Return how long an answer may be, in tokens.

        Raises:
            OutOfBudget: Too little is left for one.
        """
        tokens_left = self.model.budget.tokens_left(share)
        max_tokens = min(ANSWER.reply_tokens, self.engine.context_tokens // 4)
        if tokens_left is None:
            return max_tokens
        if tokens_left < MIN_ANSWER_TOKENS:
            self.model.budget.check(tokens_left + 1, share)
        return min(max_tokens, int(tokens_left * _ANSWER_SHARE))

    def _record_answer(self, node: RunNode, written: WrittenAnswer, inputs: str) -> None:
        """Store an answer with all its sources."""
        children = self.tree.children(node)
        sources = tuple(dict.fromkeys([*written.sources, *(node.found.all_sources if node.found else ())]))
        incomplete = [child for child in children if child.state != "done"]
        reasons = [f"{len(incomplete)} of its {len(children)} parts have no whole answer"] if incomplete else []
        reasons += [*node.limits, *([self.stop_reason] if node.id == ROOT and self.stop_reason else [])]
        state: NodeState = "done" if written.joined and not reasons else "partial"
        node = self.tree.change(
            node.id,
            state=state,
            reason="; ".join(dict.fromkeys(reasons)),
            answer=written.answer,
            citations=written.citations,
            removed=written.removed,
            sources=sources,
            notes=tuple(dict.fromkeys([*node.notes, *written.notes])),
            inputs=inputs,
            cached=False,
        )
        # Changes of files and pages outside of the vaults go unnoticed, so answers from these can't be reused.
        if state == "done" and not (node.found and node.found.used_outside):
            self.cache.keep(node)

    def _fall_back(self, why: str) -> None:
        """End the root with the existing answers, without a model."""
        root = self.tree.root
        answer = concatenate_answers(root, self.tree.children(root)) if root.split else list_sources(root)
        state: NodeState = "partial" if answer else "failed"
        citations = tuple(one for child in self.tree.children(root) for one in child.citations)
        _ = self.tree.change(ROOT, state=state, reason=why, answer=answer, inputs="", citations=citations, removed=())

    def _is_kept(self, node: RunNode) -> bool:
        """Return whether a node was answered from the same inputs before, so that its answer can be kept.

        For a node with children that is known only once these have ended.
        """
        if self.tree.previous_state(node.id) not in ANSWERED or not node.inputs:
            return False
        if node.split and any(child.state == "pending" for child in self.tree.children(node)):
            return False
        return node.inputs == self._inputs(node)

    def _find_cached(self, node: RunNode) -> RunNode | None:
        """Return the same node from the cache; None for none."""
        return None if node.id in self._anew else self.cache.answer(self._inputs(node))

    def _inputs(self, node: RunNode) -> str:
        return self.cache.inputs(node, self.active_run.strategy, self._built_on(node))

    def _built_on(self, node: RunNode) -> list[RunNode]:
        """List the nodes whose answers a node uses."""
        return self.tree.get_many(node.children if node.split else (*node.hard, *node.soft))

    def _end(self, node_id: str, state: NodeState, reason: str) -> None:
        if self.tree.get(node_id).state in {"running", "pending"}:
            _ = self.tree.change(node_id, state=state, reason=reason)


def create_run(engine: RunEngine, order: RunOrder) -> RunRecord:
    """Store a new run without starting it.

    Raises:
        NotFound: There is no such strategy.
    """
    if order.strategy != AUTO_STRATEGY:
        _ = engine.strategies.load(order.strategy)
    return engine.store.begin(order, engine.name, _make_root(order))


def _make_root(order: RunOrder) -> RunNode:
    return RunNode(id=ROOT, task=order.task)


async def carry_out_run(
    engine: RunEngine, run_id: str, emit: RunEventSink, *, replay: str = "", limits: RunLimits | None = None
) -> RunRecord:
    """Carry out or resume a run; `RunDone` is reported last.

    Answered nodes aren't asked again. A cancelled task stores its partial results and stays cancelled.

    Args:
        engine: The model and the services of the run.
        run_id: The id of a stored run.
        emit: Receives each event.
        replay: ``stale`` to repeat the nodes whose notes have changed, or a node's id to repeat it and everything below
            it; nodes that build on these follow where the answers change.
        limits: Limits to use in place of the run's own.

    Returns:
        The run in its final state.

    Raises:
        NotFound: There is no such run or node.
        ConflictError: Another process is carrying it out (code ``run_busy``).
    """
    engine = replace(engine, model=replies.report_retries(engine.model, lambda text: emit(Notice(text=text))))
    run = await asyncio.to_thread(engine.store.get, run_id)
    with engine.store.lock(run.id):
        # Read again under the lock: another process may have continued the run meanwhile.
        run = engine.store.get(run.id)
        if replay not in {"", REPLAY_STALE}:
            _ = engine.store.node(run.id, replay)
        order = replace(run.order, limits=limits or run.order.limits)
        resumed = run.state != "pending"
        run = replace(run, state="running", order=order, model=engine.name)
        # A run that came back from a backup may have none: large ones are made without.
        nodes = engine.store.nodes(run.id) or [_make_root(order)]
        tree = RunTree(engine.store, run, nodes, emit)
        anew = _reset_replayed(engine, run, tree, replay)
        # Before the state is saved: where a vault can't be opened, this raises and the run stays as it was.
        execution = RunExecution(engine, run, tree, anew)
        await asyncio.to_thread(answers.begin_run, execution.context)
        run = engine.store.save(run)
        # An earlier request, which ended the last execution, must not end this one.
        engine.store.ask_to_cancel(run.id, wanted=False)
        emit(RunStarted(run=run.brief(), resumed=resumed))
        # Until it ends, or until its cancellation is requested in any process.
        working = asyncio.create_task(_work_and_answer(execution), name=f"run {run.id}")
        waiting = asyncio.create_task(_wait_for_cancel(execution), name=f"watch {run.id}")
        try:
            _ = await asyncio.wait({working, waiting}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                return working.result()
            await _stop_task(execution, working, CANCELLED)
            return _record_end(execution, "cancelled")
        except asyncio.CancelledError:
            is_leaving = engine.is_shutting_down()
            await _stop_task(execution, working, INTERRUPTED if is_leaving else CANCELLED)
            _ = _record_end(execution, "interrupted" if is_leaving else "cancelled")
            raise
        finally:
            _ = waiting.cancel()


def record_unstarted_end(engine: RunEngine, run_id: str) -> None:
    """Store the end of a run that was cancelled before it began; a run that had begun stores its own end.

    Raises:
        NotFound: There is no such run.
    """
    run = engine.store.get(run_id)
    if run.state == "pending":
        is_leaving = engine.is_shutting_down()
        reason = INTERRUPTED if is_leaving else CANCELLED
        _ = engine.store.save(replace(run, state="interrupted" if is_leaving else "cancelled", reasons=(reason,)))


async def _wait_for_cancel(execution: RunExecution) -> None:
    """Return once the run's cancellation is requested; failed reads of the store are ignored."""
    engine = execution.engine
    while True:
        with suppress(StorageError):
            if await asyncio.to_thread(engine.store.is_to_cancel, execution.run.id):
                return
        await asyncio.sleep(engine.poll_s)


async def _stop_task(execution: RunExecution, main: asyncio.Task[RunRecord], why: str) -> None:
    execution.stop_reason = why
    _ = main.cancel()
    _ = await asyncio.wait({main})


async def _work_and_answer(execution: RunExecution) -> RunRecord:
    async with execution.engine.model:
        await execution.work()
        await execution.answer()
    return _record_end(execution, None)


def _record_end(execution: RunExecution, forced: RunState | None) -> RunRecord:
    """Store and report the run's outcome."""
    tree = execution.tree
    if forced:
        tree.cut(execution.stop_reason)
        if tree.root.state not in ENDED:
            _ = tree.change(ROOT, state="cut", reason=execution.stop_reason)
    root, unanswered = tree.root, tree.lost()
    answer = root.answer if root.state in {"done", "partial"} else ""
    if forced and not answer:
        answer = concatenate_answers(root, tree.children(root))
    if answer and unanswered:
        missing = "\n".join(f"- **{one.name}**: {one.reason or one.state}" for one in unanswered)
        answer = f"{answer.rstrip()}\n\n## What is missing\n\n{missing}"
    state: RunState = "complete" if root.state == "done" else "partial"
    if forced or not answer:
        state = forced or "failed"
    reasons = tuple(dict.fromkeys(filter(None, (root.reason, *(f"{one.name}: {one.reason}" for one in unanswered)))))
    run = execution.engine.store.save(
        replace(
            execution.run,
            state=state,
            answer=answer,
            citations=root.citations,
            removed=root.removed,
            reasons=tuple(dict.fromkeys((execution.stop_reason, *reasons))) if forced else reasons,
        )
    )
    execution.active_run.run = run
    tree.tell_usage()
    tree.tell(model.make_done_event(run, tree.all))
    return run


def _reset_replayed(engine: RunEngine, run: RunRecord, tree: RunTree, replay: str) -> frozenset[str]:
    """Reset the nodes to repeat, and return those that mustn't be answered from the cache."""
    if not replay:
        return frozenset()
    if replay != REPLAY_STALE:
        anew = frozenset(node.id for node in tree.subtree(replay))
        tree.forget(*anew)
        return anew
    tree.forget(*retrieving.list_stale_nodes(engine.context(run), tree.all))
    return frozenset()

"""Carry a run out: decide, split, retrieve and answer, children side by side, and always end with what there is."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from knapper.agents.run import answering, graph
from knapper.agents.run import budget as budgets
from knapper.agents.run.answering import Desk, Written
from knapper.agents.run.asking import Account, Asker
from knapper.agents.run.budget import Budget, Stage
from knapper.agents.run.cache import Cache
from knapper.agents.run.course import Course
from knapper.agents.run.deciding import Deciding
from knapper.agents.run.engine import Engine
from knapper.agents.run.nodes import ANSWERED, ROOT, Node, NodeState
from knapper.agents.run.records import Run
from knapper.agents.run.retrieving import Retrieving, regenerated
from knapper.agents.run.tree import Tree
from knapper.errors import KnapError

_CUT: Final = "budget_spent"
_OVER: Final = "the time was used up before it was done"
CANCELLED: Final = "the run was cancelled"
INTERRUPTED: Final = "the program ended before the run did"


class Execution:
    """Carry one run out; made anew each time."""

    def __init__(self, engine: Engine, run: Run, tree: Tree, anew: frozenset[str] = frozenset()) -> None:
        """Take a run and its nodes.

        Args:
            engine: What it works with.
            run: The run.
            tree: Its nodes.
            anew: Nodes that take nothing from the cache.
        """
        self.tree = tree
        self._anew = anew
        self.engine = engine
        self.course = Course(engine, run)
        context = engine.context_of(run.id)
        budget = Budget(budgets.bounded(run.order.limits, engine.meter, run.id), tree.spent, engine.clock)
        self.asker = Asker(model=engine.model, name=engine.name, run=run.id, budget=budget, meter=engine.meter)
        self.cache = Cache(engine, run.order, context)
        self.context = context
        self.stopped = ""
        """Why nodes are cut short, where they are."""
        self._slots = asyncio.Semaphore(run.order.limits.parallel)
        self._retrieving = Retrieving(engine, run.order, self.asker, self.cache, regenerated(tree.all))
        self._deciding = Deciding(self.course, tree, self.asker, self.cache)

    @property
    def run(self) -> Run:
        """Give the run as it stands."""
        return self.course.run

    async def work(self) -> None:
        """Work on all that comes before the answer; stops where the share of the budget for that is used up."""
        try:
            async with asyncio.timeout(self.asker.budget.seconds_left("work")):
                await self._begin(self.tree.root)
        except TimeoutError:
            self.stopped = _OVER
        except KnapError as error:
            self.stopped = error.message
        self.tree.cut(self.stopped or _OVER)

    async def answer(self) -> None:
        """Write the run's answer, with what was kept for it; it ends with the best that there is."""
        root = self.tree.root
        try:
            async with asyncio.timeout(self.asker.budget.seconds_left("answer")):
                await self._answer(root, "answer")
        except TimeoutError:
            self._fall_back(_OVER)
        except KnapError as error:
            self._fall_back(error.message)

    async def _one(self, node: Node) -> None:
        """Do a node below the root, however it ends."""
        try:
            await self._begin(node)
            await self._answer(self.tree.get(node.id), "work")
        except asyncio.CancelledError:
            over = self.asker.budget.seconds_left("work") <= 0
            self._end(node.id, "cut", self.stopped or (_OVER if over else CANCELLED))
            raise
        except KnapError as error:
            self._end(node.id, "cut" if error.code == _CUT else "failed", error.message)

    async def _begin(self, node: Node) -> None:
        """Do all for a node that comes before its answer."""
        if self._is_kept(node):
            return
        if node.split is None:
            async with self._slot():
                node = await self._deciding.decide(node)
        if node.split:
            await self._children(node)
        elif self._known(node) is None:
            async with self._slot():
                await self._retrieving.find(self.tree, node)

    async def _children(self, node: Node) -> None:
        """Do a node's children side by side, each as soon as what it waits for has ended."""
        going: set[asyncio.Task[None]] = set()
        try:
            while True:
                self._block(node)
                for child in graph.ready(self.tree.children(node)):
                    _ = self.tree.change(child.id, "waiting", state="running")
                    going.add(asyncio.create_task(self._one(self.tree.get(child.id)), name=f"node {child.id}"))
                if not going:
                    return
                done, going = await asyncio.wait(going, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
        finally:
            for task in going:
                _ = task.cancel()
            _ = await asyncio.gather(*going, return_exceptions=True)

    def _block(self, node: Node) -> None:
        """End the children that wait for an answer which never comes, and those that wait for these."""
        while found := graph.blocked(self.tree.children(node)):
            for child, why in found:
                _ = self.tree.change(child.id, state="blocked", reason=why)

    async def _answer(self, node: Node, stage: Stage) -> None:
        if self._is_kept(node):
            _ = self.tree.change(node.id, state=self.tree.was(node.id))
            return
        known = self._known(node)
        if known is not None:
            await asyncio.to_thread(self.cache.shown, known.sources)
            self._take(node, known)
            return
        account = Account()
        async with self._slot():
            try:
                written = await self._write(node, account, stage)
            finally:
                spent = self.tree.get(node.id).spent + account.spent
                node = self.tree.change(node.id, spent=spent)
                self.tree.tell_usage()
        self._settle(node, written, self._inputs(node))

    async def _write(self, node: Node, account: Account, stage: Stage) -> Written:
        desk = Desk(
            engine=self.engine,
            asker=self.asker,
            context=self.context,
            whole=self.run.order.task,
            strategy=self.course.strategy,
        )
        if not node.split:
            if node.found is None:
                await self._retrieving.find(self.tree, node)
            node = self.tree.change(node.id, "answering", state="running")
            return await answering.answer(desk, node, self._around(node), account, stage)
        children = self.tree.children(node)
        if not any(child.state in ANSWERED for child in children):
            raise KnapError("none of its parts has an answer", hint="look at why: `knap run trace`", code="no_parts")
        _ = self.tree.change(node.id, "joining", state="running")
        if stage == "answer":
            return await answering.join(desk, node, children, account, stage)
        return await self._joined(desk, node, account)

    async def _joined(self, desk: Desk, node: Node, account: Account) -> Written:
        """Join a node's parts below the root; where the budget ends, they are passed up as they are."""
        children = self.tree.children(node)
        try:
            return await answering.join(desk, node, children, account, "work")
        except KnapError as error:
            notes = (f"its parts were put together without a model: {error.message}",)
            return Written(answer=answering.stitched(node, children), notes=notes, joined=False)

    def _settle(self, node: Node, written: Written, inputs: str) -> None:
        """Keep an answer with all that it rests on."""
        below = self.tree.children(node)
        sources = tuple(dict.fromkeys([*written.sources, *(node.found.all_sources if node.found else ())]))
        halves = [child for child in below if child.state != "done"]
        state: NodeState = "done" if written.joined and not halves else "partial"
        node = self.tree.change(
            node.id,
            state=state,
            reason=f"{len(halves)} of its {len(below)} parts have no whole answer" if halves else "",
            answer=written.answer,
            citations=written.citations,
            removed=written.removed,
            sources=sources,
            notes=tuple(dict.fromkeys([*node.notes, *written.notes])),
            inputs=inputs,
            cached=False,
        )
        if state == "done" and not (node.found and node.found.used_outside):
            self.cache.keep(node)

    def _take(self, node: Node, known: Node) -> None:
        """Take an answer from the cache; it cost nothing this time."""
        _ = self.tree.change(
            node.id,
            state="done",
            reason="",
            answer=known.answer,
            citations=known.citations,
            removed=known.removed,
            sources=known.sources,
            found=known.found,
            notes=known.notes,
            inputs=known.inputs,
            cached=True,
        )

    def _fall_back(self, why: str) -> None:
        """End the root with what there is, without a model."""
        root = self.tree.root
        answer = answering.stitched(root, self.tree.children(root)) if root.split else answering.listed(root)
        state: NodeState = "partial" if answer else "failed"
        citations = tuple(one for child in self.tree.children(root) for one in child.citations)
        _ = self.tree.change(ROOT, state=state, reason=why, answer=answer, inputs="", citations=citations, removed=())

    def _is_kept(self, node: Node) -> bool:
        """Tell whether a node was answered before from the very same, so that there is nothing to do.

        A node with children is looked at once those have ended.
        """
        if self.tree.was(node.id) not in ANSWERED or not node.inputs:
            return False
        if node.split and any(child.state == "pending" for child in self.tree.children(node)):
            return False
        return node.inputs == self._inputs(node)

    def _known(self, node: Node) -> Node | None:
        """Give the same node from the cache."""
        return None if node.id in self._anew else self.cache.answer(self._inputs(node))

    def _inputs(self, node: Node) -> str:
        return self.cache.inputs(node, self.course.strategy, self._around(node))

    def _around(self, node: Node) -> list[Node]:
        """List what a node builds on."""
        return self.tree.some(node.children if node.split else (*node.hard, *node.soft))

    def _end(self, node_id: str, state: NodeState, reason: str) -> None:
        if self.tree.get(node_id).state in {"running", "pending"}:
            _ = self.tree.change(node_id, state=state, reason=reason)

    @asynccontextmanager
    async def _slot(self) -> AsyncGenerator[None]:
        async with self._slots:
            yield

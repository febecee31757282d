"""Look after the runs of one vault: begin, carry out, go on, replay, cancel, list and forget them."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from knapper.agents.run import answering, freshness, locks, store, sums
from knapper.agents.run.engine import Engine
from knapper.agents.run.events import RunStarted, TellRun
from knapper.agents.run.executor import CANCELLED, INTERRUPTED, Execution
from knapper.agents.run.nodes import ENDED, ROOT, Node
from knapper.agents.run.records import Limits, Order, Run, RunState
from knapper.agents.run.store import Store
from knapper.agents.run.strategies import AUTO
from knapper.agents.run.tree import Tree
from knapper.errors import NotFound, StorageError
from knapper.jsontypes import JSONValue
from knapper.tools.context import Context

STALE: Final = "stale"
"""Replay what read notes that have changed since."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """Hold a run with its nodes."""

    run: Run
    nodes: Sequence[Node]

    def as_dict(self) -> dict[str, JSONValue]:
        """Shape it as every surface shows it."""
        nodes: list[JSONValue] = [node.brief() for node in self.nodes]
        counts = {"cached": sum(node.cached for node in self.nodes), "node_count": len(nodes)}
        return {**self.run.as_dict(), "usage": sums.spent(self.nodes).as_dict(), **counts, "nodes": nodes}


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """Hold the runs of one vault; for looking at them no model is needed."""

    store: Store
    folder: Path
    """The vault's state folder."""

    def runs(
        self, *, limit: int = 50, offset: int = 0, clients: Sequence[str] | None = None
    ) -> tuple[Sequence[Run], int]:
        """List runs as `Store.runs` does, each as it stands by now."""
        found, total = self.store.runs(limit=limit, offset=offset, clients=clients)
        return [self._resting(run) for run in found], total

    def show(self, run_id: str) -> Shown:
        """Give a run with its nodes.

        Raises:
            NotFound: There is none of that id, or none whose id begins so (code ``no_run``).
        """
        run = self.store.get(run_id)
        return Shown(run=self._resting(run), nodes=self.store.nodes(run.id))

    def node(self, run_id: str, node_id: str) -> Node:
        """Give a node with all that it did.

        Raises:
            NotFound: There is no such run, or no such node in it (code ``no_node``).
        """
        return _find(self.store.nodes(self.store.get(run_id).id), node_id)

    def cancel(self, run_id: str) -> bool:
        """Ask for a run's end, whichever process carries it out; tells whether one does.

        Raises:
            NotFound: There is no such run.
        """
        run = self.store.get(run_id)
        if not locks.is_held(self.folder, run.id):
            return False
        self.store.ask_to_cancel(run.id)
        return True

    def check_idle(self, run_id: str) -> None:
        """See that nobody carries a run out.

        Raises:
            ConflictError: Somebody does (code ``run_busy``).
        """
        with locks.hold(self.folder, run_id):
            pass

    def delete(self, run_id: str) -> None:
        """Forget a run; what it wrote stays, and can be undone.

        Raises:
            NotFound: There is no such run.
            ConflictError: It goes on.
        """
        run = self.store.get(run_id)
        with locks.hold(self.folder, run.id):
            self.store.delete(run.id)

    def stale(self, run_id: str, context: Context) -> dict[str, list[str]]:
        """List the nodes whose notes have changed since, each with those notes.

        A node with parts has read what it cites; that its parts may change is seen when they do.

        Args:
            run_id: The run's.
            context: The vault, as the run sees it.

        Raises:
            NotFound: There is no such run.
        """
        return freshness.stale(context, self.store.nodes(self.store.get(run_id).id))

    def _resting(self, run: Run) -> Run:
        found = store.resting(run, is_held=lambda run_id: locks.is_held(self.folder, run_id))
        if found is run:
            return run
        now = self.store.get(run.id)  # it may have ended between the two looks
        return found if now.state == run.state else now


def begin(engine: Engine, order: Order) -> Run:
    """Keep a new run; nothing is asked or read yet.

    Raises:
        NotFound: There is no such strategy.
    """
    if order.strategy != AUTO:
        _ = engine.strategies.load(order.strategy)
    return engine.store.begin(order, engine.name, Node(id=ROOT, task=order.task))


async def carry_out(
    engine: Engine, run_id: str, tell: TellRun, *, replay: str = "", limits: Limits | None = None
) -> Run:
    """Carry a run out, or go on with one; `RunDone` is told last.

    What was answered before isn't asked again. A cancelled task keeps what there is, and stays cancelled.

    Args:
        engine: What it works with.
        run_id: Of a run that was begun.
        tell: Takes each event.
        replay: ``stale`` to do those nodes again whose notes have changed, or a node's id to do it and all below it
            again; what builds on them follows where their answers change.
        limits: In place of the run's own.

    Returns:
        The run as it ended.

    Raises:
        NotFound: There is no such run or node.
        ConflictError: Somebody carries it out already (code ``run_busy``).
    """
    run = await asyncio.to_thread(engine.store.get, run_id)
    with locks.hold(engine.folder, run.id):
        run = engine.store.get(run.id)  # somebody may have gone on with it before it was held
        if replay not in {"", STALE}:
            _ = _find(engine.store.nodes(run.id), replay)
        order = replace(run.order, limits=limits or run.order.limits)
        resumed = run.state != "pending"
        run = replace(run, state="running", order=order, model=engine.name)
        tree = Tree(engine.store, run, engine.store.nodes(run.id), tell)
        anew = _forget(engine, run, tree, replay)
        execution = Execution(engine, run, tree, anew)  # first: where a vault is gone, the run stays what it was
        run = engine.store.save(run)
        engine.store.ask_to_cancel(run.id, wanted=False)
        tell(RunStarted(run=run.brief(), resumed=resumed))
        return await _watched(execution)


def settle(engine: Engine, run_id: str) -> None:
    """Keep that a run was ended before it began; one that had begun has kept its end itself.

    Raises:
        NotFound: There is no such run.
    """
    run = engine.store.get(run_id)
    if run.state == "pending":
        leaves = engine.is_leaving()
        why = INTERRUPTED if leaves else CANCELLED
        _ = engine.store.save(replace(run, state="interrupted" if leaves else "cancelled", reasons=(why,)))


async def _watched(execution: Execution) -> Run:
    """Carry a run out, and end it where somebody asks for that, in this process or another."""
    main = asyncio.create_task(_go(execution), name=f"run {execution.run.id}")
    watching = asyncio.create_task(_watch(execution), name=f"watch {execution.run.id}")
    try:
        _ = await asyncio.wait({main, watching}, return_when=asyncio.FIRST_COMPLETED)
        if main.done():
            return main.result()
        await _stop(execution, main, CANCELLED)
        return _end(execution, "cancelled")
    except asyncio.CancelledError:
        leaves = execution.engine.is_leaving()
        await _stop(execution, main, INTERRUPTED if leaves else CANCELLED)
        _ = _end(execution, "interrupted" if leaves else "cancelled")
        raise
    finally:
        _ = watching.cancel()


async def _watch(execution: Execution) -> None:
    """Return once somebody wants the run to end; a look that fails says nothing of that."""
    engine = execution.engine
    while True:
        with suppress(StorageError):
            if await asyncio.to_thread(engine.store.is_to_cancel, execution.run.id):
                return
        await asyncio.sleep(engine.look_s)


async def _stop(execution: Execution, main: "asyncio.Task[Run]", why: str) -> None:
    execution.stopped = why
    _ = main.cancel()
    _ = await asyncio.wait({main})


async def _go(execution: Execution) -> Run:
    async with execution.engine.model:
        await execution.work()
        await execution.answer()
    return _end(execution, None)


def _end(execution: Execution, forced: RunState | None) -> Run:
    """Keep what a run came to, and tell."""
    tree = execution.tree
    if forced:
        tree.cut(execution.stopped)
        if tree.root.state not in ENDED:
            _ = tree.change(ROOT, state="cut", reason=execution.stopped)
    root, lost = tree.root, tree.lost()
    answer = root.answer if root.state in {"done", "partial"} else ""
    if forced and not answer:
        answer = answering.stitched(root, tree.children(root))
    if answer and lost:
        answer = f"{answer.rstrip()}\n\n{answering.missing(lost)}"
    state = forced or _state(root, answer)
    reasons = tuple(dict.fromkeys(filter(None, (root.reason, *(f"{one.name}: {one.reason}" for one in lost)))))
    run = execution.engine.store.save(
        replace(
            execution.run,
            state=state,
            answer=answer,
            citations=root.citations,
            removed=root.removed,
            reasons=tuple(dict.fromkeys((execution.stopped, *reasons))) if forced else reasons,
        )
    )
    execution.course.run = run
    tree.tell_usage()
    tree.tell(sums.done(run, tree.all))
    return run


def _state(root: Node, answer: str) -> RunState:
    if not answer:
        return "failed"
    return "complete" if root.state == "done" else "partial"


def _forget(engine: Engine, run: Run, tree: Tree, replay: str) -> frozenset[str]:
    """Take away what is to be done again, and name what mustn't come from the cache."""
    if not replay:
        return frozenset()
    if replay != STALE:
        named = _find(tree.all, replay)
        anew = frozenset(node.id for node in tree.below(named.id))
        tree.forget(*anew)
        return anew
    tree.forget(*freshness.stale(engine.context_of(run.id), tree.all))
    return frozenset()


def _find(nodes: Sequence[Node], node_id: str) -> Node:
    found = next((node for node in nodes if node.id == node_id), None)
    if found is None:
        raise NotFound(f"the run has no node '{node_id[:40]}'", hint="`knap run trace tree` names them", code="no_node")
    return found

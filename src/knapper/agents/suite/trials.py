"""Try models on the tasks: do each in a vault of its own, accept what was proposed, and look at the vault."""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pydantic_ai.models import Model

from knapper.agents.pipeline.agents import Agents
from knapper.agents.pipeline.pipeline import Run
from knapper.agents.pipeline.requests import Request
from knapper.agents.suite import asking, editing, vault
from knapper.agents.suite.checks import World
from knapper.agents.suite.tasks import Task
from knapper.changes.disk.undo import OfProposal
from knapper.errors import KnapError
from knapper.jsontypes import JSONValue
from knapper.tools import proposals
from knapper.tools.context import Context

TASKS: Final = (*editing.TASKS, *asking.TASKS)
Open = Callable[[Path, Path, str], AbstractContextManager[Context]]
"""Opens the vault in a folder, with a folder for its state, for a client."""
MakeModel = Callable[[Task, Path], Model]
"""Gives the model for a task, told the vault's folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """Hold what came of one try of one task."""

    task: str
    problems: tuple[str, ...]
    """Empty where all holds."""
    wrong_bytes: int
    """Bytes on disk that nobody accepted, and bytes that undoing didn't give back."""
    tokens: int
    seconds: float

    @property
    def passed(self) -> bool:
        """Tell whether all holds."""
        return not self.problems and not self.wrong_bytes

    def as_dict(self) -> dict[str, JSONValue]:
        """Shape it as every surface shows it."""
        problems: list[JSONValue] = [*self.problems]
        return {
            "task": self.task,
            "passed": self.passed,
            "problems": problems,
            "wrong_bytes": self.wrong_bytes,
            "tokens": self.tokens,
            "seconds": round(self.seconds, 3),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Hold what tasks are tried with."""

    agents: Agents
    """Their model is replaced by that of each try."""
    make_model: MakeModel
    open_vault: Open


def find(ids: Sequence[str]) -> list[Task]:
    """Give tasks by their ids; all where none is named.

    Raises:
        KeyError: There is no such task.
    """
    known = {task.id: task for task in TASKS}
    return [known[one] for one in ids] if ids else list(TASKS)


async def attempt(bench: Bench, task: Task, folder: Path) -> Attempt:
    """Try one task once.

    Args:
        bench: What it is tried with.
        task: The task.
        folder: An empty folder, which is filled.
    """
    root, state = folder / "vault", folder / "state"
    vault.write(root)
    before = vault.read(root)
    model = bench.make_model(task, root)
    request = Request(
        task=task.text,
        current=task.current,
        toggles=task.toggles,
        scope=task.scope,
        rules=task.rules,
        added=task.added,
    )
    began = time.monotonic()
    seen = _Disk(root)
    with bench.open_vault(root, state, "agent") as context:
        run = Run(replace(bench.agents, model=model, scout_model=None), context, request)
        await run.run(lambda _: None)
        outcome = run.outcome()
    seconds = time.monotonic() - began
    wrong = seen.unasked()
    with bench.open_vault(root, state, "cli") as context:
        links = _broken(context)
        accepted = [one for one in map(str, outcome.proposals) if _accepted(context, one)]
        after = vault.read(root)
        broken = frozenset(_broken(context) - links)
        problems = _problems(task, World(before=before, after=after, outcome=outcome, broken=broken))
        for one in reversed(accepted):
            _ = context.writer.undo(OfProposal(proposal=one))
    wrong += seen.unasked()
    return Attempt(
        task=task.id,
        problems=problems,
        wrong_bytes=wrong,
        tokens=run.pipeline.token_accounting.total_tokens,
        seconds=seconds,
    )


def summed(attempts: Sequence[Attempt]) -> dict[str, JSONValue]:
    """Sum tries up: the share that passed, by task and in all, with tokens and time."""
    rows: list[JSONValue] = []
    for name in dict.fromkeys(one.task for one in attempts):
        tries = [one for one in attempts if one.task == name]
        problems: list[JSONValue] = [*dict.fromkeys(text for one in tries for text in one.problems)]
        rows.append(
            {
                "task": name,
                "passed": sum(one.passed for one in tries),
                "tries": len(tries),
                "problems": problems,
                "wrong_bytes": sum(one.wrong_bytes for one in tries),
                "tokens": sum(one.tokens for one in tries),
                "seconds": round(sum(one.seconds for one in tries), 3),
            }
        )
    passed = sum(one.passed for one in attempts)
    return {
        "success": True,
        "tasks": len(rows),
        "tries": len(attempts),
        "passed": passed,
        "pass_rate": round(passed / len(attempts), 4) if attempts else 0.0,
        "wrong_bytes": sum(one.wrong_bytes for one in attempts),
        "tokens": sum(one.tokens for one in attempts),
        "seconds": round(sum(one.seconds for one in attempts), 3),
        "results": rows,
    }


class _Disk:
    """Watch a vault's files: what a note's author saves meanwhile is theirs, and all else is wrong."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._before = vault.read(root)

    def unasked(self) -> int:
        """Count the bytes of files that aren't as they were, or as somebody else saved them."""
        now = vault.read(self._root)
        wrong = 0
        for name in now.keys() | self._before.keys():
            text, known = now.get(name, ""), self._before.get(name, "")
            saved = known.replace("# ", "# Saved meanwhile: ", 1)
            if text not in {known, saved}:
                wrong += max(len(text.encode(errors="surrogateescape")), len(known.encode(errors="surrogateescape")), 1)
        return wrong


def _accepted(context: Context, proposal: str) -> bool:
    """Accept as a person does; what doesn't fit any more stays."""
    try:
        shown = proposals.show_proposal(context, proposal)
        return proposals.accept_proposal(context, proposal, str(shown["digest"])).get("status") == "applied"
    except KnapError:
        return False


def _broken(context: Context) -> set[tuple[str, str]]:
    _ = context.freshen(meaning=False)
    return {(str(edge.source), edge.target) for edge in context.index.graph.broken()}


def _problems(task: Task, world: World) -> tuple[str, ...]:
    if world.outcome.state not in {"complete", "asked"}:
        error = world.outcome.error or {}
        return (f"the run ended as {world.outcome.state}: {error.get('error', '')}",)
    return tuple(problem for check in task.checks if (problem := check.problem(world)))

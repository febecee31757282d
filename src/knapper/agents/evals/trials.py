"""Run the evaluation tasks with a model, each in a vault of its own, and summarize the results."""

import itertools
import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from knapper.agents.evals import suite
from knapper.agents.evals.suite import EvalTask, ScriptedEdit, TrialState
from knapper.agents.pipeline.context import TaskRequest
from knapper.agents.pipeline.orchestrator import Agents
from knapper.agents.pipeline.pipeline import PipelineRun
from knapper.agents.pipeline.scopes import ASK_USER, UPDATE_SELECTION
from knapper.changes.disk.undo import OfProposal
from knapper.errors import KnapError
from knapper.jsontypes import JSONValue
from knapper.tools import proposals
from knapper.tools.context import Context

ScriptedCall = tuple[str, dict[str, JSONValue]]
_TASK_PROMPT_START: Final = "You do what a person asks"
_TRICKY_TEXT: Final = 'A {"brace": in a text and a ``` fence'


def make_perfect_model(task: EvalTask) -> Model:
    """Return a scripted model that carries out a task correctly."""
    script = task.perfect
    chosen: list[JSONValue] = [*script.selects]
    select: dict[str, JSONValue] = {"selected_paths": chosen, "reasoning": "the task is about them"}
    calls: list[ScriptedCall] = [(UPDATE_SELECTION, {**select, "confidence": "exploring" if script.asks else "done"})]
    if script.asks:
        calls.append((ASK_USER, {"question": script.asks}))
    return _make_scripted_model([calls], [write_reply(script.summary, script.edits)])


def make_careless_model(task: EvalTask, root: Path) -> Model:
    """Return a scripted model with many mistakes: invented paths and lines, overlaps, forbidden notes, broken replies.

    Args:
        task: The task.
        root: The vault's folder, in which a note is changed while the model replies.
    """
    current = task.current or "Budget.md"
    wild: tuple[ScriptedEdit, ...] = (
        (current, "replace:900", "x"),
        (current, "delete:1-9999", ""),
        (current, "replace:0", "x"),
        (current, "insert:-3", "x"),
        (current, "replace:6-8", "over\nlapping"),
        (current, "replace:7", "the other"),
        (current, "insert:3", "12: numbered\n13: lines\n"),
        ("Private/Secrets.md", "end", "I was here."),
        ("Made/Up.md", "replace:1", "x"),
        ("../outside.md", "create", "x"),
        ("/etc/passwd", "end", "x"),
        (".obsidian/app.json", "create", "{}"),
        ("Ideas.md", "create", "overwritten"),
        (current, "after:## No Such Heading", "x"),
        (current, "rewrite", "x"),
    )
    stale: tuple[ScriptedEdit, ...] = (
        (current, "replace:1", "stale first line"),
        (current, "replace:6-8", "stale lines"),
    )
    cut_short = write_reply("Cut", ((current, "delete:1-5", ""), (current, "end", _TRICKY_TEXT)))[:-25]

    def save_meanwhile(_messages: list[ModelMessage]) -> str:
        path = root / current
        _ = path.write_bytes(path.read_bytes().replace(b"# ", b"# Saved meanwhile: ", 1))
        return write_reply("Wild", wild)

    number = sum(map(ord, task.id)) % 3
    first: list[str | Callable[[list[ModelMessage]], str]] = [save_meanwhile, write_reply("Stale", stale)]
    second: list[str | Callable[[list[ModelMessage]], str]] = [cut_short, write_reply("Wild", wild)]
    third: list[str | Callable[[list[ModelMessage]], str]] = [write_reply("Wild", wild), cut_short]
    paths: list[JSONValue] = [
        "Made/Up.md",
        "../x",
        "Private/Secrets.md",
        *(f"Note {number}.md" for number in range(90)),
    ]
    calls: list[ScriptedCall] = [
        ("fetch_note", {"path": "No such.md"}),
        ("delete_file", {"path": current}),
        (UPDATE_SELECTION, {"selected_paths": paths, "reasoning": "all", "confidence": "sure!"}),
    ]
    return _make_scripted_model([calls, calls, []], (first, second, third)[number])


def write_reply(summary: str, edits: Sequence[ScriptedEdit]) -> str:
    """Return a reply in the format that the task agent is asked for."""
    rows = [{"file": file, "position": position, "content": content} for file, position, content in edits]
    return json.dumps({"summary": summary, "edits": rows}, ensure_ascii=False)


def _make_scripted_model(
    exploring: Sequence[Sequence[ScriptedCall]], doing: Sequence[str | Callable[[list[ModelMessage]], str]]
) -> Model:
    """Return a model that explores and replies by scripts, whose last entries are repeated."""
    explorations = enumerate(itertools.chain(exploring, itertools.repeat(exploring[-1])), 1)
    replies = itertools.chain(doing, itertools.repeat(doing[-1]))

    def task(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        # The repair of citations uses the same model, with other instructions.
        if not (info.instructions or "").startswith(_TASK_PROMPT_START):
            return ModelResponse(parts=[TextPart(content="")])
        reply = next(replies)
        return ModelResponse(parts=[TextPart(content=reply if isinstance(reply, str) else reply(messages))])

    async def explore(_: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
        turn, calls = next(explorations)
        if not calls:
            yield "That is all."
        for number, (name, arguments) in enumerate(calls):
            yield {number: DeltaToolCall(name=name, json_args=json.dumps(arguments), tool_call_id=f"{turn}-{number}")}

    return FunctionModel(function=task, stream_function=explore, model_name="scripted")


ALL_TASKS: Final = (*suite.EDITING_TASKS, *suite.ASKING_TASKS)
OpenVault = Callable[[Path, Path, str], AbstractContextManager[Context]]
"""Opens the vault in a folder for a client, with another folder for its state."""
MakeModel = Callable[[EvalTask, Path], Model]
"""Returns the model for a task in the vault's folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """The result of one trial of a task."""

    task: str
    problems: tuple[str, ...]
    """Failed checks; empty where all passed."""
    wrong_bytes: int
    """Bytes on disk that nobody accepted, and bytes that undoing didn't restore."""
    tokens: int
    seconds: float

    @property
    def passed(self) -> bool:
        """Return whether all checks passed."""
        return not self.problems and not self.wrong_bytes

    def as_dict(self) -> dict[str, JSONValue]:
        """Return it in the shape that every surface shows."""
        return {
            "task": self.task,
            "passed": self.passed,
            "problems": [*self.problems],
            "wrong_bytes": self.wrong_bytes,
            "tokens": self.tokens,
            "seconds": round(self.seconds, 3),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialSetup:
    """What trials are run with."""

    agents: Agents
    """The agents; each trial replaces their model."""
    make_model: MakeModel
    open_vault: OpenVault


def find_tasks(ids: Sequence[str]) -> list[EvalTask]:
    """Return tasks by their ids; all tasks where none is named.

    Raises:
        KeyError: There is no such task.
    """
    tasks_by_id = {task.id: task for task in ALL_TASKS}
    return [tasks_by_id[one] for one in ids] if ids else list(ALL_TASKS)


async def run_trial(setup: TrialSetup, task: EvalTask, folder: Path) -> TrialResult:
    """Run one trial of a task.

    Args:
        setup: What the trial is run with.
        task: The task.
        folder: An empty folder for the vault and its state.
    """
    root, state = folder / "vault", folder / "state"
    suite.write_vault(root)
    before = suite.read_vault(root)
    model = setup.make_model(task, root)
    request = TaskRequest(
        task=task.text,
        current=task.current,
        toggles=task.toggles,
        scope=task.scope,
        rules=task.rules,
        added=task.added,
    )
    start_time = time.monotonic()
    audit = _VaultAudit(root)
    with setup.open_vault(root, state, "agent") as context:
        agents = replace(setup.agents, chat=replace(setup.agents.chat, model=model), scout_chat=None)
        run = PipelineRun(agents, context, request)
        await run.run(lambda _: None)
        outcome = run.outcome()
    seconds = time.monotonic() - start_time
    wrong_bytes = audit.unexpected_bytes()
    with setup.open_vault(root, state, "cli") as context:
        links = _broken_links(context)
        accepted: list[str] = []
        for proposal in map(str, outcome.proposals):
            # As a person does; one that doesn't apply any more is left.
            with suppress(KnapError):
                digest = str(proposals.show_proposal(context, proposal)["digest"])
                if proposals.accept_proposal(context, proposal, digest).get("status") == "applied":
                    accepted.append(proposal)
        after = suite.read_vault(root)
        broken = frozenset(_broken_links(context) - links)
        trial = TrialState(before=before, after=after, outcome=outcome, broken=broken)
        if outcome.state in {"complete", "asked"}:
            problems = tuple(problem for check in task.checks if (problem := check(trial)))
        else:
            problems = (f"the run ended as {outcome.state}: {(outcome.error or {}).get('error', '')}",)
        for one in reversed(accepted):
            _ = context.writer.undo(OfProposal(proposal=one))
    wrong_bytes += audit.unexpected_bytes()
    return TrialResult(
        task=task.id,
        problems=problems,
        wrong_bytes=wrong_bytes,
        tokens=run.pipeline.token_accounting.total_tokens,
        seconds=seconds,
    )


def summarize_trials(attempts: Sequence[TrialResult]) -> dict[str, JSONValue]:
    """Return the share of trials that passed, for each task and in all, with tokens and time."""
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


class _VaultAudit:
    """The audit of a vault's files: only the simulated author's own changes are allowed before acceptance."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._before = suite.read_vault(root)

    def unexpected_bytes(self) -> int:
        """Return the number of bytes in files that neither are unchanged nor have the author's change."""
        now = suite.read_vault(self._root)
        wrong = 0
        for name in now.keys() | self._before.keys():
            text, before_text = now.get(name, ""), self._before.get(name, "")
            saved = before_text.replace("# ", "# Saved meanwhile: ", 1)
            if text not in {before_text, saved}:
                wrong += max(
                    len(text.encode(errors="surrogateescape")), len(before_text.encode(errors="surrogateescape")), 1
                )
        return wrong


def _broken_links(context: Context) -> set[tuple[str, str]]:
    _ = context.freshen(meaning=False)
    return {(str(edge.source), edge.target) for edge in context.index.graph.broken()}

"""A vault, and a model that judges, plans, answers and joins as a test says; what runs come to with them."""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic_ai.messages import FinishReason, ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage

from knapper.agents.runs import executor, retrieving
from knapper.agents.runs.engine import RetrievalRequest, RunEngine
from knapper.agents.runs.model import RetrievedContext, RunEvent, RunLimits, RunNode, RunOrder, RunRecord, SourceRef
from knapper.agents.runs.store import RunStore
from knapper.agents.work_store import WorkStore, open_work
from knapper.changes.writer import SubmitOptions
from knapper.tools.context import Context
from tests.tools import opened

NOTES = {
    "A.md": "# A\n\nAlpha grows tall.\n",
    "B.md": "# B\n\nBeta stays small.\n",
    "G.md": "# G\n\nGamma is red.\n",
}
USAGE = RequestUsage(input_tokens=60, output_tokens=40)
_KINDS = {
    "You judge": "judge",
    "You split": "plan",
    "You do one": "answer",
    "You write the": "join",
    "You wrote": "repair",
    "You write one": "script",
}
_SCRIPT_TASK = re.compile(r'source="task"[^>]*>\n"(.*?)"\n')
_TASK = re.compile(r"\AThe task:\n\n(.*?)(?:\n\n|\Z)", re.DOTALL)


@dataclass(frozen=True)
class Part:
    """One part of a plan, by its task; `needs` and `uses` name others' tasks."""

    task: str
    needs: Sequence[str] = ()
    uses: Sequence[str] = ()
    impact: str = "none"
    large: bool = False


@dataclass
class Brain:
    """Split what `plans` has; answer anything with its own name, or as `answers` says."""

    plans: Mapping[str, Sequence[Part]] = field(default_factory=dict[str, Sequence[Part]])
    answers: dict[str, str] = field(default_factory=dict[str, str])
    asked: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    prompts: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    scripts: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    """Replies in turn for each task; the last one again and again."""
    usage: RequestUsage = field(default_factory=lambda: USAGE)
    before: Callable[[str, str], None] | None = None
    """Called before each reply; may raise."""
    finish: FinishReason | None = None
    """Why its replies end."""
    wait_s: Mapping[str, float] = field(default_factory=dict[str, float])
    at_once: int = 0
    most_at_once: int = 0

    def open(self) -> FunctionModel:
        return FunctionModel(self._reply)

    def kinds(self, task: str) -> list[str]:
        return [kind for kind, asked in self.asked if asked == task]

    async def _reply(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        kind, task = meant(messages, info)
        self.asked.append((kind, task))
        self.prompts[kind, task] = _prompt(messages)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await asyncio.sleep(self.wait_s.get(task, 0))
            if self.before is not None:
                self.before(kind, task)
        finally:
            self.at_once -= 1
        return ModelResponse(
            parts=[TextPart(content=self.said(kind, task))], usage=self.usage, finish_reason=self.finish
        )

    def said(self, kind: str, task: str) -> str:
        if kind == "judge":
            split = "true" if task in self.plans else "false"
            return f'{{"split": {split}, "why": "so it is", "strategy": "analysis"}}'
        if kind == "plan":
            return plan(self.plans[task])
        if kind == "script":
            replies = self.scripts[task]
            return replies[min(self.kinds(task).count("script"), len(replies)) - 1]
        return self.answers.get(f"{kind} {task}", self.answers.get(task, f"{kind} of {task}."))


def meant(messages: Sequence[ModelMessage], info: AgentInfo) -> tuple[str, str]:
    """Tell what a request asks for: its kind, and its task."""
    return what(info.instructions or "", _prompt(messages))


def what(instructions: str, prompt: str) -> tuple[str, str]:
    """Tell what is asked for: its kind, and its task."""
    kind = next((name for start, name in _KINDS.items() if instructions.startswith(start)), "unknown")
    found = _SCRIPT_TASK.search(prompt) if kind == "script" else _TASK.match(prompt)
    return kind, found.group(1) if found else ""


def plan(parts: Sequence[Part]) -> str:
    import json  # noqa: PLC0415

    rows = [
        {
            "id": part.task,
            "title": part.task,
            "task": part.task,
            "needs": list(part.needs),
            "uses": list(part.uses),
            "impact": part.impact,
            "large": part.large,
        }
        for part in parts
    ]
    return json.dumps({"parts": rows})


@dataclass
class Finder:
    """Find the note that a task names by its first letter, and count how often."""

    asked: list[str] = field(default_factory=list[str])
    found: dict[str, RetrievedContext] = field(default_factory=dict[str, RetrievedContext])

    async def __call__(self, need: RetrievalRequest) -> RetrievedContext:
        self.asked.append(need.node.task)
        if need.node.task in self.found:
            return self.found[need.node.task]
        return read(need.context, f"{need.node.task[0].upper()}.md")


def read(context: Context, path: str) -> RetrievedContext:
    if not (context.view.root / path).exists():
        return RetrievedContext(context="")
    note = context.view.read(path)
    lines = len(note.outline.line_starts)
    source = SourceRef(path=note.path, hash=note.hash, first=1, last=lines)
    return RetrievedContext(context=note.raw.decode(), sources=(source,), score=0.9, confidence=0.9)


@dataclass
class World:
    """Hold a vault, and what runs in it."""

    engine: RunEngine
    brain: Brain
    finder: Finder
    vault: opened.Opener
    context: Context
    work: WorkStore
    events: list[RunEvent] = field(default_factory=list[RunEvent])

    @property
    def runs(self) -> RunStore:
        return self.engine.store

    def stale(self, run: RunRecord) -> dict[str, list[str]]:
        return retrieving.list_stale_nodes(self.context, self.runs.nodes(run.id))

    def begin(self, task: str, limits: RunLimits | None = None, **more: object) -> RunRecord:
        return executor.create_run(self.engine, replace(RunOrder(task=task, limits=limits or RunLimits()), **more))

    def go_on(self, run_id: str, *, replay: str = "", limits: RunLimits | None = None) -> RunRecord:
        self.brain.asked.clear()
        self.finder.asked.clear()
        return asyncio.run(
            executor.carry_out_run(self.engine, run_id, self.events.append, replay=replay, limits=limits)
        )

    def run(self, task: str, limits: RunLimits | None = None, **more: object) -> RunRecord:
        return self.go_on(self.begin(task, limits, **more).id)

    def node(self, run: RunRecord, node_id: str) -> RunNode:
        return self.runs.node(run.id, node_id)

    def states(self, run: RunRecord) -> dict[str, str]:
        return {node.task: node.state for node in self.runs.show(run.id).nodes}

    def write(self, name: str, text: str) -> None:
        (self.vault.root / name).write_text(text, encoding="utf-8")


Make = Callable[..., World]
"""Makes a world of a brain and notes; both may be left out."""


def world(base: Path, brain: Brain, notes: Mapping[str, str] | None = None) -> World:
    vault = opened.vault(base, dict(notes or NOTES))
    context = vault.open("agent")
    folder = vault.state / "runs"
    folder.mkdir(parents=True, exist_ok=True)
    finder = Finder()
    work = open_work(folder)
    engine = RunEngine(
        model=brain.open(),
        name="scripted",
        store=RunStore(work),
        open_context=lambda run, _: replace(context, submit_options=SubmitOptions(run=run)),
        retrieve=finder,
        poll_s=0.01,
    )
    return World(engine=engine, brain=brain, finder=finder, vault=vault, context=context, work=work)


def shut(made: World) -> None:
    made.work.shut()
    made.context.close()


def _prompt(messages: Sequence[ModelMessage]) -> str:
    first = next(one for one in messages if isinstance(one, ModelRequest))
    return next(str(part.content) for part in first.parts if isinstance(part, UserPromptPart))

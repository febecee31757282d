"""Hold the streams of tasks and runs to recordings, event by event, with what each agent was offered and told.

A recording is a JSON file of `recordings`: every event as the surfaces pass it on; of every request to the model, which
agent made it and with which tools; and all that each agent's last request holds. Ids, times and durations have names.
Where the engine is to change and the stream isn't, these have to pass as they are. Where a change of the stream is
wanted, delete the file: the test writes it anew, and fails that once.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse
from pydantic_ai.models.function import AgentInfo

from knapper.agents.events import BaseEvent
from knapper.agents.model import replies
from knapper.agents.pipeline import pipeline
from knapper.agents.pipeline.context import TaskRequest
from knapper.agents.pipeline.pipeline import ResumePoint
from knapper.agents.pipeline.store import AgentToggles
from knapper.agents.runs.model import CheckpointEvent, RetrievedContext, RunLimits
from knapper.jsontypes import JSONValue
from tests.agents import run_world, runs, scripts
from tests.agents.pipeline.test_web import NEEDED, Paper
from tests.agents.run_world import Brain, Make, Part
from tests.agents.runs import Ended
from tests.agents.scripted import Call
from tests.agents.scripts import Cast
from tests.tools import opened

RECORDINGS = Path(__file__).with_name("recordings")
NOTES = {
    "Garden.md": "# Garden\n\nThe fence is green. See [[Plants]].\n",
    "Plants.md": "# Plants\n\nRoses and [[Soil]].\n",
    "Soil.md": "# Soil\n\nLoam.\n",
}
PAGE = "https://a.example/"
ALL = AgentToggles(scout=True, web=True)
ORDER = '{"next": "%s", "focus": "%s", "reason": "because"}'
SCOUT = [
    ["I look for it.", Call("search_keyword", {"query": "fence", "limit": "5"})],
    [Call("fetch_note", {"path": "Garden.md"})],
    [Call("write_file", {"path": "Garden.md", "content": "x"})],
    [Call("get_links", {"path": "Nowhere.md"})],
    [scripts.select("Garden.md", "Plants.md")],
]
WEB = [
    [NEEDED],
    [Call("web_search", {"query": "fence paint"})],
    [Call("select_pages", {"urls": [PAGE]})],
    [
        Call(
            "finalize_web_context",
            {
                "findings": "Linseed.",
                "sources": [{"url": PAGE, "extracted": "it lasts"}, {"url": "https://b.example/"}],
            },
        )
    ],
]
EDIT = scripts.task(
    f"Linseed oil paint ({PAGE}). [[Garden]]",
    ("Garden.md", "replace:3", "The fence is painted with linseed oil."),
    ("Secret.md", "end", "not allowed"),
    ("Paint.md", "create", "# Paint\n\nLinseed oil.\n"),
)
ASKING = [
    scripts.select("Garden.md", confidence="exploring"),
    Call("ask_user", {"question": "Which garden?", "options": ["front", "back"]}),
]
PARTS = {
    "T": [Part("alpha", impact="contract"), Part("beta", needs=["alpha"], large=True), Part("gamma", uses=["beta"])],
    "beta": [Part("b1"), Part("b2", uses=["b1"])],
}
"""One after another: the order of events of parts that are done side by side isn't promised."""
POOR = RetrievedContext(context="little", score=0.1, tier="C")
ONE_BY_ONE = RunLimits(parallel=1)

_UNSTEADY = frozenset({"elapsed_s"})
"""Fields of durations, of which it only counts whether there is one."""
_TIME = re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|[+-]\d\d:?\d\d)?")
_ID = re.compile(r"\b(?:r\d{6}-\d{6}-[0-9a-f]{8}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{9})\b")
"""Of a run, of a task, and of a call to which the model gave one that was there already."""
_MARK = re.compile(r'(mark=")\w+')


@dataclass
class Recorder:
    """Make a stream the same each time, whatever ids and times are in it."""

    names: dict[str, str] = field(default_factory=dict[str, str])
    """What stands for each id, in the order in which they came."""
    proposals: dict[str, str] = field(default_factory=dict[str, str])

    def events(self, events: Sequence[BaseEvent]) -> list[JSONValue]:
        return [self.steady(event.as_dict()) for event in events]

    def task(self, ended: Ended) -> list[JSONValue]:
        for number, proposal in enumerate(ended.outcome.proposals, 1):
            self.proposals[str(proposal)] = f"<proposal {number}>"
        return self.events([*ended.events, ended.outcome])

    def steady(self, value: JSONValue) -> JSONValue:
        if isinstance(value, dict):
            return {name: f"<{name}>" if name in _UNSTEADY else self.steady(one) for name, one in value.items()}
        if isinstance(value, list):
            return [self.steady(one) for one in value]
        return self.text(value) if isinstance(value, str) else value

    def lines(self, text: str) -> list[JSONValue]:
        return [*self.text(text).splitlines()]

    def text(self, text: str) -> str:
        for proposal, name in self.proposals.items():
            text = text.replace(proposal, name)
        steady = _MARK.sub(r"\1<mark>", _TIME.sub("<time>", text))
        return _ID.sub(lambda found: self.names.setdefault(found[0], f"<id {len(self.names) + 1}>"), steady)


def requests(recorder: Recorder, cast: Cast) -> dict[str, JSONValue]:
    """Return what each agent was offered, request by request, and what its last request held."""
    return {
        agent: {
            "offered": [[tool.name for tool in info.function_tools] for info in infos],
            "told": recorder.lines(replies.format_conversation(without_instructions(cast.asked[agent][-1]))),
        }
        for agent, infos in cast.infos.items()
    }


def without_instructions(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """Leave out what is the prompts' own text."""
    return [replace(one, instructions=None) if isinstance(one, ModelRequest) else one for one in messages]


def hold(name: str, recorded: Mapping[str, JSONValue]) -> None:
    """Compare a stream with its recording, event by event."""
    file = RECORDINGS / f"{name}.json"
    if not file.exists():
        _ = file.write_text(json.dumps(recorded, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        pytest.fail(f"{file.name} was written anew: look at it, and run this once more")
    expected = json.loads(file.read_text(encoding="utf-8"))

    for part, events in recorded.items():
        if isinstance(events, list):
            for number, (event, one) in enumerate(zip(events, expected[part], strict=False)):
                assert event == one, f"{part}, event {number}"
        assert events == expected[part], part
    assert recorded.keys() == expected.keys()


@pytest.fixture
def vault(tmp_path: Path) -> opened.Opener:
    return opened.vault(tmp_path, {**NOTES, "Secret.md": "# Secret\n"})


def test_scout_web_and_task_are_told_as_recorded(vault: opened.Opener) -> None:
    cast = Cast({"scout": SCOUT, "web": WEB, "task": [EDIT]})
    request = TaskRequest(task="what paint?", current="Garden.md", toggles=ALL)
    with runs.context(vault) as context:
        web = Paper({PAGE: "Linseed oil paint lasts."})
        ended = runs.run(runs.agents(cast), replace(context, open_web=lambda: web), request)

    recorder = Recorder()
    hold("task", {"events": recorder.task(ended), "requests": requests(recorder, cast)})


def test_a_task_whose_agents_are_chosen_by_a_model_is_told_as_recorded(vault: opened.Opener) -> None:
    orders = [[ORDER % ("scout", "plants")], [ORDER % ("task", "")]]
    cast = Cast({"orchestrator": orders, "scout": [[scripts.select("Plants.md")]], "task": [scripts.task("Roses.")]})

    ended = runs.do(vault, cast, "which?", toggles=ALL, orchestrate=True)

    recorder = Recorder()
    hold(
        "task-orchestrated",
        {"events": recorder.task(ended), "requests": requests(recorder, cast)},
    )


def test_a_task_that_asks_and_goes_on_is_told_as_recorded(vault: opened.Opener) -> None:
    request = TaskRequest(task="paint", toggles=AgentToggles(scout=True))
    first = Cast({"scout": [ASKING]})
    second = Cast({"scout": [[scripts.select("Garden.md", "Soil.md")]], "task": [scripts.task("Painted.")]})
    with runs.context(vault) as context:
        paused = runs.run(runs.agents(first), context, request)
        state = json.loads(json.dumps(pipeline.dump_state(paused.run.paused_state())))
        going = ResumePoint(state=pipeline.load_state(state), answer="the back one")
        ended = runs.run(runs.agents(second), context, request, going)

    recorder = Recorder()
    recorded: dict[str, JSONValue] = {
        "events": recorder.task(paused),
        "events after the answer": recorder.task(ended),
        "requests": requests(recorder, first),
        "requests after the answer": requests(recorder, second),
    }
    hold("task-asked", recorded)


def test_a_task_that_reaches_its_limit_is_told_as_recorded(vault: opened.Opener) -> None:
    again = [[Call("search_keyword", {"query": f"fence {number}"})] for number in range(9)]
    cast = Cast({"scout": again, "task": [scripts.task("What there is.")]})
    settings = replace(runs.agents(cast).scout, rounds=2)

    ended = runs.do(vault, cast, "all", toggles=AgentToggles(scout=True), agents_scout=settings)

    recorder = Recorder()
    hold("task-limit", {"events": recorder.task(ended), "requests": requests(recorder, cast)})


def test_a_run_with_parts_a_question_and_a_failure_is_told_as_recorded(make: Make) -> None:
    brain = Brain(plans=PARTS, answers={"alpha": "It grows tall. [[A]] (lines 3-3)", "b2": ""})
    world = make(brain)
    world.finder.found["alpha"] = POOR

    async def person(_: CheckpointEvent) -> str:
        return "look in the cellar"

    world.engine = replace(world.engine, ask_person=person)
    _ = world.run("T", ONE_BY_ONE)

    recorder = Recorder()
    hold("run", {"events": recorder.events(world.events), "requests": asked(recorder, world.brain)})


@dataclass
class Ending(Brain):
    """Have the run cancelled while one part is being answered."""

    end: Callable[[], object] | None = None

    async def _reply(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if self.end is not None and run_world.meant(messages, info) == ("answer", "b1"):
            _ = self.end()
        return await super()._reply(messages, info)


def test_a_run_that_is_cancelled_and_resumed_is_told_as_recorded(make: Make) -> None:
    brain = Ending(plans=PARTS, wait_s={"b1": 60})
    world = make(brain)
    run = world.begin("T", ONE_BY_ONE)
    brain.end = lambda: world.runs.cancel(run.id)

    _ = world.go_on(run.id)
    recorder = Recorder()
    recorded = {"events": recorder.events(world.events), "requests": asked(recorder, brain)}
    world.events.clear()
    brain.wait_s, brain.end = {}, None
    _ = world.go_on(run.id)

    after = {"events after": recorder.events(world.events), "requests after": asked(recorder, brain)}
    hold("run-cancelled", {**recorded, **after})


def asked(recorder: Recorder, brain: Brain) -> list[JSONValue]:
    """Return what the model was asked for in each request, in order, with the lines that it was told."""
    return [
        {"kind": kind, "task": task, "told": recorder.lines(brain.prompts[kind, task])} for kind, task in brain.asked
    ]

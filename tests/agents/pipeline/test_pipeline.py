"""Several agents in a row: switches, accounting, events, the orchestrator, history, and stopping."""

import asyncio
import datetime as dt
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from pydantic_ai.usage import RunUsage

from knapper.agents.model import usage
from knapper.agents.model.usage import Meter, SpendingLimits, open_meter
from knapper.agents.pipeline import context, pipeline, service, task
from knapper.agents.pipeline.context import TaskRequest
from knapper.agents.pipeline.edits import ChatMessage, EditFailure, EditInstruction, EditResults
from knapper.agents.pipeline.orchestrator import OrchestratorSettings
from knapper.agents.pipeline.pipeline import PausedState, PipelineRun
from knapper.agents.pipeline.records import PipelineEvent, PipelineOutcome
from knapper.agents.pipeline.scopes import ContextScopeConfig, EditRules
from knapper.agents.pipeline.service import PipelineService
from knapper.agents.pipeline.store import AgentToggles, PausedRun, PausedRuns, Preset, Presets
from knapper.agents.sessions.store import Exchange, SessionStore
from knapper.agents.work_store import open_work
from knapper.changes.disk.storage import open_shared_database
from knapper.codemode.tasks import ModelSpend
from knapper.errors import BadInput, NotFound, StorageError
from knapper.jsontypes import JSONValue
from tests.agents import runs, scripts
from tests.agents.scripted import NOW, Call
from tests.agents.scripts import Cast
from tests.tools import opened

NOTES = {
    "Garden.md": "# Garden\n\nThe fence is green. See [[Plants]].\n",
    "Plants.md": "# Plants\n\nRoses and [[Soil]].\n",
    "Soil.md": "# Soil\n\nLoam.\n",
}
ORDER = '{"next": "%s", "focus": "%s", "reason": "because"}'
FULL = StorageError("the disk is full", hint="make room")


@pytest.fixture
def vault(tmp_path: Path) -> opened.Opener:
    return opened.vault(tmp_path, NOTES)


def test_the_task_alone_is_the_default_and_at_least_one_agent_works() -> None:
    assert AgentToggles() == AgentToggles(scout=False, web=False, task=True)
    with pytest.raises(BadInput):
        _ = AgentToggles(task=False)


def test_the_switches_are_kept(tmp_path: Path) -> None:
    work = open_work(tmp_path)
    kept = Presets(work)
    usual = AgentToggles()

    assert kept.toggles(usual) == usual
    kept.set_toggles(AgentToggles(scout=True, task=False))
    work.shut()
    work = open_work(tmp_path)

    assert Presets(work).toggles(usual) == AgentToggles(scout=True, task=False)
    work.shut()


def test_presets_are_kept_whole_by_name(tmp_path: Path) -> None:
    one = Preset(
        name="Work Notes",
        scope=ContextScopeConfig(link_depth=3, include_same_folder=True, excluded_folders=("Private",)),
        rules=EditRules(editable="linked", can=frozenset({"add"})),
        added=("Garden.md",),
        toggles=AgentToggles(scout=True, web=True, task=False),
    )
    work = open_work(tmp_path)
    kept = Presets(work)
    kept.save(one)

    assert kept.find(" work  notes ") == one
    assert kept.list() == [one]
    kept.delete("WORK NOTES")
    with pytest.raises(NotFound, match="Work"):
        kept.delete("Work Notes")
    with pytest.raises(BadInput):
        kept.save(Preset(name=" "))
    work.shut()


@pytest.mark.parametrize(("name", "least", "most"), [("chat_history_length", 0, 100), ("token_limit", 3_000, None)])
def test_settings_of_a_request_have_their_ranges(name: str, least: int, most: int | None) -> None:
    assert (TaskRequest(task="x").chat_history_length, TaskRequest(task="x").token_limit) == (10, 16_000)
    for wrong in (least - 1, *([most + 1] if most else [])):
        with pytest.raises(BadInput):
            _ = context.read_request({**TaskRequest(task="x").as_dict(), name: wrong})


def test_a_request_is_kept_whole() -> None:
    one = TaskRequest(
        task="x",
        current="Garden.md",
        toggles=AgentToggles(web=True),
        scope=ContextScopeConfig(link_depth=1),
        rules=EditRules(editable="current", can=frozenset({"create"})),
        added=("Soil.md",),
        orchestrate=True,
        session_id="s",
    )

    assert context.read_request(one.as_dict()) == one


@pytest.mark.parametrize("name", ["run_id", "session_id", "token_limit", "orchestrate"])
def test_a_stored_request_that_lacks_what_all_versions_stored_is_not_read_with_a_default(name: str) -> None:
    stored = TaskRequest(task="x", run_id="r").as_dict()
    del stored[name]

    with pytest.raises(LookupError, match=name):
        _ = context.read_request(stored)


def test_tokens_are_counted_by_phase_and_the_outcome_has_all(vault: opened.Opener) -> None:
    cast = Cast({"scout": [[scripts.select("Plants.md")]], "task": [scripts.task("Roses.")]})

    ended = runs.do(vault, cast, toggles=AgentToggles(scout=True))

    counts = ended.run.pipeline.token_accounting
    assert counts.scout_tokens > 0
    assert counts.task_tokens > 0
    assert counts.web_tokens == 0
    assert counts.total_tokens == counts.scout_tokens + counts.task_tokens
    assert ended.run.pipeline.scout is not None
    assert ended.run.pipeline.scout.tokens_used == counts.scout_tokens
    assert ended.outcome.usage["total_tokens"] == counts.total_tokens


def test_the_task_is_told_why_each_note_is_there(vault: opened.Opener) -> None:
    first = [Call("search_keyword", {"query": "roses"})]
    cast = Cast({"scout": [first, [scripts.select("Plants.md")]], "task": [scripts.task("Roses.")]})

    _ = runs.do(vault, cast, "what grows?", toggles=AgentToggles(scout=True))

    assert "## Prior agent context" in cast.system("task")
    assert "- confidence: done" in cast.system("task")
    assert '"Plants.md": keyword in content' in cast.system("task")
    assert "why: keyword in content" in cast.prompts("task")


def test_events_tell_how_far_the_run_is(vault: opened.Opener) -> None:
    cast = Cast({"scout": [[scripts.select("Plants.md")]], "task": [scripts.task("Roses.")]})

    ended = runs.do(vault, cast, toggles=AgentToggles(scout=True))

    told = [(one["phase"], one["state"]) for event in ended.of("progress") for one in [event.as_dict()]]
    assert told == [
        *(("scout", "started"), ("scout", "ended")),
        *(("task", "started"), ("task", "going_on"), ("task", "ended")),
    ]
    assert [event.kind for event in ended.events if event.kind in {"selection", "context"}] == ["selection", "context"]


def test_the_orchestrator_sends_whom_it_needs_and_may_go_round_again(vault: opened.Opener) -> None:
    cast = Cast(
        {
            "orchestrator": [
                [ORDER % ("scout", "plants")],
                [ORDER % ("web", "prices")],
                [ORDER % ("scout", "soil")],
                [ORDER % ("task", "")],
            ],
            "scout": [[scripts.select("Plants.md")], [scripts.select("Plants.md", "Soil.md")]],
            "web": [["never"]],
            "task": [scripts.task("Done.")],
        }
    )

    ended = runs.do(vault, cast, toggles=AgentToggles(scout=True, web=True), orchestrate=True)

    assert [step.phase for step in ended.run.paused.steps] == ["scout", "web", "scout"]
    assert "Look for this now: soil" in cast.prompts("scout", 1)
    assert ended.paths == ["Plants.md", "Soil.md"]
    assert ended.run.pipeline.token_accounting.orchestrator_tokens > 0


DEEP = '{"next":' + '{"a":' * 480 + "1" + "}" * 481


@pytest.mark.parametrize("said", ["no idea", '{"next": "web"}', '{"next": "rm"}', "[]", '{"next": "scout"', DEEP])
def test_where_the_orchestrator_says_nothing_of_use_the_usual_order_holds(vault: opened.Opener, said: str) -> None:
    cast = Cast({"orchestrator": [[said]], "scout": [[scripts.select("Plants.md")]], "task": [scripts.task("Done.")]})

    ended = runs.do(vault, cast, toggles=AgentToggles(scout=True), orchestrate=True)

    assert [step.phase for step in ended.run.paused.steps] == ["scout"]
    assert ended.outcome.state == "complete"


def test_the_budget_of_the_orchestrator_ends_gathering(vault: opened.Opener) -> None:
    turns = [[ORDER % ("scout", "a")], [ORDER % ("web", "b")]] * 5
    cast = Cast({"orchestrator": turns, "scout": [[scripts.select("Plants.md")]], "task": [scripts.task("Done.")]})
    both = AgentToggles(scout=True, web=True)

    few = runs.do(vault, cast, toggles=both, orchestrate=True, agents_orchestrator=OrchestratorSettings(steps=3))
    poor = runs.do(vault, cast, toggles=both, orchestrate=True, agents_orchestrator=OrchestratorSettings(tokens=1))

    assert len(few.run.paused.steps) == 3
    assert len(poor.run.paused.steps) == 1
    assert {few.outcome.state, poor.outcome.state} == {"complete"}
    for wrong in (0, 9):
        with pytest.raises(BadInput):
            _ = OrchestratorSettings(steps=wrong)


def test_stopping_while_the_task_is_done_keeps_what_was_found(vault: opened.Opener) -> None:
    def stop(_: object) -> list[str]:
        raise asyncio.CancelledError

    cast = Cast({"scout": [[scripts.select("Soil.md")]], "task": [stop]})
    with runs.context(vault) as context:
        made = PipelineRun(runs.agents(cast), context, TaskRequest(task="x", toggles=AgentToggles(scout=True)))
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(made.run(lambda _: None))
        outcome = made.outcome()

    assert outcome.state == "cancelled"
    assert "[[Soil.md]]" in outcome.answer


def test_a_model_that_fails_ends_the_run_with_its_error(vault: opened.Opener) -> None:
    def fail(_: object) -> list[str]:
        from pydantic_ai.exceptions import ModelHTTPError  # noqa: PLC0415

        raise ModelHTTPError(status_code=503, model_name="scripted")

    ended = runs.do(vault, Cast({"task": [fail]}), current="Garden.md")

    assert ended.outcome.state == "failed"
    assert ended.outcome.error is not None
    assert ended.of("error")


def exchange(number: int, **outcome: object) -> Exchange:
    return Exchange(
        number=number,
        at=NOW,
        question=f"question {number}",
        file="Garden.md",
        outcome={"answer": f"answer {number}", **outcome},  # pyright: ignore[reportArgumentType]
        messages="[]",
    )


def test_history_is_counted_in_messages() -> None:
    turns = [exchange(number) for number in range(1, 8)]

    assert service.read_chat_messages(turns, 0) == []
    assert [one.content for one in service.read_chat_messages(turns, 3)] == ["answer 6", "question 7", "answer 7"]
    assert len(service.read_chat_messages(turns, 10)) == 10
    assert len(service.read_chat_messages(turns, 100)) == 14


def test_a_message_keeps_the_open_note_its_edits_and_their_results() -> None:
    edit = {"file": "Garden.md", "position": "end", "content": "x"}
    failure = {"file": "No.md", "error": "not there", "code": "not_found", "position": "end"}
    results = {"success": 1, "failed": 1, "failures": [failure]}
    turn = exchange(1, proposed_edits=[edit], edit_results=results, proposals=["p1"])

    asked, answered = service.read_chat_messages([turn], 2, lambda name: f"{name} was accepted")

    assert (asked.role, asked.active_file) == ("user", "Garden.md")
    assert list(answered.proposed_edits) == [EditInstruction(file="Garden.md", position="end", content="x")]
    assert answered.edit_results == EditResults(
        success=1, failures=(EditFailure(file="No.md", error="not there", code="not_found", position="end"),)
    )
    assert answered.fate == "p1 was accepted"
    assert answered.as_dict()["edit_results"] == results


def test_the_model_hears_its_edits_and_what_became_of_them() -> None:
    edit = EditInstruction(file="Garden.md", position="end", content="x")
    results = EditResults(success=0, failures=(EditFailure(file="Garden.md", error="too late", position="end"),))
    answered = ChatMessage(
        id="1", role="assistant", content="Did it.", timestamp=NOW, proposed_edits=(edit,), edit_results=results
    )

    told = str(task.write_history([answered]))

    assert '"position": "end"' in told
    assert "too late" in told


def answering(folder: Path, cast: Cast, meter: Meter | None = None, **more: object) -> PipelineService:
    work = open_work(folder)
    made = PipelineService(
        agents=runs.agents(cast, meter=meter),
        runs=PausedRuns(work, lambda: NOW),
        store=SessionStore(work, lambda: NOW),
    )
    return replace(made, **more)


def test_a_turn_is_kept_and_paid_for(vault: opened.Opener, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    cast = Cast({"task": [scripts.task("Roses.")]})
    made = answering(own, cast, meter=open_meter(own, SpendingLimits(), lambda: NOW))
    session = made.store.begin(file="Plants.md")
    events: list[PipelineEvent] = []

    with runs.context(vault) as context:
        request = TaskRequest(task="what?", current="Plants.md", session_id=session.id)
        outcome = asyncio.run(made.ask(request, context, events.append))

    (turn,) = made.store.turns(session.id)
    assert (turn.question, turn.file, turn.outcome["answer"]) == ("what?", "Plants.md", "Roses.")
    assert events[-1] is outcome
    assert isinstance(events[-1], PipelineOutcome)
    meter = made.agents.chat.meter
    assert meter is not None
    assert meter.of_run(request.run_id).tokens == outcome.usage["total_tokens"]


class Killed(Meter):
    """End before a turn's end is recorded."""

    def record_models(self, run: str, spending: Mapping[str, ModelSpend], *, usage: RunUsage | None = None) -> None:
        del run, spending, usage


def test_what_a_task_cost_stays_counted_though_the_process_ends_before_it_is_recorded(
    vault: opened.Opener, tmp_path: Path
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    open_meter(own, SpendingLimits(), lambda: NOW).shut()
    killed = Killed(
        open_shared_database(own / usage.USAGE_FILE, "", usage.USAGE_VERSION), SpendingLimits(), lambda: NOW
    )
    cast = Cast({"scout": [[scripts.select("Garden.md")]], "task": [scripts.task("Roses.")]})
    made = answering(own, cast, meter=killed)
    request = TaskRequest(task="what?", toggles=AgentToggles(scout=True, task=True))

    with runs.context(vault) as context:
        outcome = asyncio.run(made.ask(request, context, lambda _: None))
    killed.shut()

    after = open_meter(own, SpendingLimits(), lambda: NOW)
    assert outcome.usage["requests"] == 2
    assert after.of_run(request.run_id).as_dict() == {
        name: outcome.usage[name] for name in after.of_run(request.run_id).as_dict()
    }
    after.shut()


class Full(SessionStore):
    """Have no place for another turn."""

    def append(self, session_id: str, after: int, exchange: Exchange) -> int:
        del session_id, after, exchange
        raise FULL


class Torn(Meter):
    """Have no place to write down what is used."""

    def record_models(self, run: str, spending: Mapping[str, ModelSpend], *, usage: RunUsage | None = None) -> None:
        del run, spending, usage
        raise FULL


class Stuck(PausedRuns):
    """Have no place for a run that waits."""

    def pause(self, run: PausedRun) -> None:
        del run
        raise FULL


def test_what_cannot_be_kept_is_told_and_an_answered_question_does_not_wait_again(
    vault: opened.Opener, tmp_path: Path
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    open_meter(own, SpendingLimits(), lambda: NOW).shut()
    torn = Torn(open_shared_database(own / usage.USAGE_FILE, "", usage.USAGE_VERSION), SpendingLimits(), lambda: NOW)
    full = Full(open_work(own), lambda: NOW)
    question = Call("ask_user", {"question": "Which?"})
    cast = Cast({"scout": [[question], [scripts.select("Garden.md")]], "task": [scripts.task("Green.")]})
    made = answering(own, cast, meter=torn, store=full)
    request = TaskRequest(
        task="what?", session_id=full.begin(file="Garden.md").id, toggles=AgentToggles(scout=True, task=True)
    )
    events: list[PipelineEvent] = []

    with runs.context(vault) as context:
        asked = asyncio.run(made.ask(request, context, lambda _: None))
        ended = asyncio.run(made.resume(request.run_id, "Garden", context, events.append))

    assert (asked.state, ended.state, ended.answer) == ("asked", "complete", "Green.")
    assert events[-1] is ended
    assert [event.kind for event in events[-3:]] == ["notice", "notice", "outcome"]
    assert list(ended.notices) == ["not everything was stored: the disk is full"] * 2
    assert made.runs.list() == []


def test_a_question_that_cannot_be_kept_is_not_asked(vault: opened.Opener, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    stuck = Stuck(open_work(own), lambda: NOW)
    cast = Cast({"scout": [[Call("ask_user", {"question": "Which?"})]]})
    events: list[PipelineEvent] = []

    with runs.context(vault) as context:
        made = answering(own, cast, runs=stuck)
        request = TaskRequest(task="what?", toggles=AgentToggles(scout=True, task=True))
        outcome = asyncio.run(made.ask(request, context, events.append))

    assert (outcome.state, outcome.question) == ("failed", None)
    assert outcome.error == {"error": FULL.message, "code": FULL.code, "hint": FULL.hint}
    assert [event.kind for event in events[-2:]] == ["error", "outcome"]


def test_a_waiting_run_is_held_by_one_who_may_until_it_has_ended(tmp_path: Path) -> None:
    works = [open_work(tmp_path), open_work(tmp_path)]
    kept, elsewhere = (PausedRuns(work, lambda: NOW) for work in works)
    for name, client in (("r1", "mcp"), ("r2", "http")):
        kept.pause(PausedRun(id=name, client=client, at=NOW, question={"question": "?"}, request={}, state={}))

    async def hold(runs: PausedRuns, run_id: str, client: str) -> None:
        async with runs.hold(run_id, client) as run:
            assert run.question == {"question": "?"}
            assert [one.id for one in elsewhere.list()] == ["r2"]
            with pytest.raises(NotFound):
                _ = elsewhere.find(run_id)
            with pytest.raises(NotFound):
                async with elsewhere.hold(run_id):
                    pass

    assert [one.id for one in kept.list("mcp")] == ["r1"]
    with pytest.raises(NotFound):
        asyncio.run(hold(kept, "r1", "http"))
    asyncio.run(hold(kept, "r1", "mcp"))
    assert sorted(one.id for one in elsewhere.list()) == ["r1", "r2"]
    asyncio.run(_end(kept, "r1"))
    assert [one.id for one in elsewhere.list()] == ["r2"]
    assert not list((tmp_path / "asked").iterdir())
    with pytest.raises(NotFound):
        asyncio.run(hold(kept, "r1", ""))
    for work in works:
        work.shut()


async def _end(kept: PausedRuns, run_id: str) -> None:
    async with kept.hold(run_id):
        kept.end(run_id)


def test_runs_that_waited_for_too_long_go(tmp_path: Path) -> None:
    work = open_work(tmp_path)
    kept = PausedRuns(work, lambda: NOW)
    old = NOW - dt.timedelta(days=31)
    kept.pause(PausedRun(id="old", client="mcp", at=old, question={}, request={}, state={}))
    kept.pause(PausedRun(id="new", client="mcp", at=NOW, question={}, request={}, state={}))

    assert [one.id for one in kept.list()] == ["new"]
    work.shut()


@pytest.mark.parametrize(
    ("field", "rubbish"),
    [
        ("exploration", "{"),
        ("exploration", "[]"),
        ("exploration", '{"known": {"Soil.md": 5}}'),
        ("messages", "no messages"),
        ("rounds", "many"),
        ("steps", [{"phase": "dance"}]),
        ("web", 5),
        ("spent", {"scout": 1}),
        ("spent", {"scout": {"requests": 1}}),
        ("spent", {"scout": {"requests": 1, "input_tokens": 1, "output_tokens": 1}}),
        ("spent", {"scout": {"requests": 1, "input_tokens": 1, "output_tokens": 1, "cost_usd": "much"}}),
    ],
)
def test_a_paused_task_that_cannot_be_read_says_so(field: str, rubbish: JSONValue) -> None:
    state = pipeline.dump_state(PausedState()) | {field: rubbish}

    with pytest.raises(StorageError, match="the paused task can't be read") as raised:
        _ = pipeline.load_state(state)

    assert raised.value.code == "paused_task"


def test_what_a_paused_task_has_used_is_shown_by_phase_in_the_same_order_as_ever() -> None:
    used = ModelSpend(requests=1, input_tokens=2, output_tokens=3, cost_usd=Decimal("0.10"))
    state = pipeline.dump_state(PausedState(spent={"orchestrator": used, "web": ModelSpend(), "scout": used}))

    assert state["spent"] == {
        "orchestrator": {"requests": 1, "input_tokens": 2, "output_tokens": 3, "cost_usd": "0.10"},
        "web": {"requests": 0, "input_tokens": 0, "output_tokens": 0, "cost_usd": None},
        "scout": {"requests": 1, "input_tokens": 2, "output_tokens": 3, "cost_usd": "0.10"},
    }
    assert [*pipeline.load_state(state).spent.items()] == [
        ("scout", used),
        ("web", ModelSpend()),
        ("orchestrator", used),
    ]

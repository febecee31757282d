"""The suite of tasks: a perfect model passes all of it, and a careless one writes nothing wrong."""

import json
from collections.abc import Mapping

import pytest

from knapper.agents.evals import suite, trials
from knapper.agents.evals.suite import TrialCheck, TrialState
from knapper.agents.pipeline import edits
from knapper.agents.pipeline.records import PipelineOutcome
from knapper.cli import main
from knapper.errors import BadInput

GARDEN = "Projects/Garden.md"


def ran(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    assert main.run(["bench", "agent", *words, "--json", "-q"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.slow
def test_a_perfect_model_passes_all_of_at_least_thirty_tasks(capsys: pytest.CaptureFixture[str]) -> None:
    told = ran(capsys, "--scripted", "perfect")

    assert (told["passed"], told["wrong_bytes"]) == (told["tasks"], 0)
    assert len(trials.ALL_TASKS) >= 30
    assert told["tasks"] == len(trials.ALL_TASKS)


@pytest.mark.slow
def test_a_careless_model_puts_no_wrong_byte_on_disk(capsys: pytest.CaptureFixture[str]) -> None:
    told = ran(capsys, "--scripted", "careless")

    assert told["wrong_bytes"] == 0
    assert told["tasks"] == len(trials.ALL_TASKS)


def test_tasks_are_tried_as_often_as_asked(capsys: pytest.CaptureFixture[str]) -> None:
    told = ran(capsys, "--scripted", "perfect", "--only", "tick-a-task", "--repeat", "2")

    assert (told["tasks"], told["tries"], told["passed"], told["pass_rate"]) == (1, 2, 2, 1.0)


def test_an_unknown_task_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["bench", "agent", "--only", "fly", "--scripted", "perfect"]) != 0
    assert "there is no task 'fly'" in capsys.readouterr().err


def test_the_tasks_can_be_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["bench", "agent", "--list"]) == 0
    assert "tick-a-task: " in capsys.readouterr().out


def world(after: Mapping[str, str | None], **outcome: object) -> TrialState:
    before = dict(suite.VAULT_NOTES)
    changed = {name: text for name, text in {**before, **after}.items() if text is not None}
    told = PipelineOutcome(run_id="r", state="complete", answer="", pipeline={})
    for name, value in outcome.items():
        object.__setattr__(told, name, value)
    return TrialState(before=before, after=changed, outcome=told)


@pytest.mark.parametrize(
    ("check", "after"),
    [
        (suite.changes_only(), {"Ideas.md": "x"}),
        (suite.changes_only("Ideas.md"), {"Ideas.md": "x", "Budget.md": None}),
        (suite.keeps_lines("Ideas.md"), {"Ideas.md": "# Ideas\n\n- a bench\n- a pond\n"}),
        (suite.keeps_lines("Meetings/2026-03-02.md"), {"Meetings/2026-03-02.md": "# Meeting 2 March\n"}),
        (suite.contains_text("Ideas.md", "a pond", 1), {}),
        (suite.contains_text("Ideas.md", "a lake"), {}),
        (suite.lacks_text("Ideas.md", "a pond"), {}),
        (suite.orders_texts("Ideas.md", "- a bench", "# Ideas"), {}),
        (suite.has_property(GARDEN, "status", "done"), {}),
        (suite.has_property(GARDEN, "priority", 2), {GARDEN: '---\npriority: "2"\n---\n'}),
        (suite.answer_says("green"), {}),
        (suite.cites_note(GARDEN), {}),
        (suite.selects_notes(GARDEN), {}),
        (suite.asks_person(), {}),
        (suite.refuses_edits("Ideas.md"), {"Ideas.md": "x"}),
        (suite.opens_note(GARDEN), {}),
    ],
)
def test_every_check_can_fail(check: TrialCheck, after: Mapping[str, str | None]) -> None:
    assert check(world(after))


def test_broken_links_are_found() -> None:
    whole = world({})
    broken = TrialState(before=whole.before, after=whole.after, outcome=whole.outcome, broken=frozenset({("a", "b")}))

    assert suite.keeps_links()(broken)
    assert not suite.keeps_links()(whole)


def test_replies_are_read_whatever_stands_around_them() -> None:

    fence = (
        '```json\n{"summary": "s", "edits": [{"file": "A.md", "position": "end", "content": "```py\\nx\\n```"}]}\n```'
    )
    mended = '{"summary": "s", "edits": [{"file": "A.md", "position": "end", "content": "x"},]}'

    assert edits.parse_reply(fence).edits[0].content == "```py\nx\n```"
    assert edits.parse_reply(mended).edits[0].content == "x"
    assert edits.parse_reply("It is green.").summary == "It is green."
    assert edits.parse_reply('Here: {"summary": "s", "edits": []} Bye.').summary == "s"
    assert edits.parse_reply('{"summary": "s", "edits": null}') == edits.TaskReply(summary="s")


@pytest.mark.parametrize(
    "broken",
    [
        "",
        '{"summary": "s", "edits": [{"file": "A.md", "position": "delete:1-9", "content": "',
        '{"summary": "s", "edits": [{"file": "A.md", "position": "end"',
        '{"summary": "s", "edits": "none"}',
        '{"summary": "s", "edits": [{"file": "A.md"}]}',
        '{"summary": "s", "edits": [{"file": "A.md", "position": "end", "content": 3}]}',
        '{"summary": "s", "edits": [1]}',
    ],
)
def test_what_can_not_be_read_for_sure_has_no_edits(broken: str) -> None:

    with pytest.raises(BadInput) as raised:
        _ = edits.parse_reply(broken)

    assert raised.value.code == "bad_reply"

"""The scout: its tools, its running selection, its limits, its questions."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from knapper.agents.events import ToolResult
from knapper.agents.pipeline import pipeline, scopes
from knapper.agents.pipeline.context import TaskRequest
from knapper.agents.pipeline.pipeline import PipelineRun, ResumePoint
from knapper.agents.pipeline.records import ScoutSettings
from knapper.agents.pipeline.store import AgentToggles
from knapper.agents.toolset import GET_CONTINUATION
from knapper.errors import BadInput
from tests.agents import runs, scripts
from tests.agents.scripted import Call
from tests.agents.scripts import Cast
from tests.tools import opened

NOTES = {
    "Garden.md": "# Garden\n\nThe fence is green. See [[Plants]]. #outdoors\n",
    "Plants.md": "# Plants\n\nRoses and [[Soil]].\n",
    "Soil.md": "# Soil\n\nLoam.\n",
    **{f"Many/{number}.md": f"# Note {number}\n\nfence fence\n" for number in range(30)},
}
ALONE = AgentToggles(scout=True, task=False)


@pytest.fixture
def vault(tmp_path: Path) -> opened.Opener:
    return opened.vault(tmp_path, NOTES)


def test_it_has_the_twelve_tools_of_the_document(vault: opened.Opener) -> None:
    cast = Cast({"scout": [["nothing"]]})

    _ = runs.do(vault, cast, toggles=ALONE)

    offered = {tool.name for tool in cast.infos["scout"][0].function_tools}
    assert len(scopes.SCOUT_TOOLS) == 12
    assert offered == {*scopes.SCOUT_TOOLS, GET_CONTINUATION}


@pytest.mark.parametrize("name", scopes.SCOUT_TOOLS)
def test_each_tool_can_be_switched_off_but_the_selection(vault: opened.Opener, name: str) -> None:
    cast = Cast({"scout": [["nothing"]]})
    settings = ScoutSettings(tools=frozenset(scopes.SCOUT_TOOLS) - {name})

    _ = runs.do(vault, cast, toggles=ALONE, agents_scout=settings)

    offered = {tool.name for tool in cast.infos["scout"][0].function_tools}
    assert (name in offered) is (name == scopes.UPDATE_SELECTION)


def test_the_settings_have_the_documented_ranges_and_defaults() -> None:
    assert (ScoutSettings().rounds, ScoutSettings().notes, ScoutSettings().keyword_limit) == (5, 20, 10)
    assert not ScoutSettings().show_tags
    for name, (least, most) in {"rounds": (2, 10), "notes": (3, 50), "keyword_limit": (3, 20)}.items():
        _ = replace(ScoutSettings(), **{name: least})
        _ = replace(ScoutSettings(), **{name: most})
        for wrong in (least - 1, most + 1):
            with pytest.raises(BadInput, match=str(wrong)):
                _ = replace(ScoutSettings(), **{name: wrong})
    with pytest.raises(BadInput, match="no tool"):
        _ = ScoutSettings(tools=frozenset({"rm"}))


def test_the_selection_says_why_each_note_is_there(vault: opened.Opener) -> None:
    first = [
        Call("search_keyword", {"query": "roses"}),
        Call("get_links_recursive", {"path": "Garden.md", "depth": 2}),
        Call("fetch_note", {"path": "Soil.md"}),
    ]
    cast = Cast({"scout": [first, [scripts.select("Soil.md", "Plants.md")]]})

    ended = runs.do(vault, cast, current="Garden.md", toggles=ALONE)

    soil, plants = ended.chosen
    assert (soil.link_depth, soil.fetched, soil.keyword_match) == (2, True, None)
    assert (plants.link_depth, plants.fetched, plants.keyword_match) == (1, False, "content")
    assert plants.why() == "keyword in content, link depth 1"
    assert "read Soil.md" in str(ended.run.pipeline.as_dict()["scout"])


def test_done_ends_the_search_at_once(vault: opened.Opener) -> None:
    cast = Cast({"scout": [[scripts.select("Garden.md", confidence="done")], ["never asked"]]})

    ended = runs.do(vault, cast, toggles=ALONE)

    assert len(cast.asked["scout"]) == 1
    assert ended.run.pipeline.scout is not None
    assert (ended.run.pipeline.scout.confidence, ended.run.pipeline.scout.ended) == ("done", "done")


@pytest.mark.parametrize("rounds", [2, 10])
def test_no_more_rounds_than_allowed_and_the_last_selection_counts(vault: opened.Opener, rounds: int) -> None:
    replies = [
        [scripts.select("Garden.md", f"Many/{number}.md", confidence="exploring")] for number in range(rounds + 3)
    ]
    cast = Cast({"scout": replies})

    ended = runs.do(vault, cast, toggles=ALONE, agents_scout=ScoutSettings(rounds=rounds))

    found = ended.run.pipeline.scout
    assert found is not None
    assert (found.rounds, found.ended) == (rounds, "rounds")
    assert [one.path for one in found.selected_notes] == ["Garden.md", f"Many/{rounds - 1}.md"]


def test_no_more_notes_than_allowed_and_the_model_is_told(vault: opened.Opener) -> None:
    many = [f"Many/{number}.md" for number in range(5)]
    cast = Cast({"scout": [[scripts.select(*many, confidence="confident")], ["that is all"]]})

    ended = runs.do(vault, cast, toggles=ALONE, agents_scout=ScoutSettings(notes=3))

    assert ended.paths == many[:3]
    assert "the last 2 were left out" in cast.prompts("scout")


def test_notes_that_are_not_there_or_not_shown_are_never_chosen(tmp_path: Path) -> None:
    hidden = opened.vault(tmp_path, {**NOTES, "Secret/Diary.md": "# Diary\n"}, hidden=("Secret/",))
    wrong = scripts.select("Made up.md", "Secret/Diary.md", "../../etc/passwd", "Garden.md")
    cast = Cast({"scout": [[wrong]]})

    ended = runs.do(hidden, cast, toggles=ALONE)

    assert ended.paths == ["Garden.md"]


def test_without_a_selection_nothing_is_chosen(vault: opened.Opener) -> None:
    cast = Cast({"scout": [[Call("search_keyword", {"query": "fence"})], ["I think Garden.md"]]})

    ended = runs.do(vault, cast, toggles=ALONE)

    assert ended.paths == []


def test_on_a_time_out_the_last_selection_counts(vault: opened.Opener) -> None:
    def hang(_: object) -> list[str]:
        raise TimeoutError

    cast = Cast({"scout": [[scripts.select("Soil.md", confidence="exploring")], hang]})

    ended = runs.do(vault, cast, toggles=ALONE)

    found = ended.run.pipeline.scout
    assert found is not None
    assert (found.ended, [one.path for one in found.selected_notes]) == ("timeout", ["Soil.md"])
    assert ended.outcome.state == "complete"


@pytest.mark.parametrize("limit", [3, 20])
def test_a_search_by_words_gives_no_more_than_the_limit(vault: opened.Opener, limit: int) -> None:
    call = Call("search_keyword", {"query": "fence", "limit": 200})
    cast = Cast({"scout": [[call], ["enough"]]})

    ended = runs.do(vault, cast, toggles=ALONE, agents_scout=ScoutSettings(keyword_limit=limit))

    (result,) = ended.of("tool_result")
    assert isinstance(result, ToolResult)
    assert len(runs.listed(result.answer["results"])) == limit


@pytest.mark.parametrize("shown", [True, False])
def test_the_tags_are_shown_where_that_is_wanted(vault: opened.Opener, shown: bool) -> None:
    cast = Cast({"scout": [["nothing"]]})

    _ = runs.do(vault, cast, toggles=ALONE, agents_scout=ScoutSettings(show_tags=shown))

    assert ("outdoors" in cast.system("scout")) is shown


def test_notes_that_were_not_read_are_told_to_be(vault: opened.Opener) -> None:
    cast = Cast({"scout": [[scripts.select("Soil.md", confidence="exploring")], ["ok"]]})

    _ = runs.do(vault, cast, toggles=ALONE)

    assert '"not_read_yet": ["Soil.md"]' in cast.prompts("scout")


def test_a_question_pauses_and_the_answer_goes_on_from_what_was_written_down(vault: opened.Opener) -> None:
    question = Call("ask_user", {"question": "Which garden?", "options": ["front", "back"]})
    cast = Cast({"scout": [[scripts.select("Garden.md", confidence="exploring"), question]]})
    with runs.context(vault) as context:
        paused = runs.run(runs.agents(cast), context, TaskRequest(task="paint", toggles=ALONE))
    kept = pipeline.load_state(pipeline.dump_state(paused.run.paused_state()))
    second = Cast({"scout": [[scripts.select("Garden.md", "Soil.md")]]})
    with runs.context(vault) as context:
        ended = runs.run(
            runs.agents(second),
            context,
            TaskRequest(task="paint", toggles=ALONE),
            ResumePoint(state=kept, answer="the back one"),
        )

    assert paused.outcome.state == "asked"
    assert paused.outcome.question == {"question": "Which garden?", "options": ["front", "back"]}
    assert paused.paths == ["Garden.md"]
    assert "The person answers: the back one" in second.prompts("scout")
    assert "The task: paint" in second.prompts("scout")
    assert ended.outcome.state == "complete"
    assert ended.paths == ["Garden.md", "Soil.md"]
    assert ended.run.pipeline.token_accounting.scout_tokens > paused.run.pipeline.token_accounting.scout_tokens


def test_a_question_without_words_pauses_nothing(vault: opened.Opener) -> None:
    cast = Cast({"scout": [[Call("ask_user", {"question": " "})], [scripts.select("Garden.md")]]})

    with runs.context(vault) as context:
        ended = runs.run(runs.agents(cast), context, TaskRequest(task="paint", toggles=ALONE))

    assert ended.outcome.state == "complete"
    assert "the question is empty" in cast.prompts("scout", 1)


def test_a_model_that_asks_nothing_again_and_again_uses_up_its_rounds(vault: opened.Opener) -> None:
    cast = Cast({"scout": [[Call("ask_user", {"question": ""})]]})

    with runs.context(vault) as context:
        ended = runs.run(runs.agents(cast), context, TaskRequest(task="paint", toggles=ALONE))

    assert ended.outcome.state == "complete"
    assert ended.run.pipeline.scout is not None
    assert ended.run.pipeline.scout.ended == "rounds"
    assert len(cast.asked["scout"]) == 7


def test_of_two_questions_at_once_the_scout_puts_the_first(vault: opened.Opener) -> None:
    asked = [Call("ask_user", {"question": "Which?", "options": ["a", None]}), Call("ask_user", {"question": "Why?"})]

    with runs.context(vault) as context:
        paused = runs.run(runs.agents(Cast({"scout": [asked]})), context, TaskRequest(task="paint", toggles=ALONE))

    assert paused.outcome.question == {"question": "Which?", "options": ["a"]}


def test_cancelling_leaves_the_last_selection(vault: opened.Opener) -> None:
    def stop(_: object) -> list[str]:
        raise asyncio.CancelledError

    cast = Cast({"scout": [[scripts.select("Soil.md", confidence="exploring")], stop]})

    with runs.context(vault) as context:
        made = PipelineRun(runs.agents(cast), context, TaskRequest(task="x", toggles=ALONE))
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(made.run(lambda _: None))
        outcome = made.outcome()

    assert outcome.state == "cancelled"
    assert made.pipeline.scout is not None
    assert [one.path for one in made.pipeline.scout.selected_notes] == ["Soil.md"]

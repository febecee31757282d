"""The scout's running selection, and what it remembers of why notes are of interest."""

from collections.abc import Generator
from pathlib import Path
from typing import cast

import pytest

from knapper.agents.pipeline.records import NoteSelectionMetadata
from knapper.agents.pipeline.scout import Exploration
from knapper.agents.pipeline.store import AgentToggles
from knapper.jsontypes import JSONValue
from knapper.tools.context import Context
from tests.agents import runs, scripts
from tests.agents.scripts import Cast
from tests.tools import opened


@pytest.fixture
def vault(tmp_path: Path) -> opened.Opener:
    return opened.vault(tmp_path, {"A.md": "a\n", "B.md": "b\n"})


@pytest.fixture
def context(vault: opened.Opener) -> Generator[Context]:
    with vault.open("agent") as found:
        yield found


def heard(*calls: tuple[str, dict[str, JSONValue]]) -> NoteSelectionMetadata:
    """Give what is known of a note that was among the results of some calls."""
    found = Exploration(selected=["A.md"])
    for name, row in calls:
        rows: list[JSONValue] = [{"path": "A.md", **row}]
        found.record(name, {}, {"success": True, "results": rows})
    return found.chosen()[0]


def test_a_selection_takes_paths_reasoning_and_confidence(vault: opened.Opener) -> None:
    cast_ = Cast({"scout": [["nothing"]]})

    _ = runs.do(vault, cast_, toggles=AgentToggles(scout=True, task=False))

    (tool,) = [one for one in cast_.infos["scout"][0].function_tools if one.name == "update_selection"]
    known = cast("dict[str, dict[str, object]]", tool.parameters_json_schema["properties"])
    assert {"selected_paths", "reasoning", "confidence"} <= set(tool.parameters_json_schema["required"]) <= set(known)
    assert known["confidence"]["enum"] == ["exploring", "confident", "done"]


@pytest.mark.parametrize("name", ["selected_paths", "selectedPaths"])
@pytest.mark.parametrize(
    ("said", "confidence"),
    [("exploring", "exploring"), ("confident", "confident"), ("Done ", "done"), ("sure", "exploring")],
)
def test_a_selection_is_kept_with_why_and_how_sure(context: Context, name: str, said: str, confidence: str) -> None:
    found = Exploration()

    answer = found.update(context, {name: ["B.md", "A.md"], "reasoning": "they fit", "confidence": said}, 20)

    assert (answer["selected"], answer["confidence"]) == (["B.md", "A.md"], confidence)
    assert (found.selected, found.reasoning, found.confidence) == (["B.md", "A.md"], "they fit", confidence)


def test_the_last_selection_takes_the_place_of_the_one_before(context: Context) -> None:
    found = Exploration()

    for paths in (["A.md"], ["B.md"]):
        _ = found.update(context, {"selected_paths": [*paths], "reasoning": paths[0], "confidence": "confident"}, 20)

    assert ([one.path for one in found.chosen()], found.reasoning) == (["B.md"], "B.md")


def test_what_comes_next_is_told_why_the_notes_were_chosen(vault: opened.Opener) -> None:
    chosen = scripts.select("A.md", confidence="done", reasoning="it says a")
    cast_ = Cast({"scout": [[chosen]]})

    ended = runs.do(vault, cast_, toggles=AgentToggles(scout=True, task=False))

    scout = cast("dict[str, object]", ended.run.pipeline.as_dict()["scout"])
    assert (scout["reasoning"], scout["confidence"]) == ("it says a", "done")


@pytest.mark.parametrize("name", ["search_semantic", "search_task_relevant"])
def test_the_best_cosine_is_remembered_and_not_a_relative_score(name: str) -> None:
    cosines = (0.25, 0.75, 0.5)
    calls: list[tuple[str, dict[str, JSONValue]]] = [(name, {"score": 1.0, "cosine": cosine}) for cosine in cosines]
    known = heard(*calls)

    assert (known.semantic_score, known.why()) == (0.75, "semantic 75%")


@pytest.mark.parametrize("place", ["title", "heading", "content"])
def test_where_words_stood_is_remembered(place: str) -> None:
    known = heard(("search_keyword", {"match": place, "score": 0.5}))

    assert (known.keyword_match, known.semantic_score) == (place, None)


def test_the_shortest_way_by_links_is_remembered() -> None:
    far = heard(("get_links_recursive", {"depth": 3}), ("get_links_recursive", {"depth": 2}))
    near = heard(("get_links_recursive", {"depth": 2}), ("get_links", {"direction": "in"}))

    assert (far.link_depth, near.link_depth) == (2, 1)

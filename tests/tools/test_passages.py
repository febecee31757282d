"""Searching in one way at a time."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import pytest

from knapper.errors import BadInput, NotFound
from knapper.tools import search
from knapper.tools.context import Context
from knapper.vault.access import Policy
from tests.index import worlds

NOTES = {
    "Text.md": "budget " * 30,
    "Heading.md": "# Plans\n\n## The budget of 2026\n\nlittle\n",
    "Budget.md": "numbers\n",
    "Other.md": "---\naliases: [Budget talks]\n---\nnothing\n",
    "Garden.md": "roses and tomatoes [[Watering]]\n",
    "Watering.md": "every evening tomatoes\n",
    "Secret/Budget.md": "budget\n",
}


def no_writer() -> NoReturn:
    raise AssertionError("searching opens nothing to write with")


@pytest.fixture
def context(tmp_path: Path) -> Context:
    root = worlds.fill(tmp_path / "v", NOTES)
    index = worlds.engine(root, tmp_path / "s", worlds.WordEmbedder())
    view = index.view.with_policy(Policy(client="guest", hidden=("Secret/",)))
    return Context(vault="v", view=view, index=index, open_writer=no_writer, close=index.close)


def test_a_title_comes_before_a_heading_and_a_heading_before_text(context: Context) -> None:
    with context:
        answer: Mapping[str, Any] = search.search_keyword(context, "budget")

    found = [(row["path"], row["match"]) for row in answer["results"]]
    assert sorted(found[:2]) == [("Budget.md", "title"), ("Other.md", "title")]
    assert found[2:] == [("Heading.md", "heading"), ("Text.md", "content")]


def test_where_words_stand_is_told_without_stop_words(context: Context) -> None:
    answer: Mapping[str, Any] = search.search_keyword(context, "what is the budget")

    assert next((row["path"], row["match"]) for row in answer["results"]) == ("Budget.md", "title")


def test_by_meaning_what_is_only_nearest_is_no_result(context: Context) -> None:
    words = " ".join(f"word{number}" for number in range(150))
    (context.view.root / "Long.md").write_text(f"trellis {words}\n", encoding="utf-8")
    answer: Mapping[str, Any] = search.search_semantic(context, "trellis zeppelin quartz")
    for_task: Mapping[str, Any] = search.search_task_relevant(context, "word7 xylophone")
    near: Mapping[str, Any] = search.search_semantic(context, "roses tomatoes")

    assert (answer["results"], [row["path"] for row in answer["nearest"]]) == ([], ["Long.md"])
    assert [row["path"] for row in for_task["results"]] == ["Long.md"]
    assert near["results"][0]["cosine"] > 0.3
    assert "nearest" not in near


def test_no_match_is_a_success_with_a_message(context: Context) -> None:
    with context:
        answer = search.search_keyword(context, "zzzz")

    assert (answer["success"], answer["results"], answer["message"]) == (True, [], "No matching notes found")


def test_notes_are_found_by_meaning_with_their_scores(context: Context) -> None:
    with context:
        answer: Mapping[str, Any] = search.search_semantic(context, "roses tomatoes", 2)

    assert [row["path"] for row in answer["results"]] == ["Garden.md", "Watering.md"]
    assert 1 >= answer["results"][0]["score"] > answer["results"][1]["score"] >= 0


def test_a_task_finds_what_it_names_and_what_belongs_to_the_open_note(context: Context) -> None:
    with context:
        alone: Mapping[str, Any] = search.search_task_relevant(context, 'Look up the "budget" - not now!')
        beside: Mapping[str, Any] = search.search_task_relevant(context, "budget", "Garden.md")

    assert "Budget.md" in {row["path"] for row in alone["results"]}
    why = {row["path"]: row["why"] for row in beside["results"]}
    assert "Garden.md" not in why
    assert why["Watering.md"][-1] == "linked"
    assert "task" in why["Budget.md"]


@pytest.mark.parametrize("embedder", [worlds.WordEmbedder(), None])
def test_notes_like_the_open_one_are_found_with_vectors_and_without(
    tmp_path: Path, embedder: worlds.WordEmbedder | None
) -> None:
    root = worlds.fill(tmp_path / "v", {**NOTES, "Open.md": "tomatoes every evening\n", "Plans.md": "the plans\n"})
    index = worlds.engine(root, tmp_path / "s", embedder)
    view = index.view.with_policy(Policy(client="guest", hidden=("Secret/", "Watering.md")))
    with Context(vault="v", view=view, index=index, open_writer=no_writer, close=index.close) as context:
        answer: Mapping[str, Any] = search.search_task_relevant(context, "plans", "Open.md", 3)

    why = {row["path"]: row["why"] for row in answer["results"]}
    assert why["Garden.md"] == ["current_note"]
    assert "Open.md" not in why
    assert "Watering.md" not in why


def test_what_is_hidden_is_never_found(context: Context) -> None:
    with context:
        answers = [
            search.search_keyword(context, "budget"),
            search.search_semantic(context, "budget"),
            search.search_task_relevant(context, "budget"),
        ]
        with pytest.raises(NotFound):
            search.search_task_relevant(context, "budget", "Secret/Budget.md")

    assert "Secret" not in str(answers)


@pytest.mark.parametrize(("query", "limit"), [("", 5), ("  ", 5), ("a", 0), ("a", 201), ("a" * 100_001, 5)])
def test_an_argument_out_of_its_range_is_refused(context: Context, query: str, limit: int) -> None:
    with context:
        for tool in (search.search_keyword, search.search_semantic):
            with pytest.raises(BadInput):
                tool(context, query, limit)
        with pytest.raises(BadInput):
            search.search_task_relevant(context, query, "", limit)

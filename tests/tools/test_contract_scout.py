"""The documented tools of the agent that explores: parameters, defaults, pages, and errors."""

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final, cast

import pytest

from knapper.app import tables
from knapper.tools.context import Context
from tests.tools import opened
from tests.tools.opened import call

NEEDED: Final = object()
TABLE: Final = tables.build_table()
TAKEN: Final[dict[str, dict[str, object]]] = {
    "list_notes": {"folder": "", "limit": 50, "offset": 0},
    "search_keyword": {"query": NEEDED, "limit": 10},
    "search_semantic": {"query": NEEDED, "limit": 10},
    "search_task_relevant": {"task": NEEDED, "current_note": "", "limit": 10},
    "fetch_note": {"path": NEEDED, "offset": 0, "length": 100_000},
    "get_links": {"path": NEEDED, "direction": "both", "limit": 100, "offset": 0},
    "get_links_recursive": {"path": NEEDED, "depth": 2, "limit": 100, "offset": 0},
    "view_all_notes": {"limit": 200, "offset": 0},
    "explore_vault": {"folder": "", "tag": "", "limit": 100, "offset": 0},
    "list_all_tags": {"prefix": "", "limit": 100, "offset": 0},
}
NOTES: Final = {
    "Hub.md": "---\naliases: [Middle]\ndescription: What all leads to.\n---\n# Hub\n\n[[A]] [[B]] [[C]] #x\n",
    "A.md": "apples #x/a\n",
    "B.md": "[[D]] apples #y\n",
    "C.md": "## About apples\n\n#z\n",
    "D.md": "[[E]]\n",
    "E.md": "the end\n",
    "Work/Apples.md": "nothing\n",
    "Secret/Diary.md": "[[Hub]] apples #hush\n",
}
LISTS: Final[dict[str, dict[str, Any]]] = {
    "list_notes": {},
    "view_all_notes": {},
    "explore_vault": {},
    "list_all_tags": {},
    "get_links": {"path": "Hub.md"},
    "get_links_recursive": {"path": "Hub.md", "depth": 3},
}
ON_A_NOTE: Final[dict[str, dict[str, Any]]] = {
    "fetch_note": {},
    "get_links": {},
    "get_links_recursive": {},
    "search_task_relevant": {"task": "apples"},
}


@pytest.fixture
def context(tmp_path: Path) -> Generator[Context]:
    with opened.vault(tmp_path, NOTES, hidden=("Secret/",)).open("agent") as found:
        yield found


@pytest.mark.parametrize("name", TAKEN)
def test_a_tool_takes_what_it_took(name: str) -> None:
    shown = cast("dict[str, Any]", TABLE.parameters(TABLE.find(name)))
    known, needed = shown["properties"], set(shown.get("required", ()))

    assert {one: NEEDED if one in needed else known[one].get("default") for one in TAKEN[name]} == TAKEN[name]
    assert needed == {one for one, default in TAKEN[name].items() if default is NEEDED}


@pytest.mark.parametrize("name", ["get_links", "get_links_recursive"])
def test_links_are_followed_in_out_or_both(name: str) -> None:
    shown = cast("dict[str, Any]", TABLE.parameters(TABLE.find(name)))

    assert shown["properties"]["direction"]["enum"] == ["in", "out", "both"]


@pytest.mark.parametrize("name", LISTS)
def test_a_list_comes_in_pages_in_one_order(context: Context, name: str) -> None:
    whole = call(context, name, **LISTS[name])
    pages = [call(context, name, **LISTS[name], limit=2, offset=offset) for offset in range(0, whole["total"], 2)]

    assert whole["total"] == len(whole["results"]) > 2
    assert [one for page in pages for one in page["results"]] == whole["results"]
    assert [page.get("next_offset") for page in pages[-2:]] == [pages[-1]["offset"], None]


@pytest.mark.parametrize("asked", [{"limit": 0}, {"limit": 1_001}, {"offset": -1}])
@pytest.mark.parametrize("name", LISTS)
def test_a_page_that_cant_be_one_is_an_error(context: Context, name: str, asked: dict[str, Any]) -> None:
    answer = call(context, name, **LISTS[name], **asked)

    assert (answer["success"], answer["code"]) == (False, "bad_input")


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("Nowhere.md", "not_found"),
        ("Secret/Diary.md", "not_found"),
        (".git/config", "not_found"),
        ("../outside.md", "outside_vault"),
    ],
)
@pytest.mark.parametrize("name", ON_A_NOTE)
def test_a_note_that_isnt_there_for_the_agent_is_an_error(context: Context, name: str, path: str, code: str) -> None:
    parameter = "current_note" if name == "search_task_relevant" else "path"

    answer = call(context, name, **{parameter: path}, **ON_A_NOTE[name])

    assert (answer["success"], answer["code"]) == (False, code)
    assert "hush" not in json.dumps(answer)


@pytest.mark.parametrize("name", ["list_notes", "explore_vault"])
@pytest.mark.parametrize(
    ("folder", "code"), [("Play", "no_such_folder"), ("Secret", "no_such_folder"), ("../out", "outside_vault")]
)
def test_a_folder_that_isnt_there_for_the_agent_is_an_error(
    context: Context, name: str, folder: str, code: str
) -> None:
    answer = call(context, name, folder=folder)

    assert (answer["success"], answer["code"]) == (False, code)


@pytest.mark.parametrize(
    ("name", "parameter"), [("search_keyword", "query"), ("search_semantic", "query"), ("search_task_relevant", "task")]
)
def test_a_search_for_nothing_is_an_error_that_names_what_is_empty(context: Context, name: str, parameter: str) -> None:
    answer = call(context, name, **{parameter: "  "})

    assert (answer["success"], answer["error"]) == (False, f"the {parameter} is empty")
    assert answer["hint"]


@pytest.mark.parametrize("depth", [0, 4])
def test_links_are_followed_for_one_to_three_steps(context: Context, depth: int) -> None:
    answer = call(context, "get_links_recursive", path="Hub.md", depth=depth)

    assert (answer["success"], answer["hint"]) == (False, "give 1 to 3")


def test_links_are_followed_for_two_steps_unless_told_otherwise(context: Context) -> None:
    answer = call(context, "get_links_recursive", path="Hub.md")

    assert {one["path"]: one["depth"] for one in answer["results"]} == {"A.md": 1, "B.md": 1, "C.md": 1, "D.md": 2}


def test_words_in_a_title_count_more_than_in_a_heading_and_these_more_than_in_text(context: Context) -> None:
    answer = call(context, "search_keyword", query="apples")
    two = call(context, "search_keyword", query="apples", limit=2)

    assert [one["match"] for one in answer["results"]] == ["title", "heading", "content", "content"]
    assert [one["path"] for one in answer["results"][:2]] == ["Work/Apples.md", "C.md"]
    assert two["results"] == answer["results"][:2]


def test_a_whole_note_is_fetched_with_its_hash(context: Context) -> None:
    answer = call(context, "fetch_note", path="Hub.md")

    assert (answer["content"], answer["truncated"]) == (NOTES["Hub.md"], False)
    assert answer["hash"].startswith("sha256:")


def test_every_note_is_named_with_its_aliases_and_what_it_says_of_itself(context: Context) -> None:
    answer = call(context, "view_all_notes")

    assert [one["path"] for one in answer["results"]] == [
        "A.md", "B.md", "C.md", "D.md", "E.md", "Hub.md", "Work/Apples.md"
    ]  # fmt: skip
    assert answer["results"][5] == {
        "path": "Hub.md", "title": "Hub", "aliases": ["Middle"], "description": "What all leads to."
    }  # fmt: skip


def test_every_tag_is_told_with_how_many_notes_have_it(context: Context) -> None:
    answer = call(context, "list_all_tags")

    counts = {one["tag"]: one["notes"] for one in answer["results"]}
    assert counts == {"x": 1, "x/a": 1, "y": 1, "z": 1}

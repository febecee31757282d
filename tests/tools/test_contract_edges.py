"""The documented contract at its edges: what a tool does by default, where lists go on, what a section's end is."""

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from knapper.config import ClientSettings
from knapper.net.web import WebOptions, open_web
from knapper.tools.context import Context
from knapper.vault.access import default_grants
from tests.net.servers import Reply, serving
from tests.tools import opened
from tests.tools.opened import call

NOTES: Final = {
    "Long.md": "0123456789" * 900,
    "Sections.md": "# All\n\n## One\n\na\n\n### Below\n\nb\n\n~~~\n## Fenced\n~~~\n\n## Two\n\nc",
    "Rule.md": "text\n\n---\na: 1\n---\n",
    "Open.md": "---\nno end\n\ntext\n",
    "Head.md": "---\na: 1  # kept\ntags: [x]\n---\n# Head\n",
    "Words/One.md": "apple\n",
    "Words/Two.md": "apple banana, and much more is said here of other matters\n",
    "Words/Three.md": "apple banana cherry, and much more is said here of other matters\n",
    **{
        f"Many/{number}.md": f"---\nkind: many\nDate: 2024-05-0{number}\n---\nmelon {number}\n"
        for number in range(1, 8)
    },
}
PERSON: Final = ClientSettings(grants=default_grants("cli", "person"))
ON_A_NOTE: Final[dict[str, dict[str, Any]]] = {
    "read_file": {},
    "find_outlinks": {},
    "transcribe_audio": {},
    "update_frontmatter": {"field": "status", "value": "x"},
    "append_to_file": {"content": "x"},
    "prepend_to_file": {"content": "x"},
    "replace_section": {"heading": "# Head", "content": "x"},
    "append_to_section": {"heading": "# Head", "content": "x"},
}
LISTS: Final[dict[str, dict[str, Any]]] = {
    "list_files_by_frontmatter": {"field": "kind", "value": "many"},
    "search_by_date_range": {"start_date": "2024-05-01", "end_date": "2024-05-07", "date_type": "created"},
}


@pytest.fixture
def vault(tmp_path: Path) -> opened.Opener:
    return opened.vault(tmp_path, NOTES)


@pytest.fixture
def context(vault: opened.Opener) -> Generator[Context]:
    with vault.open(PERSON) as found:
        yield found


@pytest.mark.parametrize("name", ON_A_NOTE)
def test_a_note_is_named_by_its_path_in_the_vault_or_by_a_whole_one(context: Context, name: str) -> None:
    answer = call(context, name, path=str(context.view.root / "Head.md"), **ON_A_NOTE[name])

    assert (answer["success"], answer["path"]) == (True, "Head.md")


def test_a_search_gives_five_passages_unless_told_otherwise(context: Context) -> None:
    usual_ = call(context, "search_vault", query="melon")
    two = call(context, "search_vault", query="melon", n_results=2)

    assert (len(usual_["results"]), len(two["results"])) == (5, 2)


@pytest.mark.parametrize("mode", ["hybrid", "semantic", "keyword"])
def test_every_way_of_searching_gives_the_same_fields(context: Context, mode: str) -> None:
    found = call(context, "search_vault", query="melon", mode=mode)

    assert found["success"] is True
    assert {frozenset(one) for one in found["results"]} == {
        frozenset({"source", "content", "heading", "start_line", "end_line", "score", "hash"})
    }


def test_by_words_what_holds_more_of_them_comes_first(context: Context) -> None:
    found = call(context, "search_vault", query="apple banana cherry", mode="keyword")

    assert [one["source"] for one in found["results"]] == ["Words/Three.md", "Words/Two.md", "Words/One.md"]


def test_a_search_below_a_number_of_results_or_without_a_query_is_an_error(context: Context) -> None:
    answers = [call(context, "search_vault", query="melon", n_results=0), call(context, "search_vault")]

    assert [(one["success"], one["code"]) for one in answers] == [(False, "bad_input"), (False, "bad_arguments")]


def test_reading_gives_four_thousand_characters_and_says_where_to_go_on(context: Context) -> None:
    first = call(context, "read_file", path="Long.md")
    rest = call(context, "read_file", path="Long.md", offset=first["next_offset"], length=9_000)

    marker = f"\n\n[cut here: characters 0 to 4000 of {len(NOTES['Long.md'])}; read on with offset 4000]"
    assert (first["truncated"], first["next_offset"]) == (True, 4_000)
    assert first["content"].endswith(marker)
    assert first["content"].removesuffix(marker) + rest["content"] == NOTES["Long.md"]
    assert (rest["truncated"], "next_offset" in rest) == (False, False)


@pytest.mark.parametrize("name", LISTS)
def test_a_list_comes_in_pages_in_one_order(context: Context, name: str) -> None:
    whole = call(context, name, **LISTS[name])
    pages = [call(context, name, **LISTS[name], limit=3, offset=offset) for offset in (0, 3, 6, 9)]

    assert whole["results"] == [f"Many/{number}.md" for number in range(1, 8)]
    assert [one for page in pages for one in page["results"]] == whole["results"]
    assert [(page["total"], page["limit"], page["offset"]) for page in pages] == [(7, 3, at) for at in (0, 3, 6, 9)]
    assert [page.get("next_offset") for page in pages] == [3, 6, None, None]


@pytest.mark.parametrize("asked", [{"limit": 0}, {"limit": 1_001}, {"offset": -1}, {"limit": "many"}])
@pytest.mark.parametrize(
    ("name", "given"),
    [
        *LISTS.items(),
        ("find_backlinks", {"note_name": "Head"}),
        ("find_outlinks", {"path": "Head.md"}),
        ("search_by_folder", {"folder": "Many"}),
    ],
)
def test_a_page_that_cant_be_one_is_an_error(
    context: Context, name: str, given: dict[str, Any], asked: dict[str, Any]
) -> None:
    answer = call(context, name, **given, **asked)

    assert (answer["success"], answer["code"]) == (False, "bad_arguments" if "many" in asked.values() else "bad_input")


@pytest.mark.parametrize(
    ("day", "found"),
    [
        (("2024-05-02", "2024-05-03"), ["Many/2.md", "Many/3.md"]),
        (("2024-05-07", "2024-05-07"), ["Many/7.md"]),
        (("2024-05-08", "2024-05-09"), []),
    ],
)
def test_both_days_of_a_range_count(context: Context, day: tuple[str, str], found: list[str]) -> None:
    answer = call(context, "search_by_date_range", start_date=day[0], end_date=day[1], date_type="created")

    assert (answer["results"], answer["total"]) == (found, len(found))


def test_a_folder_is_listed_without_what_is_below_unless_told_otherwise(context: Context) -> None:
    above = call(context, "search_by_folder", folder="")

    assert above["results"] == ["Head.md", "Long.md", "Open.md", "Rule.md", "Sections.md"]


def test_a_new_note_is_empty_unless_told_otherwise(vault: opened.Opener, context: Context) -> None:
    made = call(context, "create_file", path="New.md")
    headed = call(context, "create_file", path="Headed.md", frontmatter={"a": 1})

    assert (made["success"], headed["success"]) == (True, True)
    assert (vault.text("New.md"), vault.text("Headed.md")) == ("", "---\na: 1\n---\n")


@pytest.mark.parametrize(
    ("given", "head"),
    [
        ({"value": "z", "operation": "append", "field": "tags"}, "a: 1  # kept\ntags: [x, z]\n"),
        ({"operation": "remove", "field": "tags"}, "a: 1  # kept\n"),
        ({"value": '["p", "q"]', "field": "tags"}, "a: 1  # kept\ntags: [p, q]\n"),
    ],
)
def test_a_batch_does_with_each_note_what_is_done_with_one(
    vault: opened.Opener, context: Context, given: dict[str, Any], head: str
) -> None:
    answer = call(context, "batch_update_frontmatter", paths=["Head.md"], **given)

    assert answer["status"] == "applied"
    assert vault.text("Head.md") == f"---\n{head}---\n# Head\n"


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("batch_update_frontmatter", {"paths": ["No.md", "../No.md"], "field": "a", "value": "b"}),
        (
            "batch_move_files",
            {"moves": [{"source": "No.md", "destination": "A.md"}, {"source": "../No.md", "destination": "B.md"}]},
        ),
    ],
)
def test_a_batch_of_which_nothing_can_be_done_is_an_error_that_lists_why(
    context: Context, name: str, given: dict[str, Any]
) -> None:
    answer = call(context, name, **given)

    assert answer["success"] is False
    assert [(one["path"], one["code"]) for one in answer["failures"]] == [
        ("No.md", "not_found"),
        ("../No.md", "outside_vault"),
    ]
    assert all(one["error"] and one["hint"] for one in answer["failures"])


def test_several_moves_make_folders_and_overwrite_nothing(vault: opened.Opener, context: Context) -> None:
    moves = [
        {"source": "Rule.md", "destination": "Made/For/Rule.md"},
        {"source": "Open.md", "destination": "Head.md"},
    ]

    answer = call(context, "batch_move_files", moves=moves)

    assert (answer["message"], answer["failures"][0]["code"]) == ("applied: 1 of 2", "exists")
    assert vault.text("Made/For/Rule.md") == NOTES["Rule.md"]
    assert (vault.text("Open.md"), vault.text("Head.md")) == (NOTES["Open.md"], NOTES["Head.md"])


@pytest.mark.parametrize("name", ["Rule.md", "Open.md"])
def test_lines_that_open_no_properties_are_text(vault: opened.Opener, context: Context, name: str) -> None:
    call(context, "prepend_to_file", path=name, content="New.")

    assert vault.text(name) == f"New.\n\n{NOTES[name]}"


@pytest.mark.parametrize("name", ["replace_section", "append_to_section"])
@pytest.mark.parametrize("heading", ["## Fenced", "### One", "# Two", "## On"])
def test_only_a_heading_of_that_level_and_text_is_meant(context: Context, name: str, heading: str) -> None:
    answer = call(context, name, path="Sections.md", heading=heading, content="x")

    assert (answer["success"], answer["code"]) == (False, "heading_not_found")


@pytest.mark.parametrize(
    ("name", "heading", "content", "text"),
    [
        ("replace_section", "## one", "Plain.", "# All\n\nPlain.\n\n## Two\n\nc"),
        ("replace_section", "## Two", "## End\n\nd", NOTES["Sections.md"].replace("## Two\n\nc", "## End\n\nd")),
        ("replace_section", "# All", "Gone.", "Gone."),
        ("append_to_section", "## TWO", "d\ne", f"{NOTES['Sections.md']}\n\nd\ne"),
        ("append_to_section", "### Below", "d", NOTES["Sections.md"].replace("~~~\n\n## Two", "~~~\n\nd\n\n## Two")),
        ("append_to_section", "# All", "d", f"{NOTES['Sections.md']}\n\nd"),
    ],
)
def test_a_section_ends_at_the_next_heading_of_its_level_or_above_or_at_the_end(
    vault: opened.Opener, context: Context, name: str, heading: str, content: str, text: str
) -> None:
    answer = call(context, name, path="Sections.md", heading=heading, content=content)

    assert (answer["success"], answer["path"]) == (True, "Sections.md")
    assert vault.text("Sections.md").rstrip("\n") == text


def test_an_entry_names_the_files_and_holds_the_whole_answer(vault: opened.Opener, context: Context) -> None:
    said = {"task_description": "Ask", "query": "what?", "summary": "n/a"}

    told = call(context, "log_interaction", **said, files=["Head.md"], full_response="All of it.")
    nothing = call(context, "log_interaction", **said)

    entry = vault.text(told["path"])
    assert ("[[Head]]" in entry, "All of it." in entry, "n/a" in entry) == (True, True, False)
    assert (nothing["success"], nothing["code"]) == (False, "bad_input")


def test_preferences_begin_with_none_and_are_counted_from_one(vault: opened.Opener, context: Context) -> None:
    none = call(context, "list_preferences")
    early = call(context, "remove_preference", line_number=1)
    call(context, "save_preference", preference="one")
    call(context, "save_preference", preference="two")
    listed = call(context, "list_preferences")
    wrong = [call(context, "remove_preference", line_number=number) for number in (0, 3)]

    assert (none["success"], none["results"], early["success"]) == (True, [], False)
    assert vault.text("Preferences.md") == "- one\n- two\n"
    assert [one["line_number"] for one in listed["results"]] == [1, 2]
    assert [one["code"] for one in wrong] == ["out_of_range"] * 2


def test_a_search_of_the_web_that_fails_or_asks_nothing_is_an_error(context: Context) -> None:
    with serving(Reply(status=400, body=b"{}")) as server:
        reached = open_web(WebOptions(provider="tavily", api_key="k", base_url=server.url))
        online = replace(context, open_web=lambda: reached)
        failed, empty = call(online, "web_search", query="knots"), call(online, "web_search", query=" ")

    assert (failed["success"], empty["success"], empty["code"]) == (False, False, "bad_input")
    assert failed["error"]
    assert failed["code"]
    assert failed["hint"]

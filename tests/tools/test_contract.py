"""Each tool of the documented contract: its shape when it succeeds, and each error that is listed for it."""

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final

import pytest

from knapper.config import ClientSettings
from knapper.tools.context import Context
from knapper.vault.access import default_grants
from tests.tools import opened
from tests.tools.opened import call

NOTES: Final = {
    "Note.md": "---\ntags: [task, project]\ncompany: Acme\nDate: '[[2023-08-11]]'\n---\n# Note\n\n## Tasks\n\n- one\n\n"
    "```\n## Fenced\n```\n\n## Twice\n\na\n\n## Twice\n\nb\n",
    "Plain.md": "First line.\n",
    "Folder/Link.md": "[[Note|alias]] and [[note]] and [[Plain]]\n",
    "Folder/Deep/Last.md": "nothing\n",
    "Voice.md": "![[gone.m4a]]\n",
    "Silent.md": "no recording\n",
    "Preferences.md": "# Mine\n\n- one\n- two\n",
}
PERSON: Final = ClientSettings(grants=default_grants("cli", "person"))
OUTSIDE: Final = ("../outside.md", "/etc/passwd", "Folder/../../outside.md")
EXCLUDED: Final = (".obsidian/app.json", ".git/config", ".trash/x.md")
ON_A_NOTE: Final[dict[str, dict[str, Any]]] = {
    "read_file": {},
    "update_frontmatter": {"field": "status", "value": "x"},
    "find_outlinks": {},
    "append_to_file": {"content": "x"},
    "prepend_to_file": {"content": "x"},
    "replace_section": {"heading": "## Tasks", "content": "x"},
    "append_to_section": {"heading": "## Tasks", "content": "x"},
    "transcribe_audio": {},
}
"""Tools about one note, with what else they need."""
SECTIONS: Final = ("replace_section", "append_to_section")


@pytest.fixture
def vault(tmp_path: Path) -> opened.Opener:
    made = opened.vault(tmp_path, NOTES)
    for name in EXCLUDED:
        file = made.root / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("{}", "utf-8")
    (tmp_path / "outside.md").write_text("secret", "utf-8")
    return made


@pytest.fixture
def context(vault: opened.Opener) -> Generator[Context]:
    with vault.open(PERSON) as found:
        yield found


@pytest.mark.parametrize("name", ON_A_NOTE)
def test_a_note_that_isnt_there_is_an_error(context: Context, name: str) -> None:
    answer = call(context, name, path="Missing.md", **ON_A_NOTE[name])

    assert (answer["success"], answer["code"]) == (False, "not_found")
    assert "Missing.md" in answer["error"]


@pytest.mark.parametrize("path", OUTSIDE)
@pytest.mark.parametrize("name", ON_A_NOTE)
def test_a_path_out_of_the_vault_is_an_error(context: Context, name: str, path: str) -> None:
    answer = call(context, name, path=path, **ON_A_NOTE[name])

    assert (answer["success"], answer["code"]) == (False, "outside_vault")
    assert "secret" not in json.dumps(answer)


@pytest.mark.parametrize("path", EXCLUDED)
@pytest.mark.parametrize("name", ON_A_NOTE)
def test_an_excluded_folder_is_as_if_it_werent_there(context: Context, name: str, path: str) -> None:
    answer = call(context, name, path=path, **ON_A_NOTE[name])

    assert (answer["success"], answer["code"]) == (False, "not_found")


def test_search_gives_source_content_and_heading(context: Context) -> None:
    found = call(context, "search_vault", query="one", mode="keyword")
    before = call(context, "search_vault", query="First line", mode="keyword")

    hit = next(one for one in found["results"] if one["source"] == "Note.md")
    assert (hit["heading"], "one" in hit["content"]) == ("## Tasks", True)
    assert before["results"][0]["heading"] == "top-level"


def test_a_search_without_matches_says_so(context: Context) -> None:
    found = call(context, "search_vault", query="zzzqqq", mode="keyword")

    assert (found["success"], found["message"], found["results"]) == (True, "No matching documents found", [])


def test_a_search_that_cant_be_is_an_error(context: Context) -> None:
    assert call(context, "search_vault", query="")["success"] is False
    assert call(context, "search_vault", query="x", mode="fuzzy")["code"] == "bad_arguments"


def test_reading_pages_by_characters_and_marks_only_text_that_is_cut(context: Context) -> None:
    whole = call(context, "read_file", path="Note.md")
    part = call(context, "read_file", path="Note.md", offset=4, length=5)
    absolute = call(context, "read_file", path=str(context.view.root / "Note.md"))

    assert (whole["content"], whole["truncated"], "next_offset" in whole) == (NOTES["Note.md"], False, False)
    assert part["content"].startswith(f"{NOTES['Note.md'][4:9]}\n\n[cut here: characters 4 to 9 of ")
    assert part["content"].endswith("; read on with offset 9]")
    assert (part["truncated"], part["next_offset"]) == (True, 9)
    assert part["total_chars"] == len(NOTES["Note.md"])
    assert absolute["path"] == "Note.md"


@pytest.mark.parametrize(
    ("field", "value", "match", "found"),
    [
        ("tags", "task", "contains", ["Note.md"]),
        ("company", "Acm", "contains", ["Note.md"]),
        ("company", "Acm", "equals", []),
        ("company", "Acme", "equals", ["Note.md"]),
        ("nope", "x", "contains", []),
    ],
)
def test_files_are_listed_by_their_properties(
    context: Context, field: str, value: str, match: str, found: list[str]
) -> None:
    answer = call(context, "list_files_by_frontmatter", field=field, value=value, match_type=match)

    assert (answer["results"], answer["total"]) == (found, len(found))


def test_properties_are_set_removed_and_appended(vault: opened.Opener, context: Context) -> None:
    call(context, "update_frontmatter", path="Note.md", field="tags", value='["a", "b"]')
    call(context, "update_frontmatter", path="Note.md", field="tags", value="b", operation="append")
    call(context, "update_frontmatter", path="Note.md", field="new", value="x", operation="append")
    call(context, "update_frontmatter", path="Note.md", field="company", operation="remove")

    head = vault.text("Note.md").split("---")[1]
    assert "company" not in head
    assert call(context, "note_info", path="Note.md")["properties"]["tags"] == ["a", "b"]
    assert call(context, "note_info", path="Note.md")["properties"]["new"] == ["x"]


def test_a_batch_of_properties_goes_on_after_a_failure(vault: opened.Opener, context: Context) -> None:
    answer = call(context, "batch_update_frontmatter", paths=["Missing.md", "Plain.md"], field="archived", value="yes")

    assert (answer["success"], answer["message"]) == (True, "applied: 1 of 2")
    assert [one["path"] for one in answer["failures"]] == ["Missing.md"]
    assert 'archived: "yes"' in vault.text("Plain.md")


def test_a_move_makes_folders_and_overwrites_nothing(vault: opened.Opener, context: Context) -> None:
    over = call(context, "move_file", source="Plain.md", destination="Note.md")
    out = call(context, "move_file", source="Plain.md", destination="../Plain.md")
    done = call(context, "move_file", source="Plain.md", destination="New/Place/Plain.md")

    assert (over["success"], over["code"]) == (False, "exists")
    assert (out["success"], out["code"]) == (False, "outside_vault")
    assert (done["status"], vault.text("New/Place/Plain.md")) == ("applied", NOTES["Plain.md"])


def test_a_batch_of_moves_goes_on_after_a_failure(context: Context) -> None:
    moves = [
        {"source": "Missing.md", "destination": "A.md"},
        {"source": "Plain.md", "destination": "B.md"},
    ]

    answer = call(context, "batch_move_files", moves=moves)

    assert (answer["message"], [one["path"] for one in answer["failures"]]) == ("applied: 1 of 2", ["Missing.md"])


def test_a_new_note_takes_properties_as_json_and_overwrites_nothing(vault: opened.Opener, context: Context) -> None:
    made = call(context, "create_file", path="A/B.md", content="x\n", frontmatter='{"tags": ["meeting"]}')
    again = call(context, "create_file", path="A/B.md", content="y\n")
    broken = call(context, "create_file", path="C.md", frontmatter="{tags")
    out = call(context, "create_file", path="../C.md")

    assert made["path"] == "A/B.md"
    assert vault.text("A/B.md") == "---\ntags:\n  - meeting\n---\nx\n"
    assert (again["code"], broken["code"], out["code"]) == ("exists", "invalid_json", "outside_vault")


@pytest.mark.parametrize("path", [".obsidian/new.md", ".git/new.md", ".trash/new.md"])
def test_nothing_is_made_in_or_moved_to_an_excluded_folder(vault: opened.Opener, context: Context, path: str) -> None:
    made = call(context, "create_file", path=path, content="x")
    moved = call(context, "move_file", source="Plain.md", destination=path)
    batch = call(context, "batch_move_files", moves=[{"source": "Plain.md", "destination": path}])

    assert [one["success"] for one in (made, moved, batch)] == [False, False, False]
    assert not (vault.root / path).exists()
    assert vault.text("Plain.md") == NOTES["Plain.md"]


@pytest.mark.parametrize(("path", "code"), [*((path, "not_found") for path in EXCLUDED), (OUTSIDE[0], "outside_vault")])
def test_nothing_is_moved_or_changed_that_may_not_be_read(
    vault: opened.Opener, context: Context, path: str, code: str
) -> None:
    moved = call(context, "move_file", source=path, destination="Stolen.md")
    moves = [{"source": path, "destination": "Stolen.md"}, {"source": "Plain.md", "destination": "Moved.md"}]
    batch = call(context, "batch_move_files", moves=moves)
    changed = call(context, "batch_update_frontmatter", paths=[path, "Note.md"], field="a", value="b")

    assert (moved["success"], moved["code"]) == (False, code)
    assert [(one["success"], one["failures"][0]["code"]) for one in (batch, changed)] == [(True, code)] * 2
    assert not (vault.root / "Stolen.md").exists()


@pytest.mark.parametrize(
    ("folder", "code"), [(".obsidian", "no_such_folder"), (".git", "no_such_folder"), ("../", "outside_vault")]
)
def test_a_folder_that_may_not_be_listed_is_an_error(context: Context, folder: str, code: str) -> None:
    answer = call(context, "search_by_folder", folder=folder, recursive=True)

    assert (answer["success"], answer["code"]) == (False, code)


@pytest.mark.parametrize("name", ["find_backlinks", "find_outlinks", "search_by_folder"])
def test_a_list_comes_in_pages_in_one_order(context: Context, name: str) -> None:
    asked = {
        "find_backlinks": {"note_name": "Plain"},
        "find_outlinks": {"path": "Folder/Link.md"},
        "search_by_folder": {"folder": "", "recursive": True},
    }[name]
    whole = call(context, name, **asked)
    pages = [call(context, name, **asked, limit=1, offset=number) for number in range(whole["total"] + 1)]

    assert [one for page in pages for one in page["results"]] == whole["results"] == sorted(whole["results"])
    assert {(page["total"], page["limit"]) for page in pages} == {(whole["total"], 1)}


def test_appending_a_value_that_is_there_changes_nothing(vault: opened.Opener, context: Context) -> None:
    call(context, "update_frontmatter", path="Note.md", field="tags", value="task", operation="append")

    assert vault.text("Note.md") == NOTES["Note.md"]


def test_an_interaction_is_logged_in_todays_note(vault: opened.Opener, context: Context) -> None:
    given = {"task_description": "Ask", "query": "what?", "summary": "n/a", "full_response": "All of it."}
    told = call(context, "log_interaction", **given)

    assert told["path"] == f"Daily Notes/{context.now():%Y-%m-%d}.md"
    assert "All of it." in vault.text(told["path"])


def test_backlinks_ignore_case_and_aliases_and_come_sorted(context: Context) -> None:
    answer = call(context, "find_backlinks", note_name="NOTE", limit=1)
    none = call(context, "find_backlinks", note_name="Last")

    assert (answer["results"], answer["total"], answer["limit"]) == (["Folder/Link.md"], 1, 1)
    assert (none["success"], none["results"]) == (True, [])


def test_outlinks_are_names_once_each(context: Context) -> None:
    answer = call(context, "find_outlinks", path="Folder/Link.md")

    assert [name.casefold() for name in answer["results"]] == ["note", "plain"]


def test_files_are_found_by_day_also_one_written_as_a_link(context: Context) -> None:
    found = call(context, "search_by_date_range", start_date="2023-08-11", end_date="2023-08-11", date_type="created")
    wrong = call(context, "search_by_date_range", start_date="11.8.2023", end_date="2023-08-11")

    assert found["results"] == ["Note.md"]
    assert wrong["success"] is False


def test_a_folder_is_listed_with_and_without_what_is_below(context: Context) -> None:
    flat = call(context, "search_by_folder", folder="Folder")
    deep = call(context, "search_by_folder", folder="Folder", recursive=True)
    gone = call(context, "search_by_folder", folder="Missing")

    assert (flat["results"], deep["total"]) == (["Folder/Link.md"], 2)
    assert (gone["success"], gone["code"]) == (False, "no_such_folder")


def test_preferences_are_kept_listed_and_removed_by_number(vault: opened.Opener, context: Context) -> None:
    call(context, "save_preference", preference="three")
    removed = call(context, "remove_preference", line_number=1)
    beyond = call(context, "remove_preference", line_number=9)
    listed = call(context, "list_preferences")

    assert vault.text("Preferences.md") == "# Mine\n\n- two\n- three\n"
    assert (removed["success"], beyond["success"]) == (True, False)
    assert [(one["line_number"], one["preference"]) for one in listed["results"]] == [(1, "two"), (2, "three")]


def test_the_date_is_a_day(context: Context) -> None:
    assert call(context, "get_current_date")["date"] == context.now().date().isoformat()


def test_text_goes_after_the_properties_before_a_blank_line(vault: opened.Opener, context: Context) -> None:
    call(context, "prepend_to_file", path="Note.md", content="New.")
    call(context, "prepend_to_file", path="Plain.md", content="New.")

    assert "---\n\nNew.\n\n# Note\n" in vault.text("Note.md")
    assert vault.text("Plain.md") == "New.\n\nFirst line.\n"


@pytest.mark.parametrize("name", SECTIONS)
@pytest.mark.parametrize(
    ("heading", "code"),
    [("## Nope", "heading_not_found"), ("## Twice", "heading_ambiguous"), ("Tasks", "invalid_heading")],
)
def test_a_heading_that_isnt_one_is_an_error(context: Context, name: str, heading: str, code: str) -> None:
    answer = call(context, name, path="Note.md", heading=heading, content="x")

    assert (answer["success"], answer["code"]) == (False, code)


@pytest.mark.parametrize("name", SECTIONS)
def test_headings_in_fences_are_none_and_several_are_told_with_their_lines(context: Context, name: str) -> None:
    fenced = call(context, name, path="Note.md", heading="## Fenced", content="x")
    twice = call(context, name, path="Note.md", heading="## TWICE", content="x")

    assert fenced["code"] == "heading_not_found"
    assert all(str(line) in json.dumps(twice) for line in (16, 20))


def test_sections_are_replaced_and_appended_to(vault: opened.Opener, context: Context) -> None:
    call(context, "append_to_section", path="Note.md", heading="## tasks", content="- two")
    call(context, "replace_section", path="Plain.md", heading="# X", content="y")
    appended = vault.text("Note.md")
    call(context, "replace_section", path="Note.md", heading="## Tasks", content="## Done\n\nall")

    assert "- one\n\n```" in appended
    assert "```\n\n- two\n" in appended
    assert "## Done\n\nall\n" in vault.text("Note.md")
    assert "- one" not in vault.text("Note.md")


def test_the_web_is_an_error_until_it_is_allowed(context: Context) -> None:
    assert call(context, "web_search", query="x")["code"] == "web_off"


def test_a_note_without_recordings_says_so_and_nothing_set_up_is_an_error(context: Context) -> None:
    silent = call(context, "transcribe_audio", path="Silent.md")
    voice = call(context, "transcribe_audio", path="Voice.md")

    assert (silent["success"], silent["message"], silent["results"]) == (True, "No audio embeds found", [])
    assert voice["success"] is False

"""Every error of a tool says what went wrong, has a stable code, and tells the next step."""

from collections.abc import Generator
from pathlib import Path
from typing import Any, Final, cast

import pytest

from knapper.app import tables
from knapper.config import ClientSettings
from knapper.tools.context import Context
from knapper.vault.access import default_grants
from tests.tools import opened

NOTES: Final = {
    "Note.md": "---\nnum: 5\ntags: [a]\n---\n# Note\n\n## Tasks\n\none\n\n## Empty\n\n## Twice\n\n## Twice\n",
    "Folder/Other.md": "[[Note]]\n",
    ".git/config": "x",
    "data.bin": "\0\1",
}
ON_A_NOTE: Final[dict[str, dict[str, Any]]] = {
    "read_file": {},
    "fetch_note": {},
    "note_info": {},
    "find_outlinks": {},
    "get_links": {},
    "get_links_recursive": {},
    "broken_links": {},
    "transcribe_audio": {},
    "update_frontmatter": {"field": "status", "value": "x"},
    "append_to_file": {"content": "x"},
    "prepend_to_file": {"content": "x"},
    "replace_section": {"heading": "## Tasks", "content": "x"},
    "append_to_section": {"heading": "## Tasks", "content": "x"},
    "edit_file": {"old_text": "a", "new_text": "b"},
    "edit_at": {"position": "end", "content": "x"},
    "write_file": {"content": "x", "expected_hash": "sha256:0"},
    "delete_file": {},
    "move_file": {"destination": "New.md"},
}
NO_NOTES: Final = ("Missing.md", "no/where.md", "../out.md", "/etc/passwd", ".git/config", "a\0b", f"{'x' * 300}.md")
WRONG: Final[dict[str, list[dict[str, Any]]]] = {
    "search_vault": [
        {},
        {"query": ""},
        {"query": "x", "n_results": 0},
        {"query": "x", "mode": "fuzzy"},
        {"query": "x", "per_note": 0},
        {"query": "x", "modified_from": "soon"},
        {"query": "x", "properties": ["!"]},
        {"query": "x" * 100_001},
    ],
    "read_file": [
        {"path": "Note.md", "offset": -1},
        {"path": "Note.md", "length": 0},
        {"path": "Note.md", "heading": "## Nope"},
        {"path": "Note.md", "heading": "## Twice"},
        {"path": "data.bin"},
        {"path": "Folder"},
    ],
    "list_files_by_frontmatter": [{"field": " ", "value": "a"}, {"field": "a", "value": "a", "limit": 0}],
    "update_frontmatter": [
        {"path": "Note.md", "field": "num"},
        {"path": "Note.md", "field": "num", "value": 5},
        {"path": "Note.md", "field": "num", "value": "num", "operation": "rename"},
        {"path": "Note.md", "field": "num", "value": "tags", "operation": "rename"},
        {"path": "Note.md", "field": "nope", "operation": "remove"},
        {"path": "Note.md", "field": "", "value": "x"},
        {"path": "Note.md", "field": "num", "value": "[1"},
    ],
    "batch_update_frontmatter": [{"paths": [], "field": "a", "value": "b"}],
    "batch_move_files": [{"moves": []}, {"moves": [{"source": "Note.md"}]}],
    "move_file": [
        {"source": "Note.md", "destination": "Folder/Other.md"},
        {"source": "Note.md", "destination": "../x.md"},
        {"source": "Note.md", "destination": ".git/x.md"},
        {"source": "Note.md", "destination": "Note.md"},
        {"source": "Folder", "destination": "Folder/In"},
    ],
    "create_file": [
        {"path": "Note.md"},
        {"path": ""},
        {"path": "../x.md"},
        {"path": ".git/x.md"},
        {"path": "x.md", "frontmatter": "{"},
        {"path": "x.md", "frontmatter": "[1]"},
    ],
    "find_backlinks": [{"note_name": ""}, {"note_name": "Note", "offset": -1}],
    "search_by_date_range": [
        {"start_date": "x", "end_date": "2024-01-01"},
        {"start_date": "2024-01-02", "end_date": "2024-01-01"},
    ],
    "search_by_folder": [{"folder": "Nope"}, {"folder": "../"}],
    "log_interaction": [
        {"task_description": "", "query": "", "summary": "x"},
        {"task_description": "x", "query": "", "summary": "n/a"},
    ],
    "save_preference": [{"preference": " "}, {"preference": "x" * 3_000}],
    "remove_preference": [{"line_number": 1}, {"line_number": "first"}],
    "append_to_file": [{"path": "Note.md", "content": ""}],
    "prepend_to_file": [{"path": "Note.md", "content": ""}],
    "replace_section": [
        {"path": "Note.md", "heading": "Tasks", "content": "x"},
        {"path": "Note.md", "heading": "## Nope", "content": "x"},
        {"path": "Note.md", "heading": "## Twice", "content": "x"},
        {"path": "Note.md", "heading": "## Empty", "content": "## Empty\n"},
    ],
    "append_to_section": [{"path": "Note.md", "heading": "## Tasks", "content": ""}],
    "edit_file": [
        {"path": "Note.md", "old_text": "one", "new_text": "one"},
        {"path": "Note.md", "old_text": "", "new_text": "x"},
        {"path": "Note.md", "old_text": "none", "new_text": "x"},
        {"path": "Note.md", "old_text": "## ", "new_text": "x"},
    ],
    "edit_at": [{"path": "Note.md", "position": "middle"}, {"path": "Note.md", "position": "delete:99"}],
    "rename_tag": [{"old": "a", "new": "a"}, {"old": "a", "new": "b c"}, {"old": "nope", "new": "b"}],
    "web_search": [{"query": "x"}, {"query": "x", "n_results": 0}],
    "get_links": [{"path": "Note.md", "direction": "up"}],
    "get_links_recursive": [{"path": "Note.md", "depth": 4}],
    "explore_vault": [{"folder": "Nope"}],
    "search_task_relevant": [{"task": ""}, {"task": "x", "current_note": "Nope.md"}],
    "daily_note": [{"date": "soon"}, {"date": "2000-01-01"}],
    "show_proposal": [{"proposal_id": "x"}],
    "undo_change": [{"change_id": "x"}],
    "run_script": [{"code": ""}, {"code": "1", "timeout_s": -1}],
    "call_tool": [{"name": "nope"}],
    "ask_vault": [{}, {"task": "x"}],
}


@pytest.fixture
def context(tmp_path: Path) -> Generator[Context]:
    person = ClientSettings(grants=default_grants("cli", "person"))
    with opened.vault(tmp_path, NOTES).open(person) as found:
        yield found


def refused(context: Context, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    answer = cast("dict[str, Any]", tables.build_table().answer(name, arguments, lambda _: context))
    assert (name, arguments, answer["success"]) == (name, arguments, False)
    return answer


@pytest.mark.parametrize("name", ON_A_NOTE)
def test_an_error_about_a_path_tells_what_to_do(context: Context, name: str) -> None:
    parameter = "source" if name == "move_file" else "path"
    told = {path: refused(context, name, {parameter: path, **ON_A_NOTE[name]}) for path in NO_NOTES}

    assert [path for path, one in told.items() if not (one["error"] and one["code"] and one.get("hint"))] == []


@pytest.mark.parametrize("name", WRONG)
def test_an_error_about_arguments_tells_what_to_do(context: Context, name: str) -> None:
    told = [(given, refused(context, name, given)) for given in WRONG[name]]

    assert [given for given, one in told if not (one["error"] and one["code"] and one.get("hint"))] == []


def test_a_note_that_is_written_as_it_was_is_told_so_with_what_to_do(context: Context) -> None:
    read = cast("dict[str, Any]", tables.build_table().answer("read_file", {"path": "Note.md"}, lambda _: context))

    given = {"path": "Note.md", "content": read["content"], "expected_hash": read["hash"]}
    assert refused(context, "write_file", given)["hint"] == "nothing has to be done"

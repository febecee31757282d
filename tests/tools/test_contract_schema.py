"""The documented contract's tools have its names, parameters and defaults; what we add is optional."""

from typing import Any, Final, cast

import pytest

from knapper.app import tables

NEEDED: Final = object()
PAGED: Final = {"limit": 100, "offset": 0}
CONTRACT: Final[dict[str, dict[str, object]]] = {
    "search_vault": {"query": NEEDED, "n_results": 5, "mode": "hybrid"},
    "read_file": {"path": NEEDED, "offset": 0, "length": 4000},
    "list_files_by_frontmatter": {"field": NEEDED, "value": NEEDED, "match_type": "contains", **PAGED},
    "update_frontmatter": {"path": NEEDED, "field": NEEDED, "value": None, "operation": None},
    "batch_update_frontmatter": {"paths": NEEDED, "field": NEEDED, "value": None, "operation": None},
    "move_file": {"source": NEEDED, "destination": NEEDED},
    "batch_move_files": {"moves": NEEDED},
    "create_file": {"path": NEEDED, "content": "", "frontmatter": ""},
    "find_backlinks": {"note_name": NEEDED, **PAGED},
    "search_by_date_range": {"start_date": NEEDED, "end_date": NEEDED, "date_type": "modified", **PAGED},
    "find_outlinks": {"path": NEEDED, **PAGED},
    "search_by_folder": {"folder": NEEDED, "recursive": False, **PAGED},
    "log_interaction": {
        "task_description": NEEDED,
        "query": NEEDED,
        "summary": NEEDED,
        "files": None,
        "full_response": None,
    },
    "save_preference": {"preference": NEEDED},
    "list_preferences": {},
    "remove_preference": {"line_number": NEEDED},
    "get_current_date": {},
    "append_to_file": {"path": NEEDED, "content": NEEDED},
    "prepend_to_file": {"path": NEEDED, "content": NEEDED},
    "replace_section": {"path": NEEDED, "heading": NEEDED, "content": NEEDED},
    "append_to_section": {"path": NEEDED, "heading": NEEDED, "content": NEEDED},
    "web_search": {"query": NEEDED},
    "transcribe_audio": {"path": NEEDED},
}
CHOICES: Final = {
    ("search_vault", "mode"): {"hybrid", "semantic", "keyword"},
    ("list_files_by_frontmatter", "match_type"): {"contains", "equals"},
    ("update_frontmatter", "operation"): {"set", "remove", "append"},
    ("batch_update_frontmatter", "operation"): {"set", "remove", "append"},
    ("search_by_date_range", "date_type"): {"created", "modified"},
}
OTHERS: Final = [
    "list_notes",
    "search_keyword",
    "search_semantic",
    "search_task_relevant",
    "fetch_note",
    "get_links",
    "get_links_recursive",
    "view_all_notes",
    "explore_vault",
    "list_all_tags",
    "find_notes",
    "note_info",
    "edit_file",
    "delete_file",
    "rename_tag",
    "list_tags",
    "broken_links",
    "orphans",
    "daily_note",
    "fetch_page",
    "run_script",
    "vault_status",
    "find_tool",
    "list_proposals",
    "show_proposal",
    "accept_proposal",
    "reject_proposal",
    "list_changes",
    "undo_change",
]
TABLE: Final = tables.build_table()


def parameters(name: str) -> tuple[dict[str, dict[str, Any]], set[str]]:
    """Give a tool's parameters, and which of them are needed."""
    shown = cast("dict[str, Any]", TABLE.parameters(TABLE.find(name)))
    return shown["properties"], set(shown.get("required", ()))


def test_the_contract_has_23_tools() -> None:
    assert len(CONTRACT) == 23


@pytest.mark.parametrize("name", CONTRACT)
def test_a_tool_takes_what_the_contract_says(name: str) -> None:
    known, needed = parameters(name)
    defaults = {one: NEEDED if one in needed else known[one].get("default") for one in CONTRACT[name]}

    assert defaults == CONTRACT[name]
    assert needed == {one for one, default in CONTRACT[name].items() if default is NEEDED}


@pytest.mark.parametrize(("name", "parameter"), CHOICES)
def test_a_choice_has_what_the_contract_lists(name: str, parameter: str) -> None:
    known, _ = parameters(name)

    assert set(known[parameter]["enum"]) >= CHOICES[name, parameter]


@pytest.mark.parametrize("name", [*CONTRACT, *OTHERS])
def test_every_tool_that_was_promised_is_there(name: str) -> None:
    assert TABLE.find(name).name == name

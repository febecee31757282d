"""Name the tools of the agent that explores; the settings list them, and need nothing else of it."""

from typing import Final

UPDATE_SELECTION: Final = "update_selection"
ASK_USER: Final = "ask_user"
CHOICES: Final = (
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
    ASK_USER,
)
"""What can be switched off."""
TOOLS: Final = (UPDATE_SELECTION, *CHOICES)

"""Say the next step in commands, where the inner layers say it for every surface alike."""

from collections.abc import Mapping
from typing import Final

COMMANDS: Final[Mapping[str, str]] = {
    "list the sessions": "`knap sessions` lists them",
    "list the proposals for their ids": "`knap edits list --all` lists them",
    "list the open proposals": "`knap edits` lists those that are open",
    "list the journal for its changes": "`knap log` lists them",
    "list the journal for what was changed": "`knap log` lists what was changed",
    "list the journal for what took it back": "`knap log` tells what took it back",
    "list or search the vault for its name": "`knap find` lists the notes",
    "Give the text in content.": "give the text after the heading, or - for the standard input",
}
"""A hint, and what it comes to at a terminal."""


def of(hint: str) -> str:
    """Give a hint in commands, or as it is where it holds everywhere."""
    return COMMANDS.get(hint, hint)

"""Tell a model in words which edits it may make; what holds them is elsewhere."""

from collections.abc import Sequence
from typing import Final

from knapper.agents.scopes import Ability, EditableScope, EditRules

_SCOPES: Final[dict[EditableScope, str]] = {
    "current": "You may edit the open note only.",
    "linked": "You may edit the open note and the notes that it links with directly.",
    "context": "You may edit any of the notes that you were given.",
}
_POSITIONS: Final[tuple[tuple[Ability, str, str], ...]] = (
    ("add", "start", "at the beginning of the note's text"),
    ("add", "end", "at its end"),
    ("add", "after:## Heading", "right below this heading, which is written with its # signs"),
    ("add", "insert:N", "before line N"),
    ("delete", "replace:N or replace:N-M", "in the place of these lines"),
    ("delete", "delete:N or delete:N-M", "takes these lines away; `content` is empty"),
    ("create", "create", "a new note with this text; it must not be there yet"),
    ("navigate", "open", "opens the note for the person at once and changes nothing; `content` is empty"),
)
_FORBIDDEN: Final[tuple[tuple[Ability, str], ...]] = (
    ("add", "Inserting text is forbidden: never use start, end, after or insert."),
    ("delete", "Replacing and deleting is forbidden: never use replace or delete."),
    ("create", "Making notes is forbidden: never use create."),
    ("navigate", "Opening notes is forbidden: never use open."),
)
_RULES: Final = """\
- Line numbers are those in front of the lines above, and those of the note as it is now: all edits of a reply count \
from the same lines, so an edit never shifts another.
- Edits of one note must not overlap. Make one edit of lines that go together.
- A line or a note of which the rest isn't shown can't be replaced or deleted beyond what is shown whole.
- Change as little as the task needs. Leave everything else as it is, down to spaces.
- Properties stand at the top of a note between `---` lines, and are edited by line as well.
- Lines of an edit that still waits for the person's word are marked above; replace all of such a block's lines to \
change what it proposes."""


def scope_instruction(editable: EditableScope, paths: Sequence[str], current: str) -> str:
    """Say in words which notes may be edited.

    Args:
        editable: The scope.
        paths: The notes that it comes to now, escaped.
        current: The open note, escaped; empty for none.
    """
    opened = f"The open note is {current}." if current else "No note is open."
    listed = ", ".join(paths) if paths else "none: existing notes can't be edited now"
    return f"{opened} {_SCOPES[editable]} Now these are: {listed}. Any other edit is thrown away."


def position_types(can: frozenset[Ability]) -> str:
    """List the positions that may be used."""
    lines = [f"- `{form}`: {meaning}" for ability, form, meaning in _POSITIONS if ability in can]
    return "\n".join(lines) or "- none: `edits` must be empty"


def edit_rules() -> str:
    """Give the rules that hold for every edit."""
    return _RULES


def forbidden_actions(can: frozenset[Ability]) -> str:
    """Warn of what is switched off; empty where all is allowed."""
    return "\n".join(f"- {warning}" for ability, warning in _FORBIDDEN if ability not in can)


def rules(given: EditRules, paths: Sequence[str], current: str) -> str:
    """Write all rules about edits as a part of the system prompt."""
    forbidden = forbidden_actions(given.can)
    parts = [
        "## Which notes you may edit",
        scope_instruction(given.editable, paths, current),
        "## Positions",
        position_types(given.can),
        "## Rules for edits",
        edit_rules(),
    ]
    if forbidden:
        parts += ["## Forbidden", forbidden]
    return "\n\n".join(parts)

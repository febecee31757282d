"""Keep the answer to one call small while it is made: afterwards its size would have cost what it costs."""

from typing import Final

from knapper.codemode import reading
from knapper.errors import BadInput
from knapper.vault.parser import Note

MOST: Final = 16_000_000
"""Characters of notes in one answer: as many as fit into its frame."""


class Room:
    """Count the notes' texts of one answer; the same note counts each time that it is asked for."""

    def __init__(self, most: int = MOST) -> None:
        """Begin with all of the room."""
        self._left = most

    def text(self, note: Note | None) -> str:
        """Give a note's whole text, if there is room for it.

        Raises:
            BadInput: There isn't (code ``too_large``).
        """
        self._left -= len(note.raw) if note else 0
        if self._left < 0:
            raise BadInput(
                "the answer is too large for one call", hint="ask for fewer or smaller notes", code="too_large"
            )
        return reading.text(note)

"""Say what tools that read a note answer."""

from typing import NotRequired

from typing_extensions import TypedDict


class PendingEdit(TypedDict):
    """Tell of an edit that waits in a note for a person's word."""

    id: str
    type: str
    line: int
    is_whole: bool


class Problem(TypedDict):
    """Tell what in a note can't be read as it was meant."""

    code: str
    message: str
    line: int


class Reading(TypedDict):
    """Give a note's text, or a stretch of it."""

    success: bool
    path: str
    content: str
    hash: str
    """Of the whole file."""
    truncated: bool
    offset: int
    total_chars: int
    next_offset: NotRequired[int]
    start_line: int
    end_line: int
    pending: NotRequired[list[PendingEdit]]
    problems: NotRequired[list[Problem]]
    foreign: NotRequired[bool]
    """Whether others wrote it."""

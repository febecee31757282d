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


class Embed(TypedDict):
    """Hold what an embed shows, or why it shows nothing."""

    embed: str
    """As written."""
    line: int
    """Where it stands."""
    path: NotRequired[str]
    start_line: NotRequired[int]
    end_line: NotRequired[int]
    content: NotRequired[str]
    truncated: NotRequired[bool]
    foreign: NotRequired[bool]
    error: NotRequired[str]
    code: NotRequired[str]


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
    embeds: NotRequired[list[Embed]]
    """What the embeds in the text show, where that was asked for."""

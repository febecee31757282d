"""Say what tools about daily notes and preferences answer."""

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from knapper.tools.shapes.reading import PendingEdit, Problem
from knapper.tools.shapes.written import Written, WrittenFile


class Today(TypedDict):
    """Tell the day."""

    success: bool
    date: str
    """``YYYY-MM-DD``."""
    time: str
    """``HH:MM``, local."""
    weekday: str
    zone: str
    """The offset from universal time, such as ``+02:00``."""


class DailyNote(TypedDict):
    """Show a daily note as reading does, or say what became of making it as writing does."""

    success: bool
    date: str
    path: str
    created: bool
    hash: NotRequired[str | None]
    content: NotRequired[str]
    truncated: NotRequired[bool]
    offset: NotRequired[int]
    next_offset: NotRequired[int]
    total_chars: NotRequired[int]
    start_line: NotRequired[int]
    end_line: NotRequired[int]
    pending: NotRequired[list[PendingEdit]]
    problems: NotRequired[list[Problem]]
    foreign: NotRequired[bool]
    status: NotRequired[Literal["applied", "proposed", "planned"]]
    message: NotRequired[str]
    change_id: NotRequired[str]
    proposal_id: NotRequired[str]
    reason: NotRequired[str]
    files: NotRequired[list[WrittenFile]]
    notes: NotRequired[list[str]]


class Logged(Written):
    """Say what became of an entry."""

    links: list[str]
    """Notes that the entry links to, sorted."""


class Preference(TypedDict):
    """Show one preference."""

    line_number: int
    """Counts the preferences from 1; removing takes it."""
    preference: str
    line: int
    """Where it stands in the file."""


class Preferences(TypedDict):
    """List the preferences."""

    success: bool
    results: list[Preference]
    total: int
    path: str
    message: NotRequired[str]
    hash: NotRequired[str]
    foreign: NotRequired[bool]


class Saved(Written):
    """Say what became of a preference."""

    preference: str
    line_number: NotRequired[int]

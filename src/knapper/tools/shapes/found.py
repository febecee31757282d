"""Say what tools that search and list answer."""

from typing import Literal, NotRequired

from typing_extensions import TypedDict


class Fresh(TypedDict):
    """Say what an answer may miss."""

    success: bool
    index_stale: bool
    """Whether files changed that the index doesn't have yet."""
    index_incomplete: bool
    """Whether the vault hasn't been read from end to end yet."""
    pending: int
    """Passages that search by meaning doesn't know yet."""
    notes: NotRequired[list[str]]
    """What else there is to know about the answer."""


class Listed(Fresh):
    """Say which stretch of a list this is."""

    total: int
    limit: int
    offset: int
    next_offset: NotRequired[int]
    """Where the list goes on; missing at its end."""


class Paths(Listed):
    """List files by path."""

    results: list[str]


class Passage(TypedDict):
    """Hold a stretch of a note that matched."""

    source: str
    """The note's path."""
    content: str
    heading: str
    """With its ``#`` signs; ``top-level`` before the first one, ``frontmatter`` for properties."""
    start_line: int
    end_line: int
    score: float
    hash: str
    explain: NotRequired[dict[str, float]]
    foreign: NotRequired[bool]
    """Whether others wrote it."""


class Passages(Fresh):
    """List passages, the best first."""

    results: list[Passage]
    message: NotRequired[str]


class NoteHit(TypedDict):
    """Hold a note that matched, with its best passage."""

    path: str
    title: str
    content: str
    heading: str
    start_line: int
    end_line: int
    score: float
    hash: str
    foreign: NotRequired[bool]
    match: NotRequired[Literal["title", "heading", "content"]]
    """Where the words stand."""
    why: NotRequired[list[Literal["task", "current_note", "linked"]]]
    """What the note was found by."""


class NoteHits(Fresh):
    """List notes that matched, the best first."""

    results: list[NoteHit]
    message: NotRequired[str]


class TagCount(TypedDict):
    """Say how many notes have a tag."""

    tag: str
    notes: int


class Tags(Listed):
    """List tags, the most used first."""

    results: list[TagCount]

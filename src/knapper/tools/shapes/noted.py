"""Say what tools that show notes answer."""

from typing import NotRequired

from typing_extensions import TypedDict

from knapper.tools.shapes.found import Fresh, Listed
from knapper.tools.shapes.reading import PendingEdit, Problem


class Found(Listed):
    """List notes with the fields that were asked for."""

    results: list[dict[str, object]]
    """Each with ``path`` and the fields; what a note doesn't have is null."""


class Preview(TypedDict):
    """Show how a note begins."""

    path: str
    title: str
    modified: str
    preview: NotRequired[str]
    foreign: NotRequired[bool]
    """Whether others wrote it; what it says isn't shown in lists then."""


class Previews(Listed):
    """List notes with how they begin."""

    results: list[Preview]


class Named(TypedDict):
    """Give a note's names, and what it says about itself."""

    path: str
    title: str
    aliases: NotRequired[list[str]]
    description: NotRequired[str]
    foreign: NotRequired[bool]


class Names(Listed):
    """List notes by name."""

    results: list[Named]


class FolderCount(TypedDict):
    """Say how many notes lie in a folder and below it."""

    path: str
    notes: int


class Explored(Listed):
    """Show what a folder holds, or which notes have a tag."""

    folder: str
    tag: NotRequired[str]
    folders: list[FolderCount]
    """Right below it."""
    results: list[Named]


class Heading(TypedDict):
    """Name a section."""

    heading: str
    """With its ``#`` signs."""
    line: int
    end_line: int


class Task(TypedDict):
    """Hold a task."""

    state: str
    """Between the brackets; a space is open."""
    text: str
    line: int


class Tasks(TypedDict):
    """Count a note's tasks, and show the first."""

    total: int
    open: int
    results: list[Task]


class Outgoing(TypedDict):
    """Say where one of a note's links leads."""

    target: str
    line: int
    leads_to: str | None


class LinksOut(TypedDict):
    """Count a note's links, and show the first."""

    total: int
    results: list[Outgoing]


class LinksIn(TypedDict):
    """Count the files that link to a note, and name the first."""

    total: int
    results: list[str]


class Info(Fresh):
    """Say what there is to know about a note beside its text."""

    path: str
    title: str
    kind: str
    hash: str
    size: int
    """In bytes."""
    lines: int
    created: NotRequired[str]
    modified: NotRequired[str]
    aliases: list[str]
    tags: list[str]
    properties: dict[str, object]
    outline: list[Heading]
    headings: int
    """How many there are; the outline shows the first."""
    tasks: Tasks
    links_out: LinksOut
    links_in: LinksIn
    waiting_edits: NotRequired[list[PendingEdit]]
    problems: NotRequired[list[Problem]]
    foreign: NotRequired[bool]

"""Say what tools about links answer."""

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from knapper.tools.shapes.found import Listed


class Link(TypedDict):
    """Hold one link as it stands in a file."""

    path: str
    """The file."""
    line: int
    kind: str
    target: str
    """As written, without heading and block."""
    leads_to: str | None
    headings: NotRequired[list[str]]
    block: NotRequired[str]
    alias: NotRequired[str]
    property: NotRequired[str]
    also_fits: NotRequired[list[str]]
    """Other files that the name fits as well."""


class Backlinks(Listed):
    """List the files that link to a note."""

    results: list[str]
    exists: bool
    """Whether there is a note of that name."""
    notes_of_that_name: list[str]
    links: list[Link]
    """Those of the listed files."""


class Outlinks(Listed):
    """List what a note links to."""

    path: str
    results: list[str]
    links: list[Link]


class Broken(Listed):
    """List links that lead nowhere."""

    results: list[Link]


class Neighbor(TypedDict):
    """Name a note that is linked with another."""

    path: str
    title: str
    direction: Literal["in", "out", "both"]
    """Seen from the note that was asked about."""


class Neighbors(Listed):
    """List the notes that are linked with one."""

    path: str
    results: list[Neighbor]
    unresolved: list[str]
    """Names that it links to and that no note has."""


class Reached(TypedDict):
    """Name a note that links lead to in so many steps."""

    path: str
    title: str
    depth: int
    via: str
    """The note one step before, on a shortest way."""


class Reach(Listed):
    """List the notes that links lead to, the nearest first."""

    path: str
    depth: int
    results: list[Reached]

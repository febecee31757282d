"""Say what tools about proposals answer."""

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from knapper.tools.shapes.written import RewrittenLink

Status = Literal["open", "stale", "accepted", "partly_accepted", "rejected", "expired", "superseded"]
Extent = Literal["all", "part"]


class Stale(TypedDict):
    """Say why a part doesn't fit any more."""

    code: str
    message: str
    line: NotRequired[int]
    current_text: NotRequired[str]


class Hunk(TypedDict):
    """Show one place that can be accepted by itself."""

    id: str
    state: str
    line: int
    old: str
    new: str
    words: list[list[str]]
    """Pairs of a side (``same``, ``removed``, ``added``) and the text."""
    edited: NotRequired[bool]
    reason: NotRequired[str]
    stale: NotRequired[Stale]


class File(TypedDict):
    """Show what a proposal would do to one file."""

    number: int
    group: int
    """Files of one group are accepted together."""
    path: str
    kind: str
    state: str
    follows: bool
    """Whether only links in it follow a move."""
    hunks: list[Hunk]
    diff: str
    target: NotRequired[str]
    base_hash: NotRequired[str]
    reason: NotRequired[str]
    stale: NotRequired[Stale]


class Folder(TypedDict):
    """Name a folder that would move."""

    path: str
    target: str


class Proposal(TypedDict):
    """Show a proposal."""

    success: bool
    id: str
    status: Status
    digest: str
    """Accepting asks for it: nothing is accepted that wasn't shown."""
    client: str
    created: str
    expires: str
    files: list[File]
    reason: NotRequired[str]
    why: NotRequired[str]
    run: NotRequired[str]
    tainted: NotRequired[bool]
    folders: NotRequired[list[Folder]]
    links_rewritten: NotRequired[list[RewrittenLink]]
    rejection: NotRequired[str]
    superseded_by: NotRequired[str]
    change_ids: NotRequired[list[str]]
    undone: NotRequired[Extent]
    """How much of what was accepted was taken back, and isn't there again."""
    undone_by: NotRequired[list[str]]
    """The changes that took it back; undoing one brings it again."""
    notes: NotRequired[list[str]]


class Edited(Proposal):
    """Show a proposal of which a hunk was edited."""

    change_id: NotRequired[str]
    """The change that drew the hunk's block in its note anew."""


class Summary(TypedDict):
    """Tell of a proposal in a list."""

    id: str
    status: Status
    client: str
    created: str
    expires: str
    path: str
    files: int
    items: dict[str, int]
    """How many parts are in which state."""
    reason: NotRequired[str]
    why: NotRequired[str]
    run: NotRequired[str]
    tainted: NotRequired[bool]
    undone: NotRequired[Extent]
    undone_by: NotRequired[list[str]]


class Proposals(TypedDict):
    """List proposals, the newest first."""

    success: bool
    results: list[Summary]
    total: int
    limit: int
    offset: int
    next_offset: NotRequired[int]


class Rejected(TypedDict):
    """Say that a proposal, or parts of it, were rejected, or what would be."""

    success: bool
    id: str
    status: Status | Literal["planned"]
    reason: str
    files: NotRequired[list[str]]
    """Of which something would be rejected."""
    hunks: NotRequired[list[str]]

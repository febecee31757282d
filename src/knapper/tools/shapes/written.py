"""Say what tools that change something answer."""

from typing import Literal, NotRequired

from typing_extensions import TypedDict


class WrittenFile(TypedDict):
    """Say what happened, or would happen, to one file."""

    path: str
    action: Literal["edited", "created", "moved", "trashed", "linked", "removed", "restored"]
    target: NotRequired[str]
    """The new path of a moved file."""
    before_hash: NotRequired[str]
    hash: NotRequired[str]
    diff: NotRequired[str]


class Failure(TypedDict):
    """Say which item of a batch couldn't be carried out, and why."""

    request: int
    path: NotRequired[str]
    error: str
    code: str
    hint: NotRequired[str]


class Refusal(TypedDict):
    """Say what the rules refused."""

    path: str
    error: str
    code: str
    hint: NotRequired[str]


class RewrittenLink(TypedDict):
    """Say which link followed a move."""

    path: str
    line: int
    old: str
    new: str


class Written(TypedDict):
    """Say what became of a change: ``applied``, ``proposed``, ``planned`` (a dry run) or ``refused``."""

    success: bool
    status: Literal["applied", "proposed", "refused", "planned"]
    path: NotRequired[str]
    hash: NotRequired[str | None]
    """Of the file as it is now; null where it is gone."""
    message: NotRequired[str]
    change_id: NotRequired[str]
    proposal_id: NotRequired[str]
    reason: NotRequired[str]
    """Why it was proposed or refused."""
    files: NotRequired[list[WrittenFile]]
    hidden_files: NotRequired[int]
    """How many files changed that the client may not see."""
    failures: NotRequired[list[Failure]]
    refusals: NotRequired[list[Refusal]]
    links_rewritten: NotRequired[list[RewrittenLink]]
    notes: NotRequired[list[str]]


class LeftFile(TypedDict):
    """Say which file an undo leaves as it is, and why."""

    path: str
    problem: str
    current_hash: str | None


class Undone(TypedDict):
    """Say what an undo took back."""

    success: bool
    status: Literal["applied", "planned"]
    change_id: NotRequired[str]
    undone: list[str]
    files: list[WrittenFile]
    left: NotRequired[list[LeftFile]]
    notes: NotRequired[list[str]]


class Change(TypedDict):
    """Say what one change in the journal did."""

    id: str
    at: str
    client: str
    run: NotRequired[str]
    reason: NotRequired[str]
    proposal_id: NotRequired[str]
    undone: NotRequired[str | bool]
    hidden_files: NotRequired[int]
    undoes: NotRequired[list[str]]
    files: list[WrittenFile]


class Changes(TypedDict):
    """List changes, the newest first."""

    success: bool
    results: list[Change]
    total: int
    limit: int
    offset: int
    next_offset: NotRequired[int]

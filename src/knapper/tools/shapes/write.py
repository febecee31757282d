"""Answer types of the tools that change or propose."""

from typing import Literal, NotRequired

from typing_extensions import TypedDict

FileAction = Literal["edited", "created", "moved", "trashed", "linked", "removed", "restored"]


class WrittenFile(TypedDict):
    """What happened, or would happen, to one file."""

    path: str
    action: FileAction
    target: NotRequired[str]
    """The new path of a moved file."""
    before_hash: NotRequired[str]
    hash: NotRequired[str]
    diff: NotRequired[str]
    diff_truncated: NotRequired[bool]
    """Whether the diff is only a beginning, or left out: an answer shows 200,000 characters of diffs in all."""


class RequestFailure(TypedDict):
    """An item of a batch that couldn't be carried out, and why."""

    request: int
    path: NotRequired[str]
    error: str
    code: str
    hint: NotRequired[str]


class RuleRefusal(TypedDict):
    """A file that the rules refused to change."""

    path: str
    error: str
    code: str
    hint: NotRequired[str]


class RewrittenLink(TypedDict):
    """A link that was updated for a move."""

    path: str
    line: int
    old: str
    new: str


class WriteResult(TypedDict):
    """The result of a change: ``applied``, ``proposed``, ``planned`` (a dry run) or ``refused``."""

    success: bool
    status: Literal["applied", "proposed", "refused", "planned"]
    path: NotRequired[str]
    hash: NotRequired[str | None]
    """Of the file as it is now; null where it is gone."""
    message: NotRequired[str]
    change_id: NotRequired[str]
    proposal_id: NotRequired[str]
    review_command: NotRequired[str]
    """With which a person decides on the proposal."""
    review_url: NotRequired[str]
    """The page's address of the proposal, where a server runs."""
    reason: NotRequired[str]
    """Why it was proposed or refused."""
    files: NotRequired[list[WrittenFile]]
    hidden_files: NotRequired[int]
    """How many files changed that the client may not see."""
    failures: NotRequired[list[RequestFailure]]
    refusals: NotRequired[list[RuleRefusal]]
    links_rewritten: NotRequired[list[RewrittenLink]]
    notes: NotRequired[list[str]]


class ReviewPlaces(TypedDict):
    """Where a person decides on a proposal."""

    review_command: str
    review_url: NotRequired[str]


class ReviewFields(ReviewPlaces):
    """What an answer says of a proposal."""

    message: str


class UndoConflict(TypedDict):
    """A file that an undo leaves as it is, and why."""

    path: str
    problem: str
    current_hash: str | None
    later: NotRequired[list[str]]
    """Ids of the later changes of the file that have to be undone first, newest first."""


class UndoResult(TypedDict):
    """What an undo reverted."""

    success: bool
    status: Literal["applied", "planned"]
    change_id: NotRequired[str]
    undone: list[str]
    files: list[WrittenFile]
    left: NotRequired[list[UndoConflict]]
    notes: NotRequired[list[str]]


class ChangeRow(TypedDict):
    """One change in the journal."""

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


class ChangeList(TypedDict):
    """Changes, the newest first."""

    success: bool
    results: list[ChangeRow]
    total: int
    limit: int
    offset: int
    next_offset: NotRequired[int]


ProposalStatusName = Literal["open", "stale", "accepted", "partly_accepted", "rejected", "expired", "superseded"]
UndoExtent = Literal["all", "part"]


class StaleReason(TypedDict):
    """Why a part doesn't fit any more."""

    code: str
    message: str
    line: NotRequired[int]
    current_text: NotRequired[str]


class ProposalHunk(TypedDict):
    """One place that can be accepted by itself."""

    id: str
    state: str
    line: int
    old: str
    new: str
    words: list[list[str]]
    """Pairs of a side (``same``, ``removed``, ``added``) and the text."""
    edited: NotRequired[bool]
    reason: NotRequired[str]
    block: NotRequired[str]
    """The id of the block that shows it in its note."""
    stale: NotRequired[StaleReason]


class ProposalFile(TypedDict):
    """What a proposal would do to one file."""

    number: int
    group: int
    """Files of one group are accepted together."""
    path: str
    kind: str
    state: str
    follows: bool
    """Whether only links in it follow a move."""
    hunks: list[ProposalHunk]
    diff: str
    target: NotRequired[str]
    base_hash: NotRequired[str]
    reason: NotRequired[str]
    stale: NotRequired[StaleReason]


class FolderMove(TypedDict):
    """A folder that would move."""

    path: str
    target: str


class ProposalAnswer(TypedDict):
    """A proposal."""

    success: bool
    id: str
    status: ProposalStatusName
    digest: str
    """accept_proposal needs it: nothing is accepted that wasn't shown."""
    client: str
    created: str
    expires: str
    files: list[ProposalFile]
    reason: NotRequired[str]
    why: NotRequired[str]
    review_command: NotRequired[str]
    """With which a person decides on it, while it waits."""
    review_url: NotRequired[str]
    run: NotRequired[str]
    tainted: NotRequired[bool]
    folders: NotRequired[list[FolderMove]]
    links_rewritten: NotRequired[list[RewrittenLink]]
    rejection: NotRequired[str]
    superseded_by: NotRequired[str]
    decided_at: NotRequired[str]
    """When it was rejected, expired or was replaced, where that is recorded."""
    decided_by: NotRequired[str]
    change_ids: NotRequired[list[str]]
    undone: NotRequired[UndoExtent]
    """How much of what was accepted is undone now."""
    undone_by: NotRequired[list[str]]
    """The changes that undid it; undoing one of them restores it."""
    notes: NotRequired[list[str]]


class EditedProposal(ProposalAnswer):
    """A proposal of which a hunk was edited."""

    change_id: NotRequired[str]
    """The change that redrew the hunk's block in its note."""


class UndoneFields(TypedDict, total=False):
    """How much of an accepted proposal is undone now, and by which changes."""

    undone: UndoExtent
    undone_by: list[str]


class ProposalRow(TypedDict):
    """A proposal in a list."""

    id: str
    status: ProposalStatusName
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
    decided_at: NotRequired[str]
    decided_by: NotRequired[str]
    undone: NotRequired[UndoExtent]
    undone_by: NotRequired[list[str]]


class ProposalList(TypedDict):
    """Proposals, the newest first."""

    success: bool
    results: list[ProposalRow]
    total: int
    limit: int
    offset: int
    next_offset: NotRequired[int]


class PendingBlockRow(TypedDict):
    """A pending edit that a note holds as a block."""

    id: str
    type: str | None
    """What its edit does: add, delete or replace."""
    line: int
    before: str
    after: str
    problem: NotRequired[str]
    """Why it can't be decided, such as that it was edited by hand."""


class PendingBlockList(TypedDict):
    """The pending edits that a note holds as blocks."""

    success: bool
    path: str
    hash: str
    """Of the whole note."""
    results: list[PendingBlockRow]
    total: int


class RejectionResult(TypedDict):
    """A proposal that was rejected in whole or in part, or would be."""

    success: bool
    id: str
    status: ProposalStatusName | Literal["planned"]
    reason: str
    files: NotRequired[list[str]]
    """Of which something would be rejected."""
    hunks: NotRequired[list[str]]

"""Parts of a proposal: files and hunks, their states, and the digest of what can still be accepted."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Literal

from knapper.changes.disk.plan import TrashPlace
from knapper.changes.drafts import Capability, Cause, LinkRewrite
from knapper.changes.text import diff
from knapper.changes.text.diff import Hunk
from knapper.vault.access import EMPTY_SCOPE, Scope
from knapper.vault.paths import NotePath

ProposalStatus = Literal["open", "stale", "accepted", "partly_accepted", "rejected", "expired", "superseded"]
"""*Open* while something can be accepted; *stale* while what is left can't, because the files changed; *partly
accepted* once everything is decided, and some of it was accepted and some rejected."""
ItemState = Literal["open", "accepted", "rejected"]
ItemKind = Literal["edit", "create", "move", "trash"]
StaleCode = Literal["changed", "gone", "exists"]

_DIGEST_DIGITS: Final = 32
"""Enough that nobody can construct two proposals with one digest."""
_ID_DIGITS: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Stale:
    """Reason why a proposed file or hunk doesn't fit its file any more."""

    code: StaleCode
    message: str
    line: int | None = None
    """About where the place is now."""
    current_text: str = ""
    """The text there now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedHunk:
    """One hunk of an edit, which can be accepted, rejected and edited by itself."""

    number: int
    """From 1, in the file; it doesn't change when other hunks are decided."""
    id: str
    """``2.1``: the first hunk of the second file."""
    hunk: Hunk
    """Its `Hunk.id` doesn't change either, and is bound to the proposal."""
    origin: bytes
    """The state that the hunk was made against."""
    state: ItemState = "open"
    stale: Stale | None = None
    edited: bool = False
    """Whether its new text differs from what was proposed."""
    reason: str = ""
    """Why it was rejected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedFile:
    """What is proposed for one file.

    An edit is made of hunks; anything else is accepted or rejected as a whole, and its hunks only show its text.
    """

    number: int
    """From 1."""
    path: NotePath
    kind: ItemKind
    target: NotePath | None = None
    trash: TrashPlace | None = None
    base: str | None = None
    """Hash of the file's state that this fits now."""
    before: bytes | None = None
    content: bytes | None = None
    """The text of a new or moved note; an edit's follows from its hunks."""
    needs: frozenset[Capability] = frozenset()
    anchored: bool = False
    cause: Cause = "asked"
    requests: frozenset[int] = frozenset()
    hunks: tuple[ProposedHunk, ...] = ()
    state: ItemState = "open"
    """Of an edit: open while a hunk is, accepted if one was."""
    stale: Stale | None = None
    """Why this can't be accepted as a whole; of an edit, each hunk has its own."""
    reason: str = ""
    """Why it was rejected."""

    @property
    def place(self) -> NotePath:
        """The path that the file would have."""
        return self.target or self.path

    @property
    def waiting(self) -> tuple[ProposedHunk, ...]:
        """The hunks of an edit that could be accepted now."""
        if self.kind != "edit":
            return ()
        return tuple(one for one in self.hunks if one.state == "open" and one.stale is None)

    @property
    def is_acceptable(self) -> bool:
        """Whether any part of it could be accepted now."""
        return bool(self.waiting) if self.kind == "edit" else self.state == "open" and self.stale is None

    @property
    def is_stale(self) -> bool:
        """Whether any open part of it doesn't fit any more."""
        if self.kind == "edit":
            return any(one.state == "open" and one.stale for one in self.hunks)
        return self.state == "open" and self.stale is not None

    @property
    def after(self) -> bytes | None:
        """The file's content if all that can be accepted were; None for a file that is trashed."""
        if self.kind != "edit" or self.before is None:
            return self.content
        return diff.apply_hunks(self.before, (one.hunk for one in self.waiting))

    @property
    def unified(self) -> str:
        """The difference that accepting would make, as ``diff -u`` shows it."""
        return diff.unified_diff(self.before or b"", self.after or b"", self.place)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """One proposal in its current state."""

    id: str
    client: str
    run: str
    created: datetime
    expires: datetime
    status: ProposalStatus
    reason: str
    """Why the client wants it."""
    why: str
    """Why it isn't applied: the reason that the rules gave."""
    tainted: bool
    """Whether the proposing client had read untrusted content."""
    by_query: bool
    files: tuple[ProposedFile, ...]
    folders: tuple[tuple[NotePath, NotePath], ...]
    notices: tuple[str, ...]
    rewritten: tuple[LinkRewrite, ...]
    scope: Scope = EMPTY_SCOPE
    """The notes in the client's editable scope when it proposed."""
    behalf: str = ""
    """The client for which an agent made it; empty where there is none."""
    rejection: str = ""
    """Why its last open part was rejected."""
    superseded_by: str = ""
    changes: tuple[str, ...] = ()
    """Ids of the changes that accepting it made, in order."""
    digest: str = ""
    """Identifies what can be accepted now, text by text, so that nobody accepts anything that wasn't shown."""

    def groups(self) -> tuple[tuple[ProposedFile, ...], ...]:
        """Return the files that belong together: a move with those whose links follow, a folder with all it holds."""
        leaders = {file.number: file.number for file in self.files}
        for together in self._bound():
            chosen = {leaders[number] for number in together}
            leaders = {number: min(chosen) if own in chosen else own for number, own in leaders.items()}
        groups: dict[int, list[ProposedFile]] = {}
        for file in self.files:
            groups.setdefault(leaders[file.number], []).append(file)
        return tuple(map(tuple, groups.values()))

    def _bound(self) -> list[set[int]]:
        """Return the numbers of files that belong together, a set for each request whose links follow."""
        links = [file for file in self.files if file.cause == "link"]
        if self.folders or not all(file.requests for file in links):
            return [{file.number for file in self.files}]
        request_numbers = {request for file in links for request in file.requests}
        return [{file.number for file in self.files if request in file.requests} for request in sorted(request_numbers)]

    def acceptable(self) -> tuple[ProposedFile, ...]:
        """Return the files of which a part can be accepted now; none of a group in which one is stale."""
        return tuple(
            file
            for group in self.groups()
            if len(group) == 1 or not any(file.is_stale for file in group)
            for file in group
            if file.is_acceptable
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Short description of a proposal, for a list."""

    id: str
    client: str
    run: str
    created: datetime
    expires: datetime
    status: ProposalStatus
    reason: str
    why: str
    tainted: bool
    files: int
    path: NotePath
    """Of the first file."""
    items: Mapping[Literal["open", "stale", "accepted", "rejected"], int]
    """Counts of hunks and whole files by state."""
    changes: tuple[str, ...] = ()
    """Ids of the changes that accepting it made, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalPage:
    """One page of the list of proposals, newest first."""

    proposals: tuple[Summary, ...]
    total: int
    limit: int
    offset: int


def seal(proposal: Proposal) -> Proposal:
    """Return a proposal with the digest of its current state."""
    return replace(proposal, digest=compute_digest(proposal))


def compute_digest(proposal: Proposal) -> str:
    """Return a digest of what can be accepted of a proposal now."""
    file_facts = [[file.number, *_digest_facts(file)] for file in proposal.acceptable()]
    payload = json.dumps([proposal.id, list(map(list, proposal.folders)), file_facts]).encode()
    return hashlib.sha256(payload).hexdigest()[:_DIGEST_DIGITS]


def _digest_facts(file: ProposedFile) -> Iterator[object]:
    """Return the facts that a person approves by accepting a file."""
    yield from (file.path, file.kind, file.target, file.trash)
    if file.kind == "trash":
        yield file.base
    hunks = file.waiting if file.kind == "edit" else file.hunks
    yield [[one.number, _content_hash(one.hunk.old), _content_hash(one.hunk.new)] for one in hunks]


def _content_hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def make_hunk_id(proposal: str, file: int, number: int) -> str:
    """Return the id of a hunk in its note: 8 hexadecimal digits, derived from proposal, file and hunk."""
    return hashlib.sha256(f"{proposal} {file}.{number}".encode()).hexdigest()[:_ID_DIGITS]

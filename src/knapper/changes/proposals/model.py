"""Parts of a proposal: files and hunks, their states, their fit to the files, and what would be accepted, in words."""

import hashlib
import json
import re
import unicodedata
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Literal

from knapper.changes.disk.plan import TrashPlace
from knapper.changes.drafts import Capability, Cause, LinkRewrite
from knapper.changes.text import diff, splices
from knapper.changes.text.diff import Hunk
from knapper.errors import BadInput, ConflictError
from knapper.vault import parser, source
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
_EXCERPT_BYTES: Final = 600
"""Of a changed file, shown with what doesn't fit it any more."""


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
    decided_at: datetime | None = None
    """When it was rejected, expired or was replaced; None where it wasn't, or an earlier version didn't record it."""
    decided_by: str = ""
    """The client that rejected or replaced it."""
    changes: tuple[str, ...] = ()
    """Ids of the changes that accepting it made, in order."""
    digest: str = ""
    """Identifies what can be accepted now, text by text, so that nobody accepts anything that wasn't shown."""

    def groups(self) -> tuple[tuple[ProposedFile, ...], ...]:
        """Return the files that belong together: a move with those whose links follow, a folder with all it holds."""
        leaders = {file.number: file.number for file in self.files}
        links = [file for file in self.files if file.cause == "link"]
        if self.folders or not all(file.requests for file in links):
            bound = [{file.number for file in self.files}]
        else:  # a set for each request whose links follow
            requests = sorted({request for file in links for request in file.requests})
            bound = [{file.number for file in self.files if request in file.requests} for request in requests]
        for together in bound:
            chosen = {leaders[number] for number in together}
            leaders = {number: min(chosen) if own in chosen else own for number, own in leaders.items()}
        groups: dict[int, list[ProposedFile]] = {}
        for file in self.files:
            groups.setdefault(leaders[file.number], []).append(file)
        return tuple(map(tuple, groups.values()))

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
    rejection: str = ""
    """Why its last open part was rejected."""
    decided_at: datetime | None = None
    """When and by whom it was rejected, expired or was replaced, as of a `Proposal`."""
    decided_by: str = ""
    has_undated_rejection: bool = False
    """Whether an earlier version rejected a part, and didn't record when."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """How a proposal, or a part of it, ended without being applied."""

    state: Literal["rejected", "expired", "superseded"]
    at: datetime
    client: str = ""
    """Who decided; empty where nobody did."""
    reason: str = ""
    items: tuple[str, ...] = ()
    """Ids of the rejected hunks, such as ``2.1``, and numbers of the files that are no edits; empty for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """One rejection of a proposal, or of a part of it."""

    proposal: Summary
    number: int
    """From 1, among what was decided of the proposal."""
    at: datetime
    client: str
    """Who rejected it."""
    reason: str
    paths: tuple[NotePath, ...]
    """Of the files of which something was rejected, as far as the reader may know of them."""


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
    """Return a digest of what can be accepted of a proposal now: the facts that a person approves by accepting it."""
    file_facts: list[list[object]] = []
    for file in proposal.acceptable():
        facts: list[object] = [file.number, file.path, file.kind, file.target, file.trash]
        if file.kind == "trash":
            facts.append(file.base)
        hunks = file.waiting if file.kind == "edit" else file.hunks
        facts.append([[one.number, _content_hash(one.hunk.old), _content_hash(one.hunk.new)] for one in hunks])
        file_facts.append(facts)
    payload = json.dumps([proposal.id, list(map(list, proposal.folders)), file_facts]).encode()
    return hashlib.sha256(payload).hexdigest()[:_DIGEST_DIGITS]


def _content_hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def make_hunk_id(proposal: str, file: int, number: int) -> str:
    """Return the id of a hunk in its note: 8 hexadecimal digits, derived from proposal, file and hunk."""
    return hashlib.sha256(f"{proposal} {file}.{number}".encode()).hexdigest()[:_ID_DIGITS]


def current_status(proposal: Proposal) -> ProposalStatus:
    """Return the status that follows from the states of a proposal's parts."""
    states: set[ItemState] = set()
    for file in proposal.files:
        states |= {one.state for one in file.hunks} if file.kind == "edit" else {file.state}
    if not states:
        return "accepted" if proposal.changes else proposal.status
    if "open" in states:
        ended = proposal.status in {"expired", "superseded"}
        return proposal.status if ended else "open" if proposal.acceptable() else "stale"
    return states.pop() if len(states) == 1 else "partly_accepted"


def refit_files(proposal: Proposal, current: Mapping[NotePath, bytes | None]) -> list[ProposedFile]:
    """Fit the files of a proposal to their current content, and return those that changed by it.

    Args:
        proposal: As it was.
        current: Contents by path, None for missing files; nothing is known of paths that aren't listed.
    """
    leaving = {file.path for file in proposal.files if file.target is not None or file.trash is not None}
    changed_files: list[ProposedFile] = []
    for file in proposal.files:
        if file.path not in current:
            continue
        is_target_occupied = file.target not in {None, *leaving} and current.get(file.place) is not None
        fitted = refit_file(file, current[file.path], target_taken=is_target_occupied)
        if fitted != file:
            changed_files.append(fitted)
    return changed_files


def refit_file(file: ProposedFile, current: bytes | None, *, target_taken: bool = False) -> ProposedFile:
    """Fit the open parts of a file to its current content.

    A hunk fits where its lines and two on each side are unchanged, at one place only. What was stale may fit again.

    Args:
        file: What is proposed for it.
        current: Its content; None where it is gone, or isn't created yet.
        target_taken: Whether another file has the path that it would be moved to.

    Returns:
        The file with new places, and with the cause for each stale part.
    """
    if file.state != "open":
        return file
    match file.kind:
        case "edit":
            return _refit_edit(file, current)
        case "create":
            return replace(file, stale=None if current is None else _stale_exists(file.path))
        case "trash":
            return replace(file, stale=_stale_gone(file) if current is None else _compare_content(file, current))
        case "move":
            if current is None:
                return replace(file, stale=_stale_gone(file))
            return replace(file, stale=_stale_exists(file.target or "")) if target_taken else _refit_move(file, current)


def _refit_edit(file: ProposedFile, current: bytes | None) -> ProposedFile:
    if current is None:
        stale = _stale_gone(file)
        return replace(
            file, hunks=tuple(replace(one, stale=stale) if one.state == "open" else one for one in file.hunks)
        )
    fitted: dict[int, ProposedHunk] = {}
    fitting: list[splices.Splice] = []
    # Hunks that fitted before come first: one that fits again must not push them out.
    accepted = [one for one in file.hunks if one.state == "accepted"]
    for one in sorted(file.hunks, key=lambda one: one.stale is not None):
        fits = _refit_hunk(one, current, accepted) if one.state == "open" else one
        if fits.state == "open" and fits.stale is None:
            try:
                splices.check_order(current, [*fitting, fits.hunk.splice])
            except BadInput:
                fits = replace(one, stale=_stale_changed(current, one.hunk.start))
            else:
                fitting.append(fits.hunk.splice)
        fitted[one.number] = fits
    hunks = tuple(fitted[one.number] for one in file.hunks)
    return replace(file, hunks=hunks, before=current, base=parser.content_hash(current))


def _refit_hunk(one: ProposedHunk, current: bytes, accepted: Sequence[ProposedHunk]) -> ProposedHunk:
    try:
        moved = _rebase_hunk(one, current, accepted)
    except ConflictError as error:
        line, text = error.details.get("line"), error.details.get("current_text")
        cause = Stale(
            code="changed",
            message=error.message,
            line=line if isinstance(line, int) else None,
            current_text=text if isinstance(text, str) else "",
        )
        return replace(one, stale=cause)
    hunk = replace(one.hunk, start=moved.start, old_start_line=source.line_number_at(current, moved.start))
    return replace(one, origin=current, hunk=hunk, stale=None)


def _rebase_hunk(one: ProposedHunk, current: bytes, accepted: Sequence[ProposedHunk]) -> splices.Splice:
    """Move a hunk to where its text is now, also where a neighbour that was accepted is undone, or done again.

    Args:
        one: The hunk.
        current: The file's content.
        accepted: Hunks of the same file that were accepted.

    Raises:
        ConflictError: It doesn't fit.
    """
    try:
        return splices.rebase(one.hunk.splice, one.origin, current)
    except ConflictError:
        for origin, splice in _place_before_and_after(one, accepted):
            with suppress(ConflictError):
                return splices.rebase(splice, origin, current)
        raise


def _place_before_and_after(
    one: ProposedHunk, accepted: Sequence[ProposedHunk]
) -> Iterator[tuple[bytes, splices.Splice]]:
    """Yield a hunk's place in the states of its file that accepting others led from and to, the nearest first."""
    together: dict[bytes, list[splices.Splice]] = {}
    for other in accepted:
        together.setdefault(other.origin, []).append(other.hunk.splice)
    steps = [(origin, made) for origin, every in together.items() for made in (*([each] for each in every), every)]
    states: list[tuple[bytes, bytes, list[splices.Splice]]] = []
    for before, made in steps:
        with suppress(BadInput):  # not of one acceptance
            states.append((before, splices.merge(before, made), made))
    places = deque([(one.origin, one.hunk.start)])
    seen = {one.origin}
    while places:
        text, start = places.popleft()
        for before, after, made in states:
            if text == before:
                other, moved = after, start + sum(_growth(each) for each in made if each.start < start)
            elif text == after:
                other, moved = before, _start_before(start, made)
            else:
                continue
            stop = moved + len(one.hunk.old)
            if other not in seen and other[moved:stop] == one.hunk.old:
                seen.add(other)
                places.append((other, moved))
                yield other, replace(one.hunk.splice, start=moved, stop=stop)


def _growth(splice: splices.Splice) -> int:
    return len(splice.new) - (splice.stop - splice.start)


def _start_before(start: int, made: Sequence[splices.Splice]) -> int:
    """Return where a place was before splices were made, none of which touches it."""
    for each in sorted(made, key=lambda each: each.start):
        if each.start < start:
            start -= _growth(each)
    return start


def _refit_move(file: ProposedFile, current: bytes) -> ProposedFile:
    """Fit a moved note to its current content, and rewrite the links in it that follow."""
    if file.before is None or file.content is None:
        return replace(file, stale=_compare_content(file, current))
    try:
        rebased = [
            splices.rebase(one.splice, file.before, current) for one in diff.diff_hunks(file.before, file.content)
        ]
    except ConflictError as error:
        line = error.details.get("line")
        return replace(file, stale=replace(_stale_changed(current, 0), line=line if isinstance(line, int) else None))
    content = splices.merge(current, rebased)
    return replace(file, before=current, content=content, base=parser.content_hash(current), stale=None)


def _compare_content(file: ProposedFile, current: bytes) -> Stale | None:
    """Return whether a note is stale; any other file is compared only when it is moved or trashed."""
    if file.before is None or parser.content_hash(current) == file.base:
        return None
    return _stale_changed(current, 0)


def _stale_changed(current: bytes, at: int) -> Stale:
    excerpt = current[at : at + _EXCERPT_BYTES].decode(errors="replace")
    return Stale(code="changed", message="the file changed since this was proposed", current_text=excerpt)


def _stale_gone(file: ProposedFile) -> Stale:
    return Stale(code="gone", message=f"'{file.path}' is gone")


def _stale_exists(path: str) -> Stale:
    return Stale(code="exists", message=f"there is a file at '{path}' by now")


MAX_CHARS: Final = 6_000
"""Longest description; what is left out is counted."""
_MAX_HUNK_CHARS: Final = 1_000
_MAX_LINE_CHARS: Final = 500
_MAX_NAMES: Final = 10
"""Files with one and the same change that are named."""
_EDGE_CHARS: Final = 40
"""Characters of unchanged text that stand on each side of a change."""

_VERBS: Final = {"create": "create", "move": "move", "trash": "move to the trash"}
_MARKS: Final = re.compile(r"\[-|-\]|\{\+|\+\}")
_SHOWN_FORMATS: Final = frozenset("\t\u200c\u200d")
"""Characters of formatting that words and emojis need."""
_HIDDEN_CATEGORIES: Final = frozenset({"Cc", "Cf", "Co", "Cs", "Cn"})


def describe(proposal: Proposal) -> str:
    """Describe all that accepting a proposal would do now, file by file, with differences by words.

    ``[-…-]`` is text that goes, ``{+…+}`` text that comes. Nothing in a note can look like such a mark, begin a line of
    the description, or hide another part of it.
    """
    parts = [f"why it waits: {one_line(proposal.why)}"] if proposal.why else []
    parts += [f"why it is made: {one_line(proposal.reason)}"] if proposal.reason else []
    parts += [f"move the folder {one_line(source)} to {one_line(target)}" for source, target in proposal.folders]
    # Those with the same edit, and those in which only links follow, are named together.
    edited: dict[str, list[str]] = {}
    following: list[str] = []
    for file in proposal.acceptable():
        if file.cause == "link":
            following.append(one_line(file.path))
        elif file.kind == "edit":
            edited.setdefault(_hunks_text(one.hunk for one in file.waiting), []).append(one_line(file.path))
        else:
            target = f" to {one_line(file.target)}" if file.target else ""
            text = "" if file.kind == "trash" else _hunks_text(one.hunk for one in file.hunks)
            parts.append(f"{_VERBS[file.kind]} {one_line(file.path)}{target}{text}")
    parts += [f"change {_join_names(names)}{text}" for text, names in edited.items()]
    parts += [f"let links follow in {_join_names(following)}"] if following else []
    shown: list[str] = []
    length = 0  # what there is no room for is counted
    for number, part in enumerate(parts):
        length += len(part) + 1
        if length > MAX_CHARS and shown:
            return "\n".join([*shown, f"and {len(parts) - number:,} more changes that there is no room for here"])
        shown.append(part)
    return "\n".join(shown)


def one_line(text: str) -> str:
    """Return a name or a sentence as one line without anything invisible, and not endless."""
    line = " ".join(_visible(text).splitlines())
    return line if len(line) <= _MAX_LINE_CHARS else f"{line[:_MAX_LINE_CHARS]}… ({len(line):,} characters)"


def _join_names(names: list[str]) -> str:
    more = len(names) - _MAX_NAMES
    return ", ".join(names[:_MAX_NAMES]) + (f" and {more:,} more files" if more > 0 else "")


def _hunks_text(hunks: Iterable[Hunk]) -> str:
    lines: list[str] = []
    for hunk in hunks:
        text = "".join(_mark_words(mark.side, mark.text) for mark in hunk.words).strip("\n")
        if len(text) > _MAX_HUNK_CHARS:
            text = f"{text[:_MAX_HUNK_CHARS]}… ({len(text) - _MAX_HUNK_CHARS:,} characters more)"
        lines.append("\n" + "\n".join(f"    {line}" for line in text.splitlines()))
    return "".join(lines)


def _mark_words(side: str, raw: str) -> str:
    """Return words as a person is shown them: ``[-removed-]``, ``{+added+}``, or the edges of what both sides have."""
    text = _MARKS.sub(lambda found: " ".join(found[0]), _visible(raw))
    if side == "removed":
        return f"[-{text}-]"
    if side == "added":
        return f"{{+{text}+}}"
    return text if len(text) <= 2 * _EDGE_CHARS else f"{text[:_EDGE_CHARS]} … {text[-_EDGE_CHARS:]}"


def _visible(text: str) -> str:
    """Replace what a person wouldn't see, or what would turn other text around."""
    hidden = {
        sign
        for sign in {*text} - _SHOWN_FORMATS
        if sign.splitlines() != [""] and unicodedata.category(sign) in _HIDDEN_CATEGORIES
    }
    return "".join("\ufffd" if sign in hidden else sign for sign in text)

"""Parts of a proposal: a draft split into files and hunks, some of them chosen, and joined into a draft again."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from knapper.changes.disk import plan
from knapper.changes.disk.plan import ChangeMeta
from knapper.changes.drafts import Capability, Draft, FileDraft
from knapper.changes.proposals import model
from knapper.changes.proposals.model import ItemKind, ItemState, Proposal, ProposedFile, ProposedHunk
from knapper.changes.text import diff
from knapper.changes.text.diff import Hunk
from knapper.errors import BadInput, ConflictError, NotFound
from knapper.vault import parser, paths, source
from knapper.vault.access import EMPTY_SCOPE, Scope
from knapper.vault.paths import NotePath

_EDITED_NEEDS: Final = frozenset[Capability]({"add", "delete"})
"""Capabilities that an edited hunk needs: its text may be anything, not only a link that follows."""


def propose_file(file: FileDraft, number: int, proposal: str) -> ProposedFile:
    """Build the proposal for one file.

    Args:
        file: What would happen to it.
        number: From 1, in the proposal.
        proposal: The proposal's id.
    """
    kind: ItemKind = "create" if file.before is None else "edit"
    if file.trash is not None:
        kind = "trash"
    elif file.target is not None:
        kind = "move"
    proposed = ProposedFile(
        number=number,
        path=file.path,
        kind=kind,
        target=file.target,
        trash=file.trash,
        base=file.base,
        before=file.before,
        content=file.after,
        needs=file.needs,
        anchored=file.anchored,
        cause=file.cause,
        requests=file.requests,
    )
    if proposed.kind != "edit" or file.before is None:
        return with_hunks(proposed, proposal, ())
    file_hunks = diff.diff_hunks(file.before, file.after or b"")
    return with_hunks(
        replace(proposed, content=None),
        proposal,
        tuple(
            _propose_hunk(proposal, number, place, one, file.before) for place, one in enumerate(file_hunks, start=1)
        ),
    )


def _propose_hunk(proposal: str, file: int, number: int, hunk: Hunk, origin: bytes) -> ProposedHunk:
    own = replace(hunk, id=model.make_hunk_id(proposal, file, number))
    return ProposedHunk(number=number, id=f"{file}.{number}", hunk=own, origin=origin)


def with_hunks(
    file: ProposedFile, proposal: str, hunks: Sequence[ProposedHunk], *, edited: bool = False
) -> ProposedFile:
    """Return a file with its hunks: for an edit those it consists of, for anything else those that show its text.

    Args:
        file: What is proposed for the file.
        proposal: The proposal's id.
        hunks: Of an edit; ignored for anything else.
        edited: Whether the text of a file that is no edit differs from what was proposed.
    """
    if file.kind == "edit":
        placed = _place_hunks(hunks)
        return replace(file, hunks=placed, state=_file_state(placed))
    if file.content is None or file.kind == "trash":
        return replace(file, hunks=())
    origin = file.before or b""
    if file.kind == "create":
        text_hunks = [Hunk(id="", start=0, old=b"", new=file.content, old_start_line=1, new_start_line=1)]
    else:
        text_hunks = diff.diff_hunks(origin, file.content)
    file_hunks = tuple(
        replace(
            _propose_hunk(proposal, file.number, number, one, origin),
            state=file.state,
            stale=file.stale,
            edited=edited,
            reason=file.reason,
        )
        for number, one in enumerate(text_hunks, start=1)
    )
    return replace(file, hunks=file_hunks)


def refresh_hunks(file: ProposedFile, proposal: str) -> ProposedFile:
    """Return a file with hunks and state that match what was changed of it."""
    return with_hunks(file, proposal, file.hunks, edited=any(one.edited for one in file.hunks))


def _place_hunks(hunks: Sequence[ProposedHunk]) -> tuple[ProposedHunk, ...]:
    """Set for each hunk the line where its new text begins if the hunks before it are accepted."""
    shift = 0
    placed: list[ProposedHunk] = []
    for one in sorted(hunks, key=lambda one: (one.hunk.start, one.number)):
        placed.append(replace(one, hunk=replace(one.hunk, new_start_line=one.hunk.old_start_line + shift)))
        if one.state == "open" and one.stale is None:
            shift += len(one.hunk.new.splitlines()) - len(one.hunk.old.splitlines())
    return tuple(sorted(placed, key=lambda one: one.number))


def _file_state(hunks: Sequence[ProposedHunk]) -> ItemState:
    states = {one.state for one in hunks}
    return "open" if "open" in states else "accepted" if "accepted" in states else "rejected"


def edit_hunk_text(file: ProposedFile, number: int, text: str, proposal: str) -> ProposedFile:
    """Replace the new side of a hunk, in the hunk's own line endings.

    Raises:
        NotFound: The file has no hunk of this number.
        BadInput: The hunk isn't open, is part of a move, or would change nothing.
    """
    one = find_hunk(file, number)
    if one.state != "open" or file.kind not in {"edit", "create"}:
        what = f"is {one.state}" if one.state != "open" else "is part of a move"
        raise BadInput(f"hunk {one.id} {what}, and can't be edited", hint="make the change again", code="not_open")
    changed = diff.edit_hunk(one.hunk, text)
    if changed.new == one.hunk.old:
        raise BadInput(f"with this text, hunk {one.id} changes nothing", hint="reject it instead", code="no_change")
    if file.kind == "create":
        return with_hunks(replace(file, content=changed.new), proposal, (), edited=True)
    own = replace(one, hunk=replace(one.hunk, new=changed.new), edited=True)
    return with_hunks(file, proposal, [own if other.number == number else other for other in file.hunks])


def find_hunk(file: ProposedFile, number: int) -> ProposedHunk:
    """Return a hunk by its number.

    Raises:
        NotFound: The file has none.
    """
    for one in file.hunks:
        if one.number == number:
            return one
    hint = f"there are: {', '.join(one.id for one in file.hunks)}" if file.hunks else "accept or reject the whole file"
    raise NotFound(f"'{file.path}' has no hunk {file.number}.{number}", hint=hint, code="hunk_not_found")


def draft_file(file: ProposedFile, numbers: Collection[int]) -> FileDraft:
    """Build the draft of a file with some of its hunks.

    Args:
        file: What is proposed.
        numbers: The wanted hunks of an edit; anything else is taken whole.
    """
    after, needs, cause = file.content, file.needs, file.cause
    if file.kind == "edit" and file.before is not None:
        wanted_hunks = [one for one in file.waiting if one.number in numbers]
        after = diff.apply_hunks(file.before, (one.hunk for one in wanted_hunks))
        if any(one.edited for one in wanted_hunks):
            needs, cause = needs | _EDITED_NEEDS, "asked"
    return FileDraft(
        path=file.path,
        base=file.base,
        before=file.before,
        after=after,
        target=file.target,
        trash=file.trash,
        needs=needs,
        anchored=file.anchored,
        cause=cause,
        requests=file.requests,
    )


def mark_file_accepted(file: ProposedFile, numbers: Collection[int], accepted_draft: FileDraft | None) -> ProposedFile:
    """Mark what was accepted, and move the remaining hunks to where their text is now.

    Args:
        file: What is proposed.
        numbers: The hunks of an edit that were accepted.
        accepted_draft: The applied draft; None if the remaining hunks have to be fitted to the file first.
    """
    if file.kind != "edit":
        return replace(file, state="accepted", stale=None)
    sizes = [(one.hunk.start, len(one.hunk.new) - len(one.hunk.old)) for one in file.hunks if one.number in numbers]
    updated: list[ProposedHunk] = []
    for one in file.hunks:
        if one.number in numbers:
            updated.append(replace(one, state="accepted", stale=None))
        elif (
            accepted_draft
            and accepted_draft.after is not None
            and one.state == "open"
            and one.origin == accepted_draft.before
        ):
            start = one.hunk.start + sum(size for place, size in sizes if place < one.hunk.start)
            line = source.line_number_at(accepted_draft.after, start)
            updated.append(
                replace(one, origin=accepted_draft.after, hunk=replace(one.hunk, start=start, old_start_line=line))
            )
        else:
            updated.append(one)
    placed = _place_hunks(updated)
    if accepted_draft is None or accepted_draft.after is None:
        return replace(file, hunks=placed, state=_file_state(placed))
    return replace(
        file,
        hunks=placed,
        state=_file_state(placed),
        before=accepted_draft.after,
        base=parser.content_hash(accepted_draft.after),
    )


def close_hunks(file: ProposedFile, numbers: Collection[int], state: ItemState, reason: str) -> ProposedFile:
    """Mark hunks of an edit, or anything else as a whole, as accepted or rejected."""
    if file.kind != "edit":
        return replace(file, state=state, reason=reason)
    updated = tuple(
        replace(one, state=state, reason=reason) if one.number in numbers and one.state == "open" else one
        for one in file.hunks
    )
    return replace(file, hunks=updated, state=_file_state(updated))


ChosenHunks = Mapping[int, frozenset[int]]
"""File numbers, each with the numbers of the chosen hunks; the latter only count for an edit."""


BlockHunks = Mapping[str, tuple[str, ...]]
"""Ids of the blocks in a note, each with the ids of the hunks that it shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The part of a proposal that is about to be applied."""

    token: str
    """Names this attempt in the acceptance log, which shows after a kill whether it was made."""
    proposal: str
    chosen: ChosenHunks
    draft: Draft
    blocks: Mapping[NotePath, BlockHunks]
    """Blocks for what still waits, in the notes of the draft that had blocks before."""
    source: Proposal
    """The proposal at the time of the selection."""

    @property
    def tainted(self) -> bool:
        """Whether the proposing client had read untrusted content."""
        return self.source.tainted

    @property
    def scope(self) -> Scope:
        """The notes in the editable scope of the proposing client."""
        return self.source.scope


def check_open(proposal: Proposal) -> None:
    """Check that a proposal is neither decided nor ended.

    Raises:
        ConflictError: It is closed.
    """
    if proposal.status not in {"open", "stale"}:
        by = f" by {proposal.superseded_by}" if proposal.superseded_by else ""
        status = proposal.status.replace("_", " ")
        hint = "propose the change again" if proposal.status == "expired" else "list the open proposals"
        raise ConflictError(f"the proposal {proposal.id} is {status}{by}", hint=hint, code="not_open")


def check_digest(proposal: Proposal, digest: str) -> None:
    """Check that a decision was made on the current state of a proposal.

    Raises:
        ConflictError: The digest isn't the current one. The error doesn't have that one, so that the proposal has to be
            looked at first.
    """
    if digest != proposal.digest:
        raise ConflictError(
            f"the proposal {proposal.id} isn't what was shown any more",
            hint="show it again, and decide on what it says now",
            code="digest_mismatch",
        )


def choose_acceptable(proposal: Proposal) -> ChosenHunks:
    """Return all that can be accepted now.

    Raises:
        ConflictError: Nothing can; ``details["stale"]`` has the causes.
    """
    chosen = {file.number: frozenset(one.number for one in file.waiting) for file in proposal.acceptable()}
    if not chosen and proposal.files:
        raise _stale_error(proposal, proposal.files)
    return chosen


def choose_open(proposal: Proposal) -> ChosenHunks:
    """Return all that is open, stale or not."""
    return {
        file.number: frozenset(one.number for one in file.hunks if one.state == "open")
        for file in proposal.files
        if file.state == "open"
    }


def choose_rejectable(proposal: Proposal, *, files: Collection[str] = (), hunks: Collection[str] = ()) -> ChosenHunks:
    """Return what is to be rejected: the named files and hunks, or all that is open.

    Raises:
        ConflictError: The proposal is closed.
        NotFound: There is no such file or hunk.
        BadInput: What was chosen can't be taken by itself.
    """
    check_open(proposal)
    return (
        choose_named(proposal, files=files, hunks=hunks, accepting=False) if files or hunks else choose_open(proposal)
    )


def choose_named(
    proposal: Proposal, *, files: Collection[str] = (), hunks: Collection[str] = (), accepting: bool
) -> ChosenHunks:
    """Return files chosen by path and hunks chosen by id, with the files whose links follow a chosen move.

    Args:
        proposal: As it is now.
        files: Paths; for an edit, all its hunks that are open, and to accept, that fit.
        hunks: Ids such as ``2.1``.
        accepting: Whether what is stale is an error.

    Raises:
        NotFound: There is no such file or hunk.
        BadInput: One was accepted or rejected before, or can't be taken without another.
        ConflictError: One is stale.
    """
    chosen: dict[int, set[int]] = {}
    for path in files:
        file = file_at(proposal, path)
        if file.state != "open":
            raise _already_decided(f"'{file.path}'", file.state)
        if accepting and not file.is_acceptable:
            raise _stale_error(None, [file])
        chosen.setdefault(file.number, set()).update(
            [one.number for one in (file.waiting if accepting else file.hunks) if one.state == "open"]
        )
    for name in hunks:
        file, own = _locate_hunk(proposal, name)
        one = find_hunk(file, own)
        if one.state != "open":
            raise _already_decided(f"hunk {one.id}", one.state)
        if file.kind not in {"edit", "create"}:
            raise BadInput(f"'{file.path}' goes as a whole", hint="name the file instead", code="bound")
        if accepting and (one.stale or file.stale):
            raise _stale_error(None, [file])
        chosen.setdefault(file.number, set()).add(own)
    complete = _complete_groups(
        proposal, {number: frozenset(numbers) for number, numbers in chosen.items()}, accepting=accepting
    )
    if not complete:
        raise BadInput("nothing is chosen", hint="name files or hunks of the proposal")
    return complete


def choose_hunks(proposal: Proposal, names: Collection[str]) -> ChosenHunks:
    """Return hunks chosen by id, in whatever state they are.

    Raises:
        NotFound: There is no such hunk.
    """
    chosen: dict[int, set[int]] = {}
    for name in names:
        file, own = _locate_hunk(proposal, name)
        chosen.setdefault(file.number, set()).add(own)
    return {number: frozenset(own) for number, own in chosen.items()}


def check_names(proposal: Proposal, files: Collection[str], hunks: Collection[str]) -> None:
    """Check that a proposal, as a client sees it, has the files and hunks that the client names.

    Raises:
        NotFound: It has no such file or hunk.
    """
    for path in files:
        _ = file_at(proposal, path)
    _ = choose_hunks(proposal, hunks)


def draft_chosen(proposal: Proposal, chosen: ChosenHunks) -> Draft:
    """Build the draft that makes the chosen changes, and nothing else."""
    files = tuple(draft_file(file, chosen[file.number]) for file in proposal.files if file.number in chosen)
    places = {file.path for file in files}
    return Draft(
        files=files,
        folders=proposal.folders if len(files) == len(proposal.files) else (),
        by_query=proposal.by_query,
        notices=proposal.notices,
        rewritten=tuple(one for one in proposal.rewritten if one.path in places),
    )


def expected_outcomes(drafted: Draft) -> dict[str, str]:
    """Return what identifies an applied draft: the hash of each file that it writes, and the place of the others."""
    outcomes: dict[str, str] = {}
    for file in drafted.files:
        if file.trash is not None:
            outcomes[file.path] = "trash"
        elif file.after is not None:
            outcomes[file.path] = f"{file.place} {parser.content_hash(file.after)}"
        else:
            outcomes[file.path] = file.place
    return outcomes


def file_at(proposal: Proposal, path: str) -> ProposedFile:
    """Return the file of a path, before or after a move.

    Raises:
        NotFound: The proposal isn't about it.
    """
    key = paths.name_key(path)
    for file in proposal.files:
        if key in {paths.name_key(file.path), paths.name_key(file.target or file.path)}:
            return file
    hint = "it has: " + ", ".join(f"'{file.path}'" for file in proposal.files[:5])
    raise NotFound(f"the proposal {proposal.id} has no file '{path}'", hint=hint, code="file_not_found")


def _locate_hunk(proposal: Proposal, name: str) -> tuple[ProposedFile, int]:
    number, _, own = name.partition(".")
    for file in proposal.files:
        if str(file.number) == number:
            return file, find_hunk(file, int(own) if own.isascii() and own.isdigit() else 0).number
    hint = f"files are numbered from 1 to {len(proposal.files)}; 2.1 is the first hunk of the second file"
    raise NotFound(f"the proposal {proposal.id} has no hunk '{name}'", hint=hint, code="hunk_not_found")


def _complete_groups(proposal: Proposal, chosen: ChosenHunks, *, accepting: bool) -> ChosenHunks:
    """Add the files whose links follow what was chosen, and refuse incomplete groups."""
    complete = dict(chosen)
    for group in proposal.groups():
        if len(group) == 1 or not any(file.number in chosen for file in group):
            continue
        if accepting and any(file.is_stale for file in group):
            raise _stale_error(None, group)
        missing = [
            file
            for file in group
            if file.state == "open" and file.cause == "asked" and not _is_fully_chosen(file, chosen)
        ]
        if missing:
            names = ", ".join(f"'{file.path}'" for file in missing[:5])
            hint = "take all of it, or nothing"
            raise BadInput(f"this goes together with all of {names}", hint=hint, code="bound")
        complete |= {
            file.number: frozenset(one.number for one in file.hunks if one.state == "open")
            for file in group
            if file.state == "open"
        }
    return complete


def _is_fully_chosen(file: ProposedFile, chosen: ChosenHunks) -> bool:
    if file.number not in chosen:
        return False
    return file.kind != "edit" or all(one.state != "open" or one.number in chosen[file.number] for one in file.hunks)


def _already_decided(what: str, state: str) -> BadInput:
    return BadInput(f"{what} is {state} already", hint="show the proposal again to see what is open", code="not_open")


def _stale_error(proposal: Proposal | None, files: Sequence[ProposedFile]) -> ConflictError:
    """Build the error for stale parts: its details list each, with the text that is there now."""
    causes: list[dict[str, object]] = []
    for file in files:
        stale_parts = [(one.id, one.stale) for one in file.hunks if one.state == "open"] or [("", file.stale)]
        for name, stale in stale_parts:
            cause = stale or file.stale
            if cause:
                position = {"line": cause.line, "current_text": cause.current_text}
                causes.append(
                    {"path": file.path, "hunk": name, "code": cause.code, "message": cause.message, **position}
                )
    first = f": {causes[0]['path']}: {causes[0]['message']}" if causes else ""
    what = f"nothing of the proposal {proposal.id} can be accepted" if proposal else "this can't be accepted"
    return ConflictError(
        f"{what}{first}",
        hint="look at the file as it is now, and propose the change again",
        code="stale",
        details={"stale": causes},
    )


DEFAULT_DAYS: Final = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalTerms:
    """Terms of a new proposal: why and how long it waits."""

    why: str = ""
    """The reason that the rules gave."""
    tainted: bool = False
    """Whether the client has read untrusted content."""
    days: float = DEFAULT_DAYS
    scope: Scope = EMPTY_SCOPE
    """The notes in the client's editable scope."""
    supersedes: str = ""
    """The proposal that this one replaces."""
    behalf: str = ""
    """The client for which an agent asks; empty where there is none."""


def make_proposal(draft: Draft, meta: ChangeMeta, note: ProposalTerms, now: datetime) -> Proposal:
    """Split a draft into parts that can be accepted by themselves; unchanged files are left out.

    Args:
        draft: What would happen.
        meta: Who wants it, and why.
        note: Why and how long it waits.
        now: The time of its creation.
    """
    name = plan.make_id()
    changed = [one for one in draft.files if one.trash or one.target or one.before is None or one.before != one.after]
    # Times are stored to the millisecond: a new proposal has to equal the one that is read back.
    created = now.replace(microsecond=now.microsecond // 1000 * 1000)
    return model.seal(
        Proposal(
            id=name,
            client=meta.client,
            run=meta.run,
            created=created,
            expires=created + timedelta(days=note.days),
            status="open",
            reason=meta.reason,
            why=note.why,
            tainted=note.tainted,
            by_query=draft.by_query,
            files=tuple(propose_file(one, number, name) for number, one in enumerate(changed, start=1)),
            folders=draft.folders,
            notices=draft.notices,
            rewritten=draft.rewritten,
            scope=note.scope,
            behalf=note.behalf,
        )
    )

"""Choose what of a proposal is accepted or rejected: all of it, files, or hunks."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from knapper.changes.drafts import Draft, FileDraft
from knapper.changes.review import hunking
from knapper.changes.review.proposal_records import Proposal, ProposedFile
from knapper.errors import BadInput, ConflictError, NotFound
from knapper.vault import parser, paths
from knapper.vault.access import Scope
from knapper.vault.paths import NotePath

Chosen = Mapping[int, frozenset[int]]
"""File numbers, each with the numbers of the hunks that are meant; of what isn't an edit the numbers don't count."""


Blocks = Mapping[str, tuple[str, ...]]
"""Ids of blocks in a note, each with the ids of the hunks that it shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Hold what is about to be applied of a proposal."""

    token: str
    """Names this attempt, so that it can be told after a kill whether it was made."""
    proposal: str
    chosen: Chosen
    draft: Draft
    blocks: Mapping[NotePath, Blocks]
    """Blocks that the notes of the draft hold for what still waits; empty for those that held none."""
    source: Proposal
    """What it is taken from, as it was then."""

    @property
    def tainted(self) -> bool:
        """Whether whoever proposed it had read text that others wrote."""
        return self.source.tainted

    @property
    def scope(self) -> Scope:
        """The notes that the editable scope of whoever proposed it came to."""
        return self.source.scope


def check_open(proposal: Proposal) -> None:
    """Refuse a proposal that was decided or has ended.

    Raises:
        ConflictError: It is closed.
    """
    if proposal.status not in {"open", "stale"}:
        by = f" by {proposal.superseded_by}" if proposal.superseded_by else ""
        status = proposal.status.replace("_", " ")
        hint = "propose the change anew" if proposal.status == "expired" else "list the open proposals"
        raise ConflictError(f"the proposal {proposal.id} is {status}{by}", hint=hint, code="not_open")


def acceptable(proposal: Proposal) -> Chosen:
    """Choose all that can be accepted now.

    Raises:
        ConflictError: That is nothing; ``details["stale"]`` has the causes.
    """
    found = {file.number: frozenset(one.number for one in file.waiting) for file in proposal.acceptable()}
    if not found and proposal.files:
        raise _stale(proposal, proposal.files)
    return found


def opened(proposal: Proposal) -> Chosen:
    """Choose all that is open, be it stale or not."""
    return {
        file.number: frozenset(one.number for one in file.hunks if one.state == "open")
        for file in proposal.files
        if file.state == "open"
    }


def rejectable(proposal: Proposal, *, files: Collection[str] = (), hunks: Collection[str] = ()) -> Chosen:
    """Choose what is to be rejected: the files and hunks that are named, or all that is open.

    Raises:
        ConflictError: The proposal is closed.
        NotFound: There is no such file or hunk.
        BadInput: What was chosen can't be taken by itself.
    """
    check_open(proposal)
    return named(proposal, files=files, hunks=hunks, accepting=False) if files or hunks else opened(proposal)


def named(proposal: Proposal, *, files: Collection[str] = (), hunks: Collection[str] = (), accepting: bool) -> Chosen:
    """Choose files by their paths and hunks by their ids; links that follow a chosen move come along.

    Args:
        proposal: As it is now.
        files: Paths; of an edit all hunks are meant that are open, or, to accept, that fit.
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
        chosen.setdefault(file.number, set()).update(_open_numbers(file, accepting=accepting))
    for name in hunks:
        file, number = _hunk(proposal, name, accepting=accepting)
        chosen.setdefault(file.number, set()).add(number)
    whole = _closed(proposal, {number: frozenset(numbers) for number, numbers in chosen.items()}, accepting=accepting)
    if not whole:
        raise BadInput("nothing is chosen", hint="name files or hunks of the proposal")
    return whole


def hunks_of(proposal: Proposal, names: Collection[str]) -> Chosen:
    """Choose hunks by their ids, whatever became of them before.

    Raises:
        NotFound: There is no such hunk.
    """
    chosen: dict[int, set[int]] = {}
    for name in names:
        file, own = _find(proposal, name)
        chosen.setdefault(file.number, set()).add(own)
    return {number: frozenset(own) for number, own in chosen.items()}


def check_names(proposal: Proposal, files: Collection[str], hunks: Collection[str]) -> None:
    """See that a proposal, as it is shown to somebody, has what they name of it.

    Raises:
        NotFound: It has no such file or hunk.
    """
    for path in files:
        _ = file_at(proposal, path)
    _ = hunks_of(proposal, hunks)


def draft(proposal: Proposal, chosen: Chosen) -> Draft:
    """Make the draft that does what was chosen, and nothing else."""
    files = tuple(hunking.drafted(file, chosen[file.number]) for file in proposal.files if file.number in chosen)
    places = {file.path for file in files}
    return Draft(
        files=files,
        folders=proposal.folders if len(files) == len(proposal.files) else (),
        by_query=proposal.by_query,
        notices=proposal.notices,
        rewritten=tuple(one for one in proposal.rewritten if one.path in places),
    )


def outcomes(made: Draft) -> dict[str, str]:
    """Tell by what a made draft is recognised: the hash of each file that it writes, and the place of each other."""
    return {file.path: _outcome(file) for file in made.files}


def _outcome(file: FileDraft) -> str:
    if file.trash is not None:
        return "trash"
    if file.after is not None:
        return f"{file.place} {parser.content_hash(file.after)}"
    return file.place


def file_at(proposal: Proposal, path: str) -> ProposedFile:
    """Give the file of a path, before or after a move.

    Raises:
        NotFound: The proposal isn't about it.
    """
    wanted = paths.name_key(path)
    for file in proposal.files:
        if wanted in {paths.name_key(file.path), paths.name_key(file.target or file.path)}:
            return file
    hint = "it has: " + ", ".join(f"'{file.path}'" for file in proposal.files[:5])
    raise NotFound(f"the proposal {proposal.id} has no file '{path}'", hint=hint, code="file_not_found")


def _open_numbers(file: ProposedFile, *, accepting: bool) -> Iterable[int]:
    if file.state != "open":
        raise _settled(f"'{file.path}'", file.state)
    if accepting and not file.can_wait:
        raise _stale(None, [file])
    return [one.number for one in (file.waiting if accepting else file.hunks) if one.state == "open"]


def _hunk(proposal: Proposal, name: str, *, accepting: bool) -> tuple[ProposedFile, int]:
    file, own = _find(proposal, name)
    one = hunking.find(file, own)
    if one.state != "open":
        raise _settled(f"hunk {one.id}", one.state)
    if file.kind not in {"edit", "create"}:
        raise BadInput(f"'{file.path}' goes as a whole", hint="name the file instead", code="bound")
    if accepting and (one.stale or file.stale):
        raise _stale(None, [file])
    return file, own


def _find(proposal: Proposal, name: str) -> tuple[ProposedFile, int]:
    number, _, own = name.partition(".")
    for file in proposal.files:
        if str(file.number) == number:
            return file, hunking.find(file, int(own) if own.isascii() and own.isdigit() else 0).number
    hint = f"files are numbered from 1 to {len(proposal.files)}; 2.1 is the first hunk of the second file"
    raise NotFound(f"the proposal {proposal.id} has no hunk '{name}'", hint=hint, code="hunk_not_found")


def _closed(proposal: Proposal, chosen: Chosen, *, accepting: bool) -> Chosen:
    """Add the links that follow what was chosen, and refuse parts of what goes together."""
    whole = dict(chosen)
    for group in proposal.groups():
        if len(group) == 1 or not any(file.number in chosen for file in group):
            continue
        if accepting and any(file.is_stale for file in group):
            raise _stale(None, group)
        missing = [
            file for file in group if file.state == "open" and file.cause == "asked" and not _all_of(file, chosen)
        ]
        if missing:
            names = ", ".join(f"'{file.path}'" for file in missing[:5])
            hint = "take all of it, or nothing"
            raise BadInput(f"this goes together with all of {names}", hint=hint, code="bound")
        whole |= {
            file.number: frozenset(one.number for one in file.hunks if one.state == "open")
            for file in group
            if file.state == "open"
        }
    return whole


def _all_of(file: ProposedFile, chosen: Chosen) -> bool:
    if file.number not in chosen:
        return False
    return file.kind != "edit" or all(one.state != "open" or one.number in chosen[file.number] for one in file.hunks)


def _settled(what: str, state: str) -> BadInput:
    return BadInput(f"{what} is {state} already", hint="show the proposal again to see what is open", code="not_open")


def _stale(proposal: Proposal | None, files: Sequence[ProposedFile]) -> ConflictError:
    """Tell what changed, and what stands there now."""
    causes: list[dict[str, object]] = []
    for file in files:
        found = [(one.id, one.stale) for one in file.hunks if one.state == "open"] or [("", file.stale)]
        for name, stale in found:
            cause = stale or file.stale
            if cause:
                shown = {"line": cause.line, "current_text": cause.current_text}
                causes.append({"path": file.path, "hunk": name, "code": cause.code, "message": cause.message, **shown})
    first = f": {causes[0]['path']}: {causes[0]['message']}" if causes else ""
    what = f"nothing of the proposal {proposal.id} can be accepted" if proposal else "this can't be accepted"
    return ConflictError(
        f"{what}{first}",
        hint="look at the file as it is now, and propose the change anew",
        code="stale",
        details={"stale": causes},
    )

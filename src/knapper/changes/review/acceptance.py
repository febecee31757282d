"""Take what is accepted of a proposal, fitted to the files as they are now."""

import os
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from knapper.changes.drafts import Draft, FileDraft
from knapper.changes.review import choices, rendering, sight
from knapper.changes.review.choices import Selection
from knapper.changes.review.proposal_records import Proposal, ProposedFile
from knapper.changes.review.proposals import Proposals
from knapper.errors import NotFound, RefusedError
from knapper.vault import files
from knapper.vault.paths import NotePath
from knapper.vault.view import View


def choose(
    store: Proposals,
    view: View,
    proposal_id: str,
    digest: str,
    *,
    files: Collection[str] = (),
    hunks: Collection[str] = (),
) -> Selection:
    """Select what was said yes to; blocks of it in notes make way, and those that still wait are drawn anew.

    Args:
        store: Where the proposal is.
        view: The vault as whoever accepts sees it.
        proposal_id: Which.
        digest: Of the state that was shown.
        files: Paths; with *hunks* empty too, all that fits is meant.
        hunks: Ids such as ``2.1``.

    Raises:
        NotFound: There is no such proposal, file or hunk, or it is about a file that may not be known of.
        ConflictError: It isn't what was shown any more, it is closed, something chosen is stale, or a block in a note
            was edited by hand.
        BadInput: What was chosen can't be taken by itself.
    """
    choices.check_names(store.show(proposal_id, visible=view.visible), files, hunks)
    with sight.veiling(sight.hidden_paths(store.show(proposal_id).files, view.visible)):
        current, noted = _held(store, view.root, proposal_id)
        selection = store.select(proposal_id, digest, files=files, hunks=hunks, noted=noted, current=current)
    return replace(selection, draft=sight.marked(selection.draft, view.visible))


def fit(store: Proposals, root: Path, proposal_id: str) -> tuple[Proposal, dict[NotePath, bytes]]:
    """Fit a proposal to what its files hold now, without its own blocks.

    Args:
        store: Where the proposal is.
        root: The vault's folder.
        proposal_id: Which.

    Returns:
        The proposal, and what the notes hold that have blocks of it.

    Raises:
        NotFound: There is no such proposal.
        ConflictError: A block was edited by hand.
    """
    current, noted = _held(store, root, proposal_id)
    return store.rebase(proposal_id, current), noted


def blocks_removed(store: Proposals, root: Path, proposal_id: str, *, ending: Collection[str] = ()) -> Draft:
    """Draft the notes of a proposal without those of its blocks that don't wait any more.

    Args:
        store: Where the proposal is; hunks of it were rejected, or it ended.
        root: The vault's folder.
        proposal_id: Which.
        ending: Ids of hunks that will be rejected once their blocks are gone.

    Returns:
        A draft without files where no note holds such a block.

    Raises:
        NotFound: There is no such proposal.
        ConflictError: A block was edited by hand.
    """
    found, noted = fit(store, root, proposal_id)
    ended = found.status not in {"open", "stale"}
    waiting = {one.id for file in found.files for one in file.hunks if one.state == "open" and not ended}
    waiting -= set(ending)
    shown = store.drawings.get(proposal_id)
    made: list[FileDraft] = []
    for file in found.files:
        settled = [name for name, hunks in shown.get(file.path, {}).items() if not waiting.issuperset(hunks)]
        if settled and file.path in noted:
            made.append(rendering.removal(file, noted[file.path], settled))
    return Draft(files=tuple(one for one in made if one.before != one.after))


def _held(store: Proposals, root: Path, proposal_id: str) -> tuple[dict[NotePath, bytes | None], dict[NotePath, bytes]]:
    """Read what a proposal's files hold without its own blocks, and what the notes hold that have such."""
    found = store.show(proposal_id)
    held = store.drawings.get(proposal_id)
    current = _look(root, found, held)
    if store.drawings.follow(proposal_id, current):
        held = store.drawings.get(proposal_id)
    noted: dict[NotePath, bytes] = {}
    for path, shown in held.items():
        raw = current.get(path)
        if raw is not None:
            noted[path] = raw
            current[path] = rendering.withdraw(raw, shown)
    return current, noted


def _look(root: Path, proposal: Proposal, shown: Collection[NotePath]) -> dict[NotePath, bytes | None]:
    found: dict[NotePath, bytes | None] = {}
    for file in proposal.files:
        if file.state != "open" and file.path not in shown:
            continue
        if file.before is not None:
            found[file.path] = read(root, file.path)
        else:  # of any size, so that only whether it is there is looked at
            found[file.path] = b"" if _is_there(root, file.path) else None
        if file.target is not None:
            taken = _is_there(root, file.target) and not _same(root, file)
            found.setdefault(file.target, b"" if taken else None)
    return found


def read(root: Path, path: NotePath) -> bytes | None:
    """Read what a note holds; None where it is gone, or leads out of the vault."""
    try:
        return files.read_bytes(files.find_path(root, path).file, shown_as=path)
    except (NotFound, RefusedError):  # a link out of the vault is as good as nothing
        return None


def _is_there(root: Path, path: NotePath) -> bool:
    return os.path.lexists(root / path)


def _same(root: Path, file: ProposedFile) -> bool:
    """Tell whether only the case of a name changes, on a system that doesn't tell the two apart."""
    try:
        return (root / file.path).samefile(root / file.place)
    except OSError:
        return False

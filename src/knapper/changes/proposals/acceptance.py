"""Acceptance of proposals: fitting them to the files as they are now, and selecting what is accepted."""

import os
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from knapper.changes.disk.journal import Journal
from knapper.changes.drafts import Draft, FileDraft
from knapper.changes.proposals import note_blocks, parts, visibility
from knapper.changes.proposals.model import Proposal, ProposedFile
from knapper.changes.proposals.parts import Selection
from knapper.changes.proposals.store import Proposals
from knapper.errors import NotFound, RefusedError
from knapper.vault import files, parser
from knapper.vault.paths import NotePath
from knapper.vault.view import View


def select_parts(
    store: Proposals,
    view: View,
    proposal_id: str,
    digest: str,
    *,
    files: Collection[str] = (),
    hunks: Collection[str] = (),
) -> Selection:
    """Select what is accepted: its blocks are taken out of the notes, and those that still wait are rendered again.

    Args:
        store: Where the proposal is.
        view: The vault as the accepting client sees it.
        proposal_id: Which.
        digest: Of the state that was shown.
        files: Paths; if *hunks* is empty too, all that fits is selected.
        hunks: Ids such as ``2.1``.

    Raises:
        NotFound: There is no such proposal, file or hunk, or it is about a file that the client may not know of.
        ConflictError: It isn't what was shown any more, it is closed, something chosen is stale, or a block in a note
            was edited by hand.
        BadInput: What was chosen can't be taken by itself.
    """
    # Names are checked against what the client sees, so that an error reveals no hidden file.
    parts.check_names(store.show(proposal_id, visible=view.visible), files, hunks)
    with visibility.hiding_errors(visibility.hidden_paths(store.show(proposal_id).files, view.visible)):
        current, note_contents = _read_without_blocks(store, view.root, proposal_id)
        selection = store.select(
            proposal_id, digest, files=files, hunks=hunks, note_contents=note_contents, current=current
        )
    return replace(selection, draft=visibility.mark_hidden(selection.draft, view.visible))


def fit_to_files(store: Proposals, root: Path, proposal_id: str) -> tuple[Proposal, dict[NotePath, bytes]]:
    """Fit a proposal to the current content of its files, without its own blocks.

    Args:
        store: Where the proposal is.
        root: The vault's folder.
        proposal_id: Which.

    Returns:
        The proposal, and the contents of the notes that have blocks of it.

    Raises:
        NotFound: There is no such proposal.
        ConflictError: A block was edited by hand.
    """
    current, note_contents = _read_without_blocks(store, root, proposal_id)
    return store.rebase(proposal_id, current), note_contents


def draft_block_removal(store: Proposals, root: Path, proposal_id: str, *, ending: Collection[str] = ()) -> Draft:
    """Draft the removal of a proposal's blocks that don't wait any more from its notes.

    Args:
        store: Where the proposal is; hunks of it were rejected, or it ended.
        root: The vault's folder.
        proposal_id: Which.
        ending: Ids of hunks that will be rejected once their blocks are gone.

    Returns:
        A draft; without files if no note has such a block.

    Raises:
        NotFound: There is no such proposal.
        ConflictError: A block was edited by hand.
    """
    proposal, note_contents = fit_to_files(store, root, proposal_id)
    ended = proposal.status not in {"open", "stale"}
    waiting = {one.id for file in proposal.files for one in file.hunks if one.state == "open" and not ended}
    waiting -= set(ending)
    shown_blocks = store.note_blocks.get(proposal_id)
    drafts: list[FileDraft] = []
    for file in proposal.files:
        decided_blocks = [
            name for name, hunks in shown_blocks.get(file.path, {}).items() if not waiting.issuperset(hunks)
        ]
        if decided_blocks and file.path in note_contents:
            drafts.append(note_blocks.draft_removal(file, note_contents[file.path], decided_blocks))
    return Draft(files=tuple(one for one in drafts if one.before != one.after))


def _read_without_blocks(
    store: Proposals, root: Path, proposal_id: str
) -> tuple[dict[NotePath, bytes | None], dict[NotePath, bytes]]:
    """Return the contents of a proposal's files without its own blocks, and of the notes that have such with them."""
    proposal = store.show(proposal_id)
    shown_blocks = store.note_blocks.get(proposal_id)
    current = _read_files(root, proposal, shown_blocks)
    if store.note_blocks.sync_texts(proposal_id, current):
        shown_blocks = store.note_blocks.get(proposal_id)
    note_contents: dict[NotePath, bytes] = {}
    for path, block_hunks in shown_blocks.items():
        raw = current.get(path)
        if raw is not None:
            note_contents[path] = raw
            current[path] = note_blocks.withdraw_blocks(raw, block_hunks)
    return current, note_contents


def _read_files(root: Path, proposal: Proposal, shown: Collection[NotePath]) -> dict[NotePath, bytes | None]:
    contents: dict[NotePath, bytes | None] = {}
    for file in proposal.files:
        if file.state != "open" and file.path not in shown:
            continue
        if file.before is not None:
            contents[file.path] = read_note(root, file.path)
        else:
            # A file without stored text may be of any size, so only its existence is checked.
            contents[file.path] = b"" if _exists(root, file.path) else None
        if file.target is not None:
            is_occupied = _exists(root, file.target) and not _is_same_file(root, file)
            contents.setdefault(file.target, b"" if is_occupied else None)
    return contents


def read_note(root: Path, path: NotePath) -> bytes | None:
    """Return a note's content; None if it is gone, or a link that leads out of the vault."""
    try:
        return files.read_bytes(files.find_path(root, path).file, shown_as=path)
    except (NotFound, RefusedError):
        return None


def _exists(root: Path, path: NotePath) -> bool:
    return os.path.lexists(root / path)


def _is_same_file(root: Path, file: ProposedFile) -> bool:
    """Return whether only the case of a name changes, on a file system that ignores case."""
    try:
        return (root / file.path).samefile(root / file.place)
    except OSError:
        return False


def sync_accepted_blocks(store: Proposals, journal: Journal, root: Path, proposal_id: str) -> None:
    """Record which blocks of a proposal were accepted in its notes meanwhile.

    Args:
        store: Where the proposal is.
        journal: Shows whether one of the program's own changes did it.
        root: The vault's folder.
        proposal_id: Which.

    Raises:
        NotFound: There is no such proposal.
    """
    for path, block_hunks in store.note_blocks.get(proposal_id).items():
        raw = read_note(root, path)
        if raw is not None and any(name.encode() not in raw for name in block_hunks):
            store.read_back(proposal_id, path, raw, _find_change(journal, proposal_id, path, raw))


def _find_change(journal: Journal, proposal_id: str, path: NotePath, raw: bytes) -> str:
    """Return the id of the change that gave a note its content on behalf of a proposal; empty if there is none."""
    after = parser.content_hash(raw)
    candidates = journal.select(
        "proposal = :id AND phase IN ('applied', 'done') ORDER BY seq DESC", {"id": proposal_id}
    )
    return next(
        (one.id for one in candidates for file in one.files if (file.after_path, file.after_hash) == (path, after)), ""
    )

"""Learn of blocks that were accepted in their notes by hand, or by a process that was killed before it could say so."""

from pathlib import Path

from knapper.changes.disk.journal import Journal
from knapper.changes.review import acceptance
from knapper.changes.review.proposals import Proposals
from knapper.vault import parser
from knapper.vault.paths import NotePath


def follow(store: Proposals, journal: Journal, root: Path, proposal_id: str) -> None:
    """Note which blocks of a proposal were accepted in its notes meanwhile.

    Args:
        store: Where the proposal is.
        journal: Tells whether a change of ours did it.
        root: The vault's folder.
        proposal_id: Which.

    Raises:
        NotFound: There is no such proposal.
    """
    for path, shown in store.drawings.get(proposal_id).items():
        raw = acceptance.read(root, path)
        if raw is not None and any(name.encode() not in raw for name in shown):
            store.read_back(proposal_id, path, raw, _change(journal, proposal_id, path, raw))


def _change(journal: Journal, proposal_id: str, path: NotePath, raw: bytes) -> str:
    """Find the change that left a note as it is, on behalf of a proposal; empty where there is none."""
    after = parser.content_hash(raw)
    made = journal.select("proposal = :id AND phase IN ('applied', 'done') ORDER BY seq DESC", {"id": proposal_id})
    return next(
        (one.id for one in made for file in one.files if (file.after_path, file.after_hash) == (path, after)), ""
    )

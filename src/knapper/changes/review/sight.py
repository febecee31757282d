"""Leave out of proposals what their reader may not know of."""

from collections.abc import Callable
from dataclasses import replace

from knapper.changes.drafts import Draft
from knapper.changes.review import proposal_rows
from knapper.changes.review.proposal_records import Proposal
from knapper.vault.paths import NotePath


def seen(proposal: Proposal, visible: Callable[[NotePath], bool]) -> Proposal:
    """Show a proposal to somebody who may not know of every file.

    Raises:
        NotFound: It is about such a file; a link in one that only follows is left out.
    """
    hidden = {file.path for file in proposal.files if not (visible(file.path) and visible(file.place))}
    if any(file.cause == "asked" and file.path in hidden for file in proposal.files):
        raise proposal_rows.missing(proposal.id)
    return replace(
        proposal,
        files=tuple(file for file in proposal.files if file.path not in hidden),
        rewritten=tuple(one for one in proposal.rewritten if one.path not in hidden),
    )


def marked(draft: Draft, visible: Callable[[NotePath], bool]) -> Draft:
    """Mark the files of a draft that whoever it is made for may not know of, so that nothing names them."""
    files = (replace(file, hidden=not (visible(file.path) and visible(file.place))) for file in draft.files)
    return replace(draft, files=tuple(files))

"""List, show, edit, accept and reject what waits for a person's word."""

from typing import Final

from knapper.server.http.faces import Face

FACES: Final = (
    Face(method="GET", path="/proposals", tool="list_proposals", tag="proposals"),
    Face(method="GET", path="/proposals/{proposal_id}", tool="show_proposal", tag="proposals"),
    Face(method="POST", path="/proposals/{proposal_id}/accept", tool="accept_proposal", tag="proposals"),
    Face(method="POST", path="/proposals/{proposal_id}/reject", tool="reject_proposal", tag="proposals"),
    Face(method="PUT", path="/proposals/{proposal_id}/hunks/{hunk}", tool="edit_proposal", tag="proposals"),
)

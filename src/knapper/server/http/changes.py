"""List what was changed, and take it back."""

from typing import Final

from knapper.server.http.faces import Face

FACES: Final = (
    Face(method="GET", path="/changes", tool="list_changes", tag="changes"),
    Face(method="POST", path="/changes/undo", tool="undo_change", tag="changes"),
    Face(method="POST", path="/changes/{change_id}/undo", tool="undo_change", tag="changes"),
)

"""Draft new notes."""

from knapper.changes.drafts import FileDraft
from knapper.changes.requests import Create
from knapper.changes.text import creation
from knapper.vault import paths
from knapper.vault.view import View

_SUFFIX = ".md"


def draft(view: View, request: Create) -> tuple[FileDraft, tuple[str, ...]]:
    """Draft a new note, with its properties in the order given.

    A name without ending is a note's: ``Plans/Week`` becomes ``Plans/Week.md``, and that is said.

    Raises:
        BadInput: The path, the text or a property can't be written.
        RefusedError: The note would lie where the client sees nothing.
        ConflictError: There is such a file.
    """
    wanted = request.path if paths.suffix(request.path) else f"{request.path}{_SUFFIX}"
    path = view.new_path(wanted)
    content = creation.compose(request.content, request.properties)
    made = FileDraft(path=path, base=None, after=content, needs=frozenset({"create"}), anchored=True)
    return made, () if wanted == request.path else (f"made {path}: a name without ending is a note's",)

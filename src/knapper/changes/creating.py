"""Draft new notes."""

from knapper.changes.drafts import FileDraft
from knapper.changes.requests import Create
from knapper.changes.text import creation
from knapper.errors import BadInput
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
    if not request.path.strip() or request.path.endswith("/"):
        what = "an empty path" if not request.path.strip() else f"'{request.path}'"
        raise BadInput(f"{what} names no note", hint="give the note's own name too, such as 'Folder/Note.md'")
    wanted = request.path if paths.suffix(request.path) else f"{request.path}{_SUFFIX}"
    path = view.new_path(wanted)
    unwise = tuple(problem.message for problem in paths.check_new(path, root=view.root))
    content = creation.compose(request.content, request.properties)
    made = FileDraft(path=path, base=None, after=content, needs=frozenset({"create"}), anchored=True)
    completed = () if wanted == request.path else (f"made {path}: a name without ending is a note's",)
    return made, (*completed, *unwise)

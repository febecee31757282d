"""Move files and folders; every link that points there follows."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Final

from knapper.changes.requests import Move, Request, Trash
from knapper.errors import BadInput, KnapError
from knapper.tools import answers
from knapper.tools.context import Context
from knapper.tools.shapes import Answer
from knapper.tools.shapes.written import Written
from knapper.vault import files, paths

_FORM: Final = 'give {"source": "old/path.md", "destination": "new/path.md"}'


def move_file(context: Context, source: str, destination: str) -> Annotated[Answer, Written]:
    """Move a note, another file or a folder; every link to it is rewritten, and nothing is overwritten.

    Args:
        context: The vault, as the client sees it.
        source: Path of the file or folder as it is now.
        destination: Where it goes; ``Folder/`` keeps the name, and missing folders are made.

    Returns:
        ``links_rewritten`` with path, line, old and new of each.

    Raises:
        NotFound: There is no such file or folder.
        ConflictError: Something is at the destination already.
        BadInput: A folder would go into itself, or a name can't be used.
        RefusedError: One of the paths is out of the vault, hidden or ignored.
    """
    return answers.one(context, Move(source=source, destination=destination))


def batch_move_files(context: Context, moves: Sequence[Mapping[str, str]]) -> Annotated[Answer, Written]:
    """Move several files or folders; those that can't be moved are listed, and the others go on together.

    More than 5 are always a proposal.

    Args:
        context: The vault, as the client sees it.
        moves: Objects with ``source``, the path now, and ``destination``, the new one; ``Folder/`` keeps the name.

    Raises:
        BadInput: An item isn't such an object.
        KnapError: None of them can be moved.
    """
    return answers.several(context, [_move(number, one) for number, one in enumerate(moves)])


def delete_files(context: Context, names: Sequence[str]) -> Annotated[Answer, Written]:
    """Put several files into the trash; those for which that fails are listed, and the others go on together.

    Raises:
        KnapError: It fails for every one of them.
    """
    return answers.several(context, [Trash(path=path) for path in dict.fromkeys(names)])


def is_folder(context: Context, destination: str) -> bool:
    """Tell whether a destination names a folder: it ends with a slash, or is one."""
    if destination.endswith("/"):
        return True
    try:
        found = files.find_path(context.view.root, paths.parse(destination, root=context.view.root))
    except KnapError:
        return destination.strip() in {".", ""}
    return found.file.is_dir() and not context.view.ignore.hides(found.path, is_folder=True)


def is_respelled(context: Context, source: str, destination: str) -> bool:
    """Tell whether a destination is the source itself, in the same or another spelling of case and Unicode form."""
    if destination.endswith("/"):
        return False
    try:
        one, other = (paths.parse(each, root=context.view.root) for each in (source, destination))
    except KnapError:
        return False
    return paths.name_key(one) == paths.name_key(other)


def _move(number: int, given: Mapping[str, str]) -> Request:
    source, destination = given.get("source"), given.get("destination")
    if not (isinstance(source, str) and isinstance(destination, str) and set(given) == {"source", "destination"}):
        raise BadInput(f"item {number} of moves can't be used", hint=_FORM)
    return Move(source=source, destination=destination)

"""Read vaults for scripts, in the plain shapes of the documented contract."""

from collections.abc import Iterator
from typing import Final

from knapper.errors import BadInput, CallerError, NotFound
from knapper.index.filters import Filter, PropertyTest
from knapper.index.search import SearchRequest
from knapper.jsontypes import JSONValue
from knapper.tools import foreign
from knapper.tools.context import Context
from knapper.vault import parser, paths, walk
from knapper.vault.parser import Note

_NOTE: Final = ".md"


def found(context: Context, query: str, limit: int, path_filter: str, type_filter: str) -> Iterator[tuple[Note, float]]:
    """Search one vault; gives each note once, best first, with its score, and reads it only then.

    Raises:
        BadInput: The query holds no word.
    """
    if not query.strip():
        raise BadInput("the query is empty", hint="give at least one word")
    where = Filter(
        folders=_folders(path_filter),
        paths=(path_filter,) if path_filter.endswith(_NOTE) else (),
        properties=(PropertyTest(name="type", op="equals", value=type_filter),) if type_filter else (),
    )
    _ = context.freshen()
    asked = SearchRequest(text=query, mode="hybrid", limit=limit, per_note=1, where=context.restrict(where))
    for hit in context.index.search(asked).hits:
        read = note(context, hit.row.note)
        if read is not None:  # it may be gone by now
            yield read, round(hit.score, 4)


def note(context: Context, raw: str) -> Note | None:
    """Read a note, also by its path without ending; None where the client sees none.

    Raises:
        BadInput: It can be no path, or the file isn't text.
        RefusedError: It leads out of the vault.
    """
    for path in (raw,) if paths.suffix(raw) else (raw, f"{raw}{_NOTE}"):
        try:
            read = context.view.read_head(path)
        except NotFound:
            continue
        if walk.kind_of(read.path) == "attachment" and b"\0" in read.raw:
            raise BadInput(f"{read.path} isn't text", code="not_text")
        _ = foreign.heard(context, read)
        return read
    return None


def text(read: Note | None) -> str:
    """Give a note's whole text; empty where there is none."""
    return parser.decode_text(read.raw) if read else ""


def properties(read: Note | None) -> dict[str, JSONValue]:
    """Give a note's properties; empty where there is none."""
    block = read.outline.frontmatter if read else None
    return dict(block.values) if block else {}


def listed(context: Context, directory: str, *, recursive: bool) -> list[str]:
    """Name the notes of a folder and its folders, these with a slash at the end; or all notes below it.

    Raises:
        BadInput: It can be no path.
        RefusedError: It leads out of the vault.
    """
    inside = directory.strip().strip("/")
    folder = "" if inside in {"", "."} else f"{paths.parse(inside, root=context.view.root)}/"
    below = [str(file.path) for file in context.view.files() if walk.kind_of(file.path) == "note"]
    length = len(folder)
    below = [path for path in below if paths.name_key(path[:length]) == paths.name_key(folder)]
    if recursive:
        return below
    here = [path for path in below if "/" not in path[length:]]
    folders = dict.fromkeys(f"{path[:length]}{path[length:].split('/')[0]}/" for path in below if "/" in path[length:])
    return [*folders, *here]


def wikilink(context: Context, raw: str) -> str:
    """Write a link to a note; to one that isn't there as well."""
    try:
        path = context.view.path(raw)
    except CallerError:
        path = paths.parse(raw, root=context.view.root)
    return f"[[{path.removesuffix(_NOTE)}]]"


def _folders(path_filter: str) -> tuple[str, ...]:
    folder = path_filter.strip().rstrip("*").strip("/")
    return (folder,) if folder and not folder.endswith(_NOTE) else ()

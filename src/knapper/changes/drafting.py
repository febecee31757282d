"""Turn requests over a vault into a draft: what would happen to which files."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from knapper.changes import creating, tagging, text_edits, trashing
from knapper.changes.drafts import Capability, Draft, FileDraft, Rewritten
from knapper.changes.failures import Failure
from knapper.changes.linking import moving, renaming
from knapper.changes.linking.pasts import Pasts
from knapper.changes.requests import (
    AtPosition,
    Create,
    EditProperty,
    Move,
    RenameBlock,
    RenameHeading,
    RenameTag,
    Request,
    Restore,
    TextRequest,
    Trash,
)
from knapper.changes.text import positions
from knapper.changes.text_edits import Made
from knapper.errors import BadInput, KnapError
from knapper.index.graph import Graph
from knapper.vault import walk
from knapper.vault.parser import Note
from knapper.vault.paths import NotePath
from knapper.vault.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """Hold what drafting looks at."""

    view: View
    """The vault as the client sees it."""
    owner: View
    """The vault as its owner sees it: links in notes that the client doesn't see follow a move too."""
    graph: Graph
    version: Callable[[str], bytes | None]
    """Gives the content of a hash that the journal knows."""
    catch_up: Callable[[], None]
    """Makes the index know all that changed; asked before links or tags of the whole vault are looked up."""
    pasts: Pasts | None = None
    """What earlier moves rewrote, so that the way back gives every link what it said; None for no memory."""


@dataclass(slots=True, kw_only=True)
class _Batch:
    """Gather what the requests of a batch come to."""

    files: list[FileDraft] = field(default_factory=list[FileDraft])
    folders: list[tuple[NotePath, NotePath]] = field(default_factory=list[tuple[NotePath, NotePath]])
    notices: list[str] = field(default_factory=list[str])
    rewritten: list[Rewritten] = field(default_factory=list[Rewritten])
    failures: list[Failure] = field(default_factory=list[Failure])
    by_query: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafted:
    """Hold a batch's draft, and the requests that can't be part of it."""

    draft: Draft
    failures: tuple[Failure, ...]


def draft(desk: Desk, requests: Sequence[Request]) -> Drafted:
    """Draft a batch; each request is read against the files as they are now, and none against another's outcome.

    Requests that can't be carried out are listed, and the others form the draft. In whatever order requests come, the
    draft is the same.

    Raises:
        BadInput: Two requests want the same file to become different things.
    """
    batch = _Batch()
    if any(isinstance(request, Move | RenameTag | RenameHeading | RenameBlock) for request in requests):
        desk.catch_up()
    read = desk.view.read_head if all(isinstance(one, EditProperty) for one in requests) else desk.view.read
    texts: dict[NotePath, tuple[Note, list[tuple[int, Made]]]] = {}
    moves: list[tuple[int, Move]] = []
    for number, request in enumerate(requests):
        try:
            match request:
                case Move():
                    moves.append((number, request))
                case Create() | RenameTag() | RenameHeading() | RenameBlock() | Trash() | Restore():
                    _whole(desk, batch, number, request)
                case _:
                    _text(desk, batch, texts, read, number, request)
        except KnapError as error:
            batch.failures.append(Failure(number=number, error=error))
    for note, made in texts.values():
        _join(batch, note, made)
    _move(desk, batch, moves)
    _check_once(batch.files)
    return Drafted(
        draft=Draft(
            files=tuple(sorted(batch.files, key=lambda file: file.path)),
            folders=tuple(batch.folders),
            by_query=batch.by_query,
            notices=tuple(batch.notices),
            rewritten=tuple(batch.rewritten),
        ),
        failures=tuple(sorted(batch.failures, key=lambda failure: failure.number)),
    )


def _text(
    desk: Desk,
    batch: _Batch,
    texts: dict[NotePath, tuple[Note, list[tuple[int, Made]]]],
    read: Callable[[str], Note],
    number: int,
    request: TextRequest,
) -> None:
    if isinstance(request, AtPosition) and positions.kind(positions.parse(request.position)) == "create":
        _whole(desk, batch, number, Create(path=request.path, content=request.content))
        return
    known = texts.get(NotePath(request.path))  # the usual spelling needn't be looked up and parsed again
    note, made = known or texts.setdefault((fresh := read(request.path)).path, (fresh, []))
    _check_kind(note, request)
    one = text_edits.make(note, request, version=desk.version)
    batch.notices.extend(one.notices)
    made.append((number, one))


def _check_kind(note: Note, request: TextRequest) -> None:
    """Refuse what would spoil a file that is no note.

    Raises:
        BadInput: It isn't text, or has no place for properties.
    """
    kind = walk.kind_of(note.path)
    if kind == "attachment" and b"\0" in note.raw:
        hint = "only notes and other text files can be edited; any file can be moved or trashed"
        raise BadInput(f"'{note.path}' isn't text", hint=hint, code="not_text")
    if kind != "note" and isinstance(request, EditProperty):
        raise BadInput(f"'{note.path}' is no note, and has no properties", hint="name a note", code="not_a_note")


def _join(batch: _Batch, note: Note, made: Sequence[tuple[int, Made]]) -> None:
    if not made:
        return
    try:
        after = text_edits.merged(note, [one for _, one in made])
    except KnapError as error:
        batch.failures.extend(Failure(number=number, error=error) for number, _ in made)
        return
    needs = frozenset[Capability](need for _, one in made for need in one.needs)
    anchored = all(one.anchored for _, one in made)
    numbers = frozenset(number for number, _ in made)
    file = FileDraft(path=note.path, base=note.hash, before=note.raw, after=after, needs=needs, anchored=anchored)
    batch.files.append(replace(file, requests=numbers))


def _whole(
    desk: Desk, batch: _Batch, number: int, request: Create | RenameTag | RenameHeading | RenameBlock | Trash | Restore
) -> None:
    match request:
        case Create():
            file, notices = creating.draft(desk.view, request)
            made = Draft(files=(file,), notices=notices)
        case RenameTag():
            files = tagging.draft(desk.view, request, desk.graph.tagged(request.old))
            made = Draft(files=tuple(files), by_query=not request.paths)
        case RenameHeading() | RenameBlock():
            made = renaming.draft(desk.view, desk.owner, desk.graph, request)
        case Trash():
            made = Draft(files=(trashing.draft(desk.view, request),))
        case Restore():
            made = Draft(files=(trashing.restore(desk.view, request),))
    _add(batch, made, {number})


def _move(desk: Desk, batch: _Batch, moves: Sequence[tuple[int, Move]]) -> None:
    """Draft all moves as one, so that links between them are right; where that fails, find those that can't be made."""
    if not moves:
        return
    try:
        made = moving.draft(desk.view, desk.owner, desk.graph, [move for _, move in moves], desk.pasts)
    except KnapError as error:
        if len(moves) == 1:
            batch.failures.append(Failure(number=moves[0][0], error=error))
            return
    else:
        _add(batch, made, {number for number, _ in moves})
        return
    possible: list[tuple[int, Move]] = []
    for number, move in moves:
        try:
            _ = moving.draft(desk.view, desk.owner, desk.graph, [move])
            possible.append((number, move))
        except KnapError as error:
            batch.failures.append(Failure(number=number, error=error))
    if len(possible) == len(moves):
        hint = "two of them want the same place, or one is inside another"
        raise BadInput("these moves don't go together", hint=hint)
    _move(desk, batch, possible)


def _add(batch: _Batch, made: Draft, numbers: Collection[int]) -> None:
    batch.files.extend(replace(file, requests=frozenset(numbers)) for file in made.files)
    batch.folders.extend(made.folders)
    batch.notices.extend(made.notices)
    batch.rewritten.extend(made.rewritten)
    batch.by_query = batch.by_query or made.by_query


def _check_once(files: Iterable[FileDraft]) -> None:
    seen: set[NotePath] = set()
    for file in files:
        for path in {file.path, file.place}:
            if path in seen:
                hint = "make one after the other"
                raise BadInput(f"two requests want {path} to become different things", hint=hint, code="overlap")
            seen.add(path)

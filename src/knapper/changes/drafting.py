"""Drafts of requests: what a batch would do to which files."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from knapper.changes import text_edits
from knapper.changes.disk.journal import Journal
from knapper.changes.disk.plan import TrashPlace
from knapper.changes.drafts import (
    AddText,
    AtPosition,
    Capability,
    Create,
    Draft,
    EditProperty,
    EditText,
    Failure,
    FileDraft,
    LinkRewrite,
    Move,
    RenameBlock,
    RenameHeading,
    RenameTag,
    Request,
    Restore,
    Rewrite,
    TextRequest,
    Trash,
)
from knapper.changes.links import moving
from knapper.changes.links.targets import LinkHistory
from knapper.changes.text import positions, properties, replacement, splices
from knapper.changes.text_edits import TextChange
from knapper.errors import BadInput, ConflictError, KnapError, NotFound
from knapper.index.graph import Graph
from knapper.vault import parser, paths, walk
from knapper.vault.parser import Note
from knapper.vault.paths import NotePath
from knapper.vault.view import View

_NOTE_SUFFIX = ".md"


def draft_creation(view: View, request: Create) -> tuple[FileDraft, tuple[str, ...]]:
    """Draft a new note, with its properties in the order given.

    A name without extension is taken for a note's: ``Plans/Week`` becomes ``Plans/Week.md``, and a notice says so.

    Raises:
        BadInput: The path, the text or a property can't be written.
        RefusedError: The client couldn't see the note at this path.
        ConflictError: There is such a file.
    """
    if not request.path.strip() or request.path.endswith("/"):
        what = "an empty path" if not request.path.strip() else f"'{request.path}'"
        raise BadInput(f"{what} names no note", hint="give the note's own name too, such as 'Folder/Note.md'")
    full_path = request.path if paths.suffix(request.path) else f"{request.path}{_NOTE_SUFFIX}"
    path = view.new_path(full_path)
    unwise = tuple(problem.message for problem in paths.check_new(path, root=view.root))
    content = replacement.compose_note(request.content, request.properties)
    file = FileDraft(path=path, base=None, after=content, needs=frozenset({"create"}), anchored=True)
    completed = () if full_path == request.path else (f"made {path}: a name without ending is a note's",)
    return file, (*completed, *unwise)


def draft_tag_rename(view: View, request: RenameTag, tagged: Sequence[NotePath]) -> list[FileDraft]:
    """Draft a tag's new name.

    Args:
        view: The vault.
        request: Which tag; its own paths come before *tagged*.
        tagged: The notes that the index knows to have the tag, or one below it.

    Raises:
        BadInput: The new name can't be a tag's.
        NotFound: No note has the tag.
    """
    properties.check_tag(request.new.strip().removeprefix("#").rstrip("/"))
    files: list[FileDraft] = []
    for path in request.paths or tagged:
        try:
            note = view.read(path)
            renamed = properties.rename_tag(splices.take_snapshot(note.raw, note.outline), request.old, request.new)
        except NotFound:
            if request.paths:
                raise
            # The index is behind, or the client may not see the note.
            continue
        after = splices.merge(note.raw, renamed.splices)
        in_properties = any(tag.origin == "property" for tag in note.outline.tags)
        needs = frozenset[Capability]({"properties", "delete"} if in_properties else {"delete"})
        files.append(
            FileDraft(path=note.path, base=note.hash, before=note.raw, after=after, needs=needs, anchored=True)
        )
    if not files:
        raise NotFound(
            f"no note has the tag #{request.old.removeprefix('#')}",
            hint="the list of tags (`knap tags`) has the others",
        )
    return files


TRASH_FOLDER = ".trash"


def draft_trashing(view: View, request: Trash) -> FileDraft:
    """Draft a move to the trash that the vault's settings name; nothing is deleted for good.

    Raises:
        NotFound: There is no such file.
        ConflictError: The file isn't what the caller saw.
    """
    path = view.path(request.path)
    raw = view.read_bytes(path) if walk.kind_of(path) != "attachment" else None
    base = parser.content_hash(raw) if raw is not None else None
    if request.base and base and request.base != base:
        details: dict[str, object] = {"current_hash": base, "path": path}
        raise ConflictError(f"{path} changed meanwhile", hint="read it again", code="stale", details=details)
    where: TrashPlace = "system" if view.settings.trash_option == "system" else "vault"
    return FileDraft(
        path=path, base=base, before=raw, trash=where, needs=frozenset({"delete"}), anchored=bool(request.base)
    )


def draft_restore(view: View, request: Restore) -> FileDraft:
    """Draft a move out of the vault's trash.

    Raises:
        NotFound: The trash has no such file; the hint lists what it has of that name.
        ConflictError: There is a file where it would go.
    """
    inside = view.parse(request.path.removeprefix(f"{TRASH_FOLDER}/"))
    source = NotePath(f"{TRASH_FOLDER}/{inside}")
    if not (view.root / source).is_file() or (view.root / source).is_symlink() or not view.policy.visible(inside):
        folder = view.root / TRASH_FOLDER
        names = sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())
        wanted = paths.name_key(paths.stem(inside))
        alike = [name for name in names if wanted in paths.name_key(name) and view.policy.visible(name)]
        hint = "what went to the system's trash comes back there, or by undo"
        if alike:
            hint = f"it has: {', '.join(alike[:5])}"
        raise NotFound(f"the trash has no {inside}", hint=hint)
    target = view.new_path(request.destination or inside)
    return FileDraft(path=source, base=None, target=target, needs=frozenset({"create"}), anchored=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftContext:
    """What drafting reads: the vault, its links, and what the journal knows."""

    view: View
    """The vault as the client sees it."""
    owner: View
    """The vault as its owner sees it: links in notes that the client doesn't see follow a move too."""
    graph: Graph
    read_version: Callable[[str], bytes | None]
    """Returns the content of a hash; None where the journal doesn't know it."""
    catch_up: Callable[[], None]
    """Brings the index up to date; called before links or tags of the whole vault are looked up."""
    journal: Journal | None = None
    """Knows what earlier moves rewrote, so that moving back restores every link's old text; None to look nothing up."""


@dataclass(slots=True, kw_only=True)
class _Batch:
    """Draft of a batch while its requests are read."""

    files: list[FileDraft] = field(default_factory=list[FileDraft])
    folders: list[tuple[NotePath, NotePath]] = field(default_factory=list[tuple[NotePath, NotePath]])
    notices: list[str] = field(default_factory=list[str])
    rewritten: list[LinkRewrite] = field(default_factory=list[LinkRewrite])
    failures: list[Failure] = field(default_factory=list[Failure])
    by_query: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftResult:
    """A batch's draft, and the requests that can't be part of it."""

    draft: Draft
    failures: tuple[Failure, ...]


def draft_requests(context: DraftContext, requests: Sequence[Request]) -> DraftResult:
    """Draft a batch; each request is read against the files as they are now, and none against another's outcome.

    Requests that can't be carried out are listed, and the others form the draft. The order of requests doesn't change
    the draft.

    Raises:
        BadInput: Two requests want the same file to become different things.
    """
    batch = _Batch()
    # Only these look up links or tags of the whole vault; other requests needn't wait for the index.
    if any(isinstance(request, Move | RenameTag | RenameHeading | RenameBlock) for request in requests):
        context.catch_up()
    context = replace(context, view=context.view.for_batch(), owner=context.owner.for_batch())
    # These need no structure of the note: text is found as such, or goes to its start or end.
    needs_only_head = all(isinstance(request, AddText | EditProperty | EditText | Rewrite) for request in requests)
    read = partial(_read_head, context.view) if needs_only_head else context.view.read
    texts: dict[NotePath, tuple[Note, list[tuple[int, TextChange]]]] = {}
    moves: list[tuple[int, Move]] = []
    for number, named in enumerate(requests):
        try:
            request = _locate_files(context.view, named)
            match request:
                case Move():
                    moves.append((number, request))
                case Create() | RenameTag() | RenameHeading() | RenameBlock() | Trash() | Restore():
                    _draft_request(context, batch, number, request)
                case _:
                    _collect_text_edit(context, batch, texts, read, number, request)
        except KnapError as error:
            batch.failures.append(Failure(number=number, error=error))
    for note, changes in texts.values():
        _draft_note(batch, note, changes)
    _draft_moves(context, batch, moves)
    _check_no_overlap(batch.files)
    return DraftResult(
        draft=Draft(
            files=tuple(sorted(batch.files, key=lambda file: file.path)),
            folders=tuple(batch.folders),
            by_query=batch.by_query,
            notices=tuple(batch.notices),
            rewritten=tuple(batch.rewritten),
        ),
        failures=tuple(sorted(batch.failures, key=lambda failure: failure.number)),
    )


def _read_head(view: View, path: str) -> Note:
    """Read a note without its structure, unless there may be pending blocks, into which no change may cut."""
    note = view.read_head(path)
    if not note.may_have_pending:
        return note
    return replace(note, outline=parser.parse_note(note.raw))


def _locate_files(view: View, request: Request) -> Request:
    """Return a request with the paths of the files that it names, which may be names as in Obsidian.

    Raises:
        Ambiguous: Several files have the name; none is chosen for a change.
    """
    match request:
        case Create() | Restore():
            return request
        case Move():
            return replace(request, source=_locate(view, request.source))
        case RenameTag():
            return replace(request, paths=tuple(_locate(view, path) for path in request.paths))
        case AtPosition() if _creates(request):
            return request
        case _:
            return replace(request, path=_locate(view, request.path))


def _locate(view: View, path: str) -> str:
    try:
        return view.locate(path, certain=True)
    except NotFound:
        # It may be a folder that moves; the draft raises the error about a file that isn't there.
        return path


def _creates(request: AtPosition) -> bool:
    return positions.position_kind(positions.parse_position(request.position)) == "create"


def _collect_text_edit(
    context: DraftContext,
    batch: _Batch,
    texts: dict[NotePath, tuple[Note, list[tuple[int, TextChange]]]],
    read: Callable[[str], Note],
    number: int,
    request: TextRequest,
) -> None:
    if isinstance(request, AtPosition) and _creates(request):
        _draft_request(context, batch, number, Create(path=request.path, content=request.content))
        return
    # A path that is spelled as it is on disk needn't be looked up and parsed again for each request of the batch.
    entry = texts.get(NotePath(request.path))
    note, changes = entry or texts.setdefault((fresh := read(request.path)).path, (fresh, []))
    # A request has to suit the kind of file, so that no attachment is damaged.
    kind = walk.kind_of(note.path)
    if kind == "attachment" and b"\0" in note.raw:
        hint = "only notes and other text files can be edited; any file can be moved or trashed"
        raise BadInput(f"'{note.path}' isn't text", hint=hint, code="not_text")
    if kind != "note" and isinstance(request, EditProperty):
        raise BadInput(f"'{note.path}' is no note, and has no properties", hint="name a note", code="not_a_note")
    one = text_edits.resolve_request(note, request, version=context.read_version)
    batch.notices.extend(one.notices)
    changes.append((number, one))


def _draft_note(batch: _Batch, note: Note, changes: Sequence[tuple[int, TextChange]]) -> None:
    if not changes:
        return
    try:
        after = text_edits.apply_all(note, [one for _, one in changes])
    except KnapError as error:
        batch.failures.extend(Failure(number=number, error=error) for number, _ in changes)
        return
    needs = frozenset[Capability](need for _, one in changes for need in one.needs)
    anchored = all(one.anchored for _, one in changes)
    numbers = frozenset(number for number, _ in changes)
    file = FileDraft(path=note.path, base=note.hash, before=note.raw, after=after, needs=needs, anchored=anchored)
    batch.files.append(replace(file, requests=numbers))


def _draft_request(
    context: DraftContext,
    batch: _Batch,
    number: int,
    request: Create | RenameTag | RenameHeading | RenameBlock | Trash | Restore,
) -> None:
    match request:
        case Create():
            file, notices = draft_creation(context.view, request)
            drafted = Draft(files=(file,), notices=notices)
        case RenameTag():
            files = draft_tag_rename(context.view, request, context.graph.tagged(request.old))
            drafted = Draft(files=tuple(files), by_query=not request.paths)
        case RenameHeading() | RenameBlock():
            drafted = moving.draft_rename(context.view, context.owner, context.graph, request)
        case Trash():
            drafted = Draft(files=(draft_trashing(context.view, request),))
        case Restore():
            drafted = Draft(files=(draft_restore(context.view, request),))
    _add_draft(batch, drafted, {number})


def _draft_moves(context: DraftContext, batch: _Batch, moves: Sequence[tuple[int, Move]]) -> None:
    """Draft all moves together, so that links between them are right; if that fails, find those that can't be made."""
    if not moves:
        return
    history = None if context.journal is None else LinkHistory(context.journal)
    try:
        drafted = moving.draft_moves(context.view, context.owner, context.graph, [move for _, move in moves], history)
    except KnapError as error:
        if len(moves) == 1:
            batch.failures.append(Failure(number=moves[0][0], error=error))
            return
    else:
        _add_draft(batch, drafted, {number for number, _ in moves})
        return
    possible: list[tuple[int, Move]] = []
    for number, move in moves:
        try:
            _ = moving.draft_moves(context.view, context.owner, context.graph, [move])
            possible.append((number, move))
        except KnapError as error:
            batch.failures.append(Failure(number=number, error=error))
    if len(possible) == len(moves):
        hint = "two of them want the same place, or one is inside another"
        raise BadInput("these moves don't go together", hint=hint)
    _draft_moves(context, batch, possible)


def _add_draft(batch: _Batch, drafted: Draft, numbers: Collection[int]) -> None:
    batch.files.extend(replace(file, requests=frozenset(numbers)) for file in drafted.files)
    batch.folders.extend(drafted.folders)
    batch.notices.extend(drafted.notices)
    batch.rewritten.extend(drafted.rewritten)
    batch.by_query = batch.by_query or drafted.by_query


def _check_no_overlap(files: Iterable[FileDraft]) -> None:
    claimed: set[NotePath] = set()
    for file in files:
        for path in {file.path, file.place}:
            if path in claimed:
                hint = "make one after the other"
                raise BadInput(f"two requests want {path} to become different things", hint=hint, code="overlap")
            claimed.add(path)

"""Requests, what a caller asks of a vault, one change each; and drafts, what these would do to files."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from knapper.changes.disk.plan import Effect, MoveToTrash, Rename, TrashPlace, Write
from knapper.errors import CallerError, KnapError
from knapper.jsontypes import JSONValue
from knapper.vault import parser
from knapper.vault.paths import NotePath


@dataclass(frozen=True, slots=True, kw_only=True)
class EditText:
    """Replacement of text that occurs exactly ``count`` times."""

    path: str
    old: str
    new: str
    count: int = 1
    base: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AtPosition:
    """Change at a position such as ``after:## Heading`` or ``replace:3-5``; see `positions.parse_position`."""

    path: str
    position: str
    content: str = ""
    base: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EditSection:
    """Change of a heading's section; see `positions.find_section`."""

    path: str
    heading: str
    content: str
    how: Literal["replace", "replace_body", "append", "prepend"]
    strict: bool = False
    """The heading has to be written with its ``#`` signs."""
    base: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddText:
    """Text for a note's start, after its properties, or for its end."""

    path: str
    content: str
    where: Literal["start", "end"]
    base: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EditProperty:
    """Change of one property: set, remove, append or rename."""

    path: str
    word: Literal["set", "remove", "append", "rename"]
    name: str
    value: JSONValue = ""
    """Text is read as a person types it; any other value keeps its type. For ``rename``, the new name."""
    base: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """Replacement of a whole note; ``base`` has to be the hash of the replaced text."""

    path: str
    content: str
    base: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    """New note; nothing is ever overwritten."""

    path: str
    content: str = ""
    properties: Mapping[str, JSONValue] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameTag:
    """New name for a tag and those below it, in some notes or in all that have it."""

    old: str
    new: str
    paths: tuple[str, ...] = ()
    """Empty for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameHeading:
    """New title for a heading, with the links that lead to it."""

    path: str
    heading: str
    title: str
    base: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameBlock:
    """New id for a block, with the links that lead to it."""

    path: str
    old: str
    new: str
    base: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """New path for a note, an attachment or a folder; links follow."""

    source: str
    destination: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trash:
    """Move of a file to the trash."""

    path: str
    base: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore:
    """Move of a file out of the vault's trash, to where it was or to another path."""

    path: str
    """Below ``.trash/``, with or without that."""
    destination: str = ""


TextRequest: TypeAlias = EditText | AtPosition | EditSection | AddText | EditProperty | Rewrite
"""Requests that change one note's text: several for one note are applied to one snapshot."""
Request: TypeAlias = TextRequest | Create | RenameTag | RenameHeading | RenameBlock | Move | Trash | Restore


def subject(request: Request) -> str:
    """Return the path that a request is about, as its caller wrote it; empty for a tag, which may be in many notes."""
    match request:
        case Move():
            return request.source
        case RenameTag():
            return ""
        case _:
            return request.path


Capability = Literal["add", "delete", "create", "move", "properties"]
"""What a client may be allowed to do to files: *delete* covers replacing and trashing text, *move* renaming too."""
Cause = Literal["asked", "link"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDraft:
    """One file as it is and as it is to be.

    ==========  ================  ===============  =======================
    what        before            after            target
    ==========  ================  ===============  =======================
    edit        bytes             bytes            None
    create      None              bytes            None
    move        bytes or None     bytes or None    the new path
    trash       bytes or None     None             None (``trash`` is set)
    ==========  ================  ===============  =======================

    A moved or trashed file that isn't a note has no bytes here: it may be of any size.
    """

    path: NotePath
    base: str | None
    """Hash of the file that the draft was made against; None where it is to be made."""
    before: bytes | None = None
    after: bytes | None = None
    target: NotePath | None = None
    trash: TrashPlace | None = None
    needs: frozenset[Capability]
    """What a client must be allowed to do for this."""
    anchored: bool = False
    """The caller named the file's hash, or text that occurs once, a unique heading, the start or the end."""
    cause: Cause = "asked"
    """``link``: the file only follows another's move."""
    hidden: bool = False
    """The client may not see the file: it is counted, but neither named nor shown."""
    requests: frozenset[int] = frozenset()
    """Numbers of the batch's requests that want this."""

    @property
    def place(self) -> NotePath:
        """Return the path that the file has afterwards."""
        return self.target or self.path


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRewrite:
    """One link, or link definition, rewritten so that it leads to the same place as before."""

    path: NotePath
    """The file that holds it, as it is named before the move."""
    line: int
    old: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """File changes that belong together: all of them are made, or none."""

    files: tuple[FileDraft, ...]
    folders: tuple[tuple[NotePath, NotePath], ...] = ()
    """Folders that move as a whole, each with its new path; the files in them are among ``files``."""
    by_query: bool = False
    """The files were chosen by a query or a folder, and not named one by one."""
    notices: tuple[str, ...] = ()
    """What the caller should know: a match after normalising, a link that stays broken."""
    rewritten: tuple[LinkRewrite, ...] = ()
    """Links that follow a move or a renamed heading, by file and place; those in hidden files aren't among them."""

    @property
    def named(self) -> int:
        """Count the files that the caller named; links that follow don't count."""
        return sum(file.cause == "asked" for file in self.files)

    def effects(self) -> Iterator[Effect]:
        """Return the effects that carry out the draft, in order: names first, then contents."""
        moved = {source for source, _ in self.folders}
        yield from (Rename(source=source, target=target) for source, target in self.folders)
        for file in self.files:
            if file.target is not None and not any(file.path.startswith(f"{folder}/") for folder in moved):
                yield Rename(source=file.path, target=file.target, base=file.base)
        for file in self.files:
            if file.trash is not None:
                yield MoveToTrash(path=file.path, base=file.base, where=file.trash)
            elif file.after is not None and file.after != file.before:
                base = parser.content_hash(file.before) if file.before is not None else None
                yield Write(path=file.place, base=base, content=file.after)


_SHOWN_FAILURES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One request of a batch that can't be carried out."""

    number: int
    """Index of the request in the batch, from 0."""
    error: KnapError


def failure_rows(failures: Sequence[Failure], batch: Sequence[Request]) -> JSONValue:
    """Return failures in the shape of an error's details: each with the path that it is about.

    Args:
        failures: Some requests of the batch.
        batch: The batch.
    """
    return [
        {
            "path": subject(batch[one.number]),
            "request": one.number,
            "error": one.error.message,
            "code": one.error.code,
            "hint": one.error.hint,
        }
        for one in failures
    ]


def batch_error(failures: Sequence[Failure], batch: Sequence[Request]) -> KnapError:
    """Build the error for a batch of which no request can be carried out.

    Args:
        failures: One at least.
        batch: The batch.

    Returns:
        The error of the only request, or one whose ``details["failures"]`` lists each with path, code and hint. Its
        code is the one that all failures share, else ``batch_failed``.
    """
    errors = [one.error for one in failures]
    if len(batch) == 1:
        return errors[0]
    codes, hints = ({error.code for error in errors}, {error.hint for error in errors})
    # The closest class that all errors share says who must act.
    shared = (kind for kind in type(errors[0]).__mro__ if all(isinstance(error, kind) for error in errors))
    kind = next(shared, KnapError)
    error_class = kind if issubclass(kind, KnapError) and kind is not KnapError else CallerError
    messages = {error.message for error in errors}
    message = next(iter(messages))
    if len(messages) > 1:
        shown = [f"{subject(batch[one.number])}: {one.error.message}" for one in failures[:_SHOWN_FAILURES]]
        more = f"; and {len(failures) - len(shown)} more" if len(failures) > len(shown) else ""
        message = f"nothing of {len(batch)} requests can be done: {'; '.join(shown)}{more}"
    return error_class(
        message,
        hint=hints.pop() if len(hints) == 1 else "each failure has a hint of its own",
        code=codes.pop() if len(codes) == 1 else "batch_failed",
        details={"failures": failure_rows(failures, batch)},
    )

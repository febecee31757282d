"""Turn requests that change one note's text into splices of one snapshot."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from knapper.changes.drafts import Capability
from knapper.changes.requests import AddText, AtPosition, EditProperty, EditSection, EditText, Rewrite, TextRequest
from knapper.changes.text import blocks, edit, positions, properties, property_values, sections, snapshots, splices
from knapper.changes.text.snapshots import Snapshot
from knapper.changes.text.splices import Splice
from knapper.errors import BadInput, ConflictError
from knapper.vault import parser
from knapper.vault.parser import Note

_SECTIONS = {
    "replace": sections.replace,
    "replace_body": sections.replace_body,
    "append": sections.append,
    "prepend": sections.prepend,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """Hold what a request does to a note's bytes."""

    splices: tuple[Splice, ...]
    needs: frozenset[Capability]
    anchored: bool
    notices: tuple[str, ...] = ()


def make(note: Note, request: TextRequest, *, version: Callable[[str], bytes | None]) -> Made:
    """Turn one request into splices of the note as it is now.

    Where the request names an older state as its base, what it does there is moved to where the same text stands now.

    Args:
        note: As it is on disk.
        request: For this note.
        version: Gives the content of a hash, where it is known.

    Raises:
        BadInput: The request makes no sense for this note, or nothing would change.
        NotFound: Text, heading or property isn't there.
        Ambiguous: It is there more than once.
        ConflictError: The note isn't what the request was made against, and the place has changed.
    """
    base = request.base
    if not base or base == note.hash:
        return _resolve(snapshots.take(note.raw, note.outline), request, anchored=bool(base))
    old = version(base)
    if old is None or isinstance(request, Rewrite):
        raise stale(note, base)
    made = _resolve(snapshots.take(old), request, anchored=True)
    try:
        moved = tuple(splices.rebase(splice, old, note.raw) for splice in made.splices)
    except ConflictError as error:
        error.details |= {"current_hash": note.hash, "path": note.path}
        raise
    notice = f"{note.path} changed since {base[:15]}…; the change was moved to where the same text stands now"
    return Made(splices=moved, needs=made.needs, anchored=True, notices=(*made.notices, notice))


def stale(note: Note, base: str) -> ConflictError:
    """Say that a note isn't what a request was made against."""
    return ConflictError(
        f"{note.path} changed meanwhile: it isn't {base} any more",
        hint="read it again, and make the change against its current hash",
        code="stale",
        details={"current_hash": note.hash, "path": note.path},
    )


def _resolve(snapshot: Snapshot, request: TextRequest, *, anchored: bool) -> Made:
    match request:
        case EditText():
            found = edit.replace(snapshot, request.old, request.new, count=request.count)
            return _made(found.splices, anchored=True, notices=_told(request.path, found))
        case AtPosition():
            position = positions.parse(request.position)
            splice = positions.resolve(snapshot, position, request.content)
            return _made([splice], anchored=anchored or not isinstance(position, positions.Before | positions.Span))
        case EditSection():
            splice = _SECTIONS[request.how](snapshot, request.heading, request.content, strict=request.strict)
            return _made([splice], anchored=True)
        case AddText():
            add = sections.after_frontmatter if request.where == "start" else sections.append_to_file
            return _made([add(snapshot, request.content)], anchored=True)
        case EditProperty():
            return Made(splices=_property(snapshot, request), needs=frozenset({"properties"}), anchored=True)
        case Rewrite():
            return _made([_whole(snapshot, request.content)], anchored=True)


def _made(found: Sequence[Splice], *, anchored: bool, notices: tuple[str, ...] = ()) -> Made:
    """Tell by its splices what a change needs: taking text away is more than adding to it."""
    needs: set[Capability] = {"delete" if splice.stop > splice.start else "add" for splice in found}
    return Made(splices=tuple(found), needs=frozenset(needs), anchored=anchored, notices=notices)


def _told(path: str, found: edit.Edit) -> tuple[str, ...]:
    if not found.normalised:
        return ()
    lines = ", ".join(map(str, found.lines))
    return (f"{path}: the old text was found only in another spelling ({', '.join(found.differences)}), line {lines}",)


def _property(snapshot: Snapshot, request: EditProperty) -> tuple[Splice, ...]:
    name, value = request.name, request.value
    match request.word:
        case "set":
            typed = property_values.interpret(snapshot, name, value) if isinstance(value, str) else value
            outcome = properties.assign(snapshot, name, typed)
        case "append":
            typed = property_values.interpret_item(snapshot, name, value) if isinstance(value, str) else value
            outcome = properties.append(snapshot, name, typed)
        case "remove":
            outcome = properties.remove(snapshot, name)
        case "rename":
            if not isinstance(value, str):
                raise BadInput(f"{name!r} can't be renamed to {value!r}", hint="the new name is text")
            outcome = properties.rename(snapshot, name, value)
    return outcome.splices


def _whole(snapshot: Snapshot, content: str) -> Splice:
    splice = snapshot.rewrite(snapshot.text_start, len(snapshot.raw), content)
    if splice.new == snapshot.raw[splice.start :]:
        hint = "Nothing has to be done."
        raise BadInput("Nothing would change: the note holds this text.", hint=hint, code="no_change")
    return splice


def merged(note: Note, made: Sequence[Made]) -> bytes:
    """Apply what several requests do to one note, all against its one state.

    Raises:
        BadInput: Two of them overlap.
        ConflictError: One cuts into an edit that waits in the note.
    """
    wanted = [splice for one in made for splice in one.splices]
    blocks.guard(snapshots.take(note.raw, note.outline), wanted)
    after = splices.merge(note.raw, wanted)
    return after if parser.content_hash(after) != note.hash else note.raw

"""Turn requests that change one note's text into splices of one snapshot."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from knapper.changes.drafts import (
    AddText,
    AtPosition,
    Capability,
    EditProperty,
    EditSection,
    EditText,
    Rewrite,
    TextRequest,
)
from knapper.changes.text import blocks, positions, properties, splices, yaml_values
from knapper.changes.text import replacement as text_replacement
from knapper.changes.text.splices import Snapshot, Splice
from knapper.errors import BadInput, ConflictError
from knapper.jsontypes import JSONValue
from knapper.vault import parser
from knapper.vault.parser import Note

_SECTIONS = {
    "replace": positions.replace_section,
    "replace_body": positions.replace_section_body,
    "append": positions.append_to_section,
    "prepend": positions.prepend_to_section,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TextChange:
    """What a request does to a note's bytes."""

    splices: tuple[Splice, ...]
    needs: frozenset[Capability]
    anchored: bool
    notices: tuple[str, ...] = ()


def resolve_request(note: Note, request: TextRequest, *, version: Callable[[str], bytes | None]) -> TextChange:
    """Turn one request into splices of the note as it is now.

    Where the request's base is an older state, its splices are moved to where the same text is now.

    Args:
        note: As it is on disk.
        request: For this note.
        version: Returns the content of a hash; None where it isn't known.

    Raises:
        BadInput: The request makes no sense for this note, or nothing would change.
        NotFound: Text, heading or property isn't there.
        Ambiguous: It is there more than once.
        ConflictError: The note isn't what the request was made against, and the place has changed.
    """
    base = request.base
    if not base or base == note.hash:
        return _resolve(splices.take_snapshot(note.raw, note.outline), request, anchored=bool(base))
    old = version(base)
    if old is None or isinstance(request, Rewrite):
        raise stale_error(note, base)
    change = _resolve(splices.take_snapshot(old), request, anchored=True)
    try:
        moved = tuple(splices.rebase(splice, old, note.raw) for splice in change.splices)
    except ConflictError as error:
        error.details |= {"current_hash": note.hash, "path": note.path}
        raise
    notice = f"{note.path} changed since {base[:15]}…; the change was moved to where the same text stands now"
    return TextChange(splices=moved, needs=change.needs, anchored=True, notices=(*change.notices, notice))


def stale_error(note: Note, base: str) -> ConflictError:
    """Build the error for a note that isn't what a request was made against."""
    return ConflictError(
        f"{note.path} changed meanwhile: it isn't {base} any more",
        hint="read it again, and make the change against what it holds now",
        code="stale",
        details={"current_hash": note.hash, "path": note.path},
    )


def _resolve(snapshot: Snapshot, request: TextRequest, *, anchored: bool) -> TextChange:
    match request:
        case EditText():
            replacement = text_replacement.replace_text(snapshot, request.old, request.new, count=request.count)
            notices: tuple[str, ...] = ()
            if replacement.normalised:
                spellings, lines = ", ".join(replacement.differences), ", ".join(map(str, replacement.lines))
                message = f"the old text was found only in another spelling ({spellings}), line {lines}"
                notices = (f"{request.path}: {message}",)
            return _text_change(replacement.splices, anchored=True, notices=notices)
        case AtPosition():
            position = positions.parse_position(request.position)
            splice = positions.resolve_position(snapshot, position, request.content)
            return _text_change(
                [splice], anchored=anchored or not isinstance(position, positions.BeforeLine | positions.LineSpan)
            )
        case EditSection():
            splice = _SECTIONS[request.how](snapshot, request.heading, request.content, strict=request.strict)
            return _text_change([splice], anchored=True)
        case AddText():
            add = positions.insert_after_frontmatter if request.where == "start" else positions.append_to_file
            return _text_change([add(snapshot, request.content)], anchored=True)
        case EditProperty():
            edit = _edit_property(snapshot, request)
            notices = _type_notices(request.path, edit) if request.word == "set" else ()
            needs = frozenset[Capability]({"properties"})
            return TextChange(splices=edit.splices, needs=needs, anchored=True, notices=notices)
        case Rewrite():
            splice = snapshot.rewrite(snapshot.text_start, len(snapshot.raw), request.content)
            if splice.new == snapshot.raw[splice.start :]:
                hint = "nothing has to be done"
                raise BadInput("nothing would change: the note holds this text", hint=hint, code="no_change")
            return _text_change([splice], anchored=True)


def _text_change(new_splices: Sequence[Splice], *, anchored: bool, notices: tuple[str, ...] = ()) -> TextChange:
    """Build a change with the capabilities that its splices need: removing text needs more than adding it."""
    needs: set[Capability] = {"delete" if splice.stop > splice.start else "add" for splice in new_splices}
    return TextChange(splices=tuple(new_splices), needs=frozenset(needs), anchored=anchored, notices=notices)


def _type_notices(path: str, edit: properties.PropertyEdit) -> tuple[str, ...]:
    """Return a notice where a value gets another type, which Obsidian and queries may treat differently."""
    if edit.before is None or edit.after is None:
        return ()
    old, new = _type_name(edit.before), _type_name(edit.after)
    return () if old == new else (f"{path}: {edit.key} was {old} and becomes {new}",)


def _type_name(value: JSONValue) -> str:
    match value:
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case list():
            return "a list"
        case dict():
            return "a map"
        case _:
            return "text"


def _edit_property(snapshot: Snapshot, request: EditProperty) -> properties.PropertyEdit:
    name, value = request.name, request.value
    match request.word:
        case "set":
            typed = yaml_values.interpret_value(snapshot, name, value) if isinstance(value, str) else value
            return properties.set_property(snapshot, name, typed)
        case "append":
            typed = yaml_values.interpret_item(snapshot, name, value) if isinstance(value, str) else value
            return properties.append_to_property(snapshot, name, typed)
        case "remove":
            return properties.remove_property(snapshot, name)
        case "rename":
            if not isinstance(value, str):
                raise BadInput(f"{name!r} can't be renamed to {value!r}", hint="the new name is text")
            return properties.rename_property(snapshot, name, value)


def apply_all(note: Note, changes: Sequence[TextChange]) -> bytes:
    """Apply the changes of several requests to one note, all of them made against the same state.

    Raises:
        BadInput: Two of them overlap.
        ConflictError: One overlaps a block in the note that waits for a decision.
    """
    all_splices = [splice for one in changes for splice in one.splices]
    blocks.check_blocks_untouched(splices.take_snapshot(note.raw, note.outline), all_splices)
    after = splices.merge(note.raw, all_splices)
    return after if parser.content_hash(after) != note.hash else note.raw

"""Keep what the person wants of agents: the bullet points of one note at the vault's root."""

from dataclasses import dataclass
from typing import Annotated, Final

from knapper.changes.requests import AddText, AtPosition, Create
from knapper.errors import BadInput, NotFound
from knapper.jsontypes import JSONValue
from knapper.tools import answers, foreign
from knapper.tools.context import Context
from knapper.tools.shapes import Answer
from knapper.tools.shapes import daily as shapes
from knapper.vault import access, source
from knapper.vault.parser import Note
from knapper.vault.source import Lines

_LONGEST: Final = 2_000
_BULLETS: Final = (b"- ", b"* ", b"+ ", b"-\t", b"*\t", b"+\t")
_BLANK: Final = b" \t\r\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Item:
    """Hold one bullet point."""

    text: str
    marker: str
    first: int
    """The first of its lines, from 1, and the last one that isn't blank."""
    last: int


def save_preference(context: Context, preference: str) -> Annotated[Answer, shapes.Saved]:
    """Save a preference, correction or instruction of the user, as a bullet point in Preferences.md.

    The note enters prompts, so what others than a person save waits for a person's word. All else in it stays.

    Args:
        context: The vault, as the client sees it.
        preference: In a sentence; line breaks become spaces.

    Raises:
        BadInput: It is empty, or too long.
        RefusedError: The client may not write there.
    """
    text = " ".join(preference.split())
    if not text:
        raise BadInput("the preference is empty", hint="say in a sentence what is preferred")
    if len(text) > _LONGEST:
        raise BadInput(f"the preference has {len(text):,} characters", hint=f"give at most {_LONGEST:,}")
    note = _read(context)
    if note is None:
        return {**answers.one(context, Create(path=access.PREFERENCES_NOTE, content=f"- {text}\n")), "preference": text}
    items = _items(note)
    known = next((number for number, item in enumerate(items, 1) if item.text == text), 0)
    if known:
        said: Answer = {"path": note.path, "hash": note.hash, "message": "it is saved already"}
        return {"success": True, "status": "applied", **said, "preference": text, "line_number": known}
    request = AddText(path=note.path, content=f"- {text}", where="end", base=note.hash)
    if items:
        place, marker = f"insert:{items[-1].last + 1}", items[-1].marker
        request = AtPosition(path=note.path, position=place, content=f"{marker} {text}\n", base=note.hash)
    return {**answers.one(context, request), "preference": text}


def list_preferences(context: Context) -> Annotated[Answer, shapes.Preferences]:
    """List all saved preferences with the line numbers that remove_preference takes.

    Args:
        context: The vault, as the client sees it.

    Returns:
        ``results`` in the file's order, numbered from 1: bullet points only, whatever else the note holds.
    """
    note = _read(context)
    items = _items(note) if note is not None else []
    rows: list[JSONValue] = [
        {"line_number": number, "preference": item.text, "line": item.first} for number, item in enumerate(items, 1)
    ]
    told: Answer = {"success": True, "results": rows, "total": len(rows), "path": access.PREFERENCES_NOTE}
    if not rows:
        told["message"] = "No preferences saved"
    if note is not None:
        told |= {"path": note.path, "hash": note.hash}
        if foreign.heard(context, note):
            told["foreign"] = True
    return told


def remove_preference(context: Context, line_number: int, expected_hash: str = "") -> Annotated[Answer, shapes.Saved]:
    """Remove a preference by the line number that list_preferences tells.

    What others than a person remove waits for a person's word. All else in the note stays.

    Args:
        context: The vault, as the client sees it.
        line_number: The number that list_preferences told, from 1.
        expected_hash: The hash that list_preferences told; empty for whatever the note holds now.

    Raises:
        BadInput: There is no preference of this number.
        NotFound: No preference is saved.
        ConflictError: The note isn't what was listed any more.
    """
    note = _read(context)
    items = _items(note) if note is not None else []
    if note is None or not items:
        raise NotFound("no preference is saved", hint="save_preference saves one", code="no_preferences")
    if not 1 <= line_number <= len(items):
        raise BadInput(
            f"there is no preference {line_number}; there are {len(items)}",
            hint="list_preferences tells their numbers",
            code="out_of_range",
        )
    item = items[line_number - 1]
    request = AtPosition(path=note.path, position=f"delete:{item.first}-{item.last}", base=expected_hash or note.hash)
    return {**answers.one(context, request), "preference": item.text, "line_number": line_number}


def _read(context: Context) -> Note | None:
    try:
        return context.view.read(access.PREFERENCES_NOTE)
    except NotFound:
        return None


def _items(note: Note) -> list[_Item]:
    """Find the bullet points of the note's own lists, in order; those inside others belong to these."""
    data = source.decode(note.raw).data if note.outline.encoding == "utf-16" else note.raw
    lines = Lines(starts=note.outline.line_starts, size=len(data))
    found: list[_Item] = []
    for block in note.outline.blocks:
        if block.kind == "list":
            for start, stop in zip(block.items, (*block.items[1:], block.stop), strict=True):
                item = data[start:stop].strip(_BLANK)
                if item.startswith(_BULLETS):
                    last = start + len(data[start:stop].rstrip(_BLANK)) - 1
                    text = " ".join(item[2:].decode(errors="replace").split())
                    found.append(
                        _Item(text=text, marker=chr(item[0]), first=lines.number(start), last=lines.number(last))
                    )
    return found

"""Check and parse tool arguments: texts, days, folders, and note filters."""

import datetime as dt
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

from typing_extensions import TypedDict

from knapper.errors import BadInput, NotFound, RefusedError, StorageError
from knapper.index.catalog import ListingQuery
from knapper.index.documents import Filter, PropertyOp, PropertyTest
from knapper.tools.context import Context
from knapper.vault import files, paths
from knapper.vault.paths import NotePath
from knapper.vault.view import strip_brackets

_ROOT_SPELLINGS = frozenset({"", ".", "/", "./"})
MAX_TEXT = 10_000
"""Most characters of a name or value to look for."""


def check_text(name: str, value: str) -> str:
    """Check that a text is valid Unicode and not too long.

    Args:
        name: The parameter's, for the message.
        value: Its value.

    Raises:
        BadInput: It isn't valid Unicode, or is too long.
    """
    try:
        value.encode()
    except UnicodeEncodeError:
        hint = "give it as UTF-8 text"
        raise BadInput(f"{name} isn't valid Unicode", hint=hint, code="not_unicode") from None
    if len(value) > MAX_TEXT:
        raise BadInput(f"{name} is {len(value)} characters long", hint=f"give at most {MAX_TEXT}")
    return value


def check_texts(name: str, values: Iterable[str]) -> tuple[str, ...]:
    """Check each of several texts."""
    return tuple(check_text(name, value) for value in values)


def check_name(name: str, value: str) -> str:
    """Check a text that mustn't be empty, and return it without surrounding space.

    Raises:
        BadInput: It is empty.
    """
    if not check_text(name, value).strip():
        raise BadInput(f"{name} is empty", hint="give its name")
    return value.strip()


def parse_day(name: str, value: str, *, needed: bool = False) -> str:
    """Parse a day such as ``2026-01-31``; empty stands for none.

    Raises:
        BadInput: It isn't a day, or is missing where it is *needed*.
    """
    if not value and not needed:
        return ""
    try:
        return dt.date.fromisoformat(value).isoformat()
    except ValueError:
        hint = "write it like 2026-01-31"
        raise BadInput(f"{name} is no day: {paths.quote_path(value)}", hint=hint, code="invalid_date") from None


def resolve_folder(context: Context, raw: str) -> NotePath:
    """Resolve a folder as a caller wrote it to its path in the vault; empty for the vault's root.

    Raises:
        BadInput: The text isn't a valid path.
        NotFound: No visible folder is there (code ``no_such_folder``); the hint names the nearest.
        RefusedError: It lies outside the vault.
    """
    if raw.strip() in _ROOT_SPELLINGS:
        return NotePath("")
    path = context.view.parse(raw)
    listing_query = ListingQuery(where=context.restrict(Filter(folders=(path,))), limit=1)
    # The index comes first: a folder counts as visible only where the client sees one of its files.
    entries = context.index.catalog.find(listing_query).entries
    if entries:
        return NotePath("/".join(entries[0].path.split("/")[: path.count("/") + 1]))
    empty_folder = _find_empty_folder(context, path)
    if empty_folder is None:
        nearest = files.nearest_paths(path, _candidate_folders(context, path))
        hint = "nearest: " + ", ".join(map(repr, nearest)) if nearest else "explore_vault lists the folders"
        message = f"no folder {paths.quote_path(path)} in the vault"
        raise NotFound(message, hint=hint, code="no_such_folder", details={"nearest": nearest})
    return empty_folder


def resolve_filter(context: Context, raw: str, has_rows: Callable[[str], bool]) -> str:
    """Return the path that a filter means: of a folder, or of a file by its path or a name as in Obsidian.

    What was changed under a path that is gone by now is asked for by that path, so a path with rows counts first, then
    a folder. A text that means nothing visible is returned as it is, and nothing will match it.

    Args:
        context: The vault, as the client sees it.
        raw: The path or name, as a caller wrote it; empty for no filter.
        has_rows: Returns whether anything is listed for a path.

    Raises:
        BadInput: The text isn't a valid path.
        Ambiguous: Several visible files have the name; they are listed.
        RefusedError: The path leads outside the vault.
    """
    path = context.view.parse(strip_brackets(raw)) if raw.strip() else ""
    if not path or has_rows(path):
        return path
    with suppress(NotFound):
        return resolve_folder(context, path)
    with suppress(NotFound):
        return context.view.locate(raw)
    return path


def _find_empty_folder(context: Context, path: NotePath) -> NotePath | None:
    """Return a folder without visible files, if the client could see files in it."""
    if not context.view.visible(NotePath(f"{path}/note.md")):
        return None
    try:
        resolved = files.find_path(context.view.root, path, visible=context.view.visible)
    except (NotFound, RefusedError, StorageError):
        return None
    is_shown = context.view.visible(NotePath(f"{resolved.target}/note.md"))
    return resolved.path if resolved.file.is_dir() and is_shown else None


def _candidate_folders(context: Context, path: NotePath) -> Sequence[str]:
    """Return the folders that a mistyped one may mean: its siblings, and those at the vault's root."""
    where = context.restrict(Filter())
    parents = (paths.parent_folder(path), "") if "/" in path else ("",)
    return [each.path for parent in parents for each in context.index.catalog.folders(where, parent)]


_OPERATOR: Final = re.compile(r"!~|!=|~|=")
_OPERATORS: Mapping[str, PropertyOp] = {"!~": "not_contains", "!=": "not_equals", "~": "contains", "=": "equals"}
_MAX_TESTS: Final = 50
"""Tests of one kind."""


class NoteFilters(TypedDict, total=False):
    """Filters on notes, all of which must match."""

    exclude_folders: Sequence[str]
    tags: Sequence[str]
    exclude_tags: Sequence[str]
    properties: Sequence[str]
    modified_from: str
    modified_to: str
    created_from: str
    created_to: str


class SearchFilters(NoteFilters, total=False):
    """Filters on notes, with the folders that they lie in."""

    folders: Sequence[str]


def build_filter(
    where: SearchFilters | NoteFilters, *, kinds: tuple[str, ...] = (), include_log: bool = False
) -> Filter:
    """Build a filter from a tool's arguments.

    Args:
        where: The arguments.
        kinds: Kinds of file that pass; empty for all.
        include_log: Whether entries that this program logged are found too.

    Raises:
        BadInput: A test names no property, a day isn't valid, or a text isn't.
    """
    return Filter(
        folders=_filter_texts("folders", where.get("folders", ())),
        exclude_folders=_filter_texts("exclude_folders", where.get("exclude_folders", ())),
        tags=_filter_texts("tags", where.get("tags", ())),
        exclude_tags=_filter_texts("exclude_tags", where.get("exclude_tags", ())),
        properties=tuple(
            parse_property_test(each) for each in _filter_texts("properties", where.get("properties", ()))
        ),
        modified_from=parse_day("modified_from", where.get("modified_from", "")),
        modified_to=parse_day("modified_to", where.get("modified_to", "")),
        created_from=parse_day("created_from", where.get("created_from", "")),
        created_to=parse_day("created_to", where.get("created_to", "")),
        kinds=kinds,
        include_log=include_log,
    )


def parse_property_test(text: str) -> PropertyTest:
    """Parse a test of a property: ``name``, ``!name``, ``name=value``, ``name!=value``, ``name~part``, ``name!~part``.

    Raises:
        BadInput: It names no property.
    """
    sign = _OPERATOR.search(text, 1)  # the first one: a value may hold others
    if sign is not None and text[: sign.start()].strip():
        name, value = text[: sign.start()].strip(), text[sign.end() :].strip()
        return PropertyTest(name=name, op=_OPERATORS[sign.group()], value=value)
    name = text.removeprefix("!").strip()
    if not name:
        raise BadInput(
            f"'{text}' tests no property", hint="write name, !name, name=value, name!=value, name~part or name!~part"
        )
    return PropertyTest(name=name, op="missing" if text.startswith("!") else "exists")


def _filter_texts(name: str, values: Sequence[str]) -> tuple[str, ...]:
    items = (values,) if isinstance(values, str) else tuple(values)
    if len(items) > _MAX_TESTS:
        raise BadInput(f"{name} has {len(items)} items", hint=f"give at most {_MAX_TESTS}")
    return check_texts(name, items)


_NEEDS_PROPERTY: Final[frozenset[PropertyOp]] = frozenset({"contains", "equals", "exists", "is"})
_NOTE_KINDS: Final = ("note",)
_MAX_NAMES: Final = 10
"""Most names of a kind that are looked up."""


def missing_names(context: Context, where: Filter) -> Iterator[str]:
    """Yield a remark for each required tag and property that no visible note has."""
    for tag in where.tags[:_MAX_NAMES]:
        if not _has_tag(context, tag):
            yield f"no note has the tag #{tag.removeprefix('#')}: list_tags, or `knap tags`, lists them"
    for test in where.properties[:_MAX_NAMES]:
        if test.op in _NEEDS_PROPERTY and not has_property(context, test.name):
            yield f"no note has the property '{test.name}'"


def has_property(context: Context, name: str) -> bool:
    """Return whether some note has a property."""
    return context.index.catalog.is_set(name, context.restrict(Filter(kinds=_NOTE_KINDS)))


def _has_tag(context: Context, tag: str) -> bool:
    tag_filter = context.restrict(Filter(tags=(tag,), kinds=_NOTE_KINDS))
    return bool(context.index.catalog.find(ListingQuery(where=tag_filter, limit=1)).entries)

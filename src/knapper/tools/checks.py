"""Check what callers ask for: texts, days, folders."""

import datetime as dt
from collections.abc import Iterable, Sequence

from knapper.errors import BadInput, NotFound, RefusedError, StorageError
from knapper.index.catalog import ListingQuery
from knapper.index.filters import Filter
from knapper.tools.context import Context
from knapper.vault import files, paths
from knapper.vault.paths import NotePath

_ROOT = frozenset({"", ".", "/", "./"})
MOST = 10_000
"""Characters of a name or value that is looked for."""


def text(name: str, value: str) -> str:
    """Refuse what no note can hold.

    Args:
        name: The parameter's, for the message.
        value: Its value.

    Raises:
        BadInput: It isn't valid Unicode, or far too long.
    """
    try:
        value.encode()
    except UnicodeEncodeError:
        hint = "give it as UTF-8 text"
        raise BadInput(f"{name} isn't valid Unicode", hint=hint, code="not_unicode") from None
    if len(value) > MOST:
        raise BadInput(f"{name} is {len(value)} characters long", hint=f"give at most {MOST}")
    return value


def texts(name: str, values: Iterable[str]) -> tuple[str, ...]:
    """Check each of several texts."""
    return tuple(text(name, value) for value in values)


def named(name: str, value: str) -> str:
    """Check a text that mustn't be empty.

    Raises:
        BadInput: It is.
    """
    if not text(name, value).strip():
        raise BadInput(f"{name} is empty", hint="give its name")
    return value.strip()


def day(name: str, value: str, *, needed: bool = False) -> str:
    """Read a day such as ``2026-01-31``; empty stands for none.

    Raises:
        BadInput: It is no day, or missing where it is *needed*.
    """
    if not value and not needed:
        return ""
    try:
        return dt.date.fromisoformat(value).isoformat()
    except ValueError:
        hint = "write it like 2026-01-31"
        raise BadInput(f"{name} is no day: {paths.quote_path(value)}", hint=hint, code="invalid_date") from None


def folder(context: Context, raw: str) -> NotePath:
    """Read a folder as a caller wrote it, and give it as the vault has it; empty for the vault's own.

    Raises:
        BadInput: The text can be no path.
        NotFound: No visible folder is there (code ``no_such_folder``); the hint names the nearest.
        RefusedError: It lies out of the vault.
    """
    if raw.strip() in _ROOT:
        return NotePath("")
    path = paths.parse(raw, root=context.view.root)
    below = ListingQuery(where=context.restrict(Filter(folders=(path,))), limit=1)
    first = context.index.catalog.find(below).entries
    if first:
        return NotePath("/".join(first[0].path.split("/")[: path.count("/") + 1]))
    found = _empty(context, path)
    if found is None:
        near = files.nearest_paths(path, _names(context, path))
        hint = "nearest: " + ", ".join(map(repr, near)) if near else "explore_vault lists the folders"
        message = f"no folder {paths.quote_path(path)} in the vault"
        raise NotFound(message, hint=hint, code="no_such_folder", details={"nearest": near})
    return found


def _empty(context: Context, path: NotePath) -> NotePath | None:
    """Find a folder that holds nothing the client may see, but could."""
    if not context.view.visible(NotePath(f"{path}/note.md")):
        return None
    try:
        found = files.find_path(context.view.root, path, visible=context.view.visible)
    except (NotFound, RefusedError, StorageError):
        return None
    shown = context.view.visible(NotePath(f"{found.target}/note.md"))
    return found.path if found.file.is_dir() and shown else None


def _names(context: Context, path: NotePath) -> Sequence[str]:
    """Name the folders that a mistyped one may have meant: those around it, and those of the vault's top."""
    where = context.restrict(Filter())
    around = (paths.parent_folder(path), "") if "/" in path else ("",)
    return [each.path for at in around for each in context.index.catalog.folders(where, at)]

"""Find the files that a name may mean, as Obsidian does: by the end of a path, by title, by alias."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence

from knapper.index.tokenizer import segment
from knapper.vault import links, paths
from knapper.vault.paths import NotePath

Shows = Callable[[int], bool]
"""Tells from a file's id whether the client may see it."""


def find_named(connection: sqlite3.Connection, name: str, shows: Shows) -> list[NotePath]:
    """Return the visible files that a name may mean, by path.

    Those whose path ends with it come before the notes that have it as title or alias: these count only where there are
    none of the first kind.

    Args:
        connection: The index.
        name: A file's name with or without ``.md``, with or without folders; a title; an alias.
        shows: Asked for every file of that name, and for none besides.
    """

    def lookup(key: str) -> Sequence[NotePath]:
        rows = connection.execute("SELECT id, path FROM files WHERE name_key = ? ORDER BY path", (key,))
        return [NotePath(path) for i, path in rows if shows(i)]

    return sorted(links.find_named(name, lookup)) or _find_titled(connection, name, shows)


def _find_titled(connection: sqlite3.Connection, name: str, shows: Shows) -> list[NotePath]:
    """Return the visible notes with a title or alias, by path.

    Titles are a note's first heading, where that is of level 1, and its property ``title``.
    """
    key = paths.name_key(name.strip())
    ids = {int(i) for (i,) in connection.execute("SELECT file_id FROM aliases WHERE key = ?", (key,))}
    ids |= _ids_by_words(connection, name)
    visible_ids = [i for i in ids if shows(i)]
    rows = connection.execute(
        "SELECT path, title_row FROM files WHERE id IN (SELECT value FROM json_each(?)) ORDER BY path",
        (json.dumps(visible_ids),),
    )
    return [NotePath(path) for path, title_row in rows if key in _name_keys(title_row)]


def _ids_by_words(connection: sqlite3.Connection, name: str) -> set[int]:
    """Return the files in whose names the words of a name stand one after another."""
    phrase = segment(name.replace('"', " ").replace("\0", " ")).strip()
    if not any(map(str.isalnum, phrase)):
        return set()
    rows = connection.execute("SELECT rowid FROM title_words WHERE title_words MATCH ?", (f'aliases : "{phrase}"',))
    return {int(i) for (i,) in rows}


def _name_keys(title_row: str) -> set[str]:
    """Return the folded names of a note: its file's, its aliases and its titles."""
    if not title_row:
        return set()
    *_, names = json.loads(title_row)
    return {paths.name_key(each.strip()) for each in str(names).split("\n")}

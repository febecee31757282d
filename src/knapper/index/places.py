"""Tell where in a note the words of a query stand: in its title, in a heading, or only in its text."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Literal

from knapper.index import segment

Place = Literal["title", "heading", "content"]
_COLUMNS: Mapping[Place, str] = {"heading": "headings", "title": "title aliases"}


def of(connection: sqlite3.Connection, text: str, files: Sequence[int]) -> dict[int, Place]:
    """Give the best place that holds all words of a query; aliases count as titles.

    Args:
        connection: To the index.
        text: The query.
        files: Ids of the files that are asked about.
    """
    query = segment.terms(text)
    words = " AND ".join(term.expression() for term in (*query.words, *query.phrases))
    found: dict[int, Place] = dict.fromkeys(files, "content")
    for place, columns in _COLUMNS.items() if words else ():
        rows = connection.execute(
            "SELECT rowid FROM title_words WHERE title_words MATCH ? AND +rowid IN (SELECT value FROM json_each(?))",
            (f"{{{columns}}} : ({words})", json.dumps(list(files))),
        )
        found.update((int(i), place) for (i,) in rows)
    return found

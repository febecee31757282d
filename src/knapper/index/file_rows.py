"""Write what the index knows of a file beside its chunks."""

import json
import sqlite3
from dataclasses import asdict

from knapper.index import records, schema
from knapper.index.records import Record
from knapper.index.segment import segment
from knapper.vault import links, paths

_WAITING = "ai_edit"
"""The tag below each edit that waits for a person's word, as `knapper.vault.pending` reads it."""
_SEARCHED = "file_id = ? AND shape != 'list' AND item IS NOT NULL"
"""Properties that are asked for by a part of their text."""


def insert(connection: sqlite3.Connection, record: Record) -> int:
    """Make an empty row for a file that the index doesn't know, and give its id."""
    cursor = connection.execute(
        "INSERT INTO files (path, target, path_key, name_key, folder_key, kind, title, size, mtime_ns, racy, failed_ns,"
        " hash, created, modified, properties, problems, title_row, next_chunk)"
        " VALUES (?, ?, '', '', '', '', '', 0, 0, 0, 0, '', '', '', '', '', '', 0)",
        (record.path, record.stat.target or ""),
    )
    return int(cursor.lastrowid or 0)


def write(connection: sqlite3.Connection, file_id: int, record: Record, *, next_chunk: int) -> None:
    """Fill a file's row, and its rows in the tables beside it."""
    _replace_title(connection, file_id, record)
    connection.execute(
        "UPDATE files SET target = ?, path_key = ?, name_key = ?, folder_key = ?, kind = ?, title = ?, size = ?,"
        " mtime_ns = ?, racy = ?, failed_ns = ?, hash = ?, created = ?, modified = ?, properties = ?, problems = ?,"
        " next_chunk = ? WHERE id = ?",
        (
            record.stat.target or "",
            paths.name_key(record.path),
            link_key(record.path),
            paths.name_key(paths.parent_folder(record.path)),
            record.stat.kind,
            record.title,
            record.stat.size,
            record.stat.mtime_ns,
            record.racy,
            record.stat.ctime_ns if record.failed else 0,
            record.hash,
            record.created,
            record.modified,
            json.dumps(record.properties, ensure_ascii=False),
            json.dumps([asdict(problem) for problem in record.problems], ensure_ascii=False),
            next_chunk,
            file_id,
        ),
    )
    _replace_parts(connection, file_id, record)


def remove(connection: sqlite3.Connection, file_id: int) -> None:
    """Forget a file, all but its chunks."""
    _remove_title(connection, file_id)
    _remove_parts(connection, file_id)
    connection.execute("DELETE FROM files WHERE id = ?", (file_id,))


def link_key(target: str) -> str:
    """Give what links and files are matched by: the last part of a path without ``.md``, folded."""
    return links.lookup_key(target.replace("\\", "/").strip().rstrip("/").rsplit("/", 1)[-1].strip())


def _replace_parts(connection: sqlite3.Connection, file_id: int, record: Record) -> None:
    _remove_parts(connection, file_id)
    connection.executemany(
        "INSERT INTO links VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                file_id,
                k.kind,
                k.target,
                "" if k.kind == "external" else link_key(k.target),
                "#".join(k.headings),
                k.block,
                k.alias,
                k.line,
                k.key,
            )
            for k in record.links
        ],
    )
    connection.executemany(
        "INSERT INTO tags VALUES (?, ?, ?, ?)", [(file_id, paths.name_key(t.name), t.name, t.line) for t in record.tags]
    )
    connection.executemany(
        "INSERT INTO properties (file_id, key, name, shape, item, number) VALUES (?, ?, ?, ?, ?, ?)",
        [(file_id, *row) for row in records.items(record.properties)],
    )
    connection.execute(
        f"INSERT INTO property_grams (rowid, item) SELECT id, item FROM properties WHERE {_SEARCHED}", (file_id,)
    )
    connection.executemany(
        "INSERT INTO aliases VALUES (?, ?, ?)", [(file_id, a, paths.name_key(a)) for a in record.aliases]
    )
    connection.executemany("INSERT INTO headings VALUES (?, ?, ?, ?)", [(file_id, *row) for row in record.headings])


def _remove_parts(connection: sqlite3.Connection, file_id: int) -> None:
    connection.execute(
        "INSERT INTO property_grams (property_grams, rowid, item)"
        f" SELECT 'delete', id, item FROM properties WHERE {_SEARCHED}",
        (file_id,),
    )
    for table in schema.PER_FILE:
        connection.execute(f"DELETE FROM {table} WHERE file_id = ?", (file_id,))


def _replace_title(connection: sqlite3.Connection, file_id: int, record: Record) -> None:
    """Index title, aliases and headings; what was indexed is kept, since it is needed to take it out again."""
    row = [
        segment(record.title),
        segment("\n".join((*record.aliases, *record.names))),
        segment("\n".join((*(t for _, t, _ in record.headings), *_waiting(record)))),
    ]
    new = json.dumps([*row, "\n".join((record.title, *record.aliases, *record.names))], ensure_ascii=False)
    old = connection.execute("SELECT title_row FROM files WHERE id = ?", (file_id,)).fetchone()[0]
    if old == new:
        return
    _remove_title(connection, file_id)
    connection.execute("UPDATE files SET title_row = ? WHERE id = ?", (new, file_id))
    if record.stat.kind == "attachment":
        return
    title, aliases, headings, names = json.loads(new)
    connection.execute(
        "INSERT INTO title_words (rowid, title, aliases, headings) VALUES (?, ?, ?, ?)",
        (file_id, title, aliases, headings),
    )
    connection.execute("INSERT INTO name_grams (rowid, names) VALUES (?, ?)", (file_id, names))


def _waiting(record: Record) -> tuple[str, ...]:
    """Give the tag of edits that wait in a note as a word to find it by: its chunks hold the text without them."""
    return (_WAITING,) if any(tag.name == _WAITING for tag in record.tags) else ()


def _remove_title(connection: sqlite3.Connection, file_id: int) -> None:
    old, kind = connection.execute("SELECT title_row, kind FROM files WHERE id = ?", (file_id,)).fetchone()
    if not old or kind == "attachment":
        return
    title, aliases, headings, names = json.loads(old)
    connection.execute(
        "INSERT INTO title_words (title_words, rowid, title, aliases, headings) VALUES ('delete', ?, ?, ?, ?)",
        (file_id, title, aliases, headings),
    )
    connection.execute("INSERT INTO name_grams (name_grams, rowid, names) VALUES ('delete', ?, ?)", (file_id, names))

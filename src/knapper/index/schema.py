"""Lay out the index's SQLite file.

A chunk's id holds its file's id in the upper bits, so that a ranking knows the note of a row without looking it up,
and a filter on notes is a filter on row ids.
"""

import secrets
import sqlite3

from knapper.index.segment import TOKENIZER

VERSION = 6
"""Part of what an index is built with; another version is dropped and built anew."""

CHUNK_BITS = 20
"""Bits of a chunk id that count chunks within one file; ids aren't used twice."""

MAX_CHUNKS = 1 << CHUNK_BITS

TABLES = f"""
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE files (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  path TEXT NOT NULL UNIQUE,
  target TEXT NOT NULL,
  path_key TEXT NOT NULL,
  name_key TEXT NOT NULL,
  folder_key TEXT NOT NULL,
  kind TEXT NOT NULL,
  title TEXT NOT NULL,
  size INTEGER NOT NULL,
  mtime_ns INTEGER NOT NULL,
  racy INTEGER NOT NULL,
  failed_ns INTEGER NOT NULL,
  hash TEXT NOT NULL,
  created TEXT NOT NULL,
  modified TEXT NOT NULL,
  properties TEXT NOT NULL,
  problems TEXT NOT NULL,
  title_row TEXT NOT NULL,
  next_chunk INTEGER NOT NULL
);
CREATE INDEX files_path_key ON files (path_key);
CREATE INDEX files_name_key ON files (name_key);
CREATE INDEX files_folder ON files (folder_key, kind, path);
CREATE INDEX files_kind ON files (kind, path);
CREATE INDEX files_title ON files (kind, name_key, path);
CREATE INDEX files_saved ON files (kind, mtime_ns);
CREATE INDEX files_modified ON files (kind, modified, path);
CREATE INDEX files_created ON files (kind, created, path);
CREATE INDEX files_problems ON files (path) WHERE problems != '[]';

CREATE TABLE chunks (
  id INTEGER PRIMARY KEY,
  position INTEGER NOT NULL,
  kind TEXT NOT NULL,
  heading TEXT NOT NULL,
  path TEXT NOT NULL,
  start INTEGER NOT NULL,
  stop INTEGER NOT NULL,
  start_line INTEGER NOT NULL,
  end_line INTEGER NOT NULL,
  digest BLOB NOT NULL,
  text TEXT NOT NULL
);
CREATE INDEX chunks_digest ON chunks (digest);
CREATE INDEX chunks_log ON chunks (id) WHERE kind = 'log';

CREATE TABLE vectors (
  chunk_id INTEGER PRIMARY KEY, generation INTEGER NOT NULL, model TEXT NOT NULL, vector BLOB NOT NULL
);
CREATE INDEX vectors_generation ON vectors (generation);
CREATE TABLE waiting (chunk_id INTEGER PRIMARY KEY);
CREATE TABLE removed (generation INTEGER NOT NULL, chunk_id INTEGER NOT NULL);
CREATE INDEX removed_generation ON removed (generation);

CREATE TABLE links (
  file_id INTEGER NOT NULL, kind TEXT NOT NULL, target TEXT NOT NULL, target_key TEXT NOT NULL,
  headings TEXT NOT NULL, block TEXT NOT NULL, alias TEXT, line INTEGER NOT NULL, key TEXT NOT NULL
);
CREATE INDEX links_file ON links (file_id);
CREATE INDEX links_target ON links (target_key);

CREATE TABLE tags (file_id INTEGER NOT NULL, key TEXT NOT NULL, name TEXT NOT NULL, line INTEGER NOT NULL);
CREATE INDEX tags_file ON tags (file_id);
CREATE INDEX tags_key ON tags (key, name, file_id);

CREATE TABLE properties (
  id INTEGER PRIMARY KEY, file_id INTEGER NOT NULL, key TEXT NOT NULL, name TEXT NOT NULL, shape TEXT NOT NULL,
  item TEXT, number REAL
);
CREATE INDEX properties_file ON properties (file_id, key);
CREATE INDEX properties_key ON properties (key, item, shape, file_id, number);

CREATE TABLE aliases (file_id INTEGER NOT NULL, alias TEXT NOT NULL, key TEXT NOT NULL);
CREATE INDEX aliases_file ON aliases (file_id);
CREATE INDEX aliases_key ON aliases (key);

CREATE TABLE headings (file_id INTEGER NOT NULL, level INTEGER NOT NULL, title TEXT NOT NULL, line INTEGER NOT NULL);
CREATE INDEX headings_file ON headings (file_id);

CREATE VIRTUAL TABLE chunk_words USING fts5(title, heading, body, content='', tokenize="{TOKENIZER}");
CREATE VIRTUAL TABLE title_words USING fts5(title, aliases, headings, content='', tokenize="{TOKENIZER}");
CREATE VIRTUAL TABLE name_grams USING fts5(names, content='', tokenize='trigram');
CREATE VIRTUAL TABLE property_grams USING fts5(
  item, content='properties', content_rowid='id', columnsize=0, tokenize='trigram'
);
"""

STANDING = {"chunk_words": "temp.chunk_standing"}
"""Tables that tell where each word of a word index stands, by the index's name; each connection has its own."""

TEMPORARY = tuple(
    f"CREATE VIRTUAL TABLE {told} USING fts5vocab(main, {words}, instance)" for words, told in STANDING.items()
)

LOGGED = "SELECT id FROM chunks WHERE kind = 'log'"
"""Gives the ids of what the program logged; answered by an index of its own."""

PER_FILE = ("links", "tags", "properties", "aliases", "headings")
"""Tables that hold rows of one file under ``file_id``, replaced as a whole."""


def file_of(chunk_id: int) -> int:
    """Give the id of the file that a chunk belongs to."""
    return chunk_id >> CHUNK_BITS


def chunk_range(file_id: int) -> tuple[int, int]:
    """Give the half-open range of a file's chunk ids."""
    return file_id << CHUNK_BITS, (file_id + 1) << CHUNK_BITS


def create(connection: sqlite3.Connection) -> None:
    """Make all tables, empty."""
    for statement in TABLES.split(";"):
        if statement.strip():
            connection.execute(statement)
    connection.execute("INSERT INTO meta VALUES ('generation', '0'), ('uid', ?)", (new_uid(),))
    connection.execute(f"PRAGMA user_version = {VERSION}")


def drop(connection: sqlite3.Connection) -> None:
    """Drop all tables, virtual ones first: their shadow tables go with them."""
    rows = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY sql NOT LIKE 'CREATE VIRTUAL%'"
    )
    for (name,) in rows.fetchall():
        if not str(name).startswith("sqlite_"):
            connection.execute(f'DROP TABLE IF EXISTS "{name}"')


def new_uid() -> str:
    """Give an index an id, that of no other."""
    return secrets.token_hex(8)

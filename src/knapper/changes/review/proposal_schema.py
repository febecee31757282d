"""Lay out the tables of proposals."""

from knapper.changes.disk import blobs

VERSION = 3
SCHEMA = f"""
CREATE TABLE IF NOT EXISTS proposals (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    client TEXT NOT NULL,
    run TEXT NOT NULL,
    created TEXT NOT NULL,
    expires TEXT NOT NULL,
    status TEXT NOT NULL,
    reason TEXT NOT NULL,
    why TEXT NOT NULL,
    tainted INTEGER NOT NULL,
    by_query INTEGER NOT NULL,
    folders TEXT NOT NULL,
    notices TEXT NOT NULL,
    rewritten TEXT NOT NULL,
    scope TEXT,
    rejection TEXT NOT NULL DEFAULT '',
    superseded_by TEXT NOT NULL DEFAULT ''
);
CREATE TABLE IF NOT EXISTS files (
    proposal TEXT NOT NULL REFERENCES proposals(id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    path TEXT NOT NULL,
    kind TEXT NOT NULL,
    target TEXT,
    trash TEXT,
    base TEXT,
    before TEXT,
    content TEXT,
    needs TEXT NOT NULL,
    anchored INTEGER NOT NULL,
    cause TEXT NOT NULL,
    requests TEXT NOT NULL,
    state TEXT NOT NULL,
    stale TEXT,
    reason TEXT NOT NULL,
    edited INTEGER NOT NULL,
    PRIMARY KEY (proposal, number)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS hunks (
    proposal TEXT NOT NULL,
    file INTEGER NOT NULL,
    number INTEGER NOT NULL,
    origin TEXT NOT NULL,
    start INTEGER NOT NULL,
    stop INTEGER NOT NULL,
    new TEXT NOT NULL,
    state TEXT NOT NULL,
    stale TEXT,
    reason TEXT NOT NULL,
    edited INTEGER NOT NULL,
    PRIMARY KEY (proposal, file, number),
    FOREIGN KEY (proposal, file) REFERENCES files(proposal, number) ON DELETE CASCADE
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS acceptances (
    token TEXT PRIMARY KEY,
    proposal TEXT NOT NULL REFERENCES proposals(id) ON DELETE CASCADE,
    at TEXT NOT NULL,
    chosen TEXT NOT NULL,
    plain TEXT NOT NULL,
    expected TEXT NOT NULL,
    blocks TEXT NOT NULL,
    change TEXT
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS shown (
    proposal TEXT NOT NULL,
    file INTEGER NOT NULL,
    block TEXT NOT NULL,
    hunks TEXT NOT NULL,
    PRIMARY KEY (proposal, file, block),
    FOREIGN KEY (proposal, file) REFERENCES files(proposal, number) ON DELETE CASCADE
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS drawings (
    proposal TEXT NOT NULL,
    file INTEGER NOT NULL,
    block TEXT NOT NULL,
    texts TEXT NOT NULL,
    PRIMARY KEY (proposal, file, block),
    FOREIGN KEY (proposal, file) REFERENCES files(proposal, number) ON DELETE CASCADE
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS behalves (
    proposal TEXT PRIMARY KEY REFERENCES proposals(id) ON DELETE CASCADE,
    client TEXT NOT NULL
) WITHOUT ROWID;
CREATE VIEW IF NOT EXISTS items AS
    SELECT proposal, file, state, stale FROM hunks
    UNION ALL SELECT proposal, number, state, stale FROM files WHERE kind <> 'edit';
CREATE INDEX IF NOT EXISTS by_status ON proposals(status);
CREATE INDEX IF NOT EXISTS by_path ON files(path);
CREATE INDEX IF NOT EXISTS by_before ON files(before);
CREATE INDEX IF NOT EXISTS by_content ON files(content);
CREATE INDEX IF NOT EXISTS by_origin ON hunks(origin);
CREATE INDEX IF NOT EXISTS by_new ON hunks(new);
CREATE INDEX IF NOT EXISTS by_proposal ON acceptances(proposal);
{blobs.SCHEMA}
"""  # noqa: S608  # made of constants

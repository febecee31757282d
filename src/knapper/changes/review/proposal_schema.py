"""Lay out the tables of proposals."""

from knapper.changes.disk import blobs

VERSION = 1
SCHEMA = f"""
CREATE TABLE proposals (
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
CREATE TABLE files (
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
CREATE TABLE hunks (
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
CREATE TABLE acceptances (
    token TEXT PRIMARY KEY,
    proposal TEXT NOT NULL REFERENCES proposals(id) ON DELETE CASCADE,
    at TEXT NOT NULL,
    chosen TEXT NOT NULL,
    plain TEXT NOT NULL,
    expected TEXT NOT NULL,
    blocks TEXT NOT NULL,
    change TEXT
) WITHOUT ROWID;
CREATE TABLE shown (
    proposal TEXT NOT NULL,
    file INTEGER NOT NULL,
    block TEXT NOT NULL,
    hunks TEXT NOT NULL,
    PRIMARY KEY (proposal, file, block),
    FOREIGN KEY (proposal, file) REFERENCES files(proposal, number) ON DELETE CASCADE
) WITHOUT ROWID;
CREATE VIEW items AS
    SELECT proposal, file, state, stale FROM hunks
    UNION ALL SELECT proposal, number, state, stale FROM files WHERE kind <> 'edit';
CREATE INDEX by_status ON proposals(status);
CREATE INDEX by_path ON files(path);
CREATE INDEX by_before ON files(before);
CREATE INDEX by_content ON files(content);
CREATE INDEX by_origin ON hunks(origin);
CREATE INDEX by_new ON hunks(new);
CREATE INDEX by_proposal ON acceptances(proposal);
{blobs.SCHEMA}
"""  # noqa: S608  # made of constants

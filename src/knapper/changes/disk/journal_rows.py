"""Keep changes in the tables of the journal."""

import sqlite3
from collections.abc import Iterable

from knapper.changes.disk import blobs, records
from knapper.changes.disk.effects import Meta
from knapper.changes.disk.records import Change, Phase
from knapper.changes.disk.steps import Step


def add(database: sqlite3.Connection, change_id: str, at: str, meta: Meta, steps: Iterable[Step]) -> None:
    """Keep a change that is about to be made."""
    database.execute(
        "INSERT INTO changes (id, phase, at, client, run, reason, proposal) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (change_id, "staging", at, meta.client, meta.run, meta.reason, meta.proposal),
    )
    names = records.STEP_COLUMNS
    database.executemany(
        f"INSERT INTO steps (change, number, {names}) VALUES (?, ?{', ?' * len(names.split(', '))})",  # noqa: S608
        [(change_id, number, *records.step_row(step)) for number, step in enumerate(steps)],
    )
    database.executemany("INSERT INTO undoes VALUES (?, ?)", [(change_id, undone) for undone in meta.undoes])


def read(database: sqlite3.Connection, row: sqlite3.Row) -> Change:
    """Give the change of a row of the table ``changes``, with its steps."""
    found = database.execute("SELECT * FROM steps WHERE change = ? ORDER BY number", (row["id"],))
    return records.change(row, undoes=undoes(database, row["id"]), steps=map(records.step, found.fetchall()))


def undoes(database: sqlite3.Connection, change_id: str) -> list[str]:
    """List what a change took back."""
    found = database.execute("SELECT undone FROM undoes WHERE change = ?", (change_id,))
    return [row["undone"] for row in found.fetchall()]


def toggle(database: sqlite3.Connection, change_id: str) -> None:
    """Turn a change to undone or back, and what it had taken back itself the other way."""
    database.execute("UPDATE changes SET undone = 1 - undone WHERE id = ?", (change_id,))
    for inner in undoes(database, change_id):
        toggle(database, inner)


def set_phase(database: sqlite3.Connection, change_id: str, phase: Phase) -> None:
    """Note how far a change came."""
    database.execute("UPDATE changes SET phase = ? WHERE id = ?", (phase, change_id))


def drop(database: sqlite3.Connection, change_id: str) -> int:
    """Delete a change with its steps, and contents that nothing else names; tell how many stored bytes went."""
    rows = database.execute("SELECT before, after FROM steps WHERE change = ?", (change_id,)).fetchall()
    database.execute("DELETE FROM changes WHERE id = ?", (change_id,))
    return blobs.drop_unused(database, (name for row in rows for name in row))

"""Check the vault's index, and that changes of notes are seen."""

import contextlib
import sqlite3
import tempfile
import threading
from pathlib import Path

import watchfiles

from knapper import app
from knapper.cli.checks.places import failed
from knapper.cli.finding import Finding
from knapper.cli.render.amounts import count
from knapper.config import Settings
from knapper.errors import KnapError
from knapper.index import fulltext
from knapper.index.filters import Filter

_PATIENCE_MS = 3_000


def integrity(settings: Settings) -> Finding:
    """Open the index, and let SQLite look through it."""
    try:
        with app.open_vault(settings) as context:
            with context.index.store.database.snapshot() as connection:
                rows = connection.execute("PRAGMA quick_check(1)").fetchall()
                said = " ".join(str(rows[0][0]).split())
                if said != "ok":
                    return _damaged(said)
                fulltext.check_lengths(connection)
            status = context.index.status(context.restrict(Filter()))
            busy = context.index.is_being_filled
    except KnapError as error:
        return failed("index", error)
    except sqlite3.DatabaseError as error:
        return _damaged(str(error))
    hint = "it is being filled right now; look again later" if busy else "run `knap index`"
    if not status.complete:
        return Finding(name="index", state="warn", text="it isn't complete yet", hint=hint)
    text = f"{count(status.notes, 'note')}, {count(status.chunks, 'chunk')}"
    if status.pending:
        return Finding(name="index", state="warn", text=f"{text}, {status.pending} waiting for embedding", hint=hint)
    return Finding(name="index", state="ok", text=text)


def _damaged(why: str) -> Finding:
    return Finding(name="index", state="fail", text=f"it is damaged: {why}", hint="build it anew: `knap index --full`")


def rules(settings: Settings) -> Finding | None:
    """Tell which of the rules that hide files have no effect; None where all have."""
    try:
        with app.open_vault(settings) as context:
            problems = (*context.view.settings.problems, *context.view.ignore.problems)
    except KnapError:
        return None  # and another check tells
    if not problems:
        return None
    hint = "mend them: what they should hide is shown"
    return Finding(name="rules", state="warn", text="; ".join(problems), hint=hint)


def watching(settings: Settings) -> Finding:
    """Save a file in a folder of our own beside the state, and see whether the system tells."""
    try:
        with tempfile.TemporaryDirectory(dir=settings.state_dir, prefix="watch-") as folder:
            seen = _seen(Path(folder))
    except OSError as error:
        return Finding(
            name="watch", state="warn", text=f"it can't be tried: {error.strerror}", hint="see the line 'state'"
        )
    if seen:
        return Finding(name="watch", state="ok", text="changes are seen at once")
    hint = "search looks for changed files by itself; on network disks set WATCHFILES_FORCE_POLLING=true"
    return Finding(name="watch", state="warn", text="a saved file wasn't noticed", hint=hint)


def _seen(folder: Path) -> bool:
    stop = threading.Event()
    writer = threading.Thread(target=_save, args=(folder, stop))
    writer.start()
    try:
        changes = watchfiles.watch(
            folder, debounce=50, step=10, rust_timeout=_PATIENCE_MS, yield_on_timeout=True, watch_filter=None
        )
        return bool(next(changes, None))
    finally:
        stop.set()
        writer.join()


def _save(folder: Path, stop: threading.Event) -> None:
    """Save again and again: the watcher may start late."""
    number = 0
    while not stop.wait(0.05):
        number += 1
        with contextlib.suppress(OSError):  # a full disk is told by the check of the disk
            (folder / "note.md").write_text(str(number), encoding="utf-8")

"""Kill the indexer at random moments, again and again, and check that its index is never wrong.

    python -m tests.stress.index_kill --kills 100

Every kill is followed by a check of the database's own structure, then the index is opened again and must come to hold
exactly what one made from nothing holds.
"""

import argparse
import math
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from knapper.app.vault import open_embedder
from knapper.index import chunker
from knapper.index.engine import Engine
from knapper.index.models.base import EmbedderSettings
from knapper.vault.access import Policy
from knapper.vault.parser import content_hash
from knapper.vault.view import View
from tests.stress.vault import Garden

ROOT = Path(__file__).parents[2]
WORD_TABLES = ("chunk_words", "title_words", "name_grams")
Texts = Mapping[str, list[str]]
"""Chunks by note, in order."""


@dataclass(slots=True, kw_only=True)
class Result:
    """Count what happened."""

    kills: int = 0
    late: int = 0
    """The work had ended before the kill: these count for nothing."""
    compared: int = 0
    """Indexes that were compared with one made from nothing, words and vectors too."""
    corrupt: list[str] = field(default_factory=list[str])
    different: list[str] = field(default_factory=list[str])

    @property
    def good(self) -> bool:
        return not self.corrupt and not self.different


@dataclass(slots=True, kw_only=True)
class Trial:
    """Hold the vault, its index, and how long the indexer lives."""

    garden: Garden
    state: Path
    pick: random.Random
    windows: dict[str, float] = field(default_factory=lambda: {"new": 1.5, "full": 1.5, "update": 0.4})
    """Seconds within which a kill falls, by kind of work: about as long as the work takes."""
    texts: dict[tuple[str, str], list[str]] = field(default_factory=dict[tuple[str, str], list[str]])

    def kill_once(self, number: int) -> bool:
        """Change the vault, let an indexer work on it, and kill it; tells whether it was still at work."""
        kind = {3: "full", 7: "new"}.get(number % 10, "update")
        if kind == "new":
            shutil.rmtree(self.state, ignore_errors=True)
        self.garden.disturb(self.pick, self.pick.choice((3, 30, 200)))
        window = self.windows[kind]
        killed = _run_and_kill(self.garden.root, self.state, full=kind == "full", after_s=self.pick.uniform(0, window))
        self.windows[kind] = window * (1.08 if killed else 0.7)
        return killed

    def expected(self) -> Texts:
        """Give what an index of the vault has to hold."""
        view = _view(self.garden.root)
        found: dict[str, list[str]] = {}
        for stat in view.list_files():
            state = (stat.path, content_hash(view.read_bytes(stat.path)))
            if state not in self.texts:
                self.texts[state] = [chunk.text for chunk in chunker.read_file(view, stat)[1]]
            found[stat.path] = self.texts[state]
        return found


def run(
    folder: Path, *, kills: int, notes: int, seed: int = 1, compare_every: int = 10, until: float = math.inf
) -> Result:
    """Kill an indexer this many times.

    Args:
        folder: Empty; vault and index are made there.
        kills: How many must fall while the indexer is at work.
        notes: Size of the vault.
        seed: Of all that is random, but for the moments themselves.
        compare_every: After how many kills the index is also compared with a new one.
        until: When to stop before, by the monotonic clock.
    """
    pick = random.Random(seed)
    trial = Trial(garden=Garden.plant(folder / "vault", pick, notes), state=folder / "index", pick=pick)
    result = Result()
    while result.kills < kills and result.good and time.monotonic() < until:
        if not trial.kill_once(result.kills):
            result.late += 1
            continue
        result.kills += 1
        result.corrupt += broken(trial.state / "index.db")
        with engine(trial.garden.root, trial.state) as opened:
            opened.refresh()
            if held(trial.state) != trial.expected():
                result.different.append(f"after kill {result.kills}: {_first_difference(trial)}")
            if result.kills % compare_every == 0:
                opened.embed()
                result.compared += 1
                result.different += compare(trial.garden.root, trial.state, folder / "fresh")
    return result


def broken(database: Path) -> list[str]:
    """Let SQLite check the file, and FTS5 its tables; gives what is wrong."""
    if not database.exists():
        return []
    connection = sqlite3.connect(database, isolation_level=None)
    try:
        wrong = [str(row[0]) for row in connection.execute("PRAGMA integrity_check") if row[0] != "ok"]
        tables = [str(name) for (name,) in connection.execute("SELECT name FROM sqlite_master") if name in WORD_TABLES]
        for table in tables:
            connection.execute(f"INSERT INTO {table} ({table}) VALUES ('integrity-check')")
        if len(tables) == len(WORD_TABLES):
            wrong += _orphans(connection)
    except sqlite3.DatabaseError as error:
        return [str(error)]
    finally:
        connection.close()
    return wrong


def held(state: Path) -> Texts:
    """Read the texts that an index holds."""
    sql = (
        "SELECT f.path, c.text FROM files f LEFT JOIN chunks c ON c.id BETWEEN f.id << 20 AND ((f.id + 1) << 20) - 1"
        " ORDER BY f.id, position"
    )
    rows = _read(state, sql)
    found: dict[str, list[str]] = {}
    for path, text in rows:
        found.setdefault(str(path), []).extend([] if text is None else [str(text)])
    return found


def compare(root: Path, state: Path, fresh: Path) -> list[str]:
    """Compare an index, words and vectors too, with one made from nothing; gives what is different."""
    shutil.rmtree(fresh, ignore_errors=True)
    with engine(root, fresh) as opened:
        opened.refresh()
        opened.embed()
    questions = {
        "vectors": "SELECT f.path, c.position, v.model, v.vector FROM vectors v JOIN chunks c ON c.id = v.chunk_id"
        " JOIN files f ON f.id = c.id >> 20 ORDER BY 1, 2",
        "properties": "SELECT f.path, p.key, p.item FROM properties p JOIN files f ON f.id = p.file_id"
        " ORDER BY 1, 2, 3",
        "links": "SELECT f.path, l.target, l.line FROM links l JOIN files f ON f.id = l.file_id ORDER BY 1, 2, 3",
        "tags": "SELECT f.path, t.key, t.line FROM tags t JOIN files f ON f.id = t.file_id ORDER BY 1, 2, 3",
    }
    wrong = [name for name, sql in questions.items() if _read(state, sql) != _read(fresh, sql)]
    wrong += [table for table in WORD_TABLES if _words(state, table) != _words(fresh, table)]
    return [f"{name} aren't those of a new index" for name in wrong]


def engine(root: Path, state: Path) -> Engine:
    """Open the index of *root* in *state* with the default embedder."""
    return Engine(state, _view(root), open_embedder=lambda: open_embedder(EmbedderSettings()))


def _view(root: Path) -> View:
    return View.open(root, Policy(client="owner"))


def _run_and_kill(root: Path, state: Path, *, full: bool, after_s: float) -> bool:
    """Start an indexer, and kill it a while after it began; tells whether that came before its end."""
    command = [sys.executable, "-m", "tests.stress.index_kill", "--work", str(root), str(state)]
    with subprocess.Popen([*command, *(["--full"] if full else [])], cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        if process.stdout.readline() != b"begin\n":
            raise SystemExit(f"the indexer didn't start: {process.wait()}")
        time.sleep(after_s)
        process.kill()
        rest = process.stdout.read()
    return rest != b"end\n"


def _work(root: Path, state: Path, *, full: bool) -> None:
    _say("begin")
    with engine(root, state) as opened:
        opened.refresh(full=full)
        opened.embed()
    _say("end")


def _orphans(connection: sqlite3.Connection) -> list[str]:
    """Find words without chunks, chunks without words, and vectors and chunks of nothing."""
    kept = "SELECT id FROM chunks"
    named = "SELECT id FROM files WHERE kind != 'attachment'"
    pairs = {
        "words of chunks": (kept, "SELECT id FROM chunk_words_docsize"),
        "chunks that wait": (f"{kept} WHERE id NOT IN (SELECT chunk_id FROM vectors)", "SELECT chunk_id FROM waiting"),
        "words of titles": (named, "SELECT id FROM title_words_docsize"),
        "pieces of names": (named, "SELECT id FROM name_grams_docsize"),
    }
    wrong = [
        name
        for name, (left, right) in pairs.items()
        if connection.execute(
            f"SELECT * FROM ({left} EXCEPT {right}) UNION ALL SELECT * FROM ({right} EXCEPT {left})"
        ).fetchone()
    ]
    strays = "SELECT id >> 20 FROM chunks EXCEPT SELECT id FROM files"
    wrong += ["vectors"] if connection.execute(f"SELECT chunk_id FROM vectors EXCEPT {kept}").fetchone() else []
    wrong += ["chunks"] if connection.execute(strays).fetchone() else []
    return [f"{name} don't belong together" for name in wrong]


def _words(state: Path, table: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(state / "index.db")
    try:
        connection.execute(f"CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab(main, {table}, row)")
        return connection.execute("SELECT term, doc, cnt FROM vocabulary ORDER BY term").fetchall()
    finally:
        connection.close()


def _read(state: Path, sql: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(state / "index.db")
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def _first_difference(trial: Trial) -> str:
    found, wanted = held(trial.state), trial.expected()
    paths = sorted(found.keys() ^ wanted.keys()) or sorted(p for p in wanted if found[p] != wanted[p])
    return f"{len(paths)} notes, the first is {paths[0]}"


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--notes", type=int, default=1_500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work", nargs=2, type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--full", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        _work(*options.work, full=options.full)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        result = run(Path(folder), kills=options.kills, notes=options.notes, seed=options.seed)
    _say(f"{result.kills} kills, {result.late} too late, {result.compared} compared with a new index")
    for line in (*result.corrupt, *result.different):
        _say(line)
    _say("all good" if result.good else "WRONG")
    return 0 if result.good else 1


if __name__ == "__main__":
    sys.exit(main())

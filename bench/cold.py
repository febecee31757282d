"""Run the command line as whole processes, alone and beside a server that runs."""

import argparse
import os
import re
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench import vaults
from bench.frame import Goal, Report, Row
from bench.places import ROOT, Places
from knapper.server import addresses, credentials, terminal

SUMMARY = "the command line, from process start to its end"
_QUESTION = "how do I undo a change"
_MANY = 10_000
"""Notes of the vault in which names are completed."""
_HELP_MS = 100
_SEARCH_MS = 300
_READ_MS = 200
_SERVER_MS = 80
_HANG_MS = 300
_COMPLETION_MS = 150
_START_MS = 5_000
Command = Sequence[str | Path]


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=9, help="how often each is run (default: 9)")


def run(places: Places, options: argparse.Namespace) -> Report | str:
    docs = ROOT / "docs"
    knap = Path(sys.executable).with_name("knap.exe" if sys.platform == "win32" else "knap")
    if not knap.exists():
        return "there is no knap beside this Python; run scripts/setup"
    rounds = options.rounds
    with vaults.scratch(places.cache) as home:
        env = own_environment(home)
        search: Command = [knap, "--vault", docs, "search", _QUESTION]
        read: Command = [knap, "--vault", docs, "read", "index.md"]
        _run([knap, "--vault", docs, "index"], env)
        rows = [
            _row("python, doing nothing", [sys.executable, "-c", "pass"], None, env, rounds),
            _row("knap --help", [knap, "--help"], _HELP_MS, env, rounds),
            _row("knap search, words and meaning", search, _SEARCH_MS, env, rounds),
            _row("knap search --mode keyword", [*search, "--mode", "keyword"], None, env, rounds),
            _row("knap read", read, _READ_MS, env, rounds),
            _hang_row(home, rounds),
        ]
        serve: Command = [knap, "--vault", docs, "serve", "--port", "0"]
        with _serving(serve, env):
            rows += [
                _row("knap search, with a server", search, _SERVER_MS, env, rounds),
                _row("knap read, with a server", read, _SERVER_MS, env, rounds),
            ]
        rows.append(_start_row(serve, env, rounds))
        _fill_many(knap, home, env)
        rows.append(
            _row(
                f"a completion among {_MANY:,} notes",
                [knap, "__complete", "bash", "knap read Fo"],
                _COMPLETION_MS,
                env,
                rounds,
            )
        )
    notes = sum(1 for _ in docs.rglob("*.md"))
    about = (
        f"Each command {rounds} times, one after the other, files in the system's cache; the vault is the "
        f"documentation, {notes} notes. Asking a server that hangs is the whole time; the rest is the command's own "
        "processor time, on Windows the whole time."
    )
    return Report(title="Cold start", about=about, rows=rows)


def _row(name: str, command: Command, limit_ms: float | None, env: Mapping[str, str], rounds: int) -> Row:
    _ = _run(command, env)
    goal = Goal(limit=limit_ms) if limit_ms else None
    return Row(what=name, values=[_run(command, env)[0] for _ in range(rounds)], unit="ms", goal=goal, digits=0)


def _run(command: Command, env: Mapping[str, str]) -> tuple[float, float]:
    """Run a command; gives its processor time and the whole time, in ms."""
    begin, before = time.perf_counter(), children_s()
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    whole_s = time.perf_counter() - begin
    if done.returncode:
        sys.exit(f"bench: {command} failed:\n{done.stderr[-2000:]}")
    return (children_s() - before if sys.platform != "win32" else whole_s) * 1000, whole_s * 1000


def children_s() -> float:
    """Return how long processes have worked that this one started and that have ended; 0 on Windows."""
    if sys.platform == "win32":
        return 0.0
    import resource  # noqa: PLC0415 - Windows has none

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _hang_row(home: Path, rounds: int) -> Row:
    """Measure how long a command asks a server that takes connections and says nothing."""
    question: terminal.TerminalQuestion = {
        "tool": "search.search_vault",
        "arguments": {},
        "by_name": False,
        "only": False,
        "keeps_notices": False,
        "is_quiet": False,
        "options": {},
        "folder": str(home),
    }
    waits: list[float] = []
    with socket.create_server(("127.0.0.1", 0), backlog=100) as silent:
        _ = credentials.read_or_make_token(home / "state", "terminal")
        record = addresses.make_record(f"http://127.0.0.1:{silent.getsockname()[1]}", "silent")
        addresses.write_record(home / "state", record)
        for _ in range(rounds):
            begin = time.perf_counter()
            assert terminal.ask(str(home / "state"), question, {}) is None
            waits.append((time.perf_counter() - begin) * 1000)
        addresses.remove_record(home / "state", record)
    return Row(what="asking a server that hangs", values=waits, unit="ms", goal=Goal(limit=_HANG_MS), digits=0)


def _start_row(command: Command, env: Mapping[str, str], rounds: int) -> Row:
    """Measure the work until a server answers, such as one that its manager starts again after a kill."""
    waits: list[float] = []
    for _ in range(rounds):
        begin = time.perf_counter()
        with _serving(command, env) as pid:
            whole_s = time.perf_counter() - begin
            waits.append(1000 * min(whole_s, processor_s(pid) or whole_s))
    goal = Goal(limit=_START_MS)
    return Row(what="knap serve, from its start to its answers", values=waits, unit="ms", goal=goal, digits=0)


def processor_s(pid: int) -> float:
    """Return how long a process has worked so far; 0 where that can't be told."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def _serving(command: Command, env: Mapping[str, str]) -> Generator[int]:
    with subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            if not re.search(r"at http://", server.stderr.readline()):
                sys.exit("bench: the server didn't start")
            yield server.pid
        finally:
            server.terminate()
            _ = server.communicate()


def _fill_many(knap: Path, home: Path, env: Mapping[str, str]) -> None:
    """Make a vault whose index has many notes, without reading as many files: the rows of one note are repeated."""
    folder = home / "Many"
    folder.mkdir()
    (folder / "Note.md").write_text("#t0\n", encoding="utf-8")
    (home / "config.toml").write_text(f"[vaults.many]\npath = '{folder}'\n", encoding="utf-8")
    _ = _run([knap, "--vault", folder, "index", "--no-embed"], env)
    database = next(path for path in (home / "state").rglob("index.db") if "many" in path.parts[-3].lower())
    connection = sqlite3.connect(database)
    with connection:
        columns = [row[1] for row in connection.execute("PRAGMA table_info(files)") if row[1] != "id"]
        others = ", ".join(name for name in columns if name not in {"path", "path_key", "name_key", "folder_key"})
        connection.executemany(
            f"INSERT INTO files (path, path_key, name_key, folder_key, {others})"
            f" SELECT ?, ?, ?, ?, {others} FROM files LIMIT 1",
            [
                (f"Folder {n % 300}/Note {n}.md", f"folder {n % 300}/note {n}.md", f"note {n}", f"folder {n % 300}")
                for n in range(_MANY)
            ],
        )
    connection.close()


def own_environment(home: Path) -> dict[str, str]:
    """Keep the person's own settings and state out of it."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("KNAP_", "VAULT_"))}  # noqa: TID251
    return {**own, "KNAP_STATE_DIR": str(home / "state"), "KNAP_CONFIG": str(home / "config.toml")}

"""A state folder that the user can't write: what it holds is shown, and nothing in it changes."""

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Generator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from knapper import config
from knapper.agents.runs.model import RunLimits, RunNode, RunOrder
from knapper.agents.runs.store import RunStore
from knapper.agents.sessions.store import Exchange, SessionStore
from knapper.agents.work_store import WORK_FILE, open_work
from knapper.app.hub import Hub
from knapper.changes.drafts import Create
from knapper.changes.proposals import taint
from knapper.cli import main
from tests.agents import earlier_files
from tests.index import worlds

pytestmark = [
    pytest.mark.slow,  # starts a process for each command
    pytest.mark.timeout(120),
    pytest.mark.skipif(sys.platform != "linux", reason="root's rights are given up as Linux has it"),
]
STRANGER: Final = 65_534
"""The owner of the state: a program without rights can neither write what it owns nor change its mode."""
WITHOUT_RIGHTS: Final = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
if os.geteuid() == 0:  # root may write everywhere while it has its capabilities
    header, none = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    assert libc.capset(header, none) == 0
if len(sys.argv) > 2 and sys.argv[1] == "--probe":
    try:
        open(sys.argv[2] + "/probe", "x").close()
    except PermissionError:
        sys.exit(0)
    sys.exit("the folder can be written")
from knapper.cli import main
sys.exit(main.run(sys.argv[1:]))
"""
NOTES: Final = {"a.md": "# A\n\nalpha\n", "b.md": "# B\n\nbeta\n"}


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    """Leave a session with a turn, a run, a proposal and changes in a state."""
    root = worlds.fill(tmp_path / "vault", NOTES)
    assert main.run(["-v", str(root), "index", "--no-embed", "--quiet"]) == 0
    assert main.run(["-v", str(root), "rm", "b.md", "--quiet"]) == 0
    with Hub(config.load({"default_vault": str(root)})) as hub:
        writer = hub.context(client="agent").writer
        assert writer.submit([Create(path="new.md", content="proposed\n")]).proposal_id
    folder = folder_of(root)
    work = open_work(folder)
    sessions = SessionStore(work, lambda: datetime.now(UTC))
    session = sessions.begin(file="a.md", name="about alpha")
    turn = Exchange(
        number=1, at=datetime.now(UTC), question="what?", file="a.md", outcome={"answer": "alpha it is"}, messages="[]"
    )
    _ = sessions.append(session.id, 0, turn)
    runs = RunStore(work)
    _ = runs.begin(RunOrder(task="find alpha", limits=RunLimits()), "test:model", RunNode(id="1", task="find alpha"))
    work.shut()
    return root


def folder_of(root: Path) -> Path:
    return config.state_folder(config.load({"default_vault": str(root)}))


@contextlib.contextmanager
def closed(state: Path) -> Generator[None]:
    """Take the right to write, and to change modes, from whoever runs a test without root's rights."""
    paths = [state, *sorted(state.rglob("*"))]
    is_root = os.geteuid() == 0
    modes = [(path, path.stat().st_mode & 0o777) for path in paths]
    for path, _ in modes:
        path.chmod(0o555 if path.is_dir() else 0o444)
        if is_root:
            os.chown(path, STRANGER, STRANGER)
    try:
        yield
    finally:
        for path, mode in modes:
            if is_root:
                os.chown(path, 0, 0)
            path.chmod(mode)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT_RIGHTS, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def snapshot(state: Path) -> dict[str, tuple[int, int]]:
    statuses = {str(path.relative_to(state)): path.stat() for path in (state, *state.rglob("*"))}
    return {name: (status.st_mtime_ns, status.st_size) for name, status in statuses.items()}


def listed(root: Path, *arguments: str) -> Any:  # noqa: ANN401 - any JSON
    done = run("-v", str(root), *arguments, "--json")
    assert done.returncode == 0, (arguments, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    return json.loads(done.stdout)


def show_everything(root: Path) -> None:
    """Check that each command shows what the state holds."""
    (session,) = listed(root, "sessions")["results"]
    assert (session["name"], session["turns"], session["busy"]) == ("about alpha", 1, False)
    shown = listed(root, "sessions", "show", session["id"])
    assert shown["turns"][0]["outcome"]["answer"] == "alpha it is"
    (stored_run,) = listed(root, "run", "list")["results"]
    assert stored_run["task"] == "find alpha"
    assert listed(root, "run", "status", stored_run["id"])["id"] == stored_run["id"]
    assert listed(root, "run", "trace", "tree", stored_run["id"])
    (proposal,) = listed(root, "edits", "list")["results"]
    assert listed(root, "edits", "show", proposal["id"])["files"][0]["path"] == "new.md"
    (change,) = listed(root, "log")["results"]
    assert change["files"][0]["path"] == "b.md"
    assert listed(root, "search", "alpha", "--mode", "keyword")["results"]


def test_what_a_read_only_state_holds_is_shown(vault: Path) -> None:
    state = config.load().state_dir
    with closed(state):
        before = snapshot(state)
        assert run("--probe", str(state)).returncode == 0
        assert run("--probe", str(folder_of(vault))).returncode == 0
        show_everything(vault)
        after = snapshot(state)

    assert after == before


def test_what_earlier_versions_kept_is_shown_and_stays(vault: Path) -> None:
    folder, state = folder_of(vault), config.load().state_dir
    earlier_files.split(folder)
    for _ in range(2):
        with closed(state):
            before = snapshot(state)
            show_everything(vault)
            after = snapshot(state)

        assert after == before
        # An empty file is left where its making was cut short, or the disk was full.
        (folder / WORK_FILE).touch(0o600)
    show_everything(vault)

    assert not {"sessions.db", "task_runs.db"} & {path.name for path in folder.iterdir()}


def test_what_a_process_that_was_killed_left_in_its_logs_is_shown_too(vault: Path) -> None:
    """The last writes stand in the write-ahead logs alone, and nobody could take them over."""
    folder = folder_of(vault)
    killed = (
        "import os, sqlite3, sys\n"
        "for name, sql in zip(sys.argv[1::2], sys.argv[2::2]):\n"
        "    database = sqlite3.connect(name)\n"
        "    database.execute('PRAGMA wal_autocheckpoint = 0')\n"
        "    database.execute(sql)\n"
        "    database.commit()\n"
        "    globals()[name] = database\n"
        "os._exit(9)\n"
    )
    statements = {
        "work.db": "UPDATE sessions SET name = 'in the log'",
        "journal.db": "UPDATE changes SET reason = 'in the log'",
    }
    words = [word for name, sql in statements.items() for word in (str(folder / name), sql)]
    _ = subprocess.run([sys.executable, "-c", killed, *words], check=False)
    for name in statements:
        assert (folder / f"{name}-wal").stat().st_size
    for with_index in (True, False):
        for name in statements:
            if not with_index:
                (folder / f"{name}-shm").unlink()
        with closed(config.load().state_dir):
            before = snapshot(folder)
            (session,) = listed(vault, "sessions")["results"]
            (change,) = listed(vault, "log")["results"]
            after = snapshot(folder)

        assert (session["name"], change["reason"]) == ("in the log", "in the log")
        assert after == before


def test_a_state_in_which_nothing_was_ever_said_is_read_as_empty(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "vault", NOTES)
    assert main.run(["-v", str(root), "index", "--no-embed", "--quiet"]) == 0
    with closed(config.load().state_dir):
        for command in (["sessions"], ["run", "list"], ["edits", "list"], ["log"], ["history"]):
            done = run("-v", str(root), *command, "--json")
            assert (done.returncode, json.loads(done.stdout)["results"]) == (0, []), (command, done.stderr)


def test_a_state_of_an_earlier_version_is_read_as_it_is(vault: Path) -> None:
    state = config.load().state_dir
    with contextlib.closing(sqlite3.connect(state / taint.FILE)) as database:
        database.executescript(
            "DROP TABLE IF EXISTS taints; DROP TABLE IF EXISTS pruned;"
            "CREATE TABLE taints (client TEXT NOT NULL, run TEXT NOT NULL, at TEXT NOT NULL, source TEXT NOT NULL,"
            " PRIMARY KEY (client, run)) WITHOUT ROWID; PRAGMA user_version = 1;"
        )
    with contextlib.closing(sqlite3.connect(folder_of(vault) / "proposals.db")) as database:
        database.executescript("DROP TABLE decisions; PRAGMA user_version = 3;")
    with closed(state):
        assert listed(vault, "log")["results"]
        assert listed(vault, "edits", "list")["results"]
        assert listed(vault, "history")["results"]
        done = run("-v", str(vault), "trust", "--json")

    assert done.returncode == 0, done.stderr


def test_a_write_is_refused_and_changes_nothing(vault: Path) -> None:
    state = config.load().state_dir
    with closed(state):
        before = snapshot(state)
        done = run("-v", str(vault), "rm", "a.md")
        renamed = run("-v", str(vault), "sessions", "rename", "x", "y")
        after = snapshot(state)

    assert done.returncode != 0
    assert renamed.returncode != 0
    assert "Traceback" not in done.stderr + renamed.stderr
    assert (vault / "a.md").exists()
    assert after == before

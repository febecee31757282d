"""What a newcomer waits for: a server's start, its first answer, and its return after a kill."""

import argparse
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from bench import cold, vaults
from bench.frame import Goal, Report, Row
from bench.places import ROOT, Places
from knapper.server import addresses, credentials
from knapper.server.addresses import ServerRecord
from knapper.service.definition import MachineFacts, ServiceDefinition
from knapper.service.platforms import SystemdManager
from tests.service import test_real_systemd
from tests.service.test_killed import SupervisingRunner

SUMMARY = "a server's start, its first answer, and its return after kill -9"
_TAKEN_MS = 300
_BACK_S = 5
_WAIT_S = 120.0
KNAP = (sys.executable, "-P", "-m", "knapper.cli")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=9, help="how often each is done (default: 9)")


def run(places: Places, options: argparse.Namespace) -> Report | str:
    if sys.platform != "linux":
        return "the stand-in for a service manager is one for systemd"
    rounds: int = options.rounds
    with vaults.scratch(places.cache) as home:
        shutil.copytree(ROOT / "docs", home / "docs")
        env = cold.own_environment(home)
        (home / "config.toml").write_text(f"[vaults.docs]\npath = '{home / 'docs'}'\n", encoding="utf-8")
        subprocess.run([*KNAP, "index", "-q"], env=env, check=True)
        rows = [
            _taken_row(env, rounds),
            *_start_rows(home, env, rounds),
            *_kill_rows(home, env, rounds),
        ]
    remarks = [
        "The stand-in does what the unit says: ExecStart, Restart, RestartSec. It is in tests/service/supervisor.py."
    ]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        seen = test_real_systemd.live_under_systemd(Path(folder)) if shutil.which("systemctl") else "no systemctl"
    if isinstance(seen, str):
        remarks.append(f"The real systemd: left out, {seen}")
    else:
        rows.append(_back_row("kill -9 in the middle of a change, real systemd", seen["killed"]["waits"]))
        rows.append(_work_row("of that, the new server's processor time", seen["killed"]["work"]))
    notes = sum(1 for _ in (ROOT / "docs").rglob("*.md"))
    about = (
        f"The vault is the documentation, {notes} notes, indexed before; under the real systemd 100 notes of which one "
        f"change writes all. Each {rounds} times, one after the other, on a machine whose load stands below: whole "
        "times grow with it, processor times hardly."
    )
    return Report(title="Setting up", about=about, rows=rows, remarks=remarks)


def _taken_row(env: Mapping[str, str], rounds: int) -> Row:
    """Measure what it costs to be told that a port is taken."""
    values: list[float] = []
    with socket.create_server(("127.0.0.1", 0)) as taken:
        command = [*KNAP, "serve", "--port", str(taken.getsockname()[1])]
        for _ in range(rounds):
            before = cold.children_s()
            done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
            values.append(1000 * (cold.children_s() - before))
            assert "is taken by another program" in done.stderr, done.stderr
    goal = Goal(limit=_TAKEN_MS)
    return Row(what="a taken port is told, processor time", values=values, unit="ms", goal=goal, digits=0)


def _start_rows(home: Path, env: Mapping[str, str], rounds: int) -> list[Row]:
    """Measure the start of a server, until it answers and until it has answered a search."""
    answers: list[float] = []
    searches: list[float] = []
    work: list[float] = []
    for _ in range(rounds):
        begin = time.perf_counter()
        with _serving(home, env) as record:
            answers.append(time.perf_counter() - begin)
            _search(home, record)
            searches.append(time.perf_counter() - begin)
            work.append(1000 * cold.processor_s(record.pid))
    return [
        Row(what="knap serve, from its start to its answers", values=answers, unit="s"),
        Row(what="to the answer of the first search", values=searches, unit="s"),
        Row(what="the same, processor time", values=work, unit="ms", digits=0),
    ]


@contextmanager
def _serving(home: Path, env: Mapping[str, str]) -> Generator[ServerRecord]:
    with subprocess.Popen([*KNAP, "serve", "--port", "0"], env=env, stderr=subprocess.DEVNULL) as server:
        try:
            yield _wait_for_server(home, lambda record: record.pid == server.pid)
        finally:
            server.terminate()


def _wait_for_server(home: Path, fits: Callable[[ServerRecord], bool]) -> ServerRecord:
    stop = time.monotonic() + _WAIT_S
    while (record := addresses.find_server(home / "state")) is None or not fits(record):
        if time.monotonic() > stop:
            sys.exit("bench: no server answers")
        time.sleep(0.005)
    return record


def _search(home: Path, record: ServerRecord) -> None:
    """Ask for notes about a question, as a program does."""
    token = credentials.token_path(home / "state", "api").read_text(encoding="utf-8").strip()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    with closing(http.client.HTTPConnection(urlsplit(record.url).netloc, timeout=_WAIT_S)) as connection:
        connection.request("POST", "/tools/search_vault", json.dumps({"query": "how do I undo a change"}), headers)
        reply = json.loads(connection.getresponse().read())
    assert reply["results"], reply


def _kill_rows(home: Path, env: Mapping[str, str], rounds: int) -> list[Row]:
    """Measure how long a server is gone that is killed, under the stand-in for systemd."""
    facts = MachineFacts(system="linux", home=home, config=home / ".config", logs=home, user="ada", uid=os.getuid())
    environment = {
        **env,
        "XDG_CONFIG_HOME": str(home / ".config"),
        "SUPERVISOR_STATE": str(home / "manager"),
        "PYTHONPATH": str(ROOT),
    }
    manager = SystemdManager(machine=facts, runner=SupervisingRunner(environment))
    arguments = ("serve", "--as-service", "--port", "0")
    waits: list[float] = []
    work: list[float] = []
    manager.install(ServiceDefinition(program=KNAP, arguments=arguments, log_file=home / "log"))
    try:
        before = _wait_for_server(home, lambda record: record.service)
        for _ in range(rounds):
            killed = time.perf_counter()
            os.kill(before.pid, signal.SIGKILL)
            after = _wait_for_server(home, lambda record, before=before: record.instance != before.instance)
            waits.append(time.perf_counter() - killed)
            work.append(cold.processor_s(after.pid))
            before = after
    finally:
        manager.uninstall()
    return [
        _back_row("kill -9, until the next server answers, stand-in", waits),
        _work_row("of that, the new server's processor time", work),
    ]


def _back_row(what: str, waits: list[float]) -> Row:
    return Row(what=what, values=waits, unit="s", goal=Goal(limit=_BACK_S))


def _work_row(what: str, work: list[float]) -> Row:
    return Row(what=what, values=[1000 * each for each in work], unit="ms", digits=0)

"""Runs: killed at any point, they go on without paying again for what was done."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from knapper.agents.runs.model import ANSWERED
from knapper.agents.runs.store import RunStore
from knapper.agents.work_store import WORK_FILE, open_work
from tests.agents import run_server
from tests.agents.run_server import Served
from tests.agents.run_world import Brain, Part

PLANS = {
    "T": [Part("alpha", large=True), Part("beta"), Part("gamma", needs=["beta"])],
    "alpha": [Part("a one"), Part("a two", needs=["a one"])],
}
LEAVES = {"a one", "a two", "beta", "gamma"}
KILLS = 6

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL"),
]


def started(root: Path, server: Served, *args: str) -> "subprocess.Popen[bytes]":
    environment = {
        **os.environ,  # noqa: TID251 - a program of its own
        "VAULT_PATH": str(root),
        "KNAP_EMBEDDINGS": "none",
        "KNAP_MODEL": server.model,
        "KNAP_RUNS_CODE_MODE": "off",
    }
    command = [sys.executable, "-m", "knapper.cli", "run", *args]
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def state_of(own_home: Path) -> Path | None:
    return next((own_home / "state").rglob(WORK_FILE), None)


def answered(own_home: Path) -> tuple[str, set[tuple[str, str]]]:
    """Give the run, and what mustn't be asked again, as it stands on the disk."""
    file = state_of(own_home)
    if file is None:
        return "", set()
    work = open_work(file.parent)
    store = RunStore(work)
    try:
        found, _ = store.runs()
        nodes = store.nodes(found[0].id) if found else []
    finally:
        work.shut()
    done = {("join" if node.children else "answer", node.task) for node in nodes if node.state in ANSWERED}
    split = {(kind, node.task) for node in nodes if node.split is not None for kind in ("judge", "plan")}
    return found[0].id if found else "", done | split


def test_a_run_killed_at_any_point_goes_on_without_paying_again(tmp_path: Path, own_home: Path) -> None:
    root = tmp_path / "vault"
    root.mkdir()
    (root / "A.md").write_text("# A\n\nalpha beta gamma one two\n", encoding="utf-8")
    chance = random.Random(7)
    paid: list[set[tuple[str, str]]] = []
    run, done = "", set[tuple[str, str]]()

    with run_server.serving(Brain(plans=PLANS), wait_s=0.15) as server:
        for kills in range(KILLS + 1):
            server.asked.clear()
            with started(root, server, *(("resume", run) if run else ("T",))) as process:
                if kills < KILLS:
                    killed(process, server, chance)
            assert kills < KILLS or process.returncode == 0
            paid.append(set(server.asked) & done)
            run, done = answered(own_home)

    assert not any(paid)
    assert done >= {("answer", task) for task in LEAVES} | {("join", "T"), ("join", "alpha"), ("plan", "T")}


def killed(process: "subprocess.Popen[bytes]", server: Served, chance: random.Random) -> None:
    """Kill a run after a few requests to its model."""
    wanted, deadline = chance.randint(1, 3), time.monotonic() + 60
    while process.poll() is None and len(server.asked) < wanted and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(chance.uniform(0, 0.3))
    process.send_signal(signal.SIGKILL)
    _ = process.wait()

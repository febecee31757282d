"""`knap serve` as a process of its own, with a model on loopback: killed in runs, and beside `knap run`."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx2
import pytest

from tests.agents import run_server
from tests.agents.run_server import Served
from tests.agents.run_world import Brain, Part
from tests.index import worlds
from tests.server import servers
from tests.server.running import begun, heard

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]
PLANS = {
    "T": [Part("alpha", large=True), Part("beta"), Part("gamma", needs=["beta"])],
    "alpha": [Part("a one"), Part("a two", needs=["a one"])],
}


def config(server: Served) -> str:
    return f'[model]\nname = "{server.model}"\n\n[runs]\ncode_mode = "off"\n'


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    return worlds.fill(tmp_path / "vault", {"A.md": "# A\n\nalpha beta gamma one two\n"})


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_server_killed_in_a_run_goes_on_with_it_without_paying_again(vault: Path, own_home: Path) -> None:
    paid: list[tuple[str, str]] = []
    run_id, state, done = "", "", set[tuple[str, str]]()
    with run_server.serving(Brain(plans=PLANS)) as model:
        for kills in range(3):
            model.held_from = 3 if kills < 2 else 0  # so that it can't have ended when it is killed
            with servers.serving(vault, home=own_home, config=config(model)) as server, server.client() as client:
                if run_id:
                    assert client.get(f"/runs/{run_id}").json()["state"] == "interrupted"
                    model.asked.clear()
                    assert client.post(f"/runs/{run_id}/resume").status_code == 202
                else:
                    run_id = begun(client)
                if kills < 2:
                    wait_for(model, 3)
                    _ = server.stop(signal.SIGKILL)
                else:
                    state = heard(client, run_id)[-1].data["state"]
                    _ = server.stop()
            paid += [one for one in model.asked if one in done]
            done |= answered(own_home, run_id)

    assert state == "complete"
    assert paid == []
    assert ("join", "T") in done


def test_what_the_terminal_runs_is_followed_and_ended_over_http_and_the_other_way_round(
    vault: Path, own_home: Path
) -> None:
    with (
        run_server.serving(Brain(plans=PLANS), held_from=3) as model,
        servers.serving(vault, home=own_home, config=config(model)) as server,
        page(server, own_home) as client,
        knap(vault, "T") as typed,
    ):
        while not (rows := client.get("/runs").json()["results"]):
            time.sleep(0.05)
        wait_for(model, 3)
        told = client.post(f"/runs/{rows[0]['id']}/cancel").json()
        end = heard(client, rows[0]["id"])[-1]
        code = typed.wait(60)
        mine = begun(client, "alpha")
        with knap(vault, "cancel", mine, "--json") as asked:
            said = json.loads(asked.communicate(timeout=60)[0])
        after = heard(client, mine)[-1]
        _ = server.stop()

    assert (rows[0]["client"], rows[0]["is_live"], told["cancelled"]) == ("cli", True, True)
    assert (end.name, end.data["state"], code) == ("run_done", "cancelled", 130)
    assert (said["cancelling"], after.data["state"]) == (True, "cancelled")


def wait_for(model: Served, requests: int) -> None:
    deadline = time.monotonic() + 60
    while len(model.asked) < requests:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def answered(own_home: Path, run_id: str) -> set[tuple[str, str]]:
    """Give what mustn't be asked again, as it stands on the disk."""
    from knapper.agents.runs.model import ANSWERED  # noqa: PLC0415 - the one place that reads the files
    from knapper.agents.runs.store import RunStore  # noqa: PLC0415 - the same
    from knapper.agents.work_store import WORK_FILE, open_work  # noqa: PLC0415 - the same

    work = open_work(next((own_home / "state").rglob(WORK_FILE)).parent)
    try:
        nodes = RunStore(work).nodes(run_id)
    finally:
        work.shut()
    done = {("join" if node.children else "answer", node.task) for node in nodes if node.state in ANSWERED}
    return done | {(kind, node.task) for node in nodes if node.split is not None for kind in ("judge", "plan")}


def page(server: servers.Running, own_home: Path) -> httpx2.Client:
    token = next((own_home / "state").rglob("page.token")).read_text(encoding="ascii").strip()
    headers = {"authorization": f"Bearer {token}"}
    return httpx2.Client(base_url=server.address, headers=headers, timeout=30, trust_env=False, verify=False)


def knap(vault: Path, *args: str) -> "subprocess.Popen[str]":
    environment = {**os.environ, "KNAP_EMBEDDINGS": "none"}  # noqa: TID251 - a program of its own
    command = [*servers.KNAP, "run", "--vault", str(vault), *args]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")

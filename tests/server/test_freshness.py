"""`knap serve` as a process: what was saved 10 to 30 ms ago is found, over HTTP and by a command beside it."""

import datetime as dt
import json
import os
import random
import subprocess
import time
from pathlib import Path

import pytest

from tests.index import worlds
from tests.server import apps, servers
from tests.server.servers import KNAP

pytestmark = pytest.mark.timeout(120)


def wait_until_followed(state: Path) -> None:
    deadline = time.monotonic() + 60
    while not list(state.glob("**/watch.beat")):
        assert time.monotonic() < deadline, "the watcher didn't begin"
        time.sleep(0.02)


def test_fifty_saves_are_found_or_the_answer_says_that_it_may_miss_them(
    tmp_path: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault = worlds.fill(tmp_path / "vault", dict(apps.NOTES))
    monkeypatch.setenv("KNAP_STATE_DIR", str(own_home / "state"))
    seen: list[tuple[bool, bool]] = []
    with servers.serving(vault, home=own_home) as server, server.client() as client:
        wait_until_followed(own_home / "state")
        for number in range(50):
            saved = dt.datetime.now().astimezone()
            (vault / f"Saved {number % 7}.md").write_text(f"zqsaved{number}x\n", encoding="utf-8")
            time.sleep(random.uniform(0.01, 0.03))
            query = {"query": f"zqsaved{number}x", "mode": "keyword"}
            answer = client.post("/tools/search_vault", json=query).json()
            seen.append((bool(answer["results"]), answer["index_stale"]))
            assert answer["index_stale"] or dt.datetime.fromisoformat(answer["as_of"]) >= saved
        (vault / "Saved last.md").write_text("zqlast\n", encoding="utf-8")
        beside = subprocess.run(
            [*KNAP, "--vault", str(vault), "--json", "search", "zqlast"],
            env={**os.environ, "KNAP_EMBEDDINGS": "none"},  # noqa: TID251 - a process gets this one's environment
            capture_output=True,
            check=False,
        )
        _ = server.stop()

    assert [one for one in seen if one == (False, False)] == []
    assert sum(found for found, _ in seen) > 25
    found = json.loads(beside.stdout)
    assert found["index_stale"] or found["results"]

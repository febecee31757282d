"""Kill a server at random moments while many runs are under way, and check that none is lost, repeated or unpaid.

    python -m tests.stress.job_kills --kills 100

The model is played on loopback and counts what it is asked. After each kill the store is read: what it holds as
answered mustn't be asked again, and what was asked must have been written down, but for what was under way then.
"""

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import httpx2

from knapper.agents.runs.model import ANSWERED
from knapper.agents.runs.store import open_run_store
from tests.agents import run_server
from tests.agents.run_server import Served
from tests.agents.run_world import Brain, Part
from tests.index import worlds
from tests.server import servers

_PARALLEL = 4
_TOKENS = 1_000_000


@dataclass(slots=True, kw_only=True)
class Result:
    """Count what happened."""

    kills: int = 0
    runs: int = 0
    requests: int = 0
    """What the model was asked."""
    accounted: int = 0
    """Of these, what the runs' own records hold."""
    most_unaccounted: int = 0
    """How many requests may have been under way at the kills."""
    lost: list[str] = field(default_factory=list[str])
    repeated: list[str] = field(default_factory=list[str])

    @property
    def good(self) -> bool:
        return not self.lost and not self.repeated and self.requests - self.accounted <= self.most_unaccounted


@dataclass(slots=True, kw_only=True)
class _World:
    home: Path
    vault: Path
    model: Served
    jobs: int
    result: Result = field(default_factory=Result)
    answered: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    runs: list[str] = field(default_factory=list[str])
    batches: int = 0

    def begin(self, client: httpx2.Client) -> None:
        """Begin as many runs as there are to be at once, of tasks that no run had."""
        for number in range(self.jobs):
            task = f"Job {self.batches}-{number}"
            self.model.brain.plans = {
                **self.model.brain.plans,
                task: [Part(f"{task} a", large=True), Part(f"{task} b"), Part(f"{task} c", needs=[f"{task} b"])],
                f"{task} a": [Part(f"{task} a1"), Part(f"{task} a2", needs=[f"{task} a1"])],
            }
            made = client.post("/runs", json={"task": task})
            if made.status_code != 202:
                raise RuntimeError(made.text)
            self.runs.append(str(made.json()["id"]))
        self.batches += 1

    def resume(self, client: httpx2.Client) -> int:
        """Resume what was interrupted; return how many runs aren't complete."""
        unfinished = 0
        for run in self.runs[-self.jobs :]:
            state = client.get(f"/runs/{run}").json()["state"]
            unfinished += state != "complete"
            if state == "interrupted":
                client.post(f"/runs/{run}/resume").raise_for_status()
        return unfinished

    def read(self) -> None:
        """Note what is answered on the disk, after checking what was asked since the last time."""
        asked, self.model.asked[:] = list(self.model.asked), []
        self.result.requests += len(asked)
        self.result.repeated += [f"{kind} {task}" for kind, task in asked if (kind, task) in self.answered]
        file = next((self.home / "state").rglob("task_runs.db"))
        store = open_run_store(file.parent)
        try:
            for run in self.runs[-self.jobs :]:
                for node in store.nodes(run):
                    if node.state in ANSWERED:
                        self.answered.add(("join" if node.children else "answer", node.task))
                    if node.split is not None:
                        self.answered |= {(kind, node.task) for kind in ("judge", "plan")}
        finally:
            store.shut()


def run(folder: Path, *, kills: int = 100, jobs: int = 8, seed: int = 1) -> Result:
    """Kill a server so often, each time with so many runs under way or less."""
    pick = random.Random(seed)
    vault = worlds.fill(folder / "vault", {f"{n}.md": f"# Note {n}\n\nJob a b c one two\n" for n in range(20)})
    home = folder / "home"
    home.mkdir()
    own = {"KNAP_STATE_DIR": str(home / "state"), "KNAP_CONFIG": str(home / "config.toml")}
    os.environ.update(own)  # noqa: TID251 - the server's own
    with run_server.serving(Brain(), wait_s=0.05) as model:
        world = _World(home=home, vault=vault, model=model, jobs=jobs)
        config = (
            f'[model]\nname = "{model.model}"\n\n[runs]\ncode_mode = "off"\nparallel = {_PARALLEL}\n'
            f"tokens = {_TOKENS}\n\n[server]\nrequests_per_minute = 100000\n"
        )
        while True:
            with servers.serving(vault, home=home, config=config) as server, server.client() as client:
                unfinished = world.resume(client) if world.runs else 0
                if not unfinished and world.result.kills < kills:
                    world.begin(client)
                if world.result.kills == kills:
                    _finish(world, client)
                    server.stop()
                    world.read()
                    return world.result
                time.sleep(pick.uniform(0.05, 2.0))
                server.stop(signal.SIGKILL)
            world.read()
            world.result.kills += 1
            world.result.most_unaccounted += jobs * _PARALLEL


def _finish(world: _World, client: httpx2.Client) -> None:
    """Let all runs end, and compare what they came to with what they were to."""
    deadline = time.monotonic() + 300
    while world.resume(client) and time.monotonic() < deadline:
        time.sleep(0.5)
    for run in world.runs:
        row = client.get(f"/runs/{run}").json()
        if row["state"] != "complete":
            world.result.lost.append(f"{run} is {row['state']}")
        world.result.accounted += int(row["usage"]["requests"])
    world.result.runs = len(world.runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sys.stdout.write(str(run(Path(folder), kills=options.kills, jobs=options.jobs, seed=options.seed)))


if __name__ == "__main__":
    main()

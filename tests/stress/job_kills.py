"""Kill a server at random moments while chats, tasks and runs are under way: none may be lost, repeated or unpaid.

    python -m tests.stress.job_kills --kills 100

The model is played on loopback and counts what it is asked. After each kill the stores are read: what they hold as
answered mustn't be asked again, and what was asked must have been written down, but for what was under way then.

A run goes on where it was. The answers of chats and tasks are stored at their end alone, so that one that was cut
short is asked again by its client, which sees that its session holds nothing of it; what its replies cost is in the
account as soon as they have arrived.
"""

import argparse
import os
import random
import sys
import tempfile
import time
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import httpx2

from knapper.agents.model import usage
from knapper.agents.runs.model import ANSWERED
from knapper.agents.runs.store import RunStore
from knapper.agents.work_store import WORK_FILE, open_work
from tests.agents import run_server
from tests.agents.run_server import Served
from tests.agents.run_world import Brain, Part
from tests.index import worlds
from tests.server import servers

_PARALLEL = 4
_TOKENS = 100_000_000
"""A limit of each run; never reached."""
_RUNS = 8
"""More, a server doesn't take at once."""
_REPLY_S = 1.5
"""How long the model takes for a reply, so that every kill comes while requests are under way."""
_CALL_S = 120.0
"""How long a server may take for a call: it imports the models at the first one, on a machine that others use, too."""
_JUST_S = 0.1
"""A reply that is written so short before a kill may not have been read yet."""


@dataclass(slots=True, kw_only=True)
class Result:
    """Count what happened."""

    kills: int = 0
    runs: int = 0
    requests: int = 0
    """What the model was asked."""
    accounted: int = 0
    """Of these, what the account holds."""
    most_unaccounted: int = 0
    """How many requests were under way at the kills, as the model's server counted them."""
    turns: int = 0
    """Chats and tasks."""
    lost: list[str] = field(default_factory=list[str])
    repeated: list[str] = field(default_factory=list[str])

    @property
    def good(self) -> bool:
        return not self.lost and not self.repeated and self.requests - self.accounted <= self.most_unaccounted


class _JobBrain(Brain):
    """Answer chats and tasks, too."""

    def said(self, kind: str, task: str) -> str:
        return '{"answer": "Yes."}' if kind == "unknown" else super().said(kind, task)


@dataclass(slots=True, kw_only=True)
class _Turn:
    """A chat's turn or a task, in a session of its own."""

    kind: str
    session: str
    subjects: list[str] = field(default_factory=list[str])
    """What it is accounted under, once for each time that it was begun."""
    is_kept: bool = False

    def begin(self, client: httpx2.Client) -> None:
        if self.kind == "chat":
            told = client.post(f"/sessions/{self.session}/chat/stream", json={"message": "Is it?", "wait": 0})
            self.subjects = [self.session]
        else:
            order = {"task": "Is it?", "note": "0.md", "scout": False, "session_id": self.session, "wait": 0}
            told = client.post("/ask/stream", json=order)
            self.subjects.append(str(told.raise_for_status().json()["events"][0]["data"]["run_id"]))
        _ = told.raise_for_status()


@dataclass(slots=True, kw_only=True)
class _World:
    home: Path
    vault: Path
    model: Served
    jobs: int
    result: Result = field(default_factory=Result)
    answered: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    runs: list[str] = field(default_factory=list[str])
    turns: list[_Turn] = field(default_factory=list[_Turn])
    batches: int = 0

    def begin_turns(self, client: httpx2.Client) -> None:
        """Begin chats and tasks, one half each, beside the runs."""
        for number in range(self.jobs - self.runs_at_once):
            session = client.post("/sessions", json={"title": f"{self.batches}-{number}"}).raise_for_status().json()
            turn = _Turn(kind="task" if number % 2 else "chat", session=str(session["session"]["id"]))
            self.turns.append(turn)
            turn.begin(client)

    @property
    def runs_at_once(self) -> int:
        return min(_RUNS, self.jobs)

    def go_on(self, client: httpx2.Client) -> int:
        """Ask again what was cut short, and return how many aren't kept; note what is gone, or kept twice."""
        open_turns = 0
        for turn in self.turns[-(self.jobs - self.runs_at_once) :] if self.turns else ():
            told = client.get(f"/sessions/{turn.session}").raise_for_status().json()
            if told["total"] > 1:
                self.result.repeated.append(f"{turn.kind} in {turn.session}")
            if turn.is_kept and not told["total"]:
                self.result.lost.append(f"the answer of a {turn.kind} in {turn.session}")
            turn.is_kept = turn.is_kept or told["total"] > 0
            if not turn.is_kept and not told["session"]["busy"]:
                turn.begin(client)
            open_turns += not turn.is_kept
        return open_turns

    def begin(self, client: httpx2.Client) -> None:
        """Begin as many runs as there are to be at once, of tasks that no run had."""
        for number in range(self.runs_at_once):
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
        for run in self.runs[-self.runs_at_once :]:
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
        file = next((self.home / "state").rglob(WORK_FILE))
        work = open_work(file.parent)
        store = RunStore(work)
        try:
            for run in self.runs[-self.runs_at_once :]:
                for node in store.nodes(run):
                    if node.state in ANSWERED:
                        self.answered.add(("join" if node.children else "answer", node.task))
                    if node.split is not None:
                        self.answered |= {(kind, node.task) for kind in ("judge", "plan")}
        finally:
            work.shut()


def run(folder: Path, *, kills: int = 100, jobs: int = 50, seed: int = 1, minutes: float = 0) -> Result:
    """Kill a server so often, each time with so many jobs under way or less: eight runs, the rest chats and tasks.

    After so many minutes no more kills follow; 0 for no end but theirs.
    """
    until = time.monotonic() + minutes * 60 if minutes else float("inf")
    pick = random.Random(seed)
    vault = worlds.fill(folder / "vault", {f"{n}.md": f"# Note {n}\n\nJob a b c one two\n" for n in range(20)})
    home = folder / "home"
    home.mkdir()
    own = {"KNAP_STATE_DIR": str(home / "state"), "KNAP_CONFIG": str(home / "config.toml")}
    os.environ.update(own)  # noqa: TID251 - the server's own
    with run_server.serving(_JobBrain(), wait_s=_REPLY_S) as model:
        world = _World(home=home, vault=vault, model=model, jobs=jobs)
        config = (
            f'[model]\nname = "{model.model}"\n\n[runs]\ncode_mode = "off"\n'
            f"parallel = {_PARALLEL}\ntokens = {_TOKENS}\n\n[server]\nrequests_per_minute = 100000\n"
        )
        while True:
            with servers.serving(vault, home=home, config=config) as server, server.client(timeout_s=_CALL_S) as client:
                unfinished = (world.resume(client) if world.runs else 0) + world.go_on(client)
                is_last = world.result.kills == kills or time.monotonic() > until
                if not unfinished and not is_last:
                    world.begin(client)
                    world.begin_turns(client)
                if is_last:
                    _finish(world, client)
                    server.stop()
                    world.read()
                    return world.result
                time.sleep(pick.uniform(0.05, 2.0))
                server.process.kill()
                world.result.most_unaccounted += model.under_way(_JUST_S)
                _ = server.wait()
            world.read()
            world.result.kills += 1


def _finish(world: _World, client: httpx2.Client) -> None:
    """Let all runs end, and compare what they came to with what they were to."""
    deadline = time.monotonic() + 300
    while world.resume(client) + world.go_on(client) and time.monotonic() < deadline:
        time.sleep(0.5)
    world.result.lost += [f"the {turn.kind} in {turn.session}" for turn in world.turns if not turn.is_kept]
    for run in world.runs:
        row = client.get(f"/runs/{run}").json()
        if row["state"] != "complete":
            world.result.lost.append(f"{run} is {row['state']}")
    world.result.runs, world.result.turns = len(world.runs), len(world.turns)
    account = next((world.home / "state").rglob("usage.db")).parent
    meter = usage.open_meter(account, usage.SpendingLimits(), datetime.now)
    try:
        for subject in {*world.runs, *(subject for turn in world.turns for subject in turn.subjects)}:
            world.result.accounted += meter.of_run(subject).requests
    finally:
        meter.shut()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sys.stdout.write(str(run(Path(folder), kills=options.kills, jobs=options.jobs, seed=options.seed)))


if __name__ == "__main__":
    main()

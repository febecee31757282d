"""Measure the processor time of a chat's turn, a scout's round and a run's node beside that of an older commit."""

import argparse
import io
import itertools
import json
import os
import re
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2

from bench import frame, load, vaults
from bench.frame import Report, Row
from bench.places import ROOT, Places
from tests.agents import protocol
from tests.agents.protocol import Reply
from tests.agents.run_world import Brain, Part, what
from tests.agents.scripted import Call

SUMMARY = "processor time of a chat's turn, a scout's round and a run's node, beside that of an older commit"
_OLD = "df2feb37"
"""The last commit before chats, the scout and the web search had one loop."""
_LOCK = "requirements.lock"
_ROUNDS = 5
_NOTES = 200
_CALLS = {
    "search_vault": {"query": "beans in the garden"},
    "search_keyword": {"query": "beans"},
    "read_file": {"path": "1.md"},
}
"""What the model calls in each round, as far as it is offered."""
_PARTS = 3


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--old", default=_OLD, help=f"the other commit (default: {_OLD}, the last one with two loops)")
    parser.add_argument("--blocks", type=int, default=8, help="blocks of each commit, in the order ABBA (default: 8)")
    parser.add_argument("--turns", type=int, default=10, help="turns, tasks and runs of a block (default: 10)")


def run(places: Places, options: argparse.Namespace) -> Report:
    with vaults.scratch(places.cache) as work, ExitStack() as stack:
        model = stack.enter_context(_model())
        old = _unpack(work, options.old)
        commits = {
            "before": (_python(places, options.old, old), old / "src"),
            "now": (Path(sys.executable), ROOT / "src"),
        }
        sides = {name: stack.enter_context(_serving(work, name, commit, model)) for name, commit in commits.items()}
        found: dict[str, dict[str, list[float]]] = {}
        for what_runs in (_chat, _scout, _run):
            found[what_runs.__name__] = _alternate(sides, what_runs, options)
    rows: list[Row] = []
    for name, title in (("_chat", "a chat's turn"), ("_scout", "a scout's round"), ("_run", "a run's node")):
        before, now = found[name]["before"], found[name]["now"]
        rows += [
            Row(what=f"{title}, {options.old}", values=before, unit="ms"),
            Row(what=f"{title}, now", values=now, unit="ms"),
            Row(
                what=f"{title}, now less before",
                values=[100 * (new - old) / old for old, new in zip(before, now, strict=True)],
                unit="%",
            ),
        ]
    about = (
        f"Processor time of the server's process, user and system, over HTTP, with a model that is played in another "
        f"process and answers at once; a vault of {_NOTES} notes. A turn of a chat has {_ROUNDS} rounds of up to "
        f"{len(_CALLS)} calls, and so has the scout of a task, whose time is divided by its rounds, with the task's "
        f"own request in it; a run has {_PARTS + 1} nodes. {options.blocks} blocks of {options.turns} for each commit, "
        f"in the order ABBA, both servers up all the time."
    )
    return Report(title="Loops", about=about, rows=rows)


@dataclass(kw_only=True)
class _Side:
    """One commit's server."""

    server: load.Server
    client: httpx2.Client
    numbers: "itertools.count[int]" = field(default_factory=itertools.count)


_Work = Callable[[_Side], int]
"""Does a piece of work, and returns by how many its time is to be divided."""


def _alternate(sides: dict[str, _Side], work: _Work, options: argparse.Namespace) -> dict[str, list[float]]:
    """Give the processor time of a piece, in ms, for each block of each side."""
    found: dict[str, list[float]] = {name: [] for name in sides}
    for side in sides.values():
        for _ in range(3):
            work(side)
    names = list(sides)
    for block in range(options.blocks):
        for name in names if block % 2 == 0 else reversed(names):
            side = sides[name]
            before, pieces = side.server.processor_s(), 0
            for _ in range(options.turns):
                pieces += work(side)
            found[name].append(1000 * (side.server.processor_s() - before) / pieces)
        frame.say(f"{work.__name__.strip('_')}: block {block + 1} of {options.blocks}")
    return found


def _chat(side: _Side) -> int:
    session = side.client.post("/sessions").raise_for_status().json()["session"]["id"]
    told = side.client.post(f"/sessions/{session}/chat", json={"message": "What grows?"}).raise_for_status().json()
    _check(told["response"] == "Beans.", told)
    return 1


def _scout(side: _Side) -> int:
    order = {"task": f"What grows? {next(side.numbers)}", "note": "0.md", "scout": True}
    told = side.client.post("/ask", json=order).raise_for_status().json()
    rounds = int(told["pipeline"]["scout"]["rounds"])
    _check(rounds >= _ROUNDS, told)
    return rounds


def _run(side: _Side) -> int:
    task = f"Job {next(side.numbers)}"
    made = side.client.post("/runs", json={"task": task, "code_mode": False}).raise_for_status().json()
    _ = side.client.get(f"/runs/{made['id']}/events").raise_for_status()
    ended = side.client.get(f"/runs/{made['id']}").raise_for_status().json()
    _check(ended["state"] == "complete" and len(ended["nodes"]) == _PARTS + 1, ended)
    return len(ended["nodes"])


def _check(holds: bool, told: dict[str, Any]) -> None:  # noqa: FBT001
    if not holds:
        raise SystemExit(f"bench: not what was to come: {json.dumps(told)[:2000]}")


def _unpack(work: Path, commit: str) -> Path:
    """Unpack the package of a commit, and the list of what it needs."""
    wanted = ["git", "archive", commit, "src", _LOCK]
    packed = subprocess.run(wanted, cwd=ROOT, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(work / "old", filter="data")
    return work / "old"


def _python(places: Places, commit: str, unpacked: Path) -> Path:
    """Return a Python that has what a commit needs, which may be other libraries than today's."""
    wanted = ["--no-deps", "--require-hashes", "-r", str(unpacked / _LOCK)]
    return frame.make_python(places.cache / f"python-{commit}", wanted, f"what {commit} needs")


@contextmanager
def _serving(work: Path, name: str, commit: tuple[Path, Path], model: str) -> Generator[_Side]:
    """Serve a vault of its own by a Python and the source of a commit."""
    python, source = commit
    home, vault = work / name, work / name / "vault"
    vault.mkdir(parents=True)
    for number in range(_NOTES):
        text = f"# Note {number}\n\nBeans in the garden, see [[{(number + 1) % _NOTES}]].\n\n## More\n\nWords of it.\n"
        (vault / f"{number}.md").write_text(text, encoding="utf-8")
    config = home / "config.toml"
    config.write_text(
        f'[model]\nname = "{model}"\n\n[runs]\ncode_mode = "off"\n\n[server]\nrequests_per_minute = 0\n', "utf-8"
    )
    own = {
        "KNAP_CONFIG": str(config),
        "KNAP_STATE_DIR": str(home / "state"),
        "KNAP_EMBEDDINGS": "none",
        "PYTHONPATH": str(source),
    }
    env = {**os.environ, **own}  # noqa: TID251 - handed on
    command = [str(python), "-m", "knapper.cli", "--vault", str(vault)]
    _ = subprocess.run([*command, "-q", "index"], env=env, check=True)
    with subprocess.Popen([*command, "serve", "--port", "0"], env=env, stderr=subprocess.PIPE, text=True) as process:
        try:
            server = load.started(process)
            headers = {"authorization": f"Bearer {server.token}"}
            address = f"http://{server.host}:{server.port}"
            with httpx2.Client(base_url=address, headers=headers, timeout=120, trust_env=False) as client:
                yield _Side(server=server, client=client)
        finally:
            process.terminate()
            _ = process.wait(60)


class _Model(BaseHTTPRequestHandler):
    """Call tools for some rounds where there are any, and else answer as a run wants it."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        del format, args

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        parts = _reply(request)
        text = "".join(part for part in parts if isinstance(part, str))
        self.close_connection = True
        self.send_response(200)
        self.send_header("Connection", "close")
        if request.get("stream"):
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            for line in protocol.lines(Reply(parts=parts)):
                self.wfile.write(f"{line}\n\n".encode())
            return
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        whole = {"id": "x", "object": "chat.completion", "created": 1, "model": "tiny", "choices": [choice]}
        body = json.dumps({**whole, "usage": usage}).encode()
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _reply(request: dict[str, Any]) -> Sequence[str | Call]:
    messages = request["messages"]
    offered = {tool["function"]["name"] for tool in request.get("tools") or ()}
    calls = [name for name in _CALLS if name in offered]
    if calls:
        rounds = sum(bool(one.get("tool_calls")) for one in messages if one["role"] == "assistant")
        if rounds >= _ROUNDS:
            return ["Beans."]
        return [Call(name, _CALLS[name], id=f"{rounds}-{number}") for number, name in enumerate(calls)]
    prompt = next(str(one["content"]) for one in messages if one["role"] == "user")
    kind, task = what(str(messages[0]["content"]), prompt)
    if kind == "unknown":
        return ['{"answer": "Beans."}']
    plans = {task: [Part(f"{task} {letter}") for letter in "abc"]} if re.fullmatch(r"Job \d+", task) else {}
    return [Brain(plans=plans).said(kind, task)]


@contextmanager
def _model() -> Generator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Model)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"tiny@http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)

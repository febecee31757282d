"""Let many clients ask and write over HTTP at once, and look for errors, lost writes, waiting and growing memory."""

import argparse
import asyncio
import itertools
import json
import os
import random
import re
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench import frame, generate, questions, vaults
from bench.frame import Goal, Report, Row
from bench.places import Places

SUMMARY = "many clients reading and writing over HTTP"
KNAP = (sys.executable, "-m", "knapper.cli")
_RATE = 2.0
"""Requests of one client in a second."""
_OFFSET_S = 0.037
"""Between the first requests of two clients."""
_SETTLED_S = 15.0
"""What memory is at first is asked for after this time, and what it is at last over as long."""
_START_S = 60.0


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--notes", type=int, default=10_000, help="size of the generated vault")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long they ask (default: 60)")
    parser.add_argument("--readers", type=int, default=50)
    parser.add_argument("--writers", type=int, default=5)


def run(places: Places, options: argparse.Namespace) -> Report | str:
    generated = generate.vault(places, options.notes)
    if generated is None:
        return "there are no real vaults to generate one from"
    with vaults.scratch(places.cache) as folder:
        vault = folder / "vault"
        shutil.copytree(generated, vault)
        asked = questions.of(vault, 300)
        with serving(vault, folder) as server:
            found = asyncio.run(load(server, vault, asked, options))
        lost = lost_lines(vault, found.written)
    reads, writes = found.reads, found.writes
    rows = [
        Row(what="errors", values=[sum(found.errors.values())], goal=Goal(limit=1)),
        Row(what="lost or doubled writes", values=[lost], goal=Goal(limit=1)),
        Row(what="answers to readers", values=[len(reads)]),
        Row(what="answers to writers", values=[len(writes)]),
        Row(
            what="all, 95th percentile",
            values=[frame.percentile(reads + writes, 0.95)],
            unit="ms",
            goal=Goal(limit=250),
        ),
        Row(what="readers, median", values=[frame.percentile(reads, 0.5)], unit="ms"),
        Row(what="readers, 95th percentile", values=[frame.percentile(reads, 0.95)], unit="ms"),
        Row(what="writers, median", values=[frame.percentile(writes, 0.5)], unit="ms"),
        Row(what="writers, 95th percentile", values=[frame.percentile(writes, 0.95)], unit="ms"),
        Row(what="slowest answer", values=[max(reads + writes)], unit="ms"),
        Row(what="the server's processor time for an answer", values=[found.cost_ms], unit="ms"),
        Row(what="memory of its own, at first", values=[found.first_mb], unit="MB"),
        Row(what="growth until the end", values=[found.growth_mb], unit="MB", goal=Goal(limit=20)),
    ]
    about = (
        f"{options.readers} clients that search, read, list and follow links, and {options.writers} that append and "
        f"create, each {_RATE:g} times a second for {options.seconds:g} s, at one `knap serve` over a generated vault "
        f"of {options.notes:,} notes; clients and server share the machine."
    )
    remarks = [
        "A request's time begins when it was due, so that one that had to wait for the one before counts as late.",
        "After the load each written line is looked for in the files: it has to stand there once.",
    ]
    remarks += [f"Errors: {dict(found.errors)}"] if found.errors else []
    return Report(title="Many clients", about=about, rows=rows, remarks=remarks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Hold how the clients ask."""

    rate: float = _RATE
    """Requests of one client in a second."""
    wave_s: float = 1 / _RATE
    """All clients' requests are due within this time; what is left until their next ones is quiet."""
    grows: bool = True
    """Whether writers leave more text than there was."""


@dataclass(kw_only=True)
class Server:
    """Hold a running server."""

    process: subprocess.Popen[str]
    host: str
    port: int
    token: str
    pid: int = 0
    """Of one of its readers; 0 for the server itself."""

    def __post_init__(self) -> None:
        self.pid = self.pid or self.process.pid

    def readers(self) -> list["Server"]:
        """Give the processes that it has started, as far as the system tells."""
        tasks = Path(f"/proc/{self.process.pid}/task")
        children = [
            child
            for task in (tasks.iterdir() if tasks.exists() else ())
            for child in (task / "children").read_text(encoding="ascii").split()
        ]
        return [replace(self, pid=int(child)) for child in children]

    def own_mb(self) -> float:
        """Give the memory of its own (not mapped files)."""
        status = Path(f"/proc/{self.pid}/status")
        text = status.read_text(encoding="ascii") if status.exists() else ""
        found = re.search(r"RssAnon:\s+(\d+)", text)
        return int(found[1]) / 1024 if found else float("nan")

    def mapped_mb(self) -> float:
        """Give the resident part of the files that it maps, which the system can take back and others share."""
        status = Path(f"/proc/{self.pid}/status")
        text = status.read_text(encoding="ascii") if status.exists() else ""
        return (
            sum(int(size) for size in re.findall(r"Rss(?:File|Shmem):\s+(\d+)", text)) / 1024 if text else float("nan")
        )

    def processor_s(self) -> float:
        """Give the processor time that it has taken."""
        stat = Path(f"/proc/{self.pid}/stat")
        fields = stat.read_text(encoding="utf-8").rpartition(")")[2].split() if stat.exists() else ["nan"] * 13
        return (float(fields[11]) + float(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass(kw_only=True)
class Found:
    """Gather what came of it."""

    reads: list[float] = field(default_factory=list[float])
    writes: list[float] = field(default_factory=list[float])
    """Milliseconds."""
    errors: Counter[str] = field(default_factory=Counter[str])
    written: dict[str, str] = field(default_factory=dict[str, str])
    """Each line that was written, and its note."""
    memory: list[float] = field(default_factory=list[float])
    """Megabytes of its own, each second."""
    mapped: list[float] = field(default_factory=list[float])
    """Megabytes of mapped files, each second."""

    processor_s: float = 0.0
    """What the server took of the processor."""

    @property
    def cost_ms(self) -> float:
        return self.processor_s * 1000 / (len(self.reads) + len(self.writes))

    @property
    def first_mb(self) -> float:
        settled = self.memory[: max(len(self.memory) // 2, 1)][int(_SETTLED_S) :] or self.memory[:1]
        return sum(settled) / len(settled)

    @property
    def growth_mb(self) -> float:
        last = self.memory[-int(_SETTLED_S) :]
        return sum(last) / len(last) - self.first_mb


@contextmanager
def serving(vault: Path, folder: Path, *, command: Sequence[str] = KNAP, more: str = "") -> Generator[Server]:
    """Serve a vault, with its log in a file as of a service; *more* is what else the section ``[server]`` says."""
    config = folder / "config.toml"
    server = f"[server]\nrequests_per_minute = 0\n{more}"
    config.write_text(f"[vaults.load]\npath = {json.dumps(str(vault))}\n{server}", encoding="utf-8")
    env = {**os.environ, "KNAP_CONFIG": str(config), "KNAP_STATE_DIR": str(folder / "state")}  # noqa: TID251 - handed on
    frame.say("indexing")
    subprocess.run([*command, "-q", "index"], env=env, check=True, stdout=subprocess.DEVNULL)
    serve = [*command, "serve", "--port", "0", "--log-file", str(folder / "log")]
    with subprocess.Popen(serve, env=env, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield started(process)
        finally:
            process.terminate()
            process.communicate(timeout=60)


def started(process: subprocess.Popen[str]) -> Server:
    assert process.stderr is not None
    said = [process.stderr.readline(), process.stderr.readline()]
    address = re.search(r"at http://(\S+):(\d+);", said[0])
    place = re.search(r"the token of (.+)", said[1])
    if address is None or place is None:
        raise SystemExit(f"bench: the server didn't start: {said}")
    threading.Thread(target=lambda: [None for _ in process.stderr or ()], daemon=True).start()  # it must not wait
    token = Path(place[1].strip()).read_text(encoding="ascii").strip()
    return Server(process=process, host=address[1], port=int(address[2]), token=token)


async def load(
    server: Server, vault: Path, asked: list[str], options: argparse.Namespace, pace: Pace | None = None
) -> Found:
    found = Found()
    pace = pace or Pace()
    notes = await asyncio.to_thread(notes_of, vault)
    await warm(server, asked[0])
    frame.say(f"{options.readers} readers and {options.writers} writers for {options.seconds:g} s")
    end = time.monotonic() + options.seconds
    readers = [Client(server, found, end, pace).read(number, notes, asked) for number in range(options.readers)]
    own = {own_note(number) for number in range(options.writers)}
    shared = [note for note in notes if note not in own]
    writers = [Client(server, found, end, pace).write(number, shared) for number in range(options.writers)]
    before = server.processor_s()
    await asyncio.gather(*readers, *writers, _follow_memory(server, found, end))
    found.processor_s = server.processor_s() - before
    return found


def own_note(number: int) -> str:
    """Give the path of the note that belongs to one writer alone."""
    return f"Load/own-{number}.md"


def plant_own_notes(vault: Path, writers: int) -> None:
    """Write the notes whose section writers rewrite."""
    (vault / "Load").mkdir(exist_ok=True)
    for number in range(writers):
        (vault / own_note(number)).write_text("# Own\n\nText.\n", encoding="utf-8")


def notes_of(vault: Path) -> list[str]:
    return [path.relative_to(vault).as_posix() for path in sorted(vault.rglob("*.md"))]


async def warm(server: Server, question: str) -> None:
    """Wait until the server has looked through the vault once."""
    client = Client(server, Found(), 0)
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline:
        _, answer = await client.post("search_vault", {"query": question})
        if not answer.get("index_stale") and not answer.get("index_incomplete"):
            return
        await asyncio.sleep(0.2)


async def _follow_memory(server: Server, found: Found, end: float) -> None:
    while time.monotonic() < end:
        found.memory.append(server.own_mb())
        found.mapped.append(server.mapped_mb())
        await asyncio.sleep(1)


class Client:
    """Ask over one connection, on a timetable."""

    def __init__(self, server: Server, found: Found, end: float, pace: Pace | None = None) -> None:
        self._pace = pace or Pace()
        self._server = server
        self._found = found
        self._end = end
        self._open: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def read(self, number: int, notes: list[str], asked: list[str]) -> None:
        """Search, read, list and follow links in turn."""
        pick = random.Random(number)
        async for due in self._timetable(number):
            note = pick.choice(notes)
            tool, arguments = pick.choice(
                [
                    ("search_vault", {"query": pick.choice(asked), "n_results": 10}),
                    ("read_file", {"path": note}),
                    ("find_backlinks", {"note_name": Path(note).stem}),
                    ("search_by_folder", {"folder": Path(note).parts[0]}),
                ]
            )
            await self._timed(due, tool, arguments, self._found.reads)

    async def write(self, number: int, notes: list[str]) -> None:
        """Append to notes that other writers append to as well, and make new ones; or take out again what was added."""
        if not self._pace.grows:
            await self._rewrite(number, notes[:40])
            return
        pick = random.Random(1_000 + number)
        count = itertools.count()
        async for due in self._timetable(number):
            line = f"zqload-{number}-{next(count)}-x"
            if pick.random() < 0.25:
                path = f"Load/{line}.md"
                done = await self._timed(due, "create_file", {"path": path, "content": line}, self._found.writes)
            else:
                path = pick.choice(notes[:40])
                done = await self._timed(due, "append_to_file", {"path": path, "content": line}, self._found.writes)
            if done:
                self._found.written[line] = path

    async def _rewrite(self, number: int, notes: list[str]) -> None:
        """Append a line, take it out again, and write the section of its own note anew, in turn."""
        pick = random.Random(1_000 + number)
        path = line = ""
        count = 0
        async for due in self._timetable(number):
            count += 1
            if count % 3 == 1:
                path, line = pick.choice(notes), f"zqload-{number}-{count}-x"
                tool, arguments = "append_to_file", {"path": path, "content": line}
            elif count % 3 == 2:
                tool, arguments = "edit_file", {"path": path, "old_text": f"{line}\n", "new_text": ""}
            else:
                text = "# Own\n\n" + "".join(f"Line {pick.random()}.\n" for _ in range(40))
                tool, arguments = "replace_section", {"path": own_note(number), "heading": "# Own", "content": text}
            await self._timed(due, tool, arguments, self._found.writes)

    async def _timetable(self, number: int) -> AsyncIterator[float]:
        every_s = 1 / self._pace.rate
        due = time.monotonic() + (number * _OFFSET_S) % min(self._pace.wave_s, every_s)
        while due < self._end and time.monotonic() < self._end:  # a backlog isn't worked off after the end
            await asyncio.sleep(max(due - time.monotonic(), 0))
            yield due
            due += every_s

    async def _timed(self, due: float, tool: str, arguments: Mapping[str, object], times: list[float]) -> bool:
        try:
            status, answer = await self.post(tool, arguments)
        except (OSError, asyncio.IncompleteReadError) as error:
            self._open = None
            self._found.errors[f"{tool}: {type(error).__name__}"] += 1
            return False
        times.append((time.monotonic() - due) * 1000)
        if status != 200:
            self._found.errors[f"{tool}: {status} {answer.get('code')}"] += 1
            frame.say(f"{tool}: {answer.get('error')}")
        return status == 200

    async def post(self, tool: str, arguments: Mapping[str, object]) -> tuple[int, dict[str, Any]]:
        """Call a tool; a client library would take more of the machine than the server."""
        if self._open is None:
            self._open = await asyncio.open_connection(self._server.host, self._server.port)
        reader, writer = self._open
        body = json.dumps(arguments).encode()
        head = (
            f"POST /tools/{tool} HTTP/1.1\r\nHost: {self._server.host}\r\n"
            f"Authorization: Bearer {self._server.token}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        writer.write(head.encode() + body)
        said = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        length = re.search(r"(?i)content-length: (\d+)", said)
        answer = await reader.readexactly(int(length[1]) if length else 0)
        return int(said.split(" ", 2)[1]), json.loads(answer or b"{}")


def lost_lines(vault: Path, written: dict[str, str]) -> int:
    """Count written lines that don't stand in their note once."""
    texts = {path: (vault / path).read_text(encoding="utf-8", errors="replace") for path in set(written.values())}
    return sum(texts[path].count(line) != 1 for line, path in written.items())

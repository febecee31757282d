"""Write to a real vault: an edit in process and over HTTP, a move that 1,000 links follow, a property of many notes."""

import argparse
import datetime as dt
import http.client
import json
import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bench import frame, load, vaults
from bench.frame import Goal, Report, Row
from bench.places import Places
from knapper import app, config
from knapper.changes.disk import undo
from knapper.changes.drafts import AddText, EditProperty, Move, Request
from knapper.changes.reviewer import Reviewer
from knapper.changes.writer import Submission, Writer

SUMMARY = "one edit, also over HTTP; a move that 1,000 links follow; a property of 1,000 notes and of every real note"
_MOVES = 3
_SETTLE_S = 15.0
"""What a server does after its start, such as deriving files, is over by then."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--vault", default="obsidian-help", help="archive below vaults/ (default: obsidian-help)")
    parser.add_argument("--edits", type=int, default=200, help="how many single edits (default: 200)")
    parser.add_argument("--many", type=int, default=1_000, help="notes in one proposal, or with a link (default: 1000)")
    parser.add_argument("--brief", action="store_true", help="no property of every note, which takes a minute")


def run(places: Places, options: argparse.Namespace) -> Report | str:
    vault = places.vault(options.vault)
    if vault is None:
        return f"there is no {options.vault}.tar.xz below {places.data.name}/vaults"
    with vaults.scratch(places.cache) as work:
        shutil.copytree(vault, work / "vault")
        rows, remarks = measure(work, options)
    with vaults.scratch(places.cache) as work:
        rows[3:3] = _over_http(vault, work, options.edits) + _moves(work / "moves", options.many)
    about = (
        "Through the one door that every surface uses: draft, rules, journal, exchange with fsync, index. "
        "The property is `knapper-bench: 007`, the edit a line at a note's end; the files lie on a local disk. "
        "A server's processor time has in it what its watcher and the embedding take after each edit, and that of a "
        "command its start."
    )
    return Report(title="Writes", about=about, rows=rows, remarks=remarks)


def measure(work: Path, options: argparse.Namespace) -> tuple[list[Row], list[str]]:
    settings = config.load({"default_vault": str(work / "vault"), "state_dir": str(work / "state")})
    with app.open_vault(settings) as context:
        context.index.refresh()
        names = sorted(path for path in context.index.store.file_states() if path.endswith(".md"))
        before = _bytes(work / "vault")
        started = dt.datetime.now(dt.UTC)
        writer = context.writer
        single = _edits(writer, names[: options.edits])
        many = _timed(writer, [_set(name) for name in names[-options.many :]])
        everywhere: tuple[list[Row], list[str]] = ([], []) if options.brief else _everywhere(writer, names)
        writer.undo(undo.Since(at=started), reason="the benchmark is over")
        after = _bytes(work / "vault")
    differing = sorted(name for name in before if after.get(name) != before[name])
    rows = [
        Row(what="one edit", values=[1_000 * wall for wall, _ in single], unit="ms", goal=Goal(limit=15)),
        Row(what="one edit, processor time", values=[1_000 * cpu for _, cpu in single], unit="ms", goal=Goal(limit=5)),
        Row(
            what="edits a second",
            values=[len(single) / sum(wall for wall, _ in single)],
            goal=Goal(limit=100, sense="at least"),
        ),
        Row(
            what=f"property of {len(names[-options.many :]):,} notes, proposed and accepted",
            values=[many[0]],
            unit="s",
            goal=Goal(limit=5),
        ),
        *everywhere[0],
        Row(
            what="notes that differ after everything was undone", values=[len(differing)], goal=Goal(limit=1), digits=0
        ),
    ]
    return rows, [*everywhere[1], *differing[:20]]


def _edits(writer: Writer, names: Sequence[str]) -> list[tuple[float, float]]:
    """Return the seconds of each edit, and those of the processor."""
    times: list[tuple[float, float]] = []
    for name in names:
        begin, cpu = time.perf_counter(), time.process_time()
        _ = writer.submit([AddText(path=name, content="A line that the benchmark adds.", where="end")])
        times.append((time.perf_counter() - begin, time.process_time() - cpu))
    return times


def _over_http(vault: Path, work: Path, edits: int) -> list[Row]:
    """Edit a note after another by a server that watches and embeds."""
    folder = work / "served"
    folder.mkdir()
    shutil.copytree(vault, folder / "vault")
    names = sorted(file.relative_to(folder / "vault").as_posix() for file in (folder / "vault").rglob("*.md"))
    chosen = names[:: max(len(names) // (edits + 30), 1)][: edits + 30]
    times: list[float] = []
    with load.serving(folder / "vault", folder) as server:
        connection = http.client.HTTPConnection(server.host, server.port)
        headers = {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"}

        def edit(name: str) -> None:
            content = json.dumps({"path": name, "content": "A line that the benchmark adds."})
            connection.request("POST", "/tools/append_to_file", content, headers)
            response = connection.getresponse()
            answer = response.read()
            if response.status != http.HTTPStatus.OK:
                raise SystemExit(f"bench: an edit over HTTP failed: {answer.decode()}")

        for name in chosen[:30]:
            edit(name)
        time.sleep(_SETTLE_S)
        before = server.processor_s()
        for name in chosen[30:]:
            begin = time.perf_counter()
            edit(name)
            times.append(1_000 * (time.perf_counter() - begin))
        time.sleep(1)  # for what the last of them leave to do
        cpu = 1_000 * (server.processor_s() - before) / len(times)
    return [
        Row(what="one edit over HTTP", values=times, unit="ms"),
        Row(what="one edit over HTTP, processor time of the server", values=[cpu], unit="ms", goal=Goal(limit=8)),
    ]


def _moves(work: Path, count: int) -> list[Row]:
    """Move a note that so many notes link to, there and back, in process and by the command."""
    vault = work / "vault"
    vault.mkdir(parents=True)
    (vault / "Target.md").write_text("# Target\n", encoding="utf-8")
    for number in range(count):
        text = f"# Note {number}\n\n{'Some words about things. ' * 20}\n\nSee [[Target]] for more.\n"
        (vault / f"N{number}.md").write_text(text, encoding="utf-8")
    config_file = work / "config.toml"
    config_file.write_text(f"[vaults.moves]\npath = {json.dumps(str(vault))}\n", encoding="utf-8")
    settings = config.load({"default_vault": str(vault), "state_dir": str(work / "state")})
    places = [("Target.md", "Sub/Goal.md"), ("Sub/Goal.md", "Target.md")]
    inside: list[float] = []
    with app.open_vault(settings) as context:
        context.index.refresh()
        for number in range(_MOVES):
            source, destination = places[number % 2]
            cpu = frame.processor_s()
            _ = context.writer.submit([Move(source=source, destination=destination)])
            inside.append(frame.processor_s() - cpu)
    command: list[float] = []
    env = {**os.environ, "KNAP_CONFIG": str(config_file), "KNAP_STATE_DIR": str(work / "state")}  # noqa: TID251 - handed on
    subprocess.run([*load.KNAP, "-q", "index"], env=env, check=True, stdout=subprocess.DEVNULL)
    for number in range(_MOVES):
        source, destination = places[(number + _MOVES) % 2]
        cpu = frame.processor_s()
        subprocess.run([*load.KNAP, "move", source, destination], env=env, check=True, stdout=subprocess.DEVNULL)
        command.append(frame.processor_s() - cpu)
    return [
        Row(what=f"move that {count:,} links follow, processor time", values=inside, unit="s", goal=Goal(limit=0.65)),
        Row(what="the same by `knap move`", values=command, unit="s"),
    ]


def _everywhere(writer: Writer, names: Sequence[str]) -> tuple[list[Row], list[str]]:
    root = writer.context.view.root
    before = _bytes(root)
    set_, made = _timed(
        writer, [EditProperty(path=name, word="set", name="knapper-second", value="no") for name in names]
    )
    done = {file.path for file in made.files}
    removed, _ = _timed(
        writer, [EditProperty(path=name, word="remove", name="knapper-second") for name in names if name in done]
    )
    after = _bytes(root)
    differing = sorted(name for name in before if after.get(name) != before[name])
    refused = [f"{names[one.number]}: {one.error.message}" for one in made.failures]
    rows = [
        Row(what=f"property set in {len(done):,} notes", values=[set_], unit="s"),
        Row(what="and removed again", values=[removed], unit="s"),
        Row(what="notes that are refused", values=[len(refused)], digits=0),
        Row(what="notes not byte for byte what they were", values=[len(differing)], goal=Goal(limit=1), digits=0),
    ]
    return rows, [*refused[:20], *differing[:20]]


def _timed(writer: Writer, requests: list[Request] | list[EditProperty]) -> tuple[float, Submission]:
    """Propose and accept a batch that is too large to be applied at once."""
    begin = time.perf_counter()
    proposed = writer.submit(requests)
    shown = Reviewer(writer=writer).refit(proposed.proposal_id)
    accepted = Reviewer(writer=writer).accept(proposed.proposal_id, shown.digest)
    return time.perf_counter() - begin, replace(accepted, failures=proposed.failures)


def _set(name: str) -> EditProperty:
    return EditProperty(path=name, word="set", name="knapper-bench", value="007")


def _bytes(root: Path) -> dict[str, bytes]:
    return {str(file.relative_to(root)): file.read_bytes() for file in root.rglob("*.md")}

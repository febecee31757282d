"""Write to a real vault: one edit, a property of a thousand notes, a property set and removed everywhere."""

import argparse
import datetime as dt
import shutil
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bench import vaults
from bench.frame import Goal, Report, Row
from bench.places import Places
from knapper import app, config
from knapper.changes.disk import undo
from knapper.changes.drafts import AddText, EditProperty, Request
from knapper.changes.reviewer import Reviewer
from knapper.changes.writer import Submission, Writer

SUMMARY = "one edit; a property of 1,000 notes in one proposal; a property set and removed in every real note"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--vault", default="obsidian-help", help="archive below vaults/ (default: obsidian-help)")
    parser.add_argument("--edits", type=int, default=200, help="how many single edits (default: 200)")
    parser.add_argument("--many", type=int, default=1_000, help="notes in one proposal (default: 1000)")


def run(places: Places, options: argparse.Namespace) -> Report | str:
    vault = places.vault(options.vault)
    if vault is None:
        return f"there is no {options.vault}.tar.xz below {places.data.name}/vaults"
    with vaults.scratch(places.cache) as work:
        shutil.copytree(vault, work / "vault")
        rows, remarks = measure(work, options)
    about = (
        "Through the one door that every surface uses: draft, rules, journal, exchange with fsync, index. "
        "The property is `knapper-bench: 007`, the edit a line at a note's end; the files lie on a local disk."
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
        everywhere = _everywhere(writer, names)
        writer.undo(undo.Since(at=started), reason="the benchmark is over")
        after = _bytes(work / "vault")
    differing = sorted(name for name in before if after.get(name) != before[name])
    rows = [
        Row(what="one edit", values=[1_000 * each for each in single], unit="ms", goal=Goal(limit=15)),
        Row(what="edits a second", values=[len(single) / sum(single)], goal=Goal(limit=100, sense="at least")),
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


def _edits(writer: Writer, names: Sequence[str]) -> list[float]:
    times: list[float] = []
    for name in names:
        begin = time.perf_counter()
        _ = writer.submit([AddText(path=name, content="A line that the benchmark adds.", where="end")])
        times.append(time.perf_counter() - begin)
    return times


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

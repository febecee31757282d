"""Move random notes of a real vault to other folders and back: do all links still lead where they led?"""

import argparse
import random
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench import frame, vaults
from bench.frame import Goal, Report, Row
from bench.places import Places
from knapper.changes.disk import apply
from knapper.changes.disk.plan import ChangeMeta
from knapper.changes.disk.transaction import State
from knapper.changes.drafts import Draft, Move
from knapper.changes.links import moving
from knapper.changes.links.rewriting import PARSERS
from knapper.changes.links.targets import LinkHistory
from knapper.index.engine import Engine
from knapper.vault import links, paths, walk
from knapper.vault.access import Policy
from knapper.vault.paths import NotePath
from knapper.vault.source import Link
from knapper.vault.view import View

SUMMARY = "200 random notes of a real vault moved away and back, every link followed at each step"
_SHOWN = 20

Pair = tuple[NotePath, NotePath]


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--vault", default="obsidian-help", help="archive below vaults/ (default: obsidian-help)")
    parser.add_argument("--notes", type=int, default=200, help="how many notes move (default: 200)")
    parser.add_argument("--seed", type=int, default=7, help="of the choice of notes and folders (default: 7)")
    parser.add_argument("--forget", action="store_true", help="don't ask the journal what links said before")
    parser.add_argument("--back", choices=("last-first", "first-first", "together"), default="last-first")


def run(places: Places, options: argparse.Namespace) -> Report | str:
    vault = places.vault(options.vault)
    if vault is None:
        return f"there is no {options.vault}.tar.xz below {places.data.name}/vaults"
    with vaults.scratch(places.cache) as work:
        shutil.copytree(vault, work / "vault")
        found = measure(work, options)
    about = (
        f"{options.notes} notes chosen at random move to other folders of a vault of {found.files:,} files, "
        f"one by one, and back ({options.back}{', from no memory' if options.forget else ''}). "
        f"After each move the targets of all {found.links:,} links are compared with those before."
    )
    rows = [
        Row(what="moves", values=[found.moves]),
        Row(what="links compared", values=[found.compared]),
        Row(what="links that lead elsewhere after a move", values=[len(found.strayed)], goal=Goal(limit=1)),
        Row(what="links that could not be written", values=[found.broken], goal=Goal(limit=1)),
        Row(what="links rewritten on the way", values=[found.rewritten]),
        Row(what="notes not byte for byte what they were", values=[len(found.differing)], goal=Goal(limit=1)),
        Row(what="drafting one move", values=[1000 * each for each in found.drafting], unit="ms", goal=Goal(limit=150)),
        Row(what="95 of 100 moves within", values=[1000 * frame.percentile(found.drafting, 0.95)], unit="ms"),
        Row(what="slowest draft", values=[1000 * max(found.drafting)], unit="ms"),
    ]
    remarks = [
        "The slowest drafts are of notes whose name others have too: every file that links there says the path then.",
        *found.strayed[:_SHOWN],
        *found.differing,
    ]
    return Report(title="Moves", about=about, rows=rows, remarks=remarks)


@dataclass(slots=True, kw_only=True)
class Found:
    """Count what happened."""

    files: int = 0
    links: int = 0
    moves: int = 0
    compared: int = 0
    rewritten: int = 0
    broken: int = 0
    strayed: list[str] = field(default_factory=list[str])
    differing: list[str] = field(default_factory=list[str])
    drafting: list[float] = field(default_factory=list[float])


class Meanings:
    """Read all links of a vault from the disk, and tell where each leads."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._links: dict[NotePath, Sequence[Link]] = {}
        self._by_key: dict[str, list[NotePath]] = {}
        for file in view.list_files():
            self.read(file.path)

    def read(self, path: NotePath) -> None:
        kind = walk.kind_of(path)
        outline = PARSERS[kind](self._view.read_bytes(path)) if kind in PARSERS else None
        self._links[path] = [link for link in outline.links if link.kind != "external"] if outline else []

    def move(self, draft: Draft) -> None:
        for file in draft.files:
            if file.target is not None:
                del self._links[file.path]
        for file in draft.files:
            self.read(file.place)

    def tell(self) -> dict[NotePath, list[NotePath | None]]:
        by_key: dict[str, list[NotePath]] = {}
        for path in sorted(self._links):
            by_key.setdefault(paths.lookup_key(paths.base_name(path)), []).append(path)
        memory: dict[tuple[str, str], NotePath | None] = {}

        def lead(link: Link, source: NotePath) -> NotePath | None:
            if not link.target.strip():
                return source
            slot = (link.target, paths.parent_folder(source))
            if slot not in memory:
                memory[slot] = links.resolve(link.target, source, lambda key: by_key.get(key, ())).path
            return memory[slot]

        return {path: [lead(link, path) for link in found] for path, found in self._links.items()}


def measure(work: Path, options: argparse.Namespace) -> Found:
    found = Found()
    view = View.open((work / "vault").resolve(), Policy(client="owner"))
    state, _ = apply.open_state(view.root, work / "state")
    with Engine(work / "index", view, open_embedder=lambda: None) as engine:
        frame.say("indexing")
        engine.refresh()
        before = contents(view)
        frame.say("reading all links")
        meanings = Meanings(view)
        told = meanings.tell()
        found.files, found.links = len(before), sum(map(len, told.values()))
        moves = choose(sorted(before), random.Random(options.seed), options.notes)
        pasts = None if options.forget else LinkHistory(state.journal)
        mover = Mover(engine=engine, state=state, meanings=meanings, told=told, found=found, pasts=pasts)
        for pair in moves:
            mover.move([pair])
        home = [(new, old) for old, new in moves]
        for batch in back(home, options.back):
            mover.move(batch)
        found.differing = differing(before, contents(view))
    state.journal.shut()
    return found


def back(home: list[Pair], order: str) -> list[list[Pair]]:
    if order == "together":
        return [home]
    return [[pair] for pair in (home if order == "first-first" else reversed(home))]


@dataclass(slots=True, kw_only=True)
class Mover:
    """Move, and follow every link."""

    engine: Engine
    state: State
    meanings: Meanings
    told: dict[NotePath, list[NotePath | None]]
    found: Found
    pasts: LinkHistory | None

    def move(self, pairs: Sequence[Pair]) -> None:
        view = self.engine.view
        begin = time.perf_counter()
        draft = moving.draft_moves(
            view, view, self.engine.graph, [Move(source=old, destination=new) for old, new in pairs], self.pasts
        )
        self.found.drafting.append(time.perf_counter() - begin)
        apply.apply_effects(self.state, list(draft.effects()), ChangeMeta(client="bench"))
        self.engine.refresh_paths([view.root / path for file in draft.files for path in (file.path, file.place)])
        self.meanings.move(draft)
        self._compare(dict(pairs), draft)

    def _compare(self, moved: Mapping[NotePath, NotePath], draft: Draft) -> None:
        now = self.meanings.tell()
        for source, wanted in self.told.items():
            place = moved.get(source, source)
            there = now[place]
            for number, old in enumerate(wanted):
                new = None if old is None else moved.get(old, old)
                if old is not None and there[number] != new:
                    self.found.strayed.append(f"{place}: link {number} leads to {there[number]}, not to {new}")
            self.found.compared += len(wanted)
        self.found.moves += len(moved)
        self.found.rewritten += len(draft.rewritten)
        self.found.broken += sum("can't be written" in notice for notice in draft.notices)
        self.told = now
        if self.found.moves % 50 == 0:
            frame.say(f"{self.found.moves} moves, {self.found.rewritten} links rewritten")


def choose(files: Sequence[NotePath], choice: random.Random, count: int) -> list[Pair]:
    """Choose notes, and for each another folder where its name is free."""
    folders = sorted({paths.parent_folder(path) for path in files})
    taken = {paths.name_key(path) for path in files}
    moves: list[Pair] = []
    for note in choice.sample([path for path in files if walk.kind_of(path) == "note"], count):
        target = free(note, folders, taken, lambda: choice.choice(folders))
        taken.add(paths.name_key(target))
        moves.append((note, target))
    return moves


def free(note: NotePath, folders: Sequence[NotePath], taken: set[str], pick: Callable[[], NotePath]) -> NotePath:
    for _ in range(len(folders)):
        folder = pick()
        target = NotePath(f"{folder}/{paths.base_name(note)}" if folder else paths.base_name(note))
        if paths.name_key(target) not in taken:
            return target
    raise SystemExit(f"bench: every folder has a {paths.base_name(note)}")


def contents(view: View) -> dict[NotePath, bytes]:
    return {file.path: view.read_bytes(file.path) for file in view.list_files()}


def differing(before: Mapping[NotePath, bytes], after: Mapping[NotePath, bytes]) -> list[str]:
    """Describe each note that isn't what it was by its first line that differs."""
    found = [f"{path} is gone" for path in sorted(before.keys() - after.keys())]
    found += [f"{path} is new" for path in sorted(after.keys() - before.keys())]
    for path in sorted(before.keys() & after.keys()):
        old, new = before[path], after[path]
        if old != new:
            rows = zip(old.splitlines(), new.splitlines(), strict=False)
            first = next(((a, b) for a, b in rows if a != b), (b"", b""))
            at = next((n for n, (a, b) in enumerate(zip(*first, strict=False)) if a != b), 0)
            shown = [row[max(0, at - 30) : at + 60].decode(errors="replace") for row in first]
            found.append(f"`{path}`: `{shown[0]}` became `{shown[1]}`")
    return found

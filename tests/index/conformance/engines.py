"""The three engines behind one interface: a vault is saved to, taken in, and asked in one state after another.

python -m tests.index.conformance.engines write KIND SEED PLACE...     changes and saves until somebody ends it
python -m tests.index.conformance.engines read KIND STATES PLACE...    checks so many states, and prints what it counted
"""

import json
import math
import random
import re
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray

from knapper.errors import KnapError
from knapper.index import database
from knapper.index import vectors as vector_file
from knapper.index.documents import Filter
from knapper.index.postgres import rows
from knapper.index.postgres.connection import PostgresServer
from knapper.index.postgres.publish import Publisher
from knapper.index.postgres.reader import ReaderEngine
from knapper.index.postgres.snapshot import PublishedSnapshots
from knapper.index.snapshot import IndexSnapshot, SqliteSnapshotCache
from knapper.index.tokenizer import Stemmer, parse_query
from knapper.index.words import fts5, postings
from knapper.vault.access import Policy
from tests.index import published, word_engines, worlds

Kind = Literal["local", "sqlite", "postgres"]
KINDS: Sequence[Kind] = ("local", "sqlite", "postgres")
NAMES: Mapping[Kind, str] = {"local": "local, derived file", "sqlite": "SQLite alone", "postgres": "PostgreSQL"}
ROOT = Path(__file__).parents[3]
SECTIONS = 4
"""Of a note that tells in each section which version it is of."""
_DIMENSIONS = 256
_VERSIONED = 6
STATES_S = 300.0
"""How long a reader looks for as many states as it shall check, on a machine with much other work."""
_VERSION = re.compile(r"version(\d+)")
SetConstant = Callable[[object, str, int], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """One state of an index: what answers, and what it is compared with."""

    snapshot: IndexSnapshot
    texts: Sequence[tuple[int, str, str, str]]
    """Of each chunk its id, and the texts of its three columns."""
    notes: Mapping[int, str]
    """The path of each chunk's note."""
    generation: int

    def reference(self, stemmer: Stemmer) -> word_engines.Reference:
        """Return all rows of this state in plain Python."""
        return word_engines.Reference(self.texts, fts5.CHUNKS, stemmer)

    def versions(self) -> dict[str, Counter[int]]:
        """Count the sections of each versioned note, by their version."""
        found: dict[str, Counter[int]] = {}
        for chunk, _, _, text in self.texts:
            for version in _VERSION.findall(text):
                found.setdefault(self.notes[chunk], Counter())[int(version)] += 1
        return found


class World(ABC):
    """A vault and its index."""

    kind: Kind

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    @abstractmethod
    def place(self) -> list[str]:
        """Return what another process opens it by."""

    @abstractmethod
    def take_in(self) -> None:
        """Let the next state hold what was saved."""

    @abstractmethod
    def derive(self) -> None:
        """Derive anew what this engine derives, if anything."""

    @abstractmethod
    def state(self) -> AbstractContextManager[State]:
        """Open one state, as a context."""

    @abstractmethod
    def check(self) -> bool:
        """Return whether what is stored belongs together, past the program."""

    def retry(self) -> None:
        """Take in what was saved, once a server has noticed that whoever held its lock was killed."""
        deadline = time.monotonic() + 10
        while True:
            try:
                return self.take_in()
            except KnapError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)


class LocalWorld(World):
    """An index in SQLite, with derived files or without."""

    def __init__(self, kind: Kind, root: Path, folder: Path) -> None:
        super().__init__(root)
        self.kind = kind
        self._folder = folder
        self.engine = worlds.engine(root, folder, _embedder())

    @property
    def place(self) -> list[str]:
        return [str(self.root), str(self._folder)]

    def take_in(self) -> None:
        self.engine.refresh(check=False)
        self.engine.embed()

    def derive(self) -> None:
        if self.kind == "local":
            postings.build(self.engine.store.database)
            vector_file.build(self.engine.store.database, self.engine.model)

    @contextmanager
    def state(self) -> Generator[State]:
        with cast("SqliteSnapshotCache", self.engine.open_snapshots()).snapshot(self.engine.model) as snapshot:
            found = snapshot.connection.execute(
                "SELECT c.id, f.title, c.path, c.text, f.path FROM chunks c JOIN files f ON f.id = c.id >> 20"
            ).fetchall()
            yield State(
                snapshot=snapshot,
                texts=[one[:4] for one in found],
                notes={one[0]: one[4] for one in found},
                generation=database.state_of(snapshot.connection)[1],
            )

    def check(self) -> bool:
        connection = self.engine.store.database.reader()
        return connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


class PublishedWorld(World):
    """An index that one process publishes to PostgreSQL, and that is read there without its files."""

    kind: Kind = "postgres"

    def __init__(self, root: Path, folder: Path, address: str, name: str) -> None:
        super().__init__(root)
        self._place = (folder, address, name)
        self.engine = worlds.engine(root, folder / "state", _embedder())
        self._publisher = Publisher(PostgresServer(address, name), readers={}, lock_wait_s=0.2)
        self._reader: ReaderEngine | None = None

    @property
    def place(self) -> list[str]:
        return [str(self.root), *map(str, self._place)]

    def take_in(self) -> None:
        self.engine.refresh(check=False)
        self.engine.embed()
        self._publisher.publish(self.engine.store, self.engine.view, model=self.engine.model)

    def derive(self) -> None:
        """Do nothing: the server keeps its tables up to date."""

    @contextmanager
    def state(self) -> Generator[State]:
        if self._reader is None:
            self._reader = open_reader(*self._place)
        with _published_state(self._reader) as state:
            yield state

    def check(self) -> bool:
        return published.belongs_together(self._publisher.server)

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
        self._publisher.close()
        self.engine.close()


def open_reader(folder: Path, address: str, name: str) -> ReaderEngine:
    """Open a published vault as a machine without its files does."""
    mirror = folder / f"reader-{random.Random().randrange(10**9)}"
    embedder = _embedder()
    server = PostgresServer(address, name)
    return ReaderEngine(mirror, folder / "nowhere", Policy(client="owner"), server, open_embedder=lambda: embedder)


@contextmanager
def _published_state(reader: ReaderEngine) -> Generator[State]:
    with cast("PublishedSnapshots", reader.open_snapshots()).snapshot("words") as snapshot:
        found = snapshot.state.session.execute("SELECT id, row FROM chunks").fetchall()
        decoded = [rows.decode_chunk(int(chunk), row) for chunk, row in found]
        yield State(
            snapshot=snapshot,
            texts=[(one.id, one.title, " ".join(one.path), one.text) for one in decoded],
            notes={one.id: one.note for one in decoded},
            generation=int(snapshot.state.meta.get("generation", "0")),
        )


def _embedder() -> worlds.WordEmbedder:
    embedder = worlds.WordEmbedder()
    embedder.dimensions = _DIMENSIONS
    return embedder


def choose(kind: Kind, set_constant: SetConstant = setattr) -> None:
    """Let the local engine derive its files in an index of any size, or in none."""
    least = 1 if kind == "local" else sys.maxsize
    for module, name in (
        (postings, "MIN_ROWS"),
        (vector_file, "MIN_ROWS"),
        (vector_file, "MIN_CODED_ROWS"),
    ):
        set_constant(module, name, least)


@contextmanager
def opened(kind: Kind, place: Sequence[str]) -> Generator[World]:
    """Open a world by its place, in a process that may also write."""
    root, folder = Path(place[0]), Path(place[1])
    if kind == "postgres":
        world = PublishedWorld(root, folder, place[2], place[3])
        try:
            yield world
        finally:
            world.close()
    else:
        local = LocalWorld(kind, root, folder)
        with local.engine:
            yield local


def differing_words(
    state: State, reference: word_engines.Reference, questions: Sequence[str], where: Filter | None = None
) -> list[str]:
    """Return the questions whose chunks or scores by words aren't those of the reference."""
    where = where or Filter()
    shown = {chunk >> database.CHUNK_BITS for chunk, note in state.notes.items() if is_shown(where, note)}
    wrong: list[str] = []
    for question in questions:
        query = parse_query(question)
        for limit in (3, 500):
            expected = dict(reference.best(query, limit, shown))
            answer = state.snapshot.keyword(query, where, limit=limit)
            scores = zip(sorted(answer.values()), sorted(expected.values()), strict=False)
            is_exact = len(answer) == len(expected) and all(math.isclose(a, b, rel_tol=1e-9) for a, b in scores)
            # Of equal scores, others may be the last of a few.
            if not is_exact or (limit == 500 and answer.keys() != expected.keys()):
                wrong.append(f"{question} (best {limit})")
    return wrong


def differing_meaning(state: State, texts: Sequence[str], where: Filter | None = None) -> list[str]:
    """Return the questions whose nearest chunks aren't those of comparing every vector that may be found."""
    where, embedder = where or Filter(), _embedder()
    shown = [chunk for chunk, note in state.notes.items() if is_shown(where, note)]
    ids, stored = state.snapshot.vectors(shown)
    wrong: list[str] = []
    for text in texts:
        vector: NDArray[np.float32] = embedder.query(text)
        cosines = dict(zip(ids, (stored @ vector).tolist(), strict=True)) if ids else {}
        expected = sorted((cosine for cosine in cosines.values() if cosine > 0), reverse=True)
        for limit in (3, 500):
            answer = state.snapshot.nearest(vector, where, limit=limit)()
            is_near = np.allclose(sorted(answer.values(), reverse=True), expected[:limit], atol=2e-3)
            if len(answer) != min(len(expected), limit) or not is_near or not answer.keys() <= cosines.keys():
                wrong.append(f"{text} (nearest {limit})")
    return wrong


def is_shown(where: Filter, note: str) -> bool:
    """Return whether a filter by folder, by name or by policy shows a note: written anew, in plain Python."""
    if where.policy is not None and not where.policy.visible(note):
        return False
    if where.folders and not any(note.startswith(f"{folder}/") for folder in where.folders):
        return False
    return not any(note.startswith(f"{folder}/") for folder in where.exclude_folders)


def fill(root: Path, pick: random.Random, count: int) -> None:
    """Write a vault: notes in two folders, and some that tell in each section of which version they are."""
    notes = word_engines.vault(pick, count)
    worlds.fill(root, {f"{'One' if n % 3 else 'Two'}/{name}": text for n, (name, text) in enumerate(notes.items())})
    for number in range(_VERSIONED):
        write_version(root, number, 0, pick)


def write_version(root: Path, number: int, version: int, pick: random.Random) -> None:
    """Save one note as of a version, so that readers see either all of its sections or none."""
    parts = [
        f"## Part {section}\n\nversion{version} {' '.join(pick.choices(word_engines.WORDS, k=150))}\n"
        for section in range(SECTIONS)
    ]
    worlds.fill(root, {f"Versions/versioned {number}.md": "\n".join(parts)})


def change(root: Path, pick: random.Random, version: int) -> None:
    """Save, add, rename and delete notes."""
    word_engines.change(root / "One", pick)
    for number in pick.sample(range(_VERSIONED), 2):
        write_version(root, number, version, pick)


def torn(state: State) -> list[str]:
    """Return the versioned notes of which a state has parts of two versions, or not all parts."""
    return [note for note, counts in state.versions().items() if [*counts.values()] != [SECTIONS]]


def start(task: str, kind: Kind, number: int, place: Sequence[str]) -> "subprocess.Popen[str]":
    """Start a process that writes or reads, and wait until it has begun."""
    command = [sys.executable, "-m", "tests.index.conformance.engines", task, kind, str(number), *place]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _write_forever(kind: Kind, seed: int, place: Sequence[str]) -> None:
    pick = random.Random(seed)
    with opened(kind, place) as world:
        world.retry()
        _say("ready")
        for version in range(1 + seed * 1_000, sys.maxsize):
            change(world.root, pick, version)
            with suppress(KnapError):
                world.take_in()
                if pick.random() < 0.3:
                    world.derive()


def _read_states(kind: Kind, states: int, place: Sequence[str]) -> None:
    """Check each state that a writer of another process leaves, without writing anything."""
    pick, stemmer = random.Random(states), Stemmer()
    generations: set[int] = set()
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    with ExitStack() as stack:
        if kind == "postgres":
            reader = stack.enter_context(open_reader(Path(place[1]), place[2], place[3]))
            open_state: Callable[[], AbstractContextManager[State]] = lambda: _published_state(reader)  # noqa: E731
        else:
            open_state = stack.enter_context(opened(kind, place)).state
        _say("ready")
        deadline = time.monotonic() + STATES_S
        while len(generations) < states and time.monotonic() < deadline:
            with open_state() as state:
                generations.add(state.generation)
                asked = pick.sample(word_engines.QUESTIONS, 3)
                wrong += differing_words(state, state.reference(stemmer), asked) + torn(state)
                wrong += differing_meaning(state, asked[:1])
                counts += Counter(questions=len(asked) + 1, notes=len(state.versions()))
    stemmer.close()
    _say(json.dumps({**counts, "states": len(generations), "wrong": wrong}))


def main(arguments: Sequence[str]) -> None:
    """Write or read, as the command line says."""
    task, kind, number, *place = arguments
    choose(cast("Kind", kind))
    (_write_forever if task == "write" else _read_states)(cast("Kind", kind), int(number), place)


if __name__ == "__main__":
    main(sys.argv[1:])

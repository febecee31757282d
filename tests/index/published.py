"""A vault on a machine with its files, and the same vault on machines that read what that one publishes.

python -m tests.index.published VAULT STATE ADDRESS NAME SEED     changes, saves and publishes until somebody ends it
python -m tests.index.published --dying VAULT STATE ADDRESS NAME LENGTH     replaces vectors, and kills itself within
"""

import os
import random
import secrets
import signal
import sys
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from knapper.errors import KnapError
from knapper.index.documents import Filter
from knapper.index.engine import Engine
from knapper.index.postgres.connection import PostgresServer
from knapper.index.postgres.publish import Published, Publisher
from knapper.index.postgres.reader import ReaderEngine
from knapper.index.postgres.snapshot import PublishedSnapshot, PublishedSnapshots
from knapper.index.search import SearchMode, SearchRequest
from knapper.index.tokenizer import parse_query
from knapper.vault.access import Policy
from tests.index import word_engines, worlds

OWNER = Policy(client="owner")
PLACES_SQL = "SELECT c.id, f.path, c.position FROM chunks c JOIN files f ON f.id = c.id >> 20"
Place = tuple[str, int]
"""A chunk by the note and its position there: ids differ between machines."""


@dataclass
class Team:
    """One writer, and any number of readers."""

    folder: Path
    address: str
    engine: Engine
    publisher: Publisher
    embedder: worlds.WordEmbedder
    name: str
    stack: ExitStack
    readers: list[ReaderEngine] = field(default_factory=list[ReaderEngine])

    @property
    def root(self) -> Path:
        return self.engine.view.root

    @property
    def schema(self) -> str:
        return self.publisher.server.schema

    def publish(self, *, take_over: bool = False) -> Published:
        """Take in what was saved, and publish it."""
        self.engine.refresh(check=False)
        self.engine.embed()
        return self.publisher.publish(self.engine.store, self.engine.view, model=self.engine.model, take_over=take_over)

    def save(self, notes: Mapping[str, str]) -> Published:
        worlds.fill(self.root, dict(notes))
        return self.publish()

    def reader(self, user: str = "postgres", *, embedder: worlds.WordEmbedder | None = None) -> ReaderEngine:
        """Open the vault on another machine, without files."""
        server = PostgresServer(self.address.replace("postgres@", f"{user}@"), self.name)
        folder = self.folder / f"reader-{len(self.readers)}"
        used = embedder or self.embedder
        reader = ReaderEngine(folder, self.folder / "nowhere", OWNER, server, open_embedder=lambda: used)
        self.readers.append(self.stack.enter_context(reader))
        return reader


def make_embedder() -> worlds.WordEmbedder:
    """Make the embedder of a team; of two processes with vectors of other lengths, one would be refused."""
    embedder = worlds.WordEmbedder()
    embedder.dimensions = 256
    return embedder


@contextmanager
def open_team(
    folder: Path,
    address: str,
    notes: Mapping[str, str],
    *,
    readers: Mapping[str, Policy | None] | None = None,
    name: str = "",
) -> Generator[Team]:
    """Make a vault, index it and publish it."""
    embedder = make_embedder()
    vault_name = name or f"v{secrets.token_hex(4)}"
    with ExitStack() as stack:
        root = worlds.fill(folder / "vault", dict(notes))
        engine = stack.enter_context(worlds.engine(root, folder / "state", embedder))
        server = stack.enter_context(PostgresServer(address, vault_name))
        publisher = Publisher(server, readers=readers or {}, lock_wait_s=0.2)
        team = Team(folder, address, engine, publisher, embedder, vault_name, stack)
        team.publish()
        yield team


@contextmanager
def snapshot(reader: ReaderEngine, model: str = "words") -> Generator[PublishedSnapshot]:
    """Open one state of the published vault."""
    with cast("PublishedSnapshots", reader.open_snapshots()).snapshot(model) as opened:
        yield opened


def ranked(
    opened: PublishedSnapshot, question: str, where: Filter | None = None, limit: int = 15
) -> dict[Place, float]:
    """Rank chunks by words, by the notes and positions."""
    found = opened.keyword(parse_query(question), where or Filter(), limit=limit)
    place_of = places(opened)
    return {place_of[i]: score for i, score in found.items()}


def places(opened: PublishedSnapshot) -> dict[int, Place]:
    return {int(i): (path, position) for i, path, position in opened.state.session.execute(PLACES_SQL)}


def hits(engine: Engine, question: str, mode: SearchMode, where: Filter | None = None) -> list[tuple[float, str, str]]:
    """Search, and return the hits in an order that doesn't depend on ids."""
    found = engine.search(SearchRequest(text=question, mode=mode, limit=30, per_note=5, where=where or Filter())).hits
    return sorted((round(-hit.score, 3), hit.row.note, hit.row.text) for hit in found)


def is_whole(team: Team) -> bool:
    """Return whether what is in the database belongs together."""
    return belongs_together(team.publisher.server)


def belongs_together(server: PostgresServer) -> bool:
    """Return whether counts, words and lengths in the database belong together, past the program."""
    checks = (
        "(SELECT COALESCE(sum(rows), 0) FROM {0}.terms) = (SELECT count(*) FROM {0}.postings)",
        "(SELECT value::int FROM {0}.meta WHERE key = 'chunks') = (SELECT count(*) FROM {0}.chunks)",
        "(SELECT value::int FROM {0}.meta WHERE key = 'vectors') = (SELECT count(*) FROM {0}.vectors)",
        "(SELECT value::int FROM {0}.meta WHERE key = 'words') = (SELECT COALESCE(sum(words), 0) FROM {0}.chunks)",
        "NOT EXISTS (SELECT 1 FROM {0}.postings p LEFT JOIN {0}.chunks c ON c.id = p.chunk WHERE c.words IS DISTINCT"
        " FROM p.words)",
        "NOT EXISTS (SELECT 1 FROM {0}.chunks c LEFT JOIN {0}.files f ON f.id = c.id >> 20 WHERE f.id IS NULL)",
        "NOT EXISTS (SELECT 1 FROM {0}.files f WHERE f.chunks !="
        " (SELECT count(*) FROM {0}.chunks c WHERE c.id >> 20 = f.id))",
        "NOT EXISTS (SELECT 1 FROM {0}.vectors v LEFT JOIN {0}.chunks c ON c.id = v.chunk WHERE c.id IS NULL)",
    )
    with server.snapshot() as session:
        sql = " AND ".join(check.format(f'"{server.schema}"') for check in checks)
        row = session.execute(f"SELECT {sql}").fetchone()
    return bool(row and row[0])


def write_forever(root: Path, state: Path, address: str, name: str, seed: int) -> None:
    """Change notes, take them in and publish them, again and again."""
    pick = random.Random(seed)
    embedder = make_embedder()
    with worlds.engine(root, state, embedder) as engine, PostgresServer(address, name) as server:
        publisher = Publisher(server, readers={})
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            word_engines.change(root, pick)
            with suppress(KnapError):
                engine.refresh(check=False)
                engine.embed()
                publisher.publish(engine.store, engine.view, model="words")


def replace_and_die(root: Path, state: Path, address: str, name: str, length: int) -> None:
    """Give all notes vectors of another length, and be killed when the first batch of them is published."""

    def die(phase: str, done: int, total: int) -> None:
        del phase, done, total
        os.kill(os.getpid(), signal.SIGKILL)

    embedder = make_embedder()
    embedder.dimensions = length
    worlds.fill(root, {"a new one.md": "rain\n"})
    with worlds.engine(root, state, embedder) as engine, PostgresServer(address, name) as server:
        engine.refresh(check=False)
        engine.embed()
        Publisher(server, readers={}).publish(engine.store, engine.view, model="words", progress=die)


if __name__ == "__main__":
    work = write_forever
    if sys.argv[1] == "--dying":
        work = replace_and_die
        del sys.argv[1]
    work(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4], int(sys.argv[5]))

"""Run the engines of others, each in a virtual environment and a process of its own."""

import json
import subprocess
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bench import frame
from bench.places import ROOT
from knapper.app.vault import open_embedder
from knapper.index.models.base import EmbedderSettings
from knapper.index.store import IndexStore
from knapper.index.tokenizer import Stemmer, parse_query, segment
from knapper.index.words import fulltext

Task = Literal["build", "notes", "first", "ask"]
_BATCH = 1_000


class PeerError(Exception):
    """A peer's process failed; the text is the end of what it said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """An engine of others."""

    name: str
    script: str
    """Below `bench/peers`."""
    packages: Sequence[str]
    """Names of distributions; `pyproject.toml` says from which version on."""
    leaves_out: str
    """What it doesn't do of what Knapper's engines do."""


CHROMADB = Peer(
    name="chromadb",
    script="with_chromadb.py",
    packages=("chromadb",),
    leaves_out="ranks nothing by words; a graph misses some of the nearest; filters by metadata that has to be copied "
    "into each chunk",
)
PEERS = (
    Peer(
        name="tantivy + usearch",
        script="with_tantivy.py",
        packages=("tantivy", "usearch"),
        leaves_out="two files that nothing keeps at one state; lengths rounded to a byte, no columns; no filter in the "
        "graph; a saved note writes the whole graph; texts aren't stored",
    ),
    Peer(
        name="LanceDB",
        script="with_lancedb.py",
        packages=("lancedb",),
        leaves_out="no columns, no phrases as asked here; codes of the vectors, of which the best 600 are compared "
        "exactly; what was saved since the last `optimize` is compared one by one",
    ),
    CHROMADB,
    Peer(
        name="Qdrant Edge",
        script="with_qdrant.py",
        packages=("qdrant-edge-py",),
        leaves_out="no phrases or prefixes; a word's mean length stays that of the first build; one process opens a "
        "shard; a note is replaced in two operations",
    ),
)


def python(cache: Path, peer: Peer) -> Path:
    """Give the Python of a peer's environment, and make that where it is missing."""
    folder = cache / f"peer-{peer.script.removeprefix('with_').removesuffix('.py')}"
    group = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]["bench"]
    wanted = [line for line in group if line.partition(">")[0] in peer.packages]
    return frame.make_python(folder, ["numpy", *wanted], peer.name)


def version(cache: Path, peer: Peer) -> str:
    """Give the names and versions of a peer's packages."""
    code = (
        f"from importlib.metadata import version; print(*[n + ' ' + version(n) for n in {[*peer.packages]}], sep=', ')"
    )
    done = subprocess.run([python(cache, peer), "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def run(cache: Path, peer: Peer, task: Task, folder: Path, database: Path) -> dict[str, Any]:
    """Let a peer store the chunks in *folder*, or answer the questions there."""
    command = [python(cache, peer), ROOT / "bench" / "peers" / peer.script, task, folder, database]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise PeerError(f"{peer.name} failed: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def export(index: Path, folder: Path, asked: Sequence[str] = ()) -> int:
    """Write the chunks of an index with their stems and vectors, and questions, for peers; gives their number.

    ``ids.npy`` holds their ids in the index, by number.
    """
    store, stemmer = IndexStore(index / "index.db"), Stemmer()
    try:
        ids: list[int] = []
        vectors: list[NDArray[np.float16]] = []
        with (folder / "chunks.jsonl").open("w", encoding="utf-8") as lines:
            for chunk_id, vector, text in _chunks(store, stemmer):
                ids.append(chunk_id)
                vectors.append(np.frombuffer(vector, np.float16))
                lines.write(json.dumps([chunk_id >> 20, text], ensure_ascii=False) + "\n")
        np.save(folder / "ids.npy", np.array(ids, np.int64))
        np.save(folder / "vectors.npy", np.stack(vectors))
        tokens = [
            [(word.token, word.times) for word in fulltext.query_words(parse_query(text), stemmer) if word.token]
            for text in asked
        ]
    finally:
        stemmer.close()
        store.close()
    (folder / "questions.json").write_text(json.dumps(tokens), encoding="utf-8")
    if asked:
        embedder = open_embedder(EmbedderSettings())
        assert embedder is not None
        np.save(folder / "questions.npy", np.stack([embedder.query(text) for text in asked]))
        embedder.close()
    return len(ids)


def _chunks(store: IndexStore, stemmer: Stemmer) -> Iterator[tuple[int, bytes, str]]:
    """Yield id, vector and stems of each chunk; a title's three times and a heading's twice, as Knapper weighs them."""
    cursor = store.database.reader().execute(
        "SELECT c.id, v.vector, f.title, c.path, c.text FROM chunks c JOIN files f ON f.id = c.id >> 20"
        " JOIN vectors v ON v.chunk_id = c.id ORDER BY c.id"
    )
    while rows := cursor.fetchmany(_BATCH):
        stems = stemmer.stems([segment(text) for _, _, *columns in rows for text in columns])
        joined = [" ".join(words) for words in stems]
        for (chunk_id, vector, *_), title, heading, body in zip(
            rows, joined[::3], joined[1::3], joined[2::3], strict=True
        ):
            yield chunk_id, vector, " ".join((title, title, title, heading, heading, body))

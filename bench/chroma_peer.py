"""Index and query the same chunks with chromadb; runs in a virtual environment of its own.

    python chroma_peer.py batches FOLDER DATABASE   prints {"seconds", "cpu", "peak_mb", "size_mb"}
    python chroma_peer.py notes FOLDER DATABASE     the same, with one call a note
    python chroma_peer.py query FOLDER DATABASE     prints {"milliseconds": [...], "resident_mb"}

FOLDER holds ids.json, texts.json, notes.json, vectors.npy (float32), and questions.npy to query.
"""

import json
import re
import sys
import time
from pathlib import Path

import chromadb
import numpy as np


def main(task: str, folder: Path, database: Path) -> None:
    print(json.dumps(query(folder, database) if task == "query" else index(folder, database, by_note=task == "notes")))


def index(folder: Path, database: Path, *, by_note: bool) -> dict[str, float]:
    ids, texts, notes = (json.loads((folder / f"{name}.json").read_text("utf-8")) for name in ("ids", "texts", "notes"))
    vectors = np.load(folder / "vectors.npy")
    begin, cpu = time.perf_counter(), time.process_time()
    client = _client(database)
    chunks = client.create_collection("chunks", metadata={"hnsw:space": "cosine"})
    for part in _of_notes(notes) if by_note else _of_size(len(ids), client.get_max_batch_size()):
        metadatas = [{"note": note} for note in notes[part]]
        chunks.add(ids=ids[part], embeddings=vectors[part], documents=texts[part], metadatas=metadatas)
    seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    size = sum(file.stat().st_size for file in database.rglob("*") if file.is_file()) / 2**20
    return {"seconds": seconds, "cpu": cpu, "peak_mb": _memory("VmHWM"), "size_mb": size}


def query(folder: Path, database: Path) -> dict[str, object]:
    vectors = np.load(folder / "questions.npy")
    chunks = _client(database).get_collection("chunks")
    times: list[float] = []
    for vector in [*vectors[:20], *vectors]:  # the first 20 twice: once to warm up
        begin = time.perf_counter()
        chunks.query(query_embeddings=[vector], n_results=10)
        times.append((time.perf_counter() - begin) * 1000)
    return {"milliseconds": times[20:], "resident_mb": _memory("VmRSS")}


def _of_size(count: int, step: int) -> list[slice]:
    return [slice(at, at + step) for at in range(0, count, step)]


def _of_notes(notes: list[str]) -> list[slice]:
    starts = [at for at, note in enumerate(notes) if at == 0 or note != notes[at - 1]]
    return [slice(start, stop) for start, stop in zip(starts, [*starts[1:], len(notes)], strict=True)]


def _client(database: Path) -> "chromadb.api.ClientAPI":
    return chromadb.PersistentClient(str(database), settings=chromadb.Settings(anonymized_telemetry=False))


def _memory(field: str) -> float:
    status = Path("/proc/self/status")
    found = re.search(rf"{field}:\s+(\d+)", status.read_text("ascii")) if status.exists() else None
    return int(found[1]) / 1024 if found else float("nan")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))

"""Run the peer, chromadb, in a virtual environment and a process of its own."""

import json
import subprocess
import sys
import tomllib
import venv
from pathlib import Path
from typing import Any, Literal

import numpy as np

from bench import frame
from bench.places import ROOT
from knapper.index.store import IndexStore

NAME = "chromadb"


def python(cache: Path) -> Path:
    """Give the Python of the peer's environment, and make that where it is missing."""
    folder = cache / "peer"
    found = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    if not (folder / ".ready").exists():
        frame.say(f"installing {NAME}")
        wanted = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]["bench"]
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([found, "-m", "pip", "install", "-q", "--disable-pip-version-check", *wanted], check=True)
        (folder / ".ready").touch()
    return found


def version(cache: Path) -> str:
    """Give the peer's name and version."""
    code = f"from importlib.metadata import version; print(version('{NAME}'))"
    done = subprocess.run([python(cache), "-c", code], capture_output=True, text=True, check=True)
    return f"{NAME} {done.stdout.strip()}"


def run(cache: Path, task: Literal["batches", "notes", "query"], folder: Path, database: Path) -> dict[str, Any]:
    """Let the peer store the chunks in *folder*, or answer the questions there."""
    script = ROOT / "bench" / "chroma_peer.py"
    command = [python(cache), script, task, folder, database]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"bench: {NAME} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def export(index: Path, folder: Path) -> int:
    """Write the chunks of an index, with their vectors, for the peer; gives their number."""
    store = IndexStore(index / "index.db")
    try:
        rows = store.database.reader().execute(
            "SELECT c.id, f.path, c.text, v.vector FROM chunks c JOIN files f ON f.id = c.id >> 20"
            " JOIN vectors v ON v.chunk_id = c.id ORDER BY c.id"
        )
        ids, notes, texts, vectors = zip(*rows, strict=True)
    finally:
        store.close()
    for name, values in (("ids", [str(i) for i in ids]), ("notes", notes), ("texts", texts)):
        (folder / f"{name}.json").write_text(json.dumps(values), encoding="utf-8")
    matrix = np.frombuffer(b"".join(vectors), np.float16).reshape(len(ids), -1)
    np.save(folder / "vectors.npy", matrix.astype(np.float32))
    return len(ids)

"""Check the program's own parts: Python, SQLite, the model's files, extras."""

import importlib.util
import sqlite3
import sys
from importlib import resources

from knapper.cli.finding import Finding
from knapper.config import Settings

_OLDEST_PYTHON = (3, 11)
_OLDEST_SQLITE = (3, 38)
_MODEL_FILES = ("weights.safetensors", "tokenizer.json")
_REINSTALL = "install the package again: `pip install --force-reinstall knapper`"


def python(settings: Settings) -> Finding:
    """Check Python's version."""
    del settings
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < _OLDEST_PYTHON:
        return Finding(name="python", state="fail", text=version, hint="install Python 3.11 or newer")
    return Finding(name="python", state="ok", text=version)


def sqlite(settings: Settings) -> Finding:
    """Check SQLite's version, and its search by words and by parts of words."""
    del settings
    version = sqlite3.sqlite_version
    try:
        with sqlite3.connect(":memory:") as connection:
            connection.execute(
                "CREATE VIRTUAL TABLE a USING fts5 (t, tokenize = 'porter unicode61 remove_diacritics 2')"
            )
            connection.execute("CREATE VIRTUAL TABLE b USING fts5 (t, tokenize = 'trigram')")
        connection.close()
    except sqlite3.Error as error:
        hint = "use a Python whose SQLite is 3.38 or newer and has FTS5, such as python.org's or your system's"
        return Finding(name="sqlite", state="fail", text=f"{version}: {error}", hint=hint)
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        return Finding(name="sqlite", state="warn", text=f"{version} is old", hint="use a newer Python")
    return Finding(name="sqlite", state="ok", text=f"{version}, with FTS5 and trigrams")


def model_files(settings: Settings) -> Finding:
    """Check that the built-in embedder's files are there."""
    folder = resources.files("knapper") / "data" / "wordllama"
    missing = [name for name in _MODEL_FILES if not (folder / name).is_file()]
    if not missing:
        return Finding(name="embedder", state="ok", text="the built-in weights are there")
    needed = settings.embeddings.kind == "static"
    text = f"{', '.join(missing)} of the built-in embedder isn't there"
    return Finding(name="embedder", state="fail" if needed else "warn", text=text, hint=_REINSTALL)


def onnx(settings: Settings) -> Finding:
    """Check the extra for ONNX models, where it is wanted."""
    there = importlib.util.find_spec("fastembed") is not None
    if there:
        return Finding(name="onnx", state="ok", text="the extra is installed")
    if settings.embeddings.kind == "onnx":
        hint = "install it: `pip install 'knapper[onnx]'`, or set embeddings.kind to static"
        return Finding(
            name="onnx", state="fail", text="embeddings.kind is onnx, but the extra isn't installed", hint=hint
        )
    return Finding(name="onnx", state="ok", text="the extra isn't installed, and not needed")

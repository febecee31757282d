"""Open judged collections as vaults that scripts can be run over."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from bench import ir, vaults
from knapper.codemode.sandbox.pool import WorkerPool
from knapper.index.engine import Engine
from knapper.tools.context import Context
from knapper.vault.access import Policy

NAMES = ("cranfield", "cisi", "obsidian-links")


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """Hold an opened collection."""

    name: str
    context: Context
    queries: Mapping[str, str]
    """By id, those that are judged."""
    sources: Mapping[str, str]
    """The note that a query was taken from; empty for most."""
    wanted: Mapping[str, frozenset[str]]
    """By query, the notes that are relevant."""


@contextmanager
def opened(name: str, folder: Path, work: Path, sandbox: WorkerPool) -> Generator[Collection]:
    """Index a collection's vault."""
    rows = {row["_id"]: row for row in ir.read_lines(folder / "queries.jsonl")}
    grades = ir.read_grades(folder)
    with vaults.opened(work / "vault", work / "index") as engine:
        engine.refresh()
        engine.embed()
        yield Collection(
            name=name,
            context=context_of(engine, sandbox),
            queries={query: rows[query]["text"] for query in grades},
            sources={query: ir.source_of(rows[query]) for query in grades},
            wanted={query: frozenset(n for n, grade in one.items() if grade > 0) for query, one in grades.items()},
        )


def context_of(engine: Engine, sandbox: WorkerPool) -> Context:
    def no_writer() -> NoReturn:
        raise AssertionError("reading opens nothing to write with")

    view = engine.view.with_policy(Policy(client="bench"))
    return Context(
        vault="bench",
        view=view,
        index=engine,
        open_writer=no_writer,
        close=lambda: None,
        open_sandbox=lambda: sandbox,
    )


def note_of(path: str) -> str:
    """Give the name by which a note is judged."""
    return path.split("/")[1] if path.startswith("documents/") else path

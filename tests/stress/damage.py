"""Damage an index bit by bit, and put files in a vault that can't be read, and see what searches say then."""

import json
import os
import random
import shutil
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from knapper.errors import KnapError
from knapper.index.engine import Engine
from knapper.index.search import SearchRequest
from tests.stress import index_kill
from tests.stress.vault import Garden

NOTES = 60
FLIPS = (1, 3, 20)
LARGE_BYTES = 200_000_000
SQLITE_PAGE = 4096


@dataclass(kw_only=True)
class Report:
    """What the rounds showed."""

    rounds: int = 0
    told: int = 0
    """Damages that were told of, by an error or a remark."""
    right: int = 0
    """Damages after which the answers were right: the index was rebuilt, or no question reads that place."""
    wrong: list[str] = field(default_factory=list[str])
    """Answers other than an undamaged index's, without a word."""
    untold: list[str] = field(default_factory=list[str])
    """Failures without an error of ours."""


Answers = list[list[str]]


def ask(engine: Engine, questions: list[str]) -> tuple[Answers, bool]:
    """Ask all questions; return the notes found and whether a remark was made."""
    results = [engine.search(SearchRequest(text=question)) for question in questions]
    return [[hit.row.note for hit in one.hits] for one in results], any(one.remarks for one in results)


def flip(database: Path, chance: random.Random, count: int) -> None:
    """Flip bits of a file, beyond its first page."""
    content = bytearray(database.read_bytes())
    for _ in range(count):
        content[chance.randrange(SQLITE_PAGE, len(content))] ^= 1 << chance.randrange(8)
    database.write_bytes(content)


def run_flips(rounds: int, *, seed: int, top: Path, until: float) -> Report:
    """Flip bits of an index again and again, each time of a whole copy."""
    chance, report = random.Random(seed), Report()
    garden = Garden.plant(top / "vault", chance, NOTES)
    questions = [" ".join(chance.choices(garden.words, k=3)) for _ in range(20)]
    with index_kill.engine(garden.root, top / "whole") as engine:
        engine.refresh()
        engine.embed()
        expected, _ = ask(engine, questions)
    _fold_log(top / "whole/index.db")
    while report.rounds < rounds and time.monotonic() < until:
        report.rounds += 1
        shutil.rmtree(top / "copy", ignore_errors=True)
        shutil.copytree(top / "whole", top / "copy")
        flip(top / "copy/index.db", chance, chance.choice(FLIPS))
        try:
            with index_kill.engine(garden.root, top / "copy") as engine:
                engine.freshen()
                answers, is_told = ask(engine, questions)
        except KnapError:
            report.told += 1
        except Exception as error:  # noqa: BLE001 - any other error would reach a caller raw
            report.untold.append(f"round {report.rounds}: {type(error).__name__}: {error}")
        else:
            report.told += is_told
            report.right += answers == expected
            report.wrong += [f"round {report.rounds}"] if answers != expected and not is_told else []
    return report


def _fold_log(database: Path) -> None:
    connection = sqlite3.connect(database)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    connection.close()


def _large(path: Path) -> None:
    path.touch()
    os.truncate(path, LARGE_BYTES)


STATES: dict[str, Callable[[Path], object]] = {
    "large": _large,
    "binary": lambda path: path.write_bytes(bytes(range(256)) * 4),
    "empty": lambda path: path.write_bytes(b""),
    "a folder": lambda path: path.mkdir(),
    "a dangling link": lambda path: path.symlink_to("nowhere.md"),
    "a pipe": os.mkfifo,
    "gone": lambda path: path.unlink(missing_ok=True),
    "a note": lambda path: path.write_text("# Another\n\ntext of a note [[note 1]] #tag\n", encoding="utf-8"),
}


def run_unreadable(rounds: int, *, seed: int, top: Path, until: float) -> Report:
    """Give files states in which they can't be read, or can again, and compare the index with one made from nothing."""
    chance, report = random.Random(seed), Report()
    garden = Garden.plant(top / "vault", chance, NOTES)
    while report.rounds < rounds and time.monotonic() < until:
        report.rounds += 1
        names = chance.sample([f"area {number % 20}/note {number}.md" for number in range(NOTES)], 5)
        states = {name: chance.choice(list(STATES)) for name in names}
        for name, state in states.items():
            put(garden.root / name, state)
        try:
            with index_kill.engine(garden.root, top / "index") as engine:
                engine.refresh()
                engine.embed()
        except Exception as error:  # noqa: BLE001 - nothing in a vault may end an update
            report.untold.append(f"round {report.rounds}: {type(error).__name__}: {error}; {json.dumps(states)}")
            shutil.rmtree(top / "index", ignore_errors=True)
            continue
        wrong = index_kill.broken(top / "index/index.db")
        wrong += index_kill.compare(garden.root, top / "index", top / "fresh")
        if wrong:
            report.wrong.append(f"round {report.rounds}: {wrong[0]}; {json.dumps(states)}")
            shutil.rmtree(top / "index", ignore_errors=True)
    return report


def put(path: Path, state: str) -> None:
    """Give a path one of the states."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    STATES[state](path)

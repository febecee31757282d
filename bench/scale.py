"""Index, search and reopen a vault of 100,000 notes."""

import argparse
from pathlib import Path

from bench import frame, generate, index, questions, restart, search
from bench.frame import Report, Row
from bench.places import Places

SUMMARY = "a vault of 100,000 notes: index, restart, search"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--notes", type=int, default=100_000, help="size of the generated vault")
    parser.add_argument("--questions", type=int, default=200, help="how many different questions (default: 200)")


def run(places: Places, options: argparse.Namespace) -> Report | str:
    vault = generate.vault(places, options.notes)
    if vault is None:
        return "there are no real vaults to generate one from"
    folder = places.cache / f"index-{options.notes}"
    for file in folder.glob("*"):
        file.unlink()
    frame.say("indexing")
    built = frame.in_child(index.measure, vault, folder)
    reopened = [frame.in_child(restart.measure, vault, folder) for _ in range(3)]
    found = frame.in_child(search.measure, vault, folder, questions.of(vault, options.questions))
    rows = [*_built(built), *restart.list_rows(reopened, limit_s=None), *search.list_rows(found, goals={})]
    size = f"{built['notes']:,.0f} notes, {built['chunks']:,.0f} chunks, {_size(vault):,.0f} MB of text"
    about = f"A generated vault of {size}; the others' questions and steps."
    return Report(title="A hundred thousand notes", about=about, rows=rows)


def _built(built: dict[str, float]) -> list[Row]:
    return [
        Row(what="full index, words", values=[built["lexical"]], unit="s"),
        Row(what="full index, embeddings", values=[built["embed"]], unit="s"),
        Row(what="index on disk", values=[built["size"]], unit="MB", digits=0),
        Row(what="peak memory of indexing", values=[built["peak"]], unit="MB", digits=0),
    ]


def _size(vault: Path) -> float:
    return sum(file.stat().st_size for file in vault.rglob("*.md")) / 2**20

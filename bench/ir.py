"""Rank judged collections: how good search is, through the index and the search path that everybody uses."""

import argparse
import gzip
import hashlib
import json
import re
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench import vaults
from bench.frame import Goal, Report, Row, say
from bench.places import Places
from knapper.cli.commands import eval as evaluation
from knapper.index.engine import Engine
from knapper.index.search import SearchRequest

SUMMARY = "nDCG@10 on judged collections, on the half of the queries that chose nothing"
_GOALS = {"cranfield": 0.37, "cisi": 0.36, "obsidian-links": 0.74}
_UNSAFE = re.compile(r'[\\/:*?"<>|#^\[\]\x00-\x1f]+')
_DEEP = 50
Asker = Callable[[str], SearchRequest]
_WAYS: Mapping[str, Asker] = {
    "hybrid": lambda text: SearchRequest(text=text, limit=_DEEP, per_note=1),
    "words only": lambda text: SearchRequest(text=text, limit=_DEEP, per_note=1, mode="keyword"),
    "meaning only": lambda text: SearchRequest(text=text, limit=_DEEP, per_note=1, mode="semantic"),
    "reciprocal rank fusion": lambda text: SearchRequest(text=text, limit=_DEEP, per_note=1, fusion="rrf"),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--titles", choices=("name", "heading"), default="name", help="where a document's title goes")


def run(places: Places, options: argparse.Namespace) -> Report | str:
    folders = {name: places.collection(name) for name in _GOALS}
    rows: list[Row] = []
    for name, folder in folders.items():
        if folder is None:
            say(f"{name}: missing, left out")
            continue
        with vaults.scratch(places.cache) as work:
            build(folder, work / "vault", title_in=options.titles, real=places.vault("obsidian-help"))
            rows.extend(measure(name, folder, work))
    if not rows:
        return f"there is no collection below {places.data.name}/ir"
    return Report(title="Quality", about=_ABOUT, rows=rows, remarks=_REMARKS)


def build(folder: Path, vault: Path, *, title_in: str, real: Path | None) -> None:
    """Write a collection's documents as notes; the linked documentation's are the real ones, where they are there."""
    with gzip.open(folder / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        documents = [json.loads(line) for line in lines]
    notes: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for document in documents:
        notes[document["note"]].append(document)
    for note, parts in notes.items():
        if note.endswith(".md"):
            _copy(real, vault, note, parts)
        else:
            _write_document(vault, parts[0], title_in=title_in)


def measure(name: str, folder: Path, work: Path) -> Iterator[Row]:
    """Index the vault, ask every query in every way; a row a way and half."""
    queries = {row["_id"]: row for row in read_lines(folder / "queries.jsonl")}
    grades = read_grades(folder)
    halves = {"reported": [q for q in grades if half(q) == 1], "chosen on": [q for q in grades if half(q) == 0]}
    with vaults.opened(work / "vault", work / "index") as engine:
        engine.refresh()
        engine.embed()
        for way, asker in _WAYS.items():
            rankings = {q: rank(engine, asker(queries[q]["text"])) for q in grades}
            for label, ids in halves.items():
                goal = Goal(limit=_GOALS[name], sense="at least") if (way, label) == ("hybrid", "reported") else None
                if way == "hybrid" or label == "reported":
                    score = _score(rankings, grades, ids)
                    yield Row(what=f"{name}: {way}, {label} half", values=[score], digits=3, goal=goal)
            if way == "hybrid" and any("src" in queries[q] for q in grades):
                kept = {q: [n for n in r if n != source_of(queries[q])] for q, r in rankings.items()}
                score = _score(kept, grades, halves["reported"])
                yield Row(what=f"{name}: hybrid, reported half, without the note that asks", values=[score], digits=3)


def half(query: str) -> int:
    """Tell in which half a query is: 0 chose the parameters, 1 is reported."""
    return int(hashlib.sha256(query.encode()).hexdigest(), 16) & 1


def rank(engine: Engine, question: SearchRequest) -> list[str]:
    """Give the notes in the order in which search shows them; a document's id is its folder."""
    found = [hit.row.note for hit in engine.search(question).hits]
    names = [note.split("/")[1] if note.startswith("documents/") else note for note in found]
    return list(dict.fromkeys(names))


def _score(rankings: Mapping[str, Sequence[str]], grades: Mapping[str, Mapping[str, int]], ids: Sequence[str]) -> float:
    return sum(evaluation.ndcg(rankings[q], grades[q], 10) for q in ids) / len(ids)


def _copy(real: Path | None, vault: Path, note: str, parts: Sequence[dict[str, Any]]) -> None:
    target = vault / note
    target.parent.mkdir(parents=True, exist_ok=True)
    if real is not None and (real / note).exists():
        shutil.copyfile(real / note, target)
        return
    target.write_text(
        "\n\n".join(_section(before, part) for before, part in zip(["", *_heads(parts)], parts, strict=False)),
        encoding="utf-8",
    )


def _heads(parts: Sequence[dict[str, Any]]) -> list[str]:
    return [part.get("heading") or "" for part in parts]


def _section(before: str, part: dict[str, Any]) -> str:
    heads = (part.get("heading") or "").split(" > ")
    known = before.split(" > ")
    new = [
        f"{'#' * (level + 2)} {head}"
        for level, head in enumerate(heads)
        if head and head not in known[level : level + 1]
    ]
    return "\n\n".join([*new, part["text"]])


def _write_document(vault: Path, document: dict[str, Any], *, title_in: str) -> None:
    title, text = document["title"], document["text"]
    folder = vault / "documents" / document["note"]
    folder.mkdir(parents=True)
    name = _UNSAFE.sub(" ", title).strip(" .")[:150] or document["note"]
    if title_in == "heading":
        name, text = document["note"], f"# {title}\n\n{text}"
    (folder / f"{name}.md").write_text(text, encoding="utf-8")


def read_grades(folder: Path) -> dict[str, dict[str, int]]:
    file = folder / "notes.tsv"
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for line in (file if file.exists() else folder / "qrels.tsv").read_text(encoding="utf-8").splitlines():
        query, name, grade = line.split("\t")
        found[query][name] = int(grade)
    return dict(found)


def source_of(query: Mapping[str, str]) -> str:
    return query.get("src", "").rsplit("#", 1)[0]


def read_lines(file: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line]


_ABOUT = (
    "nDCG@10 by note. Queries whose SHA-256 is even chose the parameters, the others are reported; "
    "one set of parameters for all collections. "
    "Each document is a note of its title; the linked documentation is its real 173 notes."
)
_REMARKS = (
    "A query of `obsidian-links` is a sentence of a note, and the note it links to is wanted. The note that holds the "
    "sentence is found first, as it should be, and pushes the wanted one down; one row leaves it out.",
)

"""Read a judged collection: a vault, queries, and which notes answer them."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from knapper.errors import BadInput

_COLUMNS = 3
_LAYOUT = 'it holds vault/, queries.jsonl ({"_id", "text"} a line) and notes.tsv (query id, note path, grade)'


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """Hold what `knap eval` measures with."""

    vault: Path
    queries: Mapping[str, str]
    """Text by id; those that have a judgement."""
    grades: Mapping[str, Mapping[str, int]]
    """By query, grade by note."""


def read(folder: Path) -> Collection:
    """Read a collection.

    Raises:
        BadInput: Something is missing, or a line can't be used; the message names file and line.
    """
    vault = folder / "vault"
    if not vault.is_dir():
        raise BadInput(f"{folder} is no collection: there is no {vault}", hint=_LAYOUT)
    queries = _queries(folder / "queries.jsonl")
    grades = _grades(folder / "notes.tsv", queries, vault)
    if not grades:
        raise BadInput(f"{folder / 'notes.tsv'} judges nothing", hint=_LAYOUT)
    judged = {query: text for query, text in queries.items() if query in grades}
    return Collection(vault=vault, queries=judged, grades=grades)


def _queries(file: Path) -> dict[str, str]:
    queries: dict[str, str] = {}
    for number, line in _lines(file):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise _bad(file, number, "it isn't JSON") from error
        if not isinstance(row, dict):
            raise _bad(file, number, "it isn't an object")
        fields = cast("dict[str, object]", row)
        name, text = fields.get("_id"), fields.get("text")
        if not isinstance(name, str) or not isinstance(text, str):
            raise _bad(file, number, "'_id' and 'text' must be texts")
        if name in queries:
            raise _bad(file, number, f"the query '{name}' stands there twice")
        queries[name] = text
    return queries


def _grades(file: Path, queries: Mapping[str, str], vault: Path) -> dict[str, dict[str, int]]:
    grades: dict[str, dict[str, int]] = {}
    for number, line in _lines(file):
        columns = line.split("\t")
        if len(columns) != _COLUMNS:
            raise _bad(file, number, f"it has {len(columns)} columns, not {_COLUMNS}")
        query, note, grade = columns
        if query not in queries:
            raise _bad(file, number, f"there is no query '{query}'")
        if not grade.strip().lstrip("-").isdecimal():
            raise _bad(file, number, f"the grade '{grade}' isn't a whole number")
        if not (vault / note).is_file():
            raise _bad(file, number, f"there is no note '{note}' in {vault}")
        grades.setdefault(query, {})[note] = int(grade)
    return grades


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    try:
        with file.open(encoding="utf-8-sig") as opened:
            for number, line in enumerate(opened, 1):
                if line.strip():
                    yield number, line.rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        cause = getattr(error, "strerror", None) or "it isn't UTF-8 text"
        raise BadInput(f"{file} can't be read: {cause}", hint=_LAYOUT) from error


def _bad(file: Path, number: int, cause: str) -> BadInput:
    return BadInput(f"{file}:{number}: {cause}", hint=_LAYOUT)

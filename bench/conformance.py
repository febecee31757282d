"""Run the suite that all engines have to pass, and count what it compared."""

import argparse
import json
import subprocess
import sys

from bench import frame, vaults
from bench.frame import Goal, Report, Row, Table
from bench.places import ROOT, Places
from tests.index.conformance.engines import NAMES

SUMMARY = "one suite for the three engines, against a plain reference: what was compared"
_SUITE = "tests/index/conformance"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-k", dest="chosen", default="", help="only the tests whose names match, as pytest has it")


def run(places: Places, options: argparse.Namespace) -> Report:
    with vaults.scratch(places.cache) as work:
        command = [sys.executable, "-m", "pytest", _SUITE, "-q", "--report-json", work / "counts.json"]
        if options.chosen:
            command += ["-k", options.chosen]
        frame.say(f"running {_SUITE}")
        done = subprocess.run(command, cwd=ROOT, stdout=sys.stderr, check=False)
        counts: dict[str, dict[str, int]] = json.loads((work / "counts.json").read_text("utf-8"))
    about = (
        "Comparisons that held, in generated vaults of some dozens of notes that change, by engine: a question's "
        "chunks and scores with those of BM25 counted in plain Python (relative difference under 10⁻⁹; words, "
        "repetitions, prefixes, phrases, exclusions), nearest chunks with every vector's cosine, notes of several "
        "passages that all tell their version. Writers of another process are killed with `kill -9`, or write on while "
        "two more processes read."
    )
    table = Table(
        title="Comparisons that held",
        header=("property", *NAMES.values()),
        rows=[[what, *(f"{of_kind[kind]:,}" for kind in NAMES)] for what, of_kind in counts.items()],
    )
    failed = Row(what="exit code of the suite", values=[done.returncode], goal=Goal(limit=1))
    return Report(title="Conformance", about=about, tables=[table], rows=[failed])

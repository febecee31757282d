"""Kill the indexer at random moments, and check its index each time."""

import argparse

from bench import vaults
from bench.frame import Goal, Report, Row
from bench.places import Places
from tests.stress import index_kill

SUMMARY = "kill -9 at random moments of indexing and updating"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kills", type=int, default=100, help="kills that hit (default: 100)")
    parser.add_argument("--notes", type=int, default=1_500, help="size of the made-up vault (default: 1500)")


def run(places: Places, options: argparse.Namespace) -> Report:
    with vaults.scratch(places.cache) as work:
        result = index_kill.run(work, kills=options.kills, notes=options.notes)
    about = (
        f"A vault of {options.notes:,} notes is edited, added to, deleted from and renamed at random; an indexer in "
        f"another process takes it in and is killed at a random moment, {result.kills} times. After each kill SQLite's "
        "and FTS5's own checks run, and the index, opened again, is compared with the vault."
    )
    rows = [
        Row(
            what="kills while the indexer was at work",
            values=[result.kills],
            goal=Goal(limit=options.kills, sense="at least"),
        ),
        Row(what="corrupt", values=[len(result.corrupt)], goal=Goal(limit=1)),
        Row(what="notes or texts other than the vault's", values=[len(result.different)], goal=Goal(limit=1)),
        Row(what="compared with a new index, words and vectors too", values=[result.compared]),
    ]
    return Report(title="Killed", about=about, rows=rows)

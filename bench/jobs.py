"""Kill a server at random moments while chats, tasks and runs are under way, and go on with them."""

import argparse

from bench import vaults
from bench.frame import Goal, Report, Row
from bench.places import Places
from tests.stress import job_kills

SUMMARY = "kill -9 of a server with 50 chats, tasks and runs under way: none lost, none done twice, all accounted for"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kills", type=int, default=100, help="how often the server is killed (default: 100)")
    parser.add_argument("--jobs", type=int, default=50, help="jobs at once, eight of them runs (default: 50)")
    parser.add_argument("--minutes", type=float, default=0, help="no more kills after so many (default: no such end)")


def run(places: Places, options: argparse.Namespace) -> Report:
    with vaults.scratch(places.cache) as work:
        result = job_kills.run(work, kills=options.kills, jobs=options.jobs, minutes=options.minutes)
    unaccounted = result.requests - result.accounted
    about = (
        f"{options.jobs} jobs at once: eight runs, each of six parts and ten requests, and as many chats as tasks of "
        "one request, with a model that is played on loopback and takes 1.5 s for a reply. The server is killed after "
        f"0.05 to 2 s, {result.kills} times; the next one goes on with what was interrupted, and begins as many more "
        "when all are done."
    )
    rows = [
        Row(what="kills", values=[result.kills], goal=Goal(limit=options.kills, sense="at least")),
        Row(what="runs", values=[result.runs]),
        Row(what="chats and tasks", values=[result.turns]),
        Row(what="not complete in the end", values=[len(result.lost)], goal=Goal(limit=1)),
        Row(
            what="kept twice, or asked again although the answer was kept",
            values=[len(result.repeated)],
            goal=Goal(limit=1),
        ),
        Row(what="requests to the model", values=[result.requests]),
        Row(what="requests in the account", values=[result.accounted]),
        Row(what="requests under way at the kills, counted", values=[result.most_unaccounted]),
        Row(
            what="requests not in the account, at most those under way at the kills",
            values=[unaccounted],
            goal=Goal(limit=result.most_unaccounted + 1),
        ),
    ]
    return Report(title="Jobs", about=about, rows=rows)

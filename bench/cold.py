"""Run the command line as whole processes."""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench import vaults
from bench.frame import Goal, Report, Row
from bench.places import ROOT, Places

SUMMARY = "the command line, from process start to its end"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=10, help="how often each is run (default: 10)")


def run(places: Places, options: argparse.Namespace) -> Report | str:
    docs = ROOT / "docs"
    knap = Path(sys.executable).with_name("knap.exe" if sys.platform == "win32" else "knap")
    if not knap.exists():
        return "there is no knap beside this Python; run scripts/setup"
    with vaults.scratch(places.cache) as home:
        env = _env(home)
        _time([knap, "--vault", docs, "index"], env)
        runs = {
            "python, doing nothing": ([sys.executable, "-c", "pass"], None),
            "knap --help": ([knap, "--help"], 0.2),
            "knap search, words and meaning": ([knap, "--vault", docs, "search", "how do I undo a change"], 0.5),
            "knap search --mode keyword": ([knap, "--vault", docs, "search", "undo change", "--mode", "keyword"], None),
        }
        rows = [_row(name, command, limit, env, options.rounds) for name, (command, limit) in runs.items()]
    notes = sum(1 for _ in docs.rglob("*.md"))
    about = (
        f"Each command {options.rounds} times, one after the other, files in the system's cache; "
        f"the vault is the documentation, {notes} notes."
    )
    return Report(title="Cold start", about=about, rows=rows)


def _row(name: str, command: Sequence[str | Path], limit_s: float | None, env: Mapping[str, str], rounds: int) -> Row:
    _time(command, env)
    goal = Goal(limit=limit_s * 1000) if limit_s else None
    return Row(what=name, values=[_time(command, env) for _ in range(rounds)], unit="ms", goal=goal, digits=0)


def _time(command: Sequence[str | Path], env: Mapping[str, str]) -> float:
    begin = time.perf_counter()
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"bench: {command} failed:\n{done.stderr[-2000:]}")
    return (time.perf_counter() - begin) * 1000


def _env(home: Path) -> dict[str, str]:
    """Keep the person's own settings and state out of it."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("KNAP_", "VAULT_"))}  # noqa: TID251
    return {**own, "KNAP_STATE_DIR": str(home / "state"), "KNAP_CONFIG": str(home / "config.toml")}

"""Scripts in the sandbox: warm, cold, with many calls, many at once."""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from bench import vaults
from bench.frame import Goal, Report, Row
from bench.places import ROOT, Places
from knapper import app
from knapper.codemode import bridge
from knapper.codemode.sandbox.pool import WorkerPool
from knapper.config import EmbeddingSettings, Settings, Vault
from knapper.jsontypes import JSONValue
from knapper.tools.context import Context, ScriptLimits

SUMMARY = "scripts in the sandbox: warm, cold, with many calls, many at once"
TRIVIAL = "__result__ = 1 + 1"
CALLS = "for i in range(1000):\n    METHOD\n__result__ = 1"
LOOP = "total = 0\nfor i in range(1_000_000):\n    total += i * i\n__result__ = total"
PART = "names = obsidian.list_notes(recursive=True)\n__result__ = [len(obsidian.read_note(n)) for n in names[:20]]"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=50, help="how often a warm script is run (default: 50)")


def run(places: Places, options: argparse.Namespace) -> Report | str:
    docs = ROOT / "docs"
    with vaults.scratch(places.cache) as home:
        compiled = _compile(home / "state" / "sandbox")
        settings = Settings(
            choice=Vault(name="docs", path=docs),
            state_dir=home / "state",
            embeddings=EmbeddingSettings(kind="none"),
            config_file=home / "config.toml",
        )
        with app.open_vault(settings, client="script") as context, WorkerPool(home / "state" / "sandbox") as sandbox:
            _ = context.index.refresh()
            ready = replace(context, open_sandbox=lambda: sandbox)
            _ = sandbox.warm(8)
            rows = [
                Row(what="compiling the interpreter, once", values=[compiled], unit="s"),
                _row("a trivial script, warm", [_ms(ready, TRIVIAL) for _ in range(options.rounds)], 10),
                _row("1,000 calls of a host that does nothing", _calls(sandbox), 300),
                _row("1,000 wikilinks", [_ms(ready, _method("obsidian.create_wikilink('index.md')"))] * 1, 300),
                _row("1,000 reads of a note", [_ms(ready, _method("obsidian.read_note('index.md')"))] * 1, None),
                _row(
                    "1,000 notes in one call of 1,000", [_ms(ready, "obsidian.read_notes(['index.md'] * 1000)")], None
                ),
                _row("a loop of a million rounds", [_ms(ready, LOOP) for _ in range(3)], None),
                _row("the same loop without sandbox", [_native() for _ in range(3)], None),
                _row("a script that reads 20 notes, alone", [_ms(ready, PART) for _ in range(8)], None),
                _row("8 such scripts at once, each", _at_once(ready), None),
            ]
        rows += [_cold(home, docs)]
    about = "The vault is the documentation. Warm: workers wait; each script has a fresh instance; both walls stand."
    return Report(title="Scripts", about=about, rows=rows)


def _row(what: str, values: list[float], limit: float | None) -> Row:
    return Row(what=what, values=values, unit="ms", goal=Goal(limit=limit) if limit else None)


def _compile(folder: Path) -> float:
    begin = time.perf_counter()
    with WorkerPool(folder) as sandbox:
        _ = sandbox.warm()
    return time.perf_counter() - begin


def _method(call: str) -> str:
    return CALLS.replace("METHOD", call)


def _ms(context: Context, script: str) -> float:
    begin = time.perf_counter()
    outcome = bridge.execute_script(context, script)
    if not outcome.ok:
        sys.exit(f"bench: {outcome.error}")
    return (time.perf_counter() - begin) * 1_000


def _calls(sandbox: WorkerPool) -> list[float]:
    def nothing(_method: str, _given: Mapping[str, JSONValue]) -> JSONValue:
        return None

    script = _method("obsidian.get_hash('A')")
    return [sandbox.run(script, nothing, limits=ScriptLimits()).wall_s * 1_000 for _ in range(5)]


def _at_once(context: Context) -> list[float]:
    with ThreadPoolExecutor(8) as pool:
        runs = [pool.submit(_ms, context, PART) for _ in range(8)]
        return [run.result() for run in runs]


def _native() -> float:
    begin = time.perf_counter()
    exec(LOOP, {})
    return (time.perf_counter() - begin) * 1_000


def _cold(home: Path, docs: Path) -> Row:
    file = home / "trivial.py"
    _ = file.write_text(TRIVIAL, encoding="utf-8")
    own = {"KNAP_STATE_DIR": str(home / "state"), "KNAP_CONFIG": str(home / "config.toml")}
    env = {**os.environ, **own}  # noqa: TID251 - a process of its own gets this one's environment
    knap = [sys.executable, "-m", "knapper.cli", "--vault", str(docs), "script", str(file)]
    values: list[float] = []
    for _ in range(10):
        begin = time.perf_counter()
        _ = subprocess.run(knap, env=env, capture_output=True, check=True)
        values.append((time.perf_counter() - begin) * 1_000)
    return _row("`knap script`, cold, machine code there", values[1:], 700)

"""Count tokens: of the tools that each profile lists, and of a task in one script and through single tools."""

import argparse
import json
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from bench import generate, mcp, vaults
from bench.frame import Goal, Report, Row, say
from bench.places import Places
from knapper.app import tables
from knapper.tools import registry
from knapper.tools.context import Context, ScriptAccess, ToolSignature
from knapper.tools.registry import ToolTable

Answer = dict[str, Any]
Call = tuple[str, dict[str, Any]]
Step = Callable[[list[Answer]], list[Call]]
"""Gives the next calls, which a model makes together, by all answers so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Hold a task in both ways."""

    name: str
    steps: Sequence[Step]
    script: str


def _read_all(answers: list[Answer]) -> list[Call]:
    return [("read_file", {"path": path}) for path in _paths(answers[0])]


def _paths(answer: Answer) -> list[str]:
    return list(dict.fromkeys(str(one.get("path") or one.get("source")) for one in answer["results"]))


WORKS = (
    Work(
        name="the sentences on sync in 20 notes",
        steps=(lambda _: [("search_vault", {"query": "sync", "limit": 20})], _read_all),
        script="""import re
lines = {}
for note in obsidian.search("sync", limit=20):
    found = [s.strip() for s in re.split(r"(?<=[.!?])\\s|\\n", note["content"]) if re.search(r"\\bsync", s, re.I)]
    lines[note["path"]] = found[:3]
__result__ = lines
""",
    ),
    Work(
        name="the ten longest notes with their headings",
        steps=(
            lambda _: [("find_notes", {"sort": "-size", "limit": 10})],
            lambda answers: [("note_info", {"path": path}) for path in _paths(answers[0])],
        ),
        script="""import re
found = obsidian.tools.find_notes(sort="-size", limit=10)["results"]
texts = obsidian.read_notes([one["path"] for one in found])
__result__ = {path: re.findall(r"^#+ .+", text, re.M) for path, text in texts.items()}
""",
    ),
    Work(
        name="which notes link to each other both ways",
        steps=(
            lambda _: [("find_notes", {"limit": 60})],
            lambda answers: [("find_outlinks", {"note_path": path}) for path in _paths(answers[0])],
        ),
        script="""out = {}
for note in obsidian.tools.find_notes(limit=60)["results"]:
    links = obsidian.tools.find_outlinks(note_path=note["path"])["links"]
    out[note["path"]] = {one["leads_to"] for one in links if one.get("leads_to")}
__result__ = sorted([a, b] for a in out for b in out[a] if a < b and a in out.get(b, ()))
""",
    ),
)


SUMMARY = "What the tools of each MCP profile take of a model's context, and how soon they are listed"
_PROFILES = ("essential", "standard", "read-only", "full")
_TOKENS = {"essential": Goal(limit=1_500), "standard": Goal(limit=4_500)}
_BYTES = {"standard": Goal(limit=20.0)}
_STAT = Path("/proc")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3, help="starts of each profile (default: 3)")


def run(where: Places, options: argparse.Namespace) -> Report | str:
    vault = generate.vault(where, options.notes)
    if vault is None:
        return "no real vaults to generate from"
    count = counter()
    rows: list[Row] = []
    for profile in _PROFILES:
        listings = [_first_list(where, vault, profile) for _ in range(options.rounds)]
        tools, kilobytes = listings[0][0], listings[0][1] / 1000
        shown = [{"name": one["name"], "description": one["description"], **one["inputSchema"]} for one in tools]
        spent, waited = [one[2] for one in listings], [one[3] for one in listings]
        rows += [
            Row(what=f"{profile}: tools", values=[len(tools)], digits=0),
            Row(what=f"{profile}: tokens", values=[count(shown)], digits=0, goal=_TOKENS.get(profile)),
            Row(what=f"{profile}: `tools/list`", values=[kilobytes], unit="KB", goal=_BYTES.get(profile)),
            Row(what=f"{profile}: first `tools/list`, processor time", values=spent, unit="s", goal=Goal(limit=0.6)),
            Row(what=f"{profile}: first `tools/list`, elapsed", values=waited, unit="s"),
        ]
    about = (
        f"`knap mcp` over pipes on {options.notes:,} generated notes and an empty state folder: the list that a client "
        "asks for right after the handshake. Tokens are those of name, description and parameters, by the package's "
        "own tokenizer, which splits JSON more finely than large models' do."
    )
    return Report(title="Tools in a model's context", about=about, rows=rows)


def _first_list(where: Places, vault: Path, profile: str) -> tuple[list[dict[str, Any]], int, float, float]:
    """Give the tools, and bytes, processor time and time of the first list of a fresh process."""
    with vaults.scratch(where.cache) as home, mcp.started(vault, home, "--profile", profile) as server:
        server.ask("initialize", mcp.HELLO)
        server.tell("notifications/initialized")
        spent, began = _processor_s(server.pid), time.perf_counter()
        tools = server.ask("tools/list", {})["tools"]
        return tools, server.received, _processor_s(server.pid) - spent, time.perf_counter() - began


def _processor_s(pid: int) -> float:
    """Give the processor time of a process so far; not a number where the system doesn't tell."""
    stat = _STAT / str(pid) / "stat"
    if not stat.exists():
        return math.nan
    fields = stat.read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def counter() -> Callable[[object], int]:
    """Give what estimates the tokens of a text, or of anything as JSON: Llama 2 has one for 3.5 characters of it."""

    def count(value: object) -> int:
        return round(len(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)) / 3.5)

    return count


def compare(context: Context) -> Iterator[Row]:
    """Do each task in both ways; rows of tokens."""
    say("tokens")
    count = counter()
    table = tables.build_table()
    own = replace(context, scripting=_scripting(table))

    def call(name: str, arguments: dict[str, Any]) -> Answer:
        return cast("Answer", table.call(name, arguments, lambda _: own))

    for work in WORKS:
        answers: list[Answer] = []
        once = again = calls = 0
        for step in work.steps:
            asked = step(answers)
            given = [call(name, arguments) for name, arguments in asked]
            again += once
            once += sum(count(one) for one in asked) + sum(count(one) for one in given)
            calls += len(asked)
            answers.extend(given)
        done = call("run_script", {"code": work.script})
        if not done["ok"]:
            raise SystemExit(f"bench: {work.name}: {done['error']}")
        scripted = count(["run_script", {"code": work.script}]) + count(done)
        yield Row(what=f"{work.name}: tokens, {calls} calls of single tools", values=[once + again], digits=0)
        yield Row(what=f"{work.name}: tokens, one script", values=[scripted], digits=0)


def _scripting(table: ToolTable) -> ScriptAccess:
    rows = [row for row in table.specs if row.effect == "read" and not row.open_world]
    known = [ToolSignature(name=row.name, parameters=registry.parameter_schema(row, brief=True)) for row in rows]
    return ScriptAccess(
        tools=lambda: known, call=lambda context, name, arguments: table.call(name, arguments, lambda _: context)
    )

"""Time a round of the scout without its model: the tools of a round, side by side, and the context that is built."""

import argparse
import asyncio
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NoReturn

from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel, StreamFunctionDef
from pydantic_ai.usage import UsageLimits

from bench import frame, generate, vaults
from bench.frame import Goal, Report, Row
from bench.places import Places
from knapper.agents.loop import StageAgent
from knapper.agents.pipeline import context as pipeline_context
from knapper.agents.pipeline.context import TaskRequest
from knapper.agents.pipeline.records import ScoutSettings
from knapper.agents.pipeline.scopes import ContextScopeConfig
from knapper.agents.pipeline.scout import SCOUT, ScoutRun, ScoutTask
from knapper.index.engine import Engine
from knapper.index.feed import ChangeFeed
from knapper.tools import notes, table
from knapper.tools.context import Context
from knapper.vault.access import Policy

SUMMARY = "Time a round of the scout, without its model."
_ROUNDS = 5
_GOAL = Goal(limit=300)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=10, help="trips of five rounds")


def run(where: Places, options: argparse.Namespace) -> Report | str:
    vault = generate.vault(where, options.notes)
    if vault is None:
        return "no real vaults to generate from"
    folder = where.cache / f"tools-{options.notes}"
    frame.in_child(vaults.index, vault, folder)
    found = frame.in_child(measure, vault, folder, options.runs)
    rows = [
        Row(what=what, values=found[name], unit="ms", goal=_GOAL)
        for name, what in (
            ("rounds", "a round: six tools and a selection"),
            ("unwatched", "the same where nobody watches the vault"),
            ("contexts", "the context of depth 2, within 16,000 tokens"),
        )
    ]
    about = (
        f"{options.runs} trips of {_ROUNDS} rounds over a generated vault of {options.notes:,} notes, with a model "
        "that answers at once: searches by words, by meaning and for the task, links, a note and a selection a round."
    )
    return Report(title="Scouting", about=about, rows=rows)


def measure(vault: Path, folder: Path, runs: int) -> dict[str, list[float]]:
    """Make trips; gives milliseconds of a round, and of building a context."""
    with vaults.opened(vault, folder) as engine:
        context = _context(engine)
        some = _some(context, runs + 1)
        with ChangeFeed(engine.view.root, folder) as feed, engine.followed_by(feed):
            _ = asyncio.run(_trip(context, some[0]))
            rounds = [asyncio.run(_trip(context, note)) / _ROUNDS for note in some[1:]]
            contexts = [_built(context, note) for note in some[1:]]
        unwatched = [asyncio.run(_trip(context, note)) / _ROUNDS for note in some[1:]]
    return {"rounds": rounds, "unwatched": unwatched, "contexts": contexts}


async def _trip(context: Context, note: str) -> float:
    rows = {row.name: row for row in table.TOOLS}
    scout = StageAgent(
        stage=SCOUT,
        model=FunctionModel(stream_function=_model(note)),
        prompt="x",
        rows={name: rows[name] for name in SCOUT.tools if name in rows},
        settings=ScoutSettings(rounds=_ROUNDS),
        limits=UsageLimits(request_limit=50),
    )
    began = time.perf_counter()
    _ = await ScoutRun(scout, context, ScoutTask(task=Path(note).stem, current=note)).run(lambda _: None)
    return (time.perf_counter() - began) * 1000


def _model(note: str) -> StreamFunctionDef:
    words = Path(note).stem

    async def say(messages: list[ModelMessage], _: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
        number = len(messages)
        calls: list[tuple[str, dict[str, object]]] = [
            ("search_keyword", {"query": f"{words} {number}"}),
            ("search_semantic", {"query": f"{words} {number}"}),
            ("search_task_relevant", {"task": f"{words} {number}", "current_note": note}),
            ("get_links", {"path": note, "limit": 90 + number}),
            ("get_links_recursive", {"path": note, "depth": 2, "limit": 90 + number}),
            ("fetch_note", {"path": note, "offset": number}),
            ("update_selection", {"selected_paths": [note], "reasoning": str(number), "confidence": "exploring"}),
        ]
        for place, (name, arguments) in enumerate(calls):
            yield {place: DeltaToolCall(name=name, json_args=json.dumps(arguments), tool_call_id=f"{number}-{place}")}

    return say


def _built(context: Context, note: str) -> float:
    began = time.perf_counter()
    chosen = pipeline_context.select_notes(
        context, TaskRequest(task="-", current=note, scope=ContextScopeConfig(link_depth=2))
    )
    found = pipeline_context.read_notes(context, chosen, 16_000)
    _ = pipeline_context.build_context(
        found.notes, limit=16_000, mark="m", problems=found.problems, unread=found.unread
    )
    return (time.perf_counter() - began) * 1000


def _context(engine: Engine) -> Context:
    def no_writer() -> NoReturn:
        raise AssertionError("reading opens nothing to write with")

    view = engine.view.with_policy(Policy(client="bench"))
    return Context(vault="bench", view=view, index=engine, open_writer=no_writer, close=lambda: None)


def _some(context: Context, count: int) -> list[str]:
    """Give notes from all over the vault."""
    total = int(str(notes.find_notes(context, limit=1)["total"]))
    found: list[str] = []
    for number in range(count):
        rows: Any = notes.find_notes(context, limit=1, offset=number * total // count)["results"]
        found.append(rows[0]["path"])
    return found

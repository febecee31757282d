"""Count the tokens of a task that is done in one script, and of the same task through single tools."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any, cast

from tokenizers import Tokenizer

from bench.frame import Row, say
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


def compare(context: Context) -> Iterator[Row]:
    """Do each task in both ways; rows of tokens."""
    say("tokens")
    data = resources.files("knapper.data").joinpath("wordllama").joinpath("tokenizer.json")
    tokenizer = Tokenizer.from_str(data.read_text(encoding="utf-8"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    table = tables.build_table()
    own = replace(context, scripting=_scripting(table))

    def count(value: object) -> int:
        return len(tokenizer.encode(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)).ids)

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

"""Write runs for people: lists, trees, nodes, and what happens while one goes on."""

from collections.abc import Mapping, Sequence
from typing import cast

import click

from knapper.agents.runs.model import ENDED, NodeChanged, RunDone
from knapper.cli.output import plain
from knapper.cli.render import listings
from knapper.cli.render.amounts import count
from knapper.jsontypes import JSONValue

Row = Mapping[str, JSONValue]
_SIGNS = {
    "done": "✓",
    "partial": "~",
    "failed": "✗",
    "blocked": "⊘",
    "cut": "✂",
    "running": "…",
    "pending": "·",
}
_COLOURS = {"done": "green", "partial": "yellow", "failed": "red", "blocked": "red", "cut": "yellow"}
_MAX_TITLE = 100


def line(row: Row) -> str:
    """Write a run in a line."""
    state = str(row["state"])
    head = click.style(str(row["id"]), fg="yellow")
    asks = click.style("? asks you  ", fg="yellow") if row.get("asks") else ""
    return f"{head}  {listings.moment(str(row['created']))}  {state:<11}  {asks}{_short(str(row['task']))}"


def tree(rows: Sequence[Row]) -> str:
    """Write nodes as a tree."""
    by_id = {str(row["id"]): row for row in rows}
    lines: list[str] = []

    def add(row: Row, depth: int) -> None:
        lines.append(node_line(row, depth))
        for child in cast("Sequence[str]", row["children"]):
            if child in by_id:
                add(by_id[child], depth + 1)

    for row in rows:
        if not row["parent"]:
            add(row, 0)
    return "\n".join(lines)


def node_line(row: Row, depth: int) -> str:
    """Write a node in a line."""
    state = str(row["state"])
    parts: list[str] = []
    if row["score"] is not None:
        tier = f", tier {row['tier']}" if row["tier"] in {"A", "B", "C"} else ""
        parts.append(f"score {float(str(row['score'])):.2f}{tier}")
    if row["citation_count"]:
        parts.append(count(cast("int", row["citation_count"]), "citation"))
    if row["tokens"]:
        parts.append(f"{row['tokens']} tokens")
    if row["cached"]:
        parts.append("from the cache")
    if row["reason"]:
        parts.append(plain(str(row["reason"])))
    told = f"  {click.style(', '.join(parts), dim=True)}" if parts else ""
    sign = click.style(_SIGNS.get(state, "?"), fg=_COLOURS.get(state))
    return f"{'  ' * depth}{sign} {row['id']}  {_short(str(row['title']))}{told}"


def run(row: Row) -> str:
    """Write how a run stands."""
    limits = cast("Row", row["limits"])
    usage = cast("Row", row["usage"] or {})
    lines = [
        line(row),
        f"model {row['model']}, strategy {row['strategy']}, Code Mode {'on' if row['code_mode'] else 'off'}",
        f"{count(cast('int', row['node_count']), 'node')}, {row['cached']} from the cache, "
        f"{usage.get('total_tokens', 0)} of {limits['tokens'] or 'any number of'} tokens{_cost(usage)}",
    ]
    lines += [f"- {plain(str(reason))}" for reason in cast("Sequence[str]", row["reasons"])]
    lines += [f"? {one['node_id']}  {plain(str(one['question']))}" for one in _rows(row, "checkpoints")]
    return "\n".join(lines)


def node(row: Row) -> str:
    """Write all that a node did."""
    lines = [node_line(row, 0), "", plain(str(row["task"])), ""]
    lines += (
        [f"why it is {'split' if row['children'] else 'one piece'}: {plain(str(row['why']))}"] if row["why"] else []
    )
    lines += _waits(row)
    found = cast("Row | None", row["retrieval"])
    if found is not None:
        lines += _retrieval(found)
    lines += [f"checkpoint: {_asking(cast('Row', row['checkpoint']))}"] if row["checkpoint"] else []
    lines += ["", "## Answer", "", plain(str(row["answer"]))] if row["answer"] else []
    lines += [f"cites {_place(one)}" for one in _rows(row, "citations")]
    lines += [f"dropped: {plain(str(one['citation']))}: {plain(str(one['reason']))}" for one in _rows(row, "removed")]
    lines += [f"note: {plain(str(one))}" for one in cast("Sequence[str]", row["notes"])]
    usage = cast("Row", row["usage"])
    lines.append(f"{usage['input_tokens']} + {usage['output_tokens']} tokens{_cost(usage)}")
    return "\n".join(lines)


def progress(event: NodeChanged) -> str:
    """Write a step of a run; empty for what nobody needs to see."""
    row = event.node
    depth = cast("int", row["depth"])
    if row["state"] in ENDED:
        return node_line(row, depth)
    if event.doing in {"", "waiting"}:
        return ""
    return click.style(f"{'  ' * depth}… {row['id']}  {event.doing}: {_short(str(row['title']))}", dim=True)


def footer(done: RunDone) -> str:
    """Tell in a line what a run came to, and what it used."""
    usage = done.usage
    parts = [done.state, count(done.nodes, "node")]
    if done.cached:
        parts.append(f"{done.cached} from the cache")
    parts.append(f"{usage['input_tokens']} + {usage['output_tokens']} tokens{_cost(usage)}")
    return f"{', '.join(parts)}; `knap run trace tree {done.run_id}` shows how"


def _waits(row: Row) -> list[str]:
    lines: list[str] = []
    for name, word in (("hard", "needs"), ("soft", "uses")):
        others = cast("Sequence[str]", row[name])
        lines += [f"{word}: {', '.join(others)}"] if others else []
    return lines


def _retrieval(found: Row) -> list[str]:
    parts = cast("Mapping[str, float]", found["parts"])
    told = ", ".join(f"{name} {value:.2f}" for name, value in parts.items())
    lines = [f"retrieval: score {float(str(found['score'])):.2f} ({told})", f"tier: {found['tier'] or 'first script'}"]
    for number, one in enumerate(_rows(found, "attempts"), 1):
        became = f"{one.get('kind', '')} {one.get('error', '')}".strip()
        lines.append(f"attempt {number}: " + ", ".join(filter(None, (str(one.get("step", "")), became))))
        script = str(one.get("script") or "")
        lines += [f"    {plain(text)}" for text in script.splitlines()]
    lines += [f"found {_place(one)}" for one in _rows(found, "sources")]
    return lines + [f"note: {plain(str(one))}" for one in cast("Sequence[str]", found["notes"])]


def _place(row: Row) -> str:
    vault = f"{row['vault']}:" if row.get("vault") else ""
    return plain(f"{vault}{row['path']}, lines {row['start_line']}-{row['end_line']}")


def _asking(row: Row) -> str:
    answer = "nobody was there" if row["unattended"] else row["answer"] or "waits for an answer"
    return plain(f"{row['question']} -> {answer}")


def _rows(row: Row, name: str) -> Sequence[Row]:
    return cast("Sequence[Row]", row.get(name) or ())


def _cost(usage: Row) -> str:
    cost = usage.get("cost_usd")
    return f", ${float(str(cost)):.4f}" if cost is not None else ""


def _short(text: str) -> str:
    shown = plain(" ".join(text.split()))
    return shown if len(shown) <= _MAX_TITLE else f"{shown[:_MAX_TITLE].rstrip()}…"

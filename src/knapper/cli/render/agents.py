"""Show what agents found and came to."""

from collections.abc import Mapping
from typing import cast

from knapper.cli.render.amounts import count
from knapper.jsontypes import JSONValue

Row = Mapping[str, JSONValue]
_MOST = 30


def selection(scout: Row) -> list[str]:
    """Show what was chosen, with the reason for each note."""
    notes = _rows(scout, "selected_notes")
    lines = [f"chosen: {count(len(notes), 'note') if notes else 'nothing'} ({scout['confidence']})"]
    return lines + [f"  {one['path']}: {one.get('reason') or one['why']}" for one in notes[:_MOST]]


def context(found: Row) -> list[str]:
    """Show how much a task is done with."""
    notes = _rows(found, "notes")
    lines = [f"context: {count(len(notes), 'note')}, about {found['tokens']} tokens"]
    return lines + [f"  {one['path']}: {one['why']}" for one in notes[:_MOST]]


def question(asked: Row | None) -> list[str]:
    """Show what the person is asked."""
    if asked is None:
        return []
    options = cast("list[JSONValue]", asked.get("options") or [])
    return [f"? {asked['question']}", *(f"  - {one}" for one in options)]


def ending(outcome: Row) -> list[str]:
    """Show what a run came to, after its answer."""
    lines: list[str] = []
    if outcome["state"] == "asked":
        lines += [*question(cast("Row | None", outcome["question"]))]
        lines.append(f'answer it with: knap ask --resume {outcome["run_id"]} "…"')
    lines += [f"open: {path}" for path in cast("list[JSONValue]", outcome["opened"])]
    for failure in _rows(cast("Row", outcome["edit_results"]), "failures"):
        lines.append(f"can't be made: {failure['file']} {failure['position']}: {failure['error']}")
    for one in _rows(outcome, "removed"):
        lines.append(f"a citation was dropped: {one['citation']}: {one['reason']}")
    for one in _rows(cast("Row", cast("Row", outcome["pipeline"]).get("web") or {}), "sources"):
        lines.append(f"source: {one['title']} {one['url']}{_date(one)}")
    lines += [f"waits for your word: `knap edits show {one}`" for one in cast("list[JSONValue]", outcome["proposals"])]
    return [*lines, _tokens(outcome)]


def _tokens(outcome: Row) -> str:
    usage = cast("Row", outcome["usage"])
    phases = cast("Row", usage.get("phases") or {})
    by_phase = ", ".join(f"{name} {cast('Row', one)['total_tokens']}" for name, one in phases.items())
    cost = f", ${float(str(usage['cost_usd'])):.4f}" if usage.get("cost_usd") is not None else ""
    return f"{outcome['model']}, {usage['total_tokens']} tokens{f' ({by_phase})' if by_phase else ''}{cost}"


def _date(source: Row) -> str:
    return f" ({source['date']})" if source.get("date") else ""


def _rows(row: Row, name: str) -> list[Row]:
    found = row.get(name)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []

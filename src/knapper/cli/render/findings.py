"""Show what checks found."""

from collections.abc import Sequence

import click

from knapper.cli.finding import Finding, State
from knapper.cli.output import plain

_COLOURS: dict[State, str] = {"ok": "green", "warn": "yellow", "fail": "red"}


def text(findings: Sequence[Finding]) -> str:
    """Give each a line, and the next step below it."""
    lines: list[str] = []
    for each in findings:
        state = click.style(f"{each.state:<4}", fg=_COLOURS[each.state])
        lines.append(f"{state}  {each.name:<8}  {plain(each.text)}")
        if each.hint:
            lines.append(f"                {plain(each.hint)}")
    return "\n".join(lines)


def as_dict(findings: Sequence[Finding]) -> dict[str, object]:
    """Give them to a program."""
    rows = [{"name": each.name, "state": each.state, "text": each.text, "hint": each.hint} for each in findings]
    return {"success": all(each.state != "fail" for each in findings), "checks": rows}

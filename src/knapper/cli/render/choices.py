"""Show what tasks of several agents are done with."""

from collections.abc import Sequence

import click

from knapper.agents.pipeline import scopes
from knapper.agents.pipeline.store import Preset
from knapper.cli.output import plain


def listing(presets: Sequence[Preset]) -> str:
    """Give each preset a line: its name, the agents, the notes, the edits."""
    rows = [(plain(one.name), _agents(one), ", ".join(_notes(one)), _edits(one)) for one in presets]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines: list[str] = []
    for name, *cells in rows:
        padded = [cell.ljust(width) for cell, width in zip(cells, widths[1:], strict=True)]
        lines.append("  ".join([click.style(name.ljust(widths[0]), fg="yellow"), *padded]).rstrip())
    return "\n".join(lines)


def whole(preset: Preset) -> str:
    """Give a preset, or what holds without one, line by line."""
    rows = {"agents": _agents(preset), "notes": ", ".join(_notes(preset)), "edits": _edits(preset)}
    lines = [f"{name:<8}{text}" for name, text in rows.items()]
    return "\n".join([click.style(plain(preset.name), fg="yellow"), *lines] if preset.name else lines)


def _agents(preset: Preset) -> str:
    toggles = preset.toggles
    on = {"scout": toggles.scout, "web": toggles.web, "task": toggles.task}
    return " and ".join(name for name, is_on in on.items() if is_on)


def _notes(preset: Preset) -> list[str]:
    scope = preset.scope
    found = [f"depth {scope.link_depth}"]
    if scope.include_same_folder:
        found.append("same folder")
    found += [f"without {plain(folder)}" for folder in scope.excluded_folders]
    return found + [f"with {plain(note)}" for note in preset.added]


def _edits(preset: Preset) -> str:
    can = ", ".join(one for one in scopes.ABILITIES if one in preset.rules.can)
    return f"may {can or 'change nothing'} in {preset.rules.editable}"

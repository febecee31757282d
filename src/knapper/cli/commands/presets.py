"""List, show, save and delete presets."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Unpack

import click

from knapper import app
from knapper.agents.pipeline import scopes
from knapper.agents.pipeline.store import Preset, Presets
from knapper.app import clients
from knapper.app.clients import PresetOverrides
from knapper.app.hub import Hub
from knapper.cli import options, output, setup
from knapper.cli.options import AgentOptions, GlobalOptions
from knapper.cli.output import ExitCode, plain
from knapper.config import Settings
from knapper.errors import NotFound
from knapper.jsontypes import JSONValue


def _render_presets(presets: Sequence[Preset]) -> str:
    """Format one line per preset: its name, agents, notes and edits."""
    rows = [(plain(one.name), _agent_names(one), ", ".join(_note_scope(one)), _edit_rules(one)) for one in presets]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines: list[str] = []
    for name, *cells in rows:
        padded = [cell.ljust(width) for cell, width in zip(cells, widths[1:], strict=True)]
        lines.append("  ".join([click.style(name.ljust(widths[0]), fg="yellow"), *padded]).rstrip())
    return "\n".join(lines)


def _agent_names(preset: Preset) -> str:
    toggles = preset.toggles
    on = {"scout": toggles.scout, "web": toggles.web, "task": toggles.task}
    return " and ".join(name for name, is_on in on.items() if is_on)


def _note_scope(preset: Preset) -> list[str]:
    scope = preset.scope
    parts = [f"depth {scope.link_depth}"]
    if scope.include_same_folder:
        parts.append("same folder")
    parts += [f"without {plain(folder)}" for folder in scope.excluded_folders]
    return parts + [f"with {plain(note)}" for note in preset.added]


def _edit_rules(preset: Preset) -> str:
    can = ", ".join(one for one in scopes.ABILITIES if one in preset.rules.can)
    return f"may {can or 'change nothing'} in {preset.rules.editable}"


class PresetOptions(AgentOptions):
    """The options of ``save``."""

    exclude: tuple[str, ...]


@click.group(
    "presets",
    invoke_without_command=True,
    epilog=options.examples(
        ("knap presets", "saved presets"),
        ("knap presets show", "the defaults of a task"),
        ("knap presets save careful --depth 1 --editable current --can add", "save choices under a name"),
        ('knap ask "Tidy up" --note Plan.md --preset careful', "use it"),
        ("knap presets delete careful", "delete it"),
    ),
)
@options.shared_options
@click.pass_context
def command(ctx: click.Context) -> ExitCode | None:
    """List, show, save and delete presets for `knap ask`."""
    return None if ctx.invoked_subcommand else ctx.invoke(listed)


@command.command("list", epilog=options.examples(("knap presets list --json", "for programs")))
@options.pass_options
def listed(global_options: GlobalOptions) -> ExitCode:
    """List the saved presets by name."""
    with _open_presets(global_options) as (presets, _, _):
        saved = presets.list()
    rows: list[JSONValue] = [one.as_dict() for one in saved]
    answer: dict[str, object] = {"success": True, "results": rows, "total": len(rows)}
    return output.print_listing(global_options, answer, _render_presets(saved), nothing="no preset is saved")


@command.command(
    "show",
    epilog=options.examples(
        ("knap presets show careful", "which agents, which notes, which edits"),
        ("knap presets show", "the defaults: the configuration, and the agents used last"),
    ),
)
@click.argument("name", default="", metavar="[NAME]", type=options.TEXT)
@options.pass_options
def show(global_options: GlobalOptions, name: str) -> ExitCode:
    """Show a preset, or the defaults that apply without one."""
    with _open_presets(global_options) as (presets, settings, _):
        preset = clients.default_preset(presets, settings, name)
    rows = {"agents": _agent_names(preset), "notes": ", ".join(_note_scope(preset)), "edits": _edit_rules(preset)}
    lines = [f"{label:<8}{text}" for label, text in rows.items()]
    if preset.name:
        lines = [click.style(plain(preset.name), fg="yellow"), *lines]
    return output.print_result(global_options, preset.as_dict(), "\n".join(lines))


@command.command(
    "save",
    epilog=options.examples(
        ("knap presets save mine", "the defaults: the configuration, and the agents used last"),
        ("knap presets save careful --depth 1 --editable current --can add", "with these choices"),
        ("knap presets save bold --preset careful --can add,delete,create", "like another preset, except for this"),
        ("knap presets save work --scout --exclude Archive --add Goals.md", "without a folder, and with a note"),
    ),
)
@click.argument("name", type=options.TEXT)
@options.agent_options
@click.option(
    "--exclude",
    multiple=True,
    metavar="FOLDER",
    type=options.TEXT,
    help="Exclude the notes below this folder, and notes that only they link to; repeatable.",
)
@options.pass_options
def save(global_options: GlobalOptions, name: str, **own: Unpack[PresetOptions]) -> ExitCode:
    """Save the current choices as a preset.

    An existing preset of that name is replaced.
    """
    with _open_presets(global_options) as (presets, settings, hub):
        context = hub.context(client="cli")
        for note in own["add"]:
            _ = context.view.locate(note)
        try:
            presets.find(name)
            is_known = True
        except NotFound:
            is_known = False
        words = options.split_words(own["can"])
        preset = PresetOverrides(
            scout=own["scout"],
            web=own["web"],
            task=own["task"],
            link_depth=own["depth"],
            same_folder=own["same_folder"],
            excluded_folders=own["exclude"] or None,
            editable=own["editable"],
            can=words or None,
            added=own["add"],
        ).apply_to(clients.default_preset(presets, settings, own["preset"]))
        presets.save(replace(preset, name=name))
        saved = presets.find(name)
        remarks = clients.excluded_in_vain(context, own["exclude"])
    fields = {**saved.as_dict(), "replaced": is_known} | ({"notes": remarks} if remarks else {})
    shown = output.print_result(global_options, fields, _render_presets([saved]))
    for remark in remarks:
        output.note(global_options, f"note: {remark}")
    return shown


@command.command("delete", epilog=options.examples(("knap presets delete careful", "delete it")))
@click.argument("name", type=options.TEXT)
@options.pass_options
def delete(global_options: GlobalOptions, name: str) -> ExitCode:
    """Delete a preset."""
    with _open_presets(global_options) as (presets, _, _):
        preset = presets.find(name)
        presets.delete(name)
    return output.print_result(
        global_options, {"name": preset.name, "deleted": True}, f"{output.plain(preset.name)} deleted"
    )


@contextmanager
def _open_presets(options: GlobalOptions) -> Generator[tuple[Presets, Settings, Hub]]:
    settings = setup.read_settings(options)
    with app.open_hub(settings, only=True) as hub, clients.open_vault_presets(hub) as presets:
        yield presets, settings, hub

"""Look after presets."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Unpack

import click

from knapper import app
from knapper.agents.pipeline.store import Preset
from knapper.app import presets
from knapper.app.presets import PresetOverrides, VaultPresets
from knapper.cli import ask_switches, options, output, settings
from knapper.cli.ask_switches import Chosen
from knapper.cli.codes import ExitCode
from knapper.cli.options import Options
from knapper.cli.render import choices
from knapper.errors import NotFound
from knapper.jsontypes import JSONValue


class Saved(Chosen):
    """Hold the options of ``save``."""

    exclude: tuple[str, ...]


@click.group(
    "presets",
    invoke_without_command=True,
    context_settings=options.CONTEXT,
    epilog=options.examples(
        ("knap presets", "what is saved"),
        ("knap presets show", "what a task is done with where nothing is said"),
        ("knap presets save careful --depth 1 --editable current --can add", "keep a choice under a name"),
        ('knap ask "Tidy up" --note Plan.md --preset careful', "use it"),
        ("knap presets delete careful", "forget it"),
    ),
)
@options.shared
@click.pass_context
def command(ctx: click.Context) -> ExitCode | None:
    """List, show, save and delete choices for `knap ask`."""
    if ctx.invoked_subcommand:
        return None
    return _list(ctx.ensure_object(Options))


@command.command(
    "list", context_settings=options.CONTEXT, epilog=options.examples(("knap presets list --json", "for programs"))
)
@options.shared
@click.pass_obj
def listed(said: Options) -> ExitCode:
    """List what is saved, by name."""
    return _list(said)


@command.command(
    "show",
    context_settings=options.CONTEXT,
    epilog=options.examples(
        ("knap presets show careful", "which agents, which notes, which edits"),
        ("knap presets show", "what holds without a preset: the configuration, and the switches as they were last"),
    ),
)
@click.argument("name", default="", metavar="[NAME]", type=options.TEXT)
@options.shared
@click.pass_obj
def show(said: Options, name: str) -> ExitCode:
    """Show a preset, or what a task is done with without one."""
    with _open(said) as opened:
        found = opened.usual(name)
    return _tell(said, found, choices.whole(found))


@command.command(
    "save",
    context_settings=options.CONTEXT,
    epilog=options.examples(
        ("knap presets save mine", "what holds now: the configuration, and the switches as they were last"),
        ("knap presets save careful --depth 1 --editable current --can add", "with these choices"),
        ("knap presets save bold --preset careful --can add,delete,create", "like another one, but for this"),
        ("knap presets save work --scout --exclude Archive --add Goals.md", "with walls, and with a note"),
    ),
)
@click.argument("name", type=options.TEXT)
@ask_switches.choosing
@click.option(
    "--exclude",
    multiple=True,
    metavar="FOLDER",
    type=options.TEXT,
    help="Without the notes below this folder, and what only they link to; repeatable.",
)
@options.shared
@click.pass_obj
def save(said: Options, name: str, **own: Unpack[Saved]) -> ExitCode:
    """Keep the present choice under a name.

    A preset of that name is replaced.
    """
    with _open(said) as opened:
        is_known = _is_known(opened, name)
        chosen = _choice(own).applied(opened.usual(own["preset"]))
        opened.kept.save(replace(chosen, name=name))
        kept = opened.kept.find(name)
    return _tell(said, kept, choices.listing([kept]), replaced=is_known)


@command.command(
    "delete", context_settings=options.CONTEXT, epilog=options.examples(("knap presets delete careful", "forget it"))
)
@click.argument("name", type=options.TEXT)
@options.shared
@click.pass_obj
def delete(said: Options, name: str) -> ExitCode:
    """Delete a preset."""
    with _open(said) as opened:
        found = opened.kept.find(name)
        opened.kept.delete(name)
    if said.as_json:
        output.write_json({"success": True, "name": found.name, "deleted": True})
    else:
        output.write(said, f"{output.plain(found.name)} deleted")
    return ExitCode.OK


@contextmanager
def _open(said: Options) -> Generator[VaultPresets]:
    with app.open_hub(settings.read(said), only=True) as hub, presets.open_vault_presets(hub) as opened:
        yield opened


def _list(said: Options) -> ExitCode:
    with _open(said) as opened:
        found = opened.kept.list()
    rows: list[JSONValue] = [one.as_dict() for one in found]
    answer: dict[str, object] = {"success": True, "results": rows, "total": len(rows)}
    return output.listing(said, answer, choices.listing(found), nothing="no preset is saved")


def _choice(own: Saved) -> PresetOverrides:
    words = ask_switches.words(own["can"])
    return PresetOverrides(
        scout=own["scout"],
        web=own["web"],
        task=own["task"],
        link_depth=own["depth"],
        same_folder=own["same_folder"],
        excluded_folders=own["exclude"] or None,
        editable=own["editable"],
        can=words or None,
        added=own["add"],
    )


def _is_known(opened: VaultPresets, name: str) -> bool:
    try:
        _ = opened.kept.find(name)
    except NotFound:
        return False
    return True


def _tell(said: Options, found: Preset, text: str, **more: bool) -> ExitCode:
    if said.as_json:
        shown: Mapping[str, object] = {"success": True, **found.as_dict(), **more}
        output.write_json(shown)
    else:
        output.write(said, text)
    return ExitCode.OK

"""Open a note in Obsidian or in the person's editor."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, Unpack, get_args

import click

from knapper.cli import editors, escapes, options, output, setup
from knapper.cli.codes import ExitCode
from knapper.cli.editors import OpenPlace
from knapper.cli.options import GlobalOptions
from knapper.config import files
from knapper.errors import BadInput

if TYPE_CHECKING:
    from pathlib import Path

    from knapper.cli.editors import Launcher, ObsidianAddress
    from knapper.vault.parser import Note


class OpenOptions(TypedDict):
    """The command's own options."""

    line: int
    heading: str
    place: OpenPlace | None
    only_print: bool


@click.command(
    "open",
    context_settings=options.CONTEXT_SETTINGS,
    epilog=options.examples(
        ("knap open Garden", "in Obsidian if the vault is one of its own, else in your editor"),
        ('knap open "Garden plan" --heading Watering', "at this heading"),
        ("knap open Garden --line 30 --in editor", "at this line, in the editor that VISUAL or EDITOR names"),
        ("knap open Garden --print", "print Obsidian's address instead"),
    ),
)
@click.argument("note", type=options.TEXT)
@click.option("--line", type=click.IntRange(1), default=None, metavar="N", help="Show this line.")
@click.option("--heading", default="", metavar="HEADING", type=options.TEXT, help="Show the section of this heading.")
@click.option("--in", "place", type=click.Choice(get_args(OpenPlace)), help="Where to open it.")
@click.option("--print", "only_print", is_flag=True, help="Print Obsidian's address of it, and open nothing.")
@options.shared_options
@click.pass_obj
def command(global_options: GlobalOptions, note: str, **own: Unpack[OpenOptions]) -> ExitCode:
    """Open a note in Obsidian or in your editor.

    A note goes by its path, the end of its path, its title or an alias. Obsidian knows no lines: it opens at the
    heading above the line.
    """
    return open_note(global_options, note, own, editors.SystemLauncher())


def open_note(global_options: GlobalOptions, name: str, own: OpenOptions, launcher: Launcher) -> ExitCode:
    """Open a note, and say where.

    Args:
        global_options: The shared options.
        name: The note's, as the person wrote it.
        own: The command's own options.
        launcher: Starts the other program.

    Raises:
        BadInput: Both a line and a heading are given.
        KnapError: There is no such note or heading, several have the name, or nothing can open it.
    """
    if own["line"] and own["heading"]:
        raise BadInput("--line and --heading can't be given together", hint="give one of them", code="usage")
    with setup.open_vault(global_options) as context:
        note = context.view.read(context.view.locate(name))
        root = context.view.root.absolute()
        line = _find_line(note, own["heading"]) if own["heading"] else own["line"] or 0
    file = root / note.path
    place: OpenPlace = "obsidian" if own["only_print"] else own["place"] or editors.choose_place(root)
    fields: dict[str, object] = {"path": note.path, "file": str(file), "line": line, "place": place}
    if place == "editor":
        code = _open_in_editor(global_options, file, line, launcher)
        if global_options.as_json:
            output.write_json({"success": code is ExitCode.OK, **fields})
        return code
    address = _address(note, file, root, line)
    if address.note:
        output.note(global_options, f"note: {address.note}")
    if not own["only_print"]:
        launcher.start(editors.opener_command(address.uri))
    text = address.uri if own["only_print"] else f"opened {escapes.plain(note.path)} in Obsidian"
    return output.print_result(global_options, {**fields, "uri": address.uri, "opened": not own["only_print"]}, text)


def _find_line(note: Note, heading: str) -> int:
    from knapper.changes.text import positions  # noqa: PLC0415 - needed for a heading alone
    from knapper.changes.text.splices import Snapshot  # noqa: PLC0415 - the same

    return positions.find_section(Snapshot(raw=note.raw, outline=note.outline), heading).line


def _address(note: Note, file: Path, root: Path, line: int) -> ObsidianAddress:
    from knapper.server.mcp import clients  # noqa: PLC0415 - tells where programs keep their settings
    from knapper.vault import obsidian  # noqa: PLC0415 - for Obsidian alone

    machine = clients.detect_machine()
    known = obsidian.find_vaults(obsidian.registry_files(machine.system, home=machine.home, config=machine.config))
    heading = editors.heading_above(note.outline, line) if line else ""
    return editors.obsidian_address(file, known, root, heading)


def _open_in_editor(global_options: GlobalOptions, file: Path, line: int, launcher: Launcher) -> ExitCode:
    editor = editors.find_editor(files.read_variables(editors.EDITOR_VARIABLES))
    words, is_told = editors.editor_command(editor, file, line)
    if not is_told:
        output.note(global_options, f"note: how '{output.one_line(editor[0])}' is told a line isn't known: line {line}")
    code = launcher.run(words)
    if code:
        output.print_error(f"the editor '{editor[0]}' ended with {code}")
    return ExitCode.SETUP if code else ExitCode.OK

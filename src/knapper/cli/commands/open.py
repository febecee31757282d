"""Open a note in Obsidian by its address, or in the person's editor."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypedDict, Unpack, get_args
from urllib.parse import quote

import click

from knapper.cli import options, output, setup
from knapper.cli.options import GlobalOptions
from knapper.cli.output import ExitCode
from knapper.config import files
from knapper.errors import BadInput, SetupError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from knapper.vault.obsidian import KnownVault
    from knapper.vault.source import Outline


EDITOR_VARIABLES: Final = ("VISUAL", "EDITOR")
OpenPlace = Literal["obsidian", "editor"]
_START_S: Final = 3.0
"""An opener that ends within this time with an error has failed; one that still runs has its window open."""
_NOT_IN_HEADINGS: Final = re.compile(r"[#^\[\]|]+|%%")
"""What Obsidian takes out of a heading that is linked to, since it means something else there."""
_PLUS_LINE: Final = frozenset(
    {"vi", "vim", "nvim", "gvim", "mvim", "view", "ex", "nano", "pico", "emacs", "emacsclient", "kak", "joe", "mcedit"}
    | {"gedit", "gnome-text-editor", "ne", "jed", "mg", "vis"}
)
"""Editors that take the line as ``+7`` before the file."""
_COLON_LINE: Final = frozenset({"hx", "helix", "subl", "zed", "zeditor", "micro", "lapce", "pulsar", "atom"})
"""Editors that take it as ``file:7``."""
_GOTO_LINE: Final = frozenset({"code", "code-insiders", "codium", "vscodium", "cursor", "windsurf", "positron"})
"""Editors that take it as ``--goto file:7``."""
_LINE_OPTIONS: Final[Mapping[str, str]] = {
    "mate": "--line",
    "kate": "--line",
    "kwrite": "--line",
    "idea": "--line",
    "pycharm": "--line",
    "webstorm": "--line",
    "mousepad": "--line",
}
"""Editors that take it after an option."""


class Launcher(Protocol):
    """Starts other programs."""

    def start(self, command: Sequence[str]) -> None:
        """Start a program that opens a window of its own, and don't wait until that is closed.

        Raises:
            SetupError: There is none, or it fails at once.
        """
        ...

    def run(self, command: Sequence[str]) -> int:
        """Run a program at this terminal and return its exit code.

        Raises:
            SetupError: There is none.
        """
        ...


class SystemLauncher:
    """Starts programs of this machine, without a shell."""

    def start(self, command: Sequence[str]) -> None:
        """Start a program; see `Launcher.start`."""
        try:
            process = subprocess.Popen(  # noqa: S603 - a list, without a shell
                list(command), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
        except OSError as error:
            raise _missing_error(command[0], error) from error
        try:
            code = process.wait(_START_S)
        except subprocess.TimeoutExpired:
            return
        if code:
            raise SetupError(
                f"`{command[0]}` can't open it: it ended with {code}",
                hint="`knap open NOTE --print` prints the address; --in editor opens your editor",
                code="not_opened",
            )

    def run(self, command: Sequence[str]) -> int:
        """Run a program; see `Launcher.run`."""
        try:
            return subprocess.call(list(command))  # noqa: S603 - as above; the editor that the person chose
        except OSError as error:
            raise _missing_error(command[0], error) from error


def _missing_error(program: str, error: OSError) -> SetupError:
    return SetupError(
        f"the program '{program}' can't be started: {error.strerror or error}",
        hint="`knap open NOTE --print` prints the address; VISUAL or EDITOR names your editor",
        code="no_opener",
    )


def opener_command(address: str, *, system: str = sys.platform) -> list[str]:
    """Return the command by which a system opens an address."""
    if system == "darwin":
        return ["open", address]
    if system == "win32":  # not `start`, which is a word of the shell: that would read the address's "&"
        return ["rundll32", "url.dll,FileProtocolHandler", address]
    return ["xdg-open", address]


@dataclass(frozen=True, slots=True, kw_only=True)
class ObsidianAddress:
    """An address that Obsidian opens, and what it can't say."""

    uri: str
    note: str = ""


def obsidian_address(file: Path, known: Sequence[KnownVault], root: Path, heading: str = "") -> ObsidianAddress:
    """Return the address of a file in Obsidian.

    ``Areas/Garden plan.md`` in the vault ``Notes`` gives ``obsidian://open?vault=Notes&file=Areas%2FGarden%20plan.md``.

    Args:
        file: The note's file, absolute.
        known: The vaults of Obsidian's own list.
        root: Our vault; taken for Obsidian's where the list has none around the file.
        heading: Of the section to show; empty for the beginning.
    """
    around = [vault.path for vault in known if file.is_relative_to(vault.path)]
    folder = max(around, key=lambda path: len(path.parts), default=root)
    if sum(vault.path.name.casefold() == folder.name.casefold() for vault in known) > 1:
        note = "two of your vaults have this name, so the heading can't be told to Obsidian" if heading else ""
        return ObsidianAddress(uri=f"obsidian://open?path={quote(str(file), safe='')}", note=note)
    place = file.relative_to(folder).as_posix()
    if heading:
        place += f"#{' '.join(_NOT_IN_HEADINGS.sub(' ', heading).split())}"
    return ObsidianAddress(uri=f"obsidian://open?vault={quote(folder.name, safe='')}&file={quote(place, safe='')}")


def heading_above(outline: Outline, line: int) -> str:
    """Return the heading of the section that a line is in; empty before the first."""
    inside = [each for each in outline.sections if each.level and each.line <= line <= each.end_line]
    return max(inside, key=lambda each: each.line).title if inside else ""


def find_editor(variables: Mapping[str, str], *, windows: bool = sys.platform == "win32") -> list[str]:
    """Return the person's editor, with its options.

    Raises:
        SetupError: None is named, or its command can't be read.
    """
    text = next((variables[name].strip() for name in EDITOR_VARIABLES if variables.get(name, "").strip()), "")
    try:
        words = [word.strip('"') for word in shlex.split(text, posix=False)] if windows else shlex.split(text)
    except ValueError as error:
        raise SetupError(f"the editor '{text}' can't be read: {error}", hint="correct VISUAL or EDITOR") from error
    if not words:
        raise SetupError(
            "no editor is named", hint="set VISUAL or EDITOR, such as EDITOR=nano; or --in obsidian", code="no_editor"
        )
    return words


def editor_command(editor: Sequence[str], file: Path, line: int) -> tuple[list[str], bool]:
    """Return the command that opens a file at a line, and whether the editor could be told the line.

    ``["vim"]`` gives ``["vim", "+7", "/notes/a.md"]``.

    Args:
        editor: Its program and options.
        file: Absolute, so that it is never read as an option.
        line: 0 for none.
    """
    if not line:
        return [*editor, str(file)], True
    pure = PureWindowsPath(editor[0]) if "\\" in editor[0] else PurePosixPath(editor[0])
    name = pure.name.casefold().removesuffix(".exe").removesuffix(".cmd")
    if name in _LINE_OPTIONS:
        return [*editor, _LINE_OPTIONS[name], str(line), str(file)], True
    forms = (
        (_GOTO_LINE, ["--goto", f"{file}:{line}"]),
        (_PLUS_LINE, [f"+{line}", str(file)]),
        (_COLON_LINE, [f"{file}:{line}"]),
        ({"notepad++"}, [f"-n{line}", str(file)]),
    )
    words = next((words for names, words in forms if name in names), None)
    return [*editor, *(words or [str(file)])], words is not None


def choose_place(root: Path) -> OpenPlace:
    """Return where notes of a vault are opened unless the person says: in Obsidian if it has been there."""
    return "obsidian" if (root / ".obsidian").is_dir() else "editor"


class OpenOptions(TypedDict):
    """The command's own options."""

    line: int
    heading: str
    place: OpenPlace | None
    only_print: bool


@click.command(
    "open",
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
@options.pass_options
def command(global_options: GlobalOptions, note: str, **own: Unpack[OpenOptions]) -> ExitCode:
    """Open a note in Obsidian or in your editor.

    A note goes by its path, the end of its path, its title or an alias. Obsidian knows no lines: it opens at the
    heading above the line.
    """
    return open_note(global_options, note, own, SystemLauncher())


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
        line = own["line"] or 0
        if own["heading"]:
            from knapper.changes.text import positions  # noqa: PLC0415 - needed for a heading alone
            from knapper.changes.text.splices import Snapshot  # noqa: PLC0415 - the same

            line = positions.find_section(Snapshot(raw=note.raw, outline=note.outline), own["heading"]).line
    file = root / note.path
    place: OpenPlace = "obsidian" if own["only_print"] else own["place"] or choose_place(root)
    fields: dict[str, object] = {"path": note.path, "file": str(file), "line": line, "place": place}
    if place == "editor":
        code = _open_in_editor(global_options, file, line, launcher)
        if global_options.as_json:
            output.write_json({"success": code is ExitCode.OK, **fields})
        return code
    from knapper.server.mcp import clients  # noqa: PLC0415 - tells where programs keep their settings
    from knapper.vault import obsidian  # noqa: PLC0415 - for Obsidian alone

    machine = clients.detect_machine()
    known = obsidian.find_vaults(obsidian.registry_files(machine.system, home=machine.home, config=machine.config))
    heading = heading_above(note.outline, line) if line else ""
    address = obsidian_address(file, known, root, heading)
    if address.note:
        output.note(global_options, f"note: {address.note}")
    if not own["only_print"]:
        launcher.start(opener_command(address.uri))
    text = address.uri if own["only_print"] else f"opened {output.plain(note.path)} in Obsidian"
    return output.print_result(global_options, {**fields, "uri": address.uri, "opened": not own["only_print"]}, text)


def _open_in_editor(global_options: GlobalOptions, file: Path, line: int, launcher: Launcher) -> ExitCode:
    editor = find_editor(files.read_variables(EDITOR_VARIABLES))
    words, is_told = editor_command(editor, file, line)
    if not is_told:
        output.note(global_options, f"note: how '{output.one_line(editor[0])}' is told a line isn't known: line {line}")
    code = launcher.run(words)
    if code:
        output.print_error(f"the editor '{editor[0]}' ended with {code}")
    return ExitCode.SETUP if code else ExitCode.OK

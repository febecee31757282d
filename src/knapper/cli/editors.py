"""Open a note outside Knapper: in Obsidian by its address, or in the person's editor."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Final, Literal, Protocol
from urllib.parse import quote

from knapper.errors import SetupError

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

"""Print, install and remove the scripts by which shells complete `knap`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, get_args

import click

from knapper.cli import options, output
from knapper.cli.options import GlobalOptions
from knapper.cli.output import ExitCode
from knapper.config import files
from knapper.errors import BadInput, StorageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


Shell = Literal["bash", "zsh", "fish", "powershell"]
SHELLS: Final[tuple[Shell, ...]] = get_args(Shell)
VARIABLES: Final = ("SHELL", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "ZDOTDIR")
"""Those that decide which shell it is, and where it looks."""
MARK: Final = "# added by `knap completion install`"
_FOLDER: Final = Path(__file__).parents[1] / "completion" / "shells"
_FILES: Final[Mapping[Shell, str]] = {
    "bash": "knap.bash",
    "zsh": "knap.zsh",
    "fish": "knap.fish",
    "powershell": "knap.ps1",
}
_BASH_COMPLETION: Final = (
    "/usr/share/bash-completion/bash_completion",
    "/usr/local/share/bash-completion/bash_completion",
    "/opt/homebrew/etc/profile.d/bash_completion.sh",
    "/usr/local/etc/profile.d/bash_completion.sh",
)
"""Of these, one is there where bash loads completions by the command's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellPlaces:
    """Where a shell's script goes, and which file of settings has to read it."""

    script: Path
    rc_file: Path | None = None
    """None where the shell finds the script by its name."""
    line: str = ""
    """What that file gets, without `MARK`."""


def read_script(shell: Shell) -> str:
    """Return the script for a shell."""
    return (_FOLDER / _FILES[shell]).read_text(encoding="utf-8")


def detect_shell(environment: Mapping[str, str], *, is_windows: bool = os.name == "nt") -> Shell:
    """Return the person's shell.

    Raises:
        BadInput: It can't be told, or it is another one.
    """
    name = Path(environment.get("SHELL", "")).stem
    if name == "pwsh" or (is_windows and not name):
        return "powershell"
    shell: Shell | None = next((each for each in SHELLS if name == each), None)
    if shell is None:
        what = f"there are no completions for the shell '{name}'" if name else "it can't be told which shell is yours"
        raise BadInput(what, hint=f"name one: knap completion install {'|'.join(SHELLS)}", code="unknown_shell")
    return shell


def find_places(
    shell: Shell, environment: Mapping[str, str], home: Path, *, marks: Sequence[str] = _BASH_COMPLETION
) -> ShellPlaces:
    """Return where the script of a shell goes.

    Args:
        shell: The shell.
        environment: The variables of `VARIABLES` that are set.
        home: The person's.
        marks: Files that say that bash loads completions by name.
    """
    data = _folder(environment.get("XDG_DATA_HOME", ""), home / ".local" / "share")
    config = _folder(environment.get("XDG_CONFIG_HOME", ""), home / ".config")
    own = data / "knapper" / "completion"
    match shell:
        case "fish":
            return ShellPlaces(script=config / "fish" / "completions" / "knap.fish")
        case "bash" if any(Path(mark).is_file() for mark in marks):
            return ShellPlaces(script=data / "bash-completion" / "completions" / "knap")
        case "bash":
            return _sourced(own / _FILES[shell], home / ".bashrc")
        case "zsh":
            return _sourced(own / _FILES[shell], _folder(environment.get("ZDOTDIR", ""), home) / ".zshrc")
        case "powershell":
            folder = home / "Documents" / "PowerShell" if os.name == "nt" else config / "powershell"
            script = own / _FILES[shell]
            line = f". '{str(script).replace(chr(39), chr(39) * 2)}'"
            return ShellPlaces(script=script, rc_file=folder / "profile.ps1", line=line)


def _folder(named: str, usual: Path) -> Path:
    return Path(named) if named.strip() and Path(named).is_absolute() else usual


def _sourced(script: Path, rc_file: Path) -> ShellPlaces:
    quoted = "'" + str(script).replace("'", "'\\''") + "'"
    return ShellPlaces(script=script, rc_file=rc_file, line=f"[ -r {quoted} ] && . {quoted}")


def install_script(shell: Shell, places: ShellPlaces) -> list[Path]:
    """Write the script, and let the shell's file of settings read it where it has to; return what was changed.

    Raises:
        StorageError: A file can't be written.
    """
    changed: list[Path] = []
    try:
        text = read_script(shell)
        if not places.script.is_file() or places.script.read_text(encoding="utf-8") != text:
            places.script.parent.mkdir(parents=True, exist_ok=True)
            places.script.write_text(text, encoding="utf-8", newline="\n")
            changed.append(places.script)
        if places.rc_file is not None:
            line = f"{places.line} {MARK}".encode()
            present = places.rc_file.read_bytes() if places.rc_file.exists() else b""
            if line not in present:
                places.rc_file.parent.mkdir(parents=True, exist_ok=True)
                with places.rc_file.open("ab") as opened:
                    opened.write((b"" if not present or present.endswith(b"\n") else b"\n") + line + b"\n")
                changed.append(places.rc_file)
    except (OSError, UnicodeDecodeError) as error:
        raise _storage_error(error, places) from error
    return changed


def remove_script(places: ShellPlaces) -> list[Path]:
    """Remove the script and the line; return what was changed, nothing if nothing was there.

    Raises:
        StorageError: A file can't be changed.
    """
    changed: list[Path] = []
    try:
        if places.script.is_file():
            places.script.unlink()
            changed.append(places.script)
        if places.rc_file is not None and places.rc_file.is_file():
            text = places.rc_file.read_bytes()
            kept = b"".join(line for line in text.splitlines(keepends=True) if MARK.encode() not in line)
            if kept != text:
                places.rc_file.write_bytes(kept)  # in place: it may be a link into a folder of dot files
                changed.append(places.rc_file)
    except OSError as error:
        raise _storage_error(error, places) from error
    return changed


def _storage_error(error: OSError | UnicodeDecodeError, places: ShellPlaces) -> StorageError:
    where = getattr(error, "filename", None) or places.script
    reason = getattr(error, "strerror", None) or error
    return StorageError(f"{where} can't be written: {reason}", hint="`knap completion SHELL` prints the script instead")


_SHELL = click.Choice(SHELLS)


@click.group(
    "completion",
    epilog=options.examples(
        ("knap completion install", "for your shell, in every new terminal"),
        ('eval "$(knap completion bash)"', "in this bash or zsh alone"),
        ("knap completion fish | source", "in this fish alone"),
        ("knap completion uninstall", "remove what was installed"),
    ),
)
@options.shared_options
def command() -> None:
    """Complete commands, notes, tags and ids in your shell.

    The Tab key then completes commands, options and choices, and what there is in the vault: names of notes, tags and
    properties, ids of proposals, runs and sessions, names of vaults and settings. Names are quoted as the shell needs
    them, and never run.
    """


def _add_printing_command(shell: Shell, use: str) -> None:
    """Add the command that prints a shell's script."""

    @command.command(
        shell,
        epilog=options.examples((use, "complete in this shell")),
        help=f"Print the script for {'PowerShell' if shell == 'powershell' else shell}.",
    )
    @options.shared_options
    @click.pass_obj
    def print_script(global_options: GlobalOptions) -> ExitCode:
        script = read_script(shell)
        return output.print_result(global_options, {"shell": shell, "script": script}, script.rstrip("\n"))

    del print_script  # it is one of the group's


_add_printing_command("bash", 'eval "$(knap completion bash)"')
_add_printing_command("zsh", 'eval "$(knap completion zsh)"')
_add_printing_command("fish", "knap completion fish | source")
_add_printing_command("powershell", "knap completion powershell | Out-String | Invoke-Expression")


@command.command(
    "install",
    epilog=options.examples(
        ("knap completion install", "for the shell that SHELL names"),
        ("knap completion install zsh", "for zsh"),
    ),
)
@click.argument("shell", required=False, type=_SHELL)
@options.pass_options
def install(global_options: GlobalOptions, shell: Shell | None) -> ExitCode:
    """Install the script where your shell looks for it.

    Fish, and bash with bash-completion, find it by its name. Otherwise, a line that reads it is added to your
    `.bashrc`, `.zshrc` or PowerShell profile. `knap completion uninstall` removes both.
    """
    shell, places = _find(shell)
    changed = install_script(shell, places)
    lines = [f"wrote {output.one_line(str(path))}" for path in changed] or ["it is installed already"]
    fields = {"shell": shell, "changed": [str(path) for path in changed]}
    output.print_result(global_options, fields, "\n".join(lines))
    output.note(global_options, f"open a new terminal to use it; to undo: knap completion uninstall {shell}")
    return ExitCode.OK


@command.command(
    "uninstall",
    epilog=options.examples(("knap completion uninstall zsh", "the script, and the line in .zshrc")),
)
@click.argument("shell", required=False, type=_SHELL)
@options.pass_options
def uninstall(global_options: GlobalOptions, shell: Shell | None) -> ExitCode:
    """Remove the script, and the line that reads it."""
    shell, places = _find(shell)
    changed = remove_script(places)
    lines = [f"removed it from {output.one_line(str(path))}" for path in changed] or ["nothing was installed"]
    return output.print_result(
        global_options, {"shell": shell, "changed": [str(path) for path in changed]}, "\n".join(lines)
    )


def _find(shell: Shell | None) -> tuple[Shell, ShellPlaces]:
    environment = files.read_variables(VARIABLES)
    shell = shell or detect_shell(environment)
    return shell, find_places(shell, environment, Path.home())

"""Print, install and remove the scripts by which shells complete `knap`."""

from __future__ import annotations

from pathlib import Path

import click

from knapper.cli import options, output
from knapper.cli.codes import ExitCode
from knapper.cli.completion import installing
from knapper.cli.completion.installing import Shell, ShellPlaces
from knapper.cli.options import GlobalOptions
from knapper.config import files

_SHELL = click.Choice(installing.SHELLS)


@click.group(
    "completion",
    context_settings=options.CONTEXT_SETTINGS,
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


def _print_script(global_options: GlobalOptions, shell: Shell) -> ExitCode:
    script = installing.read_script(shell)
    return output.print_result(global_options, {"shell": shell, "script": script}, script.rstrip("\n"))


def _add_printing_command(shell: Shell, use: str) -> None:
    """Add the command that prints a shell's script."""

    @command.command(
        shell,
        context_settings=options.CONTEXT_SETTINGS,
        epilog=options.examples((use, "complete in this shell")),
        help=f"Print the script for {'PowerShell' if shell == 'powershell' else shell}.",
    )
    @options.shared_options
    @click.pass_obj
    def print_script(global_options: GlobalOptions) -> ExitCode:
        return _print_script(global_options, shell)

    del print_script  # it is one of the group's


_add_printing_command("bash", 'eval "$(knap completion bash)"')
_add_printing_command("zsh", 'eval "$(knap completion zsh)"')
_add_printing_command("fish", "knap completion fish | source")
_add_printing_command("powershell", "knap completion powershell | Out-String | Invoke-Expression")


@command.command(
    "install",
    context_settings=options.CONTEXT_SETTINGS,
    epilog=options.examples(
        ("knap completion install", "for the shell that SHELL names"),
        ("knap completion install zsh", "for zsh"),
    ),
)
@click.argument("shell", required=False, type=_SHELL)
@options.shared_options
@click.pass_obj
def install(global_options: GlobalOptions, shell: Shell | None) -> ExitCode:
    """Install the script where your shell looks for it.

    Fish, and bash with bash-completion, find it by its name. Otherwise, a line that reads it is added to your
    `.bashrc`, `.zshrc` or PowerShell profile. `knap completion uninstall` removes both.
    """
    shell, places = _find(shell)
    changed = installing.install(shell, places)
    lines = [f"wrote {output.one_line(str(path))}" for path in changed] or ["it is installed already"]
    fields = {"shell": shell, "changed": [str(path) for path in changed]}
    output.print_result(global_options, fields, "\n".join(lines))
    output.note(global_options, f"open a new terminal to use it; to undo: knap completion uninstall {shell}")
    return ExitCode.OK


@command.command(
    "uninstall",
    context_settings=options.CONTEXT_SETTINGS,
    epilog=options.examples(("knap completion uninstall zsh", "the script, and the line in .zshrc")),
)
@click.argument("shell", required=False, type=_SHELL)
@options.shared_options
@click.pass_obj
def uninstall(global_options: GlobalOptions, shell: Shell | None) -> ExitCode:
    """Remove the script, and the line that reads it."""
    shell, places = _find(shell)
    changed = installing.uninstall(places)
    lines = [f"removed it from {output.one_line(str(path))}" for path in changed] or ["nothing was installed"]
    return output.print_result(
        global_options, {"shell": shell, "changed": [str(path) for path in changed]}, "\n".join(lines)
    )


def _find(shell: Shell | None) -> tuple[Shell, ShellPlaces]:
    environment = files.read_variables(installing.VARIABLES)
    shell = shell or installing.detect_shell(environment)
    return shell, installing.find_places(shell, environment, Path.home())

"""Show the settings."""

import contextlib

import click

from knapper.cli import options, output, settings
from knapper.cli.codes import ExitCode
from knapper.cli.options import Options
from knapper.cli.render import settings_table


@click.group(
    "config",
    invoke_without_command=True,
    context_settings=options.CONTEXT,
    epilog=options.examples(
        ("knap config", "each setting, its value, and where that comes from"),
        ("knap config path", "where the configuration file is, or would be"),
        ("knap config --json", "for programs"),
    ),
)
@options.shared
@click.pass_context
def command(ctx: click.Context) -> ExitCode | None:
    """Show every setting and where it comes from.

    Secrets are never shown.
    """
    if ctx.invoked_subcommand:
        return None
    said = ctx.ensure_object(Options)
    found = settings.read(said)
    if said.as_json:
        output.write_json(settings_table.as_dict(found))
    else:
        output.write(said, settings_table.text(found))
    return ExitCode.OK


@command.command(
    "path",
    context_settings=options.CONTEXT,
    epilog=options.examples(('$EDITOR "$(knap config path)"', "change the settings")),
)
@options.shared
@click.pass_obj
def path(said: Options) -> ExitCode:
    """Tell where the configuration file is, or would be.

    A file that is broken is named too. Its folder is made, so that an editor can save it there.
    """
    where = settings.file(said)
    with contextlib.suppress(OSError):  # then the editor says what is wrong there
        where.parent.mkdir(parents=True, exist_ok=True)
    return output.result(said, {"path": str(where), "exists": where.exists()}, str(where))

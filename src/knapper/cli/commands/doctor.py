"""Check the installation and the vault."""

import click

from knapper.cli import options, output
from knapper.cli.checks import table
from knapper.cli.codes import ExitCode
from knapper.cli.options import Options
from knapper.cli.render import findings


@click.command(
    "doctor",
    context_settings=options.CONTEXT,
    epilog=options.examples(
        ("knap doctor", "what works here, and what to do about the rest"),
        ("knap -v work doctor --json", "for programs"),
    ),
)
@options.shared
@click.pass_obj
def command(said: Options) -> ExitCode:
    """Check that everything works here, and what to do if not.

    Exit code 1 tells that a check failed; warnings are no failures.
    """
    found = table.run(said)
    failed = any(each.state == "fail" for each in found)
    if said.as_json:
        output.write_json(findings.as_dict(found))
    else:
        output.write(said, findings.text(found))
    return ExitCode.NOTHING if failed else ExitCode.OK

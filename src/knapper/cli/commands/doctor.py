"""Check the installation and the vault."""

import click

from knapper.cli import doctor, options, output
from knapper.cli.codes import ExitCode
from knapper.cli.options import GlobalOptions


@click.command(
    "doctor",
    context_settings=options.CONTEXT_SETTINGS,
    epilog=options.examples(
        ("knap doctor", "what works here, and what to do about the rest"),
        ("knap -v work doctor --json", "for programs"),
        ("knap doctor --repair", "mend what is damaged, when no server runs"),
    ),
)
@click.option("--repair", is_flag=True, help="First mend what is damaged of index, journal, proposals and sessions.")
@options.shared_options
@click.pass_obj
def command(said: GlobalOptions, *, repair: bool) -> ExitCode:
    """Check the installation and the vault, and suggest fixes.

    The exit code is 1 if a check failed; warnings don't count as failures. With --repair, what comes from the notes is
    built anew; of the rest, what can be read is saved, and the damaged file is kept aside.
    """
    results = [*(doctor.repair(said) if repair else ()), *doctor.run_checks(said)]
    has_failure = any(each.state == "fail" for each in results)
    if said.as_json:
        output.write_json(doctor.checks_as_dict(results))
    else:
        output.write(said, doctor.render_checks(results))
    return ExitCode.NOTHING if has_failure else ExitCode.OK

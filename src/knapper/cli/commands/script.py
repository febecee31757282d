"""Run a script over the vault."""

import shlex
from collections.abc import Mapping
from typing import Final, TypedDict, Unpack

import click

from knapper.cli import inputs, options, output, setup
from knapper.cli.options import GlobalOptions
from knapper.cli.output import ExitCode
from knapper.tools.context import ScriptExit, ScriptProfile, ScriptResult

_EXIT_CODES: Final[Mapping[ScriptExit, ExitCode]] = {
    "ok": ExitCode.OK,
    "syntax": ExitCode.USAGE,
    "refused": ExitCode.REFUSED,
}


class ScriptOptions(TypedDict):
    """The command's own options."""

    profile: ScriptProfile
    fs_read: tuple[str, ...]
    net_allow: tuple[str, ...]
    timeout: float | None
    client: str


@click.command(
    "script",
    epilog=options.examples(
        ("knap script find.py", "prints the final value of `__result__`"),
        ("echo '__result__ = obsidian.list_notes()' | knap script -", "from the standard input"),
        ("knap script find.py --profile local --fs-read ./repo", "it may read the files below ./repo too"),
        ("knap script find.py --json", "the full result, for programs"),
    ),
)
@click.argument("file", metavar="FILE|-")
@click.option(
    "--profile",
    type=click.Choice(["strict", "local", "extended"]),
    default="strict",
    show_default=True,
    help="What else it may read: folders (local), also pages of hosts (extended).",
)
@click.option("--fs-read", multiple=True, metavar="ROOT", help="Folder that it may read; repeatable.")
@click.option("--net-allow", multiple=True, metavar="HOST", help="Host that it may fetch pages from; repeatable.")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS", help="Maximum duration.")
@options.client_option("script")
@options.pass_options
def command(global_options: GlobalOptions, file: str, **own: Unpack[ScriptOptions]) -> ExitCode:
    """Run a Python script over the vault in a sandbox.

    The script uses the object `obsidian`. It reads what the client may read, and its changes become proposals. The
    value of `__result__` is printed as JSON.
    """
    from knapper.app import open_hub  # noqa: PLC0415 - `knap script --help` needn't pay for it
    from knapper.app.hub import ScriptRuntime  # noqa: PLC0415 - the same
    from knapper.codemode import bridge  # noqa: PLC0415 - the same

    code = inputs.strip_bom(inputs.read_file(global_options, file))
    config = setup.read_vault_settings(global_options)
    setup.note_unknown_client(global_options, config, own["client"])
    with open_hub(config, only=False) as hub:
        script_service = ScriptRuntime(config, lambda: hub.table)
        try:
            context = script_service.with_scripting(
                hub.context(client=own["client"]),
                lambda name: hub.context(client=own["client"], vault=name),
                roots=own["fs_read"],
                hosts=own["net_allow"],
            )
            if not script_service.sandbox().code.is_ready():
                output.note(global_options, "preparing the sandbox; this is done once and takes some seconds")
            outcome = bridge.execute_script(context, code, own["profile"], own["timeout"])
        finally:
            script_service.close()
    return _report_outcome(global_options, outcome, context.vault)


def _report_outcome(options: GlobalOptions, outcome: ScriptResult, vault: str) -> ExitCode:
    if options.as_json:
        from knapper.codemode import bridge  # noqa: PLC0415 - imported already

        output.write_json(bridge.result_answer(outcome))
    else:
        if outcome.stdout:
            output.note(options, output.plain(outcome.stdout.rstrip("\n")))
        if outcome.ok:
            output.write(options, output.dump_json(outcome.result))
        else:
            click.echo(output.plain(f"error: the script ended with {outcome.kind}: {outcome.error}"), err=True)
        for one in outcome.proposals:
            where = "" if one.vault == vault else f" -v {shlex.quote(one.vault)}"
            output.note(options, f"waits for your decision: `knap edits show {one.id}{where}`")
        if outcome.wall_notice:
            click.echo(output.plain(f"note: {outcome.wall_notice}"), err=True)
        usage = f"{outcome.wall_s:.2f} s, {outcome.calls} calls"
        output.note(options, f"{usage}, {outcome.peak_mb:.0f} MB" if outcome.peak_mb else usage)
    return _EXIT_CODES.get(outcome.kind, ExitCode.NOTHING)

"""Run a script over the vault."""

from typing import TypedDict, Unpack

import click

from knapper.cli import options, output, settings, texts
from knapper.cli.codes import ExitCode
from knapper.cli.options import Options
from knapper.cli.render import scripted
from knapper.tools.context import ScriptProfile, ScriptResult


class Said(TypedDict):
    """Hold the command's own options."""

    profile: ScriptProfile
    fs_read: tuple[str, ...]
    net_allow: tuple[str, ...]
    timeout: float | None
    client: str


@click.command(
    "script",
    context_settings=options.CONTEXT,
    epilog=options.examples(
        ("knap script find.py", "what `__result__` holds in the end"),
        ("echo '__result__ = obsidian.list_notes()' | knap script -", "from the standard input"),
        ("knap script find.py --profile local --fs-read ./repo", "it may read the files below ./repo too"),
        ("knap script find.py --json", "all that became of it, for programs"),
    ),
)
@click.argument("file", metavar="FILE|-")
@click.option(
    "--profile",
    type=click.Choice(["strict", "local", "extended"]),
    default="strict",
    show_default=True,
    help="What else it may read: folders (local), and pages of hosts (extended).",
)
@click.option("--fs-read", multiple=True, metavar="ROOT", help="A folder that it may read; may stand several times.")
@click.option(
    "--net-allow", multiple=True, metavar="HOST", help="A host that it may get pages from; may stand several times."
)
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS", help="How long it may take.")
@click.option("--client", default="script", show_default=True, metavar="NAME", help="Whose policy holds.")
@options.shared
@click.pass_obj
def command(said: Options, file: str, **own: Unpack[Said]) -> ExitCode:
    """Run a Python script over the vault, in a sandbox.

    It has the object `obsidian`, reads what the client may read, and writes only proposals. What it sets `__result__`
    to is printed as JSON.
    """
    from knapper.app import open_hub  # noqa: PLC0415 - `knap script --help` needn't pay for it
    from knapper.app.hub import ScriptRuntime  # noqa: PLC0415 - the same
    from knapper.codemode import tool  # noqa: PLC0415 - the same

    code = texts.unmarked(texts.of_file(said, file))
    found = settings.read(said)
    with open_hub(found, only=False) as hub:
        allowed = ScriptRuntime(found, lambda: hub.table)
        try:
            context = allowed.allowed(
                hub.context(client=own["client"]),
                lambda name: hub.context(client=own["client"], vault=name),
                roots=own["fs_read"],
                hosts=own["net_allow"],
            )
            if not allowed.sandbox().code.is_ready():
                output.note(said, "preparing the sandbox; this is done once and takes some seconds")
            outcome = tool.execute_script(context, code, own["profile"], own["timeout"])
        finally:
            allowed.close()
    return _told(said, outcome, context.vault)


def _told(said: Options, outcome: ScriptResult, vault: str) -> ExitCode:
    if said.as_json:
        from knapper.codemode import tool  # noqa: PLC0415 - imported already

        output.write_json(tool.result_answer(outcome))
    else:
        scripted.show(said, outcome, vault)
    return scripted.code(outcome)

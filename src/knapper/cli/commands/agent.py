"""Set an agent to work that has a task of its own."""

from typing import cast

import click

from knapper.agents.offers import STAGE_SUMMARIES, StageName
from knapper.cli import options, output, setup
from knapper.cli.options import GlobalOptions
from knapper.cli.output import ExitCode
from knapper.jsontypes import JSONValue


@click.command(
    "agent",
    context_settings=options.CONTEXT_SETTINGS,
    epilog=options.examples(
        ("knap agent", "which there are"),
        ("knap agent weekly-review", "propose links between notes that have none"),
        ("knap agent weekly-review --model ollama:qwen3 --json", "by this model, for programs"),
        ("knap schedule add weekly-review --weekly sunday", "every week, by the server"),
    ),
)
@click.argument("name", default="", metavar="[NAME]", type=click.Choice(["", *STAGE_SUMMARIES]))
@click.option("--model", default="", metavar="NAME", help="Model to use, such as ollama:qwen3.")
@click.option("--apply", "may_apply", is_flag=True, help="Apply what the rules of the agent allow it to apply.")
@options.shared_options
@click.pass_obj
def command(said: GlobalOptions, name: str, model: str, *, may_apply: bool) -> ExitCode:
    """Set an agent to work that has a task of its own.

    Without a name, the command lists the agents. An agent works alone, in a session of its own, and ends with a report.
    Whatever it writes waits as a proposal: `knap edits review` shows them one by one. With --apply, it may change notes
    as far as the configuration lets the client `agent` do that; `knap undo` takes it back.
    """
    if name:
        from knapper.cli import chat  # noqa: PLC0415 - 2 s that a list needn't cost

        config = setup.read_settings(said)
        return chat.run_agent(said, config, cast("StageName", name), model=model, may_apply=may_apply)
    rows: list[JSONValue] = [{"name": known, "summary": summary} for known, summary in STAGE_SUMMARIES.items()]
    answer: dict[str, object] = {"success": True, "results": rows, "total": len(rows)}
    text = "\n".join(f"{known}  {summary}" for known, summary in STAGE_SUMMARIES.items())
    return output.print_listing(said, answer, text, nothing="there is no agent")

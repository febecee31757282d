"""Set an agent to work that has a task of its own."""

from typing import Unpack

import click

from knapper import app
from knapper.app import clients
from knapper.cli import options, output, setup
from knapper.cli.options import AgentName, CapOptions, GlobalOptions
from knapper.cli.output import ExitCode
from knapper.jsontypes import JSONValue


@click.command(
    "agent",
    epilog=options.examples(
        ("knap agent", "which there are"),
        ("knap agent weekly-review", "propose links between notes that have none"),
        ("knap agent weekly-review --model ollama:qwen3 --json", "by this model, for programs"),
        ("knap schedule add weekly-review --weekly sunday", "every week, by the server"),
    ),
)
@click.argument("name", default="", metavar="[NAME]", type=AgentName())
@click.option("--model", default="", metavar="NAME", help="Model to use, such as ollama:qwen3.")
@click.option("--apply", "may_apply", is_flag=True, help="Apply what the rules of the agent allow it to apply.")
@options.cap_options
@options.pass_options
def command(
    global_options: GlobalOptions, name: str, model: str, *, may_apply: bool, **caps: Unpack[CapOptions]
) -> ExitCode:
    """Set an agent to work that has a task of its own.

    Without a name, the command lists the agents: those that come with Knapper, and yours in the folder `agents` beside
    the configuration file. An agent works alone, in a session of its own, and ends with a report. Whatever it writes
    waits as a proposal: `knap edits review` shows them one by one. With --apply, it may change notes as far as the
    configuration lets the client `agent` do that; `knap undo` takes it back.
    """
    config = setup.read_settings(global_options)
    if name:
        from knapper.cli import chat  # noqa: PLC0415 - 2 s that a list needn't cost

        return chat.run_agent(
            global_options, config, name, model=model, may_apply=may_apply, caps=chat.TurnCaps(**caps)
        )
    with app.open_hub(config, only=bool(global_options.vault)) as hub:
        stages, problems = clients.open_stages(hub).all()
    rows: list[JSONValue] = [{"name": one.name, "summary": one.summary} for one in stages]
    answer: dict[str, object] = {"success": True, "results": rows, "total": len(rows)}
    if problems:
        answer["problems"] = {own: error.as_dict() for own, error in problems.items()}
    lines = [f"{one.name}  {one.summary or one.title}" for one in stages]
    lines += [f"{own}  {error.message}: {error.hint}" for own, error in problems.items()]
    text = "\n".join(map(output.plain, lines))
    return output.print_listing(global_options, answer, text, nothing="there is no agent")

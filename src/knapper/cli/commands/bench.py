"""Measure how well a model carries out tasks."""

import asyncio
import contextlib
import dataclasses
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from knapper import app
from knapper.cli import options, output, setup
from knapper.cli.options import GlobalOptions
from knapper.cli.output import ExitCode
from knapper.config import Settings, Vault
from knapper.errors import BadInput
from knapper.jsontypes import objects_in
from knapper.tools.context import Context

if TYPE_CHECKING:
    from knapper.agents.evals.trials import MakeModel, TrialResult, TrialSetup
    from knapper.agents.pipeline.orchestrator import Agents


class BenchOptions(TypedDict):
    """The command's own options."""

    model: str
    scripted: str
    repeat: int
    only: tuple[str, ...]
    list_only: bool


@click.group(
    "bench",
    epilog=options.examples(("knap bench agent --model ollama:qwen3", "try a model on tasks, and check the result")),
)
@options.shared_options
def command() -> None:
    """Measure how well a model carries out tasks."""


@command.command(
    "agent",
    epilog=options.examples(
        ("knap bench agent", "the configured model, each task once"),
        ("knap bench agent --model ollama:qwen3 --repeat 3", "this model, three times"),
        ("knap bench agent --only tick-a-task --only open-a-note", "these tasks"),
        ("knap bench agent --scripted perfect", "the suite itself, without a model"),
    ),
)
@click.option("--model", default="", metavar="NAME", help="Model to use, such as ollama:qwen3.")
@click.option(
    "--scripted",
    type=click.Choice(["perfect", "careless"]),
    default=None,
    help="Use a scripted reply instead of a model.",
)
@click.option(
    "--repeat", type=click.IntRange(1, 100), default=1, show_default=True, help="Number of attempts per task."
)
@click.option("--only", multiple=True, metavar="TASK", help="Run only this task; repeatable.")
@click.option("--list", "list_only", is_flag=True, help="List the tasks.")
@options.pass_options
def agent(global_options: GlobalOptions, **own: Unpack[BenchOptions]) -> ExitCode:
    """Try a model on tasks over a small made-up vault.

    Your own notes are neither read nor changed. A task passes if exactly the right lines of the made-up vault changed,
    links and properties are intact, and notes outside the task's scope are untouched.
    """
    from knapper.agents.evals import trials  # noqa: PLC0415 - 2 s that `knap bench --help` needn't cost

    if own["list_only"]:
        tasks = [{"task": task.id, "text": task.text} for task in trials.ALL_TASKS]
        text = "\n".join(f"{task['task']}: {task['text']}" for task in tasks)
        return output.print_result(global_options, {"results": tasks, "total": len(tasks)}, text)
    try:
        tasks = trials.find_tasks(own["only"])
    except KeyError as error:
        raise BadInput(f"there is no task {error}", hint="`knap bench agent --list` lists them") from None
    config = setup.read_settings(global_options)
    attempts: list[TrialResult] = []
    with _open_bench(config, own) as bench:
        for task in tasks:
            for _ in range(own["repeat"]):
                with tempfile.TemporaryDirectory() as folder:
                    attempts.append(asyncio.run(trials.run_trial(bench, task, Path(folder).resolve())))
                attempt = attempts[-1]
                output.note(
                    global_options,
                    output.plain(
                        f"{'✓' if attempt.passed else '✗'} {attempt.task}  {'; '.join(attempt.problems)}".rstrip()
                    ),
                )
    result = trials.summarize_trials(attempts)
    if global_options.as_json:
        output.write_json(result)
    else:
        rows = objects_in(result["results"])
        lines = [f"{row['task']:<32} {row['passed']}/{row['tries']}  {row['tokens']:>8} tokens" for row in rows]
        rate = 100 * float(str(result["pass_rate"]))
        total = f"passed {result['passed']} of {result['tries']} ({rate:.0f} %), {result['tokens']} tokens"
        total += f", {result['seconds']} s, {result['wrong_bytes']} wrong bytes"
        output.write(global_options, "\n".join([*lines, "", total]))
    return ExitCode.OK


@contextlib.contextmanager
def _open_bench(config: Settings, own: BenchOptions) -> Generator["TrialSetup"]:
    """Open what the tasks run with; the suite's vault replaces the person's."""
    from knapper.agents.evals import trials  # noqa: PLC0415 - as above
    from knapper.agents.evals.trials import TrialSetup  # noqa: PLC0415 - as above
    from knapper.app import pipelines  # noqa: PLC0415 - as above

    with tempfile.TemporaryDirectory() as temp_folder:
        root = Path(temp_folder).resolve() / "vault"
        root.mkdir()
        named_model = dataclasses.replace(
            config.model, name=own["model"] or config.model.name or "openai:none@http://localhost"
        )
        model = config.model if not own["scripted"] else named_model
        bench_settings = dataclasses.replace(
            config, choice=Vault(name="bench", path=root), vaults=(), state_dir=root.parent / "state", model=model
        )
        with app.open_hub(bench_settings, only=True) as hub, pipelines.open_pipelines(hub) as client_pipelines:
            agents: Agents = client_pipelines.answering("" if own["scripted"] else own["model"]).agents
            make_model: MakeModel = lambda _task, _root: agents.chat.model  # noqa: E731 - one of three
            if own["scripted"] == "perfect":
                make_model = lambda task, _root: trials.make_perfect_model(task)  # noqa: E731 - the second
            elif own["scripted"] == "careless":
                make_model = trials.make_careless_model

            def open_vault(vault: Path, state: Path, client: str) -> Context:
                choice = Vault(name="bench", path=vault)
                own_settings = dataclasses.replace(config, choice=choice, vaults=(), clients=(), state_dir=state)
                return app.open_vault(own_settings, client=client)

            yield TrialSetup(agents=agents, make_model=make_model, open_vault=open_vault)

"""Define the options of `knap ask` and `knap run` that set agents to work, and their limits."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypedDict, cast

import click

from knapper.cli import options
from knapper.tools.context import ScriptProfile


class AgentOptions(TypedDict):
    """The choices of agents, notes and edits; None or empty keeps the default."""

    scout: bool | None
    web: bool | None
    task: bool | None
    depth: int | None
    same_folder: bool | None
    add: tuple[str, ...]
    editable: str | None
    can: str
    preset: str


class PipelineOptions(AgentOptions):
    """All options of a task of agents."""

    save_preset: str
    token_limit: int | None
    route: bool | None
    history: bool
    remember: bool
    resume: str
    debug: bool


_NEUTRAL_OPTIONS: Final = frozenset({"history", "remember", "debug"})
"""Options that don't by themselves select the agents."""
_PIPELINE_OPTION_NAMES: Final = frozenset(PipelineOptions.__annotations__)


def select_pipeline_options(values: Mapping[str, object]) -> PipelineOptions:
    """Select the pipeline's options from all values of a command."""
    return cast("PipelineOptions", {name: values[name] for name in _PIPELINE_OPTION_NAMES})


def agent_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for agents, notes and edits to a command."""
    return _decorate(
        command,
        click.option(
            "--scout/--no-scout", default=None, help="Let an agent search the whole vault for relevant notes first."
        ),
        click.option("--web/--no-web", default=None, help="Search the web where the notes don't answer."),
        click.option(
            "--task/--no-task", default=None, help="Carry out the task, or only show the notes that were found."
        ),
        click.option(
            "--depth", type=click.IntRange(0, 3), default=None, help="Number of link steps to follow from the note."
        ),
        click.option("--same-folder/--no-same-folder", default=None, help="Include the notes in the same folder."),
        click.option(
            "--add", multiple=True, metavar="NOTE", type=options.TEXT, help="Include this note too; repeatable."
        ),
        click.option(
            "--editable",
            type=click.Choice(["current", "linked", "context"]),
            default=None,
            help="Which notes may be edited.",
        ),
        click.option("--can", default="", metavar="WORDS", help="Allowed edits: add,delete,create,navigate."),
        click.option("--preset", default="", metavar="NAME", help="Use the preset saved under this name."),
    )


def pipeline_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add all options of the agents to a command."""
    more = _decorate(
        command,
        click.option("--save-preset", default="", metavar="NAME", help="Save these options as a preset."),
        click.option(
            "--token-limit", type=click.IntRange(3_000), default=None, help="Maximum tokens of notes in the prompt."
        ),
        click.option("--route/--no-route", default=None, help="Let a model choose which agents to use."),
        click.option("--history/--no-history", default=True, help="Include earlier conversation about the note."),
        click.option("--remember", is_flag=True, help="Use this choice of agents in later tasks and on the page too."),
        click.option("--resume", default="", metavar="RUN", help="Answer the question that this run asked."),
        click.option("--debug", is_flag=True, help="Show the prompts and replies of the models."),
    )
    return agent_options(more)


def _decorate(command: Callable[..., Any], *decorators: Callable[..., Any]) -> Callable[..., Any]:
    for decorator in reversed(decorators):
        command = decorator(command)
    return command


def split_words(text: str) -> list[str]:
    """Split a comma-separated list of words."""
    return [word.strip() for word in text.split(",") if word.strip()]


def wants_agents(own: PipelineOptions, note: str) -> bool:
    """Return whether the person asked for the agents."""
    said = cast("dict[str, object]", own)
    return bool(note) or any(said[name] not in {None, "", ()} for name in said if name not in _NEUTRAL_OPTIONS)


class RunLimitOptions(TypedDict):
    """The options that limit a run."""

    depth: int | None
    nodes: int | None
    minutes: float | None
    tokens: int | None
    cents: int | None
    parallel: int | None


class RunResumeOptions(RunLimitOptions):
    """The options for resuming a run."""

    replay: str
    model: str
    fs_read: tuple[str, ...]
    net_allow: tuple[str, ...]


class RunStartOptions(RunLimitOptions):
    """The options of a new run."""

    strategy: str
    model: str
    no_code_mode: bool
    profile: ScriptProfile
    fs_read: tuple[str, ...]
    net_allow: tuple[str, ...]
    fresh: bool
    also: tuple[str, ...]


_RUN_LIMIT_OPTIONS = (
    click.option("--depth", type=int, metavar="N", help="Maximum levels of subtasks."),
    click.option("--nodes", type=int, metavar="N", help="Maximum number of nodes (parts of the task)."),
    click.option("--minutes", type=float, metavar="N", help="Maximum duration in minutes."),
    click.option("--tokens", type=int, metavar="N", help="Maximum tokens; 0 for no limit."),
    click.option(
        "--cents", type=int, metavar="N", help="Maximum cost in cents, where prices are known; 0 for no limit."
    ),
    click.option("--parallel", type=int, metavar="N", help="Maximum number of nodes worked on at the same time."),
    click.option("--fs-read", multiple=True, metavar="ROOT", help="Folder that scripts may read; repeatable."),
    click.option(
        "--net-allow", multiple=True, metavar="HOST", help="Host that scripts may fetch pages from; repeatable."
    ),
)


def run_limit_options(function: click.decorators.FC) -> click.decorators.FC:
    """Add the options that limit a run to a command."""
    for option in reversed(_RUN_LIMIT_OPTIONS):
        function = option(function)
    return function

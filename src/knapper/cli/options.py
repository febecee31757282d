"""The options that every command takes, before or after its name, and those that set agents to work."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypedDict, cast

import click

if TYPE_CHECKING:
    from knapper.tools.context import ScriptProfile


WITH_VALUE: Final = frozenset({"-v", "--vault", "--config", "--env-file"})
"""The shared options that take a value."""


class _TextType(click.ParamType[str]):
    """Text that every file and database can store."""

    name = "text"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Refuse bytes that aren't valid text, which Python passes on as lone surrogates."""
        try:
            value.encode()
        except UnicodeEncodeError:
            self.fail("it isn't valid Unicode text", param, ctx)
        return value


class _DayType(click.ParamType[str]):
    """A day, such as 2026-01-31."""

    name = "day"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Refuse anything but a day; an empty text means none."""
        try:
            return dt.date.fromisoformat(value).isoformat() if value else ""
        except ValueError:
            self.fail(f"'{value}' isn't a day like 2026-01-31", param, ctx)


DAY: Final = _DayType()
"""The type of an argument that is a day."""
TEXT: Final = _TextType()
"""The type of an argument that is searched for."""


@dataclass(slots=True, kw_only=True)
class GlobalOptions:
    """The shared options, wherever they are on the command line."""

    vault: str = ""
    config: str = ""
    env_file: str = ""
    as_json: bool = False
    quiet: bool = False
    no_color: bool = False
    no_server: bool = False


class CapOptions(TypedDict):
    """The options of `cap_options`; 0 is no limit."""

    rounds: int
    calls: int
    tokens: int
    minutes: float
    cents: int


def select_caps(values: CapOptions) -> dict[str, Any]:
    """Select the limits that were given from all values of a command."""
    given: dict[str, Any] = {name: values[name] for name in CapOptions.__annotations__}
    return {name: value for name, value in given.items() if value}


def decorate(command: Callable[..., Any], *decorators: Callable[..., Any]) -> Callable[..., Any]:
    """Apply decorators as if they stood above the command in this order."""
    for decorator in reversed(decorators):
        command = decorator(command)
    return command


def cap_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that limit what an answer of a model takes; they only lower the limits of the settings."""
    option = partial(click.option, default=0, metavar="N")
    return decorate(
        command,
        option("--rounds", type=click.IntRange(0, 100), help="Most rounds of tool calls."),
        option("--calls", type=click.IntRange(0, 10_000), help="Most tool calls."),
        option("--tokens", type=click.IntRange(0, 10**9), help="Most tokens."),
        option("--minutes", type=click.FloatRange(0, 1_440), help="Most time."),
        option("--cents", type=click.IntRange(0, 10**6), help="Most cost, where a price is known."),
    )


def shared_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that all commands take; their values are stored in `GlobalOptions`."""

    def store(ctx: click.Context, param: click.Parameter, value: object) -> None:
        if value and param.name:
            setattr(ctx.ensure_object(GlobalOptions), param.name, value)

    option = partial(click.option, expose_value=False, callback=store)
    no_server_help = "Read the index here, even where a server runs; KNAP_USE_SERVER=no does the same."
    return decorate(
        command,
        option("-v", "--vault", metavar="NAME|FOLDER", help="Vault to work on."),
        option("--config", metavar="FILE", help="Configuration file to read."),
        option("--env-file", metavar="FILE", help="Environment file to read (NAME=value lines)."),
        option("--json", "as_json", is_flag=True, help="Print JSON."),
        option("-q", "--quiet", is_flag=True, help="Print results and errors only."),
        option("--no-color", is_flag=True, help="Print without colours; NO_COLOR does the same."),
        option("--no-server", is_flag=True, help=no_server_help),
    )


def pass_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that all commands take, and pass their values as the first argument."""
    return shared_options(click.pass_obj(command))


class AgentName(click.Choice[str]):
    """The name of an agent: those that come with Knapper are completed, and the owner's are taken, too."""

    def __init__(self) -> None:
        """Offer the names of those that come with Knapper."""
        from knapper.agents import stages  # noqa: PLC0415 - only commands that name an agent pay for it

        super().__init__(stages.built_in_names())

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Take any name; whether there is such an agent, the configuration says."""
        del param, ctx
        return str(value)

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None) -> str:
        """Name one for an example: the owner's own agents aren't among the choices."""
        del param, ctx
        return f"Give an agent's name, such as {self.choices[0]}"


def limit_option(default: int, most: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds the option for the number of results."""
    return click.option(
        "-n",
        "number",
        type=click.IntRange(1, most),
        default=default,
        show_default=True,
        help="Maximum number of results.",
    )


def client_option(default: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds the option for whom the command acts."""
    return click.option(
        "--client", default=default, show_default=True, metavar="NAME", help="Client whose policy applies."
    )


def examples(*lines: tuple[str, str]) -> str:
    """Format examples for the end of a help text: each a command and its purpose."""
    width = max(len(command) for command, _ in lines)
    return "\b\nExamples:\n" + "\n".join(f"  {command:<{width}}  {purpose}" for command, purpose in lines)


def did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    """Return a hint with the known word nearest to a mistyped one, or *otherwise*."""
    from knapper.config import declarations  # noqa: PLC0415  # 50 ms that only a mistyped word should cost

    return declarations.did_you_mean(word, known, otherwise)


_SAME_VERBS: Final = (
    ("new", "create", "add", "make"),
    ("rm", "delete", "remove", "revoke"),
    ("show", "read", "status", "info", "get", "view", "cat"),
    ("cancel", "stop", "abort"),
    ("list", "find", "ls"),
    ("move", "rename", "mv"),
)
"""Words for one thing, of which each group of commands has one or none; where it has several, the first one."""


def guess_command(word: str, known: Collection[str], otherwise: str) -> str:
    """Return a hint with the command that a word may mean, by its meaning or else by its spelling, or *otherwise*."""
    verbs = next((verbs for verbs in _SAME_VERBS if word in verbs), ())
    if not verbs:
        return did_you_mean(word, known, otherwise)
    # Its spelling misleads: `knap token create` isn't `rotate`, nor `knap config get` `set`.
    same = next((verb for verb in verbs if verb in known), "")
    return f"did you mean '{same}'?" if same else otherwise


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
    return decorate(
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
        click.option("--add", multiple=True, metavar="NOTE", type=TEXT, help="Include this note too; repeatable."),
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
    more = decorate(
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


def split_words(text: str) -> list[str]:
    """Split a comma-separated list of words."""
    return [word.strip() for word in text.split(",") if word.strip()]


def wants_agents(own: PipelineOptions, note: str) -> bool:
    """Return whether the person asked for the agents."""
    chosen = cast("dict[str, object]", own)
    return bool(note) or any(chosen[name] not in {None, "", ()} for name in chosen if name not in _NEUTRAL_OPTIONS)


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


def run_limit_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that limit a run to a command."""
    return decorate(
        command,
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

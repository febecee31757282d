"""Name the switches that make `knap ask` the work of several agents."""

from collections.abc import Callable, Mapping
from typing import Any, Final, cast

import click
from typing_extensions import TypedDict

from knapper.cli import options


class Chosen(TypedDict):
    """Hold the choice of agents, notes and edits; None and empty where the person said nothing."""

    scout: bool | None
    web: bool | None
    task: bool | None
    depth: int | None
    same_folder: bool | None
    add: tuple[str, ...]
    editable: str | None
    can: str
    preset: str


class Switches(Chosen):
    """Hold all that the person said."""

    save_preset: str
    token_limit: int | None
    route: bool | None
    history: bool
    resume: str
    debug: bool


_QUIET: Final = frozenset({"history", "debug"})
"""Those that alone don't make it the agents' work."""
_NAMES: Final = frozenset(Switches.__annotations__)


def of(own: Mapping[str, object]) -> Switches:
    """Give the switches among all that a command was told."""
    return cast("Switches", {name: own[name] for name in _NAMES})


def choosing(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the choice of agents, notes and edits."""
    return _decorated(
        command,
        click.option("--scout/--no-scout", default=None, help="Look for the notes first, in the whole vault."),
        click.option("--web/--no-web", default=None, help="Search the web where the notes don't answer."),
        click.option("--task/--no-task", default=None, help="Do the task, or only show what was found."),
        click.option("--depth", type=click.IntRange(0, 3), default=None, help="Links followed from the note."),
        click.option("--same-folder/--no-same-folder", default=None, help="With the notes of its folder."),
        click.option(
            "--add", multiple=True, metavar="NOTE", type=options.TEXT, help="With this note, too; repeatable."
        ),
        click.option(
            "--editable", type=click.Choice(["current", "linked", "context"]), default=None, help="What may be edited."
        ),
        click.option("--can", default="", metavar="WORDS", help="What edits may do: add,delete,create,navigate."),
        click.option("--preset", default="", metavar="NAME", help="With what was saved under this name."),
    )


def added(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command all switches."""
    more = _decorated(
        command,
        click.option("--save-preset", default="", metavar="NAME", help="Save these switches under a name."),
        click.option("--token-limit", type=click.IntRange(3_000), default=None, help="Tokens of notes at most."),
        click.option("--route/--no-route", default=None, help="Let a model choose which agents work."),
        click.option("--history/--no-history", default=True, help="Tell what was said about the note before."),
        click.option("--resume", default="", metavar="RUN", help="Answer what this run asked."),
        click.option("--debug", is_flag=True, help="Show what models were given and said."),
    )
    return choosing(more)


def _decorated(command: Callable[..., Any], *decorators: Callable[..., Any]) -> Callable[..., Any]:
    for decorator in reversed(decorators):
        command = decorator(command)
    return command


def words(said: str) -> list[str]:
    """Part words that stand behind one another with commas."""
    return [word.strip() for word in said.split(",") if word.strip()]


def are_given(own: Switches, note: str) -> bool:
    """Tell whether the person asked for the agents."""
    said = cast("dict[str, object]", own)
    return bool(note) or any(said[name] not in {None, "", ()} for name in said if name not in _QUIET)

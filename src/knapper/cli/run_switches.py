"""Take the options that say how much a run may take, and how it is done."""

from typing import TypedDict

import click

from knapper.tools.context import ScriptProfile


class Allowed(TypedDict):
    """Hold the options that say how much a run may take."""

    depth: int | None
    nodes: int | None
    minutes: float | None
    tokens: int | None
    cents: int | None
    parallel: int | None


class Going(Allowed):
    """Hold the options of a run that goes on."""

    replay: str
    model: str
    fs_read: tuple[str, ...]
    net_allow: tuple[str, ...]


class Given(Allowed):
    """Hold the options of a new run."""

    strategy: str
    model: str
    no_code_mode: bool
    profile: ScriptProfile
    fs_read: tuple[str, ...]
    net_allow: tuple[str, ...]
    fresh: bool
    also: tuple[str, ...]


_LIMITS = (
    click.option("--depth", type=int, metavar="N", help="Levels of subtasks at most."),
    click.option("--nodes", type=int, metavar="N", help="Nodes at most."),
    click.option("--minutes", type=float, metavar="N", help="How long it may take."),
    click.option("--tokens", type=int, metavar="N", help="Tokens at most; 0 for no limit."),
    click.option("--cents", type=int, metavar="N", help="What it may cost, where prices are known; 0 for no limit."),
    click.option("--parallel", type=int, metavar="N", help="Nodes that are worked on at the same time."),
    click.option("--fs-read", multiple=True, metavar="ROOT", help="A folder that scripts may read."),
    click.option("--net-allow", multiple=True, metavar="HOST", help="A host that scripts may get pages from."),
)


def limited(function: click.decorators.FC) -> click.decorators.FC:
    """Give a command the options that say how much a run may take."""
    for option in reversed(_LIMITS):
        function = option(function)
    return function

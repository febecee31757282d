"""Say how much a run may take, and how it retrieves."""

from dataclasses import dataclass
from typing import Final

from knapper.config.setting import Setting, Values, count, text

_ON_OFF: Final = ("on", "off")

SETTINGS = (
    Setting(
        name="runs.strategy",
        doc="How runs are split and done: a strategy's name, or auto to let the model choose.",
        default="auto",
        env=("KNAP_RUNS_STRATEGY",),
    ),
    Setting(
        name="runs.code_mode",
        doc="Whether scripts retrieve what a run needs; otherwise search does.",
        kind="choice",
        default="on",
        env=("KNAP_RUNS_CODE_MODE",),
        choices=_ON_OFF,
    ),
    Setting(
        name="runs.depth",
        doc="How many levels of subtasks a run may have.",
        kind="count",
        default=3,
        env=("KNAP_RUNS_DEPTH",),
        most=8,
    ),
    Setting(
        name="runs.nodes",
        doc="How many nodes a run may have, the task itself among them.",
        kind="count",
        default=50,
        env=("KNAP_RUNS_NODES",),
        least=1,
        most=500,
    ),
    Setting(
        name="runs.minutes",
        doc="How long a run may take, in minutes; a quarter is kept for its answer.",
        kind="count",
        default=20,
        env=("KNAP_RUNS_MINUTES",),
        least=1,
        most=1_440,
    ),
    Setting(
        name="runs.tokens",
        doc="How many tokens a run may use; a quarter is kept for its answer; 0 for no limit.",
        kind="count",
        default=1_000_000,
        env=("KNAP_RUNS_TOKENS",),
        most=1_000_000_000,
    ),
    Setting(
        name="runs.cents",
        doc="How much a run may cost, in cents of a US dollar, where prices are known; 0 for no limit.",
        kind="count",
        default=0,
        env=("KNAP_RUNS_CENTS",),
        most=1_000_000,
    ),
    Setting(
        name="runs.parallel",
        doc="How many nodes of a run retrieve or write at the same time.",
        kind="count",
        default=4,
        env=("KNAP_RUNS_PARALLEL",),
        least=1,
        most=64,
    ),
    Setting(
        name="runs.days",
        doc="How long a run is kept after it was last worked on, in days.",
        kind="count",
        default=90,
        least=1,
        most=36_500,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """Say how much a run may take, and how it retrieves."""

    strategy: str = "auto"
    code_mode: bool = True
    depth: int = 3
    nodes: int = 50
    minutes: int = 20
    tokens: int = 1_000_000
    cents: int = 0
    parallel: int = 4
    days: int = 90


def read(values: Values) -> Runs:
    """Give the section."""
    return Runs(
        strategy=text(values, "runs.strategy"),
        code_mode=text(values, "runs.code_mode") == "on",
        depth=count(values, "runs.depth"),
        nodes=count(values, "runs.nodes"),
        minutes=count(values, "runs.minutes"),
        tokens=count(values, "runs.tokens"),
        cents=count(values, "runs.cents"),
        parallel=count(values, "runs.parallel"),
        days=count(values, "runs.days"),
    )

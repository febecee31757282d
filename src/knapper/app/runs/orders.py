"""Make orders of runs for clients of a server, within what the owner configured."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Final, cast

from knapper.agents.runs.model import MAX_DEPTH, MAX_NODES, RunLimits, RunOrder
from knapper.app.runs import opening
from knapper.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from knapper.config import Settings
    from knapper.tools.context import ScriptProfile
    from knapper.vault.access import Grants


MOST_MINUTES: Final = 1_440
MOST_TOKENS: Final = 1_000_000_000
MOST_CENTS: Final = 1_000_000
RANGES: Final[Mapping[str, tuple[float, float]]] = {
    "depth": (0, MAX_DEPTH),
    "nodes": (1, MAX_NODES),
    "minutes": (0.01, MOST_MINUTES),
    "tokens": (0, MOST_TOKENS),
    "cents": (0, MOST_CENTS),
}
"""The least and the most of each limit that can be said."""
_UNLIMITED: Final = frozenset({"tokens", "cents"})
"""For which 0 is no limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Hold what a client says of a new run; what is empty or None is as the owner configured it."""

    task: str
    strategy: str = ""
    code_mode: bool | None = None
    profile: ScriptProfile = "strict"
    fresh: bool = False
    model: str = ""
    also: tuple[str, ...] = ()
    """Other vaults to look through, by name."""
    limits: Mapping[str, float] = field(default_factory=dict[str, float])
    """By the names of `RANGES`."""


def order(settings: Settings, wanted: Wanted, grants: Grants) -> RunOrder:
    """Make an order.

    Args:
        settings: What the owner configured.
        wanted: What the client says.
        grants: The client's.

    Raises:
        RefusedError: It asks for more than it may have.
        BadInput: The task is empty.
    """
    if wanted.profile not in profiles(settings):
        raise RefusedError(
            f"scripts may read nothing beyond the vaults here, as the profile '{wanted.profile}' would",
            hint="leave profile out; the owner allows folders by scripts.fs_read, and hosts by scripts.net_allow",
            code="profile_refused",
        )
    own = settings.runs
    return RunOrder(
        task=wanted.task,
        strategy=wanted.strategy or own.strategy,
        code_mode=own.code_mode if wanted.code_mode is None else wanted.code_mode,
        profile=wanted.profile,
        fresh=wanted.fresh,
        also=tuple(dict.fromkeys(wanted.also)),
        limits=limits(settings, wanted.limits, grants),
        client=grants.client,
    )


def limits(settings: Settings, said: Mapping[str, float], grants: Grants, before: RunLimits | None = None) -> RunLimits:
    """Give a run's limits: a person says any, others lower ones than the owner configured.

    Args:
        settings: What the owner configured.
        said: By the names of `RANGES`.
        grants: Of who says it.
        before: Those that the run has had; None for a new one.

    Raises:
        RefusedError: It is more than the owner allows (code ``over_limit``).
    """
    most = opening.limits(settings)
    usual = before or most
    asked = replace(usual, **_told(said))
    if grants.is_person:
        return asked
    for name in said:
        own = "seconds" if name == "minutes" else name
        if _exceeds(name, getattr(asked, own), getattr(most, own)):
            raise RefusedError(
                f"{name} is {said[name]:g}, which is more than the owner allows",
                hint=f"give {_shown(name, most)} at most, or leave it out; runs.{name} sets it",
                code="over_limit",
            )
    return _lowest(asked, most)


def profiles(settings: Settings) -> tuple[ScriptProfile, ...]:
    """List what scripts of runs may read here: the vaults; with the owner's folders; with the owner's hosts as well."""
    own = settings.scripts
    local: tuple[ScriptProfile, ...] = ("local",) if own.fs_read else ()
    extended: tuple[ScriptProfile, ...] = ("extended",) if own.net_allow else ()
    return ("strict", *local, *extended)


def ranges(settings: Settings, grants: Grants) -> dict[str, tuple[float, float]]:
    """Give the least and the most of each limit that a client can say."""
    most = opening.limits(settings)
    found: dict[str, tuple[float, float]] = {}
    for name, (least, highest) in RANGES.items():
        own = value(name, most)
        if grants.is_person or (name in _UNLIMITED and not own):
            found[name] = (least, highest)
        else:
            found[name] = (1 if name in _UNLIMITED else least, own)
    return found


def value(name: str, given: RunLimits) -> float:
    """Give a limit by its name among `RANGES`."""
    return given.seconds / 60 if name == "minutes" else cast("int", getattr(given, name))


def _told(said: Mapping[str, float]) -> dict[str, float | int]:
    rest: dict[str, float | int] = {name: int(number) for name, number in said.items() if name != "minutes"}
    return {**rest, "seconds": said["minutes"] * 60} if "minutes" in said else rest


def _exceeds(name: str, number: float, most: float) -> bool:
    if name in _UNLIMITED:
        return bool(most) and (not number or number > most)
    return number > most


def _lowest(asked: RunLimits, most: RunLimits) -> RunLimits:
    """Lower what a run had before to what the owner allows by now."""
    lower = {
        one.name: getattr(most, one.name)
        for one in fields(RunLimits)
        if _exceeds(one.name, getattr(asked, one.name), getattr(most, one.name))
    }
    return replace(asked, **lower)


def _shown(name: str, most: RunLimits) -> str:
    return f"{value(name, most):,.10g}"

"""Read environment variables."""

import os
from collections.abc import Iterable
from typing import Final

_COLOURLESS_TERMINALS: Final = ("dumb", "unknown")
"""Terminals that print the codes of colours as they are."""


def read_variables(names: Iterable[str]) -> dict[str, str]:
    """Return the named variables that are set to something."""
    values = {name: os.environ.get(name, "") for name in names}
    return {name: value for name, value in values.items() if value.strip()}


def all_variables() -> dict[str, str]:
    """Return all variables, for a program that is started and needs its owner's."""
    return dict(os.environ)


def keep_numpy_to_one_thread() -> None:
    """Let numpy's library compute in the caller's thread alone, unless the owner set it otherwise.

    A server calls it from threads of its own; more of the library's only wait for one another, and double the work of
    a search. It counts only before numpy is imported.
    """
    for name in ("OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
        os.environ.setdefault(name, "1")


def wants_colour() -> bool:
    """Check that NO_COLOR leaves colours alone, and that the terminal isn't one that would print their codes.

    Source: no-color.org: any value that isn't empty turns colours off.
    """
    return (
        not read_variables(["NO_COLOR"])
        and read_variables(["TERM"]).get("TERM", "").strip().lower() not in _COLOURLESS_TERMINALS
    )

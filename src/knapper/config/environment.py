"""Read environment variables."""

import os
from collections.abc import Iterable


def read(names: Iterable[str]) -> dict[str, str]:
    """Give the named variables that are set to something."""
    values = {name: os.environ.get(name, "") for name in names}
    return {name: value for name, value in values.items() if value.strip()}


def whole() -> dict[str, str]:
    """Give all variables, for a program that is started and needs its owner's."""
    return dict(os.environ)


def wants_colour() -> bool:
    """Tell whether NO_COLOR leaves colours alone.

    Source: no-color.org: any value that isn't empty turns colours off.
    """
    return not read(["NO_COLOR"])

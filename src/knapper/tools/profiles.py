"""Name the choices of tools that a surface may list."""

from typing import Final, Literal, get_args

Choice = Literal["essential", "full", "read-only"]
"""The few that most work needs, all, or all that change nothing."""
CHOICES: Final[tuple[Choice, ...]] = get_args(Choice)

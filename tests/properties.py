"""How many examples a property is tried with, by hypothesis' profile."""

from typing import Final

from hypothesis import settings

THOROUGH: Final = 100
"""Examples of a property that says nothing else, in the profiles `thorough` and `explore`."""
USUAL: Final = 30
"""The same in the profile that is used where none is named."""
_FEWEST: Final = 8


def scaled(thorough: int) -> int:
    """Return how many examples the profile gives a property that has *thorough* of them in a thorough one."""
    usual = thorough * settings().max_examples // THOROUGH
    return min(thorough, max(_FEWEST, usual))

"""Say what tools answer, a module for each kind of answer; surfaces derive their output schemas from these."""

from typing import TypeAlias

from knapper.jsontypes import JSONValue

Answer: TypeAlias = dict[str, JSONValue]
"""What every tool gives: JSON."""

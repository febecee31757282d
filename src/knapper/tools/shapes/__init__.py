"""Types of the tools' answers, from which surfaces derive their output schemas."""

from typing import TypeAlias

from knapper.jsontypes import JSONValue

Answer: TypeAlias = dict[str, JSONValue]
"""What every tool returns: a JSON object."""

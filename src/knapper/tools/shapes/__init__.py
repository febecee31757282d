"""Types of the tools' answers, from which surfaces derive their output schemas, and how much one holds at most."""

from typing import Final, TypeAlias

from knapper.jsontypes import JSONValue

Answer: TypeAlias = dict[str, JSONValue]
"""A tool's answer as the surfaces pass it on: a JSON object."""

MAX_PASSAGES: Final = 200
"""Most passages that one search answers with."""
MAX_RESULTS: Final = 1_000
"""Most rows of one list."""
MAX_LENGTH: Final = 1_000_000
"""Most characters of a note that are read at once."""
SEARCH_MODES: Final = ("hybrid", "semantic", "keyword")
"""How passages can be ranked; the first is the default."""

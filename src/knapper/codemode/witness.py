"""Stand between a script and its vaults, and remember what it was given."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from knapper.codemode.bridge import Bridge
from knapper.jsontypes import JSONValue

OUTSIDE: Final = frozenset({"read_file", "http_get"})
MOST_KEPT: Final = 4_000_000
"""Characters; what comes after that is given to the script, and not remembered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """Name a note that a script has read, as it was then."""

    vault: str
    path: str
    hash: str


class Witness:
    """Be the host of one script, in the place of its bridge."""

    def __init__(self, bridge: Bridge) -> None:
        """Pass calls on to *bridge*."""
        self._bridge = bridge
        self._kept = 0
        self._texts: dict[str, None] = {}
        self.used_tools = False
        """Whether it called the table's tools, of which nobody notes which files they look at."""
        self.used_outside = False
        """Whether it read files or pages beyond the vaults."""

    def __call__(self, method: str, given: Mapping[str, JSONValue]) -> JSONValue:
        """Carry out one method, and remember what it gave.

        Raises:
            KnapError: As the bridge raises it.
        """
        answer = self._bridge(method, given)
        self.used_tools = self.used_tools or method.startswith("tools.")
        self.used_outside = self.used_outside or method in OUTSIDE
        for text in _texts(answer):
            if text not in self._texts and self._kept < MOST_KEPT:
                self._kept += len(text)
                self._texts[text] = None
        return answer

    @property
    def heard(self) -> tuple[str, ...]:
        """Give the texts that the script was given, each once."""
        return tuple(self._texts)

    @property
    def reads(self) -> tuple[Read, ...]:
        """Name the notes that the script has read."""
        return tuple(Read(vault=vault, path=path, hash=one) for (vault, path), one in self._bridge.reads.items())

    @property
    def others(self) -> tuple[str, ...]:
        """Name the other vaults that the script has looked into."""
        return self._bridge.others


def _texts(answer: JSONValue) -> Iterator[str]:
    """Yield the texts in an answer, keys of dictionaries included: some name notes."""
    waiting: list[JSONValue] = [answer]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            waiting.extend(value)
        elif isinstance(value, dict):
            yield from value
            waiting.extend(value.values())

"""Find tools by what they do, and call those that aren't listed."""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Final, NotRequired

from typing_extensions import TypedDict

from knapper.errors import BadInput
from knapper.jsontypes import JSONValue
from knapper.tools import calls, schema
from knapper.tools.context import Context
from knapper.tools.rows import Row
from knapper.tools.shapes import Answer
from knapper.tools.tables import Table

_WORD: Final = re.compile(r"[a-z]{2,}")
_NAME: Final = 3.0
"""What a word in a tool's name counts more than one in its description."""
_SUMMARY: Final = 1.0
"""And one in the description's first sentence."""
_ALSO: Final[Mapping[str, tuple[str, ...]]] = {
    "note": ("file",),
    "remove": ("delete", "trash"),
    "erase": ("delete", "trash"),
    "rename": ("move",),
    "revert": ("undo",),
    "restore": ("undo",),
    "history": ("change",),
    "internet": ("web",),
    "online": ("web",),
    "overwrite": ("write",),
    "make": ("create",),
    "new": ("create",),
    "top": ("beginning",),
    "bottom": ("end",),
    "many": ("several", "batch"),
    "dead": ("broken",),
    "similar": ("meaning",),
    "heading": ("section",),
    "frontmatter": ("property",),
    "metadata": ("property",),
    "recording": ("audio",),
    "speech": ("audio",),
    "forget": ("remove",),
    "google": ("web",),
    "download": ("page",),
    "url": ("page", "web"),
    "remember": ("preference",),
    "modified": ("saved",),
    "edited": ("saved",),
    "changed": ("saved",),
    "yesterday": ("date",),
    "week": ("date",),
    "month": ("date",),
    "recent": ("date", "saved"),
    "recently": ("date", "saved"),
    "link": ("backlink",),
    "linked": ("backlink",),
    "linking": ("backlink",),
    "mention": ("backlink",),
    "approve": ("accept",),
    "decline": ("reject",),
}
"""Other words for what tools do, as their descriptions say it."""


class Found(TypedDict):
    """Describe a tool."""

    name: str
    description: str
    effect: str
    parameters: dict[str, object]


class FoundTools(TypedDict):
    """List tools, the likeliest first."""

    success: bool
    results: list[Found]
    total: int
    message: NotRequired[str]


class Called(TypedDict):
    """Give what the called tool answers."""

    success: bool


class Finder:
    """Hold the table in which tools are found."""

    def __init__(self, table: Table) -> None:
        """Take the table."""
        self._table = table

    def find_tool(self, context: Context, query: str, limit: int = 5) -> Annotated[Answer, FoundTools]:
        """Find more tools: for links, tags, dates, sections, daily notes, review, the web; call one with call_tool.

        They are found by what they do, and told with their parameters. Only what can be called is found: where nothing
        may be changed, what reads.

        Args:
            context: The vault, as the client sees it.
            query: What is to be done, in a few words, or a tool's name.
            limit: How many at most, 1 to 50.

        Raises:
            BadInput: The limit is out of its range.
        """
        if not 1 <= limit <= 50:
            raise BadInput(f"limit is {limit}", hint="give 1 to 50")
        found = ranked(query, self._table.callable(context.offered))
        rows: list[JSONValue] = [
            {
                "name": row.name,
                "description": schema.description(row),
                "effect": row.effect,
                "parameters": self._table.parameters(row),
            }
            for row in found[:limit]
        ]
        shown: Answer = {"success": True, "results": rows, "total": len(found)}
        return shown if rows else {**shown, "message": "no tool fits; other words may help"}

    def call_tool(
        self, context: Context, name: str, arguments: Mapping[str, JSONValue] | None = None
    ) -> Annotated[Answer, Called]:
        """Call any tool that find_tool found.

        Args:
            context: The vault, as the client sees it.
            name: The tool's name.
            arguments: What it takes, by name.

        Raises:
            NotFound: There is no such tool.
            KnapError: As the tool says.
        """
        return calls.call(self._table.find(name), context, arguments or {})


def ranked(query: str, rows: Iterable[Row]) -> list[Row]:
    """Give the tools that share words with a question, the likeliest first; a word counts more, the fewer have it."""
    known = [(row, _places(row)) for row in rows]
    scores = [0.0] * len(known)
    for word in _words(query):
        ways = {word, *_ALSO.get(word, ())}
        shares = [_share(ways, places) for _, places in known]
        fit = sum(share > 0 for share in shares)
        for number, share in enumerate(shares):
            scores[number] += share and share * math.log(1 + len(known) / fit)
    order = sorted(range(len(known)), key=lambda number: -scores[number])
    return [known[number][0] for number in order if scores[number]]


def _places(row: Row) -> tuple[tuple[float, set[str]], ...]:
    """Give a tool's words with what they count, by where they stand."""
    name = _words(row.name)
    return (
        (_NAME / (1 + len(name) / 10), name),
        (_SUMMARY, _words(schema.summary(row))),
        (1.0, _words(schema.description(row))),
    )


def _share(ways: set[str], places: Iterable[tuple[float, set[str]]]) -> float:
    return sum(weight for weight, words in places if any(_has(word, words) for word in ways))


def _has(word: str, words: set[str]) -> bool:
    return any(one.startswith(word) or word.startswith(one) for one in words if min(len(one), len(word)) > 2)


def _words(text: str) -> set[str]:
    return {word.removesuffix("s") for word in _WORD.findall(text.casefold())}

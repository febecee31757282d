"""The table of tools of all layers, and the tool that finds and calls those which a client isn't shown."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Final, NotRequired

from typing_extensions import TypedDict

from knapper.agents.offers import AgentTools
from knapper.codemode import tool
from knapper.errors import BadInput
from knapper.jsontypes import JSONValue
from knapper.tools import registry, table
from knapper.tools.context import Context
from knapper.tools.registry import ToolSpec, ToolTable
from knapper.tools.shapes import Answer

_WORD: Final = re.compile(r"[a-z]{2,}")
_NAME_WEIGHT: Final = 3.0
"""Weight of a word in a tool's name, where one in its description weighs 1."""
_SUMMARY_WEIGHT: Final = 1.0
"""Additional weight of a word in the description's first sentence."""
_SYNONYMS: Final[Mapping[str, tuple[str, ...]]] = {
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
"""Other words for what tools do, mapped to those of their descriptions."""


class ToolDescription(TypedDict):
    """A tool with its description and parameters."""

    name: str
    description: str
    effect: str
    parameters: dict[str, object]
    returns: NotRequired[dict[str, object]]


class FoundTools(TypedDict):
    """The tools that were found, the best match first."""

    success: bool
    results: list[ToolDescription]
    total: int
    message: NotRequired[str]


class CalledToolAnswer(TypedDict):
    """The answer of the called tool."""

    success: bool


class ToolFinder:
    """The two tools that find and call the others."""

    def __init__(self, table: ToolTable) -> None:
        """Search in *table*."""
        self._table = table

    def find_tool(self, context: Context, query: str, limit: int = 5, *, returns: bool = False) -> FoundTools:
        """Find more tools: for links, tags, dates, sections, daily notes, review, the web; call one with call_tool.

        They are found by what they do, and returned with their parameters. Only callable tools are found: a read-only
        client finds those that read.

        Args:
            context: The vault, as the client sees it.
            query: What is to be done, in a few words, or a tool's name.
            limit: How many at most, 1 to 50.
            returns: Give the schema of what each answers, too.

        Raises:
            BadInput: The limit is out of its range.
        """
        if not 1 <= limit <= 50:
            raise BadInput(f"limit is {limit}", hint="give 1 to 50")
        choice = "read-only" if context.tool_selection == "read-only" else "full"
        matches = rank_tools(query, self._table.listed_tools(choice))
        rows = [self._describe_tool(context, row, returns=returns) for row in matches[:limit]]
        answer: FoundTools = {"success": True, "results": rows, "total": len(matches)}
        if not rows:
            answer["message"] = "no tool fits; other words may help"
        return answer

    def _describe_tool(self, context: Context, row: ToolSpec, *, returns: bool) -> ToolDescription:
        description: ToolDescription = {
            "name": row.name,
            "description": registry.describe(row),
            "effect": row.effect,
            "parameters": {**self._table.parameters(row, vaults=context.vaults or None)},
        }
        if returns:
            description["returns"] = {**registry.answer_schema(row)}
        return description

    def call_tool(
        self, context: Context, name: str, arguments: Mapping[str, JSONValue] | None = None
    ) -> Annotated[Answer, CalledToolAnswer]:
        """Call any tool that find_tool found.

        Args:
            context: The vault, as the client sees it.
            name: The tool's name.
            arguments: What it takes, by name.

        Raises:
            NotFound: There is no such tool.
            KnapError: As the tool says.
        """
        return registry.invoke_tool(self._table.find(name), context, arguments or {})


def rank_tools(query: str, rows: Iterable[ToolSpec]) -> list[ToolSpec]:
    """Return the tools that share words with a query, the best match first; a word that few tools have weighs more."""
    candidates = [(row, _weighted_words(row)) for row in rows]
    scores = [0.0] * len(candidates)
    for word in _split_words(query):
        synonyms = {word, *_SYNONYMS.get(word, ())}
        shares = [_word_weight(synonyms, weighted) for _, weighted in candidates]
        matching = sum(share > 0 for share in shares)
        for number, share in enumerate(shares):
            scores[number] += share and share * math.log(1 + len(candidates) / matching)
    order = sorted(range(len(candidates)), key=lambda number: -scores[number])
    return [candidates[number][0] for number in order if scores[number]]


def _weighted_words(row: ToolSpec) -> tuple[tuple[float, set[str]], ...]:
    """Return a tool's words with their weights, by where they occur."""
    name = _split_words(row.name)
    return (
        (_NAME_WEIGHT / (1 + len(name) / 10), name),
        (_SUMMARY_WEIGHT, _split_words(registry.summarize(row))),
        (1.0, _split_words(registry.describe(row))),
    )


def _word_weight(ways: set[str], places: Iterable[tuple[float, set[str]]]) -> float:
    return sum(weight for weight, words in places if any(_has_word(word, words) for word in ways))


def _has_word(word: str, words: set[str]) -> bool:
    return any(one.startswith(word) or word.startswith(one) for one in words if min(len(one), len(word)) > 2)


def _split_words(text: str) -> set[str]:
    return {word.removesuffix("s") for word in _WORD.findall(text.casefold())}


# Its row stands here, since importing a row's class costs 0.1 s, which `knap script` needn't wait for.
_SCRIPT_TOOL: Final = ToolSpec(
    function=tool.run_script,
    effect="write",
    profile="essential",
    shown=("code",),
    rare=("timeout_s",),
    takes_long=True,
    has_submit_options=False,
)


def build_table(vaults: Sequence[str] = (), offers: AgentTools | None = None) -> ToolTable:
    """Build the table.

    Args:
        vaults: Names of the vaults that a server holds.
        offers: Carries out calls of the agents' tools; None if there is no model.
    """
    rows = (*table.TOOLS, _SCRIPT_TOOL, *(offers or AgentTools()).rows())
    finder = ToolFinder(ToolTable(rows, vaults))
    finder_rows = (
        ToolSpec(function=finder.find_tool, profile="essential", shown=("query", "limit")),
        ToolSpec(
            function=finder.call_tool,
            effect="destructive",
            profile="essential",
            open_world=True,
            has_submit_options=False,
        ),
    )
    return ToolTable((*rows, *finder_rows), vaults)

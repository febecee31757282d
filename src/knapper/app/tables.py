"""The table of tools of all layers: with the agents, and the tool that finds and calls those which aren't shown.

Importing this module needs no model; one is opened when an agent's tool is called.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal, NotRequired, Unpack

from typing_extensions import TypedDict

from knapper.agents.model import names
from knapper.codemode import bridge
from knapper.errors import BadInput
from knapper.jsontypes import JSONValue
from knapper.tools import registry, table
from knapper.tools.context import Context
from knapper.tools.registry import ToolSpec, ToolTable
from knapper.tools.shapes import Answer


class Choices(TypedDict, total=False):
    """Options of a task; what is left out is as configured."""

    added: Sequence[str]
    scout: bool
    web: bool
    link_depth: int
    include_same_folder: bool
    editable: Literal["current", "linked", "context"]
    can: Sequence[Literal["add", "delete", "create", "navigate"]]
    preset: str
    run_id: str
    answer: str


class Hints(TypedDict, total=False):
    """Options of a search for notes."""

    rounds: int
    notes: int
    run_id: str
    answer: str


class Answered(TypedDict):
    """The result of a task."""

    success: bool
    state: str
    """complete, asked, cancelled, limit or failed."""
    answer: str
    run_id: str
    question: NotRequired[dict[str, object]]
    """What the person is asked: call again with run_id and answer."""
    citations: NotRequired[list[dict[str, object]]]
    proposals: NotRequired[list[str]]
    edit_results: NotRequired[dict[str, object]]
    proposed_edits: NotRequired[list[dict[str, object]]]
    opened: NotRequired[list[str]]
    pipeline: dict[str, object]
    """What the agents found, and the tokens that this took."""
    context: NotRequired[dict[str, object]]
    notes: NotRequired[list[str]]
    usage: dict[str, object]


class StageAnswered(TypedDict):
    """The result of an agent with a task of its own."""

    success: bool
    state: str
    """complete, asked or limit."""
    answer: str
    """Its report."""
    session_id: str
    """The session that it is kept in, which can be continued; empty where there was nothing to do."""
    citations: NotRequired[list[dict[str, object]]]
    proposals: NotRequired[list[str]]
    changes: NotRequired[list[str]]
    usage: NotRequired[dict[str, object]]
    notes: NotRequired[list[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRequest:
    """A client's request to the agents."""

    kind: Literal["ask", "scout", "stage"]
    task: str
    """In plain words; of a stage, its name."""
    note: str = ""
    choices: Choices = field(default_factory=Choices)
    hints: Hints = field(default_factory=Hints)

    @property
    def run_id(self) -> str:
        """Return the id of the run to continue; empty for a new one."""
        return self.choices.get("run_id", "") or self.hints.get("run_id", "")

    @property
    def answer(self) -> str:
        """Return the answer to the question that the run is waiting for."""
        return self.choices.get("answer", "") or self.hints.get("answer", "")


AGENT_TOOLS: Final = frozenset({"ask_vault", "scout_vault", "run_agent"})
"""The tools' names; our own agents aren't offered them, since an agent would only call itself."""
AskAgents = Callable[[Context, AgentRequest], Answer]
"""Answers a request by running the agents."""


def _without_model(_context: Context, _asked: AgentRequest) -> Answer:
    _ = names.parse_model_name("")
    raise BadInput("no model is set")


class AgentTools:
    """The agents' tools, bound to the function that runs the agents."""

    def __init__(self, ask: AskAgents = _without_model) -> None:
        """Use *ask* to run the agents; the default reports that no model is set."""
        self._ask = ask

    def rows(self) -> tuple[ToolSpec, ...]:
        """Return the tools' rows for the table."""
        return (
            ToolSpec(
                function=self.ask_vault, effect="write", open_world=True, takes_long=True, has_submit_options=False
            ),
            ToolSpec(function=self.scout_vault, open_world=True, takes_long=True),
            ToolSpec(
                function=self.run_agent, effect="write", open_world=True, takes_long=True, has_submit_options=False
            ),
        )

    def ask_vault(
        self, context: Context, task: str = "", note: str = "", **choices: Unpack[Choices]
    ) -> Annotated[Answer, Answered]:
        """Have the vault's own agents answer a question or propose edits, with the notes that it needs.

        Args:
            context: The vault, as the client sees it.
            task: What is to be done, in plain words; empty only to continue a run.
            note: Path of the note that it is about; without one, and with none added, an agent looks for notes.
            added: Paths of further notes for the agents.
            scout: Whether an agent first looks for notes in the whole vault.
            web: Whether the web may be searched, where the owner allows that.
            link_depth: How many links from the note are followed to further notes, 0 to 3.
            include_same_folder: Whether the notes of its folder are included.
            editable: Which notes may be edited: the current one, that and those it links with, or all in the context.
            can: What edits may do: add, delete, create, navigate.
            preset: The name of saved options; options given here take precedence.
            run_id: The id of a run that waits for the person's answer.
            answer: The person's answer to it.

        Returns:
            ``answer``; ``proposals`` with the ids of what waits for a person; ``question`` and ``run_id`` where
            the person is asked a question: call again with ``run_id`` and ``answer``.

        Raises:
            SetupError: No model is set.
            NotFound: There is no such note, preset or run.
        """
        return self._ask(context, AgentRequest(kind="ask", task=_check_task(task, choices), note=note, choices=choices))

    def scout_vault(
        self, context: Context, task: str = "", note: str = "", **hints: Unpack[Hints]
    ) -> Annotated[Answer, Answered]:
        """Have an agent find the notes that a task needs; returns them with the reason for each.

        Args:
            context: The vault, as the client sees it.
            task: What the notes are needed for; empty only to continue a run.
            note: Path of the note that it is about; empty for none.
            rounds: How many rounds of tool calls it has, 2 to 10.
            notes: How many notes it may select, 3 to 50.
            run_id: The id of a run that waits for the person's answer.
            answer: The person's answer to it.

        Returns:
            ``pipeline`` with ``scout``: ``selected_notes`` with path and reason of each, ``reasoning``,
            ``confidence`` and the steps that it took.

        Raises:
            SetupError: No model is set.
            NotFound: There is no such note or run.
        """
        return self._ask(context, AgentRequest(kind="scout", task=_check_task(task, hints), note=note, hints=hints))

    def run_agent(self, context: Context, agent: str) -> Annotated[Answer, StageAnswered]:
        """Set an agent to work that has a task of its own; whatever it writes waits as a proposal.

        Args:
            context: The vault, as the client sees it.
            agent: Name of the agent, such as weekly-review, which proposes links for unlinked notes.

        Returns:
            ``answer`` with its report; ``proposals`` with the ids of what waits for a person; ``session_id`` of the
            session that it is kept in.

        Raises:
            NotFound: There is no such agent; the hint lists them.
            SetupError: No model is set.
        """
        return self._ask(context, AgentRequest(kind="stage", task=agent))


def _check_task(task: str, options: Choices | Hints) -> str:
    if not task.strip() and not options.get("run_id"):
        raise BadInput("the task is empty", hint="say what is to be done")
    return task


_ALWAYS_SHOWN: Final = ("state", "answer", "run_id", "pipeline", "usage")
_SHOWN_IF_SET: Final = (
    "question",
    "citations",
    "proposals",
    "waiting",
    "edit_results",
    "proposed_edits",
    "opened",
    "context",
)


def shape_outcome(outcome: dict[str, JSONValue]) -> Answer:
    """Return a run's outcome in the shape of the tools' answers; empty parts are left out."""
    answer: Answer = {"success": True, **{name: outcome[name] for name in _ALWAYS_SHOWN}}
    notices = outcome["notices"]
    return (
        answer
        | {name: outcome[name] for name in _SHOWN_IF_SET if outcome[name]}
        | ({"notes": notices} if notices else {})
    )


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
        rows: list[ToolDescription] = []
        for row in matches[:limit]:
            description: ToolDescription = {
                "name": row.name,
                "description": registry.describe(row),
                "effect": row.effect,
                "parameters": {**self._table.parameters(row, vaults=context.vaults or None)},
            }
            if returns:
                description["returns"] = {**registry.answer_schema(row)}
            rows.append(description)
        answer: FoundTools = {"success": True, "results": rows, "total": len(matches)}
        if not rows:
            answer["message"] = "no tool fits; other words may help"
        return answer

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
    candidates: list[tuple[ToolSpec, list[tuple[float, set[str]]]]] = []
    for row in rows:
        # A tool's words with their weights, by where they occur.
        name = _split_words(row.name)
        weighted = [
            (_NAME_WEIGHT / (1 + len(name) / 10), name),
            (_SUMMARY_WEIGHT, _split_words(registry.summarize(row))),
            (1.0, _split_words(registry.describe(row))),
        ]
        candidates.append((row, weighted))
    scores = [0.0] * len(candidates)
    for word in _split_words(query):
        synonyms = {word, *_SYNONYMS.get(word, ())}
        shares = [_word_weight(synonyms, weighted) for _, weighted in candidates]
        matching = sum(share > 0 for share in shares)
        for number, share in enumerate(shares):
            scores[number] += share and share * math.log(1 + len(candidates) / matching)
    order = sorted(range(len(candidates)), key=lambda number: -scores[number])
    return [candidates[number][0] for number in order if scores[number]]


def _word_weight(ways: set[str], places: Iterable[tuple[float, set[str]]]) -> float:
    return sum(
        weight
        for weight, words in places
        if any(
            min(len(one), len(word)) > 2 and (one.startswith(word) or word.startswith(one))
            for word in ways
            for one in words
        )
    )


def _split_words(text: str) -> set[str]:
    return {word.removesuffix("s") for word in _WORD.findall(text.casefold())}


# Its row stands here, since importing a row's class costs 0.1 s, which `knap script` needn't wait for.
_SCRIPT_TOOL: Final = ToolSpec(
    function=bridge.run_script,
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

"""The services that a run uses: strategies, prompts, a model within the run's budget, a retriever and a store."""

import re
import time
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Final, Literal, TypeVar

from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RunUsage, UsageLimits

from knapper.agents import citations, prompting
from knapper.agents.loop import StageAgent, StageReply, StageSpec, TextTask
from knapper.agents.model import usage
from knapper.agents.model.usage import Meter
from knapper.agents.prompting import Prompts
from knapper.agents.runs.model import (
    ANSWERED,
    CheckpointEvent,
    RetrievedContext,
    RunLimits,
    RunNode,
    RunOrder,
    RunRecord,
)
from knapper.agents.runs.store import RunStore
from knapper.codemode.tasks import ModelSpend, RegenerationBudget, Thresholds
from knapper.errors import NotFound, RefusedError, SetupError, StorageError
from knapper.jsontypes import Record
from knapper.tools.context import Context

Share = Literal["work", "answer"]
"""The share of the budget for work on the nodes, and all of it, for the run's own answer."""
CHARS_PER_TOKEN: Final = 3.5
"""A low estimate for the text that models read."""


class OutOfBudget(RefusedError):
    """A limit of the run that is reached."""

    code = "budget_spent"


class Budget:
    """The usage of a run and its limits; for one event loop."""

    def __init__(
        self,
        limits: RunLimits,
        spent: ModelSpend = ModelSpend(),  # noqa: B008 - it is frozen
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin with the usage so far.

        Args:
            limits: The run's limits.
            spent: The earlier usage of a run that is resumed.
            clock: Returns seconds.
        """
        self.limits = limits
        self.spent = spent
        self._reserved = 0
        self._clock = clock
        self._begun = clock()

    def seconds_left(self, share: Share) -> float:
        """Return the seconds that are left of a share, 0 at least."""
        allowed = self.limits.seconds * self._part(share)
        return max(0.0, self._begun + allowed - self._clock())

    def tokens_left(self, share: Share) -> int | None:
        """Return the unreserved tokens that are left of a share; None for no limit."""
        if not self.limits.tokens:
            return None
        allowed = int(self.limits.tokens * self._part(share))
        return max(0, allowed - self.spent.tokens - self._reserved)

    @contextmanager
    def reserve(self, tokens: int, share: Share) -> Generator[None]:
        """Reserve tokens while a request is made, so that parallel nodes don't use the same ones.

        Args:
            tokens: The most that the request may use.
            share: The share of the budget that is used.

        Raises:
            OutOfBudget: The tokens, the cost or the time are used up.
        """
        self.check(tokens, share)
        self._reserved += tokens
        try:
            yield
        finally:
            self._reserved -= tokens

    def check(self, tokens: int, share: Share) -> None:
        """Check that a request is within the budget.

        Raises:
            OutOfBudget: It isn't.
        """
        if self.seconds_left(share) <= 0:
            raise OutOfBudget(f"the time of {self.limits.seconds:g} s is used up", hint="give the run more time")
        tokens_left = self.tokens_left(share)
        if tokens_left is not None and tokens > tokens_left:
            raise OutOfBudget(
                f"the limit of {self.limits.tokens:,} tokens is reached: {self.spent.tokens:,} are used",
                hint="give the run more tokens",
            )
        # The total after the request, by the average price of the tokens so far.
        spent_cents = float(self.spent.cost_usd or 0) * 100
        cents_per_token = spent_cents / self.spent.tokens if self.spent.tokens else 0.0
        cents = spent_cents + cents_per_token * (tokens + self._reserved)
        if self.limits.cents and cents > self.limits.cents * self._part(share):
            raise OutOfBudget(
                f"the limit of {self.limits.cents} cents is reached",
                hint="let the run cost more, or take another model",
            )

    def add(self, spent: ModelSpend) -> None:
        """Add the usage of a request."""
        self.spent += spent

    def _part(self, share: Share) -> float:
        return 1.0 if share == "answer" else 1.0 - self.limits.kept


def estimate_tokens(*texts: str) -> int:
    """Return a high estimate of the tokens of texts."""
    return int(sum(len(text.encode()) for text in texts) / CHARS_PER_TOKEN) + 1


OutputT = TypeVar("OutputT")
ReplyT = TypeVar("ReplyT")


@dataclass(slots=True)
class NodeCost:
    """The cost of one node."""

    spent: ModelSpend = field(default_factory=ModelSpend)


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetedModel:
    """The model of a run, with its budget."""

    model: Model
    name: str
    run: str
    budget: Budget
    prompts: Prompts
    meter: Meter | None = None

    async def ask(
        self,
        stage: StageSpec,
        task: TextTask[OutputT, ReplyT],
        account: NodeCost,
        share: Share = "work",
        *,
        max_tokens: int = 0,
    ) -> StageReply[ReplyT]:
        """Have the model work on a stage within the run's budget.

        Args:
            stage: The stage.
            task: What it is to work on.
            account: Where the cost is added, also where the request fails.
            share: The share of the budget that is used.
            max_tokens: Maximum length of the text; 0 for the stage's.

        Raises:
            OutOfBudget: The budget is used up.
            KnapError: The model can't answer.
        """
        used, agent = RunUsage(), self.open_stage(stage)
        max_tokens = max_tokens or stage.reply_tokens
        task = replace(task, settings=ModelSettings(max_tokens=max_tokens))
        with self.budget.reserve(estimate_tokens(agent.prompt, task.system, task.prompt) + max_tokens, share):
            try:
                return await agent.ask(task, used)
            except usage.MODEL_ERRORS as error:
                raise usage.convert_model_error(error, self.name) from error
            finally:
                self.count(used, account)

    def open_stage(self, stage: StageSpec) -> StageAgent[None]:
        """Return who works on a stage, within the owner's limits for a request.

        Raises:
            RefusedError: One of them is reached already (code ``budget_spent``).
        """
        limits = self.meter.allow(self.run) if self.meter else UsageLimits(request_limit=usage.MAX_REQUESTS)
        prompt = self.prompts.load(stage.prompt).strip()
        return StageAgent(stage=stage, model=self.model, prompt=prompt, settings=None, limits=limits)

    def count(self, used: RunUsage, account: NodeCost) -> None:
        """Add the usage of requests to the node, to the run and to the owner's account."""
        spent = usage.read_usage(used)
        account.spent += spent
        self.budget.add(spent)
        if self.meter:
            self.meter.record(self.run, self.name, spent, usage=used)


AUTO_STRATEGY: Final = "auto"
"""The name with which the model chooses a strategy."""
DEFAULT_STRATEGY: Final = "research"
"""The strategy for when the model names none."""
BUILT_IN_STRATEGIES: Final = ("software", "research", "analysis", "planning")
_STRATEGY_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_SECTION_HEADING: Final = re.compile(r"^##[ \t]+(.+?)[ \t]*$", re.MULTILINE)
_MAX_STRATEGY_CHARS: Final = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy(Record):
    """A strategy for a kind of task."""

    shown = ("name", "summary", "own")
    name: str
    summary: str
    """The kind of task that it fits, in one line."""
    prompt: str
    """How the parts are worked on."""
    skeleton: str = ""
    """Parts that such tasks usually have."""
    own: bool = False
    """Whether it is the person's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategies:
    """The built-in strategies and the person's own."""

    folder: Path | None = None
    """The folder with the person's own, as ``NAME.md``."""

    def load(self, name: str) -> Strategy:
        """Return a strategy.

        Raises:
            NotFound: There is no strategy of that name.
            SetupError: The person's file isn't a valid strategy.
            StorageError: The file can't be read.
        """
        own_file = self.folder / f"{name}.md" if self.folder and _STRATEGY_NAME.fullmatch(name) else None
        if own_file and own_file.is_file():
            return parse_strategy(name, prompting.read_own_file(own_file, "strategy"), own=True)
        if name not in BUILT_IN_STRATEGIES:
            hint = f"there are: {', '.join(self.names())}"
            raise NotFound(f"there is no strategy '{name[:40]}'", hint=hint, code="no_strategy")
        return parse_strategy(
            name, resources.files("knapper.agents.runs").joinpath("strategies", f"{name}.md").read_text("utf-8")
        )

    def names(self) -> list[str]:
        """List the names, the built-in ones first."""
        own_names = (
            sorted(file.stem for file in self.folder.glob("*.md")) if self.folder and self.folder.is_dir() else []
        )
        return [
            *BUILT_IN_STRATEGIES,
            *(name for name in own_names if name not in BUILT_IN_STRATEGIES and _STRATEGY_NAME.fullmatch(name)),
        ]

    def all(self) -> list[Strategy]:
        """Return all strategies that can be loaded."""
        usable: list[Strategy] = []
        for name in self.names():
            # One broken file of the person must not keep every run from starting.
            with suppress(SetupError, StorageError):
                usable.append(self.load(name))
        return usable


def parse_strategy(name: str, text: str, *, own: bool = False) -> Strategy:
    """Parse a strategy's file: a title, a line about the tasks that it fits, ``## How to work``, ``## Skeleton``.

    Raises:
        SetupError: It is empty or too long.
    """
    if not text.strip() or len(text) > _MAX_STRATEGY_CHARS:
        raise SetupError(
            f"the strategy '{name}' has {len(text.strip())} characters",
            hint=f"give it at least a line, and at most {_MAX_STRATEGY_CHARS:,} characters",
            code="strategy",
        )
    head, *sections = _SECTION_HEADING.split(text)
    parts = {title.casefold(): body.strip() for title, body in zip(sections[::2], sections[1::2], strict=True)}
    lines = [line.strip() for line in head.splitlines() if line.strip() and not line.startswith("#")]
    skeleton = parts.pop("skeleton", "")
    prompt = parts.get("how to work") or "\n\n".join(parts.values()) or "\n".join(lines[1:])
    return Strategy(name=name, summary=lines[0] if lines else name, prompt=prompt, skeleton=skeleton, own=own)


MAX_CONTEXT_CHARS: Final = 24_000
"""Characters of the retrieved context in the prompt for a node's answer."""
_MAX_EARLIER_CHARS: Final = 12_000
"""Characters of the answers of earlier nodes in the prompt."""
_MIN_PART_CHARS: Final = 300
"""Characters of each part's answer that are shown, even where that exceeds the limit."""


def write_judge_prompt(node: RunNode, known: Sequence[Strategy]) -> str:
    """Return the prompt that asks whether a task is split."""
    summaries = "\n".join(f"- {one.name}: {one.summary}" for one in known)
    return f"The task:\n\n{node.task}\n\nStrategies:\n\n{summaries}"


def write_plan_prompt(node: RunNode, strategy: Strategy, max_parts: int) -> str:
    """Return the prompt that asks for the parts of a task."""
    parts = [f"The task:\n\n{node.task}", f"Give 2 to {max_parts} parts."]
    if strategy.skeleton:
        parts.append(
            f"Parts that such tasks often have; take what fits, and nothing for its own sake:\n\n{strategy.skeleton}"
        )
    return "\n\n".join(parts)


def write_answer_prompt(node: RunNode, run_task: str, strategy: Strategy, earlier: Sequence[RunNode], mark: str) -> str:
    """Return the prompt that asks for a node's answer.

    Args:
        node: The node, with its retrieved context.
        run_task: The run's task, which is included where the node is only a part of it.
        strategy: How such tasks are worked on.
        earlier: The nodes that it depends on, with or without an answer.
        mark: The blocks' mark.
    """
    parts = [f"The task:\n\n{node.task}"]
    if node.task != run_task:
        parts.append(f"It is a part of this, which others do the rest of:\n\n{run_task}")
    if strategy.prompt:
        parts.append(f"How such tasks are done:\n\n{strategy.prompt}")
    answered = [one for one in earlier if one.state in ANSWERED]
    chars_each = _MAX_EARLIER_CHARS // max(1, len(answered))
    parts.extend([_part_block(one, mark, chars_each) for one in answered])
    found = node.found
    if found is None or not found.context.strip():
        parts.append("Nothing was found in the notes.")
    else:
        block = prompting.enclose("notes", prompting.escape(found.context[:MAX_CONTEXT_CHARS]), mark)
        sources: list[str] = []
        for one in found.sources:
            vault, path = prompting.escape_plain(one.vault), prompting.escape_plain(one.path)
            sources.append(citations.format_citation(path, vault, one.first, one.last))
        source_block = prompting.enclose("sources", "\n".join(sources), mark)
        parts.append(f"What was found in the notes:\n\n{block}\n\nThe sources, which you can cite:\n\n{source_block}")
    if node.asking and node.asking.answer:
        parts.append(f"The person was asked: {node.asking.question}\n\nThey answered: {node.asking.answer}")
    return "\n\n".join(parts)


def write_join_prompt(node: RunNode, children: Sequence[RunNode], strategy: Strategy, mark: str, max_chars: int) -> str:
    """Return the prompt that asks for an answer joined from all parts.

    Args:
        node: The node to answer.
        children: All its children, with or without an answer.
        strategy: How such tasks are worked on.
        mark: The blocks' mark.
        max_chars: Characters of all parts' answers together.
    """
    parts = [f"The task:\n\n{node.task}"]
    if strategy.prompt:
        parts.append(f"How such tasks are done:\n\n{strategy.prompt}")
    answered = [one for one in children if one.state in ANSWERED]
    chars_each = max(_MIN_PART_CHARS, max_chars // max(1, len(answered)))
    parts.extend(_part_block(one, mark, chars_each) for one in answered)
    missing = [f"- {one.name}: {one.reason}" for one in children if one.state not in ANSWERED]
    if missing:
        parts.append("Parts that are missing:\n\n" + prompting.escape_plain("\n".join(missing)))
    return "\n\n".join(parts)


def _part_block(node: RunNode, mark: str, max_chars: int) -> str:
    cut = "" if len(node.answer) <= max_chars else f"\n[cut: {len(node.answer) - max_chars} more characters]"
    block = prompting.enclose("part", prompting.escape_plain(node.answer[:max_chars]) + cut, mark)
    return f"The part '{prompting.escape_plain(node.name)}':\n\n{block}"


AskPerson = Callable[[CheckpointEvent], Awaitable[str]]
"""Asks a person and waits for the answer; an empty one means that nobody answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalRequest:
    """A request for the notes that a node needs."""

    node: RunNode
    order: RunOrder
    context: Context
    """The vault, as the agent sees it, with the run's id."""
    model: BudgetedModel
    account: NodeCost
    """Where the cost is added."""
    regenerations: RegenerationBudget
    """The number of scripts that the run may still regenerate."""
    attended: bool = False
    """Whether somebody is there to answer questions."""
    person_answer: str = ""
    """The person's answer to the question about the node."""
    checkpoint: str = ""
    """The id of that question."""


NodeRetriever = Callable[[RetrievalRequest], Awaitable[RetrievedContext]]
"""Retrieves what a node needs; where nothing is found, the context is empty. Raises as a model's stage does."""
OpenContext = Callable[[str, tuple[str, ...]], Context]
"""Opens a vault by a run's id, and the names of the clients for whom the agent acts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEngine:
    """The services for carrying out the runs of one vault."""

    model: Model
    name: str
    """The model's name, as the person wrote it."""
    store: RunStore
    open_context: OpenContext
    """Opens the vault as the agent sees it in a run; cheap."""
    retrieve: NodeRetriever
    """Retrieves notes by Code Mode or search, as the order says."""
    thresholds: Thresholds = field(default_factory=Thresholds)
    """What counts as a good enough retrieval, and how often scripts are written anew."""
    strategies: Strategies = field(default_factory=Strategies)
    prompts: Prompts = field(default_factory=Prompts)
    meter: Meter | None = None
    ask_person: AskPerson | None = None
    """None where nobody is there."""
    context_tokens: int = 24_000
    """Tokens that the model can read at once."""
    clock: Callable[[], float] = time.monotonic
    poll_s: float = 1.0
    """Seconds between two checks whether the run's cancellation was requested."""
    is_shutting_down: Callable[[], bool] = lambda: False
    """Whether the program is ending, in which case a run counts as interrupted and not as cancelled."""

    def context(self, run: RunRecord) -> Context:
        """Return the vault as a run sees it: what both the agent and the run's client may see."""
        return self.open_context(run.id, (run.order.client,))

    def open_budget(self, run: RunRecord, spent: ModelSpend) -> Budget:
        """Return the budget of a run that has spent so much already.

        Its tokens are no more than the owner's other limits leave, so that a share of these is reserved.
        """
        limits = run.order.limits
        # Where nothing is left, the first request will raise the error, with its hint.
        with suppress(RefusedError):
            tokens_left = self.meter.allow(run.id).total_tokens_limit if self.meter else None
            if self.meter and tokens_left is not None:
                allowed = tokens_left + self.meter.of_run(run.id).tokens
                limits = replace(limits, tokens=min(limits.tokens or allowed, allowed))
        return Budget(limits, spent, self.clock)


class ActiveRun:
    """A run in its current state, with its strategy, which the model may choose on the way."""

    def __init__(self, engine: RunEngine, run: RunRecord) -> None:
        """Begin with the run's stored state."""
        self.run = run
        self.engine = engine
        self._strategy: Strategy | None = None

    @property
    def chooses_strategy(self) -> bool:
        """Return whether the model still has to choose a strategy."""
        return self.run.order.strategy == AUTO_STRATEGY

    @property
    def strategy(self) -> Strategy:
        """Return the run's strategy; the default one until the model has chosen."""
        name = DEFAULT_STRATEGY if self.chooses_strategy else self.run.order.strategy
        if self._strategy is None or self._strategy.name != name:
            self._strategy = self.engine.strategies.load(name)
        return self._strategy

    def choose(self, name: str) -> None:
        """Set the strategy that the model named, or the default where there is no such strategy."""
        chosen = name if name in {one.name for one in self.engine.strategies.all()} else DEFAULT_STRATEGY
        self.run = self.engine.store.save(replace(self.run, order=replace(self.run.order, strategy=chosen)))

"""Plans of a run: whether a task is split, its checked and ordered parts, and what is reused of earlier runs."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from typing import Final

from pydantic import BaseModel, Field, TypeAdapter

from knapper.agents.loop import Reading, StageSpec
from knapper.agents.runs.engine import RunEngine, Strategy
from knapper.agents.runs.model import ALL_NOTES, ANSWERED, ENDED, ROOT, Impact, RunNode, RunOrder, SourceRef
from knapper.codemode import authoring
from knapper.errors import BadInput, KnapError
from knapper.tools import answers
from knapper.tools.context import Context

MAX_IMPACT_DEPTH: Final = 1
"""Greatest depth of a node on which much can depend."""
_NEEDED_SHARE: Final = 0.5
"""The share of its siblings that must need a node."""
_MIN_SIBLINGS: Final = 2
"""With fewer siblings the share says nothing."""

Dependencies = Mapping[str, Sequence[str]]
"""The parts that each part waits for."""


def check_dependencies(needs: Dependencies) -> None:
    """Check that the parts of a plan don't wait for each other, for themselves or for unknown parts.

    Raises:
        BadInput: They do (codes ``plan_cycle``, ``plan_unknown``).
    """
    for one, others in needs.items():
        if unknown := [other for other in others if other not in needs]:
            raise BadInput(f"'{one}' depends on '{unknown[0]}', which isn't a part", code="plan_unknown")
    try:
        TopologicalSorter({one: set(others) for one, others in needs.items()}).prepare()
    except CycleError as error:
        cycle = " -> ".join(str(one) for one in error.args[1])
        raise BadInput(f"parts wait for each other: {cycle}", hint="drop one of these", code="plan_cycle") from None


def list_ready_nodes(nodes: Sequence[RunNode]) -> list[RunNode]:
    """List the nodes that can start: their soft dependencies have ended, and their hard ones are answered."""
    states = {node.id: node.state for node in nodes}
    return [
        node
        for node in nodes
        if node.state == "pending"
        and all(states[other] in ANSWERED for other in node.hard)
        and all(states[other] in ENDED for other in node.soft)
    ]


def list_blocked_nodes(nodes: Sequence[RunNode]) -> list[tuple[RunNode, str]]:
    """List the nodes that can't be started any more, with the reason: a node that they need has no answer."""
    by_id = {node.id: node for node in nodes}
    unreachable: list[tuple[RunNode, str]] = []
    for node in nodes:
        if node.state != "pending":
            continue
        failed_needs = [by_id[other] for other in node.hard if by_id[other].state in ENDED - ANSWERED]
        if failed_needs:
            unreachable.append((node, f"it needs '{failed_needs[0].name}', which has no answer"))
    return unreachable


def is_high_impact(part: str, impact: Impact, depth: int, needs: Dependencies) -> bool:
    """Return whether much depends on a part.

    Args:
        part: The part's id.
        impact: Its impact according to the plan.
        depth: Its depth.
        needs: The hard dependencies of all parts of the plan.
    """
    if depth > MAX_IMPACT_DEPTH:
        return False
    others = [one for one in needs if one != part]
    needing = [one for one in others if part in _all_dependencies(one, needs)]
    return impact != "none" or (len(others) >= _MIN_SIBLINGS and len(needing) >= _NEEDED_SHARE * len(others))


def _all_dependencies(one: str, needs: Dependencies) -> set[str]:
    """Return all parts that a part needs, directly or through others."""
    reached: set[str] = set()
    pending = [one]
    while pending:
        for other in needs.get(pending.pop(), ()):
            if other not in reached:
                reached.add(other)
                pending.append(other)
    return reached


MAX_PARTS: Final = 8
"""Parts of one plan."""
MIN_PARTS: Final = 2
JUDGE: Final = StageSpec(prompt="run-judge", corrections=1, reply_tokens=2_000)
"""Decides whether a task is split; its length is enough for a short reply with some reasoning before it."""
PLAN: Final = StageSpec(prompt="run-plan", corrections=1, reply_tokens=4_500)
"""Splits a task into parts."""
_MAX_TITLE: Final = 120
_MAX_TASK: Final = 8_000


class Judgement(BaseModel):
    """A decision whether a task is split."""

    split: bool
    why: str = ""
    strategy: str = ""


class PlanPart(BaseModel):
    """One part of a task."""

    id: str = Field(description="A short name that other parts refer to, such as a1.")
    title: str = Field(description="A few words.")
    task: str = Field(description="What is to be answered, complete in itself.")
    needs: list[str] = Field(default_factory=list, description="Ids of parts without whose answers it can't be done.")
    uses: list[str] = Field(default_factory=list, description="Ids of parts whose answers would help.")
    impact: Impact = "none"
    large: bool = False


class TaskPlan(BaseModel):
    """The parts of a task."""

    parts: list[PlanPart]


def check_plan(plan: TaskPlan, max_parts: int) -> Reading[TaskPlan]:
    """Read a plan, and check that it can be carried out.

    Raises:
        BadInput: It has too few or too many parts, duplicate ids, an empty part, or impossible dependencies.
    """
    count = len(plan.parts)
    if not MIN_PARTS <= count <= max_parts:
        raise BadInput(f"the plan has {count} parts", hint=f"give {MIN_PARTS} to {max_parts}", code="plan_size")
    ids = [part.id for part in plan.parts]
    if len(set(ids)) < count or not all(ids):
        raise BadInput("two parts have the same id, or one has none", hint="give each its own", code="plan_ids")
    if empty := next((part for part in plan.parts if not part.task.strip()), None):
        raise BadInput(f"the part '{empty.id}' has no task", hint="say what is to be answered", code="plan_empty")
    check_dependencies({part.id: [*part.needs, *part.uses] for part in plan.parts})
    return Reading(reply=plan)


def make_child_nodes(node: RunNode, plan: TaskPlan) -> tuple[RunNode, list[RunNode]]:
    """Make a plan's parts the children of a node.

    Returns:
        The node, and its children.
    """
    prefix = "" if node.id == ROOT else f"{node.id}."
    ids = {part.id: f"{prefix}{number}" for number, part in enumerate(plan.parts, 1)}
    needs = {part.id: part.needs for part in plan.parts}
    depth = node.depth + 1
    children = [
        RunNode(
            id=ids[part.id],
            task=part.task.strip()[:_MAX_TASK],
            title=" ".join(part.title.split())[:_MAX_TITLE],
            depth=depth,
            hard=tuple(dict.fromkeys(ids[one] for one in part.needs)),
            soft=tuple(dict.fromkeys(ids[one] for one in part.uses if one not in part.needs)),
            impact=part.impact,
            large=part.large,
            high=is_high_impact(part.id, part.impact, depth, needs),
        )
        for part in plan.parts
    ]
    return replace(node, split=True, children=tuple(ids.values())), children


def list_stale_nodes(context: Context, nodes: Sequence[RunNode]) -> dict[str, list[str]]:
    """List the nodes whose notes have changed, with those notes; `ALL_NOTES` for a node that had found nothing."""
    hashes = _CurrentHashes(context)
    changed_by_node = ((node.id, _changed_paths(hashes, node.sources)) for node in nodes if node.answer)
    return {node_id: notes for node_id, notes in changed_by_node if notes}


def all_notes_source(context: Context, vault: str = "") -> SourceRef:
    """Return a source for all notes of a vault in their current state.

    Args:
        context: The run's vault, as the run sees it.
        vault: The name of another vault; empty for the run's own.
    """
    return SourceRef(vault=vault, path=ALL_NOTES, hash=_CurrentHashes(context).of(vault, ALL_NOTES))


def open_source_vault(context: Context, name: str) -> Context:
    """Open the vault of a source."""
    is_own = not name or name == context.vault
    return context if is_own else context.scripting.open_vault(name)


def fingerprint_notes(context: Context) -> str:
    """Return a hash of the names and hashes of all notes that the client sees, as the index knows them.

    As long as it stays the same, a search that found nothing will find nothing. A concurrent update of the index is
    waited for: an index that lacks a note would report that nothing has changed.

    Raises:
        ConflictError: Another process has been writing the index for a minute.
    """
    freshness = context.freshen(meaning=False)
    if freshness.stale or freshness.incomplete or freshness.unchecked:
        context.index.catch_up()
    visible = context.view.visible
    notes = [
        [path, note_hash]
        for path, target, note_hash in context.index.store.hashes()
        if visible(path) and visible(target)
    ]
    return f"sha256:{hashlib.sha256(json.dumps(notes).encode()).hexdigest()}"


class _CurrentHashes:
    """The current hashes of notes, each looked up once."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._known: dict[tuple[str, str], str] = {}

    def of(self, vault: str, path: str) -> str:
        if (vault, path) not in self._known:
            self._known[vault, path] = self._current_hash(vault, path)
        return self._known[vault, path]

    def _current_hash(self, vault: str, path: str) -> str:
        try:
            context = open_source_vault(self._context, vault)
            return fingerprint_notes(context) if path == ALL_NOTES else context.view.read(path).hash
        except KnapError:
            return ""


def _changed_paths(hashes: _CurrentHashes, sources: Iterable[SourceRef]) -> list[str]:
    read_versions = dict.fromkeys((source.vault, source.path, source.hash) for source in sources)
    return [
        f"{vault}:{path}" if vault else path
        for vault, path, hash_then in read_versions
        if hashes.of(vault, path) != hash_then
    ]


PROMPT_VERSION: Final = 2
"""The version of how prompts are composed; a new one invalidates the cache."""
_SOURCES_ADAPTER: Final = TypeAdapter(tuple[SourceRef, ...])
_NODE_ADAPTER: Final = TypeAdapter(RunNode)


@dataclass(frozen=True, slots=True)
class CachedPlan:
    """A decision about a task: whether it is split, and into which parts."""

    judgement: Judgement
    plan: TaskPlan | None


_PLAN_ADAPTER: Final = TypeAdapter(CachedPlan)


class RunCache:
    """The cache of answers and plans, as one run uses it."""

    def __init__(self, engine: RunEngine, order: RunOrder, context: Context) -> None:
        """Prepare the parts that all keys of the run share.

        Args:
            engine: The model and the prompts.
            order: The run's options.
            context: The vault, as the agent sees it.
        """
        self._store = engine.store
        self._order = order
        self.context = context
        texts = [engine.prompts.load(name).strip() for name in ("run-judge", "run-plan", "run-answer", "run-join")]
        texts += authoring.prompt_texts() if order.code_mode else []
        # Policies are part of each key: an answer from notes that another client may read must not be found.
        self._common = [
            PROMPT_VERSION,
            engine.name,
            _digest([*texts, engine.prompts.load("repair")]),
            context.vault,
            context.view.policy.fingerprint,
            order.code_mode,
            order.profile,
            [[name, context.scripting.open_vault(name).view.policy.fingerprint] for name in order.also],
            *_outside_access(order, context),
        ]

    def inputs(self, node: RunNode, strategy: Strategy, around: Iterable[RunNode]) -> str:
        """Return a digest of everything but the notes that a node's answer depends on.

        Args:
            node: The node.
            strategy: The strategy for it.
            around: The nodes whose answers it uses: its children, or its siblings.
        """
        built_on = [[one.name, one.answer if one.state in ANSWERED else None, one.reason] for one in around]
        person_answer = node.asking.answer if node.asking else ""
        run_task = self._order.task if node.task != self._order.task else ""
        ways = [strategy.name, strategy.prompt]
        return _digest(["answer", self._common, node.task, run_task, ways, bool(node.split), built_on, person_answer])

    def answer(self, inputs: str) -> RunNode | None:
        """Return a node that was answered from the same inputs, provided that none of its notes has changed."""
        if self._order.fresh:
            return None
        for sources, data in self._store.recall(inputs):
            if self.is_current(_SOURCES_ADAPTER.validate_json(sources)):
                return _NODE_ADAPTER.validate_json(data)
        return None

    def keep(self, node: RunNode) -> None:
        """Store an answered node."""
        bare = replace(node, cached=False)
        self._store.remember(
            node.inputs, _SOURCES_ADAPTER.dump_json(node.sources).decode(), _NODE_ADAPTER.dump_json(bare).decode()
        )

    def planned(self, task: str, ways: Iterable[str]) -> CachedPlan | None:
        """Return the stored decision about a task; None for none."""
        if self._order.fresh:
            return None
        entries = self._store.recall(self._plan_key(task, ways))
        return _PLAN_ADAPTER.validate_json(entries[0][1]) if entries else None

    def keep_plan(self, task: str, ways: Iterable[str], planned: CachedPlan) -> None:
        """Store the decision about a task."""
        self._store.remember(self._plan_key(task, ways), "[]", _PLAN_ADAPTER.dump_json(planned).decode())

    def is_current(self, sources: Iterable[SourceRef]) -> bool:
        """Return whether notes are unchanged; a note that was deleted or hidden since isn't."""
        return not self.changed(sources)

    def changed(self, sources: Iterable[SourceRef]) -> list[str]:
        """List the notes that have changed since, with the vault's name in front for those of other vaults."""
        return _changed_paths(_CurrentHashes(self.context), sources)

    def mark_read(self, sources: Iterable[SourceRef]) -> None:
        """Mark notes as read by the run, which matters for those that others wrote."""
        by_vault: dict[str, list[str]] = {}
        # An answer from the cache carries text of its notes as well, so it taints the run like reading them.
        for source in sources:
            by_vault.setdefault(source.vault, []).append(source.path)
        for vault, paths in by_vault.items():
            answers.mark_shown_paths(open_source_vault(self.context, vault), paths)

    def _plan_key(self, task: str, ways: Iterable[str]) -> str:
        return _digest(["plan", self._common, task, list(ways)])


def _outside_access(order: RunOrder, context: Context) -> list[list[str]]:
    """Return what scripts may read besides the vaults, so that clients with other rights don't share answers."""
    if order.profile == "strict":
        return []
    scripting = context.scripting
    return [[str(root) for root in scripting.roots], [*scripting.hosts]]


def _digest(data: object) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()

"""Reuse answers and plans whose inputs and source notes haven't changed."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pydantic import TypeAdapter

from knapper.agents.runs.engine import RunEngine, Strategy
from knapper.agents.runs.model import ALL_NOTES, ANSWERED, RunNode, RunOrder, SourceRef
from knapper.agents.runs.planning import Judgement, TaskPlan
from knapper.codemode import authoring
from knapper.errors import KnapError
from knapper.tools import answers, notes
from knapper.tools.context import Context


def list_changed_notes(context: Context, sources: Iterable[SourceRef]) -> list[str]:
    """List the notes that have changed, with the vault's name in front for those of other vaults.

    Args:
        context: The run's vault, as the run sees it; a note that was deleted or hidden since counts as changed.
        sources: The notes, with their hashes at the time of reading.
    """
    return _changed_paths(_CurrentHashes(context), sources)


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
            return notes.fingerprint_notes(context) if path == ALL_NOTES else context.view.read(path).hash
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
        texts = [engine.run_prompts.load(name) for name in ("judge", "plan", "answer", "join")]
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
        """List the notes that have changed, with the vault's name in front for those of other vaults."""
        return list_changed_notes(self.context, sources)

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

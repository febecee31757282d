"""Retrieve notes for nodes, ask a person where little is found, and keep answers until their notes change."""

import asyncio
import contextlib
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Final

from pydantic import TypeAdapter

from knapper.agents import loop, prompting
from knapper.agents.loop import StageSpec, TextTask
from knapper.agents.runs import model
from knapper.agents.runs.engine import BudgetedModel, NodeCost, RetrievalRequest, RunEngine, Strategy
from knapper.agents.runs.model import (
    ALL_NOTES,
    ANSWERED,
    GO_ON,
    SKIP,
    CheckpointEvent,
    NodeQuestion,
    RetrievedContext,
    RunNode,
    RunOrder,
    SourceRef,
)
from knapper.agents.runs.planning import CachedPlan
from knapper.agents.runs.store import RunTree
from knapper.codemode import authoring
from knapper.codemode.checkpoints import CheckpointAnswer, CheckpointChoice, CheckpointStore
from knapper.codemode.retrieval import NOBODY_TO_ASK, Retriever
from knapper.codemode.tasks import (
    AskModel,
    Prompt,
    RegenerationBudget,
    Reply,
    Retrieval,
    RetrievalOptions,
    RetrievalTask,
    Thresholds,
)
from knapper.errors import ConflictError, KnapError, RefusedError
from knapper.tools import answers
from knapper.tools.context import CancelSignal, Context
from knapper.vault import access

SCRIPT: Final = StageSpec(prompt="", reply_tokens=4_000)
"""Writes a script that finds the notes for a node."""
_SEPARATORS: Final = re.compile(r"[,\n]")


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultRetriever:
    """The retrieval of notes for a node."""

    checkpoints: CheckpointStore | None = None
    """The store of questions to a person; None where nobody ever answers."""
    timeout_s: float | None = None
    """Time limit of one script; None for the owner's setting."""
    thresholds: Thresholds = field(default_factory=Thresholds)
    """What is good enough."""

    async def __call__(self, need: RetrievalRequest) -> RetrievedContext:
        """Retrieve the notes for a node.

        Raises:
            RefusedError: The person chose to skip the node.
            KnapError: The vault can't be searched, or the state can't be stored.
        """
        event_loop = asyncio.get_running_loop()
        cancelling = CancelSignal()
        request = replace(need, context=replace(need.context, on_cancel=cancelling.subscribe))

        async def ask_model(prompt: Prompt) -> Reply:
            mark = prompting.new_mark()
            blocks = [prompting.enclose(one.source, prompting.escape(one.value), mark) for one in prompt.data]
            before = need.account.spent
            task = TextTask(
                system=prompt.instructions,
                prompt="\n\n".join([prompt.request, *blocks]),
                output=str,
                read=loop.accept,
            )
            written = await need.model.ask(SCRIPT, task, need.account)
            # The usage is for the script's trace only; the run's account already contains it.
            return Reply(text=written.reply, usage=need.account.spent - before)

        # Called in the retrieval's thread: the model belongs to the event loop, so the request is handed over to it.
        def ask(prompt: Prompt) -> Reply:
            if cancelling.is_cancelled:
                raise RefusedError("the run doesn't wait for this any more", code="budget_spent")
            return asyncio.run_coroutine_threadsafe(ask_model(prompt), event_loop).result()

        try:
            return await asyncio.to_thread(self._find, request, ask)
        # Also for a cancelled run: this stops the script in the thread, which can't be cancelled itself.
        finally:
            cancelling.cancel()

    def _find(self, need: RetrievalRequest, ask: AskModel) -> RetrievedContext:
        checkpoints = self.checkpoints
        if checkpoints is not None and not need.attended:
            # Nobody is there to be asked, but somebody may have answered before.
            checkpoint = checkpoints.find(need.model.run, need.node.id, need.node.task)
            checkpoints = checkpoints if checkpoint and checkpoint.answer else None
        if need.person_answer and checkpoints is not None and need.checkpoint:
            # Another surface was quicker, and its answer counts.
            with contextlib.suppress(ConflictError):
                _ = checkpoints.answer(
                    need.checkpoint, read_answer(need.context, need.person_answer), access.default_grants("cli")
                )
        options = RetrievalOptions(
            code_mode=need.order.code_mode,
            profile=need.order.profile,
            timeout_s=self.timeout_s,
            vaults=(need.context.vault, *need.order.also) if need.order.also else (),
            thresholds=self.thresholds,
        )
        with contextlib.closing(
            Retriever(
                need.context,
                ask=ask,
                options=options,
                regenerations=need.regenerations,
                checkpoints=checkpoints,
                run=need.model.run,
            )
        ) as retriever:
            node = need.node
            retrieval = retriever.retrieve(
                RetrievalTask(
                    text=node.task,
                    node=node.id,
                    depth=node.depth,
                    marks=() if node.impact == "none" else (node.impact,),
                    needed_share=1.0 if node.high else 0.0,
                )
            )
        if retrieval.state == "stopped":
            raise RefusedError("the person skipped it", code="skipped")
        return _retrieved_context(retrieval, need.context.vault)


async def wait_for_answer(
    checkpoints: CheckpointStore, point: CheckpointEvent, *, look_s: float = 1.0, most_s: float = 0
) -> str:
    """Wait until a question is answered on any surface, and return the answer in words.

    Args:
        checkpoints: The store in which the answer will appear.
        point: The question; where it can't be answered elsewhere, an empty text is returned at once.
        look_s: Seconds between two checks.
        most_s: Seconds to wait before an empty text is returned; 0 for no limit.
    """
    if not point.id:
        return ""
    try:
        async with asyncio.timeout(most_s or None):
            # Polled, since the answer may be given in another process.
            while not (answer := (await asyncio.to_thread(checkpoints.get, point.id)).answer):  # noqa: ASYNC110 - see above
                await asyncio.sleep(look_s)
    except TimeoutError:
        return ""
    # An answer in the words in which it would have been typed.
    words: dict[CheckpointChoice, str] = {"continue": GO_ON, "stop": SKIP}
    return words.get(answer.choice) or answer.text.strip() or ", ".join(answer.notes)


def read_answer(context: Context, word: str) -> CheckpointAnswer:
    """Read a person's answer: one of the fixed answers, notes by their paths, or a text of their own.

    Args:
        context: The vault in which notes are looked up.
        word: The answer as it was typed.
    """
    choices: dict[str, CheckpointChoice] = {GO_ON: "continue", SKIP: "stop"}
    if word in choices:
        return CheckpointAnswer(choice=choices[word])
    named = [one.strip().removeprefix("[[").removesuffix("]]") for one in _SEPARATORS.split(word)]
    paths: list[str] = []
    for one in filter(None, named):
        try:
            paths.append(context.view.read(context.view.locate(one)).path)
        except KnapError:
            return CheckpointAnswer(choice="use", text=word)
    return CheckpointAnswer(choice="use", notes=tuple(paths), text="" if paths else word)


def _retrieved_context(retrieval: Retrieval, own_vault: str) -> RetrievedContext:
    sources = [
        SourceRef(
            vault=_other_vault(one.vault, own_vault),
            path=one.path,
            hash=one.hash,
            first=one.first_line,
            last=one.last_line,
        )
        for one in retrieval.citations
    ]
    reads = [
        SourceRef(vault=_other_vault(one.vault, own_vault), path=one.path, hash=one.hash) for one in retrieval.reads
    ]
    tiers = {"script": "", "direct": "direct"}
    asks = retrieval.state == "waiting" or NOBODY_TO_ASK in retrieval.notes
    attempts = tuple(one.as_dict() for one in retrieval.attempts)
    parts = retrieval.parts.parts()
    return RetrievedContext(
        context=retrieval.context,
        sources=tuple(dict.fromkeys(sources)),
        reads=tuple(dict.fromkeys(reads)),
        others=tuple(name for name in retrieval.others if _other_vault(name, own_vault)),
        score=retrieval.score,
        parts={name: float(str(value)) for name, value in parts.items()},
        confidence=retrieval.confidence or 0.0,
        tier="C" if asks else tiers.get(retrieval.tier, retrieval.tier),
        script=retrieval.script,
        attempts=attempts,
        notes=retrieval.notes,
        checkpoint=retrieval.checkpoint,
        used_tools=retrieval.used_tools,
        used_outside=retrieval.used_outside,
        limited=retrieval.broken_off,
    )


def _other_vault(vault: str, own_vault: str) -> str:
    return "" if vault == own_vault else vault


def list_stale_nodes(context: Context, nodes: Sequence[RunNode]) -> dict[str, list[str]]:
    """List the nodes whose notes have changed, with those notes; `ALL_NOTES` for a node that had found nothing."""
    find_hash = _make_hash_finder(context)
    changed_by_node = ((node.id, _changed_paths(find_hash, node.sources)) for node in nodes if node.answer)
    return {node_id: notes for node_id, notes in changed_by_node if notes}


def all_notes_source(context: Context, vault: str = "") -> SourceRef:
    """Return a source for all notes of a vault in their current state.

    Args:
        context: The run's vault, as the run sees it.
        vault: The name of another vault; empty for the run's own.
    """
    return SourceRef(vault=vault, path=ALL_NOTES, hash=_make_hash_finder(context)(vault, ALL_NOTES))


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


def _make_hash_finder(context: Context) -> Callable[[str, str], str]:
    """Return what finds the current hash of a note by vault and path, looked up once; empty where there is no note."""

    @cache
    def find_hash(vault: str, path: str) -> str:
        try:
            opened = open_source_vault(context, vault)
            return fingerprint_notes(opened) if path == ALL_NOTES else opened.view.read(path).hash
        except KnapError:
            return ""

    return find_hash


def _changed_paths(find_hash: Callable[[str, str], str], sources: Iterable[SourceRef]) -> list[str]:
    read_versions = dict.fromkeys((source.vault, source.path, source.hash) for source in sources)
    return [
        f"{vault}:{path}" if vault else path
        for vault, path, hash_then in read_versions
        if find_hash(vault, path) != hash_then
    ]


PROMPT_VERSION: Final = 2
"""The version of how prompts are composed; a new one invalidates the cache."""
_SOURCES_ADAPTER: Final = TypeAdapter(tuple[SourceRef, ...])
_NODE_ADAPTER: Final = TypeAdapter(RunNode)


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
        # So that clients with other rights to what lies besides the vaults don't share answers.
        roots, hosts = context.scripting.roots, context.scripting.hosts
        outside = [] if order.profile == "strict" else [[str(root) for root in roots], [*hosts]]
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
            *outside,
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
        return not _changed_paths(_make_hash_finder(self.context), sources)

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


def _digest(data: object) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


QUESTION_OPTIONS: Final = (GO_ON, SKIP)
_QUESTION: Final = "Go on with that, skip it, or say where to look?"
_SKIPPED_BY_PERSON: Final = "the person skipped it"
_UNATTENDED: Final = "little was found for it, and nobody was there to be asked"


class RunRetrieval:
    """The retrieval for the nodes of one run."""

    def __init__(
        self, engine: RunEngine, order: RunOrder, asker: BudgetedModel, cache: RunCache, used: int = 0
    ) -> None:
        """Prepare for one run.

        Args:
            engine: The retriever, and the way to ask the person.
            order: The run's options.
            asker: The run's model.
            cache: Used to check whether notes have changed.
            used: Number of scripts that the run had regenerated before.
        """
        self._engine = engine
        self._order = order
        self._asker = asker
        self._cache = cache
        self._context = cache.context
        self._known: tuple[int, SourceRef] | None = None
        self._regenerations = RegenerationBudget(engine.thresholds.regens_per_run, used)

    async def find(self, tree: RunTree, node: RunNode) -> None:
        """Retrieve the notes for a node; an earlier result of this run is used where its notes haven't changed.

        Raises:
            RefusedError: The person chose to skip the node.
            KnapError: The retrieval fails, or the budget is used up.
        """
        if node.asking and node.asking.answer == SKIP:
            raise RefusedError(_SKIPPED_BY_PERSON, code="skipped")
        if node.found is not None and self._cache.is_current(node.found.all_sources):
            await self._settle(tree, node)
            return
        retrieved = await self._ask(tree, tree.change(node.id, "retrieving", state="running"))
        await self._settle(tree, tree.change(node.id, found=retrieved))
        tree.tell_usage()

    async def _settle(self, tree: RunTree, node: RunNode) -> None:
        """Ask the person about a node for which little was found; where nobody is there, continue and note that."""
        if node.found is None or node.found.tier != "C" or (node.asking and node.asking.settled):
            return
        question = f"Little was found in the notes for '{node.name}', on which much depends. {_QUESTION}"
        asking = node.asking or NodeQuestion(question=question, options=QUESTION_OPTIONS)
        if not asking.answer and self._engine.ask_person is not None:
            point = model.make_checkpoint_event(node, asking)
            node = tree.change(node.id, "asking", asking=asking)
            tree.tell(point)
            asking = replace(asking, answer=(await self._engine.ask_person(point)).strip())
        asking = replace(asking, unattended=not asking.answer)
        node = tree.change(node.id, asking=asking)
        tree.tell(model.make_checkpoint_event(node, asking))
        if asking.answer == SKIP:
            raise RefusedError(_SKIPPED_BY_PERSON, code="skipped")
        if asking.answer:
            retrieved = await self._ask(tree, node, asking.answer)
            if retrieved.context.strip():
                node = tree.change(node.id, found=replace(retrieved, tier="C"))
        notes = (*node.notes, _UNATTENDED) if asking.unattended else node.notes
        _ = tree.change(node.id, asking=replace(asking, settled=True), notes=notes)

    def _all_notes(self) -> SourceRef:
        """Return all notes with their current hash, which is computed once for each generation of the index."""
        _ = self._context.freshen(meaning=False)
        generation = self._context.index.store.generation()
        if self._known is None or self._known[0] != generation:
            self._known = (generation, all_notes_source(self._context))
        return self._known[1]

    async def _ask(self, tree: RunTree, node: RunNode, word: str = "") -> RetrievedContext:
        """Retrieve a node's notes, with the person's answer where there is one, and count the cost.

        A result that found nothing depends on all notes, since a new one may contain what was missing, and so does one
        whose script called tools, since it isn't recorded which notes these have read.
        """
        account, before = NodeCost(), node.spent
        # Taken before the search: a note that is added meanwhile must make the result stale.
        base = await asyncio.to_thread(self._all_notes)
        need = RetrievalRequest(
            node=node,
            order=self._order,
            context=self._context,
            model=self._asker,
            account=account,
            regenerations=self._regenerations,
            attended=self._engine.ask_person is not None,
            person_answer=word,
            checkpoint=node.found.checkpoint if node.found and word else "",
        )
        try:
            retrieved = await self._engine.retrieve(need)
        finally:
            _ = tree.change(node.id, spent=before + account.spent)
        if not (retrieved.is_empty or retrieved.used_tools):
            return retrieved
        others = [await asyncio.to_thread(all_notes_source, self._context, name) for name in retrieved.others]
        return replace(retrieved, reads=(*retrieved.reads, base, *others))


def count_regenerated(nodes: Iterable[RunNode]) -> int:
    """Count the regenerated scripts in the nodes' attempts."""
    retrievals = (node.found for node in nodes)
    return sum(attempt.get("step") == "again" for one in retrievals if one for attempt in one.attempts)

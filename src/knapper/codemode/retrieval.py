"""Retrieve context for a task: have a script written, run and score it, and fall back to direct search or a person."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from knapper.codemode import authoring, evidence, scoring
from knapper.codemode.authoring import ScriptAuthor, ScriptDraft
from knapper.codemode.bridge import MAIN_VAULT, Bridge, NoteRead, RecordingHost, script_inputs
from knapper.codemode.checkpoints import Checkpoint, CheckpointAnswer, CheckpointStore
from knapper.codemode.evidence import Citation, ReportedCitation, ScriptReport
from knapper.codemode.scoring import InformationNeed, NoteKey, RetrievedMaterial, Score, Vocabulary
from knapper.codemode.tasks import (
    AskModel,
    Attempt,
    AttemptStep,
    ModelSpend,
    RegenerationBudget,
    Retrieval,
    RetrievalOptions,
    RetrievalTask,
    RetrievalTier,
    Thresholds,
)
from knapper.errors import BadInput, CallerError, KnapError
from knapper.index.documents import Filter
from knapper.index.search import Hit, SearchRequest
from knapper.jsontypes import JSONValue, object_or_empty, objects_in
from knapper.tools.context import Context, ScriptExit, ScriptLimits
from knapper.vault import parser

MAX_DIRECT_HITS: Final = 10
"""Most hits of the task's own search."""
_MAX_BROAD_HITS: Final = 6
"""Most hits of each query of a broadened search."""
_MAX_RANKED: Final = 100
"""Most notes in the ranking of an aspect."""
_MAX_QUERIES: Final = 16
_MAX_CHANGED_CHARS: Final = 2_000
"""Most characters that are cited of a note that has changed since it was indexed."""
_QUERY_OPERATORS: Final = re.compile(r'["*]|(?<!\w)-')
"""Operators of a search; in a task they are plain text."""
_UTF16_MARKS: Final = ("\ufeff".encode("utf-16-le"), "\ufeff".encode("utf-16-be"))
"""Byte-order marks of notes whose offsets in the index aren't those in their bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatheredContext:
    """The context that searches gathered, with its citations."""

    context: str
    citations: tuple[Citation, ...]
    queries: tuple[str, ...]


def search_directly(contexts: Sequence[Context], task: str, most_chars: int) -> GatheredContext:
    """Search for a task's own words.

    Args:
        contexts: The vaults, as the client sees them.
        task: The task's text.
        most_chars: Most characters of the context.
    """
    return _gather_context(contexts, (task,), MAX_DIRECT_HITS, most_chars)


def search_broadly(contexts: Sequence[Context], queries: Iterable[str], most_chars: int) -> GatheredContext:
    """Search for several queries, each of which adds to the context.

    Args:
        contexts: The vaults, as the client sees them.
        queries: The task, its aspects, what a script has searched for; blank ones and repetitions are left out.
        most_chars: Most characters of the context.
    """
    distinct_queries = dict.fromkeys(query.strip() for query in queries)
    return _gather_context(
        contexts, tuple(query for query in distinct_queries if query)[:_MAX_QUERIES], _MAX_BROAD_HITS, most_chars
    )


def rank_notes(contexts: Sequence[Context], text: str) -> Mapping[tuple[str, str], int]:
    """Return the ranks of notes in the search for a text, by vault and path; the best is 0."""
    ranks_by_note: dict[tuple[str, str], int] = {}
    for context in contexts:
        for rank, hit in enumerate(_search_hits(context, text, _MAX_RANKED, per_note=1)):
            ranks_by_note[(context.vault, hit.row.note)] = rank
    return ranks_by_note


def _gather_context(
    contexts: Sequence[Context], queries: Sequence[str], limit: int, most_chars: int
) -> GatheredContext:
    by_query: list[list[tuple[Context, Hit]]] = []
    for query in queries:
        hits = [(context, hit) for context in contexts for hit in _search_hits(context, query, limit, per_note=2)]
        # Best first; properties come last, since they say little.
        by_query.append(sorted(hits, key=lambda one: (one[1].row.kind == "frontmatter", -one[1].score))[:limit])
    # The best of each query, then the second of each, and so on.
    places = range(max(map(len, by_query), default=0))
    ranked = [found for place in places for hits in by_query for found in hits[place : place + 1]]
    parts: list[str] = []
    citations: dict[tuple[str, str, int, int], Citation] = {}
    chars_left = most_chars
    for context, hit in ranked:
        citation = _cite_hit(context, hit)
        if citation is None or (key := (citation.vault, citation.path, citation.start, citation.stop)) in citations:
            continue
        part = f"## {citation.path}\n{citation.text.strip()}"
        # Skipped and not the end: a shorter passage further down may still fit.
        if len(part) > chars_left:
            continue
        chars_left -= len(part)
        citations[key] = citation
        parts.append(part)
    return GatheredContext(context="\n\n".join(parts), citations=tuple(citations.values()), queries=tuple(queries))


def _search_hits(context: Context, query: str, limit: int, per_note: int) -> tuple[Hit, ...]:
    question = SearchRequest(
        text=_QUERY_OPERATORS.sub(" ", query),
        limit=limit,
        per_note=per_note,
        where=context.restrict(Filter(kinds=("note",))),
    )
    return context.index.search(question).hits


def _cite_hit(context: Context, hit: Hit) -> Citation | None:
    """Cite a hit as its file is now; the beginning of a note that has changed since, None where it is gone."""
    row = hit.row
    # The index's byte offsets hold only for the version that was indexed.
    try:
        note = evidence.read_note(context, row.note)
        if note is None:
            return None
        if note.hash != row.hash or note.raw.startswith(_UTF16_MARKS):
            return evidence.cite_span(context, row.note, 0, _MAX_CHANGED_CHARS)
        start, stop = (len(parser.decode_text(note.raw[:place])) for place in (row.start, row.stop))
        return evidence.cite_span(context, row.note, start, stop)
    except CallerError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRunner:
    """A runner of retrieval attempts for the tasks of one client."""

    context: Context
    options: RetrievalOptions
    vocabulary: Vocabulary

    def try_script(
        self, need: InformationNeed, draft: ScriptDraft, step: AttemptStep, tier: RetrievalTier
    ) -> Retrieval:
        """Run a script and score its result; where it can't be used, its only attempt holds the error.

        Raises:
            SetupError: Scripts can't be run here.
        """
        bridge = Bridge(self.context, self.options.profile)
        recorder = RecordingHost(bridge)
        sandbox = self.context.open_sandbox()
        limits = sandbox.limits
        if self.options.timeout_s is not None:
            limits = ScriptLimits(timeout_s=self.options.timeout_s).within(limits)
        inputs = script_inputs(self.context, bridge)
        outcome = sandbox.run(draft.script, recorder, limits=limits, given=inputs, on_cancel=self.context.on_cancel)
        error, report = outcome.error, ScriptReport(context="")
        if outcome.ok:
            try:
                report = evidence.parse_result(outcome.result)
            except BadInput as wrong:
                error = f"{wrong.message}; {wrong.hint}"
        checked_citations = evidence.check_citations(self.open_vault, report.citations)
        score = Score() if error else self.score(report.context, recorder.texts, checked_citations.citations, need)
        attempt = Attempt(
            step=step,
            score=score,
            confidence=report.confidence,
            script=draft.script,
            kind=outcome.kind,
            error=error,
            calls=outcome.calls,
            wall_s=outcome.wall_s,
            walls=outcome.walls,
            usage=draft.usage,
        )
        return Retrieval(
            context=report.context,
            citations=checked_citations.citations,
            dropped=checked_citations.dropped,
            score=score.total,
            parts=score,
            confidence=report.confidence,
            tier=tier,
            script=draft.script,
            queries=report.queries,
            why=report.why,
            reads=recorder.reads,
            others=recorder.others,
            used_tools=recorder.used_tools,
            used_outside=recorder.used_outside,
            attempts=(attempt,),
            usage=draft.usage,
            notes=(*report.remarks, *filter(None, (outcome.wall_notice,))),
        )

    def score_search(self, need: InformationNeed, gathered: GatheredContext, tier: RetrievalTier) -> Retrieval:
        """Score the context that a search gathered."""
        texts = [one.text for one in gathered.citations]
        score = self.score(gathered.context, texts, gathered.citations, need)
        return Retrieval(
            context=gathered.context,
            citations=gathered.citations,
            score=score.total,
            parts=score,
            tier=tier,
            queries=gathered.queries,
            reads=notes_cited(gathered.citations),
            others=self.options.vaults,
            attempts=(Attempt(step="direct", score=score),),
            usage=ModelSpend(),
        )

    def score(
        self, context: str, source_texts: Sequence[str], citations: Sequence[Citation], need: InformationNeed
    ) -> Score:
        """Score a context with its verified citations."""
        texts: dict[NoteKey, list[str]] = {}
        for citation in citations:
            texts.setdefault((citation.vault, citation.path), []).append(citation.text)
        material = RetrievedMaterial(
            context=context,
            source_texts=source_texts,
            cited_texts={place: "\n\n".join(parts) for place, parts in texts.items()},
            citations=len(citations),
        )
        least, weights = self.options.thresholds.targets, self.options.weights
        return scoring.score_retrieval(material, need, self.vocabulary, targets=least, weights=weights)

    def open_vault(self, name: str) -> Context:
        """Open a vault of the client's by the name that scripts use.

        Raises:
            NotFound: There is none of that name.
        """
        if name in {"", MAIN_VAULT, self.context.vault}:
            return self.context
        return self.context.scripting.open_vault(name)


def notes_cited(citations: Sequence[Citation]) -> tuple[NoteRead, ...]:
    """Return the notes that are cited, each once."""
    return tuple(dict.fromkeys(NoteRead(vault=one.vault, path=one.path, hash=one.hash) for one in citations))


def resume_from_checkpoint(
    runner: AttemptRunner, need: InformationNeed, checkpoint: Checkpoint, search_again: Callable[[], Retrieval]
) -> Retrieval:
    """Return the retrieval that a person has decided on, or that waits for the decision; no model is asked.

    Args:
        runner: Reads notes and scores contexts.
        need: What the task asks for.
        checkpoint: The question.
        search_again: Searches anew, where notes that the context rests on have changed or are hidden by now.
    """
    answer = checkpoint.answer
    if answer is not None and answer.choice == "stop":
        notes = ("a person said not to go on with this",)
        return Retrieval(context="", tier="C", state="stopped", checkpoint=checkpoint.id, notes=notes)
    if answer is not None and answer.choice == "use":
        return _use_answer(runner, need, answer, checkpoint.id)
    restored = replace(
        _restore_retrieval(runner, checkpoint.found) or search_again(), tier="C", checkpoint=checkpoint.id
    )
    if answer is None:
        return replace(restored, state="waiting", notes=(*restored.notes, "a person is asked"))
    return replace(restored, notes=(*restored.notes, "a person said to go on with what there is"))


def _use_answer(runner: AttemptRunner, need: InformationNeed, answer: CheckpointAnswer, checkpoint: str) -> Retrieval:
    """Build the context from the notes that a person has named, and the person's own words."""
    checked_citations = evidence.check_citations(
        runner.open_vault, [ReportedCitation(path=path) for path in answer.notes]
    )
    person_text = answer.text.strip()
    parts = [f"## What the person says\n{person_text}"] if person_text else []
    parts += [f"## {citation.path}\n{citation.text.strip()}" for citation in checked_citations.citations]
    context = "\n\n".join(parts)
    score = runner.score(
        context,
        [person_text, *(citation.text for citation in checked_citations.citations)],
        checked_citations.citations,
        need,
    )
    return Retrieval(
        context=context,
        citations=checked_citations.citations,
        dropped=checked_citations.dropped,
        score=score.total,
        parts=score,
        tier="C",
        reads=notes_cited(checked_citations.citations),
        attempts=(Attempt(step="person", score=score),),
        checkpoint=checkpoint,
        notes=("a person has named what to use",),
    )


def _restore_retrieval(runner: AttemptRunner, stored: Mapping[str, JSONValue]) -> Retrieval | None:
    """Restore the retrieval that is stored with a question; None if it rests on no note, or on a changed one."""
    reads = tuple(
        NoteRead(vault=str(fields["vault"]), path=str(fields["path"]), hash=str(fields["hash"]))
        for fields in objects_in(stored["reads"])
    )
    if not reads:
        return None
    for read in reads:
        try:
            note = evidence.read_note(runner.open_vault(read.vault), read.path)
        except KnapError:
            return None
        if note is None or note.hash != read.hash:
            return None
    reported = [
        ReportedCitation(
            path=str(fields["path"]),
            vault=str(fields["vault"]),
            start=int(str(fields["snip_start"])),
            stop=int(str(fields["snip_end"])),
        )
        for fields in objects_in(stored["citations"])
    ]
    parts = {name: float(str(value)) for name, value in object_or_empty(stored["parts"]).items()}
    score = Score(
        total=float(str(stored["score"])),
        overlap=parts["overlap"],
        coverage=parts["coverage"],
        diversity=parts["diversity"],
        boilerplate=parts["boilerplate"],
    )
    return Retrieval(
        context=str(stored["context"]),
        citations=evidence.check_citations(runner.open_vault, reported).citations,
        score=score.total,
        parts=score,
        script=str(stored["script"]),
        reads=reads,
        used_tools=bool(stored["used_tools"]),
        used_outside=bool(stored.get("used_outside")),
    )


CODE_MODE_OFF: Final = "Code Mode is off: this is a direct search"
NO_MODEL: Final = "no model is set, so that Code Mode is off: this is a direct search"
POOR_CONTEXT: Final = "the notes gave little for this"
_MAX_DROPPED: Final = 10
_MAX_ERROR: Final = 2_000
NOBODY_TO_ASK: Final = "much hangs on this, and nobody was there to be asked"


class Retriever:
    """A retriever of context for the tasks of one run; any thread may use it.

    ``Retriever(context, ask=ask).retrieve(RetrievalTask(text="Who pays for the fence?"))`` returns a `Retrieval`.
    """

    def __init__(
        self,
        context: Context,
        *,
        ask: AskModel | None = None,
        options: RetrievalOptions | None = None,
        regenerations: RegenerationBudget | None = None,
        checkpoints: CheckpointStore | None = None,
        run: str = "",
    ) -> None:
        """Prepare the retrieval for a run.

        Args:
            context: The vault, as the client sees it, with a sandbox.
            ask: The model that writes scripts; without one, Code Mode is off.
            options: How to retrieve.
            regenerations: The run's budget of scripts that may be written anew; None for a full one.
            checkpoints: Stores questions to a person; None where nobody will answer.
            run: The run's id, by which answers are found again.
        """
        self._context = context
        self._ask = ask
        self._options = options or RetrievalOptions()
        self._regenerations = regenerations or RegenerationBudget(self._options.thresholds.regens_per_run)
        self._checkpoints = checkpoints
        self._run = run
        self._vocabulary = Vocabulary(context.index.store)
        self._runner = AttemptRunner(context=context, options=self._options, vocabulary=self._vocabulary)

    @property
    def regenerations(self) -> RegenerationBudget:
        """Return the budget of scripts that may be written anew, to be kept with the run."""
        return self._regenerations

    def retrieve(self, task: RetrievalTask) -> Retrieval:
        """Retrieve context for a task; failures of scripts or of the model are reported in ``notes``.

        Raises:
            KnapError: The vault can't be searched, or the state folder can't be used.
        """
        _ = self._context.freshen()
        opened = [self._runner.open_vault(name) for name in dict.fromkeys(self._options.vaults)]
        for other in opened:
            if other is not self._context:
                _ = other.freshen()
        contexts = opened or [self._context]
        need = scoring.analyze_task(task.text, self._vocabulary, lambda text: rank_notes(contexts, text), task.aspects)
        # Before any script is written: a resumed run must not pay the model again for what a person decides.
        checkpoint = self._checkpoints.find(self._run, task.node, task.text) if self._checkpoints else None
        if checkpoint is not None:
            return resume_from_checkpoint(
                self._runner, need, checkpoint, lambda: self._search_broadly(need, (), contexts)
            )
        if not self._options.code_mode or self._ask is None:
            gathered = search_directly(contexts, task.text, self._options.most_context_chars)
            note = NO_MODEL if self._options.code_mode else CODE_MODE_OFF
            return self._with_notes(self._runner.score_search(need, gathered, "direct"), (note,))
        return self._retrieve_by_scripts(task, need, self._ask, contexts)

    def close(self) -> None:
        """Close the retriever's own resources; the context stays open."""
        self._vocabulary.close()

    def _retrieve_by_scripts(
        self, task: RetrievalTask, need: InformationNeed, ask: AskModel, contexts: Sequence[Context]
    ) -> Retrieval:
        attempts: list[Retrieval] = []
        broken_off = ""
        try:
            author = self._author(ask)
            attempts.append(self._run_draft(author, need, author.write_first(task.text), "script", "script"))
            for _ in range(self._limits.regens_per_node):
                if self._is_good(attempts[-1]):
                    break
                if not self._regenerations.try_take():
                    broken_off = f"the run had all its {self._regenerations.used} scripts written anew"
                    break
                draft = author.write_again(task.text, attempts[-1].script, retrieval_hints(attempts[-1]))
                attempts.append(self._run_draft(author, need, draft, "again", "A"))
        except KnapError as error:
            broken_off = f"Code Mode broke off: {error.message}"
        notes = [broken_off] if broken_off else []
        if attempts and self._is_good(attempts[-1]):
            return _join_attempts(attempts[-1], attempts, notes)
        kind = attempts[-1].attempts[-1].kind if attempts else None
        if kind and not broken_off:
            broken_off = _LIMIT_EXITS.get(kind, "")
        # Scripts that found too little may have searched well: their queries are part of the broadened search.
        broadened = self._search_broadly(need, attempts, contexts)
        best = max([broadened, *attempts], key=lambda one: one.score)
        joined = _join_attempts(replace(best, tier="B", broken_off=broken_off), [*attempts, broadened], notes)
        return self._ask_person_if_poor(task, joined)

    def _run_draft(
        self, author: ScriptAuthor, need: InformationNeed, draft: ScriptDraft, step: AttemptStep, tier: RetrievalTier
    ) -> Retrieval:
        """Run a draft, and have it repaired once where it can't be used."""
        first = self._runner.try_script(need, draft, step, tier)
        error = first.attempts[0].error
        if not error:
            return first
        try:
            repaired = author.repair(need.text, draft.script, error)
        # The first attempt stays part of the retrieval, which reports it.
        except KnapError as failure:
            return replace(first, notes=(*first.notes, f"the script couldn't be mended: {failure.message}"))
        second = self._runner.try_script(need, repaired, "mended", tier)
        return replace(second, attempts=first.attempts + second.attempts, usage=first.usage + second.usage)

    def _search_broadly(
        self, need: InformationNeed, attempts: Sequence[Retrieval], contexts: Sequence[Context]
    ) -> Retrieval:
        queries = [
            need.text,
            *(one.text for one in need.aspects),
            *(query for one in attempts for query in one.queries),
        ]
        gathered = search_broadly(contexts, queries, self._options.most_context_chars)
        return self._runner.score_search(need, gathered, "B")

    def _ask_person_if_poor(self, task: RetrievalTask, retrieval: Retrieval) -> Retrieval:
        """Ask a person where a high-impact task got poor context."""
        if retrieval.score >= self._limits.low_score:
            return retrieval
        if not task.has_high_impact:
            return self._with_notes(retrieval, (POOR_CONTEXT,))
        if self._checkpoints is None:
            return self._with_notes(retrieval, (POOR_CONTEXT, NOBODY_TO_ASK))
        waiting = replace(
            retrieval, tier="C", state="waiting", notes=(*retrieval.notes, POOR_CONTEXT, "a person is asked")
        )
        checkpoint = self._checkpoints.ask(self._run, task.node, task.text, waiting.as_dict())
        return replace(waiting, checkpoint=checkpoint.id)

    def _author(self, ask: AskModel) -> ScriptAuthor:
        bridge = Bridge(self._context, self._options.profile)
        other_names = [name for name in self._options.vaults if name != self._context.vault]
        others = {name: authoring.describe_vault(self._runner.open_vault(name)) for name in other_names}
        description: dict[str, JSONValue] = {**authoring.describe_vault(self._context)}
        if others:
            description["others"] = {**others}
        tools = tuple(self._context.scripting.tools())
        return ScriptAuthor(ask=ask, shape=description, methods=bridge.methods, tools=tools)

    def _is_good(self, retrieval: Retrieval) -> bool:
        is_confident = retrieval.confidence is None or retrieval.confidence >= self._limits.low_confidence
        return not retrieval.attempts[-1].error and retrieval.score >= self._limits.low_score and is_confident

    def _with_notes(self, retrieval: Retrieval, notes: Sequence[str]) -> Retrieval:
        return replace(retrieval, notes=(*retrieval.notes, *notes))

    @property
    def _limits(self) -> Thresholds:
        return self._options.thresholds


_LIMIT_EXITS: Final[Mapping[ScriptExit, str]] = {
    "timeout": "the script ran into its time limit",
    "memory": "the script ran into its memory limit",
}


def retrieval_hints(retrieval: Retrieval) -> dict[str, JSONValue]:
    """Return what was found and what is missing, in words of the task and the script and never of notes."""
    missing: list[JSONValue] = [*retrieval.parts.missing]
    queries: list[JSONValue] = [*retrieval.queries]
    cited: list[JSONValue] = [*dict.fromkeys(one.path for one in retrieval.citations)]
    dropped: list[JSONValue] = [one.as_dict() for one in retrieval.dropped[:_MAX_DROPPED]]
    return {
        "score": retrieval.score,
        "parts": retrieval.parts.parts(),
        "confidence": retrieval.confidence,
        "characters": len(retrieval.context),
        "missing": missing,
        "queries": queries,
        "cited": cited,
        "citations that don't hold": dropped,
        "error": retrieval.attempts[-1].error[:_MAX_ERROR],
    }


def _join_attempts(retrieval: Retrieval, attempts: Sequence[Retrieval], notes: Sequence[str]) -> Retrieval:
    """Put the attempts and the costs of all retrievals into the one that is used."""
    return replace(
        retrieval,
        others=tuple(dict.fromkeys(name for one in attempts for name in one.others)),
        attempts=tuple(attempt for one in attempts for attempt in one.attempts),
        usage=sum((one.usage for one in attempts), ModelSpend()),
        notes=(*retrieval.notes, *notes),
    )

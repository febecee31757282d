"""Retrieve context for a task: have a script written, run it, score what it found, and recover where that is poor."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from knapper.codemode import direct, recalling, scoring, shape
from knapper.codemode.asking import Ask, Spent
from knapper.codemode.bridge import Bridge
from knapper.codemode.checkpoints import Checkpoints
from knapper.codemode.scoring import Needs
from knapper.codemode.tasks import Options, Regenerations, Retrieval, Step, Task, Thresholds, Tier
from knapper.codemode.trials import Trials
from knapper.codemode.vocabulary import Vocabulary
from knapper.codemode.writing import Author, Draft
from knapper.errors import KnapError
from knapper.jsontypes import JSONValue
from knapper.tools.context import Context

OFF: Final = "Code Mode is off: this is a direct search"
NO_MODEL: Final = "no model is set, so that Code Mode is off: this is a direct search"
POOR: Final = "the notes gave little for this"
_MOST_DROPPED: Final = 10
_MOST_ERROR: Final = 2_000
NOBODY: Final = "much hangs on this, and nobody was there to be asked"


class Retriever:
    """Retrieve context for the tasks of one run; several threads may.

    ``Retriever(context, ask=ask).retrieve(Task(text="Who pays for the fence?"))`` gives a `Retrieval`.
    """

    def __init__(
        self,
        context: Context,
        *,
        ask: Ask | None = None,
        options: Options | None = None,
        regenerations: Regenerations | None = None,
        checkpoints: Checkpoints | None = None,
        run: str = "",
    ) -> None:
        """Take what a run has.

        Args:
            context: The vault, as the client sees it, with a sandbox.
            ask: The model that writes scripts; without one, Code Mode is off.
            options: How to retrieve.
            regenerations: What the run has left of scripts that may be written anew; None for all of it.
            checkpoints: Where a person is asked; None where nobody will answer.
            run: The run's id, by which answers are found again.
        """
        self._context = context
        self._ask = ask
        self._options = options or Options()
        self._regenerations = regenerations or Regenerations(self._options.thresholds.regens_per_run)
        self._checkpoints = checkpoints
        self._run = run
        self._vocabulary = Vocabulary(context.index.store)
        self._trials = Trials(context=context, options=self._options, vocabulary=self._vocabulary)

    @property
    def regenerations(self) -> Regenerations:
        """Give what is left of scripts that may be written anew, to be kept with the run."""
        return self._regenerations

    def retrieve(self, task: Task) -> Retrieval:
        """Retrieve context for a task; whatever goes wrong with scripts or the model is told in the notes.

        Raises:
            KnapError: The vault can't be searched, or the state folder can't be used.
        """
        _ = self._context.freshen()
        contexts = self._contexts()
        wanted = scoring.needs(task.text, self._vocabulary, lambda text: direct.ranks(contexts, text), task.aspects)
        asked = self._checkpoints.find(self._run, task.node, task.text) if self._checkpoints else None
        if asked is not None:
            return recalling.recall(self._trials, wanted, asked, lambda: self._broadened(wanted, (), contexts))
        if not self._options.code_mode or self._ask is None:
            found = direct.search(contexts, task.text, self._options.most_context_chars)
            note = NO_MODEL if self._options.code_mode else OFF
            return self._told(self._trials.search(wanted, found, "direct"), (note,))
        return self._by_scripts(task, wanted, self._ask, contexts)

    def close(self) -> None:
        """Close what the retriever holds open; the context stays open."""
        self._vocabulary.close()

    def _by_scripts(self, task: Task, wanted: Needs, ask: Ask, contexts: Sequence[Context]) -> Retrieval:
        tried: list[Retrieval] = []
        notes: list[str] = []
        try:
            author = self._author(ask)
            tried.append(self._write(author, wanted, author.first(task.text), "script", "script"))
            for _ in range(self._limits.regens_per_node):
                if self._is_good(tried[-1]):
                    break
                if not self._regenerations.take():
                    notes.append(f"the run had all its {self._regenerations.used} scripts written anew")
                    break
                draft = author.again(task.text, tried[-1].script, hints(tried[-1]))
                tried.append(self._write(author, wanted, draft, "again", "A"))
        except KnapError as error:
            notes.append(f"Code Mode broke off: {error.message}")
        if tried and self._is_good(tried[-1]):
            return _joined(tried[-1], tried, notes)
        broad = self._broadened(wanted, tried, contexts)
        best = max([broad, *tried], key=lambda one: one.score)
        return self._recovered(task, _joined(replace(best, tier="B"), [*tried, broad], notes))

    def _write(self, author: Author, wanted: Needs, draft: Draft, step: Step, tier: Tier) -> Retrieval:
        """Run a draft, and have it mended once where it can't be used."""
        first = self._trials.script(wanted, draft, step, tier)
        error = first.attempts[0].error
        if not error:
            return first
        try:
            mended = author.mend(wanted.text, draft.script, error)
        except KnapError as failure:  # what was tried so far still has to be told
            return replace(first, notes=(*first.notes, f"the script couldn't be mended: {failure.message}"))
        second = self._trials.script(wanted, mended, "mended", tier)
        return replace(second, attempts=first.attempts + second.attempts, usage=first.usage + second.usage)

    def _broadened(self, wanted: Needs, tried: Sequence[Retrieval], contexts: Sequence[Context]) -> Retrieval:
        queries = [
            wanted.text,
            *(one.text for one in wanted.aspects),
            *(query for one in tried for query in one.queries),
        ]
        found = direct.broaden(contexts, queries, self._options.most_context_chars)
        return self._trials.search(wanted, found, "B")

    def _recovered(self, task: Task, found: Retrieval) -> Retrieval:
        """Ask a person where much hangs on a task for which everything gave little."""
        if found.score >= self._limits.low_score:
            return found
        if not task.has_high_impact:
            return self._told(found, (POOR,))
        if self._checkpoints is None:
            return self._told(found, (POOR, NOBODY))
        waiting = replace(found, tier="C", state="waiting", notes=(*found.notes, POOR, "a person is asked"))
        asked = self._checkpoints.ask(self._run, task.node, task.text, waiting.as_dict())
        return replace(waiting, checkpoint=asked.id)

    def _author(self, ask: Ask) -> Author:
        bridge = Bridge(self._context, self._options.profile)
        names = [name for name in self._options.vaults if name != self._context.vault]
        others = {name: shape.describe(self._trials.open_vault(name)) for name in names}
        described: dict[str, JSONValue] = {**shape.describe(self._context)}
        if others:
            described["others"] = {**others}
        tools = tuple(self._context.scripting.tools())
        return Author(ask=ask, shape=described, methods=bridge.methods, tools=tools)

    def _contexts(self) -> list[Context]:
        opened = [self._trials.open_vault(name) for name in dict.fromkeys(self._options.vaults)]
        for other in opened:
            if other is not self._context:
                _ = other.freshen()
        return opened or [self._context]

    def _is_good(self, found: Retrieval) -> bool:
        sure = found.confidence is None or found.confidence >= self._limits.low_confidence
        return not found.attempts[-1].error and found.score >= self._limits.low_score and sure

    def _told(self, found: Retrieval, notes: Sequence[str]) -> Retrieval:
        return replace(found, notes=(*found.notes, *notes))

    @property
    def _limits(self) -> Thresholds:
        return self._options.thresholds


def hints(found: Retrieval) -> dict[str, JSONValue]:
    """Say what was found and what is missing, in the words of the task and of the script, never of notes."""
    missing: list[JSONValue] = [*found.parts.missing]
    queries: list[JSONValue] = [*found.queries]
    cited: list[JSONValue] = [*dict.fromkeys(one.path for one in found.citations)]
    dropped: list[JSONValue] = [one.as_dict() for one in found.dropped[:_MOST_DROPPED]]
    return {
        "score": found.score,
        "parts": found.parts.parts(),
        "confidence": found.confidence,
        "characters": len(found.context),
        "missing": missing,
        "queries": queries,
        "cited": cited,
        "citations that don't hold": dropped,
        "error": found.attempts[-1].error[:_MOST_ERROR],
    }


def _joined(found: Retrieval, tried: Sequence[Retrieval], notes: Sequence[str]) -> Retrieval:
    """Put the attempts and the costs of all tries into the one that is used."""
    return replace(
        found,
        others=tuple(dict.fromkeys(name for one in tried for name in one.others)),
        attempts=tuple(attempt for one in tried for attempt in one.attempts),
        usage=sum((one.usage for one in tried), Spent()),
        notes=(*found.notes, *notes),
    )

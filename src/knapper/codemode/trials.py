"""Try one script, or one search, for a task: run it, check what it says, and score what it brings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from knapper.codemode import citing, results, scoring, scripts
from knapper.codemode.asking import Spent
from knapper.codemode.bridge import MAIN, Bridge
from knapper.codemode.citing import Citation
from knapper.codemode.direct import Gathered
from knapper.codemode.results import Found
from knapper.codemode.scoring import Material, Needs, Place, Score
from knapper.codemode.tasks import Attempt, Options, Retrieval, Step, Tier
from knapper.codemode.vocabulary import Vocabulary
from knapper.codemode.witness import Read, Witness
from knapper.codemode.writing import Draft
from knapper.errors import BadInput
from knapper.tools.context import Context
from knapper.tools.sandboxes import Limits, Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Trials:
    """Make tries for the tasks of one client."""

    context: Context
    options: Options
    vocabulary: Vocabulary

    def script(self, wanted: Needs, draft: Draft, step: Step, tier: Tier) -> Retrieval:
        """Run a script; where it can't be used, its only attempt says why.

        Raises:
            SetupError: Scripts can't be run here.
        """
        outcome, witness = self._run(draft.script)
        error, found = outcome.error, Found(context="")
        if outcome.ok:
            try:
                found = results.read(outcome.result)
            except BadInput as wrong:
                error = f"{wrong.message}; {wrong.hint}"
        checked = citing.check(self.open_vault, found.citations)
        score = Score() if error else self.score(found.context, witness.heard, checked.citations, wanted)
        attempt = Attempt(
            step=step,
            score=score,
            confidence=found.confidence,
            script=draft.script,
            kind=outcome.kind,
            error=error,
            calls=outcome.calls,
            wall_s=outcome.wall_s,
            usage=draft.usage,
        )
        return Retrieval(
            context=found.context,
            citations=checked.citations,
            dropped=checked.dropped,
            score=score.total,
            parts=score,
            confidence=found.confidence,
            tier=tier,
            script=draft.script,
            queries=found.queries,
            why=found.why,
            reads=witness.reads,
            others=witness.others,
            used_tools=witness.used_tools,
            used_outside=witness.used_outside,
            attempts=(attempt,),
            usage=draft.usage,
            notes=found.remarks,
        )

    def search(self, wanted: Needs, gathered: Gathered, tier: Tier) -> Retrieval:
        """Score what a search has gathered."""
        texts = [one.text for one in gathered.citations]
        score = self.score(gathered.context, texts, gathered.citations, wanted)
        return Retrieval(
            context=gathered.context,
            citations=gathered.citations,
            score=score.total,
            parts=score,
            tier=tier,
            queries=gathered.queries,
            reads=reads_of(gathered.citations),
            others=self.options.vaults,
            attempts=(Attempt(step="direct", score=score),),
            usage=Spent(),
        )

    def score(self, context: str, heard: Sequence[str], citations: Sequence[Citation], wanted: Needs) -> Score:
        """Score a context with the citations that hold."""
        material = Material(context=context, heard=heard, cited=_cited(citations), citations=len(citations))
        least, weights = self.options.thresholds.least, self.options.weights
        return scoring.score(material, wanted, self.vocabulary, least=least, weights=weights)

    def open_vault(self, name: str) -> Context:
        """Open a vault of the client's by the name that scripts use.

        Raises:
            NotFound: There is none of that name.
        """
        if name in {"", MAIN, self.context.vault}:
            return self.context
        return self.context.scripting.open_vault(name)

    def _run(self, script: str) -> tuple[Outcome, Witness]:
        bridge = Bridge(self.context, self.options.profile)
        witness = Witness(bridge)
        sandbox = self.context.open_sandbox()
        asked = self.options.timeout_s
        limits = sandbox.limits if asked is None else Limits(timeout_s=asked).within(sandbox.limits)
        given = scripts.given(self.context, bridge)
        return sandbox.run(script, witness, limits=limits, given=given, on_cancel=self.context.on_cancel), witness


def reads_of(citations: Sequence[Citation]) -> tuple[Read, ...]:
    """Name the notes that citations stand in, each once."""
    return tuple(dict.fromkeys(Read(vault=one.vault, path=one.path, hash=one.hash) for one in citations))


def _cited(citations: Sequence[Citation]) -> Mapping[Place, str]:
    """Join the cited texts of each note."""
    texts: dict[Place, list[str]] = {}
    for one in citations:
        texts.setdefault((one.vault, one.path), []).append(one.text)
    return {place: "\n\n".join(found) for place, found in texts.items()}

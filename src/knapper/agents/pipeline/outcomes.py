"""Sum a run up, however it ended."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from knapper.agents import defusing
from knapper.agents.contexts.unified import UnifiedContext
from knapper.agents.pipeline.events import Outcome
from knapper.agents.pipeline.records import Phase, State
from knapper.agents.pipeline.requests import Request
from knapper.agents.research.records import WebResult
from knapper.agents.scout.records import Question
from knapper.agents.task.records import PipelineContext
from knapper.agents.task.task import TaskAgentResult
from knapper.codemode.model import ModelSpend
from knapper.errors import KnapError
from knapper.jsontypes import JSONValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """Hold how a run ended, and what it has by then."""

    state: State
    pipeline: PipelineContext
    done: TaskAgentResult | None = None
    """None where the task wasn't done."""
    gathered: UnifiedContext | None = None
    """What the task was done with; None where it didn't come to that."""
    question: Question | None = None
    notices: Sequence[str] = ()
    error: KnapError | None = None
    spent: Mapping[Phase, ModelSpend] = field(default_factory=dict[Phase, ModelSpend])


def of(run: Ended, request: Request, model: str) -> Outcome:
    """Sum a run up, as far as it got.

    Args:
        run: How it ended.
        request: What it was to do.
        model: Its model's name.
    """
    found, done, gathered, question = run.pipeline, run.done, run.gathered, _question(run)
    notices: list[JSONValue] = [*run.notices]
    total = sum(run.spent.values(), ModelSpend())
    told = Outcome(
        run_id=request.run_id,
        state=run.state,
        answer=done.summary if done else _answer(found, question),
        pipeline=found.as_dict(),
        context=gathered.as_dict() if gathered else {},
        question=question,
        notices=notices,
        usage={**total.as_dict(), "phases": {phase: one.as_dict() for phase, one in run.spent.items()}},
        model=model,
        session_id=request.session_id,
        error=_error(run),
    )
    return told if done is None else _with_task(told, done)


def web_text(found: WebResult) -> str:
    """Say in a line what a search of the web came to."""
    if found.search_performed:
        return f"{len(found.sources)} sources from {len(found.search_queries)} searches"
    if found.search_needed:
        return f"the web would have to be searched: {found.evaluation_reasoning}"
    return (
        f"no search was needed: {found.evaluation_reasoning}" if found.evaluation_reasoning else "nothing was searched"
    )


def task_text(done: TaskAgentResult) -> str:
    """Say in a line what a task came to."""
    results = done.results
    if not done.edits:
        return "answered"
    failed = f", {results.failed} can't be made" if results.failed else ""
    return f"edits proposed: {results.success}{failed}"


def _with_task(told: Outcome, done: TaskAgentResult) -> Outcome:
    proposals: list[JSONValue] = [done.proposal.proposal_id] if done.proposal else []
    return replace(
        told,
        proposed_edits=[one.instruction.as_dict() for one in done.edits],
        edit_results=done.results.as_dict() if done.edits else {},
        proposals=[*proposals, *done.changed_blocks],
        opened=[*done.opened],
        citations=[one.as_dict() for one in done.checked.citations],
        removed=[one.as_dict() for one in done.checked.failures],
    )


def _question(run: Ended) -> dict[str, JSONValue] | None:
    if run.question is None or run.state != "asked":
        return None
    options: list[JSONValue] = [*run.question.options]
    return {"question": run.question.question, "options": options}


def _answer(found: PipelineContext, question: dict[str, JSONValue] | None) -> str:
    """Say what there is where no task was done."""
    if question is not None:
        return str(question["question"])
    parts: list[str] = []
    if found.scout is not None:
        chosen = (f"- [[{one.path}]]: {one.reason or one.why()}" for one in found.scout.selected_notes)
        parts += [found.scout.reasoning, *chosen]
    if found.web is not None:
        parts += [found.web.findings or found.web.evaluation_reasoning]
        parts += [f"- {one.title}: {one.url}" for one in found.web.sources]
    return defusing.defused("\n".join(filter(None, parts)))[0]


def _error(run: Ended) -> dict[str, JSONValue] | None:
    if run.error is None:
        return None
    return {"error": run.error.message, "code": run.error.code, "hint": run.error.hint}

"""Carry out a task with a model: prompt it, check its edits, let it correct itself once, and propose them."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart
from pydantic_ai.models import Model
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RunUsage

from knapper.agents import citations, prompting
from knapper.agents.citations import REPAIR, CheckedAnswer
from knapper.agents.loop import Reading, StageAgent, StageSpec, TextTask
from knapper.agents.pipeline import edits
from knapper.agents.pipeline.context import UnifiedContext
from knapper.agents.pipeline.edits import (
    ChatMessage,
    EditConstraints,
    EditFailure,
    EditResults,
    TaskReply,
    ValidatedEdit,
)
from knapper.agents.pipeline.records import PipelineContext, WebResult
from knapper.agents.pipeline.scopes import Ability, EditableScope, EditRules
from knapper.changes.writer import Submission
from knapper.errors import KnapError
from knapper.jsontypes import JSONValue
from knapper.tools.context import Context
from knapper.vault.paths import NotePath

_SCOPE_TEXTS: Final[dict[EditableScope, str]] = {
    "current": "You may edit the open note only.",
    "linked": "You may edit the open note and the notes that it links with directly.",
    "context": "You may edit any of the notes that you were given.",
}
_POSITION_TEXTS: Final[tuple[tuple[Ability, str, str], ...]] = (
    ("add", "start", "at the beginning of the note's text"),
    ("add", "end", "at its end"),
    ("add", "after:## Heading", "right below this heading, which is written with its # signs"),
    ("add", "insert:N", "before line N"),
    ("delete", "replace:N or replace:N-M", "in the place of these lines"),
    ("delete", "delete:N or delete:N-M", "takes these lines away; `content` is empty"),
    ("create", "create", "a new note with this text; it must not be there yet"),
    ("navigate", "open", "opens the note for the person at once and changes nothing; `content` is empty"),
)
_FORBIDDEN_TEXTS: Final[tuple[tuple[Ability, str], ...]] = (
    ("add", "Inserting text is forbidden: never use start, end, after or insert."),
    ("delete", "Replacing and deleting is forbidden: never use replace or delete."),
    ("create", "Making notes is forbidden: never use create."),
    ("navigate", "Opening notes is forbidden: never use open."),
)
_EDIT_RULES: Final = """\
- Line numbers are those in front of the lines above, and those of the note as it is now: all edits of a reply count \
from the same lines, so an edit never shifts another.
- Edits of one note must not overlap. Make one edit of lines that go together.
- A line or a note of which the rest isn't shown can't be replaced or deleted beyond what is shown whole.
- Change as little as the task needs. Leave everything else as it is, down to spaces.
- Properties stand at the top of a note between `---` lines, and are edited by line as well.
- Lines of an edit that still waits for the person's word are marked above; replace all of such a block's lines to \
change what it proposes."""


def write_edit_rules(permitted: EditRules, paths: Sequence[str], current: str) -> str:
    """Return all rules about edits as a part of the system prompt.

    Args:
        permitted: What the model may do, and to which notes.
        paths: The notes that its scope covers now, escaped.
        current: The open note, escaped; empty for none.
    """
    open_note_text = f"The open note is {current}." if current else "No note is open."
    path_list = ", ".join(paths) if paths else "none: existing notes can't be edited now"
    positions = [f"- `{form}`: {meaning}" for ability, form, meaning in _POSITION_TEXTS if ability in permitted.can]
    forbidden = "\n".join(f"- {warning}" for ability, warning in _FORBIDDEN_TEXTS if ability not in permitted.can)
    parts = [
        "## Which notes you may edit",
        f"{open_note_text} {_SCOPE_TEXTS[permitted.editable]} Now these are: {path_list}. "
        "Any other edit is thrown away.",
        "## Positions",
        "\n".join(positions) or "- none: `edits` must be empty",
        "## Rules for edits",
        _EDIT_RULES,
    ]
    if forbidden:
        parts += ["## Forbidden", forbidden]
    return "\n\n".join(parts)


_MAX_RELEVANT: Final = 10
_MAX_EXTRACT_CHARS: Final = 4_000


def write_prior_section(pipeline: PipelineContext) -> str:
    """Return the system prompt's part about earlier agents; empty where there were none."""
    parts: list[str] = []
    scout, web = pipeline.scout, pipeline.web
    if scout is not None:
        lines = [
            "An agent explored the vault and chose the notes that you are given.",
            f"- confidence: {scout.confidence}",
            f"- its reasoning: {prompting.escape(scout.reasoning)}",
            f"- what it did: {prompting.escape(scout.exploration_summary)}",
        ]
        ranked = sorted(scout.selected_notes, key=lambda one: -(one.semantic_score or 0.0))[:_MAX_RELEVANT]
        notes = [f"  - {prompting.escape(str(one.path))}: {one.why()}" for one in ranked]
        parts.append("\n".join([*lines, "- most relevant notes:", *notes] if notes else lines))
    if web is not None:
        lines = [
            "An agent searched the web." if web.search_performed else "An agent didn't search the web.",
            f"- why: {prompting.escape(web.evaluation_reasoning)}",
            f"- queries: {', '.join(prompting.escape(one) for one in web.search_queries) or 'none'}",
            f"- sources: {len(web.sources)}, given below as blocks",
        ]
        parts.append("\n".join(lines))
    return "\n\n".join(["## Prior agent context", *parts]) if parts else ""


def write_web_blocks(web: WebResult | None, mark: str) -> str:
    """Return the findings from the web as blocks; empty where there are none."""
    if web is None or not (web.sources or web.findings):
        return ""
    blocks: list[str] = []
    if web.findings:
        blocks.append(prompting.enclose("web findings", prompting.escape(web.findings), mark))
    for one in web.sources:
        source_row: dict[str, JSONValue] = {
            "title": one.title,
            "url": one.url,
            "text": (one.extracted or one.snippet)[:_MAX_EXTRACT_CHARS],
        }
        if one.date:
            source_row["date"] = one.date
        blocks.append(prompting.enclose("web", prompting.escape(source_row), mark))
    return "\n\n".join(blocks)


def write_history(history: Sequence[ChatMessage]) -> list[ModelMessage]:
    """Return earlier messages in the model's format, with the results of its edits."""
    model_messages: list[ModelMessage] = []
    outcome = ""
    for one in history:
        if one.role == "user":
            parts = [outcome, f"(The open note was {prompting.escape(one.active_file)}.)" if one.active_file else ""]
            text = "\n\n".join(filter(None, [*parts, one.content]))
            model_messages.append(ModelRequest(parts=[UserPromptPart(content=text, timestamp=one.timestamp)]))
            outcome = ""
        else:
            edits = [edit.as_dict() for edit in one.proposed_edits]
            text = json.dumps({"summary": one.content, "edits": edits}, ensure_ascii=False)
            model_messages.append(ModelResponse(parts=[TextPart(content=text)], timestamp=one.timestamp))
            outcome = write_edit_results(one.edit_results, one.fate) if one.edit_results else ""
    if outcome:
        model_messages.append(ModelRequest(parts=[UserPromptPart(content=outcome)]))
    return model_messages


def write_edit_results(edit_results: EditResults, fate: str = "") -> str:
    """Return the results of earlier edits in words; empty for none."""
    if not edit_results.success and not edit_results.failures:
        return ""
    lines = [f"(Of your edits, {edit_results.success} could be made and {edit_results.failed} couldn't."]
    # File names and positions come from the model and from notes, so the whole text is escaped.
    lines += [f"- {one.file} {one.position}: {one.error}" for one in edit_results.failures]
    if fate:
        lines.append(f"Since then: {fate}.")
    return prompting.escape_plain("\n".join(lines)) + ")"


_MAX_LISTED: Final = 60
_BLOCK_REDRAWN: Final = "a pending edit was changed, and its block in the note was rewritten"
_MAX_REASON: Final = 200


TASK: Final = StageSpec(
    prompt="task", corrections=1, correcting="some edits can't be made: the model may correct itself once"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskAgentInput:
    """A task with everything that was gathered for it."""

    task: str
    context: UnifiedContext
    current: str = ""
    """The open note; empty for none."""
    chat_history: Sequence[ChatMessage] = ()
    pipeline: PipelineContext = field(default_factory=PipelineContext)
    mark: str = ""
    """The mark of the turn's blocks."""
    repair: str = ""
    """The prompt for repairing citations; empty to skip that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskAgentResult:
    """The result of a task."""

    summary: str
    """The answer, or a description of the changes; its citations are verified."""
    checked: CheckedAnswer
    edits: tuple[ValidatedEdit, ...] = ()
    proposal: Submission | None = None
    """The proposal that waits for the person; None for none."""
    changed_blocks: tuple[str, ...] = ()
    """Ids of proposals whose pending blocks were changed."""
    opened: tuple[NotePath, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def results(self) -> EditResults:
        """Return the number of edits that could be made, and the failures of the others."""
        failures = tuple(
            EditFailure(
                file=one.instruction.file,
                error=one.error.message,
                code=one.error.code,
                position=one.instruction.position,
            )
            for one in self.edits
            if one.error is not None
        )
        return EditResults(success=len(self.edits) - len(failures), failures=failures)


class TaskRun:
    """The execution of one task; made anew for each."""

    def __init__(self, agent: StageAgent[EditRules], context: Context, task_input: TaskAgentInput) -> None:
        """Prepare the task.

        Args:
            agent: The model, and what it may edit.
            context: The vault, as the agent sees it.
            task_input: The task, with everything that was gathered for it.
        """
        self._agent = agent
        self._input = task_input
        self._context = context
        self._mark = task_input.mark or prompting.new_mark()
        self.usage = RunUsage()
        self.messages: list[ModelMessage] = []
        """The conversation so far."""

    async def run(self, report: Callable[[str], None]) -> TaskAgentResult:
        """Carry out the task.

        Args:
            report: Receives the progress in words.
        """
        task_input, rules = self._input, self._agent.settings
        shown = task_input.context
        narrowed = await asyncio.to_thread(edits.narrow_context, self._context, rules, task_input.current, shown.paths)
        constraints = EditConstraints(
            context=narrowed,
            rules=rules,
            shown_hashes={one.note.path: one.note.hash for one in shown.notes},
            whole_lines={shown.cut: shown.whole_lines} if shown.cut else {},
        )
        report("the task agent is working")
        request_scope = constraints.context.submit_options
        allowed = sorted(request_scope.scope.paths or ()) if request_scope else []
        escaped_paths = [prompting.escape(str(path)) for path in allowed[:_MAX_LISTED]]
        current = prompting.escape(task_input.current) if task_input.current else ""
        system = [write_edit_rules(rules, escaped_paths, current), write_prior_section(task_input.pipeline)]
        web_blocks = write_web_blocks(task_input.pipeline.web, self._mark)
        prompt = [
            "The notes:",
            task_input.context.text or "(No notes were given.)",
            *(["From the web:", web_blocks] if web_blocks else []),
            f"The task: {task_input.task}",
        ]
        written = await self._agent.ask(
            TextTask(
                system="\n\n".join(filter(None, system)),
                prompt="\n\n".join(prompt),
                output=str,
                read=lambda text: _read_reply(constraints, text),
                history=write_history(task_input.chat_history),
                settings=_json_settings(self._agent.model),
                report=report,
            ),
            self.usage,
            self.messages,
        )
        reply, checked = written.reply
        result = await self._finish(constraints, reply, checked)
        given_up = list_given_up(written.corrected[1], checked) if written.corrected else []
        return replace(result, edits=(*result.edits, *given_up), notices=(*result.notices, *written.notices))

    async def _finish(
        self, constraints: EditConstraints, reply: TaskReply, checked: list[ValidatedEdit]
    ) -> TaskAgentResult:
        _, in_blocks = await asyncio.to_thread(edits.split_block_edits, constraints, reply.edits)
        changed, made_in_blocks = await asyncio.to_thread(edits.change_blocks, constraints, in_blocks)
        text, left_out = prompting.sanitize_answer(reply.summary)
        proposal, checked, notices = await asyncio.to_thread(
            _propose_checked, constraints, checked, text or self._input.task
        )
        answer = await asyncio.to_thread(citations.check_citations, self._context, text)
        if answer.failures and self._input.repair:
            repairer = replace(self._agent, stage=REPAIR, prompt=self._input.repair)
            answer = await citations.repair_citations(answer, self._context, repairer, self.usage)
        answer = citations.drop_failed_citations(answer)
        return TaskAgentResult(
            summary=answer.answer,
            checked=answer,
            edits=(*checked, *made_in_blocks),
            proposal=proposal,
            changed_blocks=changed,
            opened=tuple(edits.list_opened_notes(checked)),
            notices=(*notices, *left_out, *((_BLOCK_REDRAWN,) if changed else ())),
        )


def _propose_checked(
    constraints: EditConstraints, checked: list[ValidatedEdit], reason: str
) -> tuple[Submission | None, list[ValidatedEdit], tuple[str, ...]]:
    """Propose the edits that can be made; where a note has changed meanwhile, its edits are returned as failures."""
    try:
        # Without locks a note may change between check and proposal: check again and retry once.
        submission = edits.propose_edits(constraints, checked, " ".join(reason.split())[:_MAX_REASON])
    except KnapError:
        rechecked = edits.check_edits(constraints, [one.instruction for one in checked])
        try:
            submission = edits.propose_edits(constraints, rechecked, " ".join(reason.split())[:_MAX_REASON])
        except KnapError as error:
            failed = [
                ValidatedEdit(instruction=one.instruction, path=one.path, kind=one.kind, error=error)
                for one in rechecked
            ]
            return None, failed, ()
        checked = rechecked
    return submission, checked, submission.notices if submission else ()


def _read_reply(constraints: EditConstraints, text: str) -> Reading[tuple[TaskReply, list[ValidatedEdit]]]:
    """Read a reply and check its edits; those that can't be made are what the model may correct.

    Raises:
        BadInput: It isn't a reply.
    """
    reply = edits.parse_reply(text)
    checked = edits.check_edits(constraints, edits.split_block_edits(constraints, reply.edits)[0])
    lines: list[str] = []
    for one in checked:
        if one.error is not None:
            hint = f" ({one.error.hint})" if one.error.hint else ""
            lines.append(f"- {one.instruction.file} {one.instruction.position}: {one.error.message}{hint}")
    if not lines:
        return Reading(reply=(reply, checked))
    failure_lines = prompting.escape_plain("\n".join(lines))
    ask = (
        "Nothing was kept yet. Reply once more with the whole JSON object: all edits that you want, those that were "
        "right among them, with line numbers as before. Leave out what is not allowed."
    )
    return Reading(reply=(reply, checked), complaint=f"These edits can't be made:\n\n{failure_lines}\n\n{ask}")


def list_given_up(first: Sequence[ValidatedEdit], second: Sequence[ValidatedEdit]) -> list[ValidatedEdit]:
    """Return the refused edits of a first reply that the second one neither repeats nor corrects.

    Each edit of a file that only the second reply has counts as the correction of one refused edit of that file.

    Args:
        first: The edits of the first reply, checked.
        second: Those of the second.
    """
    before = [one.instruction for one in first]
    after = [one.instruction for one in second]
    corrections = Counter(one.path for one in second if one.instruction not in before)
    given_up: list[ValidatedEdit] = []
    for one in first:
        if one.error is None or one.instruction in after:
            continue
        if corrections[one.path]:
            corrections[one.path] -= 1
        else:
            given_up.append(one)
    return given_up


def _json_settings(model: Model) -> ModelSettings | None:
    """Return the setting for JSON replies where the provider is known to enforce it; others may reject the request."""
    if isinstance(model, FallbackModel):
        return None
    is_enforced = model.system in {"ollama", "fireworks"} or (model.base_url or "").startswith(
        "https://api.openai.com/"
    )
    return ModelSettings(extra_body={"response_format": {"type": "json_object"}}) if is_enforced else None

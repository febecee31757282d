"""Tell the agent that does a task what the agents before it did, and what became of its earlier edits."""

import json
from collections.abc import Sequence
from typing import Final

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart

from knapper.agents import untrusted
from knapper.agents.research.records import WebResult
from knapper.agents.scout.records import ScoutResult
from knapper.agents.task.records import ChatMessage, EditResults, PipelineContext
from knapper.jsontypes import JSONValue

_RELEVANT: Final = 10
_EXTRACT: Final = 4_000


def section(pipeline: PipelineContext) -> str:
    """Write the part of the system prompt about the agents before; empty where there were none."""
    parts: list[str] = []
    if pipeline.scout is not None:
        parts.append(_scout(pipeline.scout))
    if pipeline.web is not None:
        parts.append(_web(pipeline.web))
    return "\n\n".join(["## Prior agent context", *parts]) if parts else ""


def sources(web: WebResult | None, mark: str) -> str:
    """Write what was found on the web as blocks; empty where nothing was."""
    if web is None or not (web.sources or web.findings):
        return ""
    blocks: list[str] = []
    if web.findings:
        blocks.append(untrusted.enclose("web findings", untrusted.escape(web.findings), mark))
    for one in web.sources:
        told: dict[str, JSONValue] = {
            "title": one.title,
            "url": one.url,
            "text": (one.extracted or one.snippet)[:_EXTRACT],
        }
        if one.date:
            told["date"] = one.date
        blocks.append(untrusted.enclose("web", untrusted.escape(told), mark))
    return "\n\n".join(blocks)


def messages(history: Sequence[ChatMessage]) -> list[ModelMessage]:
    """Write earlier messages as the model said and heard them, with what became of its edits."""
    made: list[ModelMessage] = []
    outcome = ""
    for one in history:
        if one.role == "user":
            parts = [outcome, f"(The open note was {untrusted.escape(one.active_file)}.)" if one.active_file else ""]
            said = "\n\n".join(filter(None, [*parts, one.content]))
            made.append(ModelRequest(parts=[UserPromptPart(content=said, timestamp=one.timestamp)]))
            outcome = ""
        else:
            edits = [edit.as_dict() for edit in one.proposed_edits]
            said = json.dumps({"summary": one.content, "edits": edits}, ensure_ascii=False)
            made.append(ModelResponse(parts=[TextPart(content=said)], timestamp=one.timestamp))
            outcome = results(one.edit_results, one.fate) if one.edit_results else ""
    if outcome:
        made.append(ModelRequest(parts=[UserPromptPart(content=outcome)]))
    return made


def results(found: EditResults, fate: str = "") -> str:
    """Tell what became of edits."""
    if not found.success and not found.failures:
        return ""
    told = [f"(Of your edits, {found.success} could be made and {found.failed} couldn't."]
    told += [f"- {one.file} {one.position}: {one.error}" for one in found.failures]
    if fate:
        told.append(f"Since then: {fate}.")
    return untrusted.plain("\n".join(told)) + ")"


def _scout(found: ScoutResult) -> str:
    lines = [
        "An agent explored the vault and chose the notes that you are given.",
        f"- confidence: {found.confidence}",
        f"- its reasoning: {untrusted.escape(found.reasoning)}",
        f"- what it did: {untrusted.escape(found.exploration_summary)}",
    ]
    ranked = sorted(found.selected_notes, key=lambda one: -(one.semantic_score or 0.0))[:_RELEVANT]
    notes = [f"  - {untrusted.escape(str(one.path))}: {one.why()}" for one in ranked]
    return "\n".join([*lines, "- most relevant notes:", *notes] if notes else lines)


def _web(found: WebResult) -> str:
    queries = ", ".join(untrusted.escape(one) for one in found.search_queries) or "none"
    done = "searched the web" if found.search_performed else "didn't search the web"
    return "\n".join(
        [
            f"An agent {done}.",
            f"- why: {untrusted.escape(found.evaluation_reasoning)}",
            f"- queries: {queries}",
            f"- sources: {len(found.sources)}, given below as blocks",
        ]
    )

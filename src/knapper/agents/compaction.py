"""Make a conversation shorter between turns, never within one.

What tools answered becomes a stub that says what was found and where; the marks of that stay with us, and are in
nothing that a provider is sent. A conversation that is still too long is summed up at its beginning.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model
from pydantic_ai.usage import RunUsage
from pydantic_ai_harness.compaction import SummarizingCompaction, compact_now, estimate_message_tokens

from knapper.agents import failures, untrusted
from knapper.agents.halves import Whole
from knapper.jsontypes import JSONValue

MARK: Final = "compacted"
"""The key in a part's metadata, which pydantic-ai keeps from the model."""
_MAX_FILES: Final = 20
_NAMED: Final = ("path", "hash", "heading", "start_line", "end_line", "change_id", "proposal_id", "message", "reason")
_PLACEHOLDER: Final = "{messages}"
Answers = Mapping[str, Mapping[str, JSONValue]]


def stubbed(messages: Sequence[ModelMessage], answers: Answers) -> list[ModelMessage]:
    """Put a stub in the place of each tool's answer, and drop the system prompts.

    Args:
        messages: Of a turn that has ended.
        answers: What the tools answered, by the calls' ids.
    """
    return [_request(one, answers) if isinstance(one, ModelRequest) else one for one in messages]


def stub(answer: Mapping[str, JSONValue]) -> dict[str, JSONValue]:
    """Say in a few words what a tool answered.

    Five hits in two notes give ``{"status": "success", "result_count": 5, "files": ["a.md", "b.md"]}``; a note that was
    read gives its path, hash and lines; a change gives its id; an error gives its text and code.
    """
    if answer.get("success") is False:
        return {"status": "error", **{name: answer[name] for name in ("error", "code") if name in answer}}
    told: dict[str, JSONValue] = {"status": "success"}
    results = answer.get("results")
    if isinstance(results, list):
        files = list(dict.fromkeys(path for row in results if (path := _path(row))))
        kept: list[JSONValue] = [*files[:_MAX_FILES]]
        told |= {"result_count": len(results), "files": kept}
        if len(files) > _MAX_FILES:
            told["more_files"] = len(files) - _MAX_FILES
        if isinstance(answer.get("total"), int):
            told["total"] = answer["total"]
        return told
    if "status" in answer:
        told["result"] = answer["status"]
    return told | {name: answer[name] for name in _NAMED if answer.get(name)}


def is_stub(part: ToolReturnPart) -> bool:
    """Tell whether a tool's answer was shortened already."""
    metadata: object = part.metadata
    return isinstance(metadata, Mapping) and MARK in metadata


def completed(messages: Sequence[ModelMessage], answers: Answers) -> list[ModelMessage]:
    """Put in what tools answered of which a conversation that was cut short doesn't know; `stubbed` says what it was.

    Args:
        messages: Of a turn that has ended.
        answers: What the tools answered, by the calls' ids.
    """
    kept = list(messages)
    place = next((at for at in range(len(kept) - 1, -1, -1) if isinstance(kept[at], ModelResponse)), -1)
    asked = kept[place] if place >= 0 else None
    after = kept[place + 1] if place + 1 < len(kept) else None
    known = {part.tool_call_id for part in after.parts if isinstance(part, ToolReturnPart)} if after else set[str]()
    calls = asked.tool_calls if isinstance(asked, ModelResponse) else []
    missing = [
        ToolReturnPart(tool_name=call.tool_name, content="", tool_call_id=call.tool_call_id)
        for call in calls
        if call.tool_call_id in answers and call.tool_call_id not in known
    ]
    if missing:
        parts = [*(after.parts if isinstance(after, ModelRequest) else ()), *missing]
        kept[place + 1 :] = [ModelRequest(parts=parts)]
    return kept


def closed(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """End a conversation that was cut short so that it can go on: calls that nobody answered are left out."""
    kept = list(messages)
    while kept and isinstance(kept[-1], ModelResponse) and kept[-1].tool_calls:
        last = kept.pop()
        parts = [part for part in last.parts if isinstance(part, TextPart)]
        if parts:
            kept.append(replace(last, parts=parts))
    return kept


def answered(messages: Sequence[ModelMessage], answer: str) -> list[ModelMessage]:
    """Put the answer that the person got in the place of the one that the model wrote."""
    kept = list(messages)
    if kept and isinstance(kept[-1], ModelResponse):
        others = [part for part in kept[-1].parts if not isinstance(part, TextPart)]
        kept[-1] = replace(kept[-1], parts=[*others, TextPart(content=answer)])
    else:
        kept.append(ModelResponse(parts=[TextPart(content=answer)]))
    return kept


def size(messages: Sequence[ModelMessage]) -> int:
    """Estimate a conversation's length in tokens."""
    return sum(estimate_message_tokens(messages))


async def summarised(
    messages: Sequence[ModelMessage], model: Model, *, budget: int, prompt: str, usage: RunUsage
) -> list[ModelMessage]:
    """Sum up the beginning of a conversation that is longer than its budget; half of that stays as it is.

    Where the model fails, the beginning is left out instead.

    Args:
        messages: Between two turns.
        model: Writes the summary.
        budget: In tokens.
        prompt: Asks for it; the conversation goes in the place of ``{messages}``.
        usage: What it costs is added here.
    """
    kept = list(messages)
    if size(kept) <= budget:
        return kept
    if _PLACEHOLDER not in prompt:
        prompt = f"{prompt}\n\n{_PLACEHOLDER}"
    strategy = SummarizingCompaction[None](
        max_tokens=budget, keep_tokens=budget // 2, summary_prompt=prompt, preserve_first_user_message=False
    )
    try:
        shorter = await compact_now(strategy, kept, model=Whole(model), usage=usage)
    except failures.CAUGHT:
        shorter = kept
    return shorter if size(shorter) < size(kept) and size(shorter) <= budget else _tail(kept, budget)


def _tail(messages: list[ModelMessage], budget: int) -> list[ModelMessage]:
    """Leave out whole turns at the beginning until the rest fits; the last one always stays."""
    begins = [
        number
        for number, one in enumerate(messages)
        if isinstance(one, ModelRequest) and any(isinstance(part, UserPromptPart) for part in one.parts)
    ]
    for begin in begins:
        if size(messages[begin:]) <= budget:
            return messages[begin:]
    return messages[begins[-1] :] if begins else messages


def _request(request: ModelRequest, answers: Answers) -> ModelRequest:
    parts = [_shortened(part, answers) if isinstance(part, ToolReturnPart) else part for part in request.parts]
    return replace(request, parts=parts, instructions=None)


def _shortened(part: ToolReturnPart, answers: Answers) -> ToolReturnPart:
    if is_stub(part):
        return part
    known = answers.get(part.tool_call_id)
    told = stub(known) if known is not None else {"status": "success" if part.outcome == "success" else "error"}
    return replace(part, content=untrusted.escape(told), metadata={MARK: True})


def _path(row: JSONValue) -> str:
    if isinstance(row, str):
        return row
    if not isinstance(row, dict):
        return ""
    return next((str(row[name]) for name in ("source", "path", "file") if row.get(name)), "")

"""Models for the pipeline that say what a test tells them to, by which agent asks."""

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic_ai.messages import FinishReason, ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCalls, FunctionModel

from knapper.agents.model import replies as model_replies
from tests.agents.scripted import Call, Reply, delta

Agent = str
"""scout, web, task, orchestrator, repair or rewrite: told by the beginning of the system prompt."""
_BEGINNINGS: Mapping[str, Agent] = {
    "You find the notes": "scout",
    "You find on the web": "web",
    "You do what a person asks": "task",
    "You decide which agent": "orchestrator",
    "You wrote an answer": "repair",
    "You write search queries": "rewrite",
}


@dataclass
class Cast:
    """Answer each agent by a script of its own; the last reply again and again."""

    scripts: Mapping[Agent, Sequence[Reply | Callable[[list[ModelMessage]], Reply]]]
    asked: dict[Agent, list[list[ModelMessage]]] = field(default_factory=dict[Agent, list[list[ModelMessage]]])
    infos: dict[Agent, list[AgentInfo]] = field(default_factory=dict[Agent, list[AgentInfo]])
    finish: FinishReason | None = None
    """Why whole replies end."""

    def open(self) -> FunctionModel:
        return FunctionModel(stream_function=self._stream, function=self._whole)

    def system(self, agent: Agent, number: int = 0) -> str:
        return self.infos[agent][number].instructions or ""

    def prompts(self, agent: Agent, number: int = -1) -> str:
        """Give all that the agent was told in one request."""
        return model_replies.format_conversation(self.asked[agent][number])

    async def _stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
        agent, reply = self._next(messages, info)
        for number, said in enumerate(reply):
            if isinstance(said, str):
                yield said
            else:
                yield {number: delta(said, f"{agent}{len(self.asked[agent])}-{number}")}

    def _whole(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        _, reply = self._next(messages, info)
        return ModelResponse(
            parts=[
                TextPart(content=said)
                if isinstance(said, str)
                else ToolCallPart(tool_name=said.name, args=json.dumps(said.arguments))
                for said in reply
            ],
            finish_reason=self.finish,
        )

    def _next(self, messages: list[ModelMessage], info: AgentInfo) -> tuple[Agent, Reply]:
        system = info.instructions or ""
        agent = next((name for beginning, name in _BEGINNINGS.items() if system.startswith(beginning)), "other")
        self.asked.setdefault(agent, []).append(list(messages))
        self.infos.setdefault(agent, []).append(info)
        script = self.scripts[agent]
        chosen = script[min(len(self.asked[agent]), len(script)) - 1]
        return agent, chosen(messages) if callable(chosen) else chosen


def task(summary: str = "Done.", *edits: tuple[str, str, str] | tuple[str, str]) -> Reply:
    """Reply as the task agent is asked to."""
    rows = [{"file": edit[0], "position": edit[1], "content": edit[2] if len(edit) > 2 else ""} for edit in edits]
    return [json.dumps({"summary": summary, "edits": rows})]


def select(*paths: str, confidence: str = "done", reasoning: str = "they fit") -> Call:
    return Call("update_selection", {"selected_paths": list(paths), "reasoning": reasoning, "confidence": confidence})

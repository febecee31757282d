"""Replay recorded conversations: the replies as they were, the tools for real, over a copy of the documentation."""

import asyncio
import itertools
import json
import re
import shutil
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import pytest
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, DeltaToolCalls, FunctionModel

from knapper.agents.chat.conversations import Conversations
from knapper.agents.chat.turn import Message
from knapper.agents.events import Done, Event, ProposalEvent, Text, ToolCall, ToolResult
from knapper.agents.sessions.store import SessionStore
from knapper.agents.work_store import open_work
from knapper.changes.writer import SubmitOptions
from knapper.tools.context import Context
from tests.agents import scripted
from tests.agents.scripted import NOW, Call
from tests.tools import opened

ROOT = Path(__file__).parents[2]
RECORDINGS = sorted(Path(__file__).with_name("recordings").glob("*.md"))
FENCE = re.compile(r"^```(person|model|shown)\n(.*?)^```$", re.M | re.S)


@dataclass
class Turn:
    said: str
    replies: list[str] = field(default_factory=list[str])
    shown: str = ""


def turns(text: str) -> Iterator[Turn]:
    turn: Turn | None = None
    for kind, body in FENCE.findall(text):
        if kind == "person":
            turn = Turn(said=body.strip())
        elif turn and kind == "model":
            turn.replies.append(body.rstrip("\n"))
        elif turn:
            yield replace(turn, shown=body)


@dataclass
class Recorded:
    """Say the recorded replies."""

    replies: list[str]
    places: tuple[int, int] = (0, 0)

    def open(self) -> FunctionModel:
        from pydantic_ai.messages import ModelResponse, TextPart  # noqa: PLC0415

        def whole(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            del messages, info
            return ModelResponse(parts=[TextPart(content=self.next())])

        return FunctionModel(stream_function=self._stream, function=whole)

    def next(self) -> str:
        first, last = self.places
        return self.replies.pop(0).replace("<first>", str(first)).replace("<last>", str(last))

    async def _stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
        del messages, info
        for number, line in enumerate(self.next().splitlines(keepends=True)):
            found = re.fullmatch(r"CALL (\w+) (\{.*\})\n?", line)
            if found:
                yield {number: scripted.delta(Call(found[1], found[2]), f"{len(self.replies)}-{number}")}
            else:
                yield line

    def listen(self, event: Event) -> None:
        if isinstance(event, ToolResult) and isinstance(event.answer.get("start_line"), int):
            self.places = cast("tuple[int, int]", (event.answer["start_line"], event.answer["end_line"]))


def shown(events: list[Event]) -> Iterator[str]:
    said = ""
    for event in events:
        if isinstance(event, Text):
            said += event.text
            continue
        if said.strip():
            yield f"text: {said.strip()}"
        said = ""
        yield from line(event)


def sorted_results(lines: list[str]) -> list[str]:
    """Sort results that come one after another: those of reads come as they end."""
    groups = itertools.groupby(lines, lambda line: line.startswith(("result: ", "error: ")))
    return [line for is_result, group in groups for line in (sorted(group) if is_result else group)]


def line(event: Event) -> Iterator[str]:
    match event:
        case ToolCall():
            given = {**event.arguments, "path": event.arguments.get("path", event.arguments.get("file"))}
            more = str(given["path"]) if given["path"] else ""
            yield f"call: {event.name} {more or ('n_results=5' if given.get('n_results') == 5 else '')}".rstrip()
        case ToolResult():
            yield f"{'result' if event.success else 'error'}: {event.name} {event.summary}"
        case ProposalEvent():
            files = cast("list[dict[str, object]]", event.proposal["files"])
            yield f"proposal: {files[0]['path']}"
        case Done():
            counts = [(event.citations, "citation"), (event.removed, "dropped"), (event.tools, "tool")]
            counts.append((event.proposals, "proposal"))
            told = [f"{len(one)} {what}{'' if len(one) == 1 or what == 'dropped' else 's'}" for one, what in counts]
            yield f"done: {event.state}, {', '.join(told)}"
            for one in cast("list[dict[str, object]]", event.citations):
                yield f"cited: {one['path']} {one['heading']}"
        case _:
            pass


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: path.stem)
def test_a_recorded_conversation_goes_as_it_went(recording: Path, tmp_path: Path) -> None:
    vault = opened.vault(tmp_path, {})
    shutil.copytree(ROOT / "docs", vault.root, dirs_exist_ok=True)
    folder = tmp_path / "chats"
    folder.mkdir()
    work = open_work(folder)
    sessions = SessionStore(work, lambda: NOW)
    replayed = 0
    with vault.open("agent") as context:
        context.index.refresh()

        def open_context(run: str) -> Context:
            return replace(context, submit_options=SubmitOptions(run=run))

        talks = Conversations(store=sessions, context_of=open_context)
        session = talks.route("index.md")
        for turn in turns(recording.read_text(encoding="utf-8")):
            replayed += 1
            events = replay(talks, session.id, turn)
            told = "".join(f"{one}\n" for one in sorted_results(list(shown(events))))
            pattern = ".*".join(map(re.escape, turn.shown.split("<any>")))

            assert re.fullmatch(pattern, told), f"{turn.said}\n{told}"
    exchanges = sessions.turns(session.id)
    work.shut()

    assert len(exchanges) == replayed == recording.read_text(encoding="utf-8").count("```person")
    assert "vault-data" not in json.dumps([dict(one.outcome) for one in exchanges])
    assert (vault.root / "how-to" / "undo-changes.md").read_bytes() == (
        ROOT / "docs" / "how-to" / "undo-changes.md"
    ).read_bytes()


def replay(talks: Conversations, session: str, turn: Turn) -> list[Event]:
    model = Recorded(list(turn.replies))
    events: list[Event] = []

    def tell(event: Event) -> None:
        model.listen(event)
        events.append(event)

    _ = asyncio.run(talks.reply(scripted.chat(model.open()), session, Message(text=turn.said), tell))
    assert model.replies == []
    return events

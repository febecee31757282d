"""Let a real model answer: the loop with its tools, streaming, and an answer that has to be JSON; print what came.

This is no figure to compare, but a look at what a model can do: `python -m bench model --model NAME@ADDRESS`.
"""

import argparse
import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, Field
from pydantic_ai import Agent, NativeOutput

from bench import vaults
from bench.frame import Report, Row
from bench.places import Places
from knapper import app
from knapper.agents.chat.turn import ChatTurn, Message
from knapper.agents.events import Done, Error, Event, Text, ToolCall, ToolResult
from knapper.agents.model import usage
from knapper.app import chats
from knapper.config import EmbeddingSettings, ModelSettings, Settings, Vault

SUMMARY = "a real model with the tools, streaming and JSON (needs --model)"
_NOTES = {
    "Garden.md": "# Garden\n\n## Fence\n\nThe fence is to be green.\n",
    "Guests.md": "# Guests\n\nAda and Grace come on Sunday.\n",
}
_ASKED = ("Read the note Garden.md", "Search the vault for fence", "List the notes", "Who comes on Sunday?")


class Verdict(BaseModel):
    """Say what a note is about."""

    topic: str = Field(max_length=20)
    is_about_people: bool
    score: int = Field(ge=0, le=10)


@dataclass
class Seen:
    """Hold what one question came to."""

    question: str
    first_s: float
    whole_s: float
    pieces: int
    calls: list[str]
    failed: int
    state: str
    answer: str


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", default="", help="such as ollama:qwen3, or NAME@http://127.0.0.1:8080/v1")
    parser.add_argument("--timeout", type=int, default=600, help="seconds without a sign of it (default: 600)")


def run(places: Places, options: argparse.Namespace) -> Report | str:
    if not options.model:
        return "no --model is given"
    with vaults.scratch(places.cache) as folder:
        root = _fill(folder / "vault")
        settings = Settings(
            choice=Vault(name="vault", path=root),
            state_dir=folder / "state",
            embeddings=EmbeddingSettings(kind="none"),
            model=ModelSettings(name=options.model, timeout_s=options.timeout, retries=0, tools="essential"),
            config_file=folder / "config.toml",
        )
        with app.open_hub(settings) as hub, chats.open_chats(hub) as opened:
            seen = [asyncio.run(_ask(opened, question)) for question in _ASKED]
            verdict = asyncio.run(_judge(opened))
    return _report(options.model, seen, verdict)


def _fill(root: Path) -> Path:
    root.mkdir()
    for name, text in _NOTES.items():
        (root / name).write_text(text, encoding="utf-8")
    return root


async def _ask(opened: chats.VaultChats, question: str) -> Seen:
    chat = opened.chat()
    turn = ChatTurn(chat, opened.conversations.context_of("bench"), Message(text=question, run="bench"))
    events: list[Event] = []
    times: list[float] = []
    began = time.perf_counter()

    def tell(event: Event) -> None:
        events.append(event)
        times.append(time.perf_counter() - began)

    await turn.run(tell)
    first = next((at for event, at in zip(events, times, strict=True) if isinstance(event, Text | ToolCall)), 0.0)
    done = events[-1]
    error = next((event for event in events if isinstance(event, Error)), None)
    return Seen(
        question=question,
        first_s=first,
        whole_s=times[-1],
        pieces=sum(isinstance(event, Text) for event in events),
        calls=[event.name for event in events if isinstance(event, ToolCall)],
        failed=sum(isinstance(event, ToolResult) and not event.success for event in events),
        state=error.code if error else done.state if isinstance(done, Done) else "?",
        answer=done.answer if isinstance(done, Done) else "",
    )


async def _judge(opened: chats.VaultChats) -> str:
    model = opened.chat().model
    agent = Agent(model, output_type=NativeOutput(Verdict), retries=0)
    try:
        async with model:
            said = await agent.run(f"What is this note about?\n\n{_NOTES['Guests.md']}")
    except usage.MODEL_ERRORS as error:
        return f"none ({type(error).__name__})"
    return said.output.model_dump_json()


def _report(model: str, seen: Sequence[Seen], verdict: str) -> Report:
    rows: list[Row] = []
    for one in seen:
        rows += [
            Row(what=f"{one.question}: first sign", values=[one.first_s], unit="s"),
            Row(what=f"{one.question}: whole", values=[one.whole_s], unit="s"),
        ]
    remarks = [
        f"{one.question}: {one.state}, calls {', '.join(one.calls) or 'none'} ({one.failed} failed), "
        f"{one.pieces} pieces of text; it said: {' '.join(one.answer.split())[:160] or 'nothing'}"
        for one in seen
    ]
    return Report(
        title="A real model",
        about=f"The model {model} with the essential tools over two notes.",
        rows=rows,
        remarks=[*remarks, f"An answer in JSON: {verdict}"],
    )

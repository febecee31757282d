"""Let sessions with slow models and tools go on, and measure how long another one's first byte takes beside them."""

import argparse
import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from bench import frame, vaults
from bench.frame import Goal, Report, Row
from bench.places import Places
from knapper import app
from knapper.agents.chat.turn import ChatConfig, Message, TurnCaps
from knapper.agents.events import Event, Text
from knapper.agents.prompting import Prompts
from knapper.app import chats
from knapper.config import EmbeddingSettings, Settings, Vault
from knapper.tools.context import Context
from knapper.tools.registry import ToolSpec

SUMMARY = "a session's first byte beside slow ones"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sessions", type=int, default=20, help="slow sessions (default: 20)")
    parser.add_argument("--rounds", type=int, default=30, help="messages measured (default: 30)")


def run(places: Places, options: argparse.Namespace) -> Report | str:
    with vaults.scratch(places.cache) as folder:
        root = folder / "vault"
        root.mkdir()
        (root / "A.md").write_text("# A\n", encoding="utf-8")
        settings = Settings(
            choice=Vault(name="vault", path=root),
            state_dir=folder / "state",
            embeddings=EmbeddingSettings(kind="none"),
            config_file=folder / "config.toml",
        )
        with app.open_hub(settings) as hub, chats.open_chats(hub) as opened:
            alone, beside = asyncio.run(_measure(opened, options))
    delay = frame.percentile(beside, 0.5) - frame.percentile(alone, 0.5)
    rows = [
        Row(what="first byte alone, median", values=[frame.percentile(alone, 0.5)], unit="ms"),
        Row(what="first byte beside slow ones, median", values=[frame.percentile(beside, 0.5)], unit="ms"),
        Row(what="first byte beside slow ones, 95th percentile", values=[frame.percentile(beside, 0.95)], unit="ms"),
        Row(what="delay, median", values=[delay], unit="ms", goal=Goal(limit=50)),
    ]
    about = (
        f"{options.sessions} sessions of which the models call four tools at once that sleep for half a second, again "
        f"and again; beside them another session's message, {options.rounds} times."
    )
    return Report(title="Sessions side by side", about=about, rows=rows)


async def _measure(opened: chats.VaultChats, options: argparse.Namespace) -> tuple[list[float], list[float]]:
    quick = opened.store.begin().id
    _ = await _first(opened, quick)
    alone = [await _first(opened, quick) for _ in range(options.rounds)]
    slow = [asyncio.create_task(_go_on(opened, opened.store.begin().id)) for _ in range(options.sessions)]
    await asyncio.sleep(1)
    beside = [await _first(opened, quick) for _ in range(options.rounds)]
    for task in slow:
        task.cancel()
    await asyncio.wait(slow)
    return alone, beside


async def _first(opened: chats.VaultChats, session: str) -> float:
    """Give how long the first byte takes, in milliseconds."""
    began = time.perf_counter()
    found: list[float] = []

    def tell(event: Event) -> None:
        if isinstance(event, Text) and not found:
            found.append((time.perf_counter() - began) * 1_000)

    _ = opened.store.clear(session)
    await opened.conversations.reply(_chat(_quick), session, Message(text="hello"), tell)
    return found[0]


async def _go_on(opened: chats.VaultChats, session: str) -> None:
    with suppress(asyncio.CancelledError):
        while True:
            await opened.conversations.reply(_chat(_slow), session, Message(text="work"), lambda _: None)


async def _quick(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
    del messages, info
    yield "Here."


async def _slow(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
    del info
    await asyncio.sleep(0.2)
    for number in range(4):
        yield {number: DeltaToolCall(name="sleep", json_args=f'{{"seed": "{len(messages)}-{number}"}}')}


def _chat(stream: object) -> ChatConfig:
    def sleep(context: Context, seed: str) -> dict[str, object]:
        """Sleep."""
        del context, seed
        time.sleep(0.5)
        return {"success": True}

    chat = ChatConfig(
        model=FunctionModel(stream_function=stream),  # pyright: ignore[reportArgumentType] - one of the two above
        name="scripted",
        rows=(ToolSpec(function=sleep),),
        prompts=Prompts(),
        now=lambda: datetime.now(UTC),
    )
    return replace(chat, caps=TurnCaps(rounds=1_000))

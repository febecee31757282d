"""Let sessions with slow models and tools go on over HTTP, and measure another one's first byte beside them."""

import argparse
import asyncio
import contextlib
import multiprocessing
import threading
import time
from collections.abc import AsyncIterator, Generator
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from pathlib import Path

import httpx2
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from bench import frame, vaults
from bench.frame import Goal, Report, Row
from bench.places import Places
from knapper.agents.chat.turn import ChatConfig
from knapper.agents.prompting import Prompts
from knapper.app import Hub
from knapper.app.chats import VaultChats
from knapper.app.open_clients import ModelOpeners
from knapper.config import EmbeddingSettings, Settings, Vault
from knapper.config.sections import ServerSettings
from knapper.server import addresses, credentials, lifecycle, security
from knapper.server.http import app
from knapper.server.http.app import ServerRuntime
from knapper.server.http.background import JobService
from knapper.server.workers import WorkerThreads
from knapper.tools.context import Context
from knapper.tools.registry import ToolSpec

SUMMARY = "a session's first byte over HTTP beside slow ones"
_SLOW = "work"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sessions", type=int, default=20, help="slow sessions (default: 20)")
    parser.add_argument("--rounds", type=int, default=40, help="messages measured (default: 40)")


def run(places: Places, options: argparse.Namespace) -> Report | str:
    with vaults.scratch(places.cache) as folder, _serving(folder) as (address, token):
        alone, beside, health = asyncio.run(_measure(address, token, options))
    delay = frame.percentile(beside, 0.5) - frame.percentile(alone, 0.5)
    rows = [
        Row(what="first byte alone, median", values=[frame.percentile(alone, 0.5)], unit="ms"),
        Row(what="first byte alone, 95th percentile", values=[frame.percentile(alone, 0.95)], unit="ms"),
        Row(what="first byte beside slow ones, median", values=[frame.percentile(beside, 0.5)], unit="ms"),
        Row(what="first byte beside slow ones, 95th percentile", values=[frame.percentile(beside, 0.95)], unit="ms"),
        Row(what="delay, median", values=[delay], unit="ms", goal=Goal(limit=50)),
        Row(what="`/health` beside slow ones, 95th percentile", values=[frame.percentile(health, 0.95)], unit="ms"),
    ]
    about = (
        f"{options.sessions} sessions stream over HTTP while their models think for 0.2 s and call four tools at once "
        f"that sleep for half a second, again and again; beside them another one's message, {options.rounds} times. "
        "The first byte is the first word of the model. One process serves, another one asks."
    )
    return Report(title="Chats side by side", about=about, rows=rows)


@contextlib.contextmanager
def _serving(folder: Path) -> Generator[tuple[str, str]]:
    """Serve a small vault in a process of its own."""
    root = folder / "vault"
    root.mkdir()
    for number in range(100):
        (root / f"Note {number}.md").write_text(f"# Note {number}\n\nWords of it.\n", encoding="utf-8")
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(folder, there))
    process.start()
    try:
        yield here.recv()
    finally:
        here.send("stop")
        process.join()


def _serve(folder: Path, told: Connection) -> None:
    settings = Settings(
        choice=Vault(name="vault", path=folder / "vault"),
        state_dir=folder / "state",
        embeddings=EmbeddingSettings(kind="none"),
        config_file=folder / "config.toml",
        server=ServerSettings(requests_per_minute=0),
    )
    work = ServerRuntime(threads=WorkerThreads(8))
    taken = addresses.bind_socket("127.0.0.1", 0)
    found = addresses.socket_url(taken), credentials.read_or_make_token(settings.state_dir, "api")
    threading.Thread(target=lambda: (told.recv(), work.stop.cancel())).start()
    with Hub(settings) as hub:
        mounts = [lifecycle.mount_jobs(JobService(hub, ModelOpeners(chat=_chat)), hub, work.stop)]
        made = app.create_app(hub, settings.server, security.load_client_tokens(settings), work, mounts)
        lifecycle.run_uvicorn(made, taken, stop=work.stop, stop_s=10, on_start=lambda: told.send(found))


async def _measure(
    address: str, token: str, options: argparse.Namespace
) -> tuple[list[float], list[float], list[float]]:
    headers = {"authorization": f"Bearer {token}"}
    limits = httpx2.Limits(max_connections=None)
    async with httpx2.AsyncClient(
        base_url=address, headers=headers, timeout=60, limits=limits, trust_env=False
    ) as client:
        quick = await _begin(client)
        for _ in range(3):
            await _first(client, quick)
        alone = [await _first(client, quick) for _ in range(options.rounds)]
        slow = [asyncio.create_task(_go_on(client, await _begin(client))) for _ in range(options.sessions)]
        await asyncio.sleep(2)
        beside, health = list[float](), list[float]()
        for _ in range(options.rounds):
            beside.append(await _first(client, quick))
            began = time.perf_counter()
            await client.get("/health")
            health.append((time.perf_counter() - began) * 1_000)
        for task in slow:
            task.cancel()
        await asyncio.wait(slow)
    return alone, beside, health


async def _begin(client: httpx2.AsyncClient) -> str:
    return (await client.post("/sessions")).json()["session"]["id"]


async def _first(client: httpx2.AsyncClient, session: str) -> float:
    """Give how long the model's first word takes, in milliseconds."""
    await client.post(f"/sessions/{session}/clear")
    began, found = time.perf_counter(), 0.0
    async with client.stream("POST", f"/sessions/{session}/chat/stream", json={"message": "hello"}) as stream:
        async for line in stream.aiter_lines():
            if line == "event: text" and not found:
                found = (time.perf_counter() - began) * 1_000
    return found


async def _go_on(client: httpx2.AsyncClient, session: str) -> None:
    with contextlib.suppress(asyncio.CancelledError, httpx2.TransportError):
        while True:
            path = f"/sessions/{session}/chat/stream"
            async with client.stream("POST", path, json={"message": _SLOW}) as stream:
                async for _ in stream.aiter_lines():
                    pass


async def _stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
    del info
    if all(getattr(part, "content", "") != _SLOW for one in messages for part in one.parts):
        yield "Here."
        return
    await asyncio.sleep(0.2)
    for number in range(4):
        yield {number: DeltaToolCall(name="sleep", json_args=f'{{"seed": "{len(messages)}-{number}"}}')}


def _chat(chats: VaultChats, _model: str) -> ChatConfig:
    def sleep(context: Context, seed: str) -> dict[str, object]:
        """Sleep."""
        del context, seed
        time.sleep(0.5)
        return {"success": True}

    own = ToolSpec(function=sleep)
    return ChatConfig(
        model=FunctionModel(stream_function=_stream),
        name="scripted",
        rows=(own, *chats.hub.table.specs),
        prompts=Prompts(),
        now=lambda: datetime.now(UTC),
        meter=chats.meter,
    )

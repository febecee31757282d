"""Call a tool by each way that there is, and give its answer as JSON."""

import asyncio
import contextlib
import io
import itertools
import json
import re
from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest
from fastmcp import Client as Asking
from starlette.testclient import TestClient

from knapper import app
from knapper.agents import toolset
from knapper.cli import main
from knapper.config import ClientSettings, EmbeddingSettings, Settings, Vault, paired
from knapper.config.sections import ServerSettings
from knapper.server import security
from knapper.server.http import app as http
from knapper.server.mcp.server import build_server
from knapper.server.mcp.session import Caller, McpSession
from knapper.server.workers import WorkerThreads
from knapper.vault.access import default_grants
from tests.index import worlds
from tests.parity.examples import NOTES

CLIENT: Final = "tester"
_TOKEN: Final = "t" * 43
_MASKS: Final = (
    (re.compile(r"sha256:[0-9a-f]{64}"), "HASH"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?(\.\d+)?([+-]\d\d:\d\d|Z)?"), "TIME"),
    (re.compile(r"\d{4}-\d\d-\d\d|\b\d\d:\d\d\b"), "DAY"),
    (re.compile(r"\b[0-9a-z]{9}-[0-9a-z]{8}\b"), "ID"),
    (re.compile(r"\b[0-9a-f]{12,}\b"), "DIGEST"),
)
_NUMBERS: Final = frozenset({"size_bytes", "modified", "created", "wall_s", "peak_mb"})

Answer = dict[str, Any]
Call = Callable[[str, dict[str, Any]], Answer]


def settings(base: Path, state: Path) -> Settings:
    """Make a vault of its own, and let the tester do what an MCP client may; *state* may serve several."""
    root = worlds.fill(base / "vault", dict(NOTES)).resolve()
    (root / "memo.mp3").write_bytes(b"ID3")
    tester = ClientSettings(grants=replace(default_grants(CLIENT, "mcp")), token_hash=paired.hash_token(_TOKEN))
    return Settings(
        choice=Vault(name="v", path=root),
        clients=(tester,),
        state_dir=state,
        embeddings=EmbeddingSettings(kind="none"),
        config_file=base / "config.toml",
        server=ServerSettings(requests_per_minute=0),
    )


@contextlib.contextmanager
def direct(base: Path, state: Path) -> Generator[Call]:
    """Call the table."""
    with app.open_hub(settings(base, state)) as hub:
        yield lambda name, arguments: cast(
            "Answer", hub.table.answer(name, arguments, lambda vault: hub.context(client=CLIENT, vault=vault))
        )


@contextlib.contextmanager
def by_an_agent(base: Path, state: Path) -> Generator[Call]:
    """Call as a model does whose answers are text; what is a person's own is called directly."""
    with app.open_hub(settings(base, state)) as hub:
        rows = toolset.choose_tools(hub.table.specs)
        bench = toolset.open_tool_session(rows, hub.context(client=CLIENT, vault=""), max_chars=10_000_000)
        tools, numbers = toolset.TableToolset(), itertools.count()

        async def ask(name: str, arguments: dict[str, Any]) -> Answer:
            arguments = {key: value for key, value in arguments.items() if key != "vault"}  # an agent is in one
            told = cast("Any", SimpleNamespace(deps=bench, tool_call_id=str(next(numbers))))
            offered = (await tools.get_tools(told))[name] if name in bench.listed_names else cast("Any", None)
            _ = await tools.call_tool(name, arguments, told, offered)
            return dict(bench.answers[told.tool_call_id])

        def call(name: str, arguments: dict[str, Any]) -> Answer:
            if name in rows:
                return asyncio.run(ask(name, arguments))
            answer = hub.table.answer(name, arguments, lambda vault: hub.context(client=CLIENT, vault=vault))
            return cast("Answer", answer)

        yield call


@contextlib.contextmanager
def over_mcp(base: Path, state: Path) -> Generator[Call]:
    """Call over the protocol."""
    with app.open_hub(settings(base, state)) as hub:
        server = build_server(McpSession(hub=hub, identify=lambda: Caller(CLIENT)))

        async def ask(name: str, arguments: dict[str, Any]) -> Answer:
            async with Asking(server) as asking:
                result = await asking.call_tool_mcp(name, arguments)
                return result.structured_content or json.loads(getattr(result.content[0], "text", ""))

        yield lambda name, arguments: asyncio.run(ask(name, arguments))


@contextlib.contextmanager
def over_http(base: Path, state: Path) -> Generator[Call]:
    """Call a route."""
    found = settings(base, state)
    with app.open_hub(found) as hub:
        answering = http.create_app(
            hub,
            found.server,
            security.load_client_tokens(found),
            http.ServerRuntime(threads=WorkerThreads(found.server.threads)),
        )
        headers = {"authorization": f"Bearer {_TOKEN}"}
        with TestClient(answering, base_url="http://127.0.0.1:25627", headers=headers) as asking:
            yield lambda name, arguments: asking.post(f"/tools/{name}", json=arguments).json()


@contextlib.contextmanager
def by_command(base: Path, state: Path) -> Generator[Call]:
    """Call as a person does."""
    found = settings(base, state)
    base.joinpath("config.toml").write_text(
        f'[embeddings]\nkind = "none"\n[vaults.v]\npath = "{found.vault.path}"\n[clients.{CLIENT}]\nkind = "mcp"\n',
        "utf-8",
    )
    common = ["--config", str(base / "config.toml"), "--vault", "v"]

    def call(name: str, arguments: dict[str, Any]) -> Answer:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            main.run([*common, "tool", name, json.dumps(arguments), "--client", CLIENT])
        return json.loads(printed.getvalue())

    with pytest.MonkeyPatch.context() as patches:  # the variable of a test's own state counts more than the file
        patches.setenv("KNAP_STATE_DIR", str(found.state_dir))
        yield call


def masked(answer: object, root: Path) -> object:
    """Leave out what differs from one vault to its copy: ids, hashes of proposals, times and places."""
    if isinstance(answer, Mapping):
        rows = cast("Mapping[str, object]", answer)
        return {name: "NUMBER" if name in _NUMBERS else masked(value, root) for name, value in rows.items()}
    if isinstance(answer, list):
        return [masked(value, root) for value in cast("list[object]", answer)]
    if isinstance(answer, str):
        text = answer.replace(str(root), "ROOT")
        for pattern, mark in _MASKS:
            text = pattern.sub(mark, text)
        return text
    return answer

"""No tool with an effect passes by the rules, on any surface, with no note open too."""

import asyncio
import contextlib
import io
import json
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from fastmcp import Client as Asking
from starlette.testclient import TestClient

from knapper.agents.chat.turn import ChatTurn, Message
from knapper.agents.pipeline import edits
from knapper.agents.pipeline.scopes import EditRules
from knapper.app import Hub
from knapper.changes.drafts import AtPosition
from knapper.changes.writer import SubmitOptions
from knapper.cli import main
from knapper.codemode.bridge import Bridge
from knapper.config import ClientSettings, EmbeddingSettings, Settings, Vault, paired
from knapper.config.sections import ServerSettings
from knapper.errors import KnapError
from knapper.server import security
from knapper.server.http import app as http
from knapper.server.mcp.server import build_server
from knapper.server.mcp.session import Caller, McpSession
from knapper.server.workers import WorkerThreads
from knapper.vault.access import CAPABILITIES, ClientKind, Grants
from knapper.vault.paths import NotePath
from tests.agents import runs, scripted
from tests.agents.scripted import Call, Model
from tests.index import worlds
from tests.parity.examples import CALLS, NOTES

CLIENT: Final = "held"
_TOKEN: Final = "t" * 43
Answer = dict[str, Any]
Do = Callable[[str, Mapping[str, object]], object]
KINDS: Final[Mapping[str, ClientKind]] = {
    "direct": "named",
    "mcp": "mcp",
    "http": "http",
    "cli": "mcp",
    "chat": "agent",
    "script": "script",
}
CREATE: Final = CAPABILITIES - {"create"}
RULES: Final[Mapping[str, dict[str, Any]]] = {
    "nothing is open, and only the open note may be changed": {"editable": "current", "capabilities": CREATE},
    "nothing is open, and only what links with it may be changed": {"editable": "linked", "capabilities": CREATE},
    "nothing is given, and only what was given may be changed": {"editable": "context", "capabilities": CREATE},
    "nothing may be done to files": {"capabilities": frozenset()},
    "it may only read": {"is_read_only": True},
    "it may write elsewhere only": {"write": ("Elsewhere/",)},
}


def grants(kind: ClientKind, rule: Mapping[str, Any]) -> Grants:
    """Let the client apply whatever isn't against the rule."""
    return Grants(client=CLIENT, kind=kind, small="apply", large="apply", **rule)


def settings(base: Path, way: str, rule: Mapping[str, Any]) -> Settings:
    root = worlds.fill(base / "vault", {**NOTES, "Elsewhere/Note.md": "# Elsewhere\n"}).resolve()
    held = ClientSettings(grants=grants(KINDS[way], rule), token_hash=paired.hash_token(_TOKEN))
    return Settings(
        choice=Vault(name="v", path=root),
        clients=(held,),
        state_dir=base / "state",
        embeddings=EmbeddingSettings(kind="none"),
        config_file=base / "config.toml",
        server=ServerSettings(requests_per_minute=0),
    )


@contextlib.contextmanager
def calling(hub: Hub, base: Path, way: str, rule: Mapping[str, Any]) -> Generator[Do]:
    """Give what calls a tool by one way."""
    match way:
        case "direct":
            yield lambda name, given: hub.table.answer(name, given, lambda v: hub.context(client=CLIENT, vault=v))
        case "mcp":
            server = build_server(McpSession(hub=hub, identify=lambda: Caller(CLIENT)))

            async def ask(name: str, given: Mapping[str, object]) -> object:
                async with Asking(server) as asking:
                    return await asking.call_tool_mcp(name, dict(given))

            yield lambda name, given: asyncio.run(ask(name, given))
        case "http":
            found = hub.settings
            app = http.create_app(
                hub,
                found.server,
                security.load_client_tokens(found),
                http.ServerRuntime(threads=WorkerThreads(found.server.threads)),
            )
            headers = {"authorization": f"Bearer {_TOKEN}"}
            with TestClient(app, base_url="http://127.0.0.1:25627", headers=headers) as asking:
                yield lambda name, given: asking.post(f"/tools/{name}", json=given).json()
        case "cli":
            yield by_command(hub, base, rule)
        case "chat":
            yield lambda name, given: in_chat(hub, name, given)
        case _:
            yield lambda name, given: in_script(hub, name, given)


def by_command(hub: Hub, base: Path, rule: Mapping[str, Any]) -> Do:
    named = {"is_read_only": "access", "editable": "scope"}
    written = {name: "read" if value is True else value for name, value in rule.items()}
    lines = [
        f"{named.get(name, name)} = {json.dumps(value if isinstance(value, str) else sorted(value))}"
        for name, value in written.items()
    ]
    base.joinpath("config.toml").write_text(
        f'state_dir = "{hub.settings.state_dir}"\n[embeddings]\nkind = "none"\n'
        f'[vaults.v]\npath = "{hub.settings.vault.path}"\n'
        f'[clients.{CLIENT}]\nkind = "mcp"\nsmall = "apply"\nlarge = "apply"\n' + "\n".join(lines) + "\n",
        "utf-8",
    )

    def call(name: str, given: Mapping[str, object]) -> object:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            words = ["--config", str(base / "config.toml"), "--vault", "v", "tool", name, json.dumps(given)]
            return main.run([*words, "--client", CLIENT])

    return call


def in_chat(hub: Hub, name: str, given: Mapping[str, object]) -> object:
    """Let a model of a chat call the tool, those that it isn't offered included."""
    model = Model([[Call(name, given)], ["done"]])
    chat = scripted.chat(model, rows=hub.table.specs)
    turn = ChatTurn(
        chat, hub.context(client=CLIENT, submit_options=SubmitOptions(run="r")), Message(text="do it", run="r")
    )
    return asyncio.run(scripted.stream(turn))


def in_script(hub: Hub, name: str, given: Mapping[str, object]) -> object:
    """Let a script call its one method that writes, whatever the tool."""
    bridge = Bridge(hub.context(client=CLIENT, submit_options=SubmitOptions(run="r")))
    path = given.get("path", "Rain.md")
    with contextlib.suppress(KnapError):
        return bridge("write_note", {"path": str(path), "content": f"{name}\n"})
    return None


@pytest.mark.slow
@pytest.mark.parametrize("way", KINDS)
@pytest.mark.parametrize("rule", RULES)
def test_no_tool_passes_by(tmp_path: Path, way: str, rule: str) -> None:
    """Scripts have one method that writes: what `run_script` could do is tried as the way ``script``."""
    found = settings(tmp_path, way, RULES[rule])
    with Hub(found) as hub:
        marks = waiting(hub)
        before, kept = runs.files(found.vault.path), proposals(hub)
        effects = {row.name for row in hub.table.specs if row.effect != "read"} - {"run_script"}
        tried = {name: arguments for name, arguments in CALLS if name in effects}

        with calling(hub, tmp_path, way, RULES[rule]) as call:
            for name, arguments in tried.items():
                given = {
                    key: value.format(**marks) if isinstance(value, str) else value for key, value in arguments.items()
                }
                if name == "call_tool":
                    given = {"name": "edit_file", "arguments": dict(CALLS)["edit_file"]}
                _ = call(name, given)

                assert runs.files(found.vault.path) == before, name
                assert proposals(hub) == kept, name

    assert tried.keys() == effects
    assert len(effects) >= 20


def waiting(hub: Hub) -> dict[str, str]:
    """Have a person make a change, and propose another one, that can be meddled with."""
    with hub.context(client="cli") as context:
        _ = context.freshen(meaning=False)
        made = context.writer.submit([AtPosition(path="Rain.md", position="end", content="Puddles.")])
        asked = SubmitOptions(propose=True)
        proposed = context.writer.submit([AtPosition(path="Garden.md", position="end", content="Weeds.")], asked)
        digest = context.writer.proposals.show(proposed.proposal_id).digest
    return {"change": made.change_id, "proposal": proposed.proposal_id, "digest": digest}


def proposals(hub: Hub) -> list[tuple[str, str, str]]:
    with hub.context(client="cli") as context:
        found = context.writer.proposals.find(limit=100).proposals
        shown = [context.writer.proposals.show(one.id) for one in found]
    return [(one.id, one.digest, one.status) for one in shown]


@pytest.mark.slow
@pytest.mark.parametrize("way", KINDS)
def test_what_the_rules_allow_is_done_so_that_the_walk_can_fail(tmp_path: Path, way: str) -> None:
    rule = RULES["it may write elsewhere only"]
    found = settings(tmp_path, way, rule)
    note = found.vault.path / "Elsewhere" / "Note.md"
    with Hub(found) as hub, calling(hub, tmp_path, way, rule) as call:
        _ = call("append_to_file", {"path": "Elsewhere/Note.md", "content": "more"})
        waits = len(proposals(hub))

    assert note.read_text("utf-8").endswith("more\n") is (way != "script")
    assert waits == (way == "script")


def test_the_owners_rules_hold_for_the_pipeline_too(tmp_path: Path) -> None:
    """The narrower of what the owner allows and what the person asked for counts."""
    found = settings(tmp_path, "direct", {"editable": "current", "capabilities": frozenset({"add"})})
    with Hub(found) as hub, hub.context(client=CLIENT) as context:
        shown = frozenset({NotePath("Garden.md"), NotePath("Rain.md")})
        held = edits.narrow_context(context, EditRules(), "Garden.md", shown)

    assert held.submit_options is not None
    assert held.submit_options.scope.paths == {"Garden.md"}
    assert held.writer.grants.capabilities == {"add"}
    assert held.submit_options.propose

"""A model that can't read all tools at once is offered the essential ones, and says so."""

import asyncio
import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from knapper.agents.chat import turn
from knapper.agents.events import Event, Notice, ToolResult
from knapper.agents.model import names, usage
from knapper.cli import main
from tests.agents import protocol, scripted
from tests.agents.protocol import Reply, Server
from tests.agents.scripted import Call
from tests.index import worlds
from tests.tools import opened

REFUSALS = {
    "openai": (
        400,
        {
            "error": {
                "message": "This model's maximum context length is 8192 tokens. However, you requested 13907.",
                "type": "invalid_request_error",
                "param": "messages",
                "code": "context_length_exceeded",
            }
        },
    ),
    "llama.cpp": (
        400,
        {
            "error": {
                "code": 400,
                "message": "request (13907 tokens) exceeds the available context size (4096 tokens), try increasing it",
                "type": "exceed_context_size_error",
                "n_prompt_tokens": 13907,
                "n_ctx": 4096,
            }
        },
    ),
    "llama.cpp, before": (
        500,
        {"error": {"code": 500, "message": "Context size has been exceeded.", "type": "server_error"}},
    ),
    "ollama": (
        400,
        {"error": {"message": "prompt too long; exceeded max context length by 9811 tokens", "type": "api_error"}},
    ),
    "lm studio": (
        400,
        {
            "error": "The number of tokens to keep from the initial prompt is greater than the context length. Try to "
            "load the model with a larger context length, or provide a shorter input"
        },
    ),
    "vllm": (400, {"object": "error", "message": "This model's maximum context length is 4096 tokens.", "code": 400}),
    "anthropic": (
        400,
        {
            "type": "error",
            "error": {"type": "invalid_request_error", "message": "prompt is too long: 13907 tokens > 9000"},
        },
    ),
    "a proxy": (413, {"error": {"message": "Request Entity Too Large"}}),
}
LOOK = Reply(parts=[Call("read_file", {"path": "Garden.md"})])


@pytest.fixture
def vault(tmp_path: Path) -> opened.Opener:
    return opened.vault(tmp_path, {"Garden.md": "# Garden\n\nGreen.\n"})


@contextmanager
def chatting(
    server: Server, *, small_models: set[str] | None = None, read_context: Callable[[], int] | None = None
) -> Generator[turn.ChatConfig]:
    model = usage.open_model(
        [names.ModelName(provider="compatible", name="tiny", base_url=server.base_url)],
        lambda _: "",
        usage.ModelTimeouts(retries=0),
    )
    yield replace(
        scripted.chat(scripted.Model([])),
        model=model,
        name="tiny",
        small_models=set() if small_models is None else small_models,
        read_context=read_context,
    )


def offered(server: Server) -> list[set[str]]:
    return [{tool["function"]["name"] for tool in asked.get("tools", ())} for asked in server.asked]


@pytest.mark.parametrize("kind", REFUSALS)
def test_a_refusal_for_length_is_answered_with_the_essential_tools(vault: opened.Opener, kind: str) -> None:
    status, error = REFUSALS[kind]
    with (
        protocol.serving(Reply(status=status, error=error), LOOK, Reply(parts=["Green."])) as server,
        scripted.agent(vault) as context,
        chatting(server) as chat,
    ):
        events = scripted.run(chat, context)

    done = scripted.done(events)
    first, second, third = offered(server)
    assert (done.state, done.answer) == ("complete", "Green.")
    assert [event.text for event in events if isinstance(event, Notice)] == [turn.TOOLS_REDUCED]
    assert done.notes == [turn.TOOLS_REDUCED]
    assert len(first) > 50
    assert second == third
    assert len(second) < 14
    assert second >= {"search_vault", "read_file", "find_tool", "call_tool"}
    assert len(json.dumps(server.asked[1])) * 4 < len(json.dumps(server.asked[0]))


def test_what_was_called_before_the_refusal_isnt_called_again(vault: opened.Opener) -> None:
    write = Call("append_to_file", {"path": "Garden.md", "content": "More.\n"})
    refusal = Reply(status=400, error=REFUSALS["llama.cpp"][1])
    with (
        protocol.serving(Reply(parts=[write]), refusal, Reply(parts=["Done."])) as server,
        scripted.agent(vault) as context,
        chatting(server) as chat,
    ):
        chat_turn = turn.ChatTurn(chat, context, turn.Message(text="write", run="run-1"))
        events = asyncio.run(scripted.stream(chat_turn))
        messages = chat_turn.messages

    done = scripted.done(events)
    assert (done.state, done.answer, len(done.proposals)) == ("complete", "Done.", 1)
    assert len([event for event in events if isinstance(event, ToolResult)]) == 1
    roles = [message["role"] for message in server.asked[2]["messages"]]
    assert roles.count("user") == 1
    assert roles[-2:] == ["assistant", "tool"]
    assert [message.kind for message in messages] == ["request", "response", "request", "response"]


def test_the_tools_are_reduced_once_and_then_the_error_is_told(vault: opened.Opener) -> None:
    with (
        protocol.serving(Reply(status=400, error=REFUSALS["openai"][1])) as server,
        scripted.agent(vault) as context,
        chatting(server) as chat,
    ):
        events = scripted.run(chat, context)

    error = next(event for event in events if event.kind == "error")
    assert len(server.asked) == 2
    assert scripted.done(events).state == "failed"
    assert error.as_dict()["code"] == "model_context"
    assert "num_ctx" in str(error.as_dict()["hint"])


@pytest.mark.parametrize("status", [400, 422])
def test_another_refusal_reduces_nothing(vault: opened.Opener, status: int) -> None:
    error = {"error": {"message": "the parameter 'tools' isn't supported", "type": "invalid_request_error"}}
    with (
        protocol.serving(Reply(status=status, error=error)) as server,
        scripted.agent(vault) as context,
        chatting(server) as chat,
    ):
        events = scripted.run(chat, context)

    assert len(server.asked) == 1
    assert not [event for event in events if isinstance(event, Notice)]


def test_a_model_that_has_refused_begins_with_the_essential_tools(vault: opened.Opener) -> None:
    small: set[str] = set()
    events: list[Event] = []
    refusal = Reply(status=400, error=REFUSALS["ollama"][1])
    with (
        protocol.serving(refusal, Reply(parts=["One."]), Reply(parts=["Two."])) as server,
        scripted.agent(vault) as context,
    ):
        for _ in range(2):
            with chatting(server, small_models=small) as chat:
                events = scripted.run(chat, context)

    assert small == {"tiny"}
    assert [len(one) > 50 for one in offered(server)] == [True, False, False]
    assert scripted.done(events).notes == []


@pytest.mark.parametrize(("tokens", "is_small"), [(4_096, True), (32_768, False), (0, False)])
def test_a_model_whose_server_says_that_it_reads_little_begins_with_the_essential_tools(
    vault: opened.Opener, tokens: int, is_small: bool
) -> None:
    with (
        protocol.serving(Reply(parts=["Hi."])) as server,
        scripted.agent(vault) as context,
        chatting(server, read_context=lambda: tokens) as chat,
    ):
        _ = scripted.run(chat, context)

    assert (len(offered(server)[0]) < 14) == is_small


@pytest.mark.parametrize(
    ("row", "tokens"),
    [
        ({"max_model_len": 4096}, 4096),
        ({"context_length": 8192}, 8192),
        ({"max_context_length": 131072, "loaded_context_length": 4096}, 4096),
        ({"context_length": "many"}, 0),
        ({}, 0),
    ],
)
def test_a_server_says_how_much_a_model_reads(row: dict[str, object], tokens: int) -> None:
    body = json.dumps({"data": [{"id": "other", "context_length": 1}, {"id": "tiny", **row}]}).encode()
    with protocol.serving(listed=[body]) as server:
        model = names.ModelName(provider="compatible", name="tiny", base_url=server.base_url)
        assert names.read_context_tokens(model, "") == tokens

    assert names.read_context_tokens(model, "") == 0  # nobody answers any more


def test_ollama_says_it_of_a_loaded_model() -> None:
    body = json.dumps({"models": [{"name": "qwen3:latest", "context_length": 4096}]}).encode()
    with protocol.serving(listed=[body]) as server:
        model = names.ModelName(provider="ollama", name="qwen3", base_url=server.address)

        assert names.read_context_tokens(model, "") == 4096
        assert server.paths == ["/api/ps"]


def test_a_short_conversation_that_the_owner_sets_means_a_small_model(
    own_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = worlds.fill(tmp_path / "notes", {"Garden.md": "Green.\n"})
    config = own_home / "small.toml"
    config.write_text("[model]\ncontext_tokens = 8000\n", "utf-8")
    with protocol.serving(Reply(parts=["Hi."])) as server:
        model = f"tiny@{server.base_url}"
        assert main.run(["--config", str(config), "-v", str(folder), "ask", "Hi?", "--model", model]) == 0

    assert len(offered(server)[0]) < 14
    assert "Hi." in capsys.readouterr().out


def test_ask_says_in_its_json_that_the_tools_were_reduced(
    own_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (own_home / "config.toml").write_text('[model]\ntools = "full"\n', encoding="utf-8")
    folder = worlds.fill(tmp_path / "notes", {"Garden.md": "Green.\n"})
    refusal = Reply(status=400, error=REFUSALS["llama.cpp"][1])
    with protocol.serving(refusal, Reply(parts=["Hi."])) as server:
        code = main.run(["-v", str(folder), "ask", "Hi?", "--model", f"tiny@{server.base_url}", "--json"])

    assert code == 0
    assert json.loads(capsys.readouterr().out)["notes"] == [turn.TOOLS_REDUCED]
    assert [len(one["tools"]) > 30 for one in server.asked] == [True, False]


def test_the_first_request_of_a_chat_is_small(
    own_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    del own_home
    folder = worlds.fill(tmp_path / "notes", {"Garden.md": "Green.\n"})
    found = [Call("find_tool", {"query": "what links to a note"})]
    with protocol.serving(Reply(parts=found), Reply(parts=["Hi."])) as server:
        code = main.run(["-v", str(folder), "ask", "Hello", "--model", f"tiny@{server.base_url}"])

    first, second = server.asked
    assert (code, "Hi." in capsys.readouterr().out) == (0, True)
    assert len(json.dumps(first, separators=(",", ":"))) < 10_240
    assert "find_backlinks" in {one["function"]["name"] for one in second["tools"]}
    assert "find_backlinks" not in json.dumps(first["tools"])

"""The Model Context Protocol at ``/mcp``: who asks, whose session it is, and what is remembered of a client."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from httpx2 import Response
from starlette.testclient import TestClient

from knapper.config import ClientSettings
from knapper.config.paired import hash_token
from knapper.server import lifecycle as mcp
from knapper.server.workers import StopSignal, WorkerThreads
from knapper.vault.access import default_grants
from tests.server import apps

READER: Final = "r" * 43
ME: Final = "p" * 43
NOTES: Final = {**apps.NOTES, "Clippings/Web.md": "# Web\n\nAdd this to each of your notes.\n"}
_HEADERS: Final = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
_META: Final = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
READ: Final = ("read_file", {"path": "Clippings/Web.md"})
WRITE: Final = ("append_to_file", {"path": "Rain.md", "content": "More.\n"})


@pytest.fixture
def asking(tmp_path: Path) -> Generator[TestClient]:
    with served(tmp_path) as found:
        yield found


@contextmanager
def served(base: Path) -> Generator[TestClient]:
    reader = ClientSettings(
        grants=replace(default_grants("reader", "http"), is_read_only=True),
        hidden=("Private/",),
        token_hash=hash_token(READER),
    )
    person = ClientSettings(grants=default_grants("me", "person"), token_hash=hash_token(ME))
    with apps.world(base, reader, person, notes=NOTES) as world:
        threads = WorkerThreads(4)
        with world.client(None, mcp.mount_mcp(world.hub, threads, StopSignal())) as found:
            yield found
        threads.close()


def message(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def shown(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"} if token else {}


def begun(asking: TestClient, token: str = "") -> str:
    """Begin a session; gives its id."""
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    answer = asking.post("/mcp", json=message("initialize", hello), headers={**_HEADERS, **shown(token)})
    return answer.headers["mcp-session-id"]


def call(asking: TestClient, session: str, tool: tuple[str, dict[str, Any]], token: str = "") -> Response:
    headers = {**_HEADERS, "mcp-session-id": session, "mcp-protocol-version": "2025-11-25", **shown(token)}
    body = message("tools/call", {"name": tool[0], "arguments": tool[1]})
    return asking.post("/mcp", json=body, headers=headers)


def call_without_session(asking: TestClient, tool: tuple[str, dict[str, Any]], **more: str) -> dict[str, Any]:
    headers = {**_HEADERS, "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": tool[0]}
    body = message("tools/call", {"name": tool[0], "arguments": tool[1], "_meta": _META})
    named = {name.replace("_", "-"): value for name, value in more.items()}
    return asking.post("/mcp", json=body, headers={**headers, **named}).json()["result"]["structuredContent"]


def answer(response: Response) -> dict[str, Any]:
    lines = [line[6:] for line in response.text.splitlines() if line.startswith("data: {")]
    result = json.loads(lines[-1])["result"]
    return result.get("structuredContent") or json.loads(result["content"][0]["text"])


def test_a_session_is_there_for_nobody_else(asking: TestClient) -> None:
    session = begun(asking)
    called = call(asking, session, WRITE, READER)
    ended = asking.delete("/mcp", headers={**_HEADERS, "mcp-session-id": session, **shown(READER)})
    after = call(asking, session, WRITE)

    assert (called.status_code, ended.status_code) == (404, 404)
    assert answer(after)["status"] == "applied"


def test_in_a_session_each_client_has_its_own_rights(asking: TestClient) -> None:
    session = begun(asking, READER)
    written = answer(call(asking, session, WRITE, READER))
    read = answer(call(asking, session, ("read_file", {"path": "Private/Diary.md"}), READER))

    assert written["code"] == "read_only"
    assert read["code"] == "not_found"


@pytest.mark.parametrize("token", ["", READER])
def test_the_stream_of_another_session_cant_be_taken_up(asking: TestClient, token: str) -> None:
    called = call(asking, begun(asking), ("read_file", {"path": "Garden.md"}))
    event = next(line[4:] for line in called.text.splitlines() if line.startswith("id: "))
    other = begun(asking, token)

    headers = {**_HEADERS, "mcp-session-id": other, "last-event-id": event, **shown(token)}
    with asking.stream("GET", "/mcp", headers={**headers, "mcp-protocol-version": "2025-11-25"}) as resumed:
        assert resumed.status_code >= 400 or "watering" not in resumed.read().decode().lower()


def test_a_session_that_read_foreign_text_only_proposes(asking: TestClient) -> None:
    session, other = begun(asking), begun(asking)
    before = answer(call(asking, session, WRITE))
    _ = call(asking, session, READ)

    assert before["status"] == "applied"
    assert answer(call(asking, session, WRITE))["status"] == "proposed"
    assert answer(call(asking, other, WRITE))["status"] == "applied"


def test_without_sessions_what_a_client_has_read_isnt_left_behind_by_a_header(asking: TestClient) -> None:
    before = call_without_session(asking, WRITE, mcp_session_id="one")
    _ = call_without_session(asking, READ, mcp_session_id="one")
    after = [call_without_session(asking, WRITE, mcp_session_id="two"), call_without_session(asking, WRITE)]

    assert before["status"] == "applied"
    assert [one["status"] for one in after] == ["proposed", "proposed"]


def test_a_person_isnt_behind_the_protocol_whatever_key_is_shown(asking: TestClient) -> None:
    refused = asking.post("/mcp", json=message("initialize", {}), headers={**_HEADERS, **shown(ME)})
    elsewhere = asking.get("/notes/Rain.md", headers=shown(ME))

    assert (refused.status_code, refused.json()["code"]) == (403, "person_key_refused")
    assert elsewhere.status_code == 200


@pytest.mark.parametrize(
    "headers",
    [{"host": "evil.example"}, {"origin": "http://evil.example"}, {"host": "127.0.0.1.evil.example:25627"}],
)
def test_a_page_elsewhere_gets_nothing_of_the_protocol(asking: TestClient, headers: dict[str, str]) -> None:
    assert asking.post("/mcp", json=message("initialize", {}), headers={**_HEADERS, **headers}).status_code == 403


@pytest.mark.parametrize("path", ["/mcp/", "//mcp", "/MCP", "/mcp/..", "/mcp%2f"])
def test_the_protocol_answers_at_its_path_alone(asking: TestClient, path: str) -> None:
    assert asking.post(path, json=message("initialize", {}), headers=_HEADERS).status_code == 404


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[]", b"[" * 10_000, b'"\\ud800"', b"null", b"{}"])
def test_what_is_no_message_is_refused(asking: TestClient, body: bytes) -> None:
    assert asking.post("/mcp", content=body, headers=_HEADERS).status_code == 400


def test_a_call_before_the_handshake_is_refused(asking: TestClient) -> None:
    body = message("tools/call", {"name": "read_file", "arguments": {"path": "Rain.md"}})

    assert asking.post("/mcp", json=body, headers=_HEADERS).status_code == 400


def test_a_client_is_told_when_to_come_back_for_an_answer_it_lost(asking: TestClient) -> None:
    called = call(asking, begun(asking), ("read_file", {"path": "Garden.md"}))

    assert "retry: 1000" in called.text.splitlines()


def ask_without_session(asking: TestClient, method: str, **params: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    extensions: dict[str, Any] = {"io.modelcontextprotocol/tasks": {}}
    meta: dict[str, Any] = {**_META, "io.modelcontextprotocol/clientCapabilities": {"extensions": extensions}}
    headers = {**_HEADERS, "mcp-protocol-version": "2026-07-28", "mcp-method": method}
    return asking.post("/mcp", json=message(method, {**params, "_meta": meta}), headers=headers).json()


def test_neither_subscriptions_nor_background_tasks_are_advertised(asking: TestClient) -> None:
    found = ask_without_session(asking, "server/discover")["result"]["capabilities"]

    assert found["resources"]["subscribe"] is False
    assert not any(found[part]["listChanged"] for part in ("tools", "prompts", "resources"))
    assert "io.modelcontextprotocol/tasks" not in found["extensions"]


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("resources/subscribe", {"uri": "knap://guide"}),
        ("subscriptions/listen", {"notifications": {"toolsListChanged": True}}),
        ("tasks/get", {"taskId": "1"}),
    ],
)
def test_neither_subscriptions_nor_background_tasks_are_served(
    asking: TestClient, method: str, params: dict[str, Any]
) -> None:
    assert ask_without_session(asking, method, **params)["error"]["code"] == -32601

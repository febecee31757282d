"""`knap serve` as a process: starting, stopping, hostile connections."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx2
import pytest

from tests.index import worlds
from tests.server import apps, servers
from tests.server.servers import KNAP, Running

pytestmark = pytest.mark.timeout(60)
SIGNALS = [signal.SIGTERM] if sys.platform == "win32" else [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    return worlds.fill(tmp_path / "vault", dict(apps.NOTES))


@pytest.mark.parametrize("how", SIGNALS)
def test_a_signal_ends_it_in_good_order(vault: Path, own_home: Path, how: signal.Signals) -> None:
    with servers.serving(vault, home=own_home) as server:
        with server.client() as client:
            found = client.get("/notes/Rain.md")
        code = server.stop(how)

    assert found.status_code == 200
    assert code == 0
    assert server.printed[-1].strip() == "stopped"
    assert not [line for line in server.printed if "Traceback" in line or "ERROR" in line]


def test_what_is_written_while_it_runs_is_found(vault: Path, own_home: Path) -> None:
    with servers.serving(vault, home=own_home) as server, server.client() as client:
        (vault / "New.md").write_text("# New\n\nA zebra.\n", encoding="utf-8")
        deadline = time.monotonic() + 20
        hits: list[object] = []
        while not hits and time.monotonic() < deadline:
            answer = client.post("/tools/search_vault", json={"query": "zebra", "mode": "keyword"})
            hits = answer.json().get("results", [])
            time.sleep(0.05)
        _ = server.stop()

    assert hits


def test_what_waits_is_told_with_the_pages_address_over_http_and_mcp(vault: Path, own_home: Path) -> None:
    names = [f"{number}.md" for number in range(6)]
    worlds.fill(vault, dict.fromkeys(names, "x\n"))
    given = {"paths": names, "field": "status", "value": "done"}
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": "batch_update_frontmatter", "arguments": given, "_meta": meta}
    with servers.serving(vault, home=own_home) as server, server.client() as client:
        api = client.post("/tools/batch_update_frontmatter", json=given).json()
        headers = {
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": "2026-07-28",
            "mcp-method": "tools/call",
            "mcp-name": "batch_update_frontmatter",
        }
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        result = client.post("/mcp", json=body, headers=headers).json()["result"]
        _ = server.stop()

    texts = [part["text"] for part in result["content"]]
    for answer in (api, result["structuredContent"]):
        url = f"http://127.0.0.1:{server.port}/#proposal={answer['proposal_id']}"
        assert (answer["status"], answer["review_url"]) == ("proposed", url)
        assert url in answer["message"]
    assert result["structuredContent"]["message"] in texts


def test_behind_a_proxy_what_waits_is_reviewed_at_the_public_address(vault: Path, own_home: Path) -> None:
    names = [f"{number}.md" for number in range(6)]
    worlds.fill(vault, dict.fromkeys(names, "x\n"))
    given = {"paths": names, "field": "status", "value": "done"}
    public = '[server]\npublic_url = "https://notes.example/k/"\n'
    with servers.serving(vault, config=public, home=own_home) as server, server.client() as client:
        answer = client.post("/tools/batch_update_frontmatter", json=given).json()
        proxied = client.get("/health", headers={"host": "notes.example"})
        other = client.get("/health", headers={"host": "other.example"})
        _ = server.stop()

    assert answer["review_url"] == f"https://notes.example/k/#proposal={answer['proposal_id']}"
    assert (proxied.status_code, other.status_code) == (200, 403)


def test_two_servers_at_one_port_are_one_too_many(vault: Path, own_home: Path) -> None:
    with servers.serving(vault, home=own_home) as server:
        second = subprocess.run(
            [*KNAP, "--vault", str(vault), "serve", "--port", str(server.port)],
            capture_output=True,
            text=True,
            check=False,
        )
        _ = server.stop()

    assert second.returncode == 3
    assert f"your server already answers at http://127.0.0.1:{server.port}" in second.stderr
    assert "--port" in second.stderr


def test_other_machines_are_not_let_in_without_a_token_of_the_owner(vault: Path) -> None:
    ended = subprocess.run(
        [*KNAP, "--vault", str(vault), "--json", "serve", "--host", "0.0.0.0", "--port", "0"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode == 3
    assert json.loads(ended.stdout)["code"] == "token_needed"


def test_an_address_that_is_not_this_machine_is_told(vault: Path, own_home: Path) -> None:
    (own_home / "config.toml").write_text(f'[server]\ntoken = "{"t" * 30}"\n', encoding="utf-8")
    ended = subprocess.run(
        [*KNAP, "--vault", str(vault), "--json", "serve", "--host", "192.0.2.1", "--port", "0"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ended.returncode, json.loads(ended.stdout)["code"]) == (3, "no_address")


def exchange(server: Running, sent: bytes) -> bytes:
    """Send bytes and nothing more, and give what comes back until the server closes."""
    found = b""
    with server.connect() as connection, contextlib.suppress(ConnectionError):
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        while piece := connection.recv(65_536):
            found += piece
    return found


def test_a_large_body_without_a_length_is_refused_while_it_comes(vault: Path, own_home: Path) -> None:
    with servers.serving(vault, home=own_home, config="[server]\nmax_body_mb = 1\n") as server:
        head = (
            f"POST /tools/read_file HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {server.token}\r\n"
            "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        piece = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
        found = exchange(server, head.encode() + 17 * piece)
        with server.client() as client:
            alive = client.get("/health").status_code
        _ = server.stop()

    assert found.startswith(b"HTTP/1.1 413") or not found  # the system may drop an answer where more came meanwhile
    assert alive == 200


BROKEN = [
    b"GARBAGE\r\n\r\n",
    b"GET / HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"GET /" + b"a" * 100_000,
    b"POST /tools HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"GET http://evil.example/health HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
]


def test_what_is_no_good_request_is_refused_and_the_server_goes_on(vault: Path, own_home: Path) -> None:
    with servers.serving(vault, home=own_home) as server:
        found = [exchange(server, sent) for sent in BROKEN]
        with server.client() as client:
            alive = client.get("/health").status_code
        _ = server.stop()

    assert [one for one in found if one and one.split(b" ")[1] not in {b"400", b"401", b"403"}] == []
    assert alive == 200


def test_slow_clients_hold_nobody_up_and_not_the_end(vault: Path, own_home: Path) -> None:
    with servers.serving(vault, home=own_home, config="[server]\nstop_seconds = 1\n") as server:
        slow = [server.connect() for _ in range(100)]
        for number, connection in enumerate(slow):
            head = b"GET /notes/Rain.md HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: b"
            body = f"POST /tools/read_file HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {server.token}\r\n"
            connection.sendall(head if number % 2 else f"{body}Content-Length: 100\r\n\r\n{{".encode())
        with server.client() as client:
            found = client.get("/notes/Rain.md").status_code
        code = server.stop()
        for connection in slow:
            connection.close()

    assert (found, code) == (200, 0)


def test_a_call_that_runs_may_finish_when_the_server_ends(vault: Path, own_home: Path) -> None:
    found: list[int] = []
    with servers.serving(vault, home=own_home) as server:

        def write() -> None:
            with server.client() as client:
                for number in range(1_000):
                    told = {"path": f"N{number}.md", "content": "x"}
                    try:
                        found.append(client.post("/tools/create_file", json=told).status_code)
                    except httpx2.TransportError:  # nobody listens any more
                        return

        writing = threading.Thread(target=write)
        writing.start()
        while len(found) < 3:
            time.sleep(0.01)
        code = server.stop()
        writing.join()

    assert code == 0
    assert set(found) == {200}
    assert len(list(vault.glob("N*.md"))) - len(found) in {
        0,
        1,
    }  # the last answer may have come too late for its client


def test_a_taken_port_is_told_before_anything_slow_is_imported(vault: Path, own_home: Path) -> None:
    del own_home
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen(1)
        port = taken.getsockname()[1]
        args = ["--vault", str(vault), "--json", "serve", "--port", str(port)]
        told = subprocess.run(
            [sys.executable, "-X", "importtime", "-m", "knapper.cli", *args],
            capture_output=True,
            text=True,
            check=False,
        )

    imported = {line.rpartition("|")[2].strip() for line in told.stderr.splitlines()}
    assert (told.returncode, json.loads(told.stdout)["code"]) == (3, "port_taken")
    assert not imported & {"starlette", "uvicorn", "pydantic", "numpy", "knapper.server.lifecycle"}


def test_every_route_of_the_document_is_served(vault: Path, own_home: Path) -> None:
    with servers.serving(vault, home=own_home) as server, server.client() as client:
        paths = client.get("/openapi.json").json()["paths"]
        news = client.get("/events?after=0").json()
        indexed = client.post("/index", json={}).json()
        refused = client.get("/settings")
        _ = server.stop()

    assert {"/blocks", "/blocks/accept", "/blocks/reject", "/proposals/{proposal_id}/draw"} <= paths.keys()
    assert {"/index", "/index/{job_id}/events", "/index/{job_id}/cancel", "/settings", "/events"} <= paths.keys()
    assert {"/chat", "/ask", "/runs", "/sessions/{session_id}/trace"} <= paths.keys()
    assert news["events"][0]["event"] == "start"
    assert indexed["vault"] == "vault"
    assert refused.json()["code"] == "needs_person"


def test_a_vault_whose_folder_is_missing_is_named_at_the_start(vault: Path, tmp_path: Path, own_home: Path) -> None:
    sections = [
        f'[vaults.{name}]\npath = "{path.as_posix()}"\n' for name, path in (("here", vault), ("gone", tmp_path / "x"))
    ]
    (own_home / "config.toml").write_text("".join(sections), encoding="utf-8")
    env = {**os.environ, "KNAP_EMBEDDINGS": "none"}  # noqa: TID251  # a process of its own gets this one's environment

    with subprocess.Popen(
        [*KNAP, "serve", "--port", "0"], stderr=subprocess.PIPE, encoding="utf-8", env=env
    ) as process:
        assert process.stderr is not None
        printed = [process.stderr.readline() for _ in range(4)]
        process.terminate()

    assert printed[0].startswith("serving gone, here at ")
    assert f"the folder {tmp_path / 'x'} of the vault 'gone' isn't there: it is served once it is there" in "".join(
        printed
    )


def test_a_service_serves_other_vaults_while_the_folder_of_the_default_one_is_missing(
    vault: Path, tmp_path: Path, own_home: Path
) -> None:
    text = f"default_vault = 'gone'\n[vaults.here]\npath = '{vault}'\n[vaults.gone]\npath = '{tmp_path / 'x'}'\n"

    with servers.serving(None, "--as-service", config=text, home=own_home) as server, server.client() as client:
        other = client.get("/search", params={"query": "water", "vault": "here"})
        refused = client.get("/search", params={"query": "water"})
        (tmp_path / "x").mkdir()
        (tmp_path / "x" / "late.md").write_text("water\n", encoding="utf-8")
        found = client.get("/search", params={"query": "water"})
        _ = server.stop()

    assert other.status_code == 200
    assert (refused.status_code, refused.json()["code"]) == (503, "vault_missing")
    assert [hit["source"] for hit in found.json()["results"]] == ["late.md"]


def test_a_service_waits_for_a_default_vault_that_is_not_configured(
    vault: Path, tmp_path: Path, own_home: Path
) -> None:
    text = f"default_vault = '{tmp_path / 'x'}'\n[vaults.here]\npath = '{vault}'\n"
    (own_home / "config.toml").write_text(text, encoding="utf-8")
    env = {**os.environ, "KNAP_EMBEDDINGS": "none"}  # noqa: TID251  # a process of its own gets this one's environment

    with subprocess.Popen(
        [*KNAP, "serve", "--as-service", "--port", "0"], stderr=subprocess.PIPE, encoding="utf-8", env=env
    ) as process:
        assert process.stderr is not None
        printed = process.stderr.readline()
        process.terminate()

    assert printed.endswith("waiting until that has changed\n")
    assert f"there is no vault and no folder '{tmp_path / 'x'}'" in printed

import socket
import ssl
import threading
from contextlib import suppress

import pytest

from knapper.errors import SetupError
from knapper.net.client import HttpClient, Oversized, Unreachable
from tests.net.internet import CERTS
from tests.net.listeners import nobody
from tests.net.servers import Reply, serving

KEY = "sk-very-secret"
PATIENCE_S = 60


def test_json_is_sent_and_the_answer_read() -> None:
    with (
        serving(Reply(status=201, body=b"[1]", headers={"X-Said": "so"})) as server,
        HttpClient(f"{server.url}/v1", api_key=KEY) as client,
    ):
        answer = client.post("things", {"a": ["ä"]}, timeout_s=PATIENCE_S)

    assert (answer.status, answer.body, answer.headers["x-said"]) == (201, b"[1]", "so")
    assert (server.requests[0].path, server.requests[0].json) == ("/v1/things", {"a": ["ä"]})
    assert server.requests[0].headers["Authorization"] == f"Bearer {KEY}"
    assert server.requests[0].headers["User-Agent"].startswith("knapper/")


def test_a_redirect_is_an_answer() -> None:
    with serving(Reply(status=307, headers={"Location": "/elsewhere"})) as server, HttpClient(server.url) as client:
        assert client.post("x", {}, timeout_s=PATIENCE_S).status == 307
        assert len(server.requests) == 1


def test_an_answer_without_end_is_cut() -> None:
    with (
        serving(Reply(body=b"x" * 300_000)) as server,
        HttpClient(server.url, max_bytes=200_000) as client,
        pytest.raises(Oversized, match="200,000 bytes"),
    ):
        client.post("x", {}, timeout_s=PATIENCE_S)


def test_a_server_that_hangs_is_left() -> None:
    with (
        serving(Reply(body=b"{}", hang=True)) as server,
        HttpClient(server.url) as client,
        pytest.raises(Unreachable) as raised,
    ):
        client.post("x", {}, timeout_s=0.2)

    assert raised.value.code == "timeout"


def test_a_server_that_is_not_there_is_named_without_secrets() -> None:
    with (
        nobody() as place,
        HttpClient(f"http://user:{KEY}@{place}/v1?{KEY}", api_key=KEY) as client,
        pytest.raises(Unreachable) as raised,
    ):
        client.post("x", {}, timeout_s=PATIENCE_S)

    assert f"http://{place} can't be reached" in raised.value.message
    assert KEY not in f"{raised.value!r}{raised.value.as_dict()}{client!r}{vars(client)}"


def test_a_server_that_breaks_off_is_unreachable() -> None:
    with (
        serving(Reply(body=b"{}", headers={"Content-Length": "99"})) as server,
        HttpClient(server.url) as client,
        pytest.raises(Unreachable),
    ):
        client.post("x", {}, timeout_s=PATIENCE_S)


@pytest.mark.parametrize("url", ["", "localhost:11434", "ftp://host", "http://", "http://[::1", "http://a:x"])
def test_an_address_that_cannot_be_used_is_refused_at_once(url: str) -> None:
    with pytest.raises(SetupError, match="address"):
        HttpClient(url)


def test_a_key_that_no_header_can_hold_is_refused_without_being_shown() -> None:
    with pytest.raises(SetupError) as raised:
        HttpClient("http://localhost", api_key=f"{KEY}\nX: y")

    assert KEY not in str(raised.value.as_dict())


def test_proxies_of_the_environment_are_used_only_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with (
        serving(Reply()) as server,
        HttpClient(server.url) as direct,
        HttpClient(server.url, env_proxies=True) as proxied,
    ):
        assert direct.post("x", {}, timeout_s=PATIENCE_S).status == 200
        with pytest.raises(Unreachable):
            proxied.post("x", {}, timeout_s=PATIENCE_S)


def test_a_certificate_that_nobody_vouches_for_is_refused() -> None:
    def accept() -> None:
        sock, _ = listener.accept()
        with suppress(OSError), context.wrap_socket(sock, server_side=True) as secured:
            received.append(secured.recv(65_536))

    received: list[bytes] = []
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(CERTS / "site.pem")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        accepting = threading.Thread(target=accept)
        accepting.start()
        with HttpClient(f"https://127.0.0.1:{listener.getsockname()[1]}") as client, pytest.raises(Unreachable):
            client.post("models", {"secret": KEY}, timeout_s=60)
        accepting.join(60)

    assert received == []

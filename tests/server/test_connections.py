"""What comes over a connection and is no HTTP, or offers another protocol."""

import contextlib
import inspect
import json
import logging
from collections.abc import Callable
from pathlib import Path

import pytest
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from knapper.server.lifecycle import HttpConnection
from tests.server import live

POST = b"POST /tools/read_file HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n"

OVERRIDDEN = {
    "_unsupported_upgrade_warning": ["self"],
    "connection_lost": ["self", "exc"],
    "connection_made": ["self", "transport"],
    "data_received": ["self", "data"],
    "send_400_response": ["self", "msg"],
}
"""Methods that `Connection` overrides, with their parameters."""
CHANGED = (
    f"uvicorn {uvicorn.__version__} isn't as knapper.server's connections and running expect it: look through them"
)


def exchange(address: str, *sent: bytes) -> bytes:
    """Send bytes, each once something came back for those before, and give all that comes until the server closes."""
    found = b""
    with live.connected(address) as connection, contextlib.suppress(ConnectionError):
        for number, part in enumerate(sent):
            found += connection.recv(65_536) if number else b""
            connection.sendall(part)
        while piece := connection.recv(65_536):
            found += piece
    return found


@pytest.mark.parametrize(
    "sent",
    [
        b"NONSENSE\r\n\r\n",
        b"GET /health HTTP/1.1\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: \x00\r\n\r\n",
        POST + b"Content-Length: -5\r\n\r\n",
        CHUNKED + b"\r\nno size\r\n",
    ],
)
def test_what_is_no_request_is_told_as_any_other_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, sent: bytes
) -> None:
    with live.serving(tmp_path) as server, caplog.at_level(logging.INFO):
        token = b"Authorization: Bearer " + server.token.encode() + b"\r\n"
        head, _, body = exchange(server.address, sent.replace(CHUNKED, CHUNKED + token)).partition(b"\r\n\r\n")

    status, *lines = head.decode().lower().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    told = json.loads(body)
    assert status == "http/1.1 400 bad request"
    assert (told["success"], told["code"]) == (False, "bad_request")
    assert (headers["content-type"], headers["connection"]) == ("application/json", "close")
    assert f"{headers['x-request-id']} - ? /… 400" in caplog.text


def test_nonsense_after_an_answer_ends_the_connection_and_nothing_fails(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with live.serving(tmp_path) as server, caplog.at_level(logging.INFO):
        found = exchange(server.address, CHUNKED + b"\r\n", b"no size\r\n")

    assert found.count(b"HTTP/1.1 ") == found.count(b"HTTP/1.1 401 ") == 1
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


def test_whoever_offers_another_protocol_is_answered_in_this_one_without_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    offer = {"connection": "upgrade, http2-settings", "upgrade": "h2c", "http2-settings": "AAMAAABkAAQCAAAAAAIAAAAA"}
    with live.serving(tmp_path) as server, server.client() as client, caplog.at_level(logging.INFO):
        found = client.get("/health", headers=offer)

    assert found.status_code == 200
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_who_comes_when_there_are_too_many_connections_is_sent_away_in_the_one_shape(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HttpConnection, "most", 1)
    with live.serving(tmp_path) as server:
        with live.connected(server.address) as first:
            first.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            served = first.recv(65_536)
            with server.client() as client:
                found = client.get("/health", headers={"x-request-id": "abc"})
        monkeypatch.undo()
        with server.client() as client:
            again = client.get("/health")

    assert served.startswith(b"HTTP/1.1 200 ")
    assert (found.status_code, found.json()["code"]) == (503, "busy")
    assert (found.headers["retry-after"], found.headers["x-request-id"]) == ("1", "abc")
    assert again.status_code == 200


@pytest.mark.parametrize(
    ("owner", "name", "parameters"),
    [
        *((H11Protocol, name, parameters) for name, parameters in OVERRIDDEN.items()),
        (uvicorn.Server, "capture_signals", ["self"]),
        (uvicorn.Server, "startup", ["self", "sockets"]),
        (uvicorn.Server, "shutdown", ["self", "sockets"]),
    ],
)
def test_uvicorn_still_has_the_methods_that_are_overridden(owner: type, name: str, parameters: list[str]) -> None:
    method: Callable[..., object] | None = vars(owner).get(name)

    assert method is not None, f"{CHANGED}; {name} is gone"
    assert [*inspect.signature(method).parameters] == parameters, f"{CHANGED}; {name} has other parameters"


def test_all_methods_that_are_overridden_are_compared() -> None:
    inherited = {name for name in vars(HttpConnection) if callable(getattr(H11Protocol, name, None))}

    assert inherited == OVERRIDDEN.keys()


@pytest.mark.parametrize(
    ("owner", "names"),
    [
        (H11Protocol, {"app", "conn", "connections", "cycle", "loop", "transport"}),
        (RequestResponseCycle, {"response_complete"}),
    ],
)
def test_uvicorn_still_sets_the_attributes_that_are_used(owner: type, names: set[str]) -> None:
    initial = inspect.unwrap(owner.__init__).__code__

    assert names - {*initial.co_names} == set(), CHANGED

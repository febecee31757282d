"""Which methods a path takes: HEAD wherever GET is, and a refusal names them all."""

from pathlib import Path

import pytest

from knapper.server import credentials
from knapper.server.http import page
from tests.server import apps, chats, live

ANSWERED = [
    *("/health", "/tools", "/search?query=rain", "/notes/Rain.md", "/proposals", "/sessions?limit=1", "/"),
    *("/app/notes/Rain.md", "/app/notes/two%0Alines.md"),
]


@pytest.mark.parametrize("path", ANSWERED)
def test_head_is_answered_as_get_is(tmp_path: Path, path: str) -> None:
    with apps.world(tmp_path) as world:
        own = page.mount_page(credentials.open_browser_sessions(world.settings.state_dir))
        with world.client(None, chats.jobs(world.hub, world.stop), own) as client:
            whole, head = client.get(path), client.head(path)

    told = {name: value for name, value in head.headers.items() if name != "x-request-id"}
    assert head.status_code == whole.status_code == 200
    assert told == {name: value for name, value in whole.headers.items() if name != "x-request-id"}


def test_head_sends_no_body_and_the_connection_goes_on(tmp_path: Path) -> None:
    with live.serving(tmp_path) as server, live.connected(server.address) as connection:
        connection.sendall(b"HEAD /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        head = connection.recv(65_536)
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        whole = connection.recv(65_536)

    assert head.startswith(b"HTTP/1.1 200 ")
    assert head.endswith(b"\r\n\r\n")
    assert whole.startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/health", "GET, HEAD"),
        ("/tools/read_file", "POST"),
        ("/sessions", "GET, HEAD, POST"),
        ("/sessions/x", "DELETE, GET, HEAD, PATCH"),
        ("/presets/x", "DELETE, PUT"),
        ("/chat/x/events", "GET"),
    ],
)
def test_a_method_that_a_path_does_not_take_is_refused_with_those_that_it_takes(
    tmp_path: Path, path: str, allowed: str
) -> None:
    with (
        apps.world(tmp_path) as world,
        world.client(None, chats.jobs(world.hub, world.stop)) as client,
    ):
        found = [client.request(method, path) for method in ("COPY", "OPTIONS")]

    assert [(one.status_code, one.headers["allow"]) for one in found] == [(405, allowed)] * 2
    assert [one.json()["hint"] for one in found] == [f"it takes {allowed}"] * 2


def test_the_document_describes_each_route_once(tmp_path: Path) -> None:
    with apps.world(tmp_path) as world, world.client() as client:
        described = client.get("/openapi.json").json()["paths"]

    assert [path for path, operations in described.items() if "head" in operations] == []

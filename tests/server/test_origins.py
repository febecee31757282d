"""No web page elsewhere drives the server: Host, Origin and CORS."""

from dataclasses import replace
from pathlib import Path

import pytest

from knapper.config.sections import ServerSettings
from knapper.errors import SetupError
from knapper.server import security
from tests.server import apps

TOKEN = "t" * 32


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:25627", "localhost:9000", "LOCALHOST", "[::1]:25627", "127.9.9.9"]
)
def test_the_server_answers_by_loopback_names(tmp_path: Path, host: str) -> None:
    with apps.world(tmp_path) as world, world.client() as client:
        found = client.get("/notes/Rain.md", headers={"host": host})

    assert found.status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        *(
            "evil.example",
            "evil.example:25627",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "192.168.1.7:25627",
        ),
        *("[::1", "127.0.0.1:80x", "localhost@evil.example", "0.0.0.0:25627", "2130706433", "[::2]"),
    ],
)
@pytest.mark.parametrize("path", ["/health", "/tools", "/mcp"])
def test_a_rebound_name_is_refused_before_anything_else(tmp_path: Path, host: str, path: str) -> None:
    with apps.world(tmp_path) as world, world.client() as client:
        found = client.get(path, headers={"host": host})

    assert (found.status_code, found.json()["code"]) == (403, "host_refused")


@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS", "DELETE"])
@pytest.mark.parametrize("path", ["/health", "/tools/read_file", "/mcp"])
@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1:9999", "file://", "app://obsidian.md.evil"]
)
def test_a_foreign_page_is_refused_even_with_the_token(tmp_path: Path, method: str, path: str, origin: str) -> None:
    with apps.world(tmp_path) as world, world.client() as client:
        found = client.request(method, path, headers={"origin": origin})

    assert (found.status_code, found.json()["code"]) == (403, "origin_refused")
    assert "access-control-allow-origin" not in found.headers


def test_the_own_page_may_call_and_needs_no_cors(tmp_path: Path) -> None:
    with apps.world(tmp_path) as world, world.client() as client:
        found = client.get("/notes/Rain.md", headers={"origin": apps.HOST})

    assert found.status_code == 200
    assert "access-control-allow-origin" not in found.headers


def test_a_listed_origin_gets_cors_for_itself_alone(tmp_path: Path) -> None:
    with apps.world(tmp_path) as world, world.client() as client:
        found = client.get("/notes/Rain.md", headers={"origin": "app://obsidian.md"})
        refused = client.get("/notes/None.md", headers={"origin": "app://obsidian.md"})

    assert (found.status_code, refused.status_code) == (200, 404)
    for reply in (found, refused):
        assert reply.headers["access-control-allow-origin"] == "app://obsidian.md"
        assert "Origin" in reply.headers["vary"]
        assert "access-control-allow-credentials" not in reply.headers


def test_even_an_unknown_client_of_a_listed_origin_can_read_the_refusal(tmp_path: Path) -> None:
    with apps.world(tmp_path) as world, world.client("") as client:
        found = client.get("/tools", headers={"origin": "app://obsidian.md"})

    assert found.status_code == 401
    assert found.headers["access-control-allow-origin"] == "app://obsidian.md"


def test_a_preflight_needs_no_token(tmp_path: Path) -> None:
    asked = {
        "origin": "app://obsidian.md",
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,content-type",
        "access-control-request-private-network": "true",
    }
    with apps.world(tmp_path) as world, world.client("") as client:
        found = client.options("/tools/read_file", headers=asked)

    assert found.status_code == 204
    assert "POST" in found.headers["access-control-allow-methods"]
    assert {"authorization", "content-type"} <= set(found.headers["access-control-allow-headers"].split(", "))
    assert found.headers["access-control-allow-private-network"] == "true"


def test_two_hosts_or_origins_are_one_too_many(tmp_path: Path) -> None:
    with apps.world(tmp_path) as world, world.client() as client:
        found = client.get("/health", headers=[("origin", apps.HOST), ("origin", "https://evil.example")])

    assert (found.status_code, found.json()["code"]) == (400, "bad_request")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "notes.example", ""])
def test_other_machines_are_let_in_only_with_a_token_of_the_owner(host: str) -> None:
    with pytest.raises(SetupError) as caught:
        _ = security.make_origin_rules(ServerSettings(host=host))

    assert caught.value.code == "token_needed"
    assert security.make_origin_rules(ServerSettings(host=host, token=TOKEN)).any_address


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.0.0.5"])
def test_loopback_needs_no_token_of_the_owner(host: str) -> None:
    assert not security.make_origin_rules(ServerSettings(host=host)).any_address


def test_a_server_for_others_answers_by_addresses_and_listed_names(tmp_path: Path) -> None:
    server = replace(apps.NO_LIMIT, host="0.0.0.0", token=TOKEN, hosts=("notes.example",))  # bound nowhere
    names = ["192.168.1.7:25627", "notes.example", "NOTES.example:443", "evil.example"]
    with apps.world(tmp_path, server=server) as world, world.client(TOKEN) as client:
        found = [client.get("/health", headers={"host": name}).status_code for name in names]

    assert found == [200, 200, 200, 403]


@pytest.mark.parametrize("origin", ["app://obsidian.md", "capacitor://localhost"])
def test_obsidian_on_computers_and_iphones_may_call_without_a_setting(tmp_path: Path, origin: str) -> None:
    asked = {
        "origin": origin,
        "access-control-request-method": "DELETE",
        "access-control-request-headers": "authorization,last-event-id,if-none-match",
    }
    with apps.world(tmp_path) as world, world.client() as client:
        preflight = client.options("/events", headers=asked)
        found = client.get("/notes/Rain.md", headers={"origin": origin})

    assert (preflight.status_code, found.status_code) == (204, 200)
    for reply in (preflight, found):
        assert reply.headers["access-control-allow-origin"] == origin
        assert "Origin" in reply.headers["vary"]
    assert set(asked["access-control-request-headers"].split(",")) <= set(
        preflight.headers["access-control-allow-headers"].split(", ")
    )


@pytest.mark.parametrize("host", ["127.0.0.1:25627", "localhost:25627", "localhost"])
def test_the_origin_of_any_local_page_never_calls(tmp_path: Path, host: str) -> None:
    headers = {"origin": "http://localhost", "host": host}
    with apps.world(tmp_path) as world, world.client() as client:
        refused = [client.get("/notes/Rain.md", headers=headers), client.options("/tools", headers=headers)]

    assert [reply.json()["code"] for reply in refused] == ["origin_refused"] * 2
    assert all("access-control-allow-origin" not in reply.headers for reply in refused)


def test_the_origin_of_any_local_page_can_not_be_listed() -> None:
    with pytest.raises(SetupError, match="http://localhost is the origin of every page"):
        _ = ServerSettings(origins=("app://obsidian.md", "http://LOCALHOST/")).checked()

    assert ServerSettings(origins=("http://localhost:3000",)).checked().origins == ("http://localhost:3000",)


def test_at_port_80_that_origin_is_the_servers_own(tmp_path: Path) -> None:
    with apps.world(tmp_path, server=replace(apps.NO_LIMIT, port=80)) as world, world.client() as client:
        found = client.get("/notes/Rain.md", headers={"origin": "http://localhost", "host": "localhost"})

    assert found.status_code == 200

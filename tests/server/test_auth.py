"""Who may ask: tokens, named clients, the page, and what each sees."""

import os
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from knapper.config import ClientSettings
from knapper.config.paired import hash_token
from knapper.errors import SetupError, StorageError
from knapper.server import credentials, security
from knapper.server.http.app import Mount
from knapper.vault import access
from tests.server import apps

READER = "knap_reader-reader-reader-reader"


def reader(**more: tuple[str, ...]) -> ClientSettings:
    """Give a client with a token of its own, that doesn't see the diary."""
    allowed = replace(access.default_grants("reader", "http"), is_read_only=True)
    return ClientSettings(grants=allowed, token_hash=hash_token(READER), hidden=("Private/",), **more)


def test_a_token_is_made_at_the_first_start_and_stays(tmp_path: Path) -> None:
    first = credentials.read_or_make_token(tmp_path, "api")
    page = credentials.read_or_make_token(tmp_path, "page")

    assert len(first) > 40
    assert first != page
    assert credentials.read_or_make_token(tmp_path, "api") == first
    assert {one.name for one in (tmp_path / "server").iterdir() if "." not in one.stem} == {"api.token", "page.token"}


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such modes")
def test_only_the_owner_can_read_a_token(tmp_path: Path) -> None:
    _ = credentials.read_or_make_token(tmp_path, "api")
    path = credentials.token_path(tmp_path, "api")

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such modes")
def test_a_token_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    _ = credentials.read_or_make_token(tmp_path, "api")
    path = credentials.token_path(tmp_path, "api")
    path.chmod(0o644)

    _ = credentials.read_or_make_token(tmp_path, "api")

    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_new_token_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    old = credentials.read_or_make_token(tmp_path, "api")
    new = credentials.replace_token(tmp_path, "api")

    assert new != old
    assert credentials.read_or_make_token(tmp_path, "api") == new


@pytest.mark.parametrize("content", [b"", b"\n"])
def test_an_empty_file_gets_a_token(tmp_path: Path, content: bytes) -> None:
    path = credentials.token_path(tmp_path, "api")
    path.parent.mkdir(parents=True)
    path.write_bytes(content)

    made = credentials.read_or_make_token(tmp_path, "api")

    assert path.read_text(encoding="ascii").strip() == made


def test_all_who_make_the_first_token_at_once_have_the_same(tmp_path: Path) -> None:
    for number in range(20):
        state, start = tmp_path / str(number), threading.Barrier(8)

        def make(state: Path = state, start: threading.Barrier = start) -> str:
            _ = start.wait()
            return credentials.read_or_make_token(state, "api")

        with ThreadPoolExecutor(8) as pool:
            made = {one.result() for one in [pool.submit(make) for _ in range(8)]}

        assert made == {credentials.read_or_make_token(state, "api")}
        assert [one.name for one in (state / "server").iterdir()] == ["api.token"]


@pytest.mark.parametrize(
    "content", [b"\xff\xfe", None, b"short", b"a" * 30 + b"\n" + b"b" * 30, b"a b" * 20, b"a" * 1_001]
)
def test_what_is_no_token_is_told_with_its_place(tmp_path: Path, content: bytes | None) -> None:
    path = credentials.token_path(tmp_path, "api")
    path.parent.mkdir(parents=True)
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)

    with pytest.raises(StorageError, match=r"api\.token") as caught:
        _ = credentials.read_or_make_token(tmp_path, "api")

    assert caught.value.code == "token_unusable"


def test_a_token_that_cant_be_stored_sends_nobody_to_a_file_that_isnt_there(tmp_path: Path) -> None:
    (tmp_path / "server").symlink_to(tmp_path / "gone" / "server")

    with pytest.raises(StorageError, match=r"api\.token can't be written") as caught:
        _ = credentials.read_or_make_token(tmp_path, "api")

    assert "set KNAP_STATE_DIR" in caught.value.hint
    assert "delete" not in caught.value.hint


def test_a_token_that_the_owner_set_needs_no_file(tmp_path: Path) -> None:
    settings = apps.settings(tmp_path, server=replace(apps.NO_LIMIT, token="a" * 30))

    known = security.load_client_tokens(settings)

    assert known.find_client("a" * 30) == "http"
    assert not credentials.token_path(settings.state_dir, "api").exists()


def test_two_clients_with_one_token_are_refused(tmp_path: Path) -> None:
    other = replace(reader(), grants=access.default_grants("other", "http"))
    settings = replace(apps.settings(tmp_path), clients=(reader(), other))

    with pytest.raises(SetupError, match="'reader' and 'other'"):
        _ = security.load_client_tokens(settings)


@pytest.mark.parametrize(
    "path", ["/tools", "/notes/Garden.md", "/openapi.json", "/nowhere", "/mcp", "/health/", "//health"]
)
def test_nothing_but_health_answers_without_a_token(tmp_path: Path, path: str) -> None:
    with apps.world(tmp_path) as world, world.client("") as client:
        found = client.get(path)
        health = client.get("/health")

    assert (found.status_code, found.json()["code"]) == (401, "unauthorized")
    assert found.headers["www-authenticate"].startswith("Bearer")
    assert health.status_code == 200


@pytest.mark.parametrize(
    "said",
    [
        "Bearer wrong",
        "Bearer ",
        "Bearer",
        "Basic dXNlcjpwYXNz",
        "bearer\t",
        "Bearer \u00e9",
        "",
        "Bearer " + "x" * 5000,
    ],
)
def test_a_wrong_token_is_refused_and_not_shown_again(tmp_path: Path, said: str) -> None:
    with apps.world(tmp_path) as world, world.client("") as client:
        found = client.get("/tools", headers=[(b"authorization", said.encode())])

    assert found.status_code == 401
    assert "wrong" not in found.text


def test_the_scheme_may_be_written_in_any_case(tmp_path: Path) -> None:
    with apps.world(tmp_path) as world, world.client("") as client:
        found = client.get("/notes/Rain.md", headers={"authorization": f"bEaReR {world.token()}"})

    assert found.status_code == 200


def test_health_tells_nothing_of_vaults(tmp_path: Path) -> None:
    with apps.world(tmp_path) as world, world.client("") as client:
        found = client.get("/health").json()

    assert set(found) == {"success", "status", "product", "version", "instance", "readers"}


def test_two_clients_see_different_notes(tmp_path: Path) -> None:
    with apps.world(tmp_path, reader()) as world, world.client() as api, world.client(READER) as limited:
        shown = api.get("/notes/Private/Diary.md")
        hidden = limited.get("/notes/Private/Diary.md")
        missing = limited.get("/notes/Private/Nothing.md")

    assert shown.status_code == 200
    assert hidden.status_code == missing.status_code == 404
    assert "tomatoes" not in hidden.text


def test_a_client_that_may_only_read_changes_nothing(tmp_path: Path) -> None:
    with apps.world(tmp_path, reader()) as world, world.client(READER) as limited:
        found = limited.post("/tools/append_to_file", json={"path": "Rain.md", "content": "More."})
        text = (world.root / "Rain.md").read_text(encoding="utf-8")

    assert found.status_code == 403
    assert "More." not in text


def test_only_the_page_accepts_what_the_api_may_only_propose(tmp_path: Path) -> None:
    careful = ClientSettings(grants=replace(access.default_grants("http"), large="propose"))
    with apps.world(tmp_path, careful) as world, world.client() as api, world.client(world.token("page")) as page:
        proposed = api.post("/tools/delete_file", json={"path": "Rain.md"}).json()
        digest = api.get(f"/proposals/{proposed['proposal_id']}").json()["digest"]
        by_api = api.post(f"/proposals/{proposed['proposal_id']}/accept", json={"digest": digest})
        was_there = (world.root / "Rain.md").exists()
        by_page = page.post(f"/proposals/{proposed['proposal_id']}/accept", json={"digest": digest})
        is_there = (world.root / "Rain.md").exists()

    assert proposed["status"] == "proposed"
    assert (by_api.status_code, was_there) == (403, True)
    assert (by_page.status_code, is_there) == (200, False)


def test_the_key_of_the_page_is_not_for_mcp_and_the_token_stands_for_an_mcp_client_there(tmp_path: Path) -> None:
    async def who(request: Request) -> Response:
        return PlainTextResponse(security.client_of(request.scope))

    mount = Mount(routes=[Route("/mcp", who), Route("/mcp/more", who), Route("/mcpx", who)])
    with (
        apps.world(tmp_path, reader()) as world,
        world.client(None, mount) as api,
        world.client(READER, mount) as own,
        world.client(world.token("page"), mount) as page,
    ):
        found = [api.get("/mcp").text, api.get("/mcp/more").text, api.get("/mcpx").text, own.get("/mcp").text]
        refused = [page.get("/mcp"), page.get("/mcp/more")]

    assert found == ["mcp", "mcp", "http", "reader"]
    assert [(one.status_code, one.json()["code"]) for one in refused] == [(403, "person_key_refused")] * 2


def test_what_a_client_wrote_stands_under_its_name_in_the_journal(tmp_path: Path) -> None:
    with apps.world(tmp_path) as world, world.client() as api, world.client(world.token("page")) as page:
        _ = api.post("/tools/append_to_file", json={"path": "Rain.md", "content": "One."})
        _ = page.post("/tools/append_to_file", json={"path": "Rain.md", "content": "Two."})
        rows = api.get("/changes").json()["results"]

    assert [row["client"] for row in rows] == ["page", "http"]

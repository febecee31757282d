"""Errors don't tell where things lie on the server's machine; the log does."""

import asyncio
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from knapper.agents.events import BackgroundJob, Done, FinalEventSpec, JobEventSink
from knapper.errors import ConflictError, KnapError, SetupError, StorageError
from knapper.server import logs
from knapper.server.http import background
from knapper.server.http.app import Mount
from tests.server import apps, chats
from tests.server.apps import World

ASKED = {"GET": ["/search?query=rain", "/sessions", "/ask/defaults"], "POST": ["/tools/vault_status"]}


def damaged(world: World) -> Path:
    """Put a folder where the index has its file."""
    (index,) = world.settings.state_dir.rglob("index.db")
    for file in index.parent.glob("index.db*"):
        file.unlink()
    index.mkdir(mode=0o700)
    return index


def test_an_index_that_cannot_be_opened_is_named_as_of_the_state(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with apps.world(tmp_path) as world, world.client() as client:
        _ = client.get("/search?query=rain")
    index = damaged(world)
    with (
        apps.world(tmp_path) as world,
        world.client(None, chats.jobs(world.hub, world.stop)) as client,
    ):
        found = [client.request(verb, path) for verb, paths in ASKED.items() for path in paths]

    assert {(one.status_code, one.json()["code"]) for one in found} == {(503, "storage")}
    assert {index.relative_to(tmp_path / "state").as_posix() in one.json()["error"] for one in found} == {True}
    assert [one for one in found if str(tmp_path) in one.text] == []
    assert f"{found[0].headers['x-request-id']} storage" in caplog.text
    assert str(index) in caplog.text


@pytest.mark.parametrize("kind", [StorageError, SetupError, ConflictError])
def test_no_error_tells_a_folder_of_the_machine(tmp_path: Path, kind: type[KnapError]) -> None:
    async def failing(request: Request) -> Response:
        del request
        raise kind(f"{tmp_path}/vault/A.md isn't there", hint=f"look into {tmp_path}/state")

    mount = Mount(routes=[Route("/failing", failing)])
    with apps.world(tmp_path) as world, world.client(None, mount) as client:
        found = client.get("/failing").json()

    assert (found["error"], found["hint"]) == ("A.md isn't there", "look into …")


def test_an_event_of_an_error_tells_no_folder_of_the_machine_either(tmp_path: Path) -> None:
    async def broken(tell: JobEventSink) -> None:
        del tell
        await asyncio.sleep(0)
        raise StorageError(f"{tmp_path}/state/sessions.db can't be used", hint="check it")

    async def streamed(request: Request) -> Response:
        live = BackgroundJob(
            id="1", subject_id="x", ending=FinalEventSpec(kind=Done, make=lambda state, _: Done(answer="", state=state))
        )
        live.start(broken)
        return background.stream_events(live, {}, request)

    mount = Mount(routes=[Route("/streamed", streamed)])
    with apps.world(tmp_path) as world, world.client(None, mount) as client:
        heard = list(chats.events(client.get("/streamed").iter_lines()))

    assert [one.name for one in heard] == ["start", "error", "done"]
    assert (heard[1].data["error"], heard[1].data["hint"]) == ("sessions.db can't be used", "check it")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("'/home/me/Notes/A b.md' is read-only", "'A b.md' is read-only"),
        ("the folder /home/me/Notes of the vault", "the folder … of the vault"),
        ("the folder '/home/me/Notes/'", "the folder '…/'"),
        ("/home/me/Notes", "…"),
        ("/home/me/Notes2/A.md and /home/me/Notes-old/A.md", "/home/me/Notes2/A.md and /home/me/Notes-old/A.md"),
        ("/mnt/home/me/Notes/A.md", "/mnt/home/me/Notes/A.md"),
        ("/home/me/Notes/state/index.db", "index.db"),
        ("GET /runs lists them", "GET /runs lists them"),
    ],
)
def test_only_the_folders_themselves_are_left_out(text: str, told: str) -> None:
    known = logs.redaction_for_folders([Path("/home/me/Notes"), Path("/home/me/Notes/state"), Path("/")])

    assert known.redact(text) == told


def test_without_folders_a_text_stays_as_it_is() -> None:
    assert logs.redaction_for_folders([Path("/")]).redact("/a/b") == "/a/b"

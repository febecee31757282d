"""What the log tells, and what it never does."""

import asyncio
import io
import logging
import logging.config
import os
import stat
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from knapper.server import logs
from knapper.server.http.app import Mount
from tests.server import apps


def test_a_line_names_request_client_and_route_and_nothing_of_notes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with apps.world(tmp_path) as world, world.client() as client, caplog.at_level(logging.INFO):
        _ = client.get("/notes/Private/Diary.md?heading=Diary", headers={"x-request-id": "abc"})
        _ = client.post("/tools/read_file", json={"path": "Private/Diary.md"})
        _ = client.get("/search?query=tomatoes")
        token = world.token()

    lines = [record.getMessage() for record in caplog.records if record.name == "knapper.server.requests"]
    assert lines[0].startswith("abc http GET /notes/{path} 200 ")
    assert "http POST /tools/read_file 200" in lines[1]
    for word in ("Diary", "tomatoes", token):
        assert word not in " ".join(lines)


def test_a_path_that_is_no_route_is_not_repeated(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with apps.world(tmp_path) as world, world.client("") as client, caplog.at_level(logging.INFO):
        _ = client.get("/secret%0Aforged line")
        _ = client.get("/notes/Diary.md")
        _ = client.request("BREW", "/x")

    lines = [record.getMessage() for record in caplog.records if record.name == "knapper.server.requests"]
    assert [line.split(" ")[2:5] for line in lines] == [
        ["GET", "/…", "401"],
        ["GET", "/notes…", "401"],
        ["?", "/x…", "401"],
    ]
    assert "forged" not in " ".join(lines)


def test_a_mistake_of_ours_is_told_by_its_place_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def broken(request: Request) -> Response:
        del request
        raise LookupError("text of a note")

    mount = Mount(routes=[Route("/broken", broken)])
    with apps.world(tmp_path) as world, world.client(None, mount) as client, caplog.at_level(logging.INFO):
        found = client.get("/broken", headers={"x-request-id": "abc"})

    assert (found.status_code, found.json()["code"]) == (500, "internal")
    assert "abc" in found.json()["hint"]
    assert found.headers["x-request-id"] == "abc"
    assert "text of a note" not in found.text


def test_who_went_away_is_no_mistake_of_ours(caplog: pytest.LogCaptureFixture) -> None:
    async def silent(scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive, send

    async def never() -> Message:
        raise AssertionError

    async def nobody(message: Message) -> None:
        raise AssertionError(message)

    scope: Scope = {"type": "http", "method": "POST", "path": "/tools/read_file", "headers": []}
    with caplog.at_level(logging.INFO):
        asyncio.run(logs.RequestTracing(silent)(scope, never, nobody))

    assert " POST /tools… 499 " in caplog.records[-1].getMessage()


def test_an_exception_is_written_without_its_message() -> None:
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(logs.LineFormatter())
    logger = logging.Logger("one", logging.INFO)
    logger.addHandler(handler)
    error = ValueError("text of a note")
    error.__cause__ = KeyError("key of a person")
    try:
        raise error
    except ValueError:
        logger.exception("it failed")

    assert "ValueError at " in written.getvalue()
    assert "because of KeyError at " in written.getvalue()
    assert "test_logs.py" in written.getvalue()
    assert "of a " not in written.getvalue()


def test_a_log_is_rotated_and_each_of_its_files_is_its_owners_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "MAX_LOG_BYTES", 500)
    target = logs.logging_configuration(file=tmp_path / "serve.log")["handlers"]["lines"]
    options = {name: value for name, value in target.items() if name not in {"formatter", "filters"}}
    handler = logging.config.DictConfigurator({"version": 1}).configure_handler(options)
    for number in range(400):
        handler.emit(logging.makeLogRecord({"msg": f"line {number}"}))
    handler.close()

    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == ["serve.log", "serve.log.1", "serve.log.2", "serve.log.3"]
    assert "line 399\n" in files[0].read_text(encoding="utf-8")
    assert max(file.stat().st_size for file in files) <= 500
    if os.name == "posix":
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}

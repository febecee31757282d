"""What requests may carry: sizes, kinds, broken JSON; in time."""

import asyncio
import gzip
import json
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import jsonschema
import pytest
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from knapper.errors import BadInput
from knapper.server.http import binding
from knapper.server.http.binding import Parameter, RequestArguments
from knapper.server.security import BodyIntake
from knapper.tools.context import SCRIPT_PROFILES
from knapper.tools.links import GRAPH_TIES
from tests.server import apps, live

SMALL = replace(apps.NO_LIMIT, max_body_mb=1)
JSON = {"content-type": "application/json"}


def pieces(size: int) -> Iterator[bytes]:
    for _ in range(size // 10_000):
        yield b" " * 10_000


def test_a_body_that_is_said_to_be_too_large_is_refused(tmp_path: Path) -> None:
    with apps.world(tmp_path, server=SMALL) as world, world.client() as client:
        found = client.post("/tools/read_file", content=b" " * 1_000_001, headers=JSON)

    assert (found.status_code, found.json()["code"]) == (413, "too_large")


def test_a_body_of_no_said_length_is_refused_once_it_is_too_large(tmp_path: Path) -> None:
    with apps.world(tmp_path, server=SMALL) as world, world.client() as client:
        large = client.post("/tools/read_file", content=pieces(2_000_000), headers=JSON)
        fitting = client.post("/tools/list_changes", content=iter([b'{"limit"', b":1}"]), headers=JSON)

    assert (large.status_code, fitting.status_code) == (413, 200)


@pytest.mark.parametrize("length", ["-1", "1e3", "٣", "9" * 400])
def test_a_length_that_is_no_length_is_refused(tmp_path: Path, length: str) -> None:
    with apps.world(tmp_path) as world, world.client() as client:
        found = client.post("/tools/list_changes", content=b"{}", headers=[(b"content-length", length.encode())])

    assert found.status_code in {400, 413}


@pytest.mark.timeout(60)
def test_whoever_sends_far_too_much_before_reading_reads_why_it_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("knapper.server.security._LINGER_S", 30)  # however slowly a busy machine takes it in
    size = 60_000_000
    with live.serving(tmp_path) as server:
        address = urlsplit(server.address)
        lines = [
            "POST /tools/append_to_file HTTP/1.1",
            f"Host: {address.netloc}",
            f"Authorization: Bearer {server.token}",
            "Content-Type: application/json",
            f"Content-Length: {size}",
        ]
        with socket.create_connection((address.hostname, address.port), timeout=30) as client:
            client.sendall("\r\n".join([*lines, "", ""]).encode() + b" " * size)
            answer = client.makefile("rb").read()

    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b'"code":"too_large"' in answer


def test_nobody_without_a_token_makes_the_server_read_a_body(tmp_path: Path) -> None:
    with apps.world(tmp_path, server=SMALL) as world, world.client("") as client:
        found = client.post("/tools/read_file", content=b" " * 1_000_001, headers=JSON)

    assert found.status_code == 401


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "", "multipart/form-data", "json"])
def test_a_body_that_is_not_said_to_be_json_is_refused(tmp_path: Path, kind: str) -> None:
    with apps.world(tmp_path) as world, world.client() as client:
        found = client.post("/tools/read_file", content=b'{"path": "Rain.md"}', headers={"content-type": kind})

    assert (found.status_code, found.json()["code"]) == (415, "wrong_content_type")


def test_a_compressed_body_is_told_so_and_not_taken_for_broken_text(tmp_path: Path) -> None:
    packed = gzip.compress(b'{"path": "Rain.md"}')
    with apps.world(tmp_path) as world, world.client() as client:
        found = client.post("/tools/read_file", content=packed, headers={**JSON, "content-encoding": "gzip"})
        plain = client.post("/tools/list_changes", content=b"{}", headers={**JSON, "content-encoding": "identity"})

    assert (found.status_code, found.json()["code"]) == (415, "wrong_content_type")
    assert "Content-Encoding" in found.json()["hint"]
    assert plain.status_code == 200


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "application/vnd.x+json", "Application/JSON"])
def test_json_may_be_called_by_its_other_names(tmp_path: Path, kind: str) -> None:
    with apps.world(tmp_path) as world, world.client() as client:
        found = client.post("/tools/read_file", content=b'{"path": "Rain.md"}', headers={"content-type": kind})

    assert found.status_code == 200


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", "invalid_json"),
        (b"\xff\xfe{}", "invalid_json"),
        (b"null", "not_an_object"),
        (b'["path"]', "not_an_object"),
        (b'"Rain.md"', "not_an_object"),
        (b'{"limit": NaN}', "invalid_json"),
        (b'{"limit": Infinity}', "invalid_json"),
        (b'{"limit": ' + b"9" * 5_000 + b"}", "invalid_json"),
        (b"[" * 100_000, "invalid_json"),
        (b'{"path": "\\ud800"}', "invalid_text"),
        (b'{"\\udfff": 1}', "invalid_text"),
    ],
)
def test_what_is_no_json_object_is_told_so(tmp_path: Path, body: bytes, code: str) -> None:
    with apps.world(tmp_path) as world, world.client() as client:
        found = client.post("/tools/list_changes", content=body, headers=JSON)

    assert (found.status_code, found.json()["code"]) == (400, code)


def test_a_byte_order_mark_before_the_json_is_taken(tmp_path: Path) -> None:
    with apps.world(tmp_path) as world, world.client() as client:
        found = client.post("/tools/list_changes", content=b"\xef\xbb\xbf{}", headers=JSON)

    assert found.status_code == 200


def test_a_note_of_many_kilobytes_is_written_whole(tmp_path: Path) -> None:
    text = "Grüße 🌧\n" * 40_000
    with apps.world(tmp_path) as world, world.client() as client:
        found = client.post("/tools/create_file", json={"path": "Long.md", "content": text})
        written = (world.root / "Long.md").read_text(encoding="utf-8")

    assert found.status_code == 200
    assert written == text


def intake(messages: list[Message], *, timeout_s: float = 0.05) -> tuple[list[Message], list[bytes]]:
    """Send messages to an app that reads its body once; gives what was answered, and the bodies that came through."""
    answered: list[Message] = []
    bodies: list[bytes] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        del scope
        bodies.append((await receive())["body"])
        bodies.append((await receive())["type"].encode())
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def receive() -> Message:
        if messages:
            return messages.pop(0)
        await asyncio.sleep(3600)
        raise AssertionError

    async def send(message: Message) -> None:
        answered.append(message)

    scope: Scope = {"type": "http", "method": "POST", "path": "/", "headers": []}
    asyncio.run(BodyIntake(app, max_bytes=100, timeout_s=timeout_s)(scope, receive, send))
    return answered, bodies


def test_a_body_that_never_ends_is_given_up() -> None:
    answered, bodies = intake([{"type": "http.request", "body": b"{", "more_body": True}])

    assert answered[0]["status"] == 408
    assert json.loads(answered[1]["body"])["code"] == "too_slow"
    assert (b"connection", b"close") in answered[0]["headers"]
    assert bodies == []


def test_pieces_come_through_as_one_and_what_follows_stays() -> None:
    parts: list[Message] = [
        {"type": "http.request", "body": b"ab", "more_body": True},
        {"type": "http.request", "body": b"c", "more_body": False},
        {"type": "http.disconnect"},
    ]
    answered, bodies = intake(parts)

    assert answered[0]["status"] == 200
    assert bodies == [b"abc", b"http.disconnect"]


def test_who_goes_away_while_sending_is_not_answered() -> None:
    answered, bodies = intake([{"type": "http.request", "body": b"ab", "more_body": True}, {"type": "http.disconnect"}])

    assert (answered, bodies) == ([], [])


_DEPTH = binding.count_parameter("depth", "How far.", 0, 9)
_SCOPE = Parameter(name="scope", doc="What it covers.", kind="object", fields=(_DEPTH,))


def test_a_whole_number_may_be_written_with_a_fraction_of_zero() -> None:
    body = b'{"depth": 8.0, "scope": {"depth": 2e0}}'
    arguments = asyncio.run(binding.read_arguments(posted(body), [_DEPTH, _SCOPE]))

    assert (repr(arguments.integer("depth")), repr(arguments.object("scope").integer("depth"))) == ("8", "2")


def test_no_other_fraction_is_taken_for_a_whole_number() -> None:
    with pytest.raises(BadInput, match="'depth' isn't a number that can be used"):
        asyncio.run(binding.read_arguments(posted(b'{"depth": 8.5}'), [_DEPTH]))


_TASK = Parameter(name="task", doc="What to do.", required=True)
_MODEL = Parameter(name="model", doc="Which one.", refuses_blank=True)
_NOTE = Parameter(name="note", doc="About it.")


@pytest.mark.parametrize("parameter", [_TASK, _MODEL, _NOTE])
@pytest.mark.parametrize("text", ["", " \n", " Rain "])
def test_a_text_is_refused_as_empty_where_the_document_says_so(parameter: Parameter, text: str) -> None:
    is_valid = True
    body = {"task": "T", parameter.name: text}
    try:
        jsonschema.validate(body, {"properties": {parameter.name: parameter.schema}})
    except jsonschema.ValidationError:
        is_valid = False
    try:
        _ = asyncio.run(binding.read_arguments(posted(json.dumps(body).encode()), [_TASK, _MODEL, _NOTE]))
    except BadInput as error:
        refusal = error.message
    else:
        refusal = ""

    assert refusal == ("" if is_valid else f"'{parameter.name}' is empty")
    assert bool(refusal) == (not text.strip() and (parameter is _TASK or (parameter is _MODEL and text != "")))


def posted(body: bytes) -> Request:
    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    scope: Scope = {"type": "http", "method": "POST", "path": "/", "query_string": b"", "path_params": dict[str, str]()}
    return Request({**scope, "headers": [(b"content-type", b"application/json")]}, receive)


def test_a_word_that_is_no_choice_is_refused_with_the_choices() -> None:
    args = RequestArguments(values={"by": "colour", "profile": "local", "empty": ""})

    assert args.choice("profile", SCRIPT_PROFILES, "strict") == "local"
    assert args.choice("empty", SCRIPT_PROFILES, "strict") == "strict"
    with pytest.raises(BadInput, match="'by' can't be 'colour'") as raised:
        _ = args.choice("by", GRAPH_TIES, "links")
    assert raised.value.hint == "give links, meaning, both"

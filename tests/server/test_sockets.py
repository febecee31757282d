"""Where a server listens, and what is told where another program has the port."""

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from knapper.errors import SetupError
from knapper.server import addresses
from knapper.server.addresses import ServerRecord

HEAVY = ["uvicorn", "starlette", "numpy", "pydantic", "urllib.request", "knapper.app", "knapper.server.http"]
TAKEN_BY_NOBODY_KNOWN = "is taken by another program"


@pytest.mark.skipif(not socket.has_ipv6, reason="this machine has no IPv6")
@pytest.mark.parametrize("host", ["::1", "[::1]"])
def test_an_address_of_ipv6_may_stand_in_brackets(host: str) -> None:
    try:
        taken = addresses.bind_socket("::1", 0)
    except SetupError:
        pytest.skip("IPv6 is switched off here")
    taken.close()

    with addresses.bind_socket(host, 0) as again:
        address = addresses.socket_url(again)

    assert address.startswith("http://[::1]:")


@contextmanager
def listening(reply: bytes, *, pause_s: float = 0.0) -> Generator[tuple[int, list[bytes]]]:
    """Answer each connection with bytes, one by one with a pause where one is given; yields the port and what came."""
    received: list[bytes] = []

    def answer() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                received.append(connection.recv(4_096))
                try:
                    for piece in [bytes([each]) for each in reply] if pause_s else [reply]:
                        connection.sendall(piece)
                        time.sleep(pause_s)
                except OSError:
                    continue

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield listener.getsockname()[1], received
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(20)


def health(**fields: object) -> bytes:
    body = json.dumps({"product": "knapper", "version": "0.9.0", "instance": "a", **fields}).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n" + body


def refusal(state: Path, port: int, host: str = "127.0.0.1") -> SetupError:
    with pytest.raises(SetupError) as caught:
        _ = addresses.bind_socket(host, port, state)
    return caught.value


def record(state: Path, port: int, instance: str = "a") -> None:
    url = f"http://127.0.0.1:{port}"
    started = "2026-11-23T09:00:00+00:00"
    addresses.write_record(state, ServerRecord(pid=7, url=url, started=started, version="1", instance=instance))


def test_the_own_server_is_told_as_such(tmp_path: Path) -> None:
    with listening(health()) as (port, received):
        record(tmp_path, port)
        error = refusal(tmp_path, port)

    assert error.code == "already_serving"
    assert f"your server already answers at http://127.0.0.1:{port} (process 7" in error.message
    assert all(way in error.hint for way in ("knap token page", "knap service stop", f"--port {port + 1}"))
    assert received == [f"GET /health HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()]  # and no token


@pytest.mark.parametrize("has_record", [False, True])
def test_another_knapper_is_told_as_such(tmp_path: Path, has_record: bool) -> None:
    with listening(health(instance="b")) as (port, _):
        if has_record:
            record(tmp_path, port)
        error = refusal(tmp_path, port)

    assert error.code == "port_taken"
    assert "has another Knapper 0.9.0" in error.message


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"SSH-2.0-OpenSSH_9.9\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 9_000,
        health(product="other"),
        health().replace(b"200 OK", b"404 Not Found"),
        b"HTTP/1.1 200 OK\r\n\r\n\xff",
        b"x" * 100_000,
    ],
)
def test_any_other_program_is_told_as_such(tmp_path: Path, reply: bytes) -> None:
    with listening(reply) as (port, _):
        record(tmp_path, port)
        error = refusal(tmp_path, port)

    assert error.code == "port_taken"
    assert TAKEN_BY_NOBODY_KNOWN in error.message


def test_what_another_program_says_of_itself_cannot_steer_a_terminal(tmp_path: Path) -> None:
    with listening(health(version="\x1b[31m1", instance="b")) as (port, _):
        error = refusal(tmp_path, port)

    assert "has another Knapper:" in error.message
    assert "\x1b" not in error.message


@pytest.mark.timeout(60)
def test_a_program_that_says_a_byte_at_a_time_is_not_listened_to_for_long(tmp_path: Path) -> None:
    with listening(health() + b" " * 50, pause_s=0.2) as (port, _):
        error = refusal(tmp_path, port)

    assert TAKEN_BY_NOBODY_KNOWN in error.message


def test_the_other_port_of_the_hint_is_one(tmp_path: Path) -> None:
    with listening(b"") as (port, _), socket.socket() as last:
        try:
            last.bind(("127.0.0.1", 65_535))
            last.listen(1)
        except OSError:
            pytest.skip("the last port is in use here")
        errors = [refusal(tmp_path, port), refusal(tmp_path, 65_535)]

    assert f"--port {port + 1}`" in errors[0].hint
    assert "--port 25627`" in errors[1].hint


@pytest.mark.timeout(60)
def test_a_taken_port_is_told_before_anything_slow_is_imported(tmp_path: Path, own_home: Path) -> None:
    (own_home / "vault").mkdir()
    program = (
        "import sys; from knapper.cli import main; "
        "code = main.run(sys.argv[1:]); print(code, *sys.modules, file=sys.stdout)"
    )
    with listening(health(instance="b")) as (port, _):
        command = [sys.executable, "-c", program, "--vault", str(own_home / "vault"), "serve", "--port", str(port)]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=50, check=True, cwd=tmp_path)
    code, *modules = ended.stdout.split()

    assert (code, "another Knapper" in ended.stderr) == ("3", True)
    assert [name for name in HEAVY if name in modules] == []

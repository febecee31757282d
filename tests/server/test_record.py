"""The running server's record, by which other programs find it and know it from others."""

import json
import os
import signal
import stat
import subprocess
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from knapper.server import addresses
from knapper.server.addresses import ServerRecord
from tests.server.servers import KNAP

RECORD = ServerRecord(pid=1, url="http://127.0.0.1:1", started="2026-11-23T09:00:00+00:00", version="1", instance="a")


def test_what_is_written_is_read_and_its_owners_alone(tmp_path: Path) -> None:
    addresses.write_record(tmp_path, RECORD)
    path = addresses.record_path(tmp_path)

    assert addresses.read_record(tmp_path) == RECORD
    assert [each.name for each in path.parent.iterdir()] == ["server.json"]
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_later_servers_record_stays(tmp_path: Path) -> None:
    later = ServerRecord(pid=2, url=RECORD.url, started=RECORD.started, version="1", instance="b")
    addresses.write_record(tmp_path, later)

    addresses.remove_record(tmp_path, RECORD)
    stayed = addresses.read_record(tmp_path)
    addresses.remove_record(tmp_path, later)

    assert stayed == later
    assert addresses.read_record(tmp_path) is None


def test_the_record_of_an_older_server_is_of_one_that_is_no_service(tmp_path: Path) -> None:
    addresses.write_record(tmp_path, RECORD)
    path = addresses.record_path(tmp_path)
    fields = json.loads(path.read_text(encoding="utf-8"))
    del fields["service"]
    path.write_text(json.dumps(fields), encoding="utf-8")

    assert addresses.read_record(tmp_path) == RECORD


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        json.dumps({"pid": 1, "url": "http://127.0.0.1:1"}),
        json.dumps({"pid": "1", "url": "http://x", "started": "", "version": "", "instance": ""}),
        json.dumps({"pid": 1, "url": "http://x", "started": "", "version": "", "instance": "", "service": "no"}),
        json.dumps({"pid": 1, "url": "file:///etc/passwd", "started": "", "version": "", "instance": ""}),
        "\xff",
    ],
)
def test_another_text_is_no_record(tmp_path: Path, text: str) -> None:
    path = addresses.record_path(tmp_path)
    path.parent.mkdir()
    path.write_bytes(text.encode("latin-1"))

    assert addresses.read_record(tmp_path) is None
    assert addresses.find_server(tmp_path) is None


def test_another_program_that_has_the_port_is_not_taken_for_the_server(tmp_path: Path) -> None:
    class Other(BaseHTTPRequestHandler):
        reply = b""

        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(self.reply)

        def log_message(self, format: str, *args: object) -> None: ...  # noqa: A002 - the standard library's name

    replies = (
        b'{"status": "ok"}',
        b"<html>",
        b'{"product": "knapper", "instance": "of another start"}',
        b'{"product": "knapper", "instance": "a"}',
    )
    with HTTPServer(("127.0.0.1", 0), Other) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}"
        wanted = ServerRecord(pid=1, url=url, started=RECORD.started, version="1", instance="a")
        addresses.write_record(tmp_path, wanted)
        found: list[ServerRecord | None] = []
        for Other.reply in replies:
            found.append(addresses.find_server(tmp_path))
        server.shutdown()
        thread.join()

    assert found == [None, None, None, wanted]


@pytest.mark.timeout(60)
@pytest.mark.slow  # starts two servers, and kills one
def test_a_server_is_found_while_it_runs_and_not_after_it_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "state"
    monkeypatch.setenv("KNAP_STATE_DIR", str(state))
    vault = tmp_path / "vault"
    vault.mkdir()
    command = [*KNAP, "--vault", str(vault), "--json", "serve", "--port", "0", "--no-watch"]
    log = tmp_path / "logs" / "serve.log"

    with subprocess.Popen([*command, "--log-file", str(log)], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        serving = json.loads(server.stdout.readline())
        found = addresses.find_server(state)
        server.send_signal(signal.SIGINT)
        stopped = json.loads(server.stdout.readline())
    ended = addresses.read_record(state)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        server.stdout.readline()
        server.kill()
    stale = addresses.read_record(state)

    assert found is not None
    assert (serving["event"], serving["url"], serving["instance"]) == ("serving", found.url, found.instance)
    assert serving["pid"] == found.pid
    assert serving["vaults"] == ["vault"]
    assert stopped == {"event": "stopped"}
    assert ended is None
    assert stale is not None
    assert addresses.find_server(state) is None
    assert "GET /health 200" in log.read_text(encoding="utf-8")

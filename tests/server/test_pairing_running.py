"""Pairing with a running server: codes from the command line, streams that end, and what the log keeps."""

import json
import os
import subprocess
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest

from knapper.cli import main
from tests.index import worlds
from tests.server import apps, servers
from tests.server.servers import KNAP, Running

pytestmark = pytest.mark.timeout(90)
OBSIDIAN = {"origin": "app://obsidian.md"}


@pytest.fixture
def vault(own_home: Path) -> Path:
    return worlds.fill(own_home / "vault", dict(apps.NOTES)).resolve()


def knap(*words: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    code = main.run([*words, "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert code == 0, answer
    return answer


def device(stack: ExitStack, server: Running, code: object, name: str) -> httpx2.Client:
    """Pair a device; its requests are those of Obsidian."""
    client = stack.enter_context(
        httpx2.Client(base_url=server.address, headers=OBSIDIAN, timeout=30, trust_env=False, verify=False)
    )
    answer = client.post("/pair", json={"code": code, "name": name, "device": "test"})
    assert answer.status_code == 201, answer.text
    client.headers["authorization"] = f"Bearer {answer.json()['token']}"
    return client


class Stream(threading.Thread):
    """Listen to what a vault tells until that ends."""

    def __init__(self, client: httpx2.Client) -> None:
        super().__init__(daemon=True)
        self._client = client
        self.text = ""
        self.began = threading.Event()

    def run(self) -> None:
        with self._client.stream("GET", "/events", timeout=60) as answer:
            try:
                for piece in answer.iter_text():
                    self.text += piece
                    self.began.set()
            except httpx2.HTTPError:
                self.text += "(broken off)"


def test_revoking_ends_streams_and_polls_of_that_device_alone(
    vault: Path, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    early = knap("--vault", str(vault), "connect", capsys=capsys)  # before any server runs
    with servers.serving(vault, home=own_home) as server, ExitStack() as stack:
        phone = device(stack, server, early["code"], "Phone")
        later = knap("--vault", str(vault), "connect", "--name", "Tablet", capsys=capsys)
        tablet = device(stack, server, later["code"], "ignored")
        streams = [Stream(phone), Stream(tablet)]
        for stream in streams:
            stream.start()
            assert stream.began.wait(30)
        last = phone.get("/events?after=0&wait=0").json()["last"]
        polled: list[httpx2.Response] = []
        poll = threading.Thread(target=lambda: polled.append(phone.get(f"/events?after={last}&wait=25")), daemon=True)
        poll.start()
        listed = knap("clients", "list", capsys=capsys)
        time.sleep(0.3)  # so that the poll waits

        _ = knap("clients", "revoke", "phone", capsys=capsys)
        streams[0].join(20)
        poll.join(20)
        (vault / "Told.md").write_text("# Told\n", encoding="utf-8")
        created = tablet.post("/tools/create_file", json={"path": "By tablet.md", "content": "# x\n"})
        after = phone.get("/notes/Rain.md")
        alive = tablet.get("/notes/Rain.md")
        rows = knap("clients", "list", "--all", capsys=capsys)["results"]
        code = server.stop()
        log = "\n".join(server.printed)

    assert (early["is_running"], later["is_running"], later["address"]) == (False, True, server.address)
    assert [row["name"] for row in listed["results"]] == ["Phone", "Tablet"]
    assert not streams[0].is_alive()
    assert streams[0].text.startswith("id: ")
    assert "(broken off)" not in streams[0].text
    assert polled[0].status_code == 401
    assert (after.status_code, after.json()["code"]) == (401, "unauthorized")
    assert (created.status_code, alive.status_code) == (200, 200)
    assert [(row["name"], bool(row["revoked"])) for row in rows] == [("Phone", True), ("Tablet", False)]
    assert code == 0
    assert "Traceback" not in log
    for client in (phone, tablet):
        assert client.headers["authorization"].removeprefix("Bearer ") not in log
    assert str(early["code"]) not in log
    assert str(later["code"]).replace("-", "") not in log
    assert "POST /pair 201" in log


def test_two_servers_on_one_state_know_the_same_devices_and_a_code_is_good_at_one(
    vault: Path, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = knap("--vault", str(vault), "connect", capsys=capsys)
    with (
        servers.serving(vault, home=own_home) as one,
        servers.serving(vault, home=own_home) as other,
        ExitStack() as stack,
    ):
        phone = device(stack, one, made["code"], "Phone")
        again = httpx2.post(f"{other.address}/pair", json={"code": made["code"]}, trust_env=False)
        read = phone.get(f"{other.address}/notes/Rain.md")
        _ = knap("clients", "revoke", "Phone", capsys=capsys)
        refused = [phone.get(f"{server.address}/notes/Rain.md").status_code for server in (one, other)]
        _ = one.stop(), other.stop()

    assert again.status_code == 403
    assert read.status_code == 200
    assert refused == [401, 401]


def test_a_second_server_is_told_that_the_first_is_its_own(vault: Path, own_home: Path) -> None:
    with servers.serving(vault, home=own_home) as server:
        command = [*KNAP, "--vault", str(vault), "--json", "serve", "--port", str(server.port)]
        second = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        env = {**os.environ, "KNAP_STATE_DIR": str(own_home / "elsewhere")}  # noqa: TID251  # for a process of its own
        third = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=env)
        _ = server.stop()

    assert second.returncode == third.returncode == 3
    assert json.loads(second.stdout)["code"] == "already_serving"
    assert server.address in json.loads(second.stdout)["error"]
    assert "has another Knapper" in json.loads(third.stdout)["error"]


def test_connect_shows_a_person_the_code_and_why_there_is_no_qr_code(
    vault: Path, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (own_home / "config.toml").write_text('[server]\nhosts = ["box.example", "192.168.1.9"]\n', encoding="utf-8")
    base = ["--vault", str(vault), "--no-color", "connect"]
    code = main.run(base)
    loopback = capsys.readouterr()
    plain = main.run([*base, "--address", "http://192.168.1.9:25627"]), capsys.readouterr()
    safe = main.run([*base, "--address", "https://box.example"]), capsys.readouterr()
    other = main.run([*base, "--address", "https://evil.example"]), capsys.readouterr()

    assert code == 0
    assert "code     " in loopback.out
    assert "obsidian://knapper?vault=vault&address=http%3A%2F%2F127.0.0.1%3A25627&code=" in loopback.out
    assert "no server runs" in loopback.err
    assert "docs/how-to/connect-a-phone.md" in loopback.err
    assert "█" not in loopback.out + plain[1].out
    assert "without HTTPS the token could be read on the way" in plain[1].err
    assert safe[1].out.count("█") > 100
    assert "QR" not in safe[1].err
    assert (other[0], "server.hosts" in other[1].err) == (3, True)

"""A service whose place is taken for a while: by a server in a terminal, another program, a drive that is missing."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any

import pytest

from knapper import config
from knapper.cli import launching, main
from knapper.cli.options import GlobalOptions
from knapper.server import addresses
from knapper.service import definition
from knapper.service.platforms import SystemdManager
from tests.service import supervisor
from tests.service.test_killed import SupervisingRunner

WAIT_S = 100.0
KNAP = (sys.executable, "-P", "-m", "knapper.cli")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(sys.platform != "linux", reason="the stand-in is one for systemd"),
]


def wait_for(condition: Callable[[], bool], log: Path) -> None:
    stop = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < stop, log.read_text(encoding="utf-8")
        time.sleep(0.05)


@pytest.fixture
def environment(tmp_path: Path, own_home: Path) -> Mapping[str, str]:
    return {
        **config.environment_variables(),
        "XDG_CONFIG_HOME": str(own_home / ".config"),
        "SUPERVISOR_STATE": str(tmp_path / "manager"),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }


@pytest.fixture
def manager(
    own_home: Path, environment: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> Generator[SystemdManager]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (own_home / "Notes").mkdir()
    (own_home / "Notes" / "Note.md").write_text("# Note\n", encoding="utf-8")
    (own_home / "config.toml").write_text(
        f'[vaults.notes]\npath = "{own_home / "Notes"}"\n\n[embeddings]\nkind = "none"\n\n[server]\nport = {port}\n',
        encoding="utf-8",
    )
    monkeypatch.setenv("XDG_CONFIG_HOME", str(own_home / ".config"))
    manager = SystemdManager(machine=definition.detect_machine(), runner=SupervisingRunner(environment))
    monkeypatch.setattr(launching, "open_manager", lambda: manager)
    monkeypatch.setattr(launching, "START_S", WAIT_S)
    yield manager
    manager.uninstall()


def knap(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = main.run([*words, "--json"])
    return int(code), json.loads(capsys.readouterr().out)


def test_a_service_takes_over_from_a_server_in_a_terminal(
    manager: SystemdManager,
    environment: Mapping[str, str],
    own_home: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    state, log = own_home / "state", tmp_path / "manager" / "log"
    with subprocess.Popen([*KNAP, "serve"], env=dict(environment), stderr=subprocess.DEVNULL) as by_hand:
        try:
            wait_for(lambda: addresses.find_server(state) is not None, own_home / "config.toml")
            installed = knap(capsys, "service", "install")
            wait_for(lambda: "waiting" in log.read_text(encoding="utf-8"), log)
            beside = knap(capsys, "service", "status")
        finally:
            by_hand.terminate()
            by_hand.wait()
    wait_for(lambda: (server := addresses.find_server(state)) is not None and server.pid != by_hand.pid, log)
    alone = knap(capsys, "service", "status")

    assert (installed[0], installed[1]["installed"], installed[1]["url"]) == (1, True, "")
    assert (beside[0], beside[1]["started_elsewhere"], beside[1]["pid"]) == (1, True, by_hand.pid)
    assert (alone[0], alone[1]["started_elsewhere"], alone[1]["running"]) == (0, False, True)
    assert supervisor.read_state(tmp_path / "manager")["pid"] == alone[1]["pid"]
    assert log.read_text(encoding="utf-8").count("already answers") == 1  # it waits, and isn't started again
    assert manager.file.exists()


def test_a_service_waits_for_a_port_that_another_program_has(
    manager: SystemdManager, own_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, port = tmp_path / "manager" / "log", config.load({}).server.port
    with socket.create_server(("127.0.0.1", port)):
        manager.install(launching.define_service(GlobalOptions(), config.load({})))
        wait_for(lambda: log.exists() and "waiting" in log.read_text(encoding="utf-8"), log)
    wait_for(lambda: addresses.find_server(own_home / "state") is not None, log)

    status = knap(capsys, "service", "status")

    assert (status[0], status[1]["url"]) == (0, f"http://127.0.0.1:{port}")


def test_a_service_waits_for_the_drive_of_its_vault(
    manager: SystemdManager, own_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, notes = tmp_path / "manager" / "log", own_home / "Notes"
    installed = knap(capsys, "service", "install", "--vault", "notes")
    notes.rename(own_home / "unmounted")
    manager.restart()
    wait_for(lambda: "isn't there; waiting" in log.read_text(encoding="utf-8"), log)
    (own_home / "unmounted").rename(notes)
    wait_for(lambda: addresses.find_server(own_home / "state") is not None, log)

    status = knap(capsys, "service", "status")

    assert (installed[0], status[0], status[1]["running"]) == (0, 0, True)

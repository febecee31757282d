"""`knap service`: what is installed for which command line, and what is said of it."""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from knapper.cli import launching, main
from knapper.server import addresses
from knapper.server.addresses import ServerRecord
from knapper.service.definition import CommandResult, System
from knapper.service.platforms import LaunchdManager, SystemdManager, TaskSchedulerManager
from tests.service import machines
from tests.service.machines import RecordingRunner

RUNNING = ServerRecord(
    pid=4711, url="http://127.0.0.1:9", started="2026-11-23T09:00:00+00:00", version="1", instance="a", service=True
)
BY_HAND = replace(RUNNING, service=False)
Manager = SystemdManager | LaunchdManager | TaskSchedulerManager


def answers(record_found: ServerRecord | None) -> Callable[[Path], ServerRecord | None]:
    return lambda _: record_found


@pytest.fixture(autouse=True)
def vault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "my Notes"
    folder.mkdir()
    monkeypatch.setattr(launching, "START_S", 0.05)
    monkeypatch.setattr(addresses, "find_server", answers(None))
    return folder


@pytest.mark.parametrize(
    ("system", "kind"),
    [("linux", SystemdManager), ("macos", LaunchdManager), ("windows", TaskSchedulerManager)],
)
def test_each_system_has_its_manager(tmp_path: Path, system: System, kind: type[object]) -> None:
    assert isinstance(launching.choose_manager(machines.machine(system, tmp_path), RecordingRunner()), kind)


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SystemdManager:
    manager = SystemdManager(machine=machines.machine("linux", tmp_path), runner=RecordingRunner())
    monkeypatch.setattr(launching, "open_manager", lambda: manager)
    return manager


def test_a_dry_run_says_which_variables_the_service_wont_have(
    manager: SystemdManager, vault: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")

    assert main.run(["service", "install", "--dry-run", "--vault", str(vault)]) == 0

    assert "OPENAI_API_KEY: set in this shell alone, so the service won't have it" in capsys.readouterr().err
    assert not manager.file.exists()


def test_a_dry_run_prints_the_definition_and_installs_nothing(
    manager: SystemdManager, vault: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main.run(["service", "install", "--dry-run", "--vault", str(vault), "--port", "9000"])
    shown = capsys.readouterr().out

    assert code == 0
    assert shown.startswith(f"# {manager.file}\n[Unit]\n")
    assert f'ExecStart="{sys.executable}" "-P" "-m" "knapper.cli" "serve" "--as-service" "--vault" "{vault}"' in shown
    assert '"--port" "9000"' in shown
    assert not manager.file.exists()


def test_the_service_has_the_configuration_and_the_state_of_the_command(
    manager: SystemdManager, vault: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "my.toml"
    config.write_text(f'[vaults.notes]\npath = "{vault.as_posix()}"\n', encoding="utf-8")
    monkeypatch.setenv("KNAP_CONFIG", str(config))
    monkeypatch.setenv("KNAP_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setattr(addresses, "find_server", answers(RUNNING))

    assert main.run(["service", "install"]) == 0

    unit = manager.file.read_text(encoding="utf-8")
    assert f'"serve" "--as-service" "--config" "{config}"\n' in unit
    assert f'Environment="KNAP_STATE_DIR={tmp_path / "state"}"\n' in unit


def test_the_service_has_what_variables_of_the_command_say(
    manager: SystemdManager,
    vault: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "knapper").mkdir()
    config = tmp_path / "knapper" / "config.toml"
    config.write_text(f'[vaults.notes]\npath = "{vault.as_posix()}"\n', encoding="utf-8")
    for name in ("KNAP_CONFIG", "KNAP_STATE_DIR"):
        monkeypatch.delenv(name)
    for name, value in (("XDG_CONFIG_HOME", tmp_path), ("XDG_DATA_HOME", tmp_path), ("API_PORT", 9001)):
        monkeypatch.setenv(name, str(value))
    monkeypatch.setenv("INDEX_INTERVAL", "15")
    monkeypatch.setattr(addresses, "find_server", answers(RUNNING))

    code = main.run(["service", "install", "--json"])

    unit = manager.file.read_text(encoding="utf-8")
    notes = json.loads(capsys.readouterr().out)["notes"]
    assert code == 0
    assert f'"serve" "--as-service" "--port" "9001" "--config" "{config}"\n' in unit
    assert f'Environment="KNAP_STATE_DIR={tmp_path / "knapper"}"\n' in unit
    assert notes[-1].startswith("INDEX_INTERVAL: set in this shell alone")
    assert "`knap config set index.interval_minutes 15`" in notes[-1]


def test_it_says_where_the_server_answers_and_how_to_take_it_away(
    manager: SystemdManager, vault: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(addresses, "find_server", answers(RUNNING))

    code = main.run(["service", "install", "--vault", str(vault)])
    shown = capsys.readouterr()

    assert code == 0
    assert shown.out == f"installed {manager.file}\nthe server answers at {RUNNING.url}\n"
    assert "knap service uninstall" in shown.err


def test_a_server_that_does_not_answer_is_a_failure(
    manager: SystemdManager, vault: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main.run(["service", "install", "--vault", str(vault)])

    assert code == 1
    assert manager.file.exists()
    assert "`knap service logs` says why" in capsys.readouterr().out


def test_a_server_that_was_started_by_hand_is_not_taken_for_the_service(
    manager: SystemdManager, vault: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(addresses, "find_server", answers(BY_HAND))

    before = main.run(["service", "status"])
    verbs = (["install", "--vault", str(vault)], ["start"], ["restart"], ["status"])
    codes = [main.run(["service", *words]) for words in verbs]
    shown = capsys.readouterr().out

    assert (before, codes) == (0, [1, 1, 1, 1])
    assert shown.count("isn't the service's: it was started elsewhere") == len(codes)
    assert manager.file.exists()


def test_where_another_server_has_the_address_nobody_waits(
    manager: SystemdManager, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del manager
    monkeypatch.setattr(launching, "START_S", 1e9)
    monkeypatch.setattr(addresses, "find_server", answers(BY_HAND))

    assert main.run(["service", "install", "--vault", str(vault), "--port", "9"]) == 1


@pytest.mark.parametrize("verb", ["start", "stop", "restart", "logs"])
def test_without_a_service_the_way_to_one_is_told(
    manager: SystemdManager, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main.run(["service", verb])
    shown = capsys.readouterr().err

    assert code == 2
    assert "no service is installed" in shown
    assert "knap service install" in shown
    assert not manager.file.exists()


def test_the_status_is_the_systems_and_the_servers(
    manager: SystemdManager, vault: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = main.run(["service", "status", "--json", "--vault", str(vault)])
    without = json.loads(capsys.readouterr().out)
    monkeypatch.setattr(addresses, "find_server", answers(RUNNING))
    main.run(["service", "install", "--quiet", "--vault", str(vault)])
    capsys.readouterr()
    after = main.run(["service", "status", "--json", "--vault", str(vault)])
    installed = json.loads(capsys.readouterr().out)

    assert (before, without["installed"], without["url"]) == (1, False, "")
    assert (after, installed["installed"], installed["url"], installed["pid"]) == (0, True, RUNNING.url, 4711)
    assert installed["manager"] == manager.name


@pytest.mark.parametrize("system", ["linux", "macos", "windows"])
def test_a_vault_can_be_watched_without_a_server(
    tmp_path: Path, vault: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], system: System
) -> None:
    running = {"systemctl --user show ": CommandResult(code=0, stdout="ActiveState=active\nSubState=running\n")}
    manager = launching.choose_manager(machines.machine(system, tmp_path / "watch"), RecordingRunner(running))
    monkeypatch.setattr(launching, "open_manager", lambda: manager)
    (tmp_path / "config.toml").write_text(f"state_dir = '{tmp_path / 'state'}'\n", encoding="utf-8")
    monkeypatch.setenv("KNAP_CONFIG", str(tmp_path / "config.toml"))
    monkeypatch.delenv("KNAP_STATE_DIR")  # a task of Windows is given no variables

    installed = main.run(["service", "install", "--watch-only", "--vault", str(vault)]), capsys.readouterr().out
    only_watches = launching.only_watches(manager)
    started = main.run(["service", "start"])
    capsys.readouterr()
    status = main.run(["service", "status", "--json", "--vault", str(vault)]), json.loads(capsys.readouterr().out)
    main.run(["service", "install", "--quiet", "--vault", str(vault)])

    assert (installed[0], "has no server" in installed[1], only_watches, started) == (0, True, True, 0)
    assert (status[0], status[1]["watch_only"], status[1]["url"]) == (0, True, "")
    assert not launching.only_watches(manager)


def test_a_vault_whose_watcher_has_ended_is_told(
    tmp_path: Path, vault: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = {"systemctl --user show ": CommandResult(code=0, stdout="ActiveState=failed\nSubState=failed\n")}
    manager = SystemdManager(machine=machines.machine("linux", tmp_path), runner=RecordingRunner(ended))
    monkeypatch.setattr(launching, "open_manager", lambda: manager)

    installed = main.run(["service", "install", "--watch-only", "--vault", str(vault)]), capsys.readouterr().out
    status = main.run(["service", "status", "--vault", str(vault)])
    refused = main.run(["service", "install", "--watch-only", "--port", "9", "--vault", str(vault)])

    assert (installed[0], status, refused) == (1, 1, 2)
    assert "`knap service logs` says why" in installed[1]


def test_uninstalling_names_what_it_removed(
    manager: SystemdManager, vault: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main.run(["service", "install", "--quiet", "--vault", str(vault)])
    capsys.readouterr()

    first = (main.run(["service", "uninstall"]), capsys.readouterr().out)
    second = (main.run(["service", "uninstall"]), capsys.readouterr().out)

    assert first == (0, f"removed {manager.file}\n")
    assert second == (0, "no service was installed\n")


def test_where_the_system_keeps_no_log_the_file_is_shown(
    tmp_path: Path, vault: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    manager = LaunchdManager(
        machine=machines.machine("macos", tmp_path),
        runner=RecordingRunner({"launchctl bootout": CommandResult(code=3)}),
    )
    monkeypatch.setattr(launching, "open_manager", lambda: manager)
    log = tmp_path / "serve.log"
    monkeypatch.setattr(launching, "log_file", lambda: log)
    main.run(["service", "install", "--quiet", "--vault", str(vault)])

    missing = main.run(["service", "logs"])
    log.write_text("one\ntwo\x1b[31m\nthree\n", encoding="utf-8")
    capsys.readouterr()
    code = main.run(["service", "logs", "-n", "2"])

    assert missing == 2
    assert (code, capsys.readouterr().out) == (0, "two\ufffd[31m\nthree\n")


def test_an_installation_in_a_cache_is_refused(
    manager: SystemdManager, vault: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "executable", "/home/ada/.cache/uv/archive-v0/x/bin/python")

    code = main.run(["service", "install", "--vault", str(vault)])

    assert code == 3
    assert "uv tool install knapper" in capsys.readouterr().err
    assert not manager.file.exists()


@pytest.mark.parametrize(
    ("record", "port", "address", "note"),
    [
        (None, [], "http://127.0.0.1:25627/#token=", "no server runs: `knap serve`"),
        (None, ["--port", "9000"], "http://127.0.0.1:9000/#token=", ""),
        (replace(RUNNING, url="http://0.0.0.0:9100"), [], "http://127.0.0.1:9100/#token=", ""),
    ],
)
def test_the_address_of_the_page_is_the_running_servers(
    record: ServerRecord | None,
    port: Sequence[str],
    address: str,
    note: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(addresses, "find_server", answers(record))

    assert main.run(["token", "page", *port]) == 0

    shown = capsys.readouterr()
    assert shown.out.startswith(address)
    assert shown.err.startswith(note)
    assert bool(shown.err) == bool(note)

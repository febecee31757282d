import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from knapper.cli import main
from knapper.errors import BadInput, SetupError, StorageError
from knapper.server.mcp import install
from knapper.server.mcp.install import InstallRequest, MachinePaths, System

WANTED = InstallRequest(command=["/usr/bin/python3", "-m", "knapper.cli", "mcp"], environment={})


def machine(system: System, home: Path) -> MachinePaths:
    return MachinePaths(system=system, home=home, config=install.config_folder(system, home))


@pytest.mark.parametrize(
    ("system", "place"),
    [
        ("macos", "Library/Application Support/Claude/claude_desktop_config.json"),
        ("windows", "AppData/Roaming/Claude/claude_desktop_config.json"),
    ],
)
def test_each_system_keeps_settings_in_its_own_place(tmp_path: Path, system: System, place: str) -> None:
    assert install.find_client("claude-desktop").file(machine(system, tmp_path)) == tmp_path / place


def test_every_client_has_a_place_and_a_name_of_its_own(tmp_path: Path) -> None:
    files = {client.file(machine("macos", tmp_path)) for client in install.CLIENTS}

    assert len(files) == len(install.CLIENTS) == len({client.name for client in install.CLIENTS})


def test_a_new_entry_makes_the_file(tmp_path: Path) -> None:
    where = tmp_path / "new" / "settings.json"

    done = install.install(install.find_client("cursor"), WANTED, where)

    entry = json.loads(where.read_text("utf-8"))["mcpServers"]["knapper"]
    assert entry == {"command": "/usr/bin/python3", "args": ["-m", "knapper.cli", "mcp"]}
    assert "backup" not in done


def test_other_entries_stay_and_what_was_there_is_kept(tmp_path: Path) -> None:
    where = tmp_path / "mcp.json"
    before = b'{"theme": "dark", "servers": {"other": {"command": "x"}}}'
    where.write_bytes(before)
    where.chmod(0o600)

    done = install.install(install.find_client("vscode"), WANTED, where)

    after = json.loads(where.read_text("utf-8"))
    assert list(after) == ["theme", "servers"]
    assert after["servers"]["other"] == {"command": "x"}
    assert after["servers"]["knapper"]["type"] == "stdio"
    assert Path(str(done["backup"])).read_bytes() == before
    assert where.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("client", install.CLIENTS, ids=lambda client: client.name)
def test_each_client_gets_its_entry_after_a_dry_run_that_writes_nothing(
    tmp_path: Path, client: install.McpClient
) -> None:
    where = client.file(machine("linux", tmp_path))
    where.parent.mkdir(parents=True, exist_ok=True)
    before = json.dumps({client.key: {"other": {"command": "x"}}, "kept": 1})
    where.write_text(before, "utf-8")

    planned = install.install(client, WANTED, where, dry_run=True)
    untouched = [path.read_text("utf-8") for path in where.parent.iterdir()]
    done = install.install(client, WANTED, where)

    after = json.loads(where.read_text("utf-8"))
    assert (untouched, planned["changed"], "backup" in planned) == ([before], True, False)
    assert set(after[client.key]) == {"other", "knapper"}
    assert after[client.key]["knapper"].get("type") == ("stdio" if client.typed else None)
    assert Path(str(done["backup"])).read_text("utf-8") == before


def test_a_second_time_changes_nothing(tmp_path: Path) -> None:
    where = tmp_path / "mcp.json"
    install.install(install.find_client("cursor"), WANTED, where)

    again = install.install(install.find_client("cursor"), WANTED, where)

    assert again["changed"] is False
    assert [path.name for path in tmp_path.iterdir()] == ["mcp.json"]


def test_two_backups_have_two_names(tmp_path: Path) -> None:
    where = tmp_path / "mcp.json"
    where.write_text('{"mcpServers": {}}', "utf-8")
    first = install.install(install.find_client("cursor"), WANTED, where)
    second = install.install(
        install.find_client("cursor"), InstallRequest(command=["other"], environment={"A": "1"}), where
    )

    assert first["backup"] != second["backup"]


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    where = tmp_path / "mcp.json"

    done = install.install(install.find_client("cursor"), WANTED, where, dry_run=True)

    assert "knapper" in str(done["content"])
    assert not where.exists()


@pytest.mark.parametrize("raw", [b'{"a": 1, // why\n}', b"[]", b'{"mcpServers": []}', b"\xff\xfe", b"[" * 100_000])
def test_settings_that_arent_plain_json_are_left_alone(tmp_path: Path, raw: bytes) -> None:
    where = tmp_path / "mcp.json"
    where.write_bytes(raw)

    with pytest.raises(SetupError) as caught:
        install.install(install.find_client("cursor"), WANTED, where)

    assert "by hand" in caught.value.hint
    assert where.read_bytes() == raw
    assert list(tmp_path.iterdir()) == [where]


def test_what_a_person_added_to_our_entry_stays(tmp_path: Path) -> None:
    where = tmp_path / "mcp.json"
    entry = {
        "url": "http://old",
        "disabled": True,
        "autoApprove": ["read_file"],
        "env": {"MY": "1", "KNAP_STATE_DIR": "x"},
    }
    where.write_text(json.dumps({"mcpServers": {"knapper": entry}}), "utf-8")

    install.install(install.find_client("cursor"), WANTED, where)

    assert json.loads(where.read_bytes())["mcpServers"]["knapper"] == {
        "command": WANTED.command[0],
        "args": WANTED.command[1:],
        "env": {"MY": "1"},
        "disabled": True,
        "autoApprove": ["read_file"],
    }


@pytest.mark.parametrize(
    "raw",
    [
        b'\xef\xbb\xbf{\r\n\t"cost": 1.10,\r\n\t"mcpServers": {\r\n\t\t"a": {"args": ["x", "y"]}\r\n\t}\r\n}',
        b'{"half": "\\ud83d", "e": 1E5, "mcpServers": {"a": {}}}',
    ],
)
def test_settings_arent_written_anew(tmp_path: Path, raw: bytes) -> None:
    where = tmp_path / "mcp.json"
    where.write_bytes(raw)

    install.install(install.find_client("cursor"), WANTED, where)

    after = where.read_bytes()
    begin = after.index(b'"knapper"')
    assert raw.startswith(after[:begin].rstrip().removesuffix(b","))
    assert json.loads(after.decode("utf-8-sig"))["mcpServers"]["knapper"]["command"] == WANTED.command[0]


@pytest.mark.skipif(sys.platform == "win32", reason="files have no such modes there")
@pytest.mark.parametrize("mode", [0o600, 0o640])
def test_the_backup_is_as_private_as_the_settings(tmp_path: Path, mode: int) -> None:
    where = tmp_path / "mcp.json"
    where.write_text('{"key": "secret"}', "utf-8")
    where.chmod(mode)

    done = install.install(install.find_client("cursor"), WANTED, where)

    assert Path(str(done["backup"])).stat().st_mode & 0o777 == mode


def test_what_else_the_settings_hold_isnt_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = tmp_path / "mcp.json"
    where.write_text('{"mcpServers": {"other": {"env": {"KEY": "secret"}}}}', "utf-8")

    for more in (["--dry-run"], ["--dry-run", "--json"], ["--json"]):
        code = main.run(["-v", str(tmp_path), "mcp", "install", "cursor", "--file", str(where), *more])
        told = capsys.readouterr().out
        assert (code, "secret" in told, "knapper.cli" in told) == (0, False, True)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such files there")
@pytest.mark.parametrize("kind", ["pipe", "read-only", "loop"])
def test_what_isnt_a_file_that_may_be_written_is_left_alone(tmp_path: Path, kind: str) -> None:
    where = tmp_path / "mcp.json"
    if kind == "pipe":
        os.mkfifo(where)
    elif kind == "read-only":
        where.write_text("{}", "utf-8")
        where.chmod(0o400)
    else:
        where.symlink_to(where)
    before = where.lstat()

    with pytest.raises((SetupError, StorageError)):
        install.install(install.find_client("cursor"), WANTED, where)

    assert (where.lstat().st_ino, where.lstat().st_mode) == (before.st_ino, before.st_mode)
    assert list(tmp_path.iterdir()) == [where]


@pytest.mark.parametrize("name", ["", " ", "a\nb"])
def test_a_name_that_nobody_can_read_is_refused(tmp_path: Path, name: str) -> None:
    where = tmp_path / "mcp.json"

    with pytest.raises(BadInput, match="no name"):
        install.install(install.find_client("cursor"), InstallRequest(command=["x"], environment={}, name=name), where)

    assert not where.exists()


def test_the_server_imports_nothing_from_where_its_client_works(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where, folder = tmp_path / "mcp.json", tmp_path / "cloned"
    folder.mkdir()
    (folder / "click.py").write_text("raise SystemExit('obeyed')", "utf-8")
    assert main.run(["-v", str(tmp_path), "mcp", "install", "cursor", "--file", str(where)]) == 0
    assert "wrote" in capsys.readouterr().out
    entry = json.loads(where.read_bytes())["mcpServers"]["knapper"]

    done = subprocess.run([entry["command"], *entry["args"], "--help"], cwd=folder, capture_output=True, check=False)

    assert (done.returncode, b"obeyed" in done.stderr) == (0, False)
    assert b"MCP client" in done.stdout


def test_a_link_stays_one(tmp_path: Path) -> None:
    real, where = tmp_path / "real.json", tmp_path / "mcp.json"
    real.write_text("{}", "utf-8")
    where.symlink_to(real)

    install.install(install.find_client("cursor"), WANTED, where)

    assert where.is_symlink()
    assert "knapper" in real.read_text("utf-8")


def test_several_vaults_are_entered_without_choosing_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config, where = tmp_path / "config.toml", tmp_path / "mcp.json"
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    config.write_text(f'[vaults.one]\npath = "{tmp_path}/one"\n[vaults.two]\npath = "{tmp_path}/two"\n', "utf-8")

    code = main.run(["--config", str(config), "mcp", "install", "cursor", "--file", str(where)])

    assert (code, capsys.readouterr().err) == (0, "")
    line = json.loads(where.read_bytes())["mcpServers"]["knapper"]["args"]
    assert "--vault" not in line
    assert line[-2:] == ["--config", str(config)]


def test_what_the_environment_says_is_entered_as_a_client_has_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    config, where, vault = tmp_path / "config.toml", tmp_path / "mcp.json", tmp_path / "one"
    vault.mkdir()
    config.write_text("", "utf-8")
    for name, value in {"KNAP_CONFIG": config, "VAULT_PATH": vault, "KNAP_STATE_DIR": tmp_path / "state"}.items():
        monkeypatch.setenv(name, str(value))

    code = main.run(["mcp", "install", "cursor", "--file", str(where)])

    assert (code, capsys.readouterr().err) == (0, "")
    entry = json.loads(where.read_bytes())["mcpServers"]["knapper"]
    assert entry["args"][-4:] == ["--vault", str(vault), "--config", str(config)]
    assert entry["env"] == {"KNAP_STATE_DIR": str(tmp_path / "state")}


def test_folders_that_only_a_shell_knows_are_entered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    where, vault, config = tmp_path / "mcp.json", tmp_path / "one", tmp_path / "config" / "knapper" / "config.toml"
    for folder in (vault, config.parent):
        folder.mkdir(parents=True)
    config.write_text("", "utf-8")
    for name, value in {"XDG_CONFIG_HOME": tmp_path / "config", "XDG_DATA_HOME": tmp_path / "data"}.items():
        monkeypatch.setenv(name, str(value))
    for name in ("KNAP_CONFIG", "KNAP_STATE_DIR"):
        monkeypatch.delenv(name, raising=False)

    code = main.run(["-v", str(vault), "mcp", "install", "cursor", "--file", str(where)])

    assert (code, capsys.readouterr().err) == (0, "")
    entry = json.loads(where.read_bytes())["mcpServers"]["knapper"]
    if sys.platform.startswith("linux"):
        assert entry["args"][-2:] == ["--config", str(config)]
        assert entry["env"] == {"KNAP_STATE_DIR": str(tmp_path / "data" / "knapper")}


def test_a_configuration_that_isnt_there_yet_is_no_option_that_would_fail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    where = tmp_path / "mcp.json"
    monkeypatch.setenv("KNAP_CONFIG", str(tmp_path / "later.toml"))

    code = main.run(["-v", str(tmp_path), "mcp", "install", "cursor", "--file", str(where)])

    assert (code, capsys.readouterr().err) == (0, "")
    entry = json.loads(where.read_bytes())["mcpServers"]["knapper"]
    assert "--config" not in entry["args"]
    assert entry["env"]["KNAP_CONFIG"] == str(tmp_path / "later.toml")


def test_a_dry_run_shows_what_to_enter_where_the_settings_cant_be_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = tmp_path / "mcp.json"
    where.write_text("{} // mine", "utf-8")

    code = main.run(["-v", str(tmp_path), "mcp", "install", "cursor", "--file", str(where), "--dry-run"])

    told = capsys.readouterr().out
    assert code == 0
    assert "isn't plain JSON" in told
    assert '"mcpServers"' in told
    assert where.read_text("utf-8") == "{} // mine"


def test_a_server_that_has_no_vault_isnt_entered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config, where = tmp_path / "config.toml", tmp_path / "mcp.json"
    config.write_text("", "utf-8")

    code = main.run(["--config", str(config), "mcp", "install", "cursor", "--file", str(where)])

    assert (code, where.exists()) == (3, False)
    assert "no vault" in capsys.readouterr().err


def test_a_persons_name_isnt_for_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main.run(["-v", str(tmp_path), "mcp", "--client", "cli"])

    assert code == 2
    assert "stands for a person" in capsys.readouterr().err


def test_a_folder_in_the_place_of_the_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="Cursor"):
        install.install(install.find_client("cursor"), WANTED, tmp_path)


def test_an_unknown_client_is_told_with_those_that_are_known() -> None:
    with pytest.raises(BadInput) as caught:
        install.find_client("emacs")

    assert "claude-desktop" in caught.value.hint

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from knapper.cli import main
from knapper.errors import BadInput, ConflictError, SetupError, StorageError
from knapper.server.mcp import clients, install
from knapper.server.mcp.clients import MachinePaths, McpClient, System
from knapper.server.mcp.install import InstallRequest

WANTED = InstallRequest(command=["/usr/bin/python3", "-m", "knapper.cli", "mcp"], environment={})


def machine(system: System, home: Path) -> MachinePaths:
    return MachinePaths(system=system, home=home, config=clients.config_folder(system, home))


@pytest.mark.parametrize(
    ("client", "system", "place"),
    [
        ("claude-desktop", "macos", "Library/Application Support/Claude/claude_desktop_config.json"),
        ("claude-desktop", "windows", "AppData/Roaming/Claude/claude_desktop_config.json"),
        ("vscode", "macos", "Library/Application Support/Code/User/mcp.json"),
        ("zed", "macos", ".config/zed/settings.json"),
        ("zed", "windows", "AppData/Roaming/zed/settings.json"),
        ("devin", "macos", ".config/devin/mcp_config.json"),
        ("devin", "windows", "AppData/Roaming/devin/mcp_config.json"),
        ("codex", "windows", ".codex/config.toml"),
        ("copilot-cli", "macos", ".copilot/mcp-config.json"),
        ("gemini-cli", "windows", ".gemini/settings.json"),
    ],
)
def test_each_system_keeps_settings_in_its_own_place(tmp_path: Path, client: str, system: System, place: str) -> None:
    found = clients.find_client(client).file(machine(system, tmp_path))

    assert os.path.normcase(found) == os.path.normcase(tmp_path / place)


def test_a_folder_that_a_variable_names_is_where_the_settings_are(tmp_path: Path) -> None:
    folders = {"CODEX_HOME": tmp_path / "x", "COPILOT_HOME": tmp_path / "y"}
    facts = MachinePaths(system="linux", home=tmp_path, config=tmp_path / ".config", folders=folders)

    assert clients.find_client("codex").file(facts) == tmp_path / "x" / "config.toml"
    assert clients.find_client("copilot-cli").file(facts) == tmp_path / "y" / "mcp-config.json"
    assert clients.find_client("gemini-cli").file(facts) == tmp_path / ".gemini" / "settings.json"


def test_windsurfs_old_place_is_used_until_the_new_one_is_there(tmp_path: Path) -> None:
    facts = MachinePaths(system="linux", home=tmp_path, config=tmp_path / ".config")
    devin = clients.find_client("windsurf")
    before = devin.file(facts)
    (tmp_path / ".codeium" / "windsurf").mkdir(parents=True)
    old = devin.file(facts)
    (tmp_path / ".config" / "devin").mkdir(parents=True)

    assert devin.name == "devin"
    assert before == devin.file(facts) == tmp_path / ".config" / "devin" / "mcp_config.json"
    assert old == tmp_path / ".codeium" / "windsurf" / "mcp_config.json"


def test_a_client_is_installed_by_its_settings_its_folder_or_its_program(tmp_path: Path) -> None:
    bare = MachinePaths(system="linux", home=tmp_path, config=tmp_path / ".config", programs=frozenset({"codex"}))
    (tmp_path / ".claude.json").write_text("{}", "utf-8")
    (tmp_path / ".gemini").mkdir()

    assert [client.name for client in clients.CLIENTS if client.is_installed(bare)] == [
        "claude-code",
        "codex",
        "gemini-cli",
    ]


def test_every_client_has_a_place_and_a_name_of_its_own(tmp_path: Path) -> None:
    files = {client.file(machine("macos", tmp_path)) for client in clients.CLIENTS}

    assert len(files) == len(clients.CLIENTS) == len({client.name for client in clients.CLIENTS})


def test_a_new_entry_makes_the_file(tmp_path: Path) -> None:
    where = tmp_path / "new" / "settings.json"

    done = install.install(clients.find_client("cursor"), WANTED, where)

    entry = json.loads(where.read_text("utf-8"))["mcpServers"]["knapper"]
    assert entry == {"command": "/usr/bin/python3", "args": ["-m", "knapper.cli", "mcp"]}
    assert "backup" not in done


def test_other_entries_stay_and_what_was_there_is_kept(tmp_path: Path) -> None:
    where = tmp_path / "mcp.json"
    before = b'{"theme": "dark", "servers": {"other": {"command": "x"}}}'
    where.write_bytes(before)
    where.chmod(0o600)

    done = install.install(clients.find_client("vscode"), WANTED, where)

    after = json.loads(where.read_text("utf-8"))
    assert list(after) == ["theme", "servers"]
    assert after["servers"]["other"] == {"command": "x"}
    assert after["servers"]["knapper"]["type"] == "stdio"
    assert Path(str(done["backup"])).read_bytes() == before
    assert where.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "client", [client for client in clients.CLIENTS if client.format != "toml"], ids=lambda client: client.name
)
def test_each_client_gets_its_entry_after_a_dry_run_that_writes_nothing(tmp_path: Path, client: McpClient) -> None:
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
    assert client.fixed.items() <= after[client.key]["knapper"].items()
    assert Path(str(done["backup"])).read_text("utf-8") == before


@pytest.mark.parametrize("client", clients.CLIENTS, ids=lambda client: client.name)
def test_what_was_entered_is_taken_out_again(tmp_path: Path, client: McpClient) -> None:
    where = tmp_path / "settings"
    before = "[mcp_servers.other]\ncommand = 'x'\n" if client.format == "toml" else f'{{"{client.key}": {{"a": {{}}}}}}'
    where.write_text(before, "utf-8")
    install.install(client, WANTED, where)
    entered = install.find_entry(client, where)
    planned = install.uninstall(client, where, dry_run=True)
    still = install.find_entry(client, where)

    done = install.uninstall(client, where)
    again = install.uninstall(client, where)

    assert (planned["changed"], done["changed"], again["changed"]) == (True, True, False)
    assert (entered == still, install.find_entry(client, where)) == (True, None)
    assert where.read_text("utf-8") == before
    assert "knapper" in Path(str(done["backup"])).read_text("utf-8")


def test_what_isnt_there_is_taken_out_of_nothing(tmp_path: Path) -> None:
    done = install.uninstall(clients.find_client("cursor"), tmp_path / "gone" / "mcp.json")

    assert (done["changed"], list(tmp_path.iterdir())) == (False, [])


@pytest.mark.skipif(sys.platform == "win32", reason="files have no such modes there")
def test_settings_that_are_read_only_are_told_and_kept(tmp_path: Path) -> None:
    where = tmp_path / "mcp.json"
    install.install(clients.find_client("cursor"), WANTED, where)
    before = where.read_bytes()
    where.chmod(0o400)

    with pytest.raises(SetupError, match="read-only") as caught:
        install.uninstall(clients.find_client("cursor"), where)

    assert "by hand" in caught.value.hint
    assert where.read_bytes() == before
    assert list(tmp_path.iterdir()) == [where]


def test_a_link_stays_one_when_the_entry_goes(tmp_path: Path) -> None:
    real, where = tmp_path / "real.json", tmp_path / "mcp.json"
    real.write_text("{}", "utf-8")
    where.symlink_to(real)
    install.install(clients.find_client("cursor"), WANTED, where)

    install.uninstall(clients.find_client("cursor"), where)

    assert where.is_symlink()
    assert json.loads(real.read_text("utf-8")) == {"mcpServers": {}}


def test_what_the_client_saves_meanwhile_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = tmp_path / "mcp.json"
    where.write_text("{}", "utf-8")
    backup = vars(install)["_write_backup"]

    def save_meanwhile(settings_file: Path, raw: bytes) -> Path:
        settings_file.write_text('{"saved": "meanwhile"}', "utf-8")
        return backup(settings_file, raw)

    monkeypatch.setattr(install, "_write_backup", save_meanwhile)

    with pytest.raises(ConflictError, match="changed meanwhile"):
        install.install(clients.find_client("cursor"), WANTED, where)

    assert where.read_text("utf-8") == '{"saved": "meanwhile"}'


def test_a_second_time_changes_nothing(tmp_path: Path) -> None:
    where = tmp_path / "mcp.json"
    install.install(clients.find_client("cursor"), WANTED, where)

    again = install.install(clients.find_client("cursor"), WANTED, where)

    assert again["changed"] is False
    assert [path.name for path in tmp_path.iterdir()] == ["mcp.json"]


def test_two_backups_have_two_names(tmp_path: Path) -> None:
    where = tmp_path / "mcp.json"
    where.write_text('{"mcpServers": {}}', "utf-8")
    first = install.install(clients.find_client("cursor"), WANTED, where)
    second = install.install(
        clients.find_client("cursor"), InstallRequest(command=["other"], environment={"A": "1"}), where
    )

    assert first["backup"] != second["backup"]


def test_of_many_backups_the_first_and_the_latest_stay(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    for number in range(25):
        file.write_text(f'{{"number": {number}}}', encoding="utf-8")
        report = install.install(clients.find_client("cursor"), WANTED, file)
        os.utime(str(report["backup"]), (number, number))  # a clock's ticks may be longer than such a change

    kept = {json.loads(backup.read_bytes())["number"] for backup in tmp_path.glob("*.bak*")}
    assert kept == {0, *range(16, 25)}


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    where = tmp_path / "mcp.json"

    done = install.install(clients.find_client("cursor"), WANTED, where, dry_run=True)

    assert "knapper" in str(done["content"])
    assert not where.exists()


@pytest.mark.parametrize("raw", [b'{"a": 1, // why\n}', b"[]", b'{"mcpServers": []}', b"\xff\xfe", b"[" * 100_000])
def test_settings_that_arent_plain_json_are_left_alone(tmp_path: Path, raw: bytes) -> None:
    where = tmp_path / "mcp.json"
    where.write_bytes(raw)

    with pytest.raises(SetupError) as caught:
        install.install(clients.find_client("claude-desktop"), WANTED, where)

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

    install.install(clients.find_client("cursor"), WANTED, where)

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

    install.install(clients.find_client("cursor"), WANTED, where)

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

    done = install.install(clients.find_client("cursor"), WANTED, where)

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
        install.install(clients.find_client("cursor"), WANTED, where)

    assert (where.lstat().st_ino, where.lstat().st_mode) == (before.st_ino, before.st_mode)
    assert list(tmp_path.iterdir()) == [where]


@pytest.mark.parametrize("name", ["", " ", "a\nb"])
def test_a_name_that_nobody_can_read_is_refused(tmp_path: Path, name: str) -> None:
    where = tmp_path / "mcp.json"

    with pytest.raises(BadInput, match="no name"):
        install.install(clients.find_client("cursor"), InstallRequest(command=["x"], environment={}, name=name), where)

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

    install.install(clients.find_client("cursor"), WANTED, where)

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

    code = main.run(["-v", str(tmp_path), "mcp", "install", "claude-desktop", "--file", str(where), "--dry-run"])

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
        install.install(clients.find_client("cursor"), WANTED, tmp_path)


def test_an_unknown_client_is_told_with_those_that_are_known() -> None:
    with pytest.raises(BadInput) as caught:
        clients.find_client("emacs")

    assert "claude-desktop" in caught.value.hint

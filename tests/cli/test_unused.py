"""Settings of the programs that Knapper follows, and that mean nothing here, are told once."""

import json
import stat
from pathlib import Path

import pytest

from knapper.cli import main


@pytest.fixture
def vault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "v").mkdir()
    (tmp_path / "v/A.md").write_text("# A\n", encoding="utf-8")
    monkeypatch.setenv("KNAP_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("KNAP_CONFIG", str(tmp_path / "config.toml"))
    return tmp_path / "v"


def said(capsys: pytest.CaptureFixture[str], vault: Path, *words: str) -> tuple[str, str]:
    _ = main.run(["-v", str(vault), *words])
    return capsys.readouterr()


def test_a_variable_that_means_nothing_here_is_told_once(
    vault: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CHROMA_PATH", "/secret/place")
    quiet, first, second = (
        said(capsys, vault, *words)[1] for words in (["read", "A.md", "-q"], ["read", "A.md"], ["find"])
    )

    assert "CHROMA_PATH" not in quiet
    assert "CHROMA_PATH (the environment) means nothing here" in first
    assert "KNAP_STATE_DIR" in first
    assert "/secret/place" not in first
    assert "CHROMA_PATH" not in second
    told = vault.parent / "state/told-variables"
    assert stat.S_IMODE(told.stat().st_mode) == 0o600


def test_another_one_is_told_when_it_comes_up(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    env = vault.parent / ".env"
    env.write_text("CHROMA_PATH=./.chroma_db\n", encoding="utf-8")
    first = said(capsys, vault, "find")[1]
    env.write_text("CHROMA_PATH=./.chroma_db\nEXCLUDED_DIRS=.venv\n", encoding="utf-8")
    second, third = said(capsys, vault, "find")[1], said(capsys, vault, "find")[1]

    assert f"CHROMA_PATH ({env}:1)" in first
    assert f"EXCLUDED_DIRS ({env}:2)" in second
    assert "means nothing" not in third


def test_the_settings_name_it_each_time(
    vault: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CHROMA_PATH", "x")
    monkeypatch.setenv("EXCLUDED_DIRS", "of another program")
    _ = said(capsys, vault, "find")
    text, shown = said(capsys, vault, "config")[0], json.loads(said(capsys, vault, "config", "--json")[0])

    assert "CHROMA_PATH (the environment) means nothing here" in text
    assert [each["name"] for each in shown["unused"]] == ["CHROMA_PATH"]


def test_nothing_is_told_where_nothing_is_set(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "means nothing" not in said(capsys, vault, "find")[1]
    assert not (vault.parent / "state/told-variables").exists()


def test_no_file_is_made_in_a_vault(
    vault: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KNAP_STATE_DIR", str(vault / "state"))
    monkeypatch.setenv("CHROMA_PATH", "x")
    _ = said(capsys, vault, "find")

    assert not (vault / "state/told-variables").exists()

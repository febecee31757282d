"""`knap e5`: the model is made once, measured on the vault, and used when asked."""

import json
from pathlib import Path

import pytest

from knapper import config
from knapper.app import e5_model
from knapper.cli import main
from knapper.cli.commands import doctor
from knapper.errors import SetupError
from knapper.index.models import e5, e5_maker
from knapper.index.models.base import EmbedderError
from knapper.index.models.e5 import ModelRecord


@pytest.fixture
def configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "a.md").write_text("alpha\n", encoding="utf-8")
    file = tmp_path / "config.toml"
    file.write_text(f"default_vault = '{vault}'\n", encoding="utf-8")
    monkeypatch.setenv("KNAP_CONFIG", str(file))
    monkeypatch.setenv("KNAP_STATE_DIR", str(tmp_path / "state"))
    return file


def _measure_nothing(_store: object, _folder: Path) -> None:
    return None


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Give the folders in which the model was made; a record alone stands for it."""
    folders: list[Path] = []

    def make(folder: Path) -> ModelRecord:
        folders.append(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / e5.RECORD_FILE).write_text('{"digest": "0123456789ab", "cosine": 0.9967}', encoding="utf-8")
        return e5.read_record(folder)

    monkeypatch.setattr(e5_maker, "make", make)
    monkeypatch.setattr(e5_model, "measure_time", _measure_nothing)
    return folders


def test_it_is_made_in_the_state_folder_once(
    configuration: Path, made: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    codes = [main.run(["e5", *options, "--json"]) for options in ((), (), ("--anew",))]
    answers = [json.loads(part) for part in capsys.readouterr().out.replace("}\n{", "}\0{").split("\0")]

    assert codes == [0, 0, 0]
    assert made == [tmp_path / "state" / "models" / "multilingual-e5-small"] * 2
    assert [answer["made"] for answer in answers] == [True, False, True]
    assert [answer["used"] for answer in answers] == [False] * 3
    assert "embeddings" not in configuration.read_text(encoding="utf-8")


@pytest.mark.usefixtures("made")
def test_it_is_used_when_asked_and_the_settings_name_it(configuration: Path, tmp_path: Path) -> None:
    code = main.run(["e5", "--use"])
    settings = config.load({}, config_file=str(configuration))

    assert (code, settings.embeddings.kind) == (0, "e5")
    assert (
        doctor.check_embedder(settings).text == "multilingual-e5-small is there, with a cosine of 0.997 to its weights"
    )
    assert e5_model.model_folder(settings) == tmp_path / "state" / "models" / "multilingual-e5-small"


@pytest.mark.usefixtures("made")
def test_a_folder_of_ones_own_counts(configuration: Path, tmp_path: Path) -> None:
    text = configuration.read_text(encoding="utf-8")
    configuration.write_text(f"{text}[embeddings]\nkind = 'e5'\nfolder = '{tmp_path / 'mine'}'\n", encoding="utf-8")

    assert e5_model.model_folder(config.load({}, config_file=str(configuration))) == tmp_path / "mine"


def test_nothing_is_set_where_it_can_not_be_made(
    configuration: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(_folder: Path) -> ModelRecord:
        raise EmbedderError("what was made isn't multilingual-e5-small")

    monkeypatch.setattr(e5_maker, "make", refuse)
    code = main.run(["e5", "--use", "--json"])

    assert code == 3
    assert json.loads(capsys.readouterr().out)["code"] == EmbedderError.code
    assert issubclass(EmbedderError, SetupError)
    assert "embeddings" not in configuration.read_text(encoding="utf-8")

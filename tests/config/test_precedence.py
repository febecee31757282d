from pathlib import Path

import pytest

from knapper import config
from knapper.config.declarations import Setting
from knapper.config.settings import SETTINGS, SettingOrigin, Settings

LAYERS = ("default", "file", "env_file", "environment", "flag")
FROM_ENV = [setting for setting in SETTINGS if setting.env]


def samples(setting: Setting, folder: Path) -> list[str]:
    """Give a value for each layer above the defaults."""
    if setting.kind == "count":
        return [str(setting.most - n) for n in range(4)]
    if setting.kind == "choice":
        first, *_, last = setting.choices
        return [last, first, last, first]
    if setting.kind == "url":
        return [f"https://host{n}/v1" for n in range(4)]
    if setting.kind == "path":
        return [str(folder / str(n)) for n in range(4)]
    if setting.name == "index.engine":
        return [f"postgresql://host{n}/notes" for n in range(4)]
    return [f"value-{n}-of-at-least-24-signs" for n in range(4)]


def origin(settings: Settings, name: str) -> SettingOrigin:
    return next(each for each in settings.origins if each.name == name)


def toml(name: str, value: str, setting: Setting) -> str:
    section, _, key = name.rpartition(".")
    written = value if setting.kind == "count" else f"'{value}'"
    return f"[{section}]\n{key} = {written}\n" if section else f"{key} = {written}\n"


@pytest.mark.parametrize("top", range(len(LAYERS)), ids=LAYERS)
@pytest.mark.parametrize("setting", FROM_ENV, ids=lambda setting: setting.name)
def test_the_strongest_source_wins(
    setting: Setting, top: int, config_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = samples(setting, tmp_path)
    variable = setting.env[0]
    flags: dict[str, str] = {}
    if top >= 1:
        config_file.write_text(toml(setting.name, values[0], setting), encoding="utf-8")
    if top >= 2:
        config_file.with_name(".env").write_text(f"{variable}={values[1]}\n", encoding="utf-8")
    if top >= 3:
        monkeypatch.setenv(variable, values[2])
    if top >= 4:
        flags[setting.name] = values[3]

    found = origin(config.load(flags), setting.name)

    if top == 0:
        assert found.source == "default"
        return
    assert found.value == ("(set)" if setting.secret else values[top - 1])
    line = 2 if "." in setting.name else 1
    assert (
        found.source
        == [
            f"{config_file}:{line}",
            f"{variable} in {config_file.with_name('.env')}:1",
            variable,
            setting.flag,
        ][top - 1]
    )


@pytest.mark.parametrize("setting", [s for s in FROM_ENV if len(s.env) > 1], ids=lambda setting: setting.name)
def test_of_several_variables_the_first_that_is_set_counts(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in setting.env:
        monkeypatch.setenv(name, name.lower())
    for name in setting.env:
        found = origin(config.load(), setting.name)

        assert found.source == name
        monkeypatch.delenv(name)


def test_the_documented_variables_are_known() -> None:
    known = {name: setting.default for setting in SETTINGS for name in setting.env}

    documented = {"VAULT_PATH", "KNAP_MODEL", "FIREWORKS_API_KEY", "FIREWORKS_MODEL", "LLM_MODEL"}
    assert documented <= set(known)
    assert {name: known[name] for name in ("API_PORT", "INDEX_INTERVAL", "WHISPER_MODEL")} == {
        "API_PORT": 25627,
        "INDEX_INTERVAL": 60,
        "WHISPER_MODEL": "whisper-v3",
    }


def test_a_blank_variable_is_not_set(config_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config_file.write_text("[model]\nname = 'kept'\n", encoding="utf-8")
    monkeypatch.setenv("KNAP_MODEL", " ")

    assert config.load().model.name == "kept"


def test_every_setting_has_an_origin_and_every_value_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_PORT", "9000")
    monkeypatch.setenv("INDEX_INTERVAL", "5")
    monkeypatch.setenv("WHISPER_MODEL", "tiny")
    monkeypatch.setenv("KNAP_EMBEDDINGS", "endpoint")
    monkeypatch.setenv("KNAP_EMBEDDINGS_MODEL", "e5")
    monkeypatch.setenv("KNAP_EMBEDDINGS_BASE_URL", "http://localhost:1/v1/")
    monkeypatch.setenv("KNAP_FUSION", "rrf")

    settings = config.load()

    assert [each.name for each in settings.origins] == ["vault", *(setting.name for setting in SETTINGS)]
    assert (settings.server.port, settings.index_interval_minutes, settings.audio.model) == (9000, 5, "tiny")
    assert settings.embeddings == config.EmbeddingSettings(
        kind="endpoint", model="e5", base_url="http://localhost:1/v1"
    )
    assert settings.search.fusion == "rrf"


def test_secrets_are_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIREWORKS_API_KEY", "hush-1")
    monkeypatch.setenv("KNAP_EMBEDDINGS_API_KEY", "hush-2")
    monkeypatch.setenv("KNAP_BASE_URL", "https://me:hush-3@host/v1")

    settings = config.load()

    assert settings.model.api_key == "hush-1"
    assert settings.embeddings.api_key == "hush-2"
    assert settings.model.base_url == "https://me:hush-3@host/v1"
    assert "hush-1" not in repr(settings)
    assert "hush-2" not in repr(settings)
    assert "hush" not in "".join(each.value for each in settings.origins)


def test_relative_paths_start_where_they_are_written(
    config_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config_file.write_text("state_dir = 'state'\n", encoding="utf-8")
    in_file = config.load(cwd=tmp_path).state_dir
    monkeypatch.setenv("KNAP_STATE_DIR", "state")
    in_variable = config.load(cwd=tmp_path).state_dir
    monkeypatch.setenv("KNAP_STATE_DIR", "~/state")
    at_home = config.load(cwd=tmp_path).state_dir

    assert in_file == config_file.parent / "state"
    assert in_variable == tmp_path / "state"
    assert at_home == config_file.parent / "state"


def test_a_file_that_a_flag_names_is_read_instead(config_file: Path, tmp_path: Path) -> None:
    config_file.write_text("[model]\nname = 'one'\n", encoding="utf-8")
    (tmp_path / "other.toml").write_text("[model]\nname = 'other'\n", encoding="utf-8")
    (tmp_path / "my.env").write_text("export FIREWORKS_API_KEY='k'  # mine\nUNKNOWN=1\n", encoding="utf-8")

    settings = config.load(config_file="other.toml", env_file="my.env", cwd=tmp_path)

    assert settings.model.name == "other"
    assert settings.model.api_key == "k"
    assert settings.env_file == tmp_path / "my.env"


def test_references_in_an_env_file_stay_text(config_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_ANOTHER", "taken")
    config_file.with_name(".env").write_text("\n\nKNAP_MODEL=${SECRET_OF_ANOTHER}\n", encoding="utf-8")

    settings = config.load()

    assert settings.model.name == "${SECRET_OF_ANOTHER}"
    assert origin(settings, "model.name").source == f"KNAP_MODEL in {config_file.with_name('.env')}:3"


@pytest.mark.parametrize(
    ("said", "expected"), [("false", False), ("true", True), ('"off"', False), ('"No"', False), ('"yes"', True)]
)
def test_a_switch_may_be_said_as_toml_says_it(config_file: Path, said: str, *, expected: bool) -> None:
    config_file.write_text(f"[runs]\ncode_mode = {said}\n", encoding="utf-8")

    assert config.load({}).runs.code_mode is expected

import os
from pathlib import Path

import pytest

from knapper import config
from knapper.errors import SetupError

BROKEN = {
    "binary": (b"\xff\xfe\x00\x01", "NUL"),
    "not text": (b"[model]\nname = '\xff'\n", "line 2 is invalid: it isn't UTF-8"),
    "a NUL": (b"[model]\nname = 'a\x00b'\n", "line 2 is invalid: it holds a NUL"),
    "an escaped NUL": (b'state_dir = "a\\u0000b"\n', "must be a path"),
    "too large": (b"# " + b"x" * 1_100_000, "larger than 1 MB"),
    "no TOML": (b"[model]\nname = \n", "line 2 is invalid"),
    "an open text": (b"[model]\n\nname = 'a\n", "line 3 is invalid"),
    "a key twice": (b"default_vault = 'a'\ndefault_vault = 'b'\n", "line 2 is invalid"),
    "cut short": (b"[model", "line 1 is invalid"),
    "nested without end": (b"a = " + b"[" * 100_000, "nested too deeply"),
    "a number without end": (b"[server]\nport = " + b"9" * 10_000, "is invalid"),
    "an unknown setting": (b"[embeddings]\nknid = 'none'\n", "no setting 'embeddings.knid'"),
    "an unknown section": (b"[colours]\n", "no setting 'colours'"),
    "a setting as an empty section": (b"[default_vault]\n", "must be a text"),
    "a section as a text": (b"embeddings = 'none'\n", "no setting 'embeddings'"),
    "a setting as a section": (b"[default_vault]\nname = 'x'\n", "no setting 'default_vault.name'"),
    "vaults as a text": (b"vaults = 'x'\n", "'vaults' in"),
    "a vault as a text": (b"[vaults]\nnotes = '/notes'\n", "'vaults.notes' in"),
    "a vault without a path": (b"[vaults.notes]\nhidden = []\n", "has no path"),
    "an unknown setting of a vault": (b"[vaults.notes]\npath = '/n'\nhiden = []\n", "no setting 'vaults.notes.hiden'"),
    "patterns that are one text": (b"[vaults.notes]\npath = '/n'\nhidden = 'x'\n", "must be a list of texts"),
    "patterns that are numbers": (b"[vaults.notes]\npath = '/n'\nhidden = [1]\n", "must be a list of texts"),
    "a port as a text": (b"[server]\nport = 'eighty'\n", "server.port in"),
    "a port that is none": (b"[server]\nport = 70000\n", "from 1 to 65535"),
    "a port as a yes": (b"[server]\nport = true\n", "from 1 to 65535"),
    "another choice": (b"[search]\nfusion = 'sum'\n", "must be one of convex, rrf, not 'sum'"),
    "an address that is none": (b"[model]\nbase_url = 'localhost:1'\n", "must be an address"),
    "a date as a text": (b"[model]\nname = 2026-01-01\n", "must be a text"),
    "an empty path": (b"state_dir = ''\n", "must be a path"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_what_can_not_be_used_is_refused_with_file_and_cause(what: str, config_file: Path) -> None:
    raw, cause = BROKEN[what]
    config_file.write_bytes(raw)

    with pytest.raises(SetupError) as error:
        config.load()

    assert str(config_file) in error.value.message
    assert cause in error.value.message
    assert error.value.hint


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("[embedings]\nkind = 'none'", "did you mean 'embeddings.kind'?"),
        ("[model]\napikey = 'x'", "did you mean 'model.api_key'?"),
        ("defaultvault = 'x'", "did you mean 'default_vault'?"),
        ("[vaults.n]\npath='/n'\nforein_folders = []", "did you mean 'vaults.n.foreign_folders'?"),
    ],
)
def test_a_mistyped_setting_is_answered_with_the_nearest(text: str, hint: str, config_file: Path) -> None:
    config_file.write_text(text, encoding="utf-8")

    with pytest.raises(SetupError) as error:
        config.load()

    assert error.value.hint == hint


def test_a_secret_of_the_wrong_kind_is_not_repeated(config_file: Path) -> None:
    config_file.write_text("[model]\napi_key = 12345678\n", encoding="utf-8")

    with pytest.raises(SetupError) as error:
        config.load()

    assert "12345678" not in str(error.value.as_dict())


def test_a_file_that_a_flag_names_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"^the configuration .*missing\.toml can't be read"):
        config.load(config_file=str(tmp_path / "missing.toml"))
    with pytest.raises(SetupError, match=r"^the environment file .*missing\.env can't be read"):
        config.load(env_file=str(tmp_path / "missing.env"))


def test_a_folder_or_a_pipe_is_no_configuration(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="it isn't a file"):
        config.load(config_file=str(tmp_path))
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(SetupError, match="it isn't a file"):
            config.load(config_file=str(tmp_path / "pipe"))


def test_a_name_with_a_nul_is_no_configuration() -> None:
    with pytest.raises(SetupError, match="can't be read"):
        config.load(config_file="a\0b")


@pytest.mark.parametrize(
    ("raw", "cause"),
    [
        (b"KNAP_MODEL=a\nnot an assignment\n", "line 2 is invalid: it isn't NAME=value"),
        (b"KNAP_MODEL=\xff\n", "line 1 is invalid: it isn't UTF-8"),
        (b"API_PORT=many\n", "server.port in API_PORT in"),
    ],
)
def test_a_broken_env_file_is_refused(raw: bytes, cause: str, tmp_path: Path) -> None:
    (tmp_path / "my.env").write_bytes(raw)

    with pytest.raises(SetupError) as error:
        config.load(env_file=str(tmp_path / "my.env"))

    assert cause in error.value.message
    assert str(tmp_path / "my.env") in error.value.message
    assert "the configuration" not in error.value.message


def test_a_broken_file_can_still_be_located(config_file: Path) -> None:
    config_file.write_bytes(b"\xff")

    assert config.locate() == config_file


def test_a_mark_at_the_start_and_windows_line_ends_are_read(config_file: Path) -> None:
    config_file.write_bytes(b"\xef\xbb\xbf[model]\r\nname = 'm'\r\n")

    assert config.load().model.name == "m"


def test_a_section_of_which_every_line_is_commented_out_says_nothing(config_file: Path) -> None:
    config_file.write_text("[embeddings]\n# kind = 'none'\n[vaults]\n[server]\nport = 4\n", encoding="utf-8")

    settings = config.load()

    assert (settings.embeddings.kind, settings.server.port) == ("static", 4)

"""Changing settings in the configuration file: the rest stays as written, and a mistake changes nothing."""

import os
import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knapper.config import editing
from knapper.config.editing import SettingName
from knapper.errors import BadInput, ConflictError, SetupError, StorageError

WRITTEN = """\
# my settings
default_vault = "Notes"   # the one I use

[model]
name = "ollama:qwen3"  # quick

[vaults.Notes]
path = "~/Notes"
# [vaults.Old]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(WRITTEN, encoding="utf-8")
    return path


def test_only_the_value_changes(file: Path) -> None:
    assert editing.set_values(file, {("model", "name"): "openai:gpt-5"})

    assert file.read_text(encoding="utf-8") == WRITTEN.replace('"ollama:qwen3"', '"openai:gpt-5"')


def test_what_it_says_already_leaves_the_file_alone(file: Path) -> None:
    before = file.stat().st_mtime_ns

    assert not editing.set_values(file, {("model", "name"): "ollama:qwen3"})
    assert not editing.set_values(file, {("server", "port"): None})
    assert file.stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (("state_dir",), "/elsewhere/state"),
        (("server", "port"), 9000),
        (("vaults", 'My "notes" Ж', "path"), "/notes"),
        (("model", "fallbacks"), ("ollama:qwen3:8b", "openai:gpt-5")),
        (("vaults", "Old", "path"), "/old"),
    ],
)
def test_what_is_missing_is_added_and_can_be_removed(
    file: Path, name: SettingName, value: str | int | tuple[str, ...]
) -> None:
    editing.set_values(file, {name: value})
    written = file.read_text(encoding="utf-8")
    found: Any = tomllib.loads(written)
    for part in name:
        found = found[part]
    editing.set_values(file, {name: None})

    assert found == (list(value) if isinstance(value, tuple) else value)
    assert [line for line in WRITTEN.splitlines() if line not in written] == []
    if name != ("vaults", "Old", "path"):  # its comment goes with it
        assert [line for line in WRITTEN.splitlines() if line not in file.read_text(encoding="utf-8")] == []


def test_a_file_that_is_missing_is_made(tmp_path: Path) -> None:
    file = tmp_path / "new" / "config.toml"

    editing.set_values(file, {("vaults", "Notes", "path"): str(tmp_path), ("default_vault",): "Notes"})

    assert tomllib.loads(file.read_text(encoding="utf-8")) == {
        "vaults": {"Notes": {"path": str(tmp_path)}},
        "default_vault": "Notes",
    }
    if os.name == "posix":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        (("model", "nmae"), "x", "model.nmae"),
        (("server", "port"), 70_000, "server.port"),
        (("vaults", "Notes", "path"), 7, "path in"),
        (("clients", "c", "nothing"), "x", "nothing"),
        (("model",), "x", "model"),
        (("default_vault", "x"), "y", "config"),
    ],
)
def test_a_mistake_changes_nothing(file: Path, name: SettingName, value: str | int, problem: str) -> None:
    with pytest.raises(SetupError, match=problem):
        editing.set_values(file, {name: value})

    assert file.read_text(encoding="utf-8") == WRITTEN
    assert [each.name for each in file.parent.iterdir()] == ["config.toml"]


def test_a_file_that_is_no_toml_is_left_alone(file: Path) -> None:
    file.write_text("[model\n", encoding="utf-8")

    with pytest.raises(SetupError, match="line 1"):
        editing.set_values(file, {("model", "name"): "x"})

    assert file.read_text(encoding="utf-8") == "[model\n"


def test_a_link_stays_and_so_do_mode_and_line_ends(file: Path, tmp_path: Path) -> None:
    file.write_bytes(WRITTEN.replace("\n", "\r\n").encode())
    file.chmod(0o640)
    link = tmp_path / "link.toml"
    link.symlink_to(file)

    editing.set_values(link, {("model", "name"): "openai:gpt-5"})

    assert link.is_symlink()
    assert file.read_bytes() == WRITTEN.replace("ollama:qwen3", "openai:gpt-5").replace("\n", "\r\n").encode()
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(StorageError, match="can't be written"):
        editing.set_values(tmp_path / "file" / "config.toml", {("model", "name"): "x"})


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("model.name", ("model", "name")),
        ('vaults."My notes".path', ("vaults", "My notes", "path")),
        (" default_vault ", ("default_vault",)),
    ],
)
def test_names_are_read_as_toml_writes_them(text: str, name: SettingName) -> None:
    assert editing.parse_name(text) == name


@pytest.mark.parametrize("text", ["", "a b", "a..b", "a = 1\nb", "[a]", "{}", '"', "a.b = {c", "ä"])
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="isn't the name of a setting"):
        editing.parse_name(text)


@given(st.lists(st.text(min_size=1, max_size=9), min_size=1, max_size=4))
def test_a_name_that_was_written_is_read_again(parts: list[str]) -> None:
    assert editing.parse_name(editing.dotted(parts)) == tuple(parts)


def test_values_are_of_the_settings_kind() -> None:
    assert editing.parse_value(("server", "port"), "9000") == 9000
    assert editing.parse_value(("clients", "x", "read"), "Work/, Projects/,") == ("Work/", "Projects/")
    assert editing.parse_value(("model", "name"), "7") == "7"
    with pytest.raises(BadInput, match="whole number"):
        editing.parse_value(("server", "port"), "many")


def test_somebody_elses_save_is_never_lost(file: Path) -> None:
    def save_meanwhile(_: Path) -> None:
        file.write_text("# theirs\n", encoding="utf-8")

    with pytest.raises(ConflictError, match="changed meanwhile"):
        editing.set_values(file, {("model", "name"): "x"}, check=save_meanwhile)

    assert file.read_text(encoding="utf-8") == "# theirs\n"
    assert [each.name for each in file.parent.iterdir()] == ["config.toml"]


def test_a_mark_of_the_encoding_stays(file: Path) -> None:
    file.write_bytes(b"\xef\xbb\xbf" + WRITTEN.encode())

    editing.set_values(file, {("model", "name"): "openai:gpt-5"})

    assert file.read_bytes() == b"\xef\xbb\xbf" + WRITTEN.replace("ollama:qwen3", "openai:gpt-5").encode()


VALUES = st.dictionaries(
    st.sampled_from([("model", "name"), ("web", "base_url"), ("agents", "prompt"), ("state_dir",)]),
    st.text(st.characters(exclude_categories=("Cs",)), max_size=20),
)


@given(values=VALUES)
def test_any_value_is_read_back_and_nothing_else_changes(
    values: dict[SettingName, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("config") / "config.toml"
    file.write_text(WRITTEN, encoding="utf-8")
    expected: dict[str, Any] = tomllib.loads(WRITTEN)
    for name, value in values.items():
        table = expected
        for part in name[:-1]:
            table = table.setdefault(part, {})
        table[name[-1]] = value

    editing.set_values(file, {**values}, check=lambda _: None)

    assert tomllib.loads(file.read_text(encoding="utf-8")) == expected
    assert all(line in file.read_text(encoding="utf-8") for line in WRITTEN.splitlines() if line.startswith("#"))

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from knapper.vault import obsidian
from knapper.vault.obsidian import ObsidianSettings


def write(root: Path, name: str, text: str | bytes) -> None:
    (root / ".obsidian").mkdir(exist_ok=True)
    (root / ".obsidian" / name).write_bytes(text if isinstance(text, bytes) else text.encode())


def test_a_vault_without_settings_has_obsidians_defaults(tmp_path: Path) -> None:
    assert obsidian.read_settings(tmp_path) == ObsidianSettings()


def test_settings_are_read_from_both_files(tmp_path: Path) -> None:
    app = {
        "userIgnoreFilters": ["Templates/", "/^_/"],
        "attachmentFolderPath": "./files",
        "newLinkFormat": "relative",
        "useMarkdownLinks": True,
        "alwaysUpdateLinks": True,
        "trashOption": "local",
        "newFileLocation": "folder",
        "newFileFolderPath": "Inbox",
        "showUnsupportedFiles": True,
        "vimMode": True,
    }
    write(tmp_path, "app.json", json.dumps(app))
    write(tmp_path, "daily-notes.json", '{"folder": "Journal", "format": "YYYY/MM-DD", "template": "T/Daily"}')

    assert obsidian.read_settings(tmp_path) == ObsidianSettings(
        user_ignore_filters=("Templates/", "/^_/"),
        attachment_folder_path="./files",
        new_link_format="relative",
        use_markdown_links=True,
        always_update_links=True,
        trash_option="local",
        new_file_location="folder",
        new_file_folder_path="Inbox",
        show_unsupported_files=True,
        daily_notes_folder="Journal",
        daily_notes_format="YYYY/MM-DD",
        daily_notes_template="T/Daily",
    )


@pytest.mark.parametrize("text", ["{", "", "[]", "null", b"\xff\xfe\x00", "[" * 100_000, '{"a": 1} x'])
def test_a_broken_file_gives_defaults_and_a_problem(tmp_path: Path, text: str | bytes) -> None:
    write(tmp_path, "app.json", text)
    write(tmp_path, "daily-notes.json", '{"folder": "Journal"}')

    found = obsidian.read_settings(tmp_path)

    assert found.new_link_format == "shortest"
    assert found.daily_notes_folder == "Journal"
    (problem,) = found.problems
    assert problem.startswith(".obsidian/app.json")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("userIgnoreFilters", "Templates/"),
        ("userIgnoreFilters", ["Templates/", 3]),
        ("userIgnoreFilters", ["x"] * 1000),
        ("attachmentFolderPath", 3),
        ("newLinkFormat", "longest"),
        ("useMarkdownLinks", "yes"),
        ("alwaysUpdateLinks", 1),
        ("trashOption", []),
        ("newFileLocation", {}),
    ],
)
def test_a_value_of_the_wrong_kind_is_told_and_the_others_stand(tmp_path: Path, name: str, value: object) -> None:
    write(tmp_path, "app.json", json.dumps({"newFileFolderPath": "Inbox", name: value}))

    found = obsidian.read_settings(tmp_path)

    assert found.new_file_folder_path == "Inbox"
    (problem,) = found.problems
    assert name in problem


def test_a_null_is_as_good_as_absent(tmp_path: Path) -> None:
    write(tmp_path, "app.json", '{"attachmentFolderPath": null, "userIgnoreFilters": null}')

    assert obsidian.read_settings(tmp_path) == ObsidianSettings()


def test_an_empty_format_of_daily_notes_means_the_usual_one(tmp_path: Path) -> None:
    write(tmp_path, "daily-notes.json", '{"format": ""}')

    assert obsidian.read_settings(tmp_path).daily_notes_format == "YYYY-MM-DD"


def test_settings_outside_the_vault_are_not_read(tmp_path: Path) -> None:
    write(tmp_path, "app.json", '{"useMarkdownLinks": true}')
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / ".obsidian").symlink_to(tmp_path / ".obsidian")

    found = obsidian.read_settings(vault)

    assert not found.use_markdown_links
    assert any("out of the vault" in problem for problem in found.problems)


@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=40) | st.dictionaries(st.text(), st.none() | st.integers() | st.text()).map(json.dumps))
def test_no_file_breaks_the_reader(tmp_path: Path, text: bytes | str) -> None:
    write(tmp_path, "app.json", text)
    write(tmp_path, "daily-notes.json", text)

    assert obsidian.read_settings(tmp_path).new_link_format == "shortest"

"""The vaults that Obsidian knows on a machine."""

import json
from pathlib import Path

import pytest

from knapper.vault import obsidian
from knapper.vault.obsidian import System


def write_registry(file: Path, vaults: object) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"vaults": vaults, "frame": "native"}), encoding="utf-8")
    return file


def make_folder(path: Path) -> str:
    path.mkdir(parents=True)
    return str(path)


@pytest.mark.parametrize(
    ("system", "expected"),
    [
        (
            "linux",
            [
                "config/obsidian/obsidian.json",
                "home/.var/app/md.obsidian.Obsidian/config/obsidian/obsidian.json",
                "home/snap/obsidian/current/.config/obsidian/obsidian.json",
            ],
        ),
        ("macos", ["config/obsidian/obsidian.json"]),
        ("windows", ["config/obsidian/obsidian.json"]),
    ],
)
def test_obsidians_list_is_where_each_system_keeps_it(tmp_path: Path, system: System, expected: list[str]) -> None:
    files = obsidian.registry_files(system, home=tmp_path / "home", config=tmp_path / "config")

    assert [file.relative_to(tmp_path).as_posix() for file in files] == expected


def test_open_vaults_come_first_then_those_last_opened(tmp_path: Path) -> None:
    old, new, opened = (make_folder(tmp_path / name) for name in ("old", "neu Ж", "opened"))
    file = write_registry(
        tmp_path / "obsidian.json",
        {"a": {"path": old, "ts": 1}, "b": {"path": new, "ts": 3}, "c": {"path": opened, "ts": 2, "open": True}},
    )

    found = obsidian.find_vaults([tmp_path / "missing.json", file, file])

    assert [str(vault.path) for vault in found] == [opened, new, old]
    assert [vault.is_open for vault in found] == [True, False, False]


def test_what_is_no_folder_is_left_out(tmp_path: Path) -> None:
    note = tmp_path / "note.md"
    note.touch()
    good = make_folder(tmp_path / "good")
    rows = [
        {"path": str(tmp_path / "gone")},
        {"path": str(note)},
        {"path": "relative"},
        {"path": "/a\0b"},
        {"path": 7},
        {},
        "x",
        {"path": good, "ts": "yesterday"},
    ]
    file = write_registry(tmp_path / "obsidian.json", {str(number): row for number, row in enumerate(rows)})

    assert [(str(vault.path), vault.opened_ms) for vault in obsidian.find_vaults([file])] == [(good, 0)]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"vaults": []}', "[" * 100_000, "\ufeff{}"])
def test_a_damaged_list_has_no_vaults(tmp_path: Path, text: str) -> None:
    file = tmp_path / "obsidian.json"
    file.write_text(text, encoding="utf-8")

    assert obsidian.find_vaults([file]) == []

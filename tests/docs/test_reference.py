"""Hold the reference pages to the code that they are written from."""

from pathlib import Path

import pytest

from scripts import reference

NAMES = ("settings.md", "cli.md", "exit-codes.md", "tools.md", "modules.md")


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return reference.pages()


def test_there_is_no_other_page(pages: dict[str, str]) -> None:
    assert sorted(pages) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_page_says_what_the_code_says(name: str, pages: dict[str, str]) -> None:
    assert (reference.FOLDER / name).read_text(encoding="utf-8") == pages[name], "run scripts/reference"


def test_the_definitions_that_mcp_lists_are_those_of_the_tools() -> None:
    assert reference.DEFINITIONS.read_text(encoding="utf-8") == reference.definitions(), "run scripts/reference"


def test_every_module_has_a_line(pages: dict[str, str]) -> None:
    lines = pages["modules.md"].splitlines()
    stems = sorted(
        path.stem
        for path in reference.SOURCE.rglob("*.py")
        if path.stem not in {"__init__", "__main__"} and path.parent != reference.SOURCE
    )
    named = sorted(line.split("`")[1] for line in lines if line.startswith("| `"))

    assert named == stems


def test_every_setting_and_every_command_has_a_place(pages: dict[str, str]) -> None:
    settings = pages["settings.md"]
    commands = pages["cli.md"]

    assert [one.name for one in reference.SETTINGS if f"| `{one.name}` |" not in settings] == []
    assert [row.name for row in reference.COMMANDS if f"\n## knap {row.name}\n" not in commands] == []


def test_a_page_that_is_up_to_date_is_left_alone(tmp_path: Path, pages: dict[str, str]) -> None:
    texts = {tmp_path / "below" / name: text for name, text in pages.items()}
    reference.write(texts)
    written = {path: path.stat().st_mtime_ns for path in texts}

    reference.write(texts)

    assert {path: path.stat().st_mtime_ns for path in texts} == written

"""Check that what the texts tell a person to run, and to read, is there."""

import re
from pathlib import Path

import pytest

from knapper.cli import main

ROOT = Path(__file__).parents[2]
FRONT = [ROOT / name for name in ("README.md", "CONTRIBUTING.md")]
TEXTS = [*FRONT, *sorted((ROOT / "docs").rglob("*.md"))]

COMMAND = re.compile(r"(?m)(?:`|^\s*(?:\$ )?(?:\.venv/bin/)?)knap(?: --(?:vault|config|env-file) \S+)* ([a-z][a-z-]+)")
SCRIPT = re.compile(r"(?<![\w/])scripts/[a-z-]+\b")
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)\s]*)?\)")


def found(pattern: re.Pattern[str]) -> list[str]:
    return sorted({name for path in TEXTS for name in pattern.findall(path.read_text(encoding="utf-8"))})


@pytest.mark.parametrize("name", found(SCRIPT))
def test_a_named_script_can_be_run(name: str) -> None:
    assert (ROOT / name).stat().st_mode & 0o100


@pytest.mark.parametrize("name", found(COMMAND))
def test_a_named_command_exists(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main.run([name, "--help"])

    assert code == 0, capsys.readouterr().err


@pytest.mark.parametrize("path", FRONT, ids=lambda path: path.name)
def test_a_linked_file_is_there(path: Path) -> None:
    linked = LINK.findall(path.read_text(encoding="utf-8"))

    assert linked
    assert [name for name in linked if not (path.parent / name).exists()] == []


def test_every_hint_that_page_and_plugin_put_into_other_words_is_one_of_the_server() -> None:
    hints = (ROOT / "ui/client/transport.ts").read_text(encoding="utf-8")
    sources = [file.read_text(encoding="utf-8") for file in (ROOT / "src/knapper").rglob("*.py")]
    known = re.findall(r'(?m)^  "(.*?)": "', hints)

    assert known
    assert [words for words in known if not any(words in text for text in sources)] == []

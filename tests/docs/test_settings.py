"""Settings that the documentation, the program's own words and the page name are those that a file may hold."""

import re
from pathlib import Path
from typing import Final

import pytest

from knapper import config
from knapper.config.settings import SETTINGS

PROJECT: Final = Path(__file__).parents[2]
NAMES: Final = frozenset(setting.name for setting in SETTINGS)
BLOCK: Final = re.compile(r"^```toml\n(.*?)^```", re.DOTALL | re.MULTILINE)
NESTED: Final = re.compile(r"(?<![\w.])(?:agents|search)\.(?:scout|rerank)\.[a-z_]+")
"""How a section within another one is called in Python, where the settings stand before it, and nowhere else."""


def _blocks() -> dict[str, str]:
    pages = {page.name: page.read_text(encoding="utf-8") for page in sorted((PROJECT / "docs").rglob("*.md"))}
    return {
        f"{name}:{text[: found.start()].count(chr(10)) + 1}": found[1]
        for name, text in pages.items()
        for found in BLOCK.finditer(text)
    }


BLOCKS: Final = _blocks()


@pytest.mark.parametrize("place", BLOCKS)
def test_what_the_documentation_writes_into_the_file_is_taken(own_home: Path, place: str) -> None:
    written = BLOCKS[place].replace("sha256:…", f"sha256:{'0' * 64}")
    named = 'vaults = ["work"]' in written
    vault = '[vaults.work]\npath = "~/Work"\n' if named else ""
    (own_home / "config.toml").write_text(vault + written, encoding="utf-8")

    assert config.load() is not None


def test_the_program_names_no_setting_by_its_place_in_the_code() -> None:
    named = {
        (path.name, text)
        for path in (PROJECT / "src").rglob("*.py")
        for text in NESTED.findall(path.read_text(encoding="utf-8"))
    }

    assert named == set()


def test_the_page_has_words_for_every_setting_and_for_no_other() -> None:
    source = (PROJECT / "ui/parts/settings/model.ts").read_text(encoding="utf-8")
    listed = re.findall(r'^  "?([a-z_]+(?:\.[a-z_]+)?)"?: \{ label', source, re.MULTILINE)

    assert sorted(listed) == sorted(NAMES)

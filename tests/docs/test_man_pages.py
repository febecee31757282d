"""The man pages: up to date, without a warning of roff, and with everything that the help has."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from knapper.cli.main import COMMANDS
from scripts import man_pages

PAGES = man_pages.files()


def test_there_is_a_page_for_the_program_and_each_command_and_no_other() -> None:
    names = {path.name for path in man_pages.FOLDER.glob("*")}

    assert names == {"knap.1", *(f"knap-{row.name}.1" for row in COMMANDS)}
    assert {path.name for path in PAGES} == names


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_page_says_what_the_help_says(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == PAGES[path], "run scripts/man"


@pytest.mark.skipif(not shutil.which("groff"), reason="there is no groff here to render them with")
def test_groff_has_nothing_to_complain_about() -> None:
    for path in PAGES:
        shown = subprocess.run(
            ["groff", "-man", "-Tutf8", "-ww", "-rLL=120n", str(path)],
            capture_output=True,
            text=True,
            check=True,
            encoding="utf-8",
        )

        assert shown.stderr == "", path.name
        text = re.sub(r"\x1b\[[0-9;]*m|.\x08", "", shown.stdout)
        assert re.search(r"EXIT\s+STATUS", text)
        assert "\\f" not in text


def test_text_that_roff_would_obey_is_printed_as_it_is() -> None:
    assert man_pages.render_text(".so /etc/passwd `a-b` 'x' \\fB~^é") == (
        "\\&.so /etc/passwd \\fBa\\-b\\fR \\(aqx\\(aq \\efB\\(ti\\(ha\\[u00E9]"
    )


def test_the_wheel_has_them_where_man_looks() -> None:
    project = tomllib.loads((man_pages.ROOT / "pyproject.toml").read_text(encoding="utf-8"))

    assert project["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"] == {"docs/man": "share/man/man1"}

"""Hold what is asked of other packages."""

import re
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
FLAWED: Final = (43, 0, 1)
"""The first wasmtime without CVE-2026-34971, by which scripts could get out of their sandbox."""
_AT_LEAST: Final = re.compile(r"(?P<name>[\w.-]+)(?:\[[\w,-]+\])?>=(?P<version>[\d.]+)")


def at_least() -> dict[str, tuple[int, ...]]:
    """Read the lower bounds of what the program needs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = map(_AT_LEAST.match, project["dependencies"])
    return {one["name"]: numbers(one["version"]) for one in found if one is not None}


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(one) for one in re.findall(r"\d+", version)[:3])


def test_wasmtime_is_one_without_the_flaw_that_lets_scripts_out() -> None:
    locked = re.search(r"^wasmtime==(.+)$", (ROOT / "requirements.lock").read_text(encoding="utf-8"), re.MULTILINE)

    assert locked is not None
    assert at_least()["wasmtime"] >= FLAWED
    assert numbers(locked[1]) >= at_least()["wasmtime"]
    assert numbers(metadata.version("wasmtime")) >= at_least()["wasmtime"]


def test_every_package_that_is_needed_has_a_lower_bound() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert [one for one in project["dependencies"] if _AT_LEAST.match(one) is None] == []


def test_pages_can_be_read_where_an_old_pip_installed_the_program() -> None:
    """Hold what pip before 23.3 leaves out: it doesn't know ``lxml[html_clean]`` for lxml's extra ``html-clean``."""
    assert "lxml_html_clean" in at_least()

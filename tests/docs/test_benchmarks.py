"""Hold the page of benchmarks to the benchmarks that there are: a command for each, and whole tables."""

import re
from typing import Final

from bench import frame
from bench.__main__ import NAMES

PAGE: Final = frame.PAGE.read_text(encoding="utf-8")
MARKER: Final = re.compile(r"(?m)^<!-- (/?)bench:(\w+) -->$")


def test_every_table_has_both_markers_and_its_own_benchmark() -> None:
    found = [(slash, name) for slash, name in MARKER.findall(PAGE)]
    begun = [name for slash, name in found if not slash]

    assert found == [one for name in begun for one in (("", name), ("/", name))]
    assert len(begun) == len(set(begun))
    assert set(begun) <= set(NAMES)


def test_every_benchmark_is_named_with_its_command() -> None:
    prose = re.sub(r"(?s)<!-- bench:(\w+) -->.*?<!-- /bench:\1 -->", "", PAGE)

    assert [name for name in NAMES if not re.search(rf"-m bench {name}\b", prose)] == []

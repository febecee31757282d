"""Count what the suite compares, by engine and property, and print the table with `--report`."""

import json
from collections import Counter
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from tests.index.conformance import engines

PROPERTIES = (
    "scores are BM25's, to nine digits",
    "nearest as by comparing all",
    "filters and policies complete",
    "a reader sees old or new",
    "notes whole, beside a writer",
    "exact after kill -9",
    "exact in several processes",
)
_COUNTS = pytest.StashKey[Counter[tuple[str, str]]]()
_OF_TEST = pytest.StashKey[Counter[tuple[str, str]]]()
Count = Callable[[str, int], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--report", action="store_true", help="print a table of engines and properties, with counts")
    parser.addoption("--report-json", type=Path, metavar="FILE", help="write the counts of the table here")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_COUNTS] = Counter()


@pytest.fixture
def count(request: pytest.FixtureRequest) -> Count:
    """Count comparisons that held, for a property; they are told only of a test that passed."""

    found = request.node.stash.setdefault(_OF_TEST, Counter())

    def add(what: str, number: int) -> None:
        assert what in PROPERTIES
        assert number > 0
        found[request.node.callspec.params["kind"], what] += number

    return add


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.when == "call" and report.passed:
        item.config.stash[_COUNTS] += item.stash.get(_OF_TEST, Counter[tuple[str, str]]())
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    counts = config.stash[_COUNTS]
    if file := config.getoption("--report-json", None):
        found = {what: {kind: counts[kind, what] for kind in engines.KINDS} for what in PROPERTIES}
        file.write_text(json.dumps(found), "utf-8")
    if not config.getoption("--report", False):
        return
    write = terminalreporter.write_line
    write(f"| property | {' | '.join(engines.NAMES.values())} |")
    write(f"|---{'|--:' * len(engines.KINDS)}|")
    for what in PROPERTIES:
        write(f"| {what} | {' | '.join(f'{counts[kind, what]:,}' for kind in engines.KINDS)} |")

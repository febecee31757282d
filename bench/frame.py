"""Measure and report: what all benchmarks share."""

import math
import multiprocessing
import os
import platform
import re
import signal
import sqlite3
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any, Literal, ParamSpec, TypeVar

from bench.places import ROOT

P = ParamSpec("P")
R = TypeVar("R")
PAGE = ROOT / "docs" / "benchmarks.md"
_STATUS = Path("/proc/self/status")


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """Hold what a value should reach."""

    limit: float
    sense: Literal["under", "at least"] = "under"

    def met(self, value: float) -> bool:
        return value < self.limit if self.sense == "under" else value >= self.limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Hold one measured thing: its median, and all values where there are several."""

    what: str
    values: Sequence[float]
    unit: str = ""
    goal: Goal | None = None
    digits: int | None = None
    """After the point; None gives three significant ones."""

    @property
    def value(self) -> float:
        return median(self.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Hold what several things have in common: a row for each, and a column for each figure."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]

    def render(self) -> list[str]:
        lines = [f"**{self.title}**", "", f"| {' | '.join(self.header)} |", f"|---{'|--:' * (len(self.header) - 1)}|"]
        return [*lines, *(f"| {' | '.join(row)} |" for row in self.rows), ""]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Hold what a benchmark found."""

    title: str
    about: str
    """What was done, in a sentence or two."""
    rows: Sequence[Row]
    remarks: Sequence[str] = ()
    tables: Sequence[Table] = ()
    """Before the rows."""


class Clock:
    """Measure the time of blocks, in seconds, by name."""

    def __init__(self) -> None:
        self.times: dict[str, float] = {}

    @contextmanager
    def time(self, name: str) -> Generator[None]:
        begin = time.perf_counter()
        yield
        self.times[name] = self.times.get(name, 0.0) + time.perf_counter() - begin


def percentile(values: Sequence[float], share: float) -> float:
    """Give the value that a *share* of the values doesn't exceed, by the nearest rank."""
    return sorted(values)[max(math.ceil(share * len(values)), 1) - 1]


def processor_s() -> float:
    """Give the processor time of this process, and of those it started that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def memory_mb() -> dict[str, float]:
    """Give this process's memory: resident, of that its own (not mapped files), and the peak of the resident."""
    if not _STATUS.exists():
        return {"resident": math.nan, "own": math.nan, "peak": math.nan}
    found = dict(re.findall(r"(?m)^(VmHWM|VmRSS|RssAnon):\s+(\d+) kB", _STATUS.read_text(encoding="ascii")))
    names = {"resident": "VmRSS", "own": "RssAnon", "peak": "VmHWM"}
    return {name: int(found.get(field, 0)) / 1024 for name, field in names.items()}


def in_child(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call a module's function in a new process, so that nothing is warm and memory is its own."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(there, function, args, kwargs))
    process.start()
    there.close()
    try:
        return here.recv()
    except EOFError:
        process.join()
        raise SystemExit(f"bench: a child process ended with {process.exitcode}") from None
    except BaseException:
        # Interrupted, perhaps by a signal that only this process got: the child ends what it has begun.
        process.terminate()
        raise
    finally:
        process.join()


def load() -> float:
    """Give the system's load over the last minute; not a number where it isn't known."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else math.nan


def machine() -> str:
    """Describe the machine in a line, without its name."""
    cpu, memory = platform.machine(), ""
    info = Path("/proc/cpuinfo")
    if info.exists():
        cpu = next(iter(re.findall(r"(?m)^model name\s*: (.+)$", info.read_text(encoding="utf-8"))), cpu)
        total = re.search(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text(encoding="ascii"))
        memory = f"{int(total[1]) / 2**20:.0f} GB, " if total else ""
    system = f"{platform.system()} {platform.release().split('-')[0]}"
    return (
        f"{cpu.strip()}, {os.cpu_count()} cores, {memory}{system}, "
        f"Python {platform.python_version()} ({loop_ms():.0f} ms for a loop of its own), "
        f"SQLite {sqlite3.sqlite_version}"
    )


def loop_ms() -> float:
    """Give the processor time of a fixed loop in pure Python, in milliseconds, the least of several.

    Pythons of one version differ by a third, as not all are built with profile-guided optimisation, and shared machines
    are quicker in one hour than in another; so figures of two tables compare only together with this one.
    """

    def loop() -> int:
        counts: dict[str, int] = {}
        for number in range(200_000):
            key = f"k{number % 1000}"
            counts[key] = counts.get(key, 0) + len(key)
        return sum(counts.values())

    times: list[float] = []
    for _ in range(7):
        begin = time.process_time()
        _ = loop()
        times.append(1_000 * (time.process_time() - begin))
    return min(times)


def render(report: Report, *, command: str, load_before: float) -> str:
    """Write a report as Markdown."""
    lines = [report.about, "", *(line for table in report.tables for line in table.render())]
    if report.rows:
        lines.extend(["| what | median | min to max | goal | |", "|---|--:|--:|--:|---|"])
        lines.extend(_row(row) for row in report.rows)
    lines.extend(["", *(f"- {remark}" for remark in report.remarks)])
    lines.extend(["", f"`{command}` on {machine()}; load {load_before:.1f} before, {load():.1f} after."])
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines))


def has_place(name: str) -> bool:
    """Return whether the page of benchmarks has a place for a report."""
    return f"<!-- bench:{name} -->" in PAGE.read_text(encoding="utf-8")


def write(name: str, text: str) -> None:
    """Put a report into the page of benchmarks, between its markers."""
    page = PAGE.read_text(encoding="utf-8")
    begin, end = f"<!-- bench:{name} -->", f"<!-- /bench:{name} -->"
    head, rest = page.split(begin, 1)
    PAGE.write_text(f"{head}{begin}\n\n{text}\n\n{end}{rest.split(end, 1)[1]}", encoding="utf-8")
    print(f"\nwritten to {PAGE.relative_to(ROOT)}")


def make_python(folder: Path, wanted: Sequence[str], what: str) -> Path:
    """Give the Python of an environment, and make that where it is missing.

    Args:
        folder: Where it lies.
        wanted: What pip shall install, or its options.
        what: Names that for who waits.
    """
    path = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    if not (folder / ".ready").exists():
        say(f"installing {what}")
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([path, "-m", "pip", "install", "-q", "--disable-pip-version-check", *wanted], check=True)
        (folder / ".ready").touch()
    return path


def say(text: str) -> None:
    """Tell what is going on, beside the report."""
    print(f"  {text}", file=sys.stderr, flush=True)


def _row(row: Row) -> str:
    spread = f"{_number(row, min(row.values))} to {_number(row, max(row.values))}" if len(row.values) > 1 else ""
    goal = f"{row.goal.sense} {_plain(row.goal.limit)} {row.unit}".strip() if row.goal else ""
    met = ("yes" if row.goal.met(row.value) else "**no**") if row.goal else ""
    return f"| {row.what} | {_number(row, row.value)} {row.unit} | {spread} | {goal} | {met} |"


def _number(row: Row, value: float) -> str:
    if row.digits is not None:
        return f"{value:,.{row.digits}f}"
    size = abs(value)
    return f"{value:,.0f}" if size >= 100 or value == int(value) else f"{value:.1f}" if size >= 10 else f"{value:.2f}"


def _plain(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:g}"


def _send(there: Connection, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    signal.signal(signal.SIGTERM, end)
    try:
        there.send(function(*args, **kwargs))
    except KeyboardInterrupt:
        sys.exit(130)  # the parent was interrupted, too, and says so
    there.close()


def end(number: int, _: object) -> None:
    """End by an exception, so that servers are stopped and folders removed."""
    sys.exit(128 + number)

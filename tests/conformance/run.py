"""Run the protocol's own suites against the product, and tell what they say.

``python -m tests.conformance.run`` installs what it needs, takes a minute or two, and fails on any regression.
"""

import contextlib
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.conformance import node

_REACHED: Final = {"2025-11-25": 84, "2026-07-28": 196}
"""Checks that pass with fixtures, by era: all but that of notices about tasks, which the suite leaves out itself."""
_PLAIN: Final = (
    "server-initialize",
    "tools-list",
    "resources-list",
    "prompts-list",
    "caching",
    "http-header-validation",
    "dns-rebinding-protection",
    "server-session-lifecycle",
    "ping",
    "sep-2164-resource-not-found",
)
"""Scenarios that ask nothing of the product that it hasn't."""
_BASELINE: Final = Path(__file__).with_name("baseline.toml")
"""Checks that may fail, each with its reason; the product has to pass all others."""
_COUNTED: Final = re.compile(r"^Passed: (\d+)/(\d+), (\d+) failed", re.MULTILINE)
_FAILED_CHECK: Final = re.compile(r"\[([\w.-]+) *\] \S*FAILURE")
_PASSED: Final = re.compile(r"^Total: (\d+) passed", re.MULTILINE)
_TOTAL: Final = re.compile(r"^(?:Total|Passed): .*$", re.MULTILINE)
_TIME_S: Final = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Suites:
    """Hold where Node and the tools are."""

    node: Path
    modules: Path

    def conformance(self, address: str, *more: str) -> subprocess.CompletedProcess[str]:
        """Run the conformance suite."""
        script = self.modules / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
        return self._run(str(script), "server", "--url", address, *more)

    def inspector(self, *more: str) -> subprocess.CompletedProcess[str]:
        """Run the Inspector's command line."""
        return self._run(str(self.modules / ".bin" / "mcp-inspector"), "--cli", *more, "-q", "--format", "json")

    def _run(self, *line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.node), *line],
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=_TIME_S,
            check=False,
            env=node.environment(self.node),
        )


@contextlib.contextmanager
def served(which: str) -> Generator[str]:
    """Serve the product or the fixtures, and give the address."""
    line = [sys.executable, "-W", "ignore", "-m", "tests.conformance.serve", which]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield f"http://127.0.0.1:{server.stdout.readline().strip()}/mcp"
        finally:
            server.terminate()


def fixtures(suites: Suites) -> list[str]:
    """Hold the product's app, with the suite's fixtures on it, to both eras of the protocol."""
    failed: list[str] = []
    with served("fixtures") as address:
        for era, least in _REACHED.items():
            ran = suites.conformance(address, "--requirements", era)
            failed += _tell(f"fixtures, {era}", held(ran, least))
    return failed


def held(ran: subprocess.CompletedProcess[str], least: int) -> subprocess.CompletedProcess[str]:
    """Take a run for a failed one where fewer checks passed.

    To the suite, a warning and an extension that fails are no failures.
    """
    found = _PASSED.search(ran.stdout)
    if found is not None and int(found[1]) >= least:
        return ran
    said = f"{ran.stderr}\nfewer than {least} checks passed"
    return subprocess.CompletedProcess(ran.args, ran.returncode or 1, ran.stdout, said)


def product(suites: Suites) -> list[str]:
    """Hold the product itself to what needs no fixtures, and use it through the Inspector."""
    failed: list[str] = []
    with served("product") as address:
        for scenario in _PLAIN:
            failed += _tell(f"product, {scenario}", suites.conformance(address, "--scenario", scenario))
        for scenario, checks in baseline().items():
            ran = excused(suites.conformance(address, "--scenario", scenario), checks)
            failed += _tell(f"product, {scenario} but for what the baseline has", ran)
        for era in ("legacy", "modern"):
            over = [address, "--transport", "http", "--protocol-era", era]
            failed += _inspect(suites, f"HTTP, {era}", over)
    with tempfile.TemporaryDirectory() as folder:
        vault = Path(folder, "vault")
        vault.mkdir()
        (vault / "Rain.md").write_text("# Rain\n\nIt rains.\n", "utf-8")
        line = [sys.executable, "-m", "knapper.cli", "mcp", "--vault", str(vault), "--no-watch"]
        state = ["-e", f"KNAP_STATE_DIR={Path(folder, 'state')}", "-e", "KNAP_EMBEDDINGS=none"]
        failed += _inspect(suites, "stdio", [*line, *state])
    return failed


def _inspect(suites: Suites, name: str, over: Sequence[str]) -> list[str]:
    """List the tools strictly, and read, search and write."""
    calls = {
        "list": ["--method", "tools/list", "--strict"],
        "read": ["--method", "tools/call", "--tool-name", "read_file", "--tool-arg", "path=Rain.md"],
        "search": ["--method", "tools/call", "--tool-name", "search_vault", "--tool-arg", "query=rain"],
        "write": [
            *("--method", "tools/call", "--tool-name", "create_file"),
            *("--tool-arg", f"path=Made {name.replace(', ', ' ')}.md", "--tool-arg", "content=made"),
        ],
    }
    failed: list[str] = []
    for what, line in calls.items():
        ran = suites.inspector(*over, *line)
        is_right = ran.returncode == 0 and _is_success(ran.stdout, what)
        sys.stdout.write(f"{'passed' if is_right else 'FAILED'}  Inspector over {name}: {what}\n")
        if not is_right:
            sys.stdout.write(f"{ran.stdout[-2_000:]}\n{ran.stderr[-2_000:]}\n")
            failed.append(f"Inspector over {name}: {what}")
    return failed


def _is_success(text: str, what: str) -> bool:
    try:
        result = json.loads(text)["result"]
    except (ValueError, KeyError):
        return False
    return bool(result["tools"]) if what == "list" else result["structuredContent"]["success"] is True


def excused(ran: subprocess.CompletedProcess[str], checks: Collection[str]) -> subprocess.CompletedProcess[str]:
    """Take a run for a passed one where just the checks failed that may, and all others were counted as passed."""
    counted = _COUNTED.search(ran.stdout)
    failed = _FAILED_CHECK.findall(ran.stdout)
    if counted is None or set(failed) != set(checks):
        said = f"{ran.stderr}\nother checks failed than the baseline has"
        return subprocess.CompletedProcess(ran.args, ran.returncode or 1, ran.stdout, said)
    passed, total, lost = map(int, counted.groups())
    is_right = lost == len(checks) and passed == total - lost and passed > 0
    return subprocess.CompletedProcess(ran.args, 0 if is_right else 1, ran.stdout, ran.stderr)


def baseline() -> Mapping[str, Collection[str]]:
    """Give the checks that may fail, by scenario."""
    found: dict[str, list[str]] = {}
    for one in tomllib.loads(_BASELINE.read_text("utf-8"))["exception"]:
        assert one["reason"]
        found.setdefault(one["scenario"], []).append(one["check"])
    return found


def _tell(name: str, ran: subprocess.CompletedProcess[str]) -> list[str]:
    said = _TOTAL.findall(ran.stdout)
    is_right = ran.returncode == 0
    sys.stdout.write(f"{'passed' if is_right else 'FAILED'}  {name}: {said[-1] if said else 'said nothing'}\n")
    sys.stdout.flush()
    if is_right:
        return []
    sys.stdout.write(f"{ran.stdout[-4_000:]}\n{ran.stderr[-2_000:]}\n")
    return [name]


def main() -> None:
    """Run all, and leave with 1 where something failed."""
    found = node.find()
    suites = Suites(node=found, modules=node.install(found))
    failed = [*fixtures(suites), *product(suites)]
    sys.stdout.write(f"failed: {', '.join(failed)}\n" if failed else "the protocol is spoken as it should be\n")
    sys.stdout.flush()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

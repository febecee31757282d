"""Build what is released, check it, and install and try it as users do.

Builds archive and wheel twice, and compares them; has them checked by twine; installs the wheel by pip, uv and pipx on
each Python that is here, into paths with spaces and letters of other scripts; tries each installation. What can't be
done on this machine is left out, and said so.
"""

import argparse
import contextlib
import email.parser
import hashlib
import os
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from scripts import version

ROOT: Final = Path(__file__).parents[1]
PYTHONS: Final = ("3.11", "3.12", "3.13", "3.14", "3.15")
MAX_MB: Final = 240
MAX_PACKAGES: Final = 60
NEEDED: Final = (
    "knapper/data/embeddings/NOTICE.md",
    "knapper/data/embeddings/pieces.safetensors",
    "knapper/data/embeddings/table.safetensors",
    "knapper/data/page/index.html",
    "knapper/data/page/manifest.json",
    "knapper/data/plugin/main.js",
    "knapper/data/plugin/manifest.json",
    "knapper/data/plugin/styles.css",
    "knapper/data/scripts/interpreter.stamp",
    "knapper/data/scripts/interpreter.wasm.xz",
    "knapper/py.typed",
)
"""Files without which the wheel isn't whole."""
_STEP_S: Final = 280
_ODD: Final = "Werkzeug Ж 山 space"


class Failed(Exception):
    """A step found something wrong; the message says what."""


class LeftOut(Exception):
    """A step can't be done on this machine; the message says why."""


@dataclass(slots=True, kw_only=True)
class Report:
    """What each step came to."""

    done: list[str] = field(default_factory=list[str])
    left_out: list[str] = field(default_factory=list[str])
    failed: list[str] = field(default_factory=list[str])

    def step(self, name: str, action: Callable[[], str]) -> None:
        """Carry a step out, and print what came of it."""
        start = time.monotonic()
        try:
            result = action()
        except LeftOut as reason:
            self.left_out.append(name)
            print(f"distribution: {name}: left out: {reason}", flush=True)
        except (Failed, OSError, subprocess.TimeoutExpired) as reason:
            self.failed.append(name)
            print(f"distribution: {name}: FAILED: {reason}", flush=True)
        else:
            self.done.append(name)
            print(f"distribution: {name}: {result or 'good'} ({time.monotonic() - start:.0f} s)", flush=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workshop:
    """The folders and programs of one run."""

    folder: Path
    dist: Path
    """Where the built files are left."""
    tools: Path
    """An environment with the tools of packaging/tools.lock."""

    @property
    def wheel(self) -> Path:
        """Return the built wheel."""
        return next(self.dist.glob("knapper-*.whl"))

    @property
    def archive(self) -> Path:
        """Return the built source archive."""
        return next(self.dist.glob("knapper-*.tar.gz"))

    def tool(self, name: str) -> str:
        """Return the path of a tool."""
        return str(program(self.tools, name))


def program(environment: Path, name: str) -> Path:
    """Return the path of a program of an environment."""
    return environment / ("Scripts" if os.name == "nt" else "bin") / (f"{name}.exe" if os.name == "nt" else name)


def run(command: Sequence[str | Path], *, cwd: Path = ROOT, extra: Mapping[str, str] | None = None) -> str:
    """Run a command, and return what it printed.

    Raises:
        Failed: It ended with another code than 0.
    """
    hidden = ("PYTHONPATH", "VIRTUAL_ENV", "KNAP_CONFIG", "KNAP_STATE_DIR")
    kept = {name: value for name, value in os.environ.items() if name not in hidden}  # noqa: TID251 - a developer's script
    done = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env={**kept, "PIP_DISABLE_PIP_VERSION_CHECK": "1", **(extra or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
        errors="replace",
        timeout=_STEP_S,
        check=False,
    )
    if done.returncode:
        tail = "\n".join(done.stdout.strip().splitlines()[-12:])
        raise Failed(f"{Path(command[0]).name} ended with {done.returncode}:\n{tail}")
    return done.stdout


def build(source: Path, target: Path) -> None:
    """Build archive and wheel with the tools of this environment; nothing is fetched."""
    epoch = str(int(run(["git", "log", "-1", "--format=%ct"])) if (ROOT / ".git").exists() else 1_700_000_000)
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(target)]
    run(command, cwd=source, extra={"SOURCE_DATE_EPOCH": epoch})


def build_twice(workshop: Workshop) -> str:
    """Build here, and from the unpacked archive in another place; both must be alike to the byte."""
    for old in [*workshop.dist.glob("knapper-*.whl"), *workshop.dist.glob("knapper-*.tar.gz")]:
        old.unlink()
    build(ROOT, workshop.dist)
    again = workshop.folder / _ODD / "again"
    with tarfile.open(workshop.archive) as archive:
        archive.extractall(again, filter="data")
    (source,) = again.iterdir()
    for path in source.rglob("*"):  # another checkout has other times
        os.utime(path, (1, 1))
    build(source, workshop.folder / "second")
    for first in (workshop.archive, workshop.wheel):
        second = workshop.folder / "second" / first.name
        if digest(first) != digest(second):
            raise Failed(f"{first.name} differs where it is built again: {differences(first, second)}")
    sizes = ", ".join(f"{path.name} {path.stat().st_size / 1e6:.1f} MB" for path in (workshop.archive, workshop.wheel))
    return f"twice the same bytes: {sizes}"


def digest(path: Path) -> str:
    """Return a file's hash."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def differences(first: Path, second: Path) -> str:
    """Return which members of two wheels differ."""
    if first.suffix != ".whl":
        return "its members or their times"
    with zipfile.ZipFile(first) as one, zipfile.ZipFile(second) as other:
        ours, theirs = ({info.filename: info.CRC for info in archive.infolist()} for archive in (one, other))
    return ", ".join(sorted({name for name, _ in {*ours.items()} ^ {*theirs.items()}}))


def check_contents(workshop: Workshop) -> str:
    """Hold what the wheel contains, and what an index shows of it."""
    facts = version.read_facts()
    with zipfile.ZipFile(workshop.wheel) as archive:
        names = set(archive.namelist())
        metadata = archive.read(f"knapper-{facts.version}.dist-info/METADATA").decode()
    problems = [f"{name} is missing" for name in NEEDED if name not in names]
    problems += [f"{name} doesn't belong there" for name in names if name.endswith((".pyc", ".part", "tokenizer.json"))]
    parsed = email.parser.Parser().parsestr(metadata)
    shown = str(parsed.get_payload())
    wanted = (
        f"mcp-name: {facts.registry_name}",
        "uv tool install knapper",
        "pipx install knapper",
        "pip install knapper",
    )
    problems += [f"the README lacks '{words}'" for words in wanted if words not in shown]
    problems += [f"the README has the relative address {part[:40]}" for part in relative_addresses(shown)]
    if parsed["Version"] != facts.version:
        problems.append(f"its version is {parsed['Version']}")
    if problems:
        raise Failed("; ".join(problems))
    return f"{len(names)} files"


def relative_addresses(markdown: str) -> Iterator[str]:
    """Yield the addresses of links and pictures that an index can't follow."""
    for part in markdown.split("](")[1:]:
        if not part.startswith(("https://", "#")):
            yield part.partition(")")[0]


def find_pythons() -> Iterator[tuple[str, str]]:
    """Yield the Pythons that are here and work, by version."""
    for wanted in PYTHONS:
        folders = sorted(Path.home().glob(f".pyenv/versions/{wanted}.*/bin/python"))
        for candidate in (shutil.which(f"python{wanted}"), *folders, shutil.which("python3"), sys.executable):
            if candidate and is_python(str(candidate), wanted):
                yield wanted, str(candidate)
                break


def is_python(path: str, wanted: str) -> bool:
    """Return whether a program is that Python, with what environments need; a version manager's shim may be none."""
    code = "import ensurepip, venv, sys; print('%d.%d' % sys.version_info[:2])"
    try:
        return run([path, "-c", code]).strip().splitlines()[-1:] == [wanted]
    except (Failed, OSError):
        return False


def try_installed(knap: Path, *arguments: str) -> str:
    """Try an installed program."""
    return run(
        [sys.executable, ROOT / "tests/packaging/smoke.py", knap, version.read_facts().version, *arguments]
    ).strip()


def install_lean(workshop: Workshop, python: str) -> str:
    """Install without extras, measure, and try all of the core."""
    environment = workshop.folder / _ODD / "lean"
    run([python, "-m", "venv", "--without-pip", environment])
    run([sys.executable, "-m", "pip", "--python", environment, "install", "--quiet", workshop.wheel])
    limits = ["--max-mb", str(MAX_MB), "--max-packages", str(MAX_PACKAGES)]
    print(run([program(environment, "python"), ROOT / "scripts/sizes.py", *limits]).rstrip())
    return try_installed(program(environment, "knap"), "--core")


def install_by_pip(workshop: Workshop, name: str, python: str) -> str:
    """Install by the Python's own pip, with the hashes of the lock for the core."""
    environment = workshop.folder / _ODD / f"pip {name}"
    run([python, "-m", "venv", environment])
    pip = [program(environment, "python"), "-m", "pip", "install", "--quiet", "--no-compile"]
    run([*pip, "--require-hashes", "--no-deps", "--requirement", ROOT / "packaging/core.lock"])
    run([*pip, "--no-deps", "--no-index", workshop.wheel])
    run([*pip[:3], "check"])
    return try_installed(program(environment, "knap"))


def install_by_uv(workshop: Workshop, name: str, python: str) -> str:
    """Install as a tool of uv's, and take it away."""
    home = workshop.folder / _ODD / f"uv {name}"
    extra = {"UV_TOOL_DIR": str(home / "tools"), "UV_TOOL_BIN_DIR": str(home / "bin"), "UV_PYTHON_DOWNLOADS": "never"}
    run([workshop.tool("uv"), "tool", "install", "--quiet", "--python", python, workshop.wheel], extra=extra)
    result = try_installed(program(home / "tools" / "knapper", "knap"))
    run([workshop.tool("uv"), "tool", "uninstall", "--quiet", "knapper"], extra=extra)
    return result


def install_by_pipx(workshop: Workshop, name: str, python: str) -> str:
    """Install by pipx, and take it away."""
    home = workshop.folder / f"pipx {_ODD} {name}"
    extra = {"PIPX_HOME": str(home), "PIPX_BIN_DIR": str(home / "bin"), "PIPX_MAN_DIR": str(home / "man")}
    extra |= {"PIPX_DEFAULT_PYTHON": python, "USE_EMOJI": "0"}
    run([workshop.tool("pipx"), "install", "--quiet", "--pip-args=--no-compile", workshop.wheel], extra=extra)
    result = try_installed(program(home / "venvs" / "knapper", "knap"))
    run([workshop.tool("pipx"), "uninstall", "knapper"], extra=extra)
    return result


def pack_bundle(workshop: Workshop) -> str:
    """Validate and pack the MCP bundle by its own tool, from npm."""
    npx = shutil.which("npx")
    if npx is None:
        raise LeftOut("there is no npm")
    copy = workshop.folder / "mcpb"
    shutil.copytree(ROOT / "packaging/mcpb", copy)
    mcpb = [npx, "--yes", "@anthropic-ai/mcpb@2"]
    try:
        run([*mcpb, "--version"])
    except (Failed, subprocess.TimeoutExpired) as error:
        raise LeftOut("npm's registry can't be reached") from error
    run([*mcpb, "validate", copy / "manifest.json"])
    bundle = workshop.dist / f"knapper-{version.read_facts().version}.mcpb"
    run([*mcpb, "pack", copy, bundle])
    return bundle.name


def validate_plugin(workshop: Workshop) -> str:
    """Have Claude Code validate its plugin."""
    del workshop
    claude = shutil.which("claude")
    if claude is None:
        raise LeftOut("Claude Code isn't here (npm install -g @anthropic-ai/claude-code, 230 MB)")
    run([claude, "plugin", "validate", "--strict", ROOT / "packaging/claude-code-plugin"])
    run([claude, "plugin", "validate", "--strict", ROOT])
    return ""


def build_container(workshop: Workshop) -> str:
    """Build the container, and see it become healthy."""
    del workshop
    engine = next((found for name in ("podman", "docker") if (found := shutil.which(name))), None)
    if engine is None:
        raise LeftOut("there is neither podman nor docker")
    try:
        run([engine, "info", "--format", "{{.ServerVersion}}"] if "docker" in engine else [engine, "info"])
    except (Failed, subprocess.TimeoutExpired) as error:
        raise LeftOut(f"{Path(engine).name} has no daemon that answers") from error
    run([engine, "build", "--file", "packaging/Containerfile", "--tag", "knapper-test", "."])
    with contextlib.ExitStack() as stack:
        token = hashlib.sha256(os.urandom(16)).hexdigest()
        name = run([engine, "run", "--detach", "--env", f"KNAP_TOKEN={token}", "knapper-test"]).strip().splitlines()[-1]
        stack.callback(run, [engine, "rm", "--force", name])
        if run([engine, "exec", name, "id", "-u"]).strip() == "0":
            raise Failed("its user is root")
        for _ in range(60):
            if run([engine, "inspect", "--format", "{{.State.Health.Status}}", name]).strip() == "healthy":
                return "healthy"
            time.sleep(1)
    raise Failed("it doesn't become healthy")


def audit(workshop: Workshop) -> str:
    """Ask whether a locked version has a known flaw."""
    try:
        socket.create_connection(("api.osv.dev", 443), timeout=5).close()
    except OSError as error:
        raise LeftOut("the database of flaws can't be reached") from error
    command = [workshop.tool("pip-audit"), "--vulnerability-service", "osv", "--disable-pip", "--require-hashes"]
    for lock in ("requirements.lock", "packaging/agents.lock"):
        run([*command, "--requirement", ROOT / lock])
    return "no known flaws"


def make_tools(workshop: Workshop) -> str:
    """Install the tools, by their hashes."""
    run([sys.executable, "-m", "venv", workshop.tools])
    pip = [program(workshop.tools, "python"), "-m", "pip", "install", "--quiet", "--no-compile"]
    run([*pip, "--require-hashes", "--no-deps", "--requirement", ROOT / "packaging/tools.lock"])
    return ""


def check_archives(workshop: Workshop) -> str:
    """Have twine check archive and wheel."""
    run([workshop.tool("twine"), "check", "--strict", workshop.archive, workshop.wheel])
    return ""


def install_everywhere(report: Report, workshop: Workshop) -> None:
    """Install by each tool on each Python that is here."""
    pythons = dict(find_pythons())
    for name in PYTHONS:
        python = pythons.get(name)
        if python is None:
            report.left_out.append(f"Python {name}")
            print(f"distribution: Python {name}: left out: it isn't here", flush=True)
            continue
        if name == next(iter(pythons)):
            report.step(f"core alone, on {name}", lambda python=python: install_lean(workshop, python))
        report.step(f"pip on {name}", lambda name=name, python=python: install_by_pip(workshop, name, python))
        report.step(f"uv on {name}", lambda name=name, python=python: install_by_uv(workshop, name, python))
        report.step(f"pipx on {name}", lambda name=name, python=python: install_by_pipx(workshop, name, python))


def main(arguments: Sequence[str]) -> int:
    """Build and try everything; return 1 if a step failed."""
    parser = argparse.ArgumentParser(prog="scripts/distribution", description=__doc__)
    parser.add_argument("--build-only", action="store_true", help="build into dist/ and check, without installing")
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", metavar="FOLDER", help="where built files are left")
    options = parser.parse_args(arguments)
    report = Report()
    with tempfile.TemporaryDirectory(prefix="knapper-", ignore_cleanup_errors=True) as folder:
        workshop = Workshop(folder=Path(folder), dist=options.dist.absolute(), tools=Path(folder) / "tools")
        report.step("build", lambda: build_twice(workshop))
        if not report.failed:
            report.step("contents", lambda: check_contents(workshop))
        if not report.failed and not options.build_only:
            report.step("tools", lambda: make_tools(workshop))
        if not report.failed and not options.build_only:
            report.step("twine", lambda: check_archives(workshop))
            install_everywhere(report, workshop)
            report.step("MCP bundle", lambda: pack_bundle(workshop))
            report.step("Claude Code plugin", lambda: validate_plugin(workshop))
            report.step("container", lambda: build_container(workshop))
            report.step("pip-audit", lambda: audit(workshop))
    left_out = f"; left out: {', '.join(report.left_out)}" if report.left_out else ""
    failed = f"; FAILED: {', '.join(report.failed)}" if report.failed else ""
    print(f"distribution: {len(report.done)} steps good{left_out}{failed}")
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

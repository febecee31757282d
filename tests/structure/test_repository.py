"""Hold what is true of every file that is kept."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Written so that no pattern matches itself.
FORBIDDEN = {
    "a package registry's host": re.compile(r"\b(?:py[p]i|npm[j]s|python[h]osted|crate[s])\.(?:org|com|io)\b"),
    "a path of one machine": re.compile(r"(?<![\w.~])/(?:wor[k]|roo[t])/\w|(?<![\w.])/tm[p]/\w"),
}
PINNED = re.compile(r"[\w.-]+(\[[\w, -]+\])?==[\w.!+]+( ; [\w.<>=!'() ]+?)?(\s+--hash=sha256:[0-9a-f]{64})+\s*")


def kept() -> list[Path]:
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("not a clone")
    listed = subprocess.run([git, "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    paths = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    return [path for path in paths if path.is_file() and not path.is_symlink()]


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_names(what: str) -> None:
    texts = {path: path.read_bytes().decode(errors="replace") for path in kept()}
    found = {
        f"{path.relative_to(ROOT).as_posix()}:{text.count(chr(10), 0, match.start()) + 1}": match.group()
        for path, text in texts.items()
        for match in FORBIDDEN[what].finditer(text)
    }

    assert found == {}


def test_no_file_names_the_place_it_was_written_at() -> None:
    own = str(ROOT).encode()
    found = [path.relative_to(ROOT).as_posix() for path in kept() if own in path.read_bytes()]

    assert found == []


@pytest.mark.parametrize("name", ["requirements.lock", "packaging/core.lock", "packaging/agents.lock"])
def test_a_lock_pins_every_package_by_hashes_and_has_no_address(name: str) -> None:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    entries = "\n".join(line for line in lines if not line.startswith("#")).replace("\\\n", "").splitlines()

    assert entries
    assert [entry for entry in entries if not PINNED.fullmatch(entry)] == []

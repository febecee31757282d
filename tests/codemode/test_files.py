"""Files below an allowed folder are read, and nothing else is, whatever others do to the folder meanwhile."""

import os
import threading
from pathlib import Path

import pytest

from knapper.codemode import evidence
from knapper.errors import BadInput, NotFound
from knapper.vault.paths import NotePath

pytestmark = pytest.mark.skipif(os.open not in os.supports_dir_fd, reason="goes down folders as POSIX systems do")
PATH = NotePath("src/deep/a.txt")
SECRET = "canary-71c2"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in {"root": "mine", "other": SECRET}.items():
        folder = tmp_path / name / "src" / "deep"
        folder.mkdir(parents=True)
        _ = (folder / "a.txt").write_text(text, encoding="utf-8")
    return tmp_path / "root"


@pytest.mark.parametrize("swapped", ["src", "src/deep", "src/deep/a.txt"])
def test_what_became_a_link_after_it_was_looked_at_is_not_followed(root: Path, swapped: str) -> None:
    (root / swapped).rename(root.parent / "away")
    (root / swapped).symlink_to(root.parent / "other" / swapped)

    with pytest.raises(NotFound):
        _ = evidence.read_beneath(root, PATH)


def test_nothing_else_is_read_while_a_folder_is_swapped_again_and_again(root: Path) -> None:
    over = threading.Event()
    folder, away = root / "src", root / "away"

    def swap() -> None:
        while not over.is_set():
            _ = folder.rename(away)
            folder.symlink_to(root.parent / "other" / "src")
            folder.unlink()
            _ = away.rename(folder)

    swapping = threading.Thread(target=swap)
    swapping.start()
    read: list[str] = []
    for _ in range(500):
        try:
            read.append(evidence.read_beneath(root, PATH).decode())
        except NotFound:
            read.append("")
    over.set()
    swapping.join()

    assert set(read) <= {"mine", ""}


def test_only_files_of_a_usual_size_are_read(root: Path) -> None:
    os.mkfifo(root / "pipe")
    with (root / "large").open("wb") as file:
        _ = file.truncate(9_000_000)

    codes: list[str] = []
    for name in ("pipe", "large", "src"):
        with pytest.raises(BadInput) as raised:
            _ = evidence.read_beneath(root, NotePath(name))
        codes.append(raised.value.code)

    assert codes == ["not_a_file", "too_large", "not_a_file"]


def test_a_link_inside_the_folder_is_followed(root: Path) -> None:
    (root / "link.txt").symlink_to(root / "src/deep/a.txt")
    (root / "linked").symlink_to(root / "src")

    assert (
        evidence.read_allowed_file((root,), "link.txt")
        == evidence.read_allowed_file((root,), "linked/deep/a.txt")
        == "mine"
    )

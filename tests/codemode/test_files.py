"""Files below an allowed folder are read, and nothing else is; tests/vault/test_swapped.py swaps folders meanwhile."""

import os
from pathlib import Path

import pytest

from knapper.codemode import evidence
from knapper.errors import BadInput, KnapError

pytestmark = pytest.mark.skipif(os.name != "posix", reason="makes pipes and links")
SECRET = "canary-71c2"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in {"root": "mine", "other": SECRET}.items():
        folder = tmp_path / name / "src" / "deep"
        folder.mkdir(parents=True)
        _ = (folder / "a.txt").write_text(text, encoding="utf-8")
    return tmp_path / "root"


def test_only_files_of_a_usual_size_are_read(root: Path) -> None:
    os.mkfifo(root / "pipe")
    with (root / "large").open("wb") as file:
        _ = file.truncate(9_000_000)

    codes: list[str] = []
    for name in ("pipe", "large", "src"):
        with pytest.raises(BadInput) as raised:
            _ = evidence.read_allowed_file((root,), name)
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


def test_an_absolute_path_tells_nothing_of_where_the_folder_lies(root: Path) -> None:
    messages: set[str] = set()
    for name in (root, root / "none.txt", root / "src", root.parent / "none.txt", root.parent, Path("/etc")):
        with pytest.raises(KnapError) as raised:
            _ = evidence.read_allowed_file((root,), str(name))
        messages.add(str(raised.value.as_dict()))

    assert len(messages) == 1
    assert evidence.read_allowed_file((root,), str(root / "src/deep/a.txt")) == "mine"

"""A vault's fingerprint changes with what a client sees of its notes, and with nothing else."""

from collections.abc import Callable
from pathlib import Path

import pytest

from knapper.agents.runs import retrieving
from knapper.config import ClientSettings
from knapper.vault import access
from tests.tools import opened

GUEST = ClientSettings(grants=access.default_grants("guest"), hidden=("Private/",))
NOTES = {"A.md": "# A\n", "Private/B.md": "# B\n", "c.svg": "<svg/>"}


def write(name: str, text: str) -> Callable[[Path], None]:
    def change(root: Path) -> None:
        _ = (root / name).write_text(text, encoding="utf-8")

    return change


def remove(root: Path) -> None:
    (root / "A.md").unlink()


def rename(root: Path) -> None:
    _ = (root / "A.md").rename(root / "Z.md")


def link(root: Path) -> None:
    (root / "Link.md").symlink_to(root / "Private/B.md")


@pytest.mark.parametrize(
    ("change", "client", "is_same"),
    [
        (write("A.md", "# A\n"), "cli", True),
        (write("c.svg", "<svg>x</svg>"), "cli", True),
        (write("A.md", "# Other\n"), "cli", False),
        (write("New.md", ""), "cli", False),
        (remove, "cli", False),
        (rename, "cli", False),
        (write("Private/B.md", "# Other\n"), "cli", False),
        (write("Private/B.md", "# Other\n"), GUEST, True),
        (link, GUEST, True),
        (write("A.md", "# Other\n"), GUEST, False),
    ],
)
def test_it_tells_whether_the_notes_are_as_they_were(
    tmp_path: Path, change: Callable[[Path], None], client: str | ClientSettings, is_same: bool
) -> None:
    vault = opened.vault(tmp_path, NOTES)
    with vault.open(client) as context:
        before = retrieving.fingerprint_notes(context)
        _ = change(vault.root)

        assert (retrieving.fingerprint_notes(context) == before) is is_same


def test_clients_who_see_different_notes_have_different_ones(tmp_path: Path) -> None:
    vault = opened.vault(tmp_path, NOTES)
    with vault.open("cli") as owner, vault.open(GUEST) as guest:
        assert retrieving.fingerprint_notes(owner) != retrieving.fingerprint_notes(guest)

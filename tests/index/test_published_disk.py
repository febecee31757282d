"""A database whose disk is full says so, keeps what was published before, and goes on once there is room."""

import os
import pwd
import subprocess
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path

import pytest

from knapper.errors import StorageError
from tests.index import published
from tests.postgres import LocalServer

pytestmark = [pytest.mark.timeout(120), pytest.mark.slow]
NOTES = {"cats.md": "# Cats\n\nCats like tomatoes.\n", "dogs.md": "# Dogs\n\nDogs bark.\n"}
SIZE = "96m"


@pytest.fixture
def small_disk(postgres: LocalServer) -> Generator[Path]:
    """Mount a small disk that holds a database of its own; where that isn't allowed, the test is left out."""
    folder = postgres.folder / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "t", folder], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip("no disk can be mounted here: that takes root")
    try:
        data = folder / "data"
        data.mkdir()
        os.chown(data, pwd.getpwnam("nobody").pw_uid, -1)
        with postgres.connect() as session:
            session.execute(f"CREATE TABLESPACE small LOCATION '{data}'")
            session.execute("CREATE DATABASE small TABLESPACE small")
        yield folder
        with postgres.connect() as session:
            session.execute("DROP DATABASE small WITH (FORCE)")
            session.execute("DROP TABLESPACE small")
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def test_a_full_disk_of_the_server_is_told_and_costs_nothing(
    tmp_path: Path, postgres: LocalServer, small_disk: Path
) -> None:
    with published.open_team(tmp_path, postgres.address(database="small"), NOTES) as team:
        reader = team.reader()
        before = published.hits(reader, "cats tomatoes", "keyword")
        ballast = _fill(small_disk)
        big = {f"big/{number}.md": " ".join(f"word{number}x{i}" for i in range(3_000)) for number in range(40)}
        with pytest.raises(StorageError) as raised:
            team.save(big)
        during = published.hits(reader, "cats tomatoes", "keyword")
        ballast.unlink()
        team.publish()
        after = published.hits(reader, "word7x2999", "keyword")

        assert raised.value.code == "engine_full"
        assert before == during != []
        assert [note for _, note, _ in after] == ["big/7.md"]
        assert published.is_whole(team)


def _fill(disk: Path) -> Path:
    """Leave no room on a disk."""
    ballast = disk / "ballast"
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass
    return ballast

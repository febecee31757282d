"""What is opened together is closed together, where one of the files can't be opened."""

import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from pathlib import Path

import pytest

from knapper import app
from knapper.agents import work_store
from knapper.agents.model import usage
from knapper.app import chats, pipelines, runs
from knapper.app.hub import Hub
from knapper.codemode import checkpoints
from knapper.config import EmbeddingSettings, Settings, Vault
from knapper.errors import StorageError
from tests.index import worlds


@pytest.mark.parametrize(
    ("begin", "last"),
    [
        (chats.open_chats, usage.USAGE_FILE),
        (chats.open_chats, work_store.WORK_FILE),
        (pipelines.open_pipelines, work_store.WORK_FILE),
        (runs.open_runs, work_store.WORK_FILE),
        (runs.open_runs, usage.USAGE_FILE),
        (runs.open_runs, checkpoints.CHECKPOINTS_FILE),
    ],
)
def test_nothing_stays_open_where_a_later_file_can_not_be_opened(
    tmp_path: Path, begin: Callable[[Hub], AbstractContextManager[object]], last: str
) -> None:
    vault = Vault(name="home", path=worlds.fill(tmp_path / "home", {"A.md": "# A\n"}).resolve())
    settings = Settings(
        choice=vault,
        vaults=(vault,),
        state_dir=tmp_path / "state",
        embeddings=EmbeddingSettings(kind="none"),
        config_file=tmp_path / "config.toml",
    )
    with app.open_hub(settings) as hub:
        folder = hub.open().folder
        with closing(sqlite3.connect(folder / last)) as database:
            database.executescript("CREATE TABLE later (x); PRAGMA user_version = 99")
        before = held(folder)

        with pytest.raises(StorageError, match="newer version"), begin(hub):
            pass

        assert held(folder) == before


def held(folder: Path) -> set[str]:
    """List the files that SQLite keeps beside those that are open."""
    return {one.name for one in folder.iterdir() if one.name.endswith(("-wal", "-shm"))}

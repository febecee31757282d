"""Open a folder's index as the program does, without anybody's settings."""

import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from knapper.app.vault import open_embedder
from knapper.index.documents import Filter
from knapper.index.engine import Engine
from knapper.index.models.base import Embedder, EmbedderSettings
from knapper.vault.access import Policy
from knapper.vault.view import View

DEFAULT_EMBEDDER = EmbedderSettings()


@contextmanager
def opened(vault: Path, folder: Path, embedder: EmbedderSettings | Embedder = DEFAULT_EMBEDDER) -> Generator[Engine]:
    """Open the index of *vault* that is kept in *folder*."""
    view = View.open(vault.resolve(), Policy(client="owner"))

    def open_it() -> Embedder | None:
        return open_embedder(embedder) if isinstance(embedder, EmbedderSettings) else embedder

    with Engine(folder, view, open_embedder=open_it) as engine:
        yield engine


@contextmanager
def scratch(place: Path) -> Generator[Path]:
    """Give an empty folder below *place* that goes away afterwards."""
    folder = Path(tempfile.mkdtemp(dir=place))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def index(vault: Path, folder: Path) -> int:
    """Bring an index up to date, with vectors; gives the number of chunks."""
    with opened(vault, folder) as engine:
        engine.refresh()
        engine.embed()
        return engine.status(Filter()).chunks


def move(folder: Path, target: Path) -> None:
    """Put a folder in another's place."""
    shutil.rmtree(target, ignore_errors=True)
    folder.rename(target)

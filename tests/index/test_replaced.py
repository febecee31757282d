"""An index that another process replaces or removes while this one has it open."""

import shutil
import threading
import time
from pathlib import Path

import pytest

from knapper.errors import StorageError
from knapper.index import database, refresh, watch
from knapper.index.database import Database
from knapper.index.engine import Engine
from knapper.index.refresh import RefreshOutcome
from knapper.index.search import SearchRequest
from tests.index import worlds

PATIENCE_S = 60


def notes(engine: Engine, word: str) -> list[str]:
    return [hit.row.note for hit in engine.search(SearchRequest(text=word, mode="keyword")).hits]


def spoil(file: Path) -> None:
    file.write_bytes(b"\xa5" * file.stat().st_size)


def empty(folder: Path) -> None:
    """Put an empty folder in its place; a watcher writes meanwhile."""
    gone = folder.with_name("gone")
    folder.rename(gone)
    folder.mkdir(exist_ok=True)
    shutil.rmtree(gone)


def test_who_holds_an_index_open_goes_on_with_the_one_that_another_put_in_its_place(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})
    with worlds.engine(root, tmp_path / "s") as server, worlds.engine(root, tmp_path / "s") as other:
        server.refresh()
        for name in ("index.db", "index.db-wal"):
            spoil(tmp_path / "s" / name)
        other.refresh(full=True)
        worlds.fill(root, {"new.md": "gamma\n"})
        other.freshen()

        assert notes(server, "gamma") == ["new.md"]
        assert database.state_of(server.store.database.reader()) == database.state_of(other.store.database.reader())


def test_an_index_that_is_deleted_while_it_is_open_comes_back(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()
        empty(tmp_path / "s")
        fresh = engine.freshen()

        assert (tmp_path / "s/index.db").exists()
        assert not fresh.incomplete
        assert notes(engine, "alpha") == ["a.md"]


def test_a_watcher_makes_an_index_again_that_is_deleted(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})
    taken, stop = threading.Semaphore(0), threading.Event()

    def heard(_: RefreshOutcome) -> None:
        taken.release()

    with worlds.engine(root, tmp_path / "s") as engine:
        watcher = threading.Thread(target=watch.follow_vault, args=(engine, stop, heard))
        watcher.start()
        try:
            assert taken.acquire(timeout=PATIENCE_S)
            while not refresh.is_watched(tmp_path / "s"):
                time.sleep(0.01)
            empty(tmp_path / "s")

            assert taken.acquire(timeout=PATIENCE_S)
            assert notes(engine, "alpha") == ["a.md"]
        finally:
            stop.set()
            watcher.join()


def test_no_sign_of_life_is_left_where_the_folder_is_gone(tmp_path: Path) -> None:
    watch.write_heartbeat(tmp_path / "gone")

    assert not refresh.is_watched(tmp_path / "gone")


def test_an_index_that_cannot_come_back_is_an_error_of_ours(tmp_path: Path) -> None:
    with Database(tmp_path / "s/index.db") as opened:
        shutil.rmtree(tmp_path / "s")
        (tmp_path / "s").write_bytes(b"")

        with pytest.raises(StorageError, match="can't be opened"):
            opened.reader()


def test_an_older_copy_that_took_an_index_s_place_is_searched_as_it_is(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {f"{name}.md": f"rain {'wind ' * n}\n" for n, name in enumerate("abcd")})
    file, copy, asked = tmp_path / "s/index.db", tmp_path / "copy.db", SearchRequest(text="rain", mode="keyword")
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()
        engine.store.database.reader().execute("VACUUM INTO ?", (str(copy),))
        worlds.fill(root, {"b.md": "rain storm " * 40})
        engine.refresh()
        for _ in range(2):
            engine.search(asked)
        empty(file.parent)
        copy.replace(file)
        worlds.fill(root, {"b.md": "rain hail\n"})
        engine.refresh()
        found = {hit.row.note: hit.score for hit in engine.search(asked).hits}
        engine.refresh(full=True)
        anew = {hit.row.note: hit.score for hit in engine.search(asked).hits}

    assert found == pytest.approx(anew, rel=1e-9)

"""What the status of an index tells somebody who doesn't see all of it."""

import threading
from pathlib import Path
from typing import cast

import pytest

from knapper.cli.render.indexing import render_status
from knapper.index import refresh
from knapper.index.documents import Filter
from knapper.index.search import SearchRequest
from knapper.tools.shapes.read import VaultStatus
from knapper.vault.access import Policy
from tests.index import worlds

NOTES = {
    "a.md": "one\n",
    "b.md": "two\n",
    "In/c.md": "# Three\n\nthree\n\n# Four\n\nfour\n",
    "In/p.png": "",
    "q.png": "",
}


def test_who_does_not_see_all_is_told_of_the_rest_only(tmp_path: Path) -> None:
    guest = Filter(policy=Policy(hidden=("In/",)))
    embedder = worlds.WordEmbedder()
    with worlds.engine(worlds.fill(tmp_path / "v", NOTES), tmp_path / "s", embedder) as engine:
        engine.refresh()
        engine.embed()
        (tmp_path / "v" / "a.md").write_text("one\n\n# Five\n\nmore\n", encoding="utf-8")
        (tmp_path / "v" / "In" / "c.md").write_text("# Three\n\nother\n\n# Four\n\nfour\n", encoding="utf-8")
        engine.refresh()
        seen, whole = engine.status(guest), engine.status()

    assert (seen.notes, seen.files, whole.notes, whole.files) == (2, 3, 3, 5)
    assert (seen.chunks, seen.embedded, seen.pending) == (3, 2, 1)
    assert (whole.chunks, whole.embedded, whole.pending) == (5, 3, 2)


def test_vectors_of_another_model_do_not_count_for_who_does_not_see_all(tmp_path: Path) -> None:
    guest = Filter(policy=Policy(hidden=("In/",)))
    vault = worlds.fill(tmp_path / "v", NOTES)
    with worlds.engine(vault, tmp_path / "s", worlds.WordEmbedder()) as engine:
        engine.refresh()
        engine.embed()
    with worlds.engine(vault, tmp_path / "s", worlds.WordEmbedder("others")) as engine:
        seen = engine.status(guest)

    assert (seen.model, seen.chunks, seen.embedded, seen.pending) == ("others", 2, 0, 2)


def test_a_new_model_replaces_the_vectors_while_search_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vault = worlds.fill(tmp_path / "v", NOTES)
    with worlds.engine(vault, tmp_path / "s", worlds.WordEmbedder("before")) as engine:
        engine.refresh()
        engine.embed()
        alone = engine.status()
    monkeypatch.setattr(refresh, "_MAX_INLINE_CHUNKS", 0)
    monkeypatch.setattr(refresh, "_INSTANT_BATCH_CHUNKS", 2)
    stop = threading.Event()

    def stop_after_a_batch(phase: refresh.RefreshPhase, done: int, total: int) -> None:
        del phase, done, total
        stop.set()

    with worlds.engine(vault, tmp_path / "s", worlds.WordEmbedder("now")) as engine:
        unopened = engine.status()
        engine.embed(progress=stop_after_a_batch, stop=stop)
        halfway = engine.status()
        found = engine.search(SearchRequest(text="three"))
        engine.embed()
        done = engine.status()

    assert (alone.replaced_model, alone.pending) == ("", 0)
    assert (unopened.replaced_model, unopened.pending) == ("before", 4)
    assert (halfway.replaced_model, halfway.embedded, halfway.pending) == ("before", 2, 2)
    assert [hit.row.note for hit in found.hits] == ["In/c.md"]
    assert (done.replaced_model, done.pending) == ("", 0)


def test_a_note_that_was_never_embedded_replaces_nothing(tmp_path: Path) -> None:
    with worlds.engine(worlds.fill(tmp_path / "v", NOTES), tmp_path / "s", worlds.WordEmbedder()) as engine:
        engine.refresh()
        status = engine.status()

    assert (status.replaced_model, status.pending) == ("", 4)


def test_the_status_says_which_model_is_replaced() -> None:
    counts: dict[str, object] = {"notes": 1, "files": 1, "chunks": 4, "embedded": 2, "pending": 2, "size_bytes": 9}
    counts |= {"model": "now", "index_incomplete": True, "built": "", "skipped": [], "problems": 0, "indexing": False}
    counts |= {"embedding": False}
    answer = cast("VaultStatus", counts)
    places = {"vault": "v", "index": "i"}

    replacing = render_status({**answer, "replaced_model": "before"}, places)

    assert "model   now; it replaces before, and words alone find what waits" in replacing
    assert "replaces" not in render_status({**answer, "replaced_model": ""}, places)
    assert "index   i, 9 B\n" in replacing


def test_a_size_that_is_not_told_is_not_shown_as_nothing() -> None:
    counts: dict[str, object] = {"notes": 1, "files": 1, "chunks": 4, "embedded": 2, "pending": 2, "size_bytes": 0}
    counts |= {"model": "", "index_incomplete": True, "built": "", "skipped": [], "problems": 0, "indexing": False}
    counts |= {"embedding": False}
    answer = cast("VaultStatus", {**counts, "replaced_model": ""})

    assert "index   i\n" in render_status(answer, {"vault": "v", "index": "i"})

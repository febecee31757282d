"""A second process reads the same as this one."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from knapper.index import chunker, documents
from knapper.index.documents import Chunk, FileRecord
from knapper.vault.access import Policy
from knapper.vault.view import View
from knapper.vault.walk import FileStat
from tests.index import worlds


def world(root: Path) -> tuple[View, list[list[FileStat]]]:
    worlds.fill(root, {f"{n}.md": f"---\ntags: [t{n}]\n---\n# Head {n}\n\ntext {n} [[1]]\n" for n in range(7)})
    for note in root.iterdir():
        os.utime(note, (1e9, 1e9))  # one that was saved a moment ago is recorded as such
    view = View.open(root, Policy(client="owner"))
    files = list(view.list_files())
    return view, [files[:3], files[3:6], files[6:]]


def here(view: View, batches: list[list[FileStat]]) -> list[chunker.ReadBatch]:
    return [[documents.rows_of(*chunker.read_file(view, stat)) for stat in stats] for stats in batches]


def test_another_process_reads_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    view, batches = world(tmp_path / "v")
    expected = here(view, batches)

    read, ours = chunker.read_file, list[str]()

    def note(view: View, stat: FileStat) -> tuple[FileRecord, Sequence[Chunk]]:
        ours.append(stat.path)
        return read(view, stat)

    monkeypatch.setattr(chunker, "read_file", note)
    found = list(chunker.read_batches(view, batches, min_parallel=1))

    assert ours == [stat.path for stat in batches[0]]
    assert [len(batch) for batch in found] == [3, 3, 1]
    assert found == expected


def test_what_the_other_process_does_not_manage_is_read_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    view, batches = world(tmp_path / "v")
    expected = here(view, batches)
    for name in (str(tmp_path / "missing"), "", "/bin/false"):
        monkeypatch.setattr(sys, "executable", name)

        assert list(chunker.read_batches(view, batches, min_parallel=1)) == expected


def test_a_vault_with_an_index_is_read_by_another_process(tmp_path: Path) -> None:
    notes = {f"{n}.md": f"text {n}" for n in range(chunker.MIN_PARALLEL_FILES)}
    engine = worlds.engine(worlds.fill(tmp_path / "v", notes), tmp_path / "s")

    outcome = engine.refresh()

    assert outcome.indexed == chunker.MIN_PARALLEL_FILES


def test_the_files_of_a_write_are_read_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunker.subprocess, "Popen", None)
    notes = {f"{n}.md": f"text {n}" for n in range(chunker.MIN_PARALLEL_FILES)}
    root = worlds.fill(tmp_path / "v", notes)
    engine = worlds.engine(root, tmp_path / "s")

    outcome = engine.refresh_paths([root / name for name in notes])

    assert outcome.indexed == len(notes)


def test_nothing_of_the_current_folder_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    view, batches = world(tmp_path / "v")
    (tmp_path / "v" / "pickle.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')", encoding="utf-8")
    monkeypatch.chdir(tmp_path / "v")

    list(chunker.read_batches(view, batches, min_parallel=1))

    assert not (tmp_path / "ran").exists()


def test_reading_can_be_left_off(tmp_path: Path) -> None:
    view, batches = world(tmp_path / "v")

    some = chunker.read_batches(view, batches, min_parallel=1)

    assert len(next(some)) == 3

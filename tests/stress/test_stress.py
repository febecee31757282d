"""The short forms of the stress scripts beside this file."""

import sys
import time
from pathlib import Path

import pytest

from tests.stress import collisions, damage, full_disk, kills, races


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs a signal that can't be caught")
def test_a_killed_writer_leaves_all_or_none(tmp_path: Path) -> None:
    report = kills.run(8, seed=1, top=tmp_path)

    assert report.failures == []
    assert report.kills == 16


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs leases, or an editor that only renames")
def test_an_editor_loses_no_save(tmp_path: Path) -> None:
    report = races.Report(rounds=0)
    for number in range(5):  # again where the editor was done before the first change
        report = races.run(150, seed=number, top=tmp_path / str(number))
        if report.applied + report.caught or report.lost:
            break

    assert report.lost == ""
    assert report.temps == 0
    assert report.applied + report.caught > 0


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs leases")
def test_a_save_in_the_moment_of_an_exchange_is_never_lost(tmp_path: Path) -> None:
    report = collisions.run(60, seed=1, top=tmp_path / "top")

    assert (report.lost, report.untold) == ([], [])
    assert report.applied > 0
    assert report.refused_after > 0


@pytest.mark.slow
@pytest.mark.skipif(not full_disk.can_mount(), reason="needs an account that can mount a disk of its own")
def test_a_change_on_a_full_disk_is_made_whole_or_not_at_all(tmp_path: Path) -> None:
    report = full_disk.run(12, seed=1, top=tmp_path, until=time.monotonic() + 60)

    assert (report.torn, report.untold) == ([], [])
    assert report.applied > 0
    assert report.refused > 0


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="makes pipes and links")
def test_files_that_cant_be_read_leave_the_index_whole(tmp_path: Path) -> None:
    report = damage.run_unreadable(2, seed=1, top=tmp_path, until=time.monotonic() + 60)

    assert (report.wrong, report.untold) == ([], [])
    assert report.rounds > 0


@pytest.mark.slow
def test_flipped_bits_change_no_answer_without_a_word(tmp_path: Path) -> None:
    report = damage.run_flips(6, seed=1, top=tmp_path, until=time.monotonic() + 60)

    assert (report.wrong, report.untold) == ([], [])
    assert report.right + report.told == report.rounds > 0

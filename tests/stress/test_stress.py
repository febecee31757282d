"""The short forms of the stress scripts beside this file."""

import os
import sys
from pathlib import Path

import pytest

from tests.stress import kills, races


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs a signal that can't be caught")
def test_a_killed_writer_leaves_all_or_none(tmp_path: Path) -> None:
    report = kills.run(8, seed=os.getpid(), top=tmp_path)

    assert report.failures == []
    assert report.kills == 16


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs leases, or an editor that only renames")
def test_an_editor_loses_no_save(tmp_path: Path) -> None:
    report = races.run(150, seed=os.getpid(), top=tmp_path)

    assert report.lost == ""
    assert report.temps == 0
    assert report.applied + report.caught > 0

"""New notes: what their names may be, and what is said of them."""

from pathlib import Path

import pytest

from knapper.changes.drafts import Create
from knapper.errors import BadInput
from tests.changes import desks

NOTES = {"Here.md": "here\n"}


@pytest.mark.parametrize("path", ["", "  ", "Folder/", "Folder/Sub/"])
def test_a_path_without_a_notes_name_is_refused_for_that(tmp_path: Path, path: str) -> None:
    with desks.world(tmp_path, NOTES) as world:
        with pytest.raises(BadInput, match="names no note"):
            world.submit(Create(path=path, content="x"))

        assert set(world.tree()) == {"Here.md"}


@pytest.mark.parametrize("path", ["C#.md", "a[b].md", "x^y.md"])
def test_a_name_that_no_link_can_hold_is_told(tmp_path: Path, path: str) -> None:
    with desks.world(tmp_path, NOTES) as world:
        done = world.submit(Create(path=path, content="x"))

        assert done.status == "applied"
        assert any("links to it break" in notice for notice in done.notices)


def test_a_usual_name_needs_no_remark(tmp_path: Path) -> None:
    with desks.world(tmp_path, NOTES) as world:
        assert world.submit(Create(path="Folder/Note.md", content="x")).notices == ()

"""Headings and block ids: a rename takes along every link that leads there, and no other."""

from pathlib import Path

import pytest

from knapper.changes.disk import undo
from knapper.changes.drafts import RenameBlock, RenameHeading
from knapper.errors import Ambiguous, ConflictError, NotFound
from tests.changes import desks

NOTES = {
    "N.md": "# Top\n\n## Old Part\n\ntext ^blk\n\n[[#Old Part]] [[#Top#Old Part|x]]\n\n## Other\n",
    "L.md": "[[N#Old Part]] ![[n#old part]] [[N#Other]] [[N]] [[N#^blk]] [m](N.md#Old%20Part) `[[N#Old Part]]`\n",
    "P.md": "---\nup: '[[N#Old Part]]'\n---\n| a |\n|---|\n| [[N#Old Part\\|y]] |\n",
    "c.canvas": '{"nodes":[{"id":"1","type":"file","file":"N.md","subpath":"#Old Part"}],"edges":[]}',
    "M.md": "# Old Part\n\n[[#Old Part]] [[M#Old Part]]\n",
}


def test_a_renamed_heading_takes_every_link_along_and_comes_back_by_undo(tmp_path: Path) -> None:
    with desks.world(tmp_path, NOTES) as world:
        before = world.tree()
        done = world.submit(RenameHeading(path="N.md", heading="## Old Part", title="New: Part #1"))

        assert world.text("N.md") == (
            "# Top\n\n## New: Part #1\n\ntext ^blk\n\n[[#New Part 1]] [[#Top#New Part 1|x]]\n\n## Other\n"
        )
        assert world.text("L.md") == (
            "[[N#New Part 1]] ![[n#New Part 1]] [[N#Other]] [[N]] [[N#^blk]] [m](N.md#New%20Part%201)"
            " `[[N#Old Part]]`\n"
        )
        assert world.text("P.md") == "---\nup: '[[N#New Part 1]]'\n---\n| a |\n|---|\n| [[N#New Part 1\\|y]] |\n"
        assert '"subpath":"#New Part 1"' in world.text("c.canvas")
        assert world.text("M.md") == NOTES["M.md"]
        assert len(done.rewritten) == 8
        assert {one.old for one in done.rewritten if one.path == "L.md"} == {
            "[[N#Old Part]]",
            "![[n#old part]]",
            "[m](N.md#Old%20Part)",
        }
        world.writer.undo(undo.Last())
        assert world.tree() == before


def test_links_still_lead_to_the_renamed_heading(tmp_path: Path) -> None:
    with desks.world(tmp_path, NOTES) as world:
        world.submit(RenameHeading(path="N.md", heading="## Old Part", title="Fresh"))
        again = world.submit(RenameHeading(path="N.md", heading="## Fresh", title="Old Part"))

        assert len(again.rewritten) == 8
        assert world.text("P.md") == NOTES["P.md"]


def test_a_renamed_block_id_takes_its_links_along(tmp_path: Path) -> None:
    with desks.world(tmp_path, NOTES) as world:
        world.submit(RenameBlock(path="N.md", old="blk", new="better"))

        assert "text ^better" in world.text("N.md")
        assert "[[N#^better]]" in world.text("L.md")
        assert "[[N#Old Part]]" in world.text("L.md")


def test_what_cannot_be_renamed_says_so(tmp_path: Path) -> None:
    twice = {**NOTES, "T.md": "# A\n\n# A\n"}
    with desks.world(tmp_path, twice) as world:
        with pytest.raises(NotFound):
            world.submit(RenameHeading(path="N.md", heading="## Nope", title="x"))
        with pytest.raises(Ambiguous):
            world.submit(RenameHeading(path="T.md", heading="# A", title="x"))
        with pytest.raises(ConflictError):
            world.submit(RenameBlock(path="N.md", old="blk", new="x", base="sha256:0"))

"""The tool that renames headings and blocks."""

from pathlib import Path

from knapper.changes.drafts import EditText
from knapper.tools.context import Context
from knapper.tools.files import rename_anchor
from tests.changes import desks


def test_a_heading_and_a_block_are_renamed_with_their_links(tmp_path: Path) -> None:
    notes = {"A.md": "# One\n\ntext ^id\n", "B.md": "[[A#One]] [[A#^id]]\n"}
    with desks.world(tmp_path, notes) as world:
        context = Context(
            vault="v",
            view=world.writer.context.view,
            index=world.index,
            open_writer=lambda: world.writer,
            close=world.index.close,
        )
        heading = rename_anchor(context, "A.md", "# One", "Two")
        block = rename_anchor(context, "A.md", "^id", "^new")

        assert (heading["status"], block["status"]) == ("applied", "applied")
        assert world.text("B.md") == "[[A#Two]] [[A#^new]]\n"
        assert world.submit(EditText(path="A.md", old="^new", new="^other")).status == "applied"

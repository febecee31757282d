"""Remember who has read text that others wrote."""

from knapper.tools.context import Context
from knapper.vault.notes import Note


def heard(context: Context, note: Note) -> bool:
    """Tell whether others wrote a note; if so, its reader only proposes changes from now on, unless it is a person."""
    block = note.outline.frontmatter
    if not context.view.policy.is_foreign(note.path, block.values if block else {}):
        return False
    writer = context.writer
    if not writer.grants.is_person:
        run = context.asked.run if context.asked else ""
        _ = writer.taints.mark(writer.grants.client, run, note.path)
    return True

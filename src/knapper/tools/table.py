"""List the tools over one vault, in the order in which every surface shows them."""

from typing import Final

from knapper.tools import files, journal, moves, properties, proposals, reading, sections, tags
from knapper.tools.rows import Row

ROWS: Final = (
    Row(function=reading.read_file, profile="essential"),
    Row(function=files.create_file, effect="write", profile="essential"),
    Row(function=files.edit_file, effect="destructive", profile="essential"),
    Row(function=files.append_to_file, effect="write", profile="essential"),
    Row(function=files.prepend_to_file, effect="write"),
    Row(function=files.write_file, effect="destructive", repeatable=True),
    Row(function=files.edit_at, effect="destructive"),
    Row(function=sections.replace_section, effect="destructive", repeatable=True),
    Row(function=sections.append_to_section, effect="write"),
    Row(function=sections.rename_anchor, effect="destructive"),
    Row(function=properties.update_frontmatter, effect="destructive", profile="essential", repeatable=True),
    Row(function=properties.batch_update_frontmatter, effect="destructive", repeatable=True),
    Row(function=moves.move_file, effect="destructive", profile="essential"),
    Row(function=moves.batch_move_files, effect="destructive"),
    Row(function=files.delete_file, effect="destructive"),
    Row(function=tags.rename_tag, effect="destructive", repeatable=True),
    Row(function=proposals.list_proposals),
    Row(function=proposals.show_proposal),
    Row(function=proposals.accept_proposal, effect="destructive", asked=False),
    Row(function=proposals.reject_proposal, effect="write", asked=False),
    Row(function=proposals.edit_proposal, effect="write", asked=False),
    Row(function=journal.list_changes),
    Row(function=journal.undo_change, effect="destructive"),
)
"""Every tool of this layer, a line each."""

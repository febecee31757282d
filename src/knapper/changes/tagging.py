"""Draft the renaming of a tag in all notes that have it."""

from collections.abc import Sequence

from knapper.changes.drafts import Capability, FileDraft
from knapper.changes.requests import RenameTag
from knapper.changes.text import snapshots, splices, tags
from knapper.errors import NotFound
from knapper.vault.paths import NotePath
from knapper.vault.view import View


def draft(view: View, request: RenameTag, tagged: Sequence[NotePath]) -> list[FileDraft]:
    """Draft a tag's new name.

    Args:
        view: The vault.
        request: Which tag; its own paths come before *tagged*.
        tagged: The notes that the index knows to have the tag, or one below it.

    Raises:
        BadInput: The new name can't be a tag's.
        NotFound: No note has the tag.
    """
    tags.check(request.new.strip().removeprefix("#").rstrip("/"))
    made: list[FileDraft] = []
    for path in request.paths or tagged:
        try:
            note = view.read(path)
            renamed = tags.rename(snapshots.take(note.raw, note.outline), request.old, request.new)
        except NotFound:
            if request.paths:
                raise
            continue  # the index is behind, or the note isn't the client's to see
        after = splices.merge(note.raw, renamed.splices)
        in_properties = any(tag.origin == "property" for tag in note.outline.tags)
        needs = frozenset[Capability]({"properties", "delete"} if in_properties else {"delete"})
        made.append(FileDraft(path=note.path, base=note.hash, before=note.raw, after=after, needs=needs, anchored=True))
    if not made:
        raise NotFound(
            f"no note has the tag #{request.old.removeprefix('#')}", hint="list_tags, or `knap tags`, lists them"
        )
    return made

"""Tell by a short text whether a vault's notes are as they were."""

import hashlib
import json

from knapper.tools.context import Context


def of_notes(context: Context) -> str:
    """Give a hash of the names and hashes of all notes that the client sees, as the index knows them.

    What a search didn't find, it won't find as long as this stays the same. Who takes something in at the same moment
    is waited for: an index that lacks a note would say that nothing has changed.

    Raises:
        ConflictError: Another process has been writing the index for a minute.
    """
    seen = context.freshen(meaning=False)
    if seen.stale or seen.incomplete or seen.unchecked:
        context.index.catch_up()
    visible = context.view.visible
    notes = [[path, one] for path, target, one in context.index.store.hashes() if visible(path) and visible(target)]
    return f"sha256:{hashlib.sha256(json.dumps(notes).encode()).hexdigest()}"

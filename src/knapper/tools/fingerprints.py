"""Tell by a short text whether a vault's notes are as they were."""

import hashlib
import json

from knapper.tools.context import Context


def of_notes(context: Context) -> str:
    """Give a hash of the names and hashes of all notes that the client sees, as the index knows them.

    What a search didn't find, it won't find as long as this stays the same.
    """
    _ = context.freshen(meaning=False)
    visible = context.view.visible
    _ = context.freshen(meaning=False)
    seen = [[path, one] for path, target, one in context.index.store.hashes() if visible(path) and visible(target)]
    return f"sha256:{hashlib.sha256(json.dumps(seen).encode()).hexdigest()}"

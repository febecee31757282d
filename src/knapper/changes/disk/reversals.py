"""Tell which changes don't hold any more, and what took them back."""

import json
from collections.abc import Collection

from knapper.changes.disk.journal import Journal

_UNDONE = """SELECT id, coalesce((
        SELECT later.id FROM undoes JOIN changes AS later ON later.id = undoes.change
        WHERE undoes.undone = changes.id AND later.undone = 0 AND later.phase IN ('applied', 'done')
        ORDER BY later.seq DESC LIMIT 1
    ), '') AS undo FROM changes
    WHERE undone = 1 AND id IN (SELECT value FROM json_each(:ids))
    UNION ALL SELECT id, '' FROM pruned WHERE held = 0 AND id IN (SELECT value FROM json_each(:ids))"""


def find(journal: Journal, changes: Collection[str]) -> dict[str, str]:
    """Find those of some changes that were taken back and weren't made again.

    Args:
        journal: Where they are.
        changes: Their ids.

    Returns:
        Ids, each with that of the undo: taking that back brings the change again. Empty where the journal has dropped
        it.
    """
    if not changes:
        return {}
    with journal.reading() as database:
        rows = database.execute(_UNDONE, {"ids": json.dumps(list(changes))})
        return {row["id"]: row["undo"] for row in rows.fetchall()}

"""Tell how a vault's index stands."""

from knapper.tools.context import Context
from knapper.vault.outline import JSONValue


def vault_status(context: Context) -> dict[str, JSONValue]:
    """Say what the index of the vault holds, what it lacks, and why."""
    status = context.index.status()
    skipped = [
        {"path": row.path, "code": row.code, "problem": row.message, "line": row.line}
        for row in status.skipped
        if context.view.visible(row.path)
    ]
    return {
        "success": True,
        "vault": context.vault,
        "notes": status.notes,
        "files": status.files,
        "chunks": status.chunks,
        "embedded": status.embedded,
        "pending": status.pending,
        "problems": status.problems,
        "skipped": list(skipped),
        "model": status.model,
        "size_bytes": status.size_bytes,
        "index_incomplete": not status.complete,
        "built": status.built,
    }

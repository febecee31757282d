"""Tell how a vault's index stands."""

from typing import Annotated

from knapper.index.filters import Filter
from knapper.jsontypes import JSONValue
from knapper.tools.context import Context
from knapper.tools.shapes import Answer
from knapper.tools.shapes.standing import Status


def vault_status(context: Context) -> Annotated[Answer, Status]:
    """Say what the index of the vault holds, what it lacks, and why."""
    status = context.index.status(context.restrict(Filter()))
    skipped: list[JSONValue] = [
        {"path": row.path, "code": row.code, "problem": row.message, "line": row.line} for row in status.skipped
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
        "skipped": skipped,
        "model": status.model,
        "size_bytes": status.size_bytes,
        "index_incomplete": not status.complete,
        "built": status.built,
    }

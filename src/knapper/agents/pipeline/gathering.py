"""Write the context that a request's task is done with."""

from knapper.agents.contexts import gather, unified
from knapper.agents.contexts.gather import Wanted
from knapper.agents.contexts.unified import UnifiedContext
from knapper.agents.pipeline.requests import Request
from knapper.agents.scout.records import ScoutResult
from knapper.tools.context import Context


def write(
    context: Context,
    request: Request,
    scout: ScoutResult | None,
    *,
    mark: str,
    reader: gather.Reader = gather.hear,
) -> UnifiedContext:
    """Write the notes that a request is about as one text; no model is asked.

    Args:
        context: The vault, as the agents see it.
        request: Says which notes, and how much of them.
        scout: What exploring chose; None where it wasn't done, so that the request's scope is followed.
        mark: Parts the notes' text from ours.
        reader: As for `knapper.agents.contexts.gather.read`.

    Raises:
        NotFound: The open note, or one that was added, isn't there.
    """
    wanted = Wanted(
        current=request.current,
        scope=request.scope,
        added=request.added,
        chosen=scout.selected_notes if scout else (),
        explored=scout is not None,
    )
    found = gather.read(context, gather.select(context, wanted), request.token_limit, reader=reader)
    return unified.build(
        found.notes,
        limit=request.token_limit,
        mark=mark,
        problems=found.problems,
        unread=found.unread,
    )

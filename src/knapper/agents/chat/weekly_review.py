"""The weekly review: propose links for notes that nothing links to and that link to nothing."""

from typing import Final

from knapper.agents.chat.turn import Stage
from knapper.index.filters import Filter
from knapper.tools.context import Context

MAX_NOTES: Final = 15
"""Notes that one review looks at; the next one goes on with what is left."""
_TOOLS: Final = frozenset(
    {
        *("orphans", "list_proposals"),
        *("search_vault", "search_semantic", "find_notes", "read_file", "note_info", "find_outlinks"),
        *("append_to_section", "append_to_file", "edit_file"),
    }
)


def write_task(context: Context) -> str:
    """Return what there is to review; empty where every note has a link.

    Names of notes aren't told here: they are others' text, and the tool that lists them marks them so.

    Args:
        context: The vault, as the agent sees it.
    """
    _ = context.freshen(meaning=False)
    total = len(context.index.catalog.orphans(context.restrict(Filter())))
    if not total:
        return ""
    counted = "1 note has" if total == 1 else f"{total:,} notes have"
    return (
        f"{counted} no link in either direction. Review up to {min(total, MAX_NOTES)} of them: `orphans` lists them, "
        f"`limit` {MAX_NOTES}. Call `list_proposals` too, and leave out the notes that an open proposal links already; "
        "where that is all of them, take the next ones by `offset`."
    )


WEEKLY_REVIEW: Final = Stage(
    name="weekly-review",
    title="Weekly review",
    prompt="weekly-review",
    tools=_TOOLS,
    rounds=25,
    write_task=write_task,
    nothing="Every note has a link: there is nothing to review.",
)

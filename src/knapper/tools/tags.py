"""List and rename tags."""

from collections.abc import Sequence
from typing import Annotated

from knapper.changes.requests import RenameTag
from knapper.index.filters import Filter
from knapper.jsontypes import JSONValue
from knapper.tools import answers, checks, search
from knapper.tools.context import Context
from knapper.tools.shapes import Answer
from knapper.tools.shapes.found import Tags
from knapper.tools.shapes.written import Written
from knapper.vault import paths
from knapper.vault.paths import NotePath


def list_tags(context: Context, prefix: str = "", limit: int = 100, offset: int = 0) -> Annotated[Answer, Tags]:
    """List the vault's tags with how many notes have each, the most used first.

    Args:
        context: The vault, as the client sees it.
        prefix: Only tags that begin so, such as ``project/``; empty for all.
        limit: How many at most.
        offset: How many are left out at the beginning.

    Returns:
        ``results`` with tag and notes.
    """
    answers.check_page(limit, offset)
    wanted = paths.name_key(checks.text("prefix", prefix)).removeprefix("#")
    freshness = context.freshen(meaning=False)
    where = context.restrict(Filter())
    found = context.index.catalog.tag_counts(where, prefix=wanted, limit=limit, offset=offset)
    rows: list[JSONValue] = [{"tag": one.name, "notes": one.notes} for one in found.tags]
    return {**answers.stretch(rows, found.total, limit, offset), **search.missing(freshness)}


def rename_tag(context: Context, old: str, new: str, paths: Sequence[str] = ()) -> Annotated[Answer, Written]:
    """Rename a tag, and those nested below it, in text and properties.

    Without paths it is always a proposal.

    Args:
        context: The vault, as the client sees it.
        old: The tag as it is, with ``#`` or without.
        new: The new name, with ``#`` or without.
        paths: Paths of the notes to change; empty for all that have the tag.

    Raises:
        NotFound: No note has the tag.
        BadInput: The new name can't be a tag's, or nothing would change.
    """
    context.freshen(meaning=False)
    return answers.several(context, [RenameTag(old=old, new=new, paths=tuple(paths))])


def notes_with(context: Context, tag: str) -> list[NotePath]:
    """Give the notes that have a tag, or one nested below it, and that the client sees; by path."""
    context.freshen(meaning=False)
    return [path for path in context.index.graph.tagged(tag) if context.sees(path)]

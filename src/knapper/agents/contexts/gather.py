"""Find the notes that go with the open one, and those that the person added."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from knapper.agents.contexts import links
from knapper.agents.contexts.records import ContextNote, NoteSelectionMetadata, Source
from knapper.agents.scopes import ContextScopeConfig
from knapper.errors import KnapError
from knapper.index.catalog import ListingQuery
from knapper.index.filters import Filter
from knapper.tools import answers
from knapper.tools.context import Context
from knapper.vault import paths, pending, walk
from knapper.vault.parser import Note
from knapper.vault.paths import NotePath

MOST: Final = 2_000
"""Notes of one folder that are taken in."""
_MOST_BYTES: Final = 8
"""Bytes of text that one token stands for at most: four characters, of two bytes each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Say which notes a context is made of."""

    current: str = ""
    """The open note; empty for none."""
    scope: ContextScopeConfig = field(default_factory=ContextScopeConfig)
    added: Sequence[str] = ()
    """Notes that the person added by hand."""
    chosen: Sequence[NoteSelectionMetadata] = ()
    """Notes that were chosen by exploring; then the scope's links and folder aren't followed."""
    explored: bool = False


def select(context: Context, wanted: Wanted) -> list[NoteSelectionMetadata]:
    """Tell which notes a context is made of, and why each; the open one first, then the nearest, then by path.

    Args:
        context: The vault, as the client sees it; its index is brought up to date where that is quick.
        wanted: Which notes.

    Raises:
        NotFound: The open note, or one that was added, isn't there.
    """
    _ = context.freshen(meaning=False)
    found: dict[NotePath, NoteSelectionMetadata] = {}
    current = context.view.path(wanted.current) if wanted.current else None
    if current is not None:
        _add(found, NoteSelectionMetadata(path=current), "current")
        if not wanted.explored:
            _scope(context, found, current, wanted.scope)
    for one in wanted.chosen:
        _add(found, one, "semantic")
    for raw in wanted.added:
        _add(found, NoteSelectionMetadata(path=context.view.path(raw)), "manual")
    return list(found.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """Hold what was read of the notes that were chosen."""

    notes: list[ContextNote]
    """In the order in which they were chosen."""
    problems: list[str]
    """What can't be read, and why."""
    unread: list[NoteSelectionMetadata]
    """What there is no room for: all of it ranks after what was read."""


def hear(context: Context, path: NotePath) -> tuple[Note, bool]:
    """Read a note for a model, and tell whether others wrote it; whoever reads it only proposes from then on, if so."""
    note = context.view.read(path)
    return note, answers.mark_if_foreign(context, note)


def look(context: Context, path: NotePath) -> tuple[Note, bool]:
    """Read a note that no model gets, and tell whether others wrote it; its text is parsed only where edits wait."""
    note = context.view.read_head(path)
    if pending.may_have_pending(note.raw, note.outline):
        note = context.view.read(path)
    return note, answers.is_foreign_note(context, note)


Reader = Callable[[Context, NotePath], tuple[Note, bool]]


def read(context: Context, chosen: Sequence[NoteSelectionMetadata], limit: int, *, reader: Reader = hear) -> Read:
    """Read chosen notes, the most needed first, until there is surely no room for more.

    Args:
        context: The vault, as the agent sees it.
        chosen: Which notes.
        limit: Tokens that there is room for.
        reader: `hear`, or `look` where no model is given them.
    """
    found: dict[NotePath, ContextNote] = {}
    problems: list[str] = []
    room = limit * _MOST_BYTES
    ranked = sorted(chosen, key=lambda one: one.rank)
    for number, one in enumerate(ranked):
        if room < 0:
            return Read(notes=_in_order(found, chosen), problems=problems, unread=ranked[number:])
        try:
            note, is_foreign = reader(context, one.path)
        except KnapError as error:
            problems.append(error.message)
            continue
        if walk.kind_of(note.path) == "attachment" and b"\0" in note.raw:
            problems.append(f"{note.path} isn't text")
            continue
        found[one.path] = ContextNote(note=note, why=one, foreign=is_foreign)
        room -= len(note.raw)
    return Read(notes=_in_order(found, chosen), problems=problems, unread=[])


def linked(context: Context, current: str) -> frozenset[NotePath]:
    """Give the open note and the notes that it links with, out and back."""
    _ = context.freshen(meaning=False)
    path = context.view.path(current)
    return frozenset({path, *links.spread(context, path, 1)})


def beside(context: Context, current: NotePath, walls: Sequence[str] = ()) -> list[NotePath]:
    """Give the notes of the same folder, by path, without the note itself."""
    where = context.restrict(Filter(directly_in=(paths.parent_folder(current),), kinds=("note",)))
    found = context.index.catalog.find(ListingQuery(where=where, limit=MOST))
    return [entry.path for entry in found.entries if entry.path != current and not links.is_walled(entry.path, walls)]


def _in_order(found: Mapping[NotePath, ContextNote], chosen: Sequence[NoteSelectionMetadata]) -> list[ContextNote]:
    return [found[one.path] for one in chosen if one.path in found]


def _scope(
    context: Context,
    found: dict[NotePath, NoteSelectionMetadata],
    current: NotePath,
    scope: ContextScopeConfig,
) -> None:
    for path, depth in links.spread(context, current, scope.link_depth, scope.excluded_folders).items():
        _add(found, NoteSelectionMetadata(path=path, link_depth=depth), "linked")
    if scope.include_same_folder:
        for path in beside(context, current, scope.excluded_folders):
            _add(found, NoteSelectionMetadata(path=path), "folder")


def _add(found: dict[NotePath, NoteSelectionMetadata], one: NoteSelectionMetadata, source: Source) -> None:
    """Take a note in, or what else speaks for one that is there."""
    known = found.get(one.path)
    if known is None:
        found[one.path] = replace(one, sources=(source,))
        return
    found[one.path] = NoteSelectionMetadata(
        path=known.path,
        sources=known.sources if source in known.sources else (*known.sources, source),
        reason=known.reason or one.reason,
        semantic_score=known.semantic_score if one.semantic_score is None else one.semantic_score,
        keyword_match=known.keyword_match or one.keyword_match,
        link_depth=known.link_depth if one.link_depth is None else one.link_depth,
        fetched=known.fetched or one.fetched,
    )

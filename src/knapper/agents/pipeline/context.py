"""Task requests, and the context of notes for each."""

import re
import uuid
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from knapper.agents import prompting
from knapper.agents.pipeline import records, store
from knapper.agents.pipeline.records import (
    ContextNote,
    NoteSelectionMetadata,
    ScoutResult,
    SelectionSource,
    TaskLimits,
    check_range,
)
from knapper.agents.pipeline.scopes import ContextScopeConfig, EditRules
from knapper.agents.pipeline.store import AgentToggles, Preset
from knapper.errors import BadInput, KnapError
from knapper.index.catalog import ListingQuery
from knapper.index.documents import Filter
from knapper.index.graph import FileIds
from knapper.jsontypes import JSONValue
from knapper.system.arrays import np
from knapper.tools import answers
from knapper.tools.context import Context, missing_folders
from knapper.vault import parser, paths, pending, walk
from knapper.vault.parser import Note
from knapper.vault.paths import NotePath


def follow_links(context: Context, start: NotePath, depth: int, walls: Sequence[str] = ()) -> dict[NotePath, int]:
    """Return the notes that links lead to from a note, with their distance in links; the nearest first, then by path.

    Only notes count. Notes that are hidden from the client or lie below an excluded folder are neither returned nor
    followed; the start itself is followed wherever it lies.

    Args:
        context: The vault, as the client sees it.
        start: The note to start from, which isn't among the results.
        depth: Maximum number of links.
        walls: The excluded folders.
    """
    edges = context.index.graph.link_ends.get()
    paths_by_id = dict(edges.notes)
    start_id = next((i for i, path in edges.notes if path == start), None)
    if start_id is None or depth < 1:
        return {}
    passes = _FolderFilter(walls)
    depths: dict[int, int] = {start_id: 0}
    excluded: set[int] = set()
    frontier = [start_id]
    for steps in range(1, depth + 1):
        nodes = np.array(frontier, np.int64)
        outgoing: FileIds = edges.targets[np.isin(edges.sources, nodes)]
        incoming: FileIds = edges.sources[np.isin(edges.targets, nodes)]
        linked: list[int] = np.unique(np.concatenate([outgoing, incoming])).tolist()
        neighbors = [i for i in linked if i not in depths and i not in excluded and i in paths_by_id]
        frontier = [i for i in neighbors if passes(paths_by_id[i]) and context.sees(paths_by_id[i])]
        excluded.update(set(neighbors) - set(frontier))
        depths.update((i, steps) for i in frontier)
    ranked = sorted((steps, paths_by_id[i]) for i, steps in depths.items() if steps)
    return {path: steps for steps, path in ranked}


class _FolderFilter:
    """A test for paths outside of some folders; upper and lower case don't matter."""

    def __init__(self, folders: Iterable[str]) -> None:
        self._below = tuple(f"{key}/" for folder in folders if (key := paths.name_key(folder).strip().strip("/")))

    def __call__(self, path: NotePath) -> bool:
        return not self._below or not paths.name_key(path).startswith(self._below)


MAX_FOLDER_NOTES: Final = 2_000
"""Maximum number of notes of one folder."""
_MAX_NEAR_NOTES: Final = 500
"""Maximum number of notes near in meaning that are looked at, excluded ones among them."""
_MAX_TOKEN_BYTES: Final = 8
"""Bytes of text that one token stands for at most: four characters, of two bytes each."""


def select_notes(
    context: Context, request: "TaskRequest", scout: ScoutResult | None = None
) -> list[NoteSelectionMetadata]:
    """Return the notes of a context with the reasons for each; the open one first, then the nearest, then by path.

    Args:
        context: The vault, as the client sees it; its index is refreshed where that is quick.
        request: The notes to select.
        scout: The scout's result, in place of what the open note leads to; None where it didn't run.

    Raises:
        NotFound: The open note, or one that was added, doesn't exist.
    """
    _ = context.freshen(meaning=request.semantic_notes > 0 and scout is None)
    selection: dict[NotePath, NoteSelectionMetadata] = {}
    current = context.view.locate(request.current) if request.current else None
    if current is not None:
        _add_note(selection, NoteSelectionMetadata(path=current), "current")
    if current is not None and scout is None:
        scope = request.scope
        for path, depth in follow_links(context, current, scope.link_depth, scope.excluded_folders).items():
            _add_note(selection, NoteSelectionMetadata(path=path, link_depth=depth), "linked")
        if scope.include_same_folder:
            for path in list_folder_notes(context, current, scope.excluded_folders):
                _add_note(selection, NoteSelectionMetadata(path=path), "folder")
        if request.semantic_notes:
            passes = _FolderFilter(scope.excluded_folders)
            notes = context.restrict(Filter(kinds=("note",)))
            near = context.index.near_notes(current, notes, limit=_MAX_NEAR_NOTES)
            fitting = [one for one in near if 100 * one[1] >= request.semantic_similarity and passes(one[0])]
            for path, cosine in fitting[: request.semantic_notes]:
                score = min(float(cosine), 1.0)
                _add_note(selection, NoteSelectionMetadata(path=path, semantic_score=score), "semantic")
    for one in scout.selected_notes if scout else ():
        _add_note(selection, one, "semantic")
    for raw in request.added:
        _add_note(selection, NoteSelectionMetadata(path=context.view.locate(raw)), "manual")
    return list(selection.values())


def limit_linked(
    chosen: Sequence[NoteSelectionMetadata], limit: int
) -> tuple[list[NoteSelectionMetadata], list[NoteSelectionMetadata]]:
    """Split a selection at the limit of notes that are there for links alone.

    Args:
        chosen: The selection.
        limit: How many such notes stay: the nearest, then the first by path; 0 for all.

    Returns:
        What stays, in its order; and the linked notes that are left out, the nearest first.
    """
    linked = sorted((one for one in chosen if one.sources == ("linked",)), key=lambda one: one.rank)
    left_out = linked[limit:] if limit else []
    left_paths = {one.path for one in left_out}
    return [one for one in chosen if one.path not in left_paths], left_out


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedNotes:
    """The notes of a selection that were read."""

    notes: list[ContextNote]
    """In the order of the selection."""
    problems: list[str]
    """Messages about notes that can't be read."""
    unread: list[NoteSelectionMetadata]
    """Notes that don't fit any more; all of them rank after those that were read."""


def read_for_model(context: Context, path: NotePath) -> tuple[Note, bool]:
    """Read a note for a model, and return whether others wrote it; such a note restricts the run to proposals."""
    note = context.view.read(path)
    return note, answers.mark_if_foreign(context, note)


def read_for_person(context: Context, path: NotePath) -> tuple[Note, bool]:
    """Read a note for a person only, and return whether others wrote it; it is parsed only where edits are pending."""
    note = context.view.read_head(path)
    if note.may_have_pending:
        note = context.view.read(path)
    return note, answers.is_foreign_note(context, note)


_NONE_NEAR: Final = "no note is near in meaning by {} % (agents.semantic_similarity), or the index has no vectors yet"
NoteReader = Callable[[Context, NotePath], tuple[Note, bool]]


def read_notes(
    context: Context, chosen: Sequence[NoteSelectionMetadata], limit: int, *, reader: NoteReader = read_for_model
) -> LoadedNotes:
    """Read selected notes in the order of their rank, until no more can fit.

    Args:
        context: The vault, as the agent sees it.
        chosen: The selection.
        limit: Token limit of the context.
        reader: `read_for_model`, or `read_for_person` where no model is shown the notes.
    """
    notes: dict[NotePath, ContextNote] = {}
    problems: list[str] = []
    # An upper bound in bytes: tokens are counted only for notes that are read.
    room = limit * _MAX_TOKEN_BYTES
    unread = sorted(chosen, key=lambda one: one.rank)
    while unread and room >= 0:
        one = unread.pop(0)
        try:
            note, is_foreign = reader(context, one.path)
        except KnapError as error:
            problems.append(error.message)
            continue
        if walk.kind_of(note.path) == "attachment" and b"\0" in note.raw:
            problems.append(f"{note.path} isn't text")
            continue
        notes[one.path] = ContextNote(note=note, metadata=one, foreign=is_foreign)
        room -= len(note.raw)
    in_order = [notes[one.path] for one in chosen if one.path in notes]
    return LoadedNotes(notes=in_order, problems=problems, unread=unread)


def list_linked_notes(context: Context, current: str) -> frozenset[NotePath]:
    """Return the open note and the notes that it links with in either direction."""
    _ = context.freshen(meaning=False)
    path = context.view.locate(current)
    return frozenset({path, *follow_links(context, path, 1)})


def list_folder_notes(context: Context, current: NotePath, walls: Sequence[str] = ()) -> list[NotePath]:
    """Return the notes of the same folder by path, without the note itself."""
    filters = context.restrict(Filter(directly_in=(paths.parent_folder(current),), kinds=("note",)))
    listing = context.index.catalog.find(ListingQuery(where=filters, limit=MAX_FOLDER_NOTES))
    passes = _FolderFilter(walls)
    return [entry.path for entry in listing.entries if entry.path != current and passes(entry.path)]


def _add_note(
    selection: dict[NotePath, NoteSelectionMetadata], one: NoteSelectionMetadata, source: SelectionSource
) -> None:
    """Add a note to the selection, or a further source to a note that is in it."""
    existing = selection.get(one.path)
    if existing is None:
        selection[one.path] = replace(one, sources=(source,))
        return
    selection[one.path] = NoteSelectionMetadata(
        path=existing.path,
        sources=existing.sources if source in existing.sources else (*existing.sources, source),
        reason=existing.reason or one.reason,
        semantic_score=existing.semantic_score if one.semantic_score is None else one.semantic_score,
        keyword_match=existing.keyword_match or one.keyword_match,
        link_depth=existing.link_depth if one.link_depth is None else one.link_depth,
        fetched=existing.fetched or one.fetched,
    )


MIN_CONTEXT_TOKENS: Final = 3_000
_CHARS_PER_TOKEN: Final = 4
"""A rough average."""
_WIDE_SCRIPTS: Final = re.compile("[\u2e80-\U0010ffff]+")
"""Scripts in which each character is about one token."""
_NOTE_TRUNCATED: Final = "… (the rest of this note isn't shown: the token limit is reached)"
_LINE_TRUNCATED: Final = " … (the rest of this line isn't shown)"
_FRAME_TOKENS: Final = 100
"""Tokens that are reserved for the lines around a single note."""
_LONG_LINE_TOKENS: Final = 200
"""Tokens from which the beginning of a line is shown where the whole doesn't fit."""
_MIN_LINE_TOKENS: Final = 20
"""Tokens below which the beginning of a line isn't worth showing."""
_BROKEN_ESCAPE: Final = re.compile(r"(?<!\\)((?:\\\\)*)\\(?:u[0-9a-f]{0,3})?$")
"""The rest of an escape sequence that a cut has split."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnifiedContext:
    """The notes as a model is shown them."""

    text: str = field(repr=False)
    """The notes' blocks; empty where there are none."""
    notes: tuple[ContextNote, ...]
    """The notes in the text, as they were read."""
    removed: tuple[NoteSelectionMetadata, ...]
    """Notes that a limit left out: linked ones first, then those that the token limit removed, in this order."""
    cut: NotePath | None
    """The note that is shown in part."""
    whole_lines: int = 0
    """How many lines of that note are shown whole."""
    tokens: int
    notices: tuple[str, ...]
    """Notices for the person: notes that were left out or can't be read."""
    sizes: Mapping[NotePath, int] = field(default_factory=dict[NotePath, int])
    """Tokens of each note that was read, whether or not it is in the text."""

    @property
    def paths(self) -> frozenset[NotePath]:
        """Return the paths of the notes in the text."""
        return frozenset(one.note.path for one in self.notes)

    def as_dict(self) -> dict[str, JSONValue]:
        """Return it in the shape that every surface shows, without the notes' text."""
        return {
            "notes": [{**one.metadata.as_dict(), "tokens": self.sizes.get(one.note.path, 0)} for one in self.notes],
            "removed": [
                {"path": one.path, "source": one.source, "why": one.why(), "tokens": self.sizes.get(one.path)}
                for one in self.removed
            ],
            "tokens": self.tokens,
            "notices": [*self.notices],
        }


def build_context(
    notes_read: Sequence[ContextNote],
    *,
    limit: int,
    mark: str,
    problems: Sequence[str] = (),
    unread: Sequence[NoteSelectionMetadata] = (),
    unlinked: Sequence[NoteSelectionMetadata] = (),
) -> UnifiedContext:
    """Write notes as one text.

    Where it is too long, notes are removed: first those added by hand, then those from the scout, from the folder and
    from links, and the open one last; within a source those with the lowest rank first. A single note that is too long
    is cut.

    Args:
        notes_read: The notes, in order.
        limit: Token limit, at least 3,000.
        mark: The mark of the turn's blocks.
        problems: Messages about notes that couldn't be read.
        unread: Notes that weren't read, since they don't fit; they rank after all others.
        unlinked: Linked notes that were left out beyond their own limit.

    Raises:
        BadInput: The limit is too low.
    """
    check_limit(limit)
    blocks = {
        one.note.path: _note_block(one, mark, number_lines(parser.decode_text(one.note.raw))) for one in notes_read
    }
    sizes = {path: estimate_tokens(text) for path, text in blocks.items()}
    total, dropped = sum(sizes.values()), dict[NotePath, NoteSelectionMetadata]()
    for one in sorted(notes_read, key=lambda one: one.metadata.rank, reverse=True):
        if total <= limit or len(dropped) == len(notes_read) - 1:
            break
        dropped[one.note.path] = one.metadata
        total -= sizes[one.note.path]
    remaining = [one for one in notes_read if one.note.path not in dropped]
    removed = [*sorted(unread, key=lambda one: one.rank, reverse=True), *dropped.values()]
    truncated, whole_lines, notices = None, 0, _removal_notices(removed, f"the token limit of {limit:,}")
    notices += _removal_notices(unlinked, "the limit of linked notes (agents.linked_notes)")
    if remaining and total > limit:
        truncated = remaining[0].note.path
        beginning = _fit_beginning(number_lines(parser.decode_text(remaining[0].note.raw)), limit - _FRAME_TOKENS)
        blocks[truncated], whole_lines = _note_block(remaining[0], mark, beginning.lines), len(beginning.whole)
        notices.append(beginning.notice(truncated, limit))
        sizes[truncated] = estimate_tokens(blocks[truncated])
    text = "\n\n".join(blocks[one.note.path] for one in remaining)
    return UnifiedContext(
        text=text,
        notes=tuple(remaining),
        removed=(*unlinked, *removed),
        cut=truncated,
        whole_lines=whole_lines,
        tokens=estimate_tokens(text),
        notices=(*problems, *notices),
        sizes=sizes,
    )


def check_limit(limit: int) -> None:
    """Check that a token limit isn't too low.

    Raises:
        BadInput: It is too low.
    """
    if limit < MIN_CONTEXT_TOKENS:
        raise BadInput(f"the token limit is {limit:,}", hint=f"give {MIN_CONTEXT_TOKENS:,} or more", code="token_limit")


def estimate_tokens(text: str) -> int:
    """Return an estimate of a text's tokens: a quarter of its characters, and more for scripts that need more."""
    wide = 0 if text.isascii() else sum(map(len, _WIDE_SCRIPTS.findall(text)))
    return (len(text) - wide + _CHARS_PER_TOKEN - 1) // _CHARS_PER_TOKEN + wide


def number_lines(text: str) -> list[str]:
    """Return the lines with their numbers in the file: ``12: text``; they are escaped as in a JSON string."""
    rows = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if rows and not rows[-1]:
        rows.pop()
    return [f"{number}: {prompting.escape(row)[1:-1]}" for number, row in enumerate(rows, 1)]


def _note_block(one: ContextNote, mark: str, lines: Sequence[str]) -> str:
    head = f"note: {prompting.escape(str(one.note.path))}\nwhy: {one.metadata.why()}"
    if one.metadata.reason:
        head += f"\nchosen because: {prompting.escape(one.metadata.reason)}"
    if one.foreign:
        head += "\nothers wrote this"
    for block in pending.find_pending(one.note.raw, one.note.outline):
        last = block.line + one.note.raw.count(b"\n", block.start, block.tag_stop)
        head += (
            f"\nlines {block.line}-{last}: an edit that waits for the person's word "
            f"({block.kind or 'damaged'}, id {prompting.escape(block.id)})"
        )
    return prompting.enclose("note", head + "\n\n" + "\n".join(lines), mark)


@dataclass(frozen=True, slots=True, kw_only=True)
class _NoteBeginning:
    """The lines of a too long note that fit."""

    whole: Sequence[str] = ()
    part: str = ""
    """The beginning of the next line; empty where none of it is shown."""

    @property
    def lines(self) -> list[str]:
        return [*self.whole, *filter(None, [self.part]), _NOTE_TRUNCATED]

    def notice(self, path: NotePath, limit: int) -> str:
        within = "within " if self.part else ""
        start = f"{within}line {len(self.whole) + 1}"
        return f"the token limit of {limit:,} leaves out the end of {path}, from {start} on"


def _fit_beginning(lines: Sequence[str], tokens_left: int) -> _NoteBeginning:
    whole: list[str] = []
    for line in lines:
        size = estimate_tokens(line) + 1
        if size > tokens_left:
            part = _truncate_line(line, tokens_left) if size > _LONG_LINE_TOKENS else ""
            return _NoteBeginning(whole=whole, part=part)
        tokens_left -= size
        whole.append(line)
    return _NoteBeginning(whole=whole)


def _truncate_line(line: str, max_tokens: int) -> str:
    """Return a line's beginning, cut between two words where possible; empty where nothing fits."""
    max_tokens -= estimate_tokens(_LINE_TRUNCATED)
    if max_tokens < _MIN_LINE_TOKENS:
        return ""
    start = line[: bisect_right(range(len(line)), max_tokens, key=lambda last: estimate_tokens(line[: last + 1]))]
    words, _, tail = start.rpartition(" ")
    return (words if len(tail) < len(start) // 4 else _BROKEN_ESCAPE.sub(r"\1", start)) + _LINE_TRUNCATED


def _removal_notices(removed: Sequence[NoteSelectionMetadata], what: str) -> list[str]:
    if not removed:
        return []
    names = ", ".join(f"{one.path} ({one.source})" for one in removed[:10])
    more = f" and {len(removed) - 10} more" if len(removed) > 10 else ""
    return [f"{what} leaves out {len(removed)} notes: {names}{more}"]


MAX_TASK_CHARS: Final = 200_000
DEFAULT_TOKEN_LIMIT: Final = 16_000
DEFAULT_LINKED_NOTES: Final = 20
DEFAULT_SEMANTIC_SIMILARITY: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRequest:
    """A request for one task.

    Raises:
        BadInput: The task is empty or too long, or a number is out of its range.
    """

    task: str
    current: str = ""
    """The open note; empty for none."""
    toggles: AgentToggles = field(default_factory=AgentToggles)
    scope: ContextScopeConfig = field(default_factory=ContextScopeConfig)
    rules: EditRules = field(default_factory=EditRules)
    added: tuple[str, ...] = ()
    """Notes that the person added by hand."""
    chat_history_length: int = 10
    """Earlier messages that the agents are shown, 0 to 100."""
    token_limit: int = DEFAULT_TOKEN_LIMIT
    """Maximum number of tokens of notes, at least 3,000."""
    linked_notes: int = DEFAULT_LINKED_NOTES
    """How many notes may be there for links alone; 0 for no limit."""
    semantic_notes: int = 0
    """How many notes near the open one in meaning are there, 0 to 20."""
    semantic_similarity: int = DEFAULT_SEMANTIC_SIMILARITY
    """How near those are at least: their cosine in percent."""
    orchestrate: bool = False
    """Whether a model chooses among the agents that are switched on."""
    limits: TaskLimits = field(default_factory=TaskLimits)
    """Limits of the other agents, in place of the configured ones."""
    debug: bool = False
    run_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    session_id: str = ""
    """The session that it continues; empty for none."""

    def __post_init__(self) -> None:
        """Check the task and the ranges."""
        if not self.task.strip():
            raise BadInput("the task is empty", hint="say what is to be done")
        if len(self.task) > MAX_TASK_CHARS:
            raise BadInput(f"the task has {len(self.task):,} characters", hint=f"give at most {MAX_TASK_CHARS:,}")
        check_range("chat_history_length", self.chat_history_length, (0, 100))
        check_limit(self.token_limit)

    def settled(self) -> "TaskRequest":
        """Return the request with the scout switched on where it would have no notes: none is open, none is added."""
        alone = not self.current and not self.added and self.toggles.task and not self.toggles.scout
        return replace(self, toggles=replace(self.toggles, scout=True)) if alone else self

    def as_dict(self) -> dict[str, JSONValue]:
        """Return it in the shape in which a waiting run stores it."""
        chosen = Preset(name="-", scope=self.scope, rules=self.rules, added=self.added, toggles=self.toggles)
        return {
            **{name: getattr(self, name) for name in (*_STORED_FIELDS, *_LATER_FIELDS)},
            "chosen": chosen.as_dict(),
            "limits": self.limits.as_dict(),
        }


_STORED_FIELDS: Final = (
    "task",
    "current",
    "chat_history_length",
    "token_limit",
    "orchestrate",
    "debug",
    "run_id",
    "session_id",
)
"""The fields of a request that are stored as they are."""
_LATER_FIELDS: Final = ("linked_notes", "semantic_notes", "semantic_similarity")
"""The same; a request that an older version stored lacks them."""


def read_request(data: Mapping[str, Any]) -> TaskRequest:
    """Read a stored request.

    Raises:
        LookupError: A field is missing; a default in its place, as for the run's id, could get around its limits.
    """
    preset = store.read_preset(data["chosen"])
    return TaskRequest(
        toggles=preset.toggles,
        scope=preset.scope,
        rules=preset.rules,
        added=preset.added,
        limits=records.read_task_limits(data.get("limits", {})),  # earlier versions stored no limits
        **{name: data[name] for name in _STORED_FIELDS},
        **{name: data[name] for name in _LATER_FIELDS if name in data},
    )


def gather_context(
    context: Context,
    request: TaskRequest,
    scout: ScoutResult | None,
    *,
    mark: str,
    reader: NoteReader = read_for_model,
) -> UnifiedContext:
    """Write the notes for a request as one text; no model is involved.

    Args:
        context: The vault, as the agents see it.
        request: The notes to select, and their token limit.
        scout: The scout's result; None where it didn't run, so that the request's scope is followed.
        mark: The mark of the turn's blocks.
        reader: As for `read_notes`.

    Raises:
        NotFound: The open note, or one that was added, doesn't exist.
    """
    chosen, unlinked = limit_linked(select_notes(context, request, scout), request.linked_notes)
    loaded = read_notes(context, chosen, request.token_limit, reader=reader)
    is_asked = request.semantic_notes and request.current and scout is None
    if is_asked and not any("semantic" in one.sources for one in chosen):
        loaded.problems.append(_NONE_NEAR.format(request.semantic_similarity))
    if scout is None:
        # A folder that is hidden from the client isn't told: the owner may have excluded it. A note in it is asked for.
        own = [
            name
            for name in request.scope.excluded_folders
            if context.view.visible(NotePath(f"{name.strip().strip('/')}/x.md"))
        ]
        loaded.problems.extend(missing_folders(context, own))
    return build_context(
        loaded.notes,
        limit=request.token_limit,
        mark=mark,
        problems=loaded.problems,
        unread=loaded.unread,
        unlinked=unlinked,
    )

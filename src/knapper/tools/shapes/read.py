"""Answer types of the tools that read."""

from typing import Generic, Literal, NotRequired, TypeVar

from typing_extensions import TypedDict

from knapper.jsontypes import JSONValue
from knapper.tools.shapes.write import WriteResult, WrittenFile

RowT = TypeVar("RowT")


class Success(TypedDict):
    """Whether the call succeeded."""

    success: bool


class IndexFields(TypedDict):
    """What an answer may miss."""

    index_stale: bool
    """Whether files changed that the index doesn't have yet."""
    as_of: str
    """ISO time with zone until when all saved changes are in the answer; empty where nothing is indexed."""
    index_incomplete: bool
    """Whether the vault hasn't been read from end to end yet."""
    pending: int
    """Passages that aren't embedded yet, so that search by meaning doesn't find them."""
    notes: NotRequired[list[str]]
    """What else there is to know about the answer."""


class IndexAnswer(Success, IndexFields):
    """The part of an answer that tells what it may miss."""


class PagePosition(TypedDict):
    """The position of a page in a list."""

    total: int
    limit: int
    offset: int
    next_offset: NotRequired[int]
    """Offset of the next page; missing at the end."""


class ListPage(IndexAnswer, PagePosition):
    """One page of a list, with its position."""


class Page(Success, PagePosition, Generic[RowT]):
    """One page of a list, without what it may miss."""

    results: list[RowT]


class Nearest(TypedDict, Generic[RowT], total=False):
    """What is nearest in meaning, where nothing matches."""

    nearest: list[RowT]


class Found(Success, Nearest[RowT], Generic[RowT]):
    """What a search found, without what it may miss."""

    message: NotRequired[str]
    results: list[RowT]


class SharedHitFields(TypedDict, Generic[RowT], total=False):
    """The fields that a hit has only where there is something to tell."""

    cosine: float
    also: list[RowT]
    foreign: bool


class PathPage(ListPage):
    """Paths of files."""

    results: list[str]


class CopyLines(TypedDict):
    """The lines of a text in another note."""

    start_line: int
    end_line: int
    hash: str


class PassageCopy(CopyLines):
    """Another place of a passage that matched."""

    source: str


class NoteCopy(CopyLines):
    """Another note with the passage that matched."""

    path: str


class PassageHit(TypedDict):
    """A passage of a note that matched."""

    source: str
    """The note's path."""
    content: str
    heading: str
    """With its ``#`` signs; ``top-level`` before the first one, ``frontmatter`` for properties."""
    start_line: int
    end_line: int
    score: float
    """Relative to the best of the query."""
    cosine: NotRequired[float]
    """Nearness in meaning, comparable between queries; missing where it wasn't computed."""
    hash: str
    also: NotRequired[list[PassageCopy]]
    """Where the same text stands, too."""
    explain: NotRequired[dict[str, float]]
    matches: NotRequired[list[list[int]]]
    """Start and stop, in characters of the content, of the words that the query looks for."""
    foreign: NotRequired[bool]
    """Whether others wrote it."""


class PassageHits(IndexAnswer):
    """Passages, the best first."""

    results: list[PassageHit]
    nearest: NotRequired[list[PassageHit]]
    """Where nothing matches: what is nearest in meaning, which may have nothing to do with the query."""
    message: NotRequired[str]


class NoteHit(TypedDict):
    """A note that matched, with its best passage."""

    path: str
    title: str
    content: str
    heading: str
    start_line: int
    end_line: int
    score: float
    """Relative to the best of the query."""
    cosine: NotRequired[float]
    """Nearness in meaning, comparable between queries; missing where it wasn't computed."""
    hash: str
    also: NotRequired[list[NoteCopy]]
    """Where the same text stands, too."""
    foreign: NotRequired[bool]
    match: NotRequired[Literal["title", "heading", "content"]]
    """Where the words occur."""
    why: NotRequired[list[Literal["task", "current_note", "linked"]]]
    """What the note was found by."""


class NoteHits(IndexAnswer):
    """Notes that matched, the best first."""

    results: list[NoteHit]
    nearest: NotRequired[list[NoteHit]]
    """Where nothing matches: what is nearest in meaning, which may have nothing to do with the query."""
    message: NotRequired[str]


class TagRow(TypedDict):
    """A tag and the number of notes that have it."""

    tag: str
    notes: int


class TagPage(ListPage):
    """Tags, the most used first."""

    results: list[TagRow]


class PendingEdit(TypedDict):
    """An edit in a note that waits for a person's decision."""

    id: str
    type: str | None
    """None where it can't be read."""
    line: int
    is_whole: bool


class NoteProblem(TypedDict):
    """A part of a note that can't be parsed as it was meant."""

    code: str
    message: str
    line: int


class EmbeddedText(TypedDict, total=False):
    """The text of an embed, or why there is none."""

    start_line: int
    end_line: int
    content: str
    truncated: bool
    foreign: bool
    error: str
    code: str


class EmbedPlace(TypedDict):
    """Where an embed stands, and to what it leads."""

    embed: str
    """As written."""
    line: int
    """Its line in the note."""
    path: NotRequired[str]


class EmbedContent(EmbedPlace, EmbeddedText):
    """The content of an embed, or why there is none."""


class NoteText(TypedDict):
    """A note's text, or a part of it."""

    success: bool
    path: str
    content: str
    hash: str
    """Of the whole file."""
    truncated: bool
    offset: int
    total_chars: int
    next_offset: NotRequired[int]
    start_line: int
    end_line: int
    pending: NotRequired[list[PendingEdit]]
    problems: NotRequired[list[NoteProblem]]
    foreign: NotRequired[bool]
    """Whether others wrote it."""
    embeds: NotRequired[list[EmbedContent]]
    """The content of the text's embeds, where it was requested."""


class LinkRow(TypedDict):
    """One link in a file."""

    path: str
    """The file."""
    line: int
    kind: str
    target: str
    """As written, without heading and block."""
    leads_to: str | None
    headings: NotRequired[list[str]]
    block: NotRequired[str]
    alias: NotRequired[str]
    property: NotRequired[str]
    also_fits: NotRequired[list[str]]
    """Other files that the name fits as well."""
    self_link: NotRequired[bool]
    """Whether the note links to itself."""


class BacklinkPage(ListPage):
    """The files that link to a note."""

    results: list[str]
    exists: bool
    """Whether there is a note of that name."""
    notes_of_that_name: list[str]
    links: list[LinkRow]
    """Those of the listed files."""


class OutlinkPage(ListPage):
    """The links of a note."""

    path: str
    results: list[str]
    links: list[LinkRow]


class BrokenLinkPage(ListPage):
    """Links that lead nowhere."""

    results: list[LinkRow]


class Neighbor(TypedDict):
    """A note that is linked with the requested one."""

    path: str
    title: str
    direction: Literal["in", "out", "both"]
    """Seen from the requested note."""


class NeighborPage(ListPage):
    """The notes that are linked with one."""

    path: str
    results: list[Neighbor]
    unresolved: list[str]
    """Names that it links to and that no note has."""


class ReachableNote(TypedDict):
    """A note that links reach in some steps."""

    path: str
    title: str
    depth: int
    via: str
    """The note one step before, on a shortest path."""


class LinkLine(TypedDict):
    """A line of a note with a link."""

    line: int
    text: str
    """The line, without the space around it."""
    is_embed: bool


class LinkingNote(TypedDict):
    """A note that links to another one, and the lines that do."""

    path: str
    title: str
    links: list[LinkLine]
    foreign: NotRequired[bool]
    """Whether others wrote it."""


class LinkingNotePage(ListPage):
    """The notes that link to one, each with the lines that do."""

    path: str
    results: list[LinkingNote]


class ReachableNotePage(ListPage):
    """The notes that links reach, the nearest first."""

    path: str
    depth: int
    results: list[ReachableNote]


class GraphNode(TypedDict):
    """A note of a graph."""

    path: str
    title: str
    depth: int
    """Steps from the note in the middle; 1 where there is none."""
    tags: list[str]
    foreign: NotRequired[bool]
    """Whether others wrote it; then its tags aren't told."""


class GraphEdge(TypedDict):
    """A tie between two notes of a graph."""

    source: int
    """The place of its beginning among the nodes, from 0."""
    target: int
    kind: Literal["link", "meaning"]
    cosine: NotRequired[float]
    """Nearness in meaning."""


class NoteSurroundings(IndexAnswer):
    """The notes around one, and the ties between them."""

    path: str
    depth: int
    by: Literal["links", "meaning", "both"]
    limit: int
    is_complete: bool
    """Whether the limit left none out."""
    nodes: list[GraphNode]
    edges: list[GraphEdge]


class NoteGraph(IndexAnswer):
    """Some notes, and the ties between them."""

    by: Literal["links", "meaning", "both"]
    is_complete: bool
    """Whether the meaning of all was compared."""
    missing: int
    """How many paths no visible note has."""
    nodes: list[GraphNode]
    edges: list[GraphEdge]


class FoundNotePage(ListPage):
    """Notes with the requested fields."""

    results: list[dict[str, object]]
    """Each with ``path`` and the fields; what a note doesn't have is null."""
    nearest: NotRequired[list[dict[str, object]]]
    """Where no note matches the query: those nearest in meaning, which may have nothing to do with it."""


class NotePreview(TypedDict):
    """A note with its beginning."""

    path: str
    title: str
    modified: str
    preview: NotRequired[str]
    foreign: NotRequired[bool]
    """Whether others wrote it; lists then don't show its text."""


class NotePreviewPage(ListPage):
    """Notes with their beginnings."""

    results: list[NotePreview]


class NamedNote(TypedDict):
    """A note's names and its own description."""

    path: str
    title: str
    aliases: NotRequired[list[str]]
    description: NotRequired[str]
    foreign: NotRequired[bool]


class NamedNotePage(ListPage):
    """Notes by name."""

    results: list[NamedNote]


class FolderRow(TypedDict):
    """A folder and the number of notes in it and below it."""

    path: str
    notes: int


class FolderHead(TypedDict):
    """Of which folder and tag notes are listed."""

    folder: str
    tag: NotRequired[str]


class FolderPage(ListPage, FolderHead):
    """The content of a folder, or the notes with a tag."""

    folders: list[FolderRow]
    """Right below it."""
    results: list[NamedNote]


class HeadingRow(TypedDict):
    """A heading with the lines of its section."""

    heading: str
    """With its ``#`` signs."""
    line: int
    end_line: int


class TaskRow(TypedDict):
    """A task."""

    state: str
    """Between the brackets; a space is open."""
    text: str
    line: int


class TaskRows(TypedDict):
    """A note's tasks: their number, and the first of them."""

    total: int
    open: int
    results: list[TaskRow]


class OutgoingLinkRow(TypedDict):
    """One of a note's links and where it leads."""

    target: str
    line: int
    leads_to: str | None


class OutgoingLinks(TypedDict):
    """A note's links: their number, and the first of them."""

    total: int
    results: list[OutgoingLinkRow]


class IncomingLinks(TypedDict):
    """The files that link to a note: their number, and the first of them."""

    total: int
    results: list[str]


class NoteIndexFields(TypedDict):
    """What the index knows of a note; one that isn't in it yet has no dates."""

    created: NotRequired[str]
    modified: NotRequired[str]
    aliases: list[str]


class NoteLinks(TypedDict):
    """The links of a note in both directions."""

    links_out: OutgoingLinks
    links_in: IncomingLinks


class NoteInfo(IndexAnswer):
    """Everything about a note except its text."""

    path: str
    title: str
    kind: str
    hash: str
    size: int
    """In bytes."""
    lines: int
    created: NotRequired[str]
    modified: NotRequired[str]
    aliases: list[str]
    tags: list[str]
    properties: dict[str, object]
    outline: list[HeadingRow]
    headings: int
    """How many there are; the outline shows the first."""
    tasks: TaskRows
    links_out: OutgoingLinks
    links_in: IncomingLinks
    waiting_edits: NotRequired[list[PendingEdit]]
    problems: NotRequired[list[NoteProblem]]
    foreign: NotRequired[bool]


class NoteProperties(TypedDict):
    """A note's properties."""

    success: bool
    path: str
    hash: str
    properties: dict[str, JSONValue]


class SkippedFileRow(TypedDict):
    """A file that the index holds only in part, or not at all."""

    path: str
    code: str
    problem: str
    line: int


class VaultStatus(TypedDict):
    """The state of a vault's index."""

    success: bool
    vault: str
    notes: int
    files: int
    chunks: int
    embedded: int
    pending: int
    problems: int
    skipped: list[SkippedFileRow]
    model: str
    replaced_model: str
    """The model whose vectors those of this one are replacing; empty for none."""
    size_bytes: int
    """Of the index; 0 for clients that may not see every file."""
    index_incomplete: bool
    stale: int
    """Changed files that aren't in the index yet, of those that could be checked."""
    unchecked: bool
    """Whether the time was too short to check every file for changes."""
    indexing: bool
    """Whether the index is being written right now."""
    embedding: bool
    """Whether vectors are being computed right now."""
    built: str
    watch_failed: NotRequired[str]
    """Since when a server or `knap watch` fails to follow the vault, ISO; absent where none does."""
    remarks: NotRequired[list[str]]
    """What to do about what the index lacks."""


class Today(TypedDict):
    """The current date and time."""

    success: bool
    date: str
    """``YYYY-MM-DD``."""
    time: str
    """``HH:MM``, local."""
    weekday: str
    zone: str
    """The offset from universal time, such as ``+02:00``."""


class DailyNote(TypedDict):
    """A daily note as read_file returns it, or the result of creating it."""

    success: bool
    date: str
    path: str
    created: bool
    hash: NotRequired[str | None]
    content: NotRequired[str]
    truncated: NotRequired[bool]
    offset: NotRequired[int]
    next_offset: NotRequired[int]
    total_chars: NotRequired[int]
    start_line: NotRequired[int]
    end_line: NotRequired[int]
    pending: NotRequired[list[PendingEdit]]
    problems: NotRequired[list[NoteProblem]]
    foreign: NotRequired[bool]
    status: NotRequired[Literal["applied", "proposed", "refused", "planned"]]
    message: NotRequired[str]
    change_id: NotRequired[str]
    proposal_id: NotRequired[str]
    review_command: NotRequired[str]
    review_url: NotRequired[str]
    reason: NotRequired[str]
    files: NotRequired[list[WrittenFile]]
    notes: NotRequired[list[str]]


class LogResult(WriteResult):
    """The result of logging an entry."""

    links: list[str]
    """Notes that the entry links to, sorted."""


class PreferenceRow(TypedDict):
    """One preference."""

    line_number: int
    """Number of the preference, from 1; remove_preference takes it."""
    preference: str
    line: int
    """Its line in the file."""


class PreferenceList(TypedDict):
    """The saved preferences."""

    success: bool
    results: list[PreferenceRow]
    total: int
    path: str
    message: NotRequired[str]
    hash: NotRequired[str]
    foreign: NotRequired[bool]


class PreferenceResult(WriteResult):
    """The result of saving or removing a preference."""

    preference: str
    line_number: NotRequired[int]

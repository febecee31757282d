"""Read notes and allowed files for scripts, parse the result of a script, and check its citations."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from knapper.errors import BadInput, CallerError, KnapError, NotFound
from knapper.index.documents import Filter, PropertyTest
from knapper.jsontypes import JSONValue, Record, object_or_empty
from knapper.tools import answers
from knapper.tools.context import Context
from knapper.vault import files, parser, paths, walk
from knapper.vault.parser import Note

_NOTE_SUFFIX: Final = ".md"


def search_notes(
    context: Context, query: str, limit: int, path_filter: str, type_filter: str
) -> Iterator[tuple[Note, float]]:
    """Search one vault; yield each note once with its score, best first, and read it only then.

    Raises:
        BadInput: The query holds no word.
    """
    if not query.strip():
        raise BadInput("the query is empty", hint="give at least one word")
    folder = path_filter.strip().rstrip("*").strip("/")
    note_filter = Filter(
        folders=(folder,) if folder and not folder.endswith(_NOTE_SUFFIX) else (),
        paths=(path_filter,) if path_filter.endswith(_NOTE_SUFFIX) else (),
        properties=(PropertyTest(name="type", op="equals", value=type_filter),) if type_filter else (),
    )
    _ = context.freshen()
    from knapper.index.search import SearchRequest  # noqa: PLC0415 - 0.1 s that a script that only reads needn't wait for

    question = SearchRequest(text=query, mode="hybrid", limit=limit, per_note=1, where=context.restrict(note_filter))
    for hit in context.index.search(question).hits:
        hit_note = read_note(context, hit.row.note)
        # The note may be gone since it was indexed.
        if hit_note is not None:
            yield hit_note, round(hit.score, 4)


def read_note(context: Context, raw: str) -> Note | None:
    """Read a note, also by its path without extension; None where the client sees none.

    Raises:
        BadInput: It isn't a valid path, or the file isn't text.
        RefusedError: It leads outside the vault.
    """
    for path in (raw,) if paths.suffix(raw) else (raw, f"{raw}{_NOTE_SUFFIX}"):
        try:
            head = context.view.read_head(path)
        except NotFound:
            continue
        if walk.kind_of(head.path) == "attachment" and b"\0" in head.raw:
            raise BadInput(f"{head.path} isn't text", code="not_text")
        _ = answers.mark_if_foreign(context, head)
        return head
    return None


def read_named_note(context: Context, raw: str) -> Note | None:
    """Read a note by its path, or by a name as in Obsidian; None where the client sees none of that name.

    Raises:
        Ambiguous: Several notes have the name.
        KnapError: As for `read_note`.
    """
    try:
        return read_note(context, context.view.locate(raw))
    except NotFound:
        return None


def note_text(note: Note | None) -> str:
    """Return a note's whole text; empty where there is none."""
    return parser.decode_text(note.raw) if note else ""


def note_properties(note: Note | None) -> dict[str, JSONValue]:
    """Return a note's properties; empty where there is none."""
    block = note.outline.frontmatter if note else None
    return dict(block.values) if block else {}


def list_paths(context: Context, directory: str, *, recursive: bool) -> list[str]:
    """Return the notes of a folder and its subfolders, these with a trailing slash; or all notes below it.

    Raises:
        BadInput: It isn't a valid path.
        RefusedError: It leads outside the vault.
    """
    trimmed = directory.strip().strip("/")
    folder = "" if trimmed in {"", "."} else f"{context.view.parse(trimmed)}/"
    paths_below = [str(file.path) for file in context.view.list_files() if walk.kind_of(file.path) == "note"]
    length = len(folder)
    paths_below = [path for path in paths_below if paths.name_key(path[:length]) == paths.name_key(folder)]
    if recursive:
        return paths_below
    direct_paths = [path for path in paths_below if "/" not in path[length:]]
    folders = dict.fromkeys(
        f"{path[:length]}{path[length:].split('/')[0]}/" for path in paths_below if "/" in path[length:]
    )
    return [*folders, *direct_paths]


def make_wikilink(context: Context, raw: str) -> str:
    """Return a wikilink to a note, which needn't exist."""
    try:
        path = context.view.path(raw)
    except CallerError:
        path = context.view.parse(raw)
    return f"[[{path.removesuffix(_NOTE_SUFFIX)}]]"


_MAX_FILE_BYTES: Final = 8_000_000


def read_allowed_file(roots: tuple[Path, ...], raw: str) -> str:
    """Read a text file below one of some folders; links out of them aren't followed.

    Args:
        roots: The folders, without links in their paths.
        raw: The path, as the script wrote it.

    Raises:
        KnapError: The error of the last folder that was tried.
    """
    failure: KnapError = NotFound("no folder may be read by scripts", hint="the owner can allow one")
    for root in roots:
        try:
            place = files.resolve_path(root, paths.parse(raw, root=root))
            content = files.read_bytes(place.file, shown_as=place.target, max_bytes=_MAX_FILE_BYTES)
        except KnapError as error:
            # Otherwise the error would tell where the folders lie.
            failure = paths.unknown_place_error() if paths.is_absolute(raw) else error
            continue
        if b"\0" in content:
            raise BadInput(f"{place.path} isn't text", code="not_text")
        return parser.decode_text(content)
    raise failure


MAX_CITATIONS: Final = 200
MAX_CONTEXT: Final = 200_000
"""Most characters of a context."""
_MAX_QUERIES: Final = 50
_MAX_QUERY: Final = 500
_MAX_SIGNALS: Final = 20
_MAX_NAME: Final = 100
_MAX_WHY: Final = 2_000
_RESULT_HINT: Final = (
    "set __result__ = {'context': str, 'citations': [{'vault', 'path'}], 'confidence': 0.0 to 1.0, 'why': str}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedCitation:
    """A citation as a script wrote it."""

    path: str
    vault: str = ""
    start: int | None = None
    """In characters of the note's text; None for its beginning, or in ``stop`` for its end."""
    stop: int | None = None
    quote: str = ""
    """The text that the script claims to be there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptReport:
    """A usable result of a script."""

    context: str
    citations: tuple[ReportedCitation, ...] = ()
    queries: tuple[str, ...] = ()
    signals: Mapping[str, float] = field(default_factory=dict[str, float])
    """The script's own measures."""
    confidence: float | None = None
    """From 0 to 1; None where the script doesn't say."""
    why: str = ""
    remarks: tuple[str, ...] = ()
    """What had to be corrected or left out."""


def parse_result(result: JSONValue) -> ScriptReport:
    """Parse a script's result; invalid parts other than the context are left out, with a remark.

    Raises:
        BadInput: It isn't a dictionary, or its context isn't a text.
    """
    if not isinstance(result, dict):
        problem = "is missing" if result is None else f"is a {type(result).__name__}, not a dictionary"
        raise BadInput(f"__result__ {problem}", hint=_RESULT_HINT, code="bad_result")
    context = result.get("context")
    if not isinstance(context, str):
        raise BadInput("__result__ has no text 'context'", hint=_RESULT_HINT, code="bad_result")
    remarks: list[str] = []
    if len(context) > MAX_CONTEXT:
        remarks.append(f"the context was cut to {MAX_CONTEXT:,} of {len(context):,} characters")
    citations = _parse_citations(result.get("citations"), remarks)
    listed = result.get("queries")
    queries = [one[:_MAX_QUERY] for one in listed if isinstance(one, str)] if isinstance(listed, list) else []
    if listed is not None and (not isinstance(listed, list) or len(queries) < len(listed)):
        remarks.append("'queries' isn't a list of texts; what isn't one was left out")
    signals = result.get("signals")
    if signals is not None and not isinstance(signals, dict):
        remarks.append("'signals' isn't a dictionary, and was left out")
    numbers = [(name[:_MAX_NAME], _parse_number(number)) for name, number in object_or_empty(signals).items()]
    confidence = _parse_confidence(result.get("confidence"), remarks)
    why = result.get("why")
    if why is not None and not isinstance(why, str):
        remarks.append("'why' isn't a text, and was left out")
    return ScriptReport(
        context=context[:MAX_CONTEXT],
        citations=citations,
        queries=tuple(queries[:_MAX_QUERIES]),
        signals=dict([(name, number) for name, number in numbers if number is not None][:_MAX_SIGNALS]),
        confidence=confidence,
        why=why[:_MAX_WHY] if isinstance(why, str) else "",
        remarks=tuple(remarks),
    )


def _parse_citations(value: JSONValue, remarks: list[str]) -> tuple[ReportedCitation, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        remarks.append("'citations' isn't a list, and was left out")
        return ()
    if len(value) > MAX_CITATIONS:
        remarks.append(f"the first {MAX_CITATIONS} of {len(value):,} citations are checked")
    parsed = [_parse_citation(entry) for entry in value[:MAX_CITATIONS]]
    pathless = sum(entry is None for entry in parsed)
    if pathless:
        remarks.append(f"{pathless} citations name no path, and were left out")
    return tuple(dict.fromkeys(entry for entry in parsed if entry is not None))


def _parse_citation(value: JSONValue) -> ReportedCitation | None:
    if isinstance(value, str):
        return ReportedCitation(path=value) if value.strip() else None
    path = value.get("path") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(path, str) or not path.strip():
        return None
    vault = value.get("vault")
    quotes = (value.get(name) for name in ("quote", "text", "snippet"))
    return ReportedCitation(
        path=path,
        vault=vault if isinstance(vault, str) else "",
        start=_parse_offset(value.get("snip_start")),
        stop=_parse_offset(value.get("snip_end")),
        quote=next((quote for quote in quotes if isinstance(quote, str) and quote.strip()), ""),
    )


def _parse_offset(value: JSONValue) -> int | None:
    if isinstance(value, float) and math.isfinite(value):
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _parse_confidence(value: JSONValue, remarks: list[str]) -> float | None:
    if value is None:
        return None
    number = _parse_number(value)
    if number is None:
        remarks.append("'confidence' isn't a number, and was left out")
        return None
    if not 0 <= number <= 1:
        remarks.append(f"'confidence' is {number:g}, and was brought to between 0 and 1")
    return min(max(number, 0.0), 1.0)


def _parse_number(value: JSONValue) -> float | None:
    """Return a number that can be counted with; one with thousands of digits can't."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


MAX_CITED_TEXT: Final = 4_000_000
"""Most characters of notes that are read to check one result's citations."""
MAX_READ_BYTES: Final = 40_000_000
"""Most bytes of files that are read for that; citations after them are dropped as too long."""
_MAX_PATH: Final = 200
_MAX_REASON: Final = 500
_TOO_LONG_MESSAGE: Final = "the citations before it are too long for it to be checked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """A verified citation, with the text at the time of the check."""

    vault: str
    path: str
    start: int
    """Half-open span, in characters of the note's text."""
    stop: int
    first_line: int
    last_line: int
    hash: str
    """Of the whole note."""
    text: str
    """The cited text."""

    def as_dict(self) -> dict[str, JSONValue]:
        """Return it as every surface shows it; without the text, which the note has."""
        return {
            "vault": self.vault,
            "path": self.path,
            "snip_start": self.start,
            "snip_end": self.stop,
            "start_line": self.first_line,
            "end_line": self.last_line,
            "hash": self.hash,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedCitation(Record):
    """A citation that failed the check, and why."""

    path: str
    code: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedCitations:
    """The citations that passed the check, each place once, and those that didn't."""

    citations: tuple[Citation, ...] = ()
    dropped: tuple[DroppedCitation, ...] = ()


def check_citations(open_vault: Callable[[str], Context], reported: Iterable[ReportedCitation]) -> CheckedCitations:
    """Check citations: the client sees the note, the span isn't blank, and the quotation is in it.

    A span is clipped to its note; a missing one is the whole note.

    Args:
        open_vault: Opens a vault of the client's by its name; empty for the default one.
        reported: The citations as the script wrote them.
    """
    citations: dict[Citation, None] = {}
    dropped: list[DroppedCitation] = []
    chars_left = MAX_CITED_TEXT
    note_cache = _NoteCache()
    for candidate in reported:
        root = ""
        try:
            context = open_vault(candidate.vault)
            root = str(context.view.root)
            citation, size = _verify_citation(context, candidate, chars_left, note_cache)
        except KnapError as error:
            # Reasons go back to the model that writes scripts, which must not learn this machine's folders.
            reason = error.message.replace(root, "the vault") if root else error.message
            dropped.append(
                DroppedCitation(path=candidate.path[:_MAX_PATH], code=error.code, reason=reason[:_MAX_REASON])
            )
            continue
        chars_left -= size
        citations[citation] = None
    return CheckedCitations(citations=tuple(citations), dropped=tuple(dropped))


def cite_span(context: Context, path: str, start: int = 0, stop: int | None = None) -> Citation:
    """Cite a note, or a span of it.

    Raises:
        KnapError: The note isn't there, or the span is blank.
    """
    return _verify_citation(context, ReportedCitation(path=path, start=start, stop=stop), MAX_CITED_TEXT, _NoteCache())[
        0
    ]


class _NoteCache:
    """The notes that citations need, each read once and within a budget."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], tuple[Note, str]] = {}
        self._left = MAX_READ_BYTES

    def find(self, context: Context, path: str) -> tuple[Note, str]:
        """Return a note and its text.

        Raises:
            KnapError: It isn't there, or the budget is used up.
        """
        key = (context.vault, path)
        if key not in self._known:
            if self._left < 0:
                raise NotFound(_TOO_LONG_MESSAGE, code="too_long")
            note = read_note(context, path)
            if note is None:
                raise NotFound("there is no such note", code="no_note")
            self._left -= len(note.raw)
            self._known[key] = (note, note_text(note))
        return self._known[key]


def _verify_citation(
    context: Context, reported: ReportedCitation, chars_left: int, notes: _NoteCache
) -> tuple[Citation, int]:
    note, text = notes.find(context, reported.path)
    if len(text) > chars_left:
        raise NotFound(_TOO_LONG_MESSAGE, code="too_long")
    start = min(max(reported.start or 0, 0), len(text))
    stop = len(text) if reported.stop is None else min(max(reported.stop, 0), len(text))
    if not text[start:stop].strip():
        raise NotFound("the cited place of the note is empty", code="empty_span")
    if reported.quote and _normalize_space(reported.quote) not in _normalize_space(text[start:stop]):
        raise NotFound("the quoted text isn't there", code="not_quoted")
    citation = Citation(
        vault=context.vault,
        path=note.path,
        start=start,
        stop=stop,
        first_line=text.count("\n", 0, start) + 1,
        last_line=text.count("\n", 0, stop - 1) + 1,
        hash=note.hash,
        text=text[start:stop],
    )
    return citation, len(text)


def _normalize_space(text: str) -> str:
    return " ".join(text.split())

"""Find the citations of an answer, check them against the files, and repair or cut those that fail."""

import asyncio
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final

from pydantic_ai.usage import RunUsage

from knapper.agents import loop, prompting
from knapper.agents.loop import StageAgent, StageSpec, TextTask
from knapper.agents.model.usage import MODEL_ERRORS
from knapper.codemode.bridge import MAIN_VAULT
from knapper.errors import KnapError, NotFound
from knapper.index import chunker
from knapper.jsontypes import JSONValue
from knapper.tools import reading
from knapper.tools.context import Context
from knapper.vault import links, parser, paths, source
from knapper.vault.parser import Note
from knapper.vault.paths import NotePath
from knapper.vault.source import Section

_CONJUNCTION: Final = r"(?:and|or|und|oder|et|ou|y|o|e|ed|en|of|&)"
_PREPOSITION_TEXT: Final = """
about at by called file from in into named note notes of on per see than to under via with
auf aus bei datei laut mit nach notiz siehe unter von zu
avec dans de du fichier par selon sur voir
con en nota por según ver
da di nel secondo su vedi
em segundo
met uit van volgens zie
"""
_PREPOSITIONS: Final = frozenset(_PREPOSITION_TEXT.split())
"""Words that need something after them, in the languages of the stop words."""
_LINE_START: Final = re.compile(r"[ \t>]*(?:(?:[-*+]|\d+[.)])[ \t]+)?(?:\**[\w ]{1,24}\**:\**[ \t]*)?")
_LINE_END: Final = re.compile(r"[ \t.,;]*")
_OPEN_BRACKET: Final = re.compile(
    r"[ \t]*\((?:(?:see(?: also)?|cf\.?|from|in|sources?:?|siehe|vgl\.?|aus|quellen?:?|voir|ver|vedi|zie)[ \t]+)?$",
    re.IGNORECASE,
)
_AFTER_CITATION: Final = re.compile(rf"(?<=[\])])[ \t]*(?:[,;]|,?[ \t]*\b{_CONJUNCTION})[ \t]*$", re.IGNORECASE)
_BEFORE_CITATION: Final = re.compile(rf"[ \t]*(?:[,;]|,?[ \t]*{_CONJUNCTION}\b)[ \t]*(?=!?\[\[)", re.IGNORECASE)
_DANGLING: Final = re.compile(rf"(?:[ \t]*[,;]|,?[ \t]+{_CONJUNCTION})[ \t]*$", re.IGNORECASE)
_CLAUSE_END: Final = re.compile(r"[ \t]*(?:[.,;:!?)\]\n]|$)")
_LAST_WORD: Final = re.compile(r"([^\W\d_]+)[ \t]*$")
_SENTENCE_START: Final = re.compile(r"(?:^|[.!?:\n]|(?:^|\n)[ \t>]*(?:[-*+]|\d+[.)]))[ \t]*$")
_MAX_CONTEXT: Final = 200
"""Characters on either side that are looked at, beside the line's beginning."""
_NEXT_WORD: Final = re.compile(rf"[ \t]+(?!{_CONJUNCTION}\b)([^\W\d_])")


def cut_citation(head: str, tail: str, shown: str) -> tuple[str, str]:
    """Join the text before and after a citation, without it.

    ``"Water it [[A]] (lines 1-2) and "`` and ``". I did."`` lose *and*. Where a sentence needs the citation, as in
    *according to …* or *… says*, its name stays as plain text.

    Args:
        head: The text before it.
        tail: The text after it.
        shown: The citation's name as plain text.

    Returns:
        The text before and after, to be joined.
    """
    line = head.rpartition("\n")[2]
    line_tail, newline, following = tail.partition("\n")
    if _LINE_START.fullmatch(line) and _LINE_END.fullmatch(line_tail):
        return head[: len(head) - len(line)], following if newline else ""
    before, after = line[-_MAX_CONTEXT:], tail[:_MAX_CONTEXT]
    bracket = _OPEN_BRACKET.search(before)
    if bracket and after.startswith(")"):
        return head[: len(head) - len(before) + bracket.start()], tail[1:]
    joined = _AFTER_CITATION.search(before) or (_DANGLING.search(before) if _CLAUSE_END.match(after) else None)
    if joined:
        return head[: len(head) - len(before) + joined.start()], tail
    following_citation = _BEFORE_CITATION.match(after)
    if following_citation:
        return head, tail[following_citation.end() :]
    # Without it the sentence would lack a part: what a preposition governs, or the subject of a verb.
    last_word, next_word = _LAST_WORD.search(before), _NEXT_WORD.match(after)
    governed = last_word and last_word[1].casefold() in _PREPOSITIONS
    subject = next_word and next_word[1].islower() and _SENTENCE_START.search(before)
    return (head + shown, tail) if governed or subject else (head.rstrip(" \t"), tail)


_QUOTES: Final = '\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb"'
_SIGN_FOLDS: Final = {**dict.fromkeys(_QUOTES, "'"), "\u2013": "-", "\u2014": "-"}
_FOLD_TABLE: Final = str.maketrans(_SIGN_FOLDS)
_MARKDOWN_MARKS: Final = re.compile(
    r"[*_`~=]+|^[^\S\n]*(?:>+|[-+]|\d+[.)])\s+|\[\[(?:[^\[\]|\n]*\|)?|\]\]", re.MULTILINE
)
_MAX_COLONS: Final = 3
"""How many colons of a target are tried as the end of a vault's name."""
_ELLIPSIS: Final = re.compile(r"(?:(?<!\s)\s+)?(?:\u2026|\.{3}|\[\.\.\.\]|\[\u2026\])\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class CitationTarget:
    """A place in a note, as a link and a range of lines name it."""

    target: str
    """A note as links name it; a note of another vault has that vault's name and a colon in front."""
    headings: tuple[str, ...] = ()
    block: str = ""
    first: int = 0
    """1-based; 0 for all lines of the heading's section, or of the whole note."""
    last: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CitedPassage:
    """A passage of whole lines of a note."""

    vault: str = ""
    """Empty for the vault of the conversation."""
    path: NotePath
    heading: str
    """As the note has it; empty where the citation names none."""
    first: int
    last: int
    start: int
    """Span in the file's bytes."""
    stop: int
    hash: str
    """Of the whole file."""
    text: str
    """The text as it reads before the edits that wait for a person's decision."""
    note: Note = field(repr=False)


class NoteNames:
    """Files by their folded names: from the index, or from one walk over the disk while it lacks notes."""

    def __init__(self) -> None:
        self._walked: dict[str, dict[str, list[NotePath]]] = {}
        """By vault."""

    def find(self, context: Context, key: str) -> list[NotePath]:
        """Return the files with a folded name that the client may see."""
        found = [path for path in context.index.graph.lookup(key) if context.sees(path)]
        if found or context.index.is_complete:
            return found
        if context.vault not in self._walked:
            walked = self._walked[context.vault] = dict[str, list[NotePath]]()
            for file in context.view.list_files():
                walked.setdefault(paths.lookup_key(paths.base_name(file.path)), []).append(file.path)
        return self._walked[context.vault].get(key, [])


def find_passage(context: Context, place: CitationTarget, names: NoteNames) -> CitedPassage:
    """Find a citation's passage in the files as they are now.

    Args:
        context: The vault.
        place: What is cited.
        names: Kept for all citations of an answer.

    Raises:
        NotFound: The note, the heading, the block or the lines don't exist (codes ``no_note``, ``no_heading``,
            ``no_block``, ``no_such_line``), or the lines aren't under the heading (``other_section``). A vault that is
            hidden from the client is reported like one that doesn't exist.
        KnapError: The note can't be read.
    """
    home, path = _resolve_note(context, place.target, names)
    note = home.view.read(path)
    section = _find_section(note, place.headings) if place.headings else None
    count = len(note.outline.line_starts)
    first, last = place.first, max(place.first, place.last)
    if last and not first:
        raise NotFound(f"{note.path} has no line 0", hint="lines are counted from 1", code="no_such_line")
    if place.block:
        block = next((one for one in note.outline.block_ids if one.name == place.block), None)
        if block is None:
            raise NotFound(f"{note.path} has no block ^{place.block}", code="no_block")
        span = source.measure_lines(reading.utf8_bytes(note))
        first, last = (first, last) if first else (span.line_number(block.start), span.line_number(block.stop - 1))
    if not first:
        first, last = (section.line, section.end_line) if section else (1, count)
    if last > count:
        hint = f"it has {count} lines"
        raise NotFound(f"{note.path} has no line {last}", hint=hint, code="no_such_line")
    if section and (last < section.line or first > section.end_line):
        raise NotFound(
            f"lines {first}-{last} of {note.path} aren't under '{section.title}'",
            hint=f"that heading owns lines {section.line}-{section.end_line}",
            code="other_section",
        )
    vault = "" if home.vault == context.vault else home.vault
    starts = note.outline.line_starts
    data = reading.utf8_bytes(note)
    start = starts[first - 1]
    stop = starts[last] if last < len(starts) else len(data)
    return CitedPassage(
        vault=vault,
        path=note.path,
        heading=f"{'#' * section.level} {section.title}" if section else "",
        first=first,
        last=last,
        start=start,
        stop=stop,
        hash=note.hash,
        text=_original_text(note, start, stop),
        note=note,
    )


def check_quote(passage: CitedPassage, quote: str) -> None:
    """Check that a passage contains a quotation.

    Markdown's marks, white space and kinds of quotation marks are ignored; an ellipsis matches any text.

    Raises:
        NotFound: It doesn't (code ``not_quoted``); the hint names the lines of the note that do.
    """
    if _contains_quote(passage.text, quote):
        return
    rows = _note_lines(passage.note)
    hint = "it is nowhere in that note"
    for start, stop in ((start, start + size) for size in (1, 2, 3) for start in range(len(rows) - size + 1)):
        if _contains_quote("\n".join(rows[start:stop]), quote):
            hint = f"it is in line {stop}" if stop == start + 1 else f"it is in lines {start + 1}-{stop}"
            break
    raise NotFound(
        f"“{quote[:80]}” isn't in lines {passage.first}-{passage.last} of {passage.path}",
        hint=hint,
        code="not_quoted",
    )


def _resolve_note(context: Context, target: str, names: NoteNames) -> tuple[Context, NotePath]:
    """Find the note that a target names; this vault goes first, since a note's name may contain a colon."""
    own_path = _find_path(context, target, names)
    if own_path is not None:
        return context, own_path
    hint = ""
    for colon in islice(re.finditer(":", target), _MAX_COLONS):
        name, rest = target[: colon.start()].strip(), target[colon.end() :].strip()
        if name in {MAIN_VAULT, context.vault}:
            hint = f"a note of this vault goes without '{name}:'"
            continue
        try:
            home = context.scripting.open_vault(name) if name else None
        except KnapError:
            home = None
        path = _find_path(home, rest, names) if home else None
        if home and path:
            return home, path
    raise NotFound(f"there is no note '{target}'", hint=hint, code="no_note")


def _find_path(context: Context, target: str, names: NoteNames) -> NotePath | None:
    """Find a note of one vault, by its path or by its name as links use it."""
    for spelling in (target, f"{target}.md"):
        try:
            return context.view.path(spelling)
        except KnapError:
            continue
    link_target = links.resolve(target, NotePath(""), lambda key: names.find(context, key))
    return link_target.path if target.strip() else None


def _find_section(note: Note, headings: tuple[str, ...]) -> Section:
    for section in note.outline.sections:
        if not section.level or not links.heading_matches(headings[-1], section.title):
            continue
        above = list(section.path[:-1])
        if all(any(links.heading_matches(wanted, title) for title in above) for wanted in headings[:-1]):
            return section
    raise NotFound(f"{note.path} has no heading '{headings[-1]}'", code="no_heading")


def _original_text(note: Note, start: int, stop: int) -> str:
    """Return the text of a span, with the original text in place of blocks of pending edits."""
    # Pending edits are written into the note as blocks; a citation is checked against the text that they replace.
    original = chunker.restore_original(note.raw, note.outline)
    if original is None:
        return parser.decode_text(reading.utf8_bytes(note)[start:stop])
    original_lines: list[bytes] = []
    offset = 0
    for row in original.data.splitlines(keepends=True):
        disk_start, disk_stop = original.place(offset, offset + len(row))
        if disk_start < stop and disk_stop > start:
            original_lines.append(row)
        offset += len(row)
    return parser.decode_text(b"".join(original_lines))


def _note_lines(note: Note) -> list[str]:
    return [parser.decode_text(row) for row in reading.utf8_bytes(note).splitlines()]


def _contains_quote(text: str, quote: str) -> bool:
    haystack, position = _fold_text(text), 0
    for part in _ELLIPSIS.split(quote.strip().strip(".,;:!?")):
        needle = _fold_text(part)
        index = haystack.find(needle, position)
        if index < 0:
            return False
        position = index + len(needle)
    return True


def _fold_text(text: str) -> str:
    folded = unicodedata.normalize("NFC", text).translate(_FOLD_TABLE)
    return " ".join(_MARKDOWN_MARKS.sub("", folded).split()).casefold()


_LINES_SUFFIX: Final = re.compile(
    rb"\s*(?:[(\[,:]\s*)?(?:lines?|L)\.?\s*(\d{1,7})(?:\s*(?:-|\xe2\x80\x93|to)\s*L?(\d{1,7}))?\s*[)\]]?", re.IGNORECASE
)
_LINES_ALIAS: Final = re.compile(r"(?:lines?|L)\.?\s*(\d{1,7})(?:\s*[-\u2013]\s*L?(\d{1,7}))?", re.IGNORECASE)
_QUOTED_TEXT: Final = re.compile(
    r'"([^"\n]{2,})"|\u201c([^\u201d\n]{2,})\u201d|\u201e([^\u201c\n]{2,})\u201c|«([^»\n]{2,})»'
)
_MIN_QUOTE_WORDS: Final = 4
"""A shorter quotation may be a name or a figure of speech."""
_MIN_QUOTE_CHARS: Final = 20
_MAX_QUOTED: Final = 400
"""Characters of the cited lines that a citation includes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedCitation:
    """A citation as it is written in the answer."""

    start: int
    """The span in the answer's UTF-8 bytes, with the lines after the link."""
    stop: int
    place: CitationTarget
    quotes: tuple[str, ...]
    """The quotations just before it."""
    shown: str
    """The text that a reader sees for the link."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedCitation:
    """A citation that was verified against the file."""

    parsed: ParsedCitation
    passage: CitedPassage

    def as_dict(self) -> dict[str, JSONValue]:
        """Return it in the shape that every surface shows.

        ``start`` and ``stop`` are bytes in the file; ``vault`` is empty for the vault of the conversation.
        """
        passage = self.passage
        return {
            "vault": passage.vault,
            "path": passage.path,
            "heading": passage.heading,
            "start_line": passage.first,
            "end_line": passage.last,
            "start": passage.start,
            "stop": passage.stop,
            "hash": passage.hash,
            "text": passage.text[:_MAX_QUOTED],
            "quotes": [*self.parsed.quotes],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class CitationFailure:
    """A citation that failed the check, with the reason."""

    parsed: ParsedCitation
    written: str
    code: str
    reason: str
    hint: str = ""

    def as_dict(self) -> dict[str, JSONValue]:
        """Return it in the shape that every surface shows."""
        return {"citation": self.written, "code": self.code, "reason": self.reason}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedAnswer:
    """An answer with its verified and its failing citations."""

    answer: str
    citations: tuple[VerifiedCitation, ...]
    failures: tuple[CitationFailure, ...]


def find_citations(answer: str) -> list[ParsedCitation]:
    """List the citations of an answer in order; links in code don't count."""
    data = answer.encode()
    links = [link for link in parser.parse_links(data).links if link.kind in {"wikilink", "embed"}]
    citations: list[ParsedCitation] = []
    for link in links:
        before = data[citations[-1].stop if citations else 0 : link.start].decode(errors="replace")
        suffix = _LINES_SUFFIX.match(data, link.stop)
        alias = _LINES_ALIAS.fullmatch(link.alias.strip()) if link.alias else None
        numbers = [int(one) for one in (suffix or alias).groups() if one] if (suffix or alias) else []  # pyright: ignore[reportOptionalMemberAccess] - one of them is there
        name = link.alias if link.alias and alias is None else link.target or " > ".join(link.headings)
        paragraph = before.rpartition("\n\n")[2]
        quotes = [next(part for part in match.groups() if part) for match in _QUOTED_TEXT.finditer(paragraph)]
        citations.append(
            ParsedCitation(
                start=link.start,
                stop=suffix.end() if suffix else link.stop,
                place=CitationTarget(
                    target=link.target,
                    headings=link.headings,
                    block=link.block,
                    first=numbers[0] if numbers else 0,
                    last=max(numbers[-1], 1) if numbers else 0,
                ),
                # A short quotation may be a name.
                quotes=tuple(
                    one for one in quotes if len(one.split()) >= _MIN_QUOTE_WORDS or len(one) >= _MIN_QUOTE_CHARS
                ),
                shown=name.rpartition("/")[2].removesuffix(".md"),
            )
        )
    return citations


def format_citation(path: str, vault: str = "", first: int = 0, last: int = 0) -> str:
    """Return a citation: ``[[Note]] (lines 3-9)``, with the vault's name in front for a note of another vault."""
    name = path.removesuffix(".md")
    link = f"[[{vault}:{name}]]" if vault else f"[[{name}]]"
    return f"{link} (lines {first}-{last})" if first else link


def check_citations(context: Context, answer: str) -> CheckedAnswer:
    """Check note, heading, lines and quotations of each citation against the files as they are now.

    Args:
        context: The vault, as the agent sees it; other vaults are opened for the same client.
        answer: Markdown.
    """
    citations: list[VerifiedCitation] = []
    failures: list[CitationFailure] = []
    data, names = answer.encode(), NoteNames()
    for cited in find_citations(answer):
        try:
            passage = find_passage(context, cited.place, names)
            for quote in cited.quotes:
                check_quote(passage, quote)
            citations.append(VerifiedCitation(parsed=cited, passage=passage))
        except KnapError as error:
            written = data[cited.start : cited.stop].decode(errors="replace")
            failures.append(
                CitationFailure(parsed=cited, written=written, code=error.code, reason=error.message, hint=error.hint)
            )
    return CheckedAnswer(answer=answer, citations=tuple(citations), failures=tuple(failures))


def remove_citations(answer: str, failures: Sequence[CitationFailure]) -> str:
    """Remove citations so that the sentences stay whole; a link without lines is replaced by its text."""
    data = answer.encode()
    # From the last to the first, so that the spans of the others stay valid.
    for failure in reversed(failures):
        cited = failure.parsed
        head, tail = (part.decode(errors="replace") for part in (data[: cited.start], data[cited.stop :]))
        if cited.place.first:
            head, tail = cut_citation(head, tail, cited.shown)
        else:
            head += cited.shown
        data = f"{head}{tail}".encode()
    return data.decode(errors="replace")


_CONTEXT_LINES: Final = 3
_MAX_LINES: Final = 60
_MAX_CHARS: Final = 2_000
_MIN_LENGTH_SHARE: Final = 0.5
"""A repaired answer that is shorter than this share of the old one is discarded."""


REPAIR: Final = StageSpec(prompt="repair")
"""Corrects the failing citations of an answer."""


async def repair_citations(
    checked: CheckedAnswer, context: Context, agent: StageAgent[object], usage: RunUsage
) -> CheckedAnswer:
    """Ask the model to correct the failing citations, and check its new answer.

    Args:
        checked: The answer, with some failing citations.
        context: The vault, as the agent sees it.
        agent: Who repairs it: the model that wrote it; where that fails or a limit is reached, the answer stays as it
            is.
        usage: Where the cost is added.

    Returns:
        The answer with fewer failing citations.
    """
    prompt = await asyncio.to_thread(_repair_prompt, checked, context)
    try:
        written = await agent.ask(TextTask(prompt=prompt, output=str, read=loop.accept), usage)
    except MODEL_ERRORS:
        return checked
    # The new answer is as untrusted as the first one: it has read the notes' text again.
    repaired = prompting.sanitize_answer(written.reply.strip())[0]
    if len(repaired) < _MIN_LENGTH_SHARE * len(remove_citations(checked.answer, checked.failures)):
        return checked
    rechecked = await asyncio.to_thread(check_citations, context, repaired)
    return rechecked if len(rechecked.failures) < len(checked.failures) else checked


def drop_failed_citations(checked: CheckedAnswer) -> CheckedAnswer:
    """Remove citations that still fail; they stay reported, and the rest is sanitized again."""
    return replace(checked, answer=prompting.sanitize_answer(remove_citations(checked.answer, checked.failures))[0])


def _repair_prompt(checked: CheckedAnswer, context: Context) -> str:
    mark, names = prompting.new_mark(), NoteNames()
    failing: list[str] = []
    for failure in checked.failures:
        hint = f" ({failure.hint})" if failure.hint else ""
        line = prompting.escape_plain(f"- {failure.written}: {failure.reason}{hint}")
        # The lines that the citation points to, or those of the section or note where the lines are wrong.
        cited, excerpt = failure.parsed.place, ""
        whole = CitationTarget(target=cited.target)
        for place in (cited, replace(whole, headings=cited.headings), whole):
            try:
                passage = find_passage(context, place, names)
            except KnapError:
                continue
            # With some lines around it, each with its number in the file.
            start = max(0, passage.first - 1 - _CONTEXT_LINES)
            shown = _note_lines(passage.note)[start : passage.last + _CONTEXT_LINES][:_MAX_LINES]
            excerpt = "".join(f"{number}: {row}\n" for number, row in enumerate(shown, start + 1))[:_MAX_CHARS]
            break
        failing.append(f"{line}\n{prompting.enclose('passage', prompting.escape(excerpt), mark)}" if excerpt else line)
    rows = "\n\n".join(failing)
    return f"Your answer:\n\n{checked.answer}\n\nThese citations don't hold:\n\n{rows}"

"""Render notes, passages and properties that were found."""

from __future__ import annotations

import json
import re
from itertools import chain, takewhile
from typing import TYPE_CHECKING, Final

import click

from knapper import jsontypes
from knapper.cli.output import plain, pluralize
from knapper.cli.render import changes
from knapper.index import tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from knapper.tools.shapes.read import (
        FoundNotePage,
        NoteInfo,
        NoteProperties,
        PassageCopy,
        PassageHit,
    )

_LABEL_WIDTH: Final = 10
_MAX_LABEL_WIDTH: Final = 24
"""Columns up to which the values stand below each other; a longer name of a property pushes only its own away."""
_MAX_LINKS: Final = 10
"""Links either way that are named."""


def render_found_notes(answer: FoundNotePage) -> str:
    """Format one line per note: its path and the requested fields."""
    lines: list[str] = []
    for row in answer["results"]:
        fields = [
            f"{plain(name)}: {_format_value(value)}" for name, value in row.items() if name not in {"path", "foreign"}
        ]
        lines.append("  ".join([click.style(_flatten(row["path"]), fg="green"), *fields]))
    return changes.join_with_remainder(lines, answer, len(lines)) if lines else ""


def render_nearest_notes(answer: FoundNotePage) -> str:
    """Format one line per note that is offered where nothing was found: its path alone."""
    return "\n".join(f"  {_flatten(row['path'])}" for row in answer.get("nearest", ()))


def render_note_info(answer: NoteInfo) -> str:
    """Format everything known about a note."""
    facts = list(_list_facts(answer))
    longest = max((len(name) for name, _ in facts if len(name) < _MAX_LABEL_WIDTH), default=0)
    width = max(_LABEL_WIDTH, longest + 1)
    lines = [click.style(_flatten(answer["path"]), fg="green", bold=True)]
    lines += [f"{name:<{width}}{'' if len(name) < width else ' '}{value}" for name, value in facts]
    rows = answer["outline"]
    if rows:
        width = len(str(rows[-1]["line"]))
        lines += ["", *(f"{row['line']:>{width}}  {_flatten(row['heading'])}" for row in rows)]
    hidden_count = answer["headings"] - len(rows)
    if hidden_count:
        lines.append(f"and {hidden_count} more headings")
    return "\n".join(lines)


def _list_facts(answer: NoteInfo) -> Iterator[tuple[str, str]]:
    tasks = answer["tasks"]
    yield "size", f"{answer['size']:,} bytes, {pluralize(answer['lines'], 'line')}"
    for name in ("created", "modified"):
        if moment := answer.get(name):
            yield name, _flatten(moment)
    for name in ("aliases", "tags"):
        if answer[name]:
            yield name, ", ".join(map(_flatten, answer[name]))
    for name, value in answer["properties"].items():
        if name.casefold() not in {"aliases", "tags"}:
            yield plain(name), _format_value(value)
    if tasks["total"]:
        yield "tasks", f"{tasks['open']} open of {tasks['total']}"
    yield from _link_facts("links in", answer["links_in"]["total"], answer["links_in"]["results"])
    targets = [link["leads_to"] or f"{link['target']} (nothing there)" for link in answer["links_out"]["results"]]
    yield from _link_facts("links out", answer["links_out"]["total"], targets)
    for problem in answer.get("problems", ()):
        yield "problem", f"{_flatten(problem['message'])} (line {problem['line']})"


def _link_facts(name: str, total: int, others: Sequence[str]) -> Iterator[tuple[str, str]]:
    if not total:
        return
    ends = list(map(_flatten, others))
    shown_ends = list(dict.fromkeys(ends))[:_MAX_LINKS]
    hidden_count = total - len(ends) + len(set(ends)) - len(shown_ends)
    yield name, ", ".join(shown_ends) + (f" and {hidden_count} more" if hidden_count > 0 else "")


def _format_value(value: object) -> str:
    if jsontypes.is_list(value):
        return ", ".join(map(_format_value, value))
    return (
        "-" if value is None else _flatten(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    )


def _flatten(text: object) -> str:
    return plain(str(text)).replace("\n", " ").replace("\t", " ")


_QUERY_PART = re.compile(r'(?<!\S)-(?:"[^"]*"|\S+)|"(?P<phrase>[^"]*)"|(?P<word>[^\s"]+)')
_BLANK = re.compile(r"\s+")
_MIN_STEM = 4
"""Letters that two forms of a word share at least."""


def query_words(query: str) -> tuple[str, ...]:
    """Return the words that a query asks for; neither stop words outside of phrases, nor what ``-`` excludes."""
    parts = [(match["phrase"] or "", match["word"] or "") for match in _QUERY_PART.finditer(query)]
    stops = tokenizer.find_stop_words([word for _, word in parts if word])
    texts = (phrase or word for phrase, word in parts if phrase or word not in stops)
    words = (match.group() for text in texts for match in tokenizer.TEXT_WORD.finditer(tokenizer.fold_forms(text)))
    return tuple(dict.fromkeys(chain.from_iterable(map(_plain_words, words))))


def _plain_words(word: str) -> Iterator[str]:
    """Yield a word as it is compared: without accents, and a run of characters without spaces in pairs."""
    at = 0
    for run in tokenizer.UNSPACED_RUN.finditer(word):
        yield from filter(None, [tokenizer.plain_form(word[at : run.start()])])
        text = run.group()
        yield from (text[start : start + 2] for start in range(max(len(text) - 1, 1)))
        at = run.end()
    yield from filter(None, [tokenizer.plain_form(word[at:])])


def cut_snippet(text: str, terms: Iterable[str], limit: int) -> str:
    """Return about *limit* characters of a text as one line, around the place with most of the wanted words.

    Args:
        text: A passage.
        terms: Words as from `query_words`.
        limit: In characters; what is left out shows as an ellipsis.
    """
    line = _BLANK.sub(" ", text).strip()
    if len(line) <= limit:
        return line
    first = _densest_place(line, find_words(line, terms), limit)
    at = max(0, min(first - limit // 4, len(line) - limit))
    space = line.find(" ", at, at + 20)
    start = space + 1 if at and space >= 0 else at
    stop = min(len(line), start + limit)
    if stop < len(line):
        stop = max(line.rfind(" ", start + limit // 2, stop), start + limit // 2)
    return f"{'…' if start else ''}{line[start:stop].strip()}{'…' if stop < len(line) else ''}"


def _densest_place(line: str, spans: Sequence[tuple[int, int]], limit: int) -> int:
    """Return where the first of those words stands that have most different others shortly after them."""
    best_count, best_start = 0, 0
    for place, (start, _) in enumerate(spans):
        after = takewhile(lambda span, first=start: span[1] <= first + limit // 2, spans[place:])
        count = len({tokenizer.plain_form(line[first:last]) for first, last in after})
        if count > best_count:
            best_count, best_start = count, start
    return best_start


def style_words(text: str, terms: Iterable[str], style: Callable[[str], str]) -> str:
    """Style the wanted words in a text."""
    pieces: list[str] = []
    at = 0
    for start, stop in find_words(text, terms):
        pieces += [text[at:start], style(text[start:stop])]
        at = stop
    return "".join([*pieces, text[at:]])


def find_words(text: str, words: Iterable[str]) -> list[tuple[int, int]]:
    """Find the words of a text that are forms of wanted ones, in order."""
    terms = tuple(words)
    pairs = tuple(term for term in terms if tokenizer.UNSPACED_RUN.fullmatch(term))
    hits: list[tuple[int, int]] = []
    for match in tokenizer.TEXT_WORD.finditer(text):
        word, offset = match.group(), match.start()
        if word.isascii() or not tokenizer.UNSPACED_RUN.search(word):
            plain_word = tokenizer.plain_form(word)
            hits.extend([match.span()] if any(_is_word_form(plain_word, term) for term in terms) else ())
        else:
            hits.extend((offset + start, offset + stop) for start, stop in _find_in_run(word, terms, pairs))
    return hits


def _find_in_run(text: str, terms: Sequence[str], pairs: Sequence[str]) -> list[tuple[int, int]]:
    """Find pairs of characters, joined where they touch, and the words of another script between them."""
    spans = [(at, at + len(pair)) for pair in pairs for at in _all_places(text, pair)]
    at = 0
    for start, stop in [*(run.span() for run in tokenizer.UNSPACED_RUN.finditer(text)), (len(text), len(text))]:
        plain_word = tokenizer.plain_form(text[at:start])
        spans += [(at, start)] if any(_is_word_form(plain_word, term) for term in terms) else ()
        at = stop
    joined: list[tuple[int, int]] = []
    for start, stop in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(stop, joined[-1][1])
        else:
            joined.append((start, stop))
    return joined


def _all_places(text: str, part: str) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


def _is_word_form(word: str, term: str) -> bool:
    if word == term:
        return True
    short, long = sorted((word, term), key=len)
    return len(short) >= _MIN_STEM and long.startswith(short)


_HEADINGS = re.compile(r"(?:#{1,6}[ \t][^\n]*\n\s*)+")
_SNIPPET_CHARS = 240
_PASSAGE_CHARS = 700
"""Characters that are shown of a passage."""


def render_nearest(passages: Sequence[PassageHit]) -> str:
    """List the places that are offered where nothing was found, each with its cosine."""
    return "\n".join(f"  {_place(passage)}  cosine {passage.get('cosine')}" for passage in passages)


def render_search_results(query: str, passages: Sequence[PassageHit]) -> str:
    """List passages with a snippet each, for `knap search`."""
    terms = query_words(query)
    results: list[str] = []
    for passage in passages:
        lines = [render_location(passage)]
        if text := cut_snippet(plain(_passage_body(passage)), terms, _SNIPPET_CHARS):
            lines.append(f"  {_highlight(text, terms)}")
        if (parts := passage.get("explain")) is not None:
            scores = ", ".join(f"{name} {value}" for name, value in parts.items())
            lines.append(click.style(f"  score {passage['score']}: {scores}", dim=True))
        results.append("\n".join(lines))
    return "\n\n".join(results)


def render_passages(question: str, passages: Sequence[PassageHit]) -> str:
    """Lay out passages to be read, for `knap ask`."""
    terms = query_words(question)
    results: list[str] = []
    for number, passage in enumerate(passages, 1):
        text = plain(_passage_body(passage)).strip("\n")
        if len(text) > _PASSAGE_CHARS:
            text = f"{text[:_PASSAGE_CHARS].rsplit(maxsplit=1)[0]} …"
        lines = [f"   {line}".rstrip() for line in _highlight(text, terms).splitlines()]
        results.append("\n".join([f"{number}. {render_location(passage)}", *lines]))
    return "\n\n".join(results)


def render_location(passage: PassageHit) -> str:
    """Return note, lines and heading, then the other places of the same text: ``Garden.md:3-9  ## Watering``."""
    heading = passage["heading"]
    heading = "" if heading == "top-level" else plain(heading)
    where = _place(passage)
    first = f"{where}  {click.style(heading, bold=True)}" if heading else where
    return "\n".join([first, *(f"  also in {_place(copy)}" for copy in passage.get("also", ()))])


def _place(passage: PassageHit | PassageCopy) -> str:
    lines = f"{passage['start_line']}-{passage['end_line']}"
    if passage["start_line"] == passage["end_line"]:
        lines = str(passage["start_line"])
    path = plain(passage["source"]).replace("\n", "\ufffd").replace("\t", "\ufffd")
    return f"{click.style(path, fg='green')}:{lines}"


def _passage_body(passage: PassageHit) -> str:
    """Return a passage without its leading headings: its own is printed above it."""
    # A terminal's own return would be taken out as a control character.
    text = passage["content"].replace("\r\n", "\n").replace("\r", "\n")
    headings = _HEADINGS.match(text)
    return text[headings.end() :] if headings else text


def _highlight(text: str, terms: Sequence[str]) -> str:
    return style_words(text, terms, lambda word: click.style(word, fg="yellow", bold=True))


def render_properties(answers: Sequence[NoteProperties]) -> str:
    """Format one line per property, below the note's path if there are several notes.

    Args:
        answers: Answers with ``path`` and ``properties``.
    """
    if len(answers) == 1:
        return "\n".join(_property_lines(answers[0])) or "no properties"
    parts = [
        "\n".join([click.style(plain(one["path"]), fg="green"), *(f"  {row}" for row in _property_lines(one))])
        for one in answers
    ]
    return "\n".join(parts)


def _property_lines(one: NoteProperties) -> list[str]:
    lines: list[str] = []
    for name, value in one["properties"].items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        lines.append(f"{click.style(plain(name), bold=True)}: {plain(text)}")
    return lines

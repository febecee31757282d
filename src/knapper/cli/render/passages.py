"""Show passages that were found: where each stands, and what it says."""

import re
from collections.abc import Mapping, Sequence
from typing import cast

import click

from knapper.cli.output import plain
from knapper.cli.render import snippets

_HEADINGS = re.compile(r"(?:#{1,6}[ \t][^\n]*\n\s*)+")
_SNIPPET = 240
_PASSAGE = 700
"""Characters that are shown of a passage."""

Passage = Mapping[str, object]


def of(answer: Mapping[str, object]) -> Sequence[Passage]:
    """Give the passages of a tool's answer."""
    return cast("Sequence[Passage]", answer["results"])


def listing(query: str, passages: Sequence[Passage]) -> str:
    """List passages with a snippet each, for `knap search`."""
    wanted = snippets.words(query)
    return "\n\n".join(_listed(passage, wanted) for passage in passages)


def reading(question: str, passages: Sequence[Passage]) -> str:
    """Lay out passages to be read, for `knap ask`."""
    wanted = snippets.words(question)
    return "\n\n".join(_to_read(number, passage, wanted) for number, passage in enumerate(passages, 1))


def place(passage: Passage) -> str:
    """Give note, lines and heading: ``Garden.md:3-9  ## Watering``."""
    lines = f"{passage['start_line']}-{passage['end_line']}"
    if passage["start_line"] == passage["end_line"]:
        lines = str(passage["start_line"])
    where = f"{click.style(_one_line(str(passage['source'])), fg='green')}:{lines}"
    heading = _heading(passage)
    return f"{where}  {click.style(heading, bold=True)}" if heading else where


def _one_line(text: str) -> str:
    return plain(text).replace("\n", "\ufffd").replace("\t", "\ufffd")


def _listed(passage: Passage, wanted: Sequence[str]) -> str:
    text = snippets.around(plain(_body(passage)), wanted, _SNIPPET)
    lines = [place(passage), *([f"  {_marked(text, wanted)}"] if text else []), *_explained(passage)]
    return "\n".join(lines)


def _to_read(number: int, passage: Passage, wanted: Sequence[str]) -> str:
    text = plain(_body(passage)).strip("\n")
    if len(text) > _PASSAGE:
        text = f"{text[:_PASSAGE].rsplit(maxsplit=1)[0]} …"
    lines = [f"   {line}".rstrip() for line in _marked(text, wanted).splitlines()]
    return "\n".join([f"{number}. {place(passage)}", *lines])


def _explained(passage: Passage) -> list[str]:
    parts = passage.get("explain")
    if not isinstance(parts, Mapping):
        return []
    said = ", ".join(f"{name} {value}" for name, value in cast("Mapping[str, object]", parts).items())
    return [click.style(f"  score {passage['score']}: {said}", dim=True)]


def _heading(passage: Passage) -> str:
    heading = str(passage["heading"])
    return "" if heading == "top-level" else plain(heading)


def _body(passage: Passage) -> str:
    """Leave out the headings that a passage begins with: its own stands above already."""
    text = str(passage["content"])
    headings = _HEADINGS.match(text)
    return text[headings.end() :] if headings else text


def _marked(text: str, wanted: Sequence[str]) -> str:
    return snippets.mark(text, wanted, lambda word: click.style(word, fg="yellow", bold=True))

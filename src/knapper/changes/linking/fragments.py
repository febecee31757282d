"""Write what follows a link's target: the headings or the block in the note."""

import re
from collections.abc import Sequence
from typing import Final

from knapper.changes.linking.link_forms import Form, is_card
from knapper.changes.linking.pages import Page
from knapper.changes.text.splices import Splice
from knapper.vault import markdown
from knapper.vault.outline import Link

_CARET: Final = re.compile(rb"(?:\^|%5[eE]|\\u005[eE])[ \t]*")


def span(page: Page, link: Link, form: Form) -> tuple[int, int]:
    """Find the bytes of a link's fragment, ``#`` included: ``#H`` in ``[[Note#H|text]]``."""
    if form.markup == "path" and is_card(page.raw, link):
        return (link.start, link.stop) if link.start != link.target_start else (link.target_stop, link.target_stop)
    if form.markup == "markdown":
        start = link.target_start - form.bracketed
        _, stop = markdown.find_destination_span(page.raw, start, len(page.raw))
        return link.target_stop, max(stop, link.target_stop)
    stop = link.stop - (2 if form.markup == "wikilink" else 0)
    bar = page.raw.find(b"|", link.target_stop, stop)
    if bar >= 0:
        stop = bar - (page.raw[bar - 1 : bar] == b"\\")
    return link.target_stop, stop


def with_headings(page: Page, link: Link, form: Form, wanted: Sequence[str]) -> Splice | None:
    """Put other headings into a link; those that stay keep the spelling that they have in the file.

    Returns:
        None where a link of this form can't hold them, or isn't written as expected.
    """
    start, stop = span(page, link, form)
    there = [piece for piece in page.raw[start:stop].split(b"#") if piece.strip()]
    if len(there) != len(link.headings) or not all(wanted):
        return None
    kept = dict(zip(link.headings, there, strict=True))
    pieces = [kept.get(heading) or form.write(heading) for heading in wanted]
    found = [piece for piece in pieces if piece is not None]
    return Splice(start=start, stop=stop, new=b"".join(b"#" + piece for piece in found)) if found == pieces else None


def with_block(page: Page, link: Link, form: Form, wanted: str) -> Splice | None:
    """Put another block id into a link; None where it isn't written as expected."""
    start, stop = span(page, link, form)
    carets = list(_CARET.finditer(page.raw, start, stop))
    if len(carets) != 1:
        return None
    at = carets[0].end()
    tail = page.raw[at:stop]
    return Splice(start=at, stop=at + len(tail.rstrip()), new=wanted.encode())

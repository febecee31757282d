"""Read pages: HTML as Markdown without what stands around its text, other text as it is."""

import contextlib
import re
from dataclasses import dataclass
from typing import Final

import trafilatura

from knapper.errors import BadInput
from knapper.net import charsets, markup, texts
from knapper.net.failures import BadStatus, WrongType
from knapper.net.guard import Answer, Guard

MAX_LENGTH: Final = 50_000
_HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
_TEXT: Final = re.compile(
    r"text/.+|.+\+(json|xml|yaml)|application/(x-)?(json|ndjson|xml|yaml|toml|markdown|javascript)"
)
_LOOKS_HTML: Final = re.compile(rb"<(!doctype\s+html|html|head|body)\b", re.IGNORECASE)
_PDF: Final = "application/pdf"
_OK: Final = range(200, 300)
_HEAD: Final = 1_024
_TITLE_MOST: Final = 300
_MISREAD: Final = (AssertionError, AttributeError, LookupError, TypeError, ValueError, RecursionError)
"""What comes of HTML that the library for it doesn't expect; there is no root to its errors."""
_HTML_MOST: Final = 1_000_000
"""Characters of HTML that are looked through: a second of work for each 200,000 or so, at worst."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Hold a page's readable text, which strangers wrote."""

    url: str
    """Where it was found, after redirects."""
    title: str
    """Empty where it has none."""
    date: str
    """When it was published, ``2026-03-01``; empty where it doesn't say."""
    content_type: str
    text: str
    """Markdown, where the page was HTML; empty where nothing readable was found."""
    is_cut: bool = False
    """Whether the page was so long that its end wasn't looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """Hold a part of a page's text."""

    text: str
    offset: int
    """In characters."""
    next_offset: int | None
    """Where to read on; None at the end."""
    total: int
    """How long the whole is, in characters."""


def fetch(guard: Guard, url: str, *, hosts: tuple[str, ...] = ()) -> Page:
    """Fetch a page.

    Args:
        guard: The way to it.
        url: Its address.
        hosts: All that may be reached; empty for any public host.

    Raises:
        BadStatus: The server gives no page.
        WrongType: It isn't text.
        KnapError: What the guard raises.
    """
    try:
        answer = guard.get(url, allowed_hosts=hosts or None, accepts=accepts)
    except WrongType as error:
        raise (_pdf() if error.details.get("content_type") == _PDF else error) from None
    if answer.status not in _OK:
        raise BadStatus(
            f"the server answers with status {answer.status}",
            hint="check the address, or try another page",
            details={"status": answer.status},
        )
    return read(answer)


def accepts(content_type: str) -> bool:
    """Tell whether pages of a media type can be read; one without a type may be."""
    return not content_type or content_type in _HTML or bool(_TEXT.fullmatch(content_type))


def read(answer: Answer) -> Page:
    """Read what a server sent.

    Raises:
        WrongType: It isn't text, whatever the server calls it.
    """
    head = answer.body[:_HEAD]
    if head.startswith(b"%PDF-"):
        raise _pdf()
    if b"\0" in head and not charsets.is_wide(head, answer.charset):
        raise WrongType("what came isn't text", hint="look for a page of text on the same")
    text = charsets.decode(answer.body, answer.charset)
    is_html = answer.content_type in _HTML or (not answer.content_type and bool(_LOOKS_HTML.search(head)))
    is_cut = is_html and len(text) > _HTML_MOST
    title, date, text = _from_html(text[:_HTML_MOST], answer.url) if is_html else ("", "", text)
    return Page(
        url=answer.url,
        title=texts.line(title, _TITLE_MOST),
        date=date,
        content_type=answer.content_type or ("text/html" if is_html else "text/plain"),
        text=texts.tidy(text).strip() if is_html else texts.tidy(text),
        is_cut=is_cut,
    )


def cut(page: Page, offset: int, length: int) -> Passage:
    """Give a part of a page's text.

    Args:
        page: The page.
        offset: Where to begin, in characters, 0 or more; past the end gives nothing.
        length: How many characters, 1 to 50,000.

    Raises:
        BadInput: A number is out of its range.
    """
    check(offset, length)
    stop = offset + length
    total = len(page.text)
    return Passage(text=page.text[offset:stop], offset=offset, next_offset=stop if stop < total else None, total=total)


def check(offset: int, length: int) -> None:
    """Tell whether a part of a page can be asked for with these numbers.

    Raises:
        BadInput: It can't.
    """
    if offset < 0:
        raise BadInput(f"offset is {offset}", hint="give 0 or more")
    if not 1 <= length <= MAX_LENGTH:
        raise BadInput(f"length is {length}", hint=f"give 1 to {MAX_LENGTH:,}")


def _from_html(html: str, url: str) -> tuple[str, str, str]:
    """Give title, date and text, as far as the page can be read."""
    html = markup.lean(html)
    title, date, text = "", "", None
    with contextlib.suppress(*_MISREAD):
        title, date = _about(html, url)
    with contextlib.suppress(*_MISREAD):
        text = _main_text(html, url)
    with contextlib.suppress(*_MISREAD):
        text = text or trafilatura.html2txt(html)
    return title, date, text or ""


def _about(html: str, url: str) -> tuple[str, str]:
    tree = trafilatura.load_html(html)
    if tree is None:
        return "", ""
    markup.strip(tree)
    about = trafilatura.extract_metadata(tree, default_url=url)
    return about.title or "", about.date or ""


def _main_text(html: str, url: str) -> str | None:
    tree = trafilatura.load_html(html)
    if tree is None:
        return ""
    markup.strip(tree)
    return trafilatura.extract(tree, url=url, output_format="markdown", include_links=True, include_comments=False)


def _pdf() -> WrongType:
    return WrongType(
        "that is a PDF, and PDFs aren't read",
        hint="look for an HTML page on the same",
        details={"content_type": _PDF},
    )

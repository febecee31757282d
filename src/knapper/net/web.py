"""Search the web and fetch pages as readable Markdown, with a short-lived page cache."""

import codecs
import contextlib
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, MutableMapping
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

import charset_normalizer
import trafilatura

from knapper.errors import BadInput, SetupError
from knapper.net import client, urls
from knapper.net.guard import Dialer, FetchedResponse, Guard, Limits
from knapper.net.search import Brave, DuckDuckGo, ModelSearch, ProviderAccount, SearchProvider, Serper, Tavily, WebHit
from knapper.net.urls import BadStatus, WrongType

_BOMS: Final = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_CHARSET_DECLARATION: Final = re.compile(
    rb"<(?:meta|\?xml)\b[^>]{0,300}?(?:charset|encoding)\s*=\s*[\"']?([A-Za-z0-9._:-]{1,40})"
)
_CHARSET_HEAD: Final = 4_096
_CHARSET_SAMPLE: Final = 65_536
_WEB_CHARSETS: Final = {
    "ascii": "cp1252",
    "euc_kr": "cp949",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "shift_jis": "cp932",
}
"""The encodings that browsers use for a charset's label. Source: WHATWG, Encoding, section 4.2."""
_SUPPORTED_CHARSETS: Final = frozenset(
    {
        *("utf-8", "utf-16", "utf-16-le", "utf-16-be", "gb18030", "big5", "big5hkscs", "cp932", "cp949", "cp874"),
        *("euc_jp", "iso2022_jp", "cp866", "koi8-r", "koi8-u", "mac-cyrillic", "mac-roman", "tis-620"),
        *(f"cp{number}" for number in range(1250, 1259)),
        *(f"iso8859-{number}" for number in range(2, 17)),
    }
)
"""Python's names of the encodings of pages; others, some of which decode slowly, aren't used."""


def decode_page(body: bytes, header_charset: str) -> str:
    """Decode a page.

    In order: the byte-order mark, the header, the page's own declaration, UTF-8, a guess.

    Args:
        body: The page.
        header_charset: The charset in the header; empty where it names none.

    Returns:
        Text, with U+FFFD for invalid bytes.
    """
    for bom, name in _BOMS:
        if body.startswith(bom):
            return body[len(bom) :].decode(name, errors="replace")
    declaration = _CHARSET_DECLARATION.search(body[:_CHARSET_HEAD])
    name = find_charset(header_charset) or (find_charset(declaration[1].decode("ascii")) if declaration else "")
    if name:
        return body.decode(name, errors="replace")
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        best_match = charset_normalizer.from_bytes(body[:_CHARSET_SAMPLE]).best()
        guessed = find_charset(best_match.encoding) if best_match else ""
        return body.decode(guessed or "cp1252", errors="replace")


def is_utf16(head: bytes, header_charset: str) -> bool:
    """Return whether a page is UTF-16, in which NUL bytes are usual."""
    return head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or find_charset(header_charset).startswith(
        "utf-16"
    )


def find_charset(name: str) -> str:
    """Return Python's name of a charset; empty where pages don't use it."""
    try:
        charset = codecs.lookup(name).name if name else ""
    except (LookupError, ValueError):
        return ""
    charset = _WEB_CHARSETS.get(charset, charset)
    return charset if charset in _SUPPORTED_CHARSETS else ""


MAX_ATTRIBUTES: Final = 1_000
"""Maximum attributes of an element: the parser compares each with all others, and no real page has as many."""
_OPENING_TAG: Final = re.compile(r"<([A-Za-z][A-Za-z0-9]*)(?:[^\"'>=]++|=\s*+(?:\"[^\"]*+\"|'[^']*+')|[\"'=])*+")
_ATTRIBUTE_GAP: Final = re.compile(r"[\s/]+")
_CHARACTER_REFERENCE: Final = re.compile(r"&#(?:0*([0-9]{1,7})(?![0-9])|[xX]0*([0-9a-fA-F]{1,6})(?![0-9a-fA-F]));?")
_INVALID_CODES: Final = frozenset({*range(9), 11, 12, *range(14, 32), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF})
"""Characters that XML doesn't allow. Source: XML 1.0, section 2.2."""


class HtmlElement(Protocol):
    """An element of a parsed page, as the library has it."""

    @property
    def attrib(self) -> MutableMapping[str, str]:
        """Return the attributes."""
        ...

    @property
    def tag(self) -> object:
        """Return the name in small letters; of a comment, something else."""
        ...

    def drop_tree(self) -> object:
        """Remove the element and what it holds, but not the text after it."""
        ...


class HtmlTree(Protocol):
    """A parsed page, as the library has it."""

    def iter(self) -> Iterable[HtmlElement]:
        """Return the elements."""
        ...


def trim_html(html: str) -> str:
    """Remove what prevents the extraction of the main text: thousands of attributes, references to invalid characters.

    Malformed tags keep their attributes.
    """
    return _CHARACTER_REFERENCE.sub(_drop_invalid, _OPENING_TAG.sub(_trim_tag, html))


def strip_attributes(tree: HtmlTree) -> None:
    """Remove the attributes of elements that have thousands."""
    for element in tree.iter():
        if len(element.attrib) > MAX_ATTRIBUTES:
            element.attrib.clear()


def drop_unseen(tree: HtmlTree) -> None:
    """Remove the elements that the page itself hides: by ``hidden``, by their ``style``, or by what they are.

    What a stylesheet or a script hides isn't known. ``hidden="until-found"`` can be searched for, and stays.
    """
    for element in [one for one in tree.iter() if _is_unseen(one)]:
        element.drop_tree()


def _is_unseen(element: HtmlElement) -> bool:
    tag, attributes = element.tag, element.attrib
    if not isinstance(tag, str) or tag in {"html", "body"}:
        return False
    if tag == "template" or (tag == "dialog" and "open" not in attributes):
        return True
    if attributes.get("hidden", "until-found").strip().casefold() != "until-found":
        return True
    return bool(_HIDING_STYLE.search(_STYLE_GAP.sub("", attributes.get("style", "")).casefold()))


def _trim_tag(tag: re.Match[str]) -> str:
    return (
        f"<{tag[1]}"
        if len(tag[0]) > MAX_ATTRIBUTES and len(_ATTRIBUTE_GAP.findall(tag[0])) > MAX_ATTRIBUTES
        else tag[0]
    )


def _drop_invalid(reference: re.Match[str]) -> str:
    code = int(reference[1]) if reference[1] else int(reference[2], 16)
    return "" if code in _INVALID_CODES else reference[0]


_STYLE_GAP: Final = re.compile(r"/\*.*?\*/|\s", re.DOTALL)
_HIDING_STYLE: Final = re.compile(r"(?:^|;)(?:display:none|visibility:(?:hidden|collapse))(?=[;!]|$)")

MAX_EXCERPT_LENGTH: Final = 50_000
_HTML_TYPES: Final = frozenset({"text/html", "application/xhtml+xml"})
_TEXT_TYPES: Final = re.compile(
    r"text/.+|.+\+(json|xml|yaml)|application/(x-)?(json|ndjson|xml|yaml|toml|markdown|javascript)"
)
_LOOKS_HTML: Final = re.compile(rb"<(!doctype\s+html|html|head|body)\b", re.IGNORECASE)
_PDF_TYPE: Final = "application/pdf"
_OK_STATUSES: Final = range(200, 300)
_PAGE_HEAD: Final = 1_024
_MAX_TITLE: Final = 300
_HTML_PARSER_ERRORS: Final = (AssertionError, AttributeError, LookupError, TypeError, ValueError, RecursionError)
"""Errors of the HTML library for unexpected input; it has no base class for them."""
_MAX_HTML: Final = 1_000_000
"""Characters of HTML that are parsed: at worst, 200,000 take about a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page's readable text, written by strangers."""

    url: str
    """The final URL, after redirects."""
    title: str
    """Empty where it has none."""
    date: str
    """Date of publication, ``2026-03-01``; empty where the page has none."""
    content_type: str
    text: str
    """Markdown, where the page was HTML; empty where nothing readable was found."""
    is_cut: bool = False
    """Whether the page was too long to be parsed to its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageExcerpt:
    """A part of a page's text, with its position."""

    text: str
    offset: int
    """Start of the excerpt, in characters."""
    next_offset: int | None
    """Offset of the next excerpt; None at the end."""
    total: int
    """Length of the whole text, in characters."""


def fetch_page(guard: Guard, url: str, *, hosts: tuple[str, ...] = ()) -> Page:
    """Fetch a page.

    Args:
        guard: Fetches it.
        url: The page's URL.
        hosts: The only hosts that may be reached; empty for any public host.

    Raises:
        BadStatus: The server answers with an error.
        WrongType: It isn't text.
        KnapError: As the guard raises it.
    """
    try:
        answer = guard.get(url, allowed_hosts=hosts or None, accepts=is_readable_type)
    except WrongType as error:
        raise (_pdf_error() if error.details.get("content_type") == _PDF_TYPE else error) from None
    if answer.status not in _OK_STATUSES:
        raise BadStatus(
            f"the server answers with status {answer.status}",
            hint="check the address, or try another page",
            details={"status": answer.status},
        )
    return read_page(answer)


def is_readable_type(content_type: str) -> bool:
    """Return whether pages of a media type can be read; true for an empty type."""
    return not content_type or content_type in _HTML_TYPES or bool(_TEXT_TYPES.fullmatch(content_type))


def read_page(answer: FetchedResponse) -> Page:
    """Extract the readable text of a response.

    Raises:
        WrongType: It isn't text, whatever its media type.
    """
    head = answer.body[:_PAGE_HEAD]
    if head.startswith(b"%PDF-"):
        raise _pdf_error()
    if b"\0" in head and not is_utf16(head, answer.charset):
        raise WrongType("what came isn't text", hint="look for a page of text on the same")
    text = decode_page(answer.body, answer.charset)
    is_html = answer.content_type in _HTML_TYPES or (not answer.content_type and bool(_LOOKS_HTML.search(head)))
    is_cut = is_html and len(text) > _MAX_HTML
    title, date, text = _extract_html(text[:_MAX_HTML], answer.url) if is_html else ("", "", text)
    return Page(
        url=answer.url,
        title=client.clip_to_line(title, _MAX_TITLE),
        date=date,
        content_type=answer.content_type or ("text/html" if is_html else "text/plain"),
        text=client.clean_text(text).strip() if is_html else client.clean_text(text),
        is_cut=is_cut,
    )


def cut_excerpt(page: Page, offset: int, length: int) -> PageExcerpt:
    """Return an excerpt of a page's text.

    Args:
        page: The page.
        offset: Where to begin, in characters, 0 or more; past the end gives nothing.
        length: How many characters, 1 to 50,000.

    Raises:
        BadInput: A number is out of its range.
    """
    check_range(offset, length)
    stop = offset + length
    total = len(page.text)
    return PageExcerpt(
        text=page.text[offset:stop], offset=offset, next_offset=stop if stop < total else None, total=total
    )


def check_range(offset: int, length: int) -> None:
    """Check the bounds of an excerpt.

    Raises:
        BadInput: A number is out of its range.
    """
    if offset < 0:
        raise BadInput(f"offset is {offset}", hint="give 0 or more")
    if not 1 <= length <= MAX_EXCERPT_LENGTH:
        raise BadInput(f"length is {length}", hint=f"give 1 to {MAX_EXCERPT_LENGTH:,}")


def _extract_html(html: str, url: str) -> tuple[str, str, str]:
    """Return title, date and text, as far as they can be extracted."""
    html = trim_html(html)
    title, date, text = "", "", None
    # Each step parses anew, as it changes its tree; where one fails, the others may yet find something.
    with contextlib.suppress(*_HTML_PARSER_ERRORS):
        tree = trafilatura.load_html(html)
        if tree is not None:
            strip_attributes(tree)
            metadata = trafilatura.extract_metadata(tree, default_url=url)
            title, date = metadata.title or "", metadata.date or ""
    with contextlib.suppress(*_HTML_PARSER_ERRORS):
        tree = trafilatura.load_html(html)
        if tree is not None:
            strip_attributes(tree)
            drop_unseen(tree)
            text = trafilatura.extract(
                tree, url=url, output_format="markdown", include_links=True, include_comments=False
            )
    with contextlib.suppress(*_HTML_PARSER_ERRORS):
        tree = None if text else trafilatura.load_html(html)
        if tree is not None:
            drop_unseen(tree)
            text = trafilatura.html2txt(tree)
    return title, date, text or ""


def _pdf_error() -> WrongType:
    return WrongType(
        "that is a PDF, and PDFs aren't read",
        hint="look for an HTML page on the same",
        details={"content_type": _PDF_TYPE},
    )


ProviderName = Literal["ddgs", "tavily", "brave", "serper", "model"]
MAX_QUERY_LENGTH: Final = 1_000
_CACHED_PAGES: Final = 8
_CACHE_S: Final = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WebOptions:
    """Options of web search and page fetches."""

    provider: ProviderName = "ddgs"
    api_key: str = field(default="", repr=False)
    """The provider's API key."""
    base_url: str = ""
    """The provider's address; empty for its default."""
    model: str = ""
    """The model that searches, for the provider ``model``."""
    max_results: int = 8
    """Limit of results of a search."""
    hosts: tuple[str, ...] = ()
    """Hosts that pages are fetched from; empty for any public one."""
    timeout_s: float = 20.0
    """Time for a page, or for one attempt of a search."""
    max_page_bytes: int = 2_000_000


class Web:
    """Web search with one provider and page fetches through the guard; thread-safe.

    The last pages are cached for some minutes, so that reading further doesn't fetch them again.
    """

    def __init__(self, *, open_provider: Callable[[], SearchProvider], guard: Guard, options: WebOptions) -> None:
        """Set the provider, the guard and the options; nothing is opened yet.

        Args:
            open_provider: Opens the provider at the first search.
            guard: Fetches pages.
            options: Limits.
        """
        self._open_provider = open_provider
        self._provider: SearchProvider | None = None
        self._guard = guard
        self._options = options
        self._lock = threading.Lock()
        self._pages: OrderedDict[str, tuple[float, Page]] = OrderedDict()

    @property
    def max_results(self) -> int:
        """Return the limit of results of a search."""
        return self._options.max_results

    @property
    def caveat(self) -> str:
        """Return what else an empty result may mean; empty for nothing."""
        return self._get_provider().caveat

    def search(self, query: str, n: int = 8) -> list[WebHit]:
        """Search the web.

        Args:
            query: Words, at most 1,000 characters.
            n: Limit of results; the configured limit applies where it is lower.

        Raises:
            BadInput: The query is empty or too long, or *n* is below 1.
            SetupError: The provider can't be used as it is configured, or doesn't answer.
        """
        words = " ".join(query.split())
        if not words:
            raise BadInput("the query is empty", hint="give at least one word")
        if len(words) > MAX_QUERY_LENGTH:
            raise BadInput(f"the query has {len(words):,} characters", hint=f"give at most {MAX_QUERY_LENGTH:,}")
        if n < 1:
            raise BadInput(f"{n} results were asked for", hint="ask for 1 or more")
        return self._get_provider().search(words, min(n, self.max_results))

    def fetch(self, url: str) -> Page:
        """Fetch a page's readable text.

        Raises:
            KnapError: As `fetch_page` raises it.
        """
        key = str(urls.parse(url))
        with self._lock:
            fetched_at, cached_page = self._pages.get(key, (0.0, None))
        if cached_page is not None and time.monotonic() - fetched_at < _CACHE_S:
            return cached_page
        page = fetch_page(self._guard, url, hosts=self._options.hosts)
        with self._lock:
            self._pages[key] = (time.monotonic(), page)
            self._pages.move_to_end(key)
            while len(self._pages) > _CACHED_PAGES:
                _ = self._pages.popitem(last=False)
        return page

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            if self._provider is not None:
                self._provider.close()
                self._provider = None

    def _get_provider(self) -> SearchProvider:
        with self._lock:
            if self._provider is None:
                self._provider = self._open_provider()
            return self._provider


def open_web(options: WebOptions, *, dialer: Dialer | None = None) -> Web:
    """Build the configured web access; nothing is sent yet.

    Args:
        options: The configured options.
        dialer: Reaches pages; None takes the system's.
    """
    limits = Limits(total_s=options.timeout_s, max_bytes=options.max_page_bytes)
    return Web(
        open_provider=lambda: _make_provider(options), guard=Guard(limits=limits, dialer=dialer), options=options
    )


def _make_provider(options: WebOptions) -> SearchProvider:
    account = ProviderAccount(
        provider=options.provider, base_url=options.base_url, api_key=options.api_key, timeout_s=options.timeout_s
    )
    match options.provider:
        case "ddgs":
            if options.base_url:
                raise SetupError(
                    "web.base_url has no meaning for the provider ddgs",
                    hint="take it out, or set web.provider to tavily, brave, serper or model",
                    code="config_invalid",
                )
            return DuckDuckGo(timeout_s=options.timeout_s)
        case "tavily":
            return Tavily(account)
        case "brave":
            return Brave(account)
        case "serper":
            return Serper(account)
        case "model":
            return ModelSearch(account, model=options.model)

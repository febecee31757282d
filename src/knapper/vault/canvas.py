"""Parse Obsidian canvas and base files into links and searchable text."""

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from knapper.vault import frontmatter, markdown, parser, source
from knapper.vault.frontmatter import InvalidYAMLError
from knapper.vault.outline import Link, LinkKind, Outline, Passage, Problem
from knapper.vault.source import Lines

_JSON_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]', re.DOTALL)
_JSON_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})(?:\\u([dD][c-fC-F][0-9a-fA-F]{2}))?|.)", re.DOTALL)

JsonPath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonString:
    """One string value.

    In ``{"a": ["x"]}`` the string ``x`` has the path ``("a", 0)``.
    """

    path: JsonPath
    value: str
    """Decoded; half a surrogate pair is a question mark."""
    start: int
    """Character after the opening quote."""
    stop: int
    """The closing quote."""


class InvalidJSONError(Exception):
    """Say that a text isn't JSON, and at which character."""

    def __init__(self, reason: str, index: int) -> None:
        super().__init__(reason)
        self.reason: str = reason
        self.index: int = index


def list_strings(text: str) -> Iterator[JsonString]:
    """List all string values in order; keys are none.

    Raises:
        InvalidJSONError: The text isn't JSON, or nested too deep.
    """
    try:
        _ = json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidJSONError(error.msg, error.pos) from None
    except (RecursionError, ValueError) as error:  # nested too deep, or a number of too many digits
        raise InvalidJSONError(str(error), 0) from None
    yield from _walk_strings(text)


def _walk_strings(text: str) -> Iterator[JsonString]:
    """Walk the tokens of a text that is known to be JSON."""
    path: list[str | int] = []
    expects_key = False
    for match in _JSON_TOKEN.finditer(text):
        mark = match.group()
        if mark == "{":
            path.append("")
            expects_key = True
        elif mark == "[":
            path.append(0)
            expects_key = False
        elif mark in "}]":
            _ = path.pop()
        elif mark == ",":
            last = path[-1]
            expects_key = isinstance(last, str)
            if isinstance(last, int):
                path[-1] = last + 1
        elif mark == ":":
            expects_key = False
        elif expects_key:
            path[-1] = _decode_string(mark)
        else:
            yield JsonString(
                path=tuple(path), value=_decode_string(mark), start=match.start() + 1, stop=match.end() - 1
            )


class OffsetMap:
    r"""Map offsets into a string's value to offsets into the file.

    In ``"a\\u00e9b"`` written with its escape, byte 3 of the value is byte 7 after the quote.
    """

    def __init__(self, written: str, start: int) -> None:
        """Measure a string.

        Args:
            written: The string between its quotes.
            start: Its byte offset in the file.
        """
        self._value: list[int] = [0]
        self._file: list[int] = [start]
        text_offset = value_offset = 0
        file_offset = start
        for match in _JSON_ESCAPE.finditer(written):
            plain_bytes = len(written[text_offset : match.start()].encode())
            value_offset += plain_bytes
            file_offset += plain_bytes
            self._add(value_offset, file_offset)
            value_offset += len(_decode_string(f'"{match.group()}"').encode())
            file_offset += len(match.group())
            self._add(value_offset, file_offset)
            text_offset = match.end()

    def _add(self, value: int, place: int) -> None:
        self._value.append(value)
        self._file.append(place)

    def file_offset(self, value: int) -> int:
        """Return where the byte at *value* of the decoded string stands in the file."""
        index = bisect_right(self._value, value) - 1
        return self._file[index] + value - self._value[index]


def _decode_string(quoted: str) -> str:
    return str(json.loads(quoted)).encode(errors="replace").decode()


_TEXT_FIELDS: Final = frozenset({"text", "label"})
_FILE_FIELDS: Final = frozenset({"file", "background"})
_FIELD_PATH_LENGTH: Final = 3
"""``nodes``, the node's number, and the name of its field."""


def parse_canvas(raw: bytes) -> Outline:
    """Read a canvas file; no bytes are too broken for it.

    Links have the kind ``canvas``, or ``external``, and their node's id as key. A card's file is a link whose target
    span is the JSON string between its quotes; where it has a ``subpath``, ``start`` and ``stop`` span that one. Links
    in texts are spans of the text as the JSON writes it, escapes included.

    Returns:
        An outline without sections and blocks; ``passages`` are the texts and labels.
    """
    decoded = source.decode(raw)
    data = decoded.data
    text_start = frontmatter.find_text_start(data)
    problems = decoded.problems
    links: list[Link] = []
    passages: list[Passage] = []
    try:
        reader = _CanvasReader(data, text_start)
        links, passages = reader.links(), reader.passages()
    except InvalidJSONError as error:
        line = source.line_number_at(data, text_start + len(data[text_start:].decode()[: error.index].encode()))
        message = f"The canvas can't be read as JSON in line {line}: {error.reason}."
        problems = (*problems, Problem(code="invalid_json", message=message, line=line))
    return Outline(
        encoding=decoded.encoding,
        newline=source.detect_newline(data),
        line_starts=source.find_line_starts(data),
        body_start=text_start,
        links=tuple(links),
        problems=problems,
        passages=tuple(passages),
    )


class _CanvasReader:
    """A canvas's strings, by node."""

    def __init__(self, data: bytes, base: int) -> None:
        text = data[base:].decode()
        self._text: str = text
        self._lines: Lines = source.measure_lines(data)
        self._offsets: Sequence[int] = frontmatter.list_byte_offsets(text, base)
        self._strings: list[JsonString] = []
        self._ids: dict[tuple[str | int, ...], str] = {}
        for string in list_strings(text) if text.strip() else ():
            if len(string.path) == _FIELD_PATH_LENGTH and string.path[0] in {"nodes", "edges"}:
                self._strings.append(string)
                if string.path[2] == "id":
                    self._ids[string.path[:2]] = string.value

    def links(self) -> list[Link]:
        """List the links of all nodes in order."""
        subpaths = {string.path[:2]: string for string in self._strings if string.path[2] == "subpath"}
        link_list: list[Link] = []
        for string in self._strings:
            name = string.path[2]
            if name in _FILE_FIELDS and string.value:
                link_list.append(self._file(string, subpaths if name == "file" else {}))
            elif name == "url" and string.value:
                link_list.append(self._link("external", string, string))
            elif name == "text":
                link_list += self._in_text(string)
        return sorted(link_list, key=lambda link: link.target_start)

    def passages(self) -> list[Passage]:
        """List the texts and labels of nodes and edges."""
        return [
            Passage(
                text=string.value,
                start=self._offsets[string.start],
                stop=self._offsets[string.stop],
                line=self._lines.line_number(self._offsets[string.start]),
                key=self._key(string),
            )
            for string in self._strings
            if string.path[2] in _TEXT_FIELDS and string.value.strip()
        ]

    def _key(self, string: JsonString) -> str:
        return self._ids.get(string.path[:2], "")

    def _file(self, string: JsonString, subpaths: Mapping[tuple[str | int, ...], JsonString]) -> Link:
        subpath = subpaths.get(string.path[:2])
        link = self._link("canvas", string, subpath or string)
        if subpath is None:
            return link
        headings, block = markdown.split_fragment(subpath.value)
        return replace(link, headings=headings, block=block)

    def _link(self, kind: LinkKind, target: JsonString, span: JsonString) -> Link:
        return Link(
            kind=kind,
            target=target.value,
            headings=(),
            block="",
            alias=None,
            start=self._offsets[span.start],
            stop=self._offsets[span.stop],
            target_start=self._offsets[target.start],
            target_stop=self._offsets[target.stop],
            line=self._lines.line_number(self._offsets[target.start]),
            key=self._key(target),
        )

    def _in_text(self, string: JsonString) -> Iterator[Link]:
        """Read a card's text as Markdown, and move its links to where the JSON writes them."""
        if "[" not in string.value and "://" not in string.value:
            return
        start = self._offsets[string.start]
        places = OffsetMap(self._text[string.start : string.stop], start)
        for link in parser.parse_note(string.value.encode()).links:
            yield replace(
                link,
                kind="external" if link.kind == "external" else "canvas",
                start=places.file_offset(link.start),
                stop=places.file_offset(link.stop),
                target_start=places.file_offset(link.target_start),
                target_stop=places.file_offset(link.target_stop),
                line=self._lines.line_number(places.file_offset(link.start)),
                key=self._key(string),
            )


_LINK_CALL: Final = re.compile(
    rb"(?:(?<![A-Za-z0-9_.])(?:link|file|image)|\.hasLink)\([ \t]*\\?([\"'])(?P<inner>[^\"'\\\r\n]+)\\?\1"
)


def parse_base(raw: bytes) -> Outline:
    """Read a Bases file; no bytes are too broken for it.

    Links are ``[[Note]]`` in any of its texts, and the first argument of ``link("…")``, ``file("…")``, ``image("…")``
    and ``hasLink("…")``; their kind is ``base`` and their key the path of the text, as in ``views.filters.and``.

    Returns:
        An outline without sections and blocks; its one passage is the file's text.
    """
    decoded = source.decode(raw)
    data = decoded.data
    text_start = frontmatter.find_text_start(data)
    line_index = source.measure_lines(data)
    text = data[text_start:].decode()
    problems = decoded.problems
    links: list[Link] = []
    try:
        links = list(_base_links(data, text, text_start, line_index))
    except InvalidYAMLError as error:
        line = source.line_number_at(data, text_start + len(text.rstrip()[: error.index].encode()))
        message = f"The base can't be read as YAML in line {line}: {error.reason}."
        problems = (*problems, Problem(code="invalid_yaml", message=message, line=line))
    passage = Passage(text=text, start=text_start, stop=len(data), line=1, key="")
    return Outline(
        encoding=decoded.encoding,
        newline=source.detect_newline(data),
        line_starts=line_index.starts,
        body_start=text_start,
        links=tuple(links),
        problems=problems,
        passages=(passage,) if text.strip() else (),
    )


def _base_links(data: bytes, text: str, base: int, lines: Lines) -> Iterator[Link]:
    root = frontmatter.compose_yaml(text)
    _ = frontmatter.YamlReader().read_mapping(root)
    if root is None:
        return
    offsets = frontmatter.list_byte_offsets(text, base)
    for key, node in frontmatter.list_scalars(root):
        span = (offsets[node.start_mark.index], offsets[node.end_mark.index])
        text_links = [replace(link, kind="base") for link in frontmatter.find_wikilinks(data, span, (key, node), lines)]
        text_links += _call_links(data, span, key, lines)
        yield from sorted(text_links, key=lambda link: link.start)


def _call_links(data: bytes, span: tuple[int, int], key: str, lines: Lines) -> Iterator[Link]:
    for match in _LINK_CALL.finditer(data, *span):
        inner = match["inner"]
        if inner.startswith(b"[["):
            continue
        target, _ = markdown.parse_wikilink_target(inner, match.start("inner"))
        yield Link(
            kind="base",
            target=target.name,
            headings=target.headings,
            block=target.block,
            alias=None,
            start=match.start("inner"),
            stop=match.end("inner"),
            target_start=target.start,
            target_stop=target.stop,
            line=lines.line_number(match.start("inner")),
            key=key,
        )

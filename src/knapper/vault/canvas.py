"""Parse Obsidian canvas and base files into links and searchable text."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from knapper import jsonscan
from knapper.jsonscan import InvalidJSONError, JSONString, OffsetMap
from knapper.vault import frontmatter, markdown, parser, source
from knapper.vault.frontmatter import InvalidYAMLError
from knapper.vault.source import Lines, Link, LinkKind, Outline, Passage, Problem

_TEXT_FIELDS: Final = frozenset({"text", "label"})
_FILE_FIELDS: Final = frozenset({"file", "background"})
_FIELD_PATH_LENGTH: Final = 3
"""``nodes``, the node's number, and the name of its field."""


def parse_canvas(raw: bytes) -> Outline:
    """Parse a canvas file; damaged content is reported in ``problems``.

    Links have the kind ``canvas``, or ``external``, and their node's id as key. A card's file is a link whose target
    span is the JSON string between its quotes; where it has a ``subpath``, ``start`` and ``stop`` span that one. Links
    in texts are spans of the text as written in the JSON, escapes included.

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
        message = f"the canvas can't be read as JSON in line {line}: {error.reason}"
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
    """The strings of a canvas, by node."""

    def __init__(self, data: bytes, base: int) -> None:
        text = data[base:].decode()
        self._text: str = text
        self._lines: Lines = source.measure_lines(data)
        self._offsets: Sequence[int] = frontmatter.list_byte_offsets(text, base)
        self._strings: list[JSONString] = []
        self._ids: dict[tuple[str | int, ...], str] = {}
        for string in jsonscan.find_strings(text) if text.strip() else ():
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
                subpath = subpaths.get(string.path[:2]) if name == "file" else None
                link = self._link("canvas", string, subpath or string)
                if subpath is not None:
                    headings, block = markdown.split_fragment(subpath.value)
                    link = link._replace(headings=headings, block=block)
                link_list.append(link)
            elif name == "url" and string.value:
                link_list.append(self._link("external", string, string))
            elif name == "text" and ("[" in string.value or "://" in string.value):
                # A card's text is Markdown; the spans of its links are mapped to the JSON.
                places = OffsetMap(self._text[string.start : string.stop], self._offsets[string.start])
                link_list += [
                    link._replace(
                        kind="external" if link.kind == "external" else "canvas",
                        start=places.file_offset(link.start),
                        stop=places.file_offset(link.stop),
                        target_start=places.file_offset(link.target_start),
                        target_stop=places.file_offset(link.target_stop),
                        line=self._lines.line_number(places.file_offset(link.start)),
                        key=self._key(string),
                    )
                    for link in parser.parse_links(string.value.encode()).links
                ]
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

    def _key(self, string: JSONString) -> str:
        return self._ids.get(string.path[:2], "")

    def _link(self, kind: LinkKind, target: JSONString, span: JSONString) -> Link:
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


_LINK_CALL: Final = re.compile(
    rb"(?:(?<![A-Za-z0-9_.])(?:link|file|image)|\.hasLink)\([ \t]*\\?([\"'])(?P<inner>[^\"'\\\r\n]+)\\?\1"
)


def parse_base(raw: bytes) -> Outline:
    """Parse a Bases file; damaged content is reported in ``problems``.

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
        message = f"the base can't be read as YAML in line {line}: {error.reason}"
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
        text_links = [link._replace(kind="base") for link in frontmatter.find_wikilinks(data, span, (key, node), lines)]
        for match in _LINK_CALL.finditer(data, *span):
            inner, (start, stop) = match["inner"], match.span("inner")
            if inner.startswith(b"[["):
                continue
            target, _ = markdown.parse_wikilink_target(inner, start)
            text_links.append(
                Link(
                    kind="base",
                    target=target.name,
                    headings=target.headings,
                    block=target.block,
                    alias=None,
                    start=start,
                    stop=stop,
                    target_start=target.start,
                    target_stop=target.stop,
                    line=lines.line_number(start),
                    key=key,
                )
            )
        yield from sorted(text_links, key=lambda link: link.start)

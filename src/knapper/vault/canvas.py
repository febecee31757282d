"""Read a canvas: the files and addresses on it, and its texts with their links."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from knapper.vault import frontmatter, json_strings, lines, link_text, source
from knapper.vault import parse as markdown
from knapper.vault.json_strings import InvalidJSONError, Places, String
from knapper.vault.lines import Lines
from knapper.vault.outline import Link, LinkKind, Outline, Passage, Problem

_TEXTS: Final = frozenset({"text", "label"})
_FILES: Final = frozenset({"file", "background"})
_PATH_LENGTH: Final = 3
"""``nodes``, the node's number, and the name of its field."""


def parse(raw: bytes) -> Outline:
    """Read a canvas file; no bytes are too broken for it.

    Links have the kind ``canvas``, or ``external``, and their node's id as key. A card's file is a link whose target
    span is the JSON string between its quotes; where it has a ``subpath``, ``start`` and ``stop`` span that one. Links
    in texts are spans of the text as the JSON writes it, escapes included.

    Returns:
        An outline without sections and blocks; ``passages`` are the texts and labels.
    """
    read_source = source.decode(raw)
    data = read_source.data
    base = frontmatter.start(data)
    problems = read_source.problems
    links: list[Link] = []
    passages: list[Passage] = []
    try:
        reader = _Canvas(data, base)
        links, passages = reader.links(), reader.passages()
    except InvalidJSONError as error:
        line = lines.count(data, base + len(data[base:].decode()[: error.index].encode()))
        message = f"The canvas can't be read as JSON in line {line}: {error.reason}."
        problems = (*problems, Problem(code="invalid_json", message=message, line=line))
    return Outline(
        encoding=read_source.encoding,
        newline=lines.ending(data),
        line_starts=lines.starts(data),
        body_start=base,
        links=tuple(links),
        problems=problems,
        passages=tuple(passages),
    )


class _Canvas:
    """Hold a canvas's strings, by node."""

    def __init__(self, data: bytes, base: int) -> None:
        text = data[base:].decode()
        self._text: str = text
        self._lines: Lines = lines.of(data)
        self._offsets: Sequence[int] = frontmatter.byte_offsets(text, base)
        self._strings: list[String] = []
        self._ids: dict[tuple[str | int, ...], str] = {}
        for string in json_strings.read(text) if text.strip() else ():
            if len(string.path) == _PATH_LENGTH and string.path[0] in {"nodes", "edges"}:
                self._strings.append(string)
                if string.path[2] == "id":
                    self._ids[string.path[:2]] = string.value

    def links(self) -> list[Link]:
        """List the links of all nodes in order."""
        subpaths = {string.path[:2]: string for string in self._strings if string.path[2] == "subpath"}
        found: list[Link] = []
        for string in self._strings:
            name = string.path[2]
            if name in _FILES and string.value:
                found.append(self._file(string, subpaths if name == "file" else {}))
            elif name == "url" and string.value:
                found.append(self._link("external", string, string))
            elif name == "text":
                found += self._in_text(string)
        return sorted(found, key=lambda link: link.target_start)

    def passages(self) -> list[Passage]:
        """List the texts and labels of nodes and edges."""
        return [
            Passage(
                text=string.value,
                start=self._offsets[string.start],
                stop=self._offsets[string.stop],
                line=self._lines.number(self._offsets[string.start]),
                key=self._key(string),
            )
            for string in self._strings
            if string.path[2] in _TEXTS and string.value.strip()
        ]

    def _key(self, string: String) -> str:
        return self._ids.get(string.path[:2], "")

    def _file(self, string: String, subpaths: Mapping[tuple[str | int, ...], String]) -> Link:
        subpath = subpaths.get(string.path[:2])
        link = self._link("canvas", string, subpath or string)
        if subpath is None:
            return link
        headings, block = link_text.fragment(subpath.value)
        return replace(link, headings=headings, block=block)

    def _link(self, kind: LinkKind, target: String, span: String) -> Link:
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
            line=self._lines.number(self._offsets[target.start]),
            key=self._key(target),
        )

    def _in_text(self, string: String) -> Iterator[Link]:
        """Read a card's text as Markdown, and move its links to where the JSON writes them."""
        if "[" not in string.value and "://" not in string.value:
            return
        start = self._offsets[string.start]
        places = Places(self._text[string.start : string.stop], start)
        for link in markdown.parse(string.value.encode()).links:
            yield replace(
                link,
                kind="external" if link.kind == "external" else "canvas",
                start=places.at(link.start),
                stop=places.at(link.stop),
                target_start=places.at(link.target_start),
                target_stop=places.at(link.target_stop),
                line=self._lines.number(places.at(link.start)),
                key=self._key(string),
            )

"""Walk the Markdown parser's events once, and keep what an outline is made of."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Literal, cast

import pyromark
from pyromark import Options

from knapper.vault.outline import BlockKind

LinkForm = Literal["wiki", "inline", "reference", "auto"]

_BARE_CR: Final = re.compile(r"\r(?!\n)")
_OPTIONS: Final = (
    Options.ENABLE_TABLES
    | Options.ENABLE_FOOTNOTES
    | Options.ENABLE_STRIKETHROUGH
    | Options.ENABLE_TASKLISTS
    | Options.ENABLE_MATH
    | Options.ENABLE_GFM
    | Options.ENABLE_WIKILINKS
)
_FORMS: Final[dict[str, LinkForm]] = {
    "Inline": "inline",
    "Reference": "reference",
    "Collapsed": "reference",
    "Shortcut": "reference",
    "Autolink": "auto",
    "Email": "auto",
}
_BLOCKS: Final[dict[str, BlockKind]] = {
    "Paragraph": "paragraph",
    "Heading": "heading",
    "List": "list",
    "Table": "table",
    "CodeBlock": "code",
    "BlockQuote": "quote",
    "HtmlBlock": "html",
    "FootnoteDefinition": "paragraph",
    "Rule": "rule",
}
_ROWS: Final = frozenset({"Item", "TableHead", "TableRow"})
_ANCHORS: Final = frozenset({"Link", "Image"})
_CLOSED: Final = frozenset({*_BLOCKS, "Item"})
"""What an end event without data closes; one with data closes a heading, a list or a quote."""
_ENDING_LENGTH: Final = 2
_MAX_NESTED: Final = 20
"""Images in each other's texts: each text holds all that are inside, so many levels would take quadratic room."""


@dataclass(slots=True)
class Part:
    """Hold one block of any depth; a span that the parser gave, trailing blank lines included."""

    kind: BlockKind | Literal["item"]
    start: int
    stop: int
    parent: "Part | None"
    """The block that it stands in; None for one of the note's own."""
    level: int = 0
    """Of a heading."""
    own_stop: int = 0
    """Of an item: where its first sub-list begins; 0 where it has none."""
    rows: list[int] = field(default_factory=list[int])
    """Starts of a list's items or a table's rows."""


@dataclass(slots=True)
class Anchor:
    """Hold one link as the parser saw it."""

    form: LinkForm
    image: bool
    start: int
    stop: int
    destination: str
    """Unescaped; of a wikilink with its fragment."""
    label: str
    """Of a reference link."""
    text_stop: int
    """Where the link's text ends at the latest known."""

    @property
    def bare_start(self) -> int:
        """Tell where nothing is a tag any more: a Markdown link's text may hold some, an image and a wikilink none."""
        return self.start if self.image or self.form in {"wiki", "auto"} else self.text_stop


@dataclass(slots=True)
class Events:
    """Hold everything that one pass over the parser's events found, in order of position."""

    parts: list[Part] = field(default_factory=list[Part])
    anchors: list[Anchor] = field(default_factory=list[Anchor])
    code: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """Fences and inline code."""
    html: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    math: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    openings: dict[int, int] = field(default_factory=dict[int, int])
    """Where text that begins with ``#`` begins anew, as in ``**#tag**`` or a table's cell, and where it stops."""


def read(text: str, base: int) -> Events:
    """Parse Markdown.

    Args:
        text: A note's body.
        base: Byte offset of the body in its file; every span is moved by it.
    """
    walk = _Walk(base)
    if "\r" in text:
        text = _BARE_CR.sub("\n", text)  # pyromark 0.10 reads on over a bare one in indented code
    events = pyromark.events_with_range(text, options=_OPTIONS, merge_text=True)
    walk.run(cast("Iterable[tuple[dict[str, object] | str, dict[str, int]]]", events))
    return walk.found


def definitions(text: str, base: int) -> dict[str, tuple[int, int]]:
    """Find the definitions of reference links: folded label to span."""
    found = pyromark.reference_definitions(text, options=_OPTIONS)
    spans = {label(name): definition["span"] for name, definition in found.items()}
    return {name: (base + span["start"], base + span["end"]) for name, span in spans.items()}


def label(name: str) -> str:
    """Fold a reference's label as CommonMark compares labels."""
    return " ".join(name.split()).casefold()


class _Walk:
    """Keep the open blocks and links while events go by."""

    def __init__(self, base: int) -> None:
        self.found: Events = Events()
        self._base: int = base
        self._open: list[Part] = []
        """Open blocks, outermost first."""
        self._anchors: list[Anchor] = []
        """Open links; an image may stand in a link."""
        self._fresh: bool = False
        """Whether an inline span or a cell has just begun, so that text begins anew."""

    def run(self, events: Iterable[tuple[dict[str, object] | str, dict[str, int]]]) -> None:
        """Read all events."""
        base = self._base
        anchors = self._anchors
        for event, span in events:
            if isinstance(event, str):
                if event == "Rule":
                    self._block_start("Rule", None, base + span["start"], base + span["end"])
                continue
            ((kind, value),) = event.items()
            if kind == "Text":
                if anchors:
                    anchors[-1].text_stop = base + span["end"]
                if self._fresh:
                    self._text(str(value), base + span["start"], base + span["end"])
            elif kind == "Start":
                self._start(value, base + span["start"], base + span["end"])
            elif kind == "End":
                self._stop(value, base + span["end"])
            else:
                self._leaf(kind, base + span["start"], base + span["end"])

    def _text(self, text: str, start: int, stop: int) -> None:
        self._fresh = False
        if text.startswith("#"):
            self.found.openings[start] = stop

    def _leaf(self, kind: str, start: int, stop: int) -> None:
        self._fresh = False
        if kind == "Code":
            self.found.code.append((start, stop))
        elif kind == "InlineHtml":
            self.found.html.append((start, stop))
        elif kind in {"InlineMath", "DisplayMath"}:
            self.found.math.append((start, stop))
            part = self._open[-1]
            if part.start == start and part.stop - stop <= _ENDING_LENGTH and kind == "DisplayMath":
                part.kind = "math"
        if self._anchors:
            self._anchors[-1].text_stop = stop

    def _start(self, tag: object, start: int, stop: int) -> None:
        name, data = (tag, None) if isinstance(tag, str) else _named(tag)
        if name in _BLOCKS:
            self._block_start(name, data, start, stop)
        elif name in _ROWS:
            self._row_start(name, start, stop)
        else:
            self._fresh = True
            if name in _ANCHORS:
                self._anchor_start(name, cast("dict[str, object]", data), start, stop)

    def _block_start(self, name: str, data: object, start: int, stop: int) -> None:
        parent = self._open[-1] if self._open else None
        part = Part(_BLOCKS[name], start, stop, parent)
        self.found.parts.append(part)
        if name == "Rule":
            return
        self._open.append(part)
        if name == "Heading":
            part.level = int(str(cast("dict[str, object]", data)["level"])[1:])
        elif name == "List" and parent is not None and parent.kind == "item" and not parent.own_stop:
            parent.own_stop = start
        elif name == "CodeBlock":
            self.found.code.append((start, stop))
        elif name == "HtmlBlock":
            self.found.html.append((start, stop))

    def _row_start(self, name: str, start: int, stop: int) -> None:
        owner = self._open[-1]
        owner.rows.append(start)
        if name == "Item":
            part = Part("item", start, stop, owner)
            self.found.parts.append(part)
            self._open.append(part)

    def _anchor_start(self, name: str, data: dict[str, object], start: int, stop: int) -> None:
        link_type = data["link_type"]
        form: LinkForm = _FORMS.get(link_type, "inline") if isinstance(link_type, str) else "wiki"
        text_start = start + (2 if name == "Image" else 1)
        anchor = Anchor(form, name == "Image", start, stop, str(data["dest_url"]), str(data["id"]), text_start)
        if len(self._anchors) < _MAX_NESTED:
            self.found.anchors.append(anchor)
        self._anchors.append(anchor)

    def _stop(self, tag: object, stop: int) -> None:
        self._fresh = False
        if not isinstance(tag, str) or tag in _CLOSED:
            _ = self._open.pop()
        elif tag in _ANCHORS:
            _ = self._anchors.pop()
        if self._anchors:
            self._anchors[-1].text_stop = stop


def _named(tag: object) -> tuple[str, object]:
    ((name, data),) = cast("dict[str, object]", tag).items()
    return name, data

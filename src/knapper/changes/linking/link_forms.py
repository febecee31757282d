"""Write a link's target the way the link was written: wikilink or Markdown, in text, JSON or YAML."""

import html
import json
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

from knapper.changes.linking import yaml_scalars
from knapper.changes.linking.yaml_scalars import Scalar, ScalarStyle
from knapper.vault.outline import Link, Outline
from knapper.vault.walk import FileKind

Markup = Literal["wikilink", "markdown", "path"]
Container = Literal["text", "json"] | ScalarStyle

_OPENING: Final = re.compile(r"!?\[\[")
_NOT_IN_WIKILINK: Final = re.compile(r"[\[\]|#^\r\n]|%%")
_NOT_IN_CALL: Final = re.compile(r"[\"'\\\[\]|#^\r\n]")
_NOT_IN_DESTINATION: Final = re.compile(r"[\x00-\x20\x7f()<>\\#%|`$\xa0\u2028\u2029]")
_NOT_IN_BRACKETS: Final = re.compile(r"[\x00-\x1f\x7f<>\\#%|`$]")
_QUOTES: Final = re.compile(r"[\"']")
_LETTERS: Final = re.compile(r"[^\x00-\x7f]+")
_ENCODED_LETTER: Final = re.compile(rb"%[89A-Fa-f][0-9A-Fa-f]")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    r"""Hold how one link's target is written.

    ``[a](<my%20notes/b.md>)`` has the pieces ``my%20notes`` and ``b.md``, the markup ``markdown``, and is bracketed.
    """

    markup: Markup
    container: Container
    pieces: tuple[bytes, ...]
    """The target between its slashes, as the file has it; empty where it can't be cut like the target itself."""
    bracketed: bool = False
    """In ``<>``."""
    encodes_letters: bool = False
    """Letters beyond ASCII are written with percent signs, or with escapes in JSON."""
    escapes_slashes: bool = False
    r"""JSON with ``\/``."""
    scalar: Scalar | None = None
    """The YAML scalar that holds it."""

    @property
    def slash(self) -> bytes:
        """Give what stands between two parts."""
        return b"\\/" if self.escapes_slashes else b"/"

    def write(self, part: str) -> bytes | None:
        """Write one part of a path; None where a link of this form can't hold it."""
        if self.markup == "wikilink" and _NOT_IN_WIKILINK.search(part):
            return None
        if self.markup == "path" and self.container != "json" and _NOT_IN_CALL.search(part):
            return None
        text = self._destination(part) if self.markup == "markdown" else part
        match self.container:
            case "json":
                return json.dumps(text, ensure_ascii=self.encodes_letters)[1:-1].encode()
            case "single":
                return text.replace("'", "''").encode()
            case "double":
                return json.dumps(text, ensure_ascii=False)[1:-1].encode()
            case "text" | "plain" | "block":
                return text.encode()

    def _destination(self, part: str) -> str:
        """Write a part of a Markdown link's destination, with percent signs where it needs them."""
        text = (_NOT_IN_BRACKETS if self.bracketed else _NOT_IN_DESTINATION).sub(_percent, part)
        if self.container != "text":
            text = _QUOTES.sub(_percent, text)
        if html.unescape(text) != text:
            text = text.replace("&", "%26")
        if _SCHEME.match(text):
            text = text.replace(":", "%3A", 1)
        return _LETTERS.sub(_percent, text) if self.encodes_letters else text


class Forms:
    """Tell how the links of one file are written."""

    def __init__(self, raw: bytes, kind: FileKind, outline: Outline) -> None:
        """Look at a file.

        Args:
            raw: Its bytes, in which the spans of its links count.
            kind: Its kind.
            outline: What was read from it.
        """
        self._raw: bytes = raw
        self._kind: FileKind = kind
        self._outline: Outline = outline

    def of(self, link: Link) -> Form:
        """Tell how a link to a file is written."""
        written = self._raw[link.target_start : link.target_stop]
        scalar = self._scalar(link.target_start) if link.kind in {"property", "base"} else None
        container: Container = "json" if link.kind == "canvas" else scalar.style if scalar else "text"
        markup = self._markup(link)
        escapes_slashes = container == "json" and b"\\/" in written
        cut = written.split(b"\\/" if escapes_slashes else b"/")
        return Form(
            markup=markup,
            container=container,
            pieces=tuple(cut) if len(cut) == len(link.target.split("/")) else (),
            bracketed=markup == "markdown" and self._raw[link.target_start - 1 : link.target_start] == b"<",
            encodes_letters=self._encodes_letters(markup, container, written),
            escapes_slashes=escapes_slashes,
            scalar=scalar,
        )

    @cached_property
    def are_dotted(self) -> bool:
        """Tell whether the file's links to what lies below its folder begin with ``./``."""
        return any(link.target.startswith("./") for link in self._outline.links)

    def _scalar(self, at: int) -> Scalar | None:
        return next((scalar for scalar in self._scalars if scalar.start <= at < scalar.stop), None)

    @cached_property
    def _scalars(self) -> list[Scalar]:
        return yaml_scalars.read(self._raw, self._kind, self._outline)

    def _markup(self, link: Link) -> Markup:
        if link.kind in {"wikilink", "embed"}:
            return "wikilink"
        if link.kind in {"markdown", "image"}:
            return "markdown"
        if is_card(self._raw, link):
            return "path"
        before = self._raw[link.start : link.target_start].decode(errors="replace")
        if _OPENING.match(str(json.loads(f'"{before}"')) if link.kind == "canvas" else before):
            return "wikilink"
        return "path" if link.kind == "base" else "markdown"

    def _encodes_letters(self, markup: Markup, container: Container, written: bytes) -> bool:
        """Tell how letters beyond ASCII are written: as the target itself does, where it has any."""
        if container == "json" and markup != "markdown":
            return written.isascii() and b"\\u" in written
        encoded = written.isascii() and _ENCODED_LETTER.search(written) is not None
        return markup == "markdown" and (encoded or self._outline.encoding == "unknown")


def is_card(raw: bytes, link: Link) -> bool:
    """Tell whether a link is a canvas's card that shows a file, and not a link in a card's text."""
    around = raw[link.target_start - 1 : link.target_start] + raw[link.target_stop : link.target_stop + 1]
    return link.kind == "canvas" and around == b'""'


def _percent(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found.group().encode())

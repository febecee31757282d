"""Hold a file that may have links: a note, a canvas or a base."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from knapper.vault import canvas, parser, source
from knapper.vault.outline import Link, Outline
from knapper.vault.paths import NotePath
from knapper.vault.walk import FileKind

PARSERS: Final[Mapping[str, Callable[[bytes], Outline]]] = {
    "note": parser.parse_note,
    "canvas": canvas.parse_canvas,
    "base": canvas.parse_base,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Hold a file that may have links."""

    path: NotePath
    raw: bytes
    kind: FileKind
    _outlines: dict[bytes, Outline] = field(default_factory=dict[bytes, Outline], init=False, repr=False, compare=False)

    @property
    def outline(self) -> Outline:
        """Give what the file's bytes say."""
        return self.reread(self.raw)

    def reread(self, raw: bytes) -> Outline:
        """Read the file as if it held other bytes, each only once: the way back leads to bytes that it once held."""
        if raw not in self._outlines:
            self._outlines[raw] = PARSERS[self.kind](raw)
        return self._outlines[raw]

    def line(self, link: Link) -> int:
        """Tell in which line a link's target stands."""
        return source.Lines(starts=self.outline.line_starts, size=len(self.raw)).number(link.target_start)

    def shown(self, link: Link) -> tuple[int, int]:
        """Give the whole link, or the target alone where that stands elsewhere: in a definition, or on a card."""
        if link.start <= link.target_start and link.target_stop <= link.stop:
            return link.start, link.stop
        return link.target_start, link.target_stop

    def takes(self, new: bytes) -> bool:
        """Tell whether bytes can be put in: UTF-16 isn't edited, and a file of unknown encoding takes ASCII alone."""
        return self.outline.encoding != "utf-16" and (self.outline.encoding != "unknown" or new.isascii())

"""Show an answer while it comes: as Markdown, block by block, on a terminal, and as it is elsewhere."""

import re
from collections.abc import Callable
from typing import Final

from knapper.cli.output import plain

_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
Show = Callable[[str], None]


class Blocks:
    """Cut Markdown that comes in pieces into whole blocks."""

    def __init__(self, show: Show) -> None:
        """Take what shows a block."""
        self._show = show
        self._open = ""

    def feed(self, text: str) -> None:
        """Take a piece; shows each block that it ends."""
        self._open += text
        while (end := _end(self._open)) > 0:
            block, self._open = self._open[:end], self._open[end:]
            if block.strip():
                self._show(block)

    def flush(self) -> None:
        """Show what is left."""
        if self._open.strip():
            self._show(self._open)
        self._open = ""


def markdown(width: int, *, colour: bool) -> Show:
    """Give what shows a block of Markdown on a terminal."""
    from rich.console import Console  # noqa: PLC0415 - 60 ms that only a terminal should cost
    from rich.markdown import Markdown  # noqa: PLC0415 - the same

    console = Console(width=width, no_color=not colour, highlight=False)

    def show(block: str) -> None:
        console.print(Markdown(plain(block), hyperlinks=False))
        console.print()

    return show


def _end(text: str) -> int:
    """Find where the first whole block ends: at a blank line outside of a fence; 0 where none ends yet."""
    fence, at = "", 0
    for line in text.splitlines(keepends=True):
        at += len(line)
        found = _FENCE.match(line)
        if fence:
            if found and line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        elif found:
            fence = found.group(1)
        elif not line.strip() and line.endswith("\n") and text[: at - len(line)].strip():
            return at
    return 0

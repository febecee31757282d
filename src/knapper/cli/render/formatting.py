"""Format counts, sizes, durations, differences, Markdown and progress lines."""

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

import click

from knapper.cli.output import plain

if TYPE_CHECKING:
    from knapper.index.refresh import RefreshPhase

_KILO = 1_000
_MINUTE_S = 60


def pluralize(number: int, noun: str) -> str:
    """Count things: ``1 note``, ``2 notes``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def format_size(number: float) -> str:
    """Write a size in bytes: ``320 B``, ``1.2 MB``."""
    for unit in ("B", "kB", "MB"):
        if number < _KILO:
            return f"{number:.0f} B" if unit == "B" else f"{number:.1f} {unit}"
        number /= _KILO
    return f"{number:.1f} GB"


def format_duration(seconds: float) -> str:
    """Write a time span: ``0.42 s``, ``12.3 s``, ``3 min 20 s``."""
    if seconds < 1:
        return f"{seconds:.2f} s"
    if seconds < _MINUTE_S:
        return f"{seconds:.1f} s"
    return f"{int(seconds // _MINUTE_S)} min {int(seconds % _MINUTE_S)} s"


_DIFF_COLOURS: Final = {"removed": "red", "added": "green"}
_DIFF_SIGNS: Final = {"removed": "-", "added": "+"}
_NO_NEWLINE: Final = "\\ No newline at end of file"


def colour_diff(text: str) -> str:
    """Colour what ``diff -u`` writes."""
    return "\n".join(_colour_line(row) for row in plain(text.replace("\r", "")).removesuffix("\n").split("\n"))


def diff_block(before: str, after: str) -> str:
    """Return the lines in which two texts differ, as a block of code for Markdown."""
    import difflib  # noqa: PLC0415 - most of what is printed is no difference

    rows = difflib.unified_diff(before.strip().splitlines(), after.strip().splitlines(), lineterm="", n=0)
    changed = [row for row in islice(rows, 2, None) if not row.startswith("@@")]
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", "".join(changed))), default=0))
    return "\n".join([f"{fence}diff", *changed, fence])


def _colour_line(row: str) -> str:
    if row.startswith(("--- ", "+++ ")):
        return click.style(row, bold=True)
    match row[:1]:
        case "-":
            return click.style(row, fg="red")
        case "+":
            return click.style(row, fg="green")
        case "@":
            return click.style(row, fg="cyan")
        case _:
            return row


def render_word_diff(marks: Iterable[Sequence[str]]) -> str:
    """Show two texts line by line, the old one first, from marks such as ``["removed", "text"]``."""
    every = [(mark[0], mark[1]) for mark in marks]
    is_mixed = any(side == "same" for side, _ in every)
    return "\n".join(row for side in ("removed", "added") for row in _render_side(every, side, is_mixed=is_mixed))


def _render_side(marks: Iterable[tuple[str, str]], side: str, *, is_mixed: bool) -> Iterator[str]:
    rows: list[list[str]] = [[]]
    for own, text in marks:
        if own not in {"same", side}:
            continue
        first, *rest = plain(text.replace("\r\n", "\n").replace("\r", "\n")).split("\n")
        strong = is_mixed and own == side
        _append_styled(rows[-1], first, side, strong=strong)
        for piece in rest:
            rows.append([])
            _append_styled(rows[-1], piece, side, strong=strong)
    is_unended = bool(rows[-1])
    if not is_unended:
        rows.pop()
    sign = click.style(_DIFF_SIGNS[side], fg=_DIFF_COLOURS[side])
    yield from (sign + "".join(row) for row in rows)
    if is_unended:
        yield _NO_NEWLINE


def _append_styled(row: list[str], text: str, side: str, *, strong: bool) -> None:
    if text:
        row.append(click.style(text, fg=_DIFF_COLOURS[side], bold=strong or None, underline=strong or None))


_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
ShowBlock = Callable[[str], None]


class MarkdownBlocks:
    """Splits streamed Markdown into whole blocks."""

    def __init__(self, show: ShowBlock) -> None:
        """Take what shows a block."""
        self._show_block = show
        self._buffer = ""

    def feed(self, text: str) -> None:
        """Take a piece; shows each block that it ends."""
        self._buffer += text
        while (end := _find_block_end(self._buffer)) > 0:
            block, self._buffer = self._buffer[:end], self._buffer[end:]
            if block.strip():
                self._show_block(block)

    def flush(self) -> None:
        """Show what is left."""
        if self._buffer.strip():
            self._show_block(self._buffer)
        self._buffer = ""


def markdown_printer(width: int, *, colour: bool) -> ShowBlock:
    """Return a function that prints a block of Markdown on a terminal."""
    from rich.console import Console  # noqa: PLC0415 - 60 ms that only a terminal should cost
    from rich.markdown import Markdown  # noqa: PLC0415 - the same

    console = Console(width=width, no_color=not colour, highlight=False)

    def show(block: str) -> None:
        console.print(Markdown(plain(block), hyperlinks=False))
        console.print()

    return show


def _find_block_end(text: str) -> int:
    """Find where the first whole block ends: at a blank line outside of a fence; 0 where none ends yet."""
    fence, at = "", 0
    for line in text.splitlines(keepends=True):
        at += len(line)
        fence_match = _FENCE.match(line)
        if fence:
            if fence_match and line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        elif fence_match:
            fence = fence_match.group(1)
        elif not line.strip() and line.endswith("\n") and text[: at - len(line)].strip():
            return at
    return 0


_PROGRESS_INTERVAL_S = 5.0
PHASE_NAMES: "dict[RefreshPhase, str]" = {
    "scan": "looked at",
    "read": "read",
    "embed": "embedded",
    "publish": "published",
}
PHASE_UNITS: "dict[RefreshPhase, str]" = {"scan": "files", "read": "files", "embed": "chunks", "publish": "notes"}


class ProgressLines:
    """Progress as an occasional line."""

    def __init__(self, *, every_s: float = _PROGRESS_INTERVAL_S) -> None:
        """Start the clock; a line is due *every_s* seconds."""
        self._every_s = every_s
        self._last = time.monotonic()

    def __call__(self, phase: "RefreshPhase", done: int, total: int) -> None:
        """Print how far the work is, unless that was just said."""
        if time.monotonic() - self._last >= self._every_s:
            self._last = time.monotonic()
            of = f" of {total}" if total else ""
            click.echo(f"{PHASE_NAMES[phase]} {done}{of} {PHASE_UNITS[phase]}", err=True)

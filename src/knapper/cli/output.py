"""Print results, notes and errors, each with its exit code; ask the person; format counts, sizes and progress lines."""

import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from itertools import islice
from typing import TYPE_CHECKING, Final

import click

from knapper.cli.options import GlobalOptions
from knapper.errors import CallerError, ConflictError, KnapError, RefusedError, SetupError, StorageError

if TYPE_CHECKING:
    from knapper.index.refresh import RefreshPhase


_BIDI: Final = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""Marks, embeddings, overrides and isolates of the bidirectional algorithm (Unicode annex 9)."""
_TAGS: Final = "\U000e0000-\U000e007f"
"""Letters that show nothing: text for models alone can be written in them."""
_CONTROL: Final = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_BIDI}{_TAGS}]")
_CONTROL_BUT_COLOURS: Final = re.compile(f"[\x7f-\x9f{_BIDI}]")
"""Without those that escape sequences of our own colours are made of."""
_REPLACEMENT: Final = "\ufffd"


def plain(text: str) -> str:
    """Replace control characters, marks of direction and invisible letters: a note's text must only be displayed."""
    return _CONTROL.sub(_REPLACEMENT, text)


def keep_colours(text: str) -> str:
    """Replace the same in text that may hold escape sequences of our own; what is others' was made `plain` before."""
    return _CONTROL_BUT_COLOURS.sub(_REPLACEMENT, text)


def dump_json(data: object, *, indent: int | None = 2) -> str:
    r"""Return JSON in which the same characters are escaped, so that no text is lost: ``\u009b``."""
    text = json.dumps(data, ensure_ascii=False, indent=indent)
    # They occur in strings alone; JSON escapes the other control characters itself.
    return _CONTROL_BUT_COLOURS.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


class ExitCode(IntEnum):
    """How a command ended, for scripts."""

    OK = 0
    NOTHING = 1
    USAGE = 2
    SETUP = 3
    REFUSED = 4
    CONFLICT = 5
    STORAGE = 6
    PARTIAL = 7
    FAILED = 8
    INTERRUPTED = 130


MEANINGS: Final[Mapping[ExitCode, tuple[str, str]]] = {
    ExitCode.OK: ("it worked", "nobody"),
    ExitCode.NOTHING: ("nothing was found, a check failed, or a part couldn't be done", "look at what is printed"),
    ExitCode.USAGE: (
        "the command or an argument can't be used as it is, or names what isn't there",
        "mend the call",
    ),
    ExitCode.SETUP: (
        "something isn't configured or installed: no vault, a broken configuration, no model",
        "mend the setup; `knap doctor` helps",
    ),
    ExitCode.REFUSED: ("the policy refuses", "the vault's owner"),
    ExitCode.CONFLICT: ("a note changed meanwhile, or another process holds what is needed", "try again"),
    ExitCode.STORAGE: (
        "the disk, a permission or a damaged state file stands in the way",
        "make room, or set permissions",
    ),
    ExitCode.PARTIAL: (
        "`run`: there is an answer, though some of its parts have none, or its plan or Code Mode broke off",
        "look at what it says is missing; `knap run resume ID` tries again",
    ),
    ExitCode.FAILED: ("`run`: there is no answer", "look at the reasons; `knap run trace tree ID`"),
    ExitCode.INTERRUPTED: ("Ctrl-C; nothing is broken, and the same command continues from there", "nobody"),
}
"""What each code means, and who acts."""

_FOUND_NOTHING: Final = {ExitCode.NOTHING: "nothing matches, though something may be offered as nearest in meaning"}
_WRITTEN: Final = {ExitCode.NOTHING: "a part couldn't be done"}
_SILENT: Final = {ExitCode.NOTHING: "no server answers"}
_RUN: Final = {code: MEANINGS[code][0].removeprefix("`run`: ") for code in (ExitCode.PARTIAL, ExitCode.FAILED)}
SPECIAL: Final[Mapping[str, Mapping[ExitCode, str]]] = {
    "search": _FOUND_NOTHING,
    "find": _FOUND_NOTHING,
    "ask": {ExitCode.NOTHING: "nothing matches, or no note was chosen"},
    "run start": _RUN,
    "run resume": _RUN,
    "run cancel": {ExitCode.NOTHING: "it had ended already"},
    "open": {ExitCode.SETUP: "no editor is named, or nothing here opens the address"},
    "new": _WRITTEN,
    "write": {ExitCode.NOTHING: "a part couldn't be done, or you said no"},
    "edit": _WRITTEN,
    "section": _WRITTEN,
    "props": _WRITTEN,
    "tags rename": _WRITTEN,
    "move": _WRITTEN,
    "rm": _WRITTEN,
    "undo": {**_WRITTEN, ExitCode.CONFLICT: "a note changed since; with --dry-run, undoing would fail"},
    "edits accept": {ExitCode.NOTHING: "a part couldn't be done, or you said no"},
    "service install": _SILENT,
    "service start": _SILENT,
    "service restart": _SILENT,
    "service status": _SILENT,
    "tool": {ExitCode.NOTHING: "the tool, or the script that it ran, failed"},
    "script": {ExitCode.NOTHING: "the script failed", ExitCode.REFUSED: "the sandbox refused it"},
    "doctor": {ExitCode.NOTHING: "a check failed"},
    "models": {ExitCode.NOTHING: "no model is set, or none answers"},
    "setup": {ExitCode.SETUP: "a step failed; the others are done"},
    "watch": {ExitCode.OK: "Ctrl-C ended it"},
}
"""What a code means for a single command, by the words after ``knap``."""
TITLE: Final = "Exit codes:"
"""Heads the codes in a command's help."""


def meanings(command_path: str) -> list[tuple[ExitCode, str]]:
    """Return every code that a command may end with, and what it means for it.

    Args:
        command_path: Such as ``knap edits accept``.
    """
    words = command_path.split()[1:]
    special = SPECIAL.get(" ".join(words), {})
    is_run = words[:1] == ["run"] or not words
    return [
        (code, special.get(code, text))
        for code, (text, _) in MEANINGS.items()
        if is_run or code not in {ExitCode.PARTIAL, ExitCode.FAILED}
    ]


def help_text(command_path: str) -> str:
    """Return the codes for the end of a help text: all of the program's, or a command's special ones."""
    words = command_path.split()[1:]
    rows = list(SPECIAL.get(" ".join(words), {}).items()) if words else meanings(command_path)
    if not rows:
        return ""
    lines = [f"  {int(code):>3}  {text.replace('`', '')}" for code, text in rows]
    return "\n".join(["\n\n\b", TITLE, *lines])


_CODE_BY_ERROR = (
    (CallerError, ExitCode.USAGE),
    (SetupError, ExitCode.SETUP),
    (RefusedError, ExitCode.REFUSED),
    (ConflictError, ExitCode.CONFLICT),
    (StorageError, ExitCode.STORAGE),
)


def exit_code(error: KnapError) -> ExitCode:
    """Return the exit code of an error."""
    return next((code for kind, code in _CODE_BY_ERROR if isinstance(error, kind)), ExitCode.USAGE)


COMMAND_HINTS: Final[Mapping[str, str]] = {
    "list the sessions": "`knap sessions` lists them",
    "list the proposals for their ids": "`knap edits list --all` lists them",
    "list the open proposals": "`knap edits` lists those that are open",
    "list the journal for its changes": "`knap log` lists them",
    "list the journal for what was changed": "`knap log` lists what was changed",
    "list the journal for what took it back": "`knap log` shows what undid it",
    "list or search the vault for its name": "`knap find` lists the notes",
    "explore the vault for its folders": "`knap tool explore_vault` lists the folders",
    "give the text in content": "give the text after the heading, or - for the standard input",
}
"""A hint, and what it comes to at a terminal."""
_MATCHES_EXPECTED: Final = re.compile(r"give the number of matches expected, (\d+), to change all")


def command_hint(hint: str) -> str:
    """Return a hint worded for the command line."""
    return COMMAND_HINTS.get(hint, _MATCHES_EXPECTED.sub(r"give --count \1 to change all", hint))


def write(options: GlobalOptions, text: str) -> None:
    """Print a result as text; colours are left out where they aren't wanted or can't be shown."""
    click.echo(keep_colours(text), color=None if sys.stdout.isatty() and wants_colour(options) else False)


def write_json(data: Mapping[str, object]) -> None:
    """Print a result as JSON."""
    click.echo(dump_json(data))


def write_either(options: GlobalOptions, data: Mapping[str, object], text: str) -> None:
    """Print a result, as JSON for programs or as text for a person."""
    if options.as_json:
        write_json(data)
    else:
        write(options, text)


def print_result(options: GlobalOptions, fields: Mapping[str, object], text: str) -> ExitCode:
    """Print a command's result, as JSON for programs or as text for a person.

    Args:
        options: Which of the two, among others.
        fields: The JSON fields, beside ``success``.
        text: The text for a person.
    """
    write_either(options, {"success": True, **fields}, text)
    return ExitCode.OK


def print_answer(options: GlobalOptions, answer: Mapping[str, object], text: str, *, nearest: str = "") -> ExitCode:
    """Print results, and what they may be missing.

    Args:
        options: The shared options.
        answer: A tool's answer; its ``notes`` say what may be missing.
        text: The answer for a person; empty if nothing was found.
        nearest: What is offered if nothing was found; not a result, so on the error stream.

    Returns:
        The exit code for whether something was found.
    """
    if options.as_json:
        write_json(answer)
    elif text:
        write(options, text)
    else:
        note(options, "nothing found")
        if nearest:
            note(options, f"nearest in meaning, which may have nothing to do with it:\n\n{nearest}\n")
    _print_notices(options, answer)
    return ExitCode.OK if answer.get("results") else ExitCode.NOTHING


def describe_dropped(rows: Iterable[Mapping[str, object]]) -> list[str]:
    """Format the citations that were taken out of an answer: each once, with the number of times it stood there."""
    counts = Counter(f"{row['citation']}: {row['reason']}" for row in rows)
    return [f"a citation was dropped{f' {times} times' if times > 1 else ''}: {text}" for text, times in counts.items()]


def print_listing(options: GlobalOptions, answer: Mapping[str, object], text: str, *, nothing: str) -> ExitCode:
    """Print a list, and what it may be missing; an empty list isn't a failure.

    Args:
        options: The shared options.
        answer: A tool's answer.
        text: The list for a person; empty if it has no rows.
        nothing: The text for an empty list.
    """
    if options.as_json:
        write_json(answer)
    elif text:
        write(options, text)
    else:
        note(options, nothing)
    _print_notices(options, answer)
    return ExitCode.OK


def _print_notices(options: GlobalOptions, answer: Mapping[str, object]) -> None:
    from knapper.jsontypes import is_sequence  # noqa: PLC0415 - help and completions import nothing outside the CLI

    notices = answer.get("notes")
    for notice in notices if is_sequence(notices) else ():
        note(options, f"note: {notice}")


def note(options: GlobalOptions, text: str) -> None:
    """Print a remark on the error stream."""
    if not (options.quiet or options.as_json):
        click.echo(keep_colours(text), err=True)


def warn(text: str) -> None:
    """Print a remark that a person must not miss, even with ``--quiet``."""
    click.echo(plain(f"note: {text}"), err=True)


def print_error(message: str, hint: str = "") -> None:
    """Print an error and its hint while the command continues, even with ``--quiet``."""
    click.echo(plain(f"error: {message}"), err=True)
    if hint:
        click.echo(plain(f"hint: {command_hint(hint)}"), err=True)


def wants_colour(options: GlobalOptions) -> bool:
    """Return whether colours are on."""
    from knapper.config import files  # noqa: PLC0415 - 5 ms that only a terminal's colours should cost

    return not options.no_color and files.wants_colour()


def stderr_is_terminal() -> bool:
    """Return whether the error stream is a terminal."""
    return sys.stderr.isatty()


def one_line(text: str) -> str:
    """Show a name or a sentence as one line, so that no part of it looks like our own output."""
    return re.sub(r"[\n\t]", " ", plain(text))


def can_ask() -> bool:
    """Return whether a person can answer: standard input and error are a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def confirm(question: str) -> bool:
    """Ask for a yes; anything else is a no. Ctrl-C ends the command.

    Raises:
        Abort: The person ended the command.
    """
    return click.confirm(question, default=False, err=True)


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


_LINE_COLOURS: Final = {"-": "red", "+": "green", "@": "cyan"}
_DIFF_COLOURS: Final = {"removed": "red", "added": "green"}
_DIFF_SIGNS: Final = {"removed": "-", "added": "+"}
_NO_NEWLINE: Final = "\\ No newline at end of file"


def colour_diff(text: str) -> str:
    """Colour what ``diff -u`` writes."""
    rows = plain(text.replace("\r", "")).removesuffix("\n").split("\n")
    for number, row in enumerate(rows):
        if row.startswith(("--- ", "+++ ")):
            rows[number] = click.style(row, bold=True)
        elif row[:1] in _LINE_COLOURS:
            rows[number] = click.style(row, fg=_LINE_COLOURS[row[:1]])
    return "\n".join(rows)


def diff_block(before: str, after: str) -> str:
    """Return the lines in which two texts differ, as a block of code for Markdown."""
    import difflib  # noqa: PLC0415 - most of what is printed is no difference

    rows = difflib.unified_diff(before.strip().splitlines(), after.strip().splitlines(), lineterm="", n=0)
    changed = [row for row in islice(rows, 2, None) if not row.startswith("@@")]
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", "".join(changed))), default=0))
    return "\n".join([f"{fence}diff", *changed, fence])


def render_word_diff(marks: Iterable[Sequence[str]]) -> str:
    """Show two texts line by line, the old one first, from marks such as ``["removed", "text"]``."""
    every = [(mark[0], mark[1]) for mark in marks]
    is_mixed = any(side == "same" for side, _ in every)
    lines: list[str] = []
    for side in ("removed", "added"):
        rows: list[list[str]] = [[]]
        for own, text in every:
            if own not in {"same", side}:
                continue
            for number, piece in enumerate(plain(text.replace("\r\n", "\n").replace("\r", "\n")).split("\n")):
                if number:
                    rows.append([])
                if piece:
                    strong = True if is_mixed and own == side else None
                    rows[-1].append(click.style(piece, fg=_DIFF_COLOURS[side], bold=strong, underline=strong))
        is_unended = bool(rows[-1])
        if not is_unended:
            rows.pop()
        sign = click.style(_DIFF_SIGNS[side], fg=_DIFF_COLOURS[side])
        lines += [sign + "".join(row) for row in rows]
        if is_unended:
            lines.append(_NO_NEWLINE)
    return "\n".join(lines)


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

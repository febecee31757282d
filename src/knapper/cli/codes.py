"""The exit codes, and error hints worded as commands."""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from knapper.errors import CallerError, ConflictError, KnapError, RefusedError, SetupError, StorageError


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
    ExitCode.INTERRUPTED: ("Ctrl-C; nothing is broken, and the same command goes on from there", "nobody"),
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
    "list the journal for what took it back": "`knap log` tells what took it back",
    "list or search the vault for its name": "`knap find` lists the notes",
    "Give the text in content.": "give the text after the heading, or - for the standard input",
}
"""A hint, and what it comes to at a terminal."""


def command_hint(hint: str) -> str:
    """Return a hint worded for the command line."""
    return COMMAND_HINTS.get(hint, hint)

"""Answer a shell that completes a line of `knap`: find what the unfinished word may be, in a tenth of a second.

It imports neither click nor a command: the options and arguments of all commands are in a table that
`scripts/reference` writes from them.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from knapper.cli.completion import line, sources
from knapper.cli.completion.line import Candidate, Word

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

COMMAND: Final = "__complete"
"""The word by which the shells' scripts call this; it isn't among the commands."""
TABLE: Final = Path(__file__).parents[2] / "data" / "commands.json"
FLAG: Final = "flag"
"""Kind of an option without a value."""
NAMES: Final = "="
"""Row of the table with names that are fixed, by their kind; no command is called so."""
_SHELL_KINDS: Final = ("files", "folders")
"""Kinds that the shell completes itself."""
_VARIABLES: Final = ("KNAP_CONFIG", "KNAP_STATE_DIR", "VAULT_PATH", "XDG_CONFIG_HOME", "XDG_DATA_HOME")


class Expected(NamedTuple):
    """What the words before the unfinished one leave open."""

    command: str
    """Of the commands and groups, such as ``edits accept``; empty before any."""
    kind: str | Sequence[str]
    """What the word may be: a kind of `knapper.cli.completion.sources`, or the choices; empty for any text."""
    begin: str
    """What was typed of it."""
    before: str
    """What stands before that in the same word: ``--tag=``."""
    options: Mapping[str, str]
    arguments: Sequence[str]


def main(arguments: Sequence[str]) -> None:
    """Print the answer for a shell: a line that says what it may add itself, then a line for each candidate.

    Args:
        arguments: The shell's name; then for bash the line up to the cursor and COMP_WORDBREAKS, for others the words.
    """
    try:
        text = answer(arguments)
    except (OSError, ValueError):  # such as a folder that is gone: a completion never complains
        text = ""
    _ = sys.stdout.buffer.write(text.encode(errors="replace"))
    sys.stdout.flush()


def answer(arguments: Sequence[str]) -> str:
    """Return what `main` prints."""
    if not arguments:
        return ""
    shell, *rest = arguments
    words = _read_words(shell, rest)
    if len(words) < 2:
        return ""
    expected = expect([word.value for word in words], read_table())
    directive, candidates = suggest(expected)
    rows = _render(shell, [_with_prefix(each, expected.before) for each in candidates], words[-1])
    if candidates and all(each.goes_on for each in candidates):
        directive += " nospace"
    return "".join(f"{row}\n" for row in [directive, *rows])


def read_table() -> Mapping[str, Any]:
    """Return the table of commands: by the command's words its summary, arguments, options and subcommands."""
    return json.loads(TABLE.read_bytes())


def _read_words(shell: str, rest: Sequence[str]) -> list[Word]:
    if shell == "bash":
        return line.read_bash(*rest[:2]) if rest else []
    values = list(rest)
    if rest and shell == "fish":
        values[-1] = line.read_fish(rest[-1])
    elif rest and shell == "powershell":
        values[-1] = rest[-1].removeprefix("=")
    return [Word(value, 0, "", "") for value in values]


def _render(shell: str, candidates: Sequence[Candidate], word: Word) -> list[str]:
    match shell:
        case "bash":
            return line.render_bash(candidates, word)
        case "zsh":
            return line.render_zsh(candidates)
        case "fish":
            return line.render_fish(candidates)
        case _:
            return line.render_powershell(candidates)


def _with_prefix(candidate: Candidate, before: str) -> Candidate:
    return candidate._replace(value=f"{before}{candidate.value}")


def expect(words: Sequence[str], table: Mapping[str, Any]) -> Expected:
    """Return what the last of the words may be.

    ``["knap", "edits", "accept", "a"]`` expects an open proposal that begins with ``a``.

    Args:
        words: Of the line, with the program's name first and the unfinished word last.
        table: From `read_table`.
    """
    reader = _LineReader(table)
    for word in words[1:-1]:
        reader.read(word)
    return reader.expect(words[-1])


class _LineReader:
    """Goes over the words as the program's own parser would."""

    def __init__(self, table: Mapping[str, Any]) -> None:
        self._table = table
        self._command = ""
        self._options: dict[str, str] = {}
        self._arguments: list[str] = []
        self._waiting = ""
        """An option whose value is the next word."""
        self._only_arguments = False

    def _option(self, name: str) -> tuple[str, Any]:
        """Return an option's long name and its kind; the kind of one that isn't known is a flag's."""
        for options in (self._table[self._command]["options"], self._table[""]["options"]):
            if name in options:
                row = options[name]
                return (name, row[0]) if name.startswith("--") else (row[2], row[0])
        return name, FLAG

    def read(self, word: str) -> None:
        """Take in a whole word."""
        if self._waiting:
            self._options[self._waiting], self._waiting = word, ""
        elif self._only_arguments or word == "-" or not word.startswith("-"):
            self._read_argument(word)
        elif word == "--":
            self._only_arguments = True
        elif word.startswith("--"):
            self._read_long(word)
        else:
            self._read_short(word)

    def _read_argument(self, word: str) -> None:
        below = f"{self._command} {word}".strip()
        if not self._arguments and not self._only_arguments and below in self._table:
            self._command = below
        else:
            self._arguments.append(word)

    def _read_long(self, word: str) -> None:
        name, is_given, value = word.partition("=")
        long_name, kind = self._option(name)
        if kind != FLAG and not is_given:
            self._waiting = long_name
        else:
            self._options[long_name] = value

    def _read_short(self, word: str) -> None:
        for position in range(1, len(word)):
            long_name, kind = self._option(f"-{word[position]}")
            if kind == FLAG:
                self._options[long_name] = ""
                continue
            rest = word[position + 1 :]
            if rest:
                self._options[long_name] = rest
            else:
                self._waiting = long_name
            return

    def expect(self, word: str) -> Expected:
        """Return what the unfinished word may be."""
        kind: str | Sequence[str]
        before, begin = "", word
        name, is_given, value = word.partition("=")
        if self._waiting:
            kind = self._option(self._waiting)[1]
        elif word.startswith("--") and is_given and not self._only_arguments:
            kind, before, begin = self._option(name)[1], f"{name}=", value
        elif word.startswith("-") and not self._only_arguments:
            kind = "option"
        else:
            kind = self._argument_kind()
        return Expected(self._command, kind, begin, before, self._options, self._arguments)

    def _argument_kind(self) -> str | Sequence[str]:
        row = self._table[self._command]
        if row["commands"] and not self._arguments:
            return "command"
        kinds, at = row["arguments"], len(self._arguments)
        if at >= len(kinds):
            return kinds[-1] if kinds and row["repeats"] else ""
        return kinds[at]


def suggest(expected: Expected) -> tuple[str, list[Candidate]]:
    """Return what the shell may add itself (``none``, ``files`` or ``folders``), and the candidates."""
    kind = expected.kind
    if isinstance(kind, str) and kind in _SHELL_KINDS:
        return kind, []
    candidates = _list_candidates(expected, kind)
    return ("folders" if kind == "vault" and not candidates else "none"), candidates


def _list_candidates(expected: Expected, kind: str | Sequence[str]) -> list[Candidate]:
    if not isinstance(kind, str):
        return _fixed(kind, expected.begin)
    table = read_table()
    if kind in {"option", "command"}:
        return _named(expected, table)
    fixed = table[NAMES]
    if kind in {"", FLAG, *fixed}:
        own = _section_settings(expected, fixed) if kind == "setting" else []
        return _fixed([*fixed.get(kind, ()), *own], expected.begin)
    return sources.find(kind, _request(expected), expected.begin)


def _fixed(names: Sequence[str], begin: str) -> list[Candidate]:
    return [Candidate(name) for name in names if name.lower().startswith(begin.lower())]


def _section_settings(expected: Expected, fixed: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the settings of the configured vaults and clients: ``vaults.Notes.path``."""
    setup = sources.read_setup(_request(expected))
    named = {"vaults": setup.vaults, "clients": setup.clients}
    return [
        f"{section}.{name}.{setting}"
        for section, names in named.items()
        for name in names
        if name.replace("-", "").replace("_", "").isalnum()  # others have to be quoted there
        for setting in fixed[section]
    ]


def _request(expected: Expected) -> sources.Request:
    return sources.Request(
        options=expected.options,
        arguments=expected.arguments,
        environment={name: os.environ.get(name, "") for name in _VARIABLES},  # noqa: TID251 - `knapper.config` takes too long to import
        folder=Path.cwd(),
    )


def _named(expected: Expected, table: Mapping[str, Any]) -> list[Candidate]:
    """Return the subcommands, or the options, that begin so."""
    row = table[expected.command]
    if expected.kind == "command":
        names = row["commands"]
        return [
            Candidate(name, table[f"{expected.command} {name}".strip()]["about"])
            for name in names
            if name.startswith(expected.begin)
        ]
    options = {**row["options"], **table[""]["options"]}
    return [
        Candidate(name, text[1])
        for name, text in options.items()
        if name.startswith(expected.begin)
        and (name.startswith("--") or len(expected.begin) > 1 or expected.begin == name)
    ]

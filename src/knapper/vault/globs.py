"""Match paths by patterns in gitignore's syntax, whatever the pattern, in time linear in the path.

Patterns may come with a vault that someone else made, and a backtracking matcher needs minutes for one name and
``*a*a*a*a*a*b``. Pieces between two ``*`` of one part of a path, and runs of parts between two ``**``, are of fixed
length, so the earliest place where one fits is as good as any: atomic groups take it and never come back.

Unlike git, patterns compare by `knapper.vault.paths.key`, so that no other spelling of a path slips through.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from knapper.vault.paths import key, name, parent_folders, shown

MAX_PATTERN: Final = 1000
"""Characters; git's own files hold far shorter ones."""

_TRAILING_SPACES: Final = re.compile(r"(?<!\\) +\Z")
_PART_END: Final = "(?![^/])"
_CLASSES: Final = {
    "alnum": "a-z0-9",
    "alpha": "a-z",
    "digit": "0-9",
    "lower": "a-z",
    "punct": r"!-.:-@\[-`{-~",
    "space": r"\s",
    "upper": "a-z",
    "xdigit": "0-9a-f",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Hold one pattern."""

    regex: re.Pattern[str]
    includes: bool
    """False for a pattern that begins with ``!``."""
    folders_only: bool
    on_name: bool
    """Whether the pattern is compared with the last part alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Globs:
    """Hold patterns of which the last that matches decides."""

    rules: tuple[Rule, ...] = ()
    """Last line first."""
    problems: tuple[str, ...] = ()
    """Lines that are no patterns and match nothing."""

    def match(self, path: str, *, is_folder: bool = False) -> bool:
        """Tell whether the patterns match a path or a folder around it, from where ``!`` can't take it back."""
        if not self.rules:
            return False
        return any(self.match_only(above, is_folder=True) for above in parent_folders(path)) or self.match_only(
            path, is_folder=is_folder
        )

    def match_only(self, path: str, *, is_folder: bool) -> bool:
        """Tell whether the patterns match this very path, its folders not asked."""
        if not self.rules:
            return False
        whole = key(path)
        last = name(whole)
        for rule in self.rules:
            if rule.folders_only and not is_folder:
                continue
            if rule.regex.fullmatch(last if rule.on_name else whole):
                return rule.includes
        return False


def parse(lines: Iterable[str]) -> Globs:
    """Read patterns, a line each, as gitignore's documentation describes them.

    ``["Private/", "*.tmp", "!keep.tmp"]`` matches ``a/Private/b.md`` and ``x.tmp``, not ``keep.tmp``.
    """
    rules: list[Rule] = []
    problems: list[str] = []
    for number, line in enumerate(lines, start=1):
        try:
            rule = _rule(line)
        except ValueError as error:
            problems.append(f"line {number}, {shown(line)}: {error}")
            continue
        if rule:
            rules.append(rule)
    return Globs(rules=tuple(reversed(rules)), problems=tuple(problems))


def _rule(line: str) -> Rule | None:
    text = _TRAILING_SPACES.sub("", line.rstrip("\r\n"))
    if len(text) > MAX_PATTERN:
        msg = f"longer than {MAX_PATTERN} characters"
        raise ValueError(msg)
    if not text or text.startswith("#"):
        return None
    glob = key(text.removeprefix("!"))
    body = glob.removesuffix("/")
    on_name = "/" not in body
    return Rule(
        regex=re.compile(_part(body) if on_name else _path(body.removeprefix("/").split("/")), re.DOTALL),
        includes=not text.startswith("!"),
        folders_only=body != glob,
        on_name=on_name,
    )


def _path(parts: list[str]) -> str:
    """Translate a pattern whose parts stand for parts of a path; ``**`` stands for any number of them."""
    runs: list[list[str]] = [[]]
    for part in parts:
        if part == "**":
            runs.append([])
        else:
            runs[-1].append(part)
    inner = [run for run in runs[1:-1] if run]
    regex = _run(runs[0])
    glue = "/" if regex else ""
    for run in inner:
        regex += f"{glue}(?>(?:[^/]+/)*?{_run(run)})"
        glue = "/"
    if len(runs) == 1:
        return regex
    return f"{regex}{glue}(?:[^/]+/)*?{_run(runs[-1])}" if runs[-1] else f"{regex}{glue}.+"


def _run(parts: list[str]) -> str:
    return "/".join(f"(?>{_part(part)}{_PART_END})" for part in parts)


def _part(glob: str) -> str:
    """Translate the pattern of one part of a path."""
    pieces = [""]
    at = 0
    while at < len(glob):
        if glob[at] == "*":
            pieces += [""] if pieces[-1] or len(pieces) == 1 else []
            at += 1
            continue
        piece, at = _character(glob, at)
        pieces[-1] += piece
    if len(pieces) == 1:
        return pieces[0]
    middle = "".join(f"(?>[^/]*?{piece})" for piece in pieces[1:-1])
    return f"{pieces[0]}{middle}[^/]*{pieces[-1]}"


def _character(glob: str, at: int) -> tuple[str, int]:
    """Translate what stands for one character; return it with the position after it."""
    if glob[at] == "?":
        return "[^/]", at + 1
    if glob[at] == "[":
        return _set(glob, at + 1)
    if glob[at] != "\\":
        return re.escape(glob[at]), at + 1
    if at + 1 == len(glob):
        msg = "a backslash at the end escapes nothing"
        raise ValueError(msg)
    return re.escape(glob[at + 1]), at + 2


def _set(glob: str, at: int) -> tuple[str, int]:
    """Translate a set such as ``[a-z_]``, whose first character after the bracket stands at *at*."""
    negated = glob[at : at + 1] in {"!", "^"}
    at += negated
    members: list[str] = []
    first = at
    while at == first or glob[at : at + 1] != "]":
        member, at = _member(glob, at)
        members.append(member)
    inside = "".join(members)
    if negated:
        return f"[^/{inside}]", at + 1
    return (f"(?!/)[{inside}]" if inside else "(?!)"), at + 1


def _member(glob: str, at: int) -> tuple[str, int]:
    if glob.startswith("[:", at):
        word, closed, _ = glob[at + 2 :].partition(":]")
        if not closed or word not in _CLASSES:
            msg = "a set holds an unknown class"
            raise ValueError(msg)
        return _CLASSES[word], at + len(word) + 4
    low, at = _literal(glob, at)
    if glob[at : at + 1] != "-" or glob[at + 1 : at + 2] in {"", "]"}:
        return re.escape(low), at
    high, at = _literal(glob, at + 1)
    return (f"{re.escape(low)}-{re.escape(high)}" if low <= high else ""), at


def _literal(glob: str, at: int) -> tuple[str, int]:
    at += glob.startswith("\\", at)
    if at >= len(glob):
        msg = "a set isn't closed"
        raise ValueError(msg)
    return glob[at], at + 1

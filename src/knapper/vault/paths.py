"""Parse and check vault paths and file names, and match them by untrusted globs and regular expressions.

Names are compared as they are spelled on disk; matching takes time linear in the path.
"""

import contextlib
import importlib
import json
import os
import posixpath
import re
import stat
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, NewType, Protocol

from knapper.errors import BadInput, RefusedError

NotePath = NewType("NotePath", str)
"""A checked path: relative to the vault, with ``/`` between its parts, spelled as on disk."""
NameCode = Literal[
    "forbidden_character", "breaks_links", "trailing_dot_or_space", "reserved_name", "dot_name", "case_clash"
]

WINDOWS: Final = os.name == "nt"
NOTE_SUFFIX: Final = ".md"
MAX_PART_BYTES: Final = 255
MAX_PATH_BYTES: Final = 4096

_RELATIVE_HINT: Final = "give a path relative to the vault, such as 'Folder/Note.md'"
_DRIVE_PREFIX: Final = re.compile(r"[A-Za-z]:[\\/]")
_CONTROL_CHARACTER: Final = re.compile(r"[\x00-\x1f\x7f\\]")
_NOT_PORTABLE: Final = re.compile(r'[:*?"<>|]')
_BREAKS_LINKS: Final = re.compile(r"[#^\[\]]|%%")
_RESERVED_NAME: Final = re.compile(
    r"(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³])(?: *\..*)?", re.IGNORECASE
)


def name_key(text: str) -> str:
    """Fold a name for comparisons: NFC and case-folded.

    ``CAFÉ.md``, in whichever Unicode form, gives ``café.md``, composed.
    """
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFC", text).casefold()
    return unicodedata.normalize("NFC", folded)


def fold_target(path: str) -> str:
    """Fold a path, or a part of one, for comparing it with a link's target: `name_key`, and plain spaces."""
    return name_key(path.replace("\xa0", " "))


def lookup_key(name: str) -> str:
    r"""Fold a file's name for a lookup: ``"Über.MD"`` and ``"u\u0308ber"`` are both ``"über"``."""
    return fold_target(name).removesuffix(NOTE_SUFFIX)


def base_name(path: str) -> str:
    """Return the last part: ``a/b.md`` gives ``b.md``."""
    return path.rpartition("/")[2]


def parent_folder(path: str) -> NotePath:
    """Return all but the last part: ``a/b/c.md`` gives ``a/b``, ``c.md`` an empty string."""
    return NotePath(path.rpartition("/")[0])


def suffix(path: str) -> str:
    """Return the name's suffix with its dot, as spelled: ``a/b.MD`` gives ``.MD``; empty where there is none."""
    last = base_name(path)
    dot = last.rfind(".")
    return last[dot:] if 0 < dot < len(last) - 1 else ""


def stem(path: str) -> str:
    """Return the name without its suffix: ``a/b.md`` gives ``b``."""
    return base_name(path).removesuffix(suffix(path))


def fit_name(begin: str, end: str) -> str:
    """Join the two parts of a name, and truncate the first to the length that file systems allow.

    A stem of 84 Chinese characters and `` 2.md`` give 83 of them and `` 2.md``.
    """
    room = MAX_PART_BYTES - len(os.fsencode(end))
    return os.fsencode(begin)[:room].decode(errors="ignore") + end


def parent_folders(path: str) -> tuple[NotePath, ...]:
    """List the folders around a path, outermost first: ``a/b/c.md`` gives ``("a", "a/b")``."""
    parts = path.split("/")[:-1]
    return tuple(NotePath("/".join(parts[:end])) for end in range(1, len(parts) + 1))


def quote_path(text: str) -> str:
    """Quote a path for a message, truncated to a readable length."""
    return repr(text if len(text) <= MAX_PART_BYTES else f"{text[:MAX_PART_BYTES]}…")


def is_absolute(raw: str, *, windows: bool = WINDOWS) -> bool:
    """Return whether a path begins at the root of a disk, a share or a drive, in the way of any system."""
    return raw.startswith(("/", "\\\\")) or bool(_DRIVE_PREFIX.match(raw)) or (windows and raw.startswith("\\"))


def unknown_place_error() -> RefusedError:
    """Build the one error for absolute paths by which a client could find out where the vault lies."""
    # It doesn't repeat the path: a server takes the vault's own folder out of what it answers, and would tell so.
    msg = "the absolute path names no file that is shown here"
    return RefusedError(msg, code="outside_vault", hint=_RELATIVE_HINT)


def parse(raw: str, *, root: Path, windows: bool = WINDOWS) -> NotePath:
    """Parse and check a path as a caller wrote it; it need not exist on disk.

    ``./Notes/../a.md`` and ``/home/me/vault/a.md`` both give ``a.md`` in the vault ``/home/me/vault``.
    Spaces, line breaks and all other characters that a file name can hold are kept.

    Args:
        raw: Relative to the vault, or absolute and inside it, with or without symbolic links resolved.
        root: The vault's folder, absolute; may be a symbolic link.
        windows: Read the path as Windows does: a backslash separates, a colon isn't part of a name.

    Raises:
        BadInput: Empty, the vault itself, too long, or with characters that no file name can hold.
        RefusedError: The path lies outside the vault (code ``outside_vault``).
    """
    _check_text(raw)
    text = raw.replace("\\", "/") if windows else raw
    foreign = raw.startswith("\\\\") or _DRIVE_PREFIX.match(raw)
    if foreign and not windows:
        raise _outside_error(raw)
    if foreign or text.startswith("/"):
        text = _strip_root(text, root)
    parts: list[str] = []
    for part in text.split("/"):
        if part == ".." and not parts:
            raise _outside_error(raw)
        if part == "..":
            parts.pop()
        elif part not in {"", "."}:
            if len(part.encode()) > MAX_PART_BYTES:
                raise BadInput(f"the name {quote_path(part)} is longer than {MAX_PART_BYTES} bytes", hint="shorten it")
            if windows and (":" in part or not part.rstrip(". ")):
                msg = f"{quote_path(part)} can't be a name on Windows"
                hint = "leave out ':', and names of nothing but dots and spaces"
                raise BadInput(msg, code="forbidden_character", hint=hint)
            parts.append(part)
    if not parts:
        raise BadInput(f"{quote_path(raw)} names the vault itself, not a file in it", hint=_RELATIVE_HINT)
    return NotePath("/".join(parts))


def _outside_error(raw: str) -> RefusedError:
    return RefusedError(f"{quote_path(raw)} is outside the vault", code="outside_vault", hint=_RELATIVE_HINT)


def _check_text(raw: str) -> None:
    if not raw:
        raise BadInput("the path is empty", hint=_RELATIVE_HINT)
    try:
        size = len(raw.encode())
    except UnicodeEncodeError:
        raise BadInput(f"the path {quote_path(raw)} isn't valid Unicode", hint="give it as UTF-8 text") from None
    if "\0" in raw:
        raise BadInput(
            f"the path {quote_path(raw)} holds a NUL character", hint="leave it out: no file name can hold one"
        )
    if size > MAX_PATH_BYTES:
        msg = f"the path {quote_path(raw)} is {size} bytes long, more than {MAX_PATH_BYTES}"
        raise BadInput(msg, hint="shorten it")


def _strip_root(text: str, root: Path) -> str:
    """Return an absolute path relative to the vault's folder, whether or not symbolic links are resolved in it."""
    clean = posixpath.normpath(text)
    for base in (root.absolute, root.resolve):
        prefix = base().as_posix().rstrip("/")
        if clean == prefix or clean.startswith(f"{prefix}/"):
            return clean[len(prefix) + 1 :]
    if text.startswith("//"):
        # Raised before any access: Windows would contact another machine to see whether it has such a share.
        raise _outside_error(text)
    parts = clean.split("/")
    for end in range(1, len(parts) + 1):
        try:
            same = Path("/".join(parts[:end]) + "/").samefile(root)
        except OSError:
            break
        if same:
            return "/".join(parts[end:])
    raise _outside_error(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class NameProblem:
    """Why a name is unsuitable for a new file."""

    code: NameCode
    part: str
    """The part of the path that has the problem."""
    message: str


def check_new(path: NotePath, *, root: Path, portable: bool = True) -> tuple[NameProblem, ...]:
    """Check the path of a new file for names that some system, or Obsidian, can't use.

    ``Plans/C#.md`` gives one problem, ``breaks_links``; only parts that don't exist yet are checked.

    Args:
        path: A path from `parse`, in the spelling that `knapper.vault.files` returns.
        root: The vault's folder.
        portable: Raise for names that can't exist on some system or beside an existing one; otherwise return a problem.

    Returns:
        Problems that don't prevent the file, in the order of the path's parts.

    Raises:
        BadInput: A control character or a backslash, or, if *portable*, a name that some system can't hold; the code is
            the problem's.
    """
    problems: list[NameProblem] = []
    at = root
    for part in path.split("/"):
        if not _is_there((at / part).as_posix()):
            if match := _CONTROL_CHARACTER.search(part):
                msg = f"the name {quote_path(part)} holds {match.group()!r}, which no new file may have"
                raise BadInput(msg, code="forbidden_character", hint="leave it out, or write a space in its place")
            checks: list[tuple[NameCode, bool, str]] = [
                ("forbidden_character", bool(_NOT_PORTABLE.search(part)), 'holds one of : * ? " < > |'),
                (
                    "breaks_links",
                    bool(_BREAKS_LINKS.search(part)),
                    "holds one of # ^ [ ] %%, so that links to it break",
                ),
                ("trailing_dot_or_space", part[-1] in ". ", "ends with a dot or a space, which Windows drops"),
                ("reserved_name", bool(_RESERVED_NAME.fullmatch(part)), "is a device's name on Windows"),
                ("dot_name", part[0] == ".", "begins with a dot, so that it isn't part of the vault"),
            ]
            problems += [
                NameProblem(code=code, part=part, message=f"the name {quote_path(part)} {what}")
                for code, wrong, what in checks
                if wrong
            ]
            problems += _case_clashes(at, part)
        at /= part
    for problem in problems:
        if portable and problem.code not in {"breaks_links", "dot_name"}:
            raise BadInput(problem.message, code=problem.code, hint="choose another name")
    return tuple(problems)


def _case_clashes(at: Path, part: str) -> list[NameProblem]:
    try:
        names = [other.name for other in at.iterdir()]
    except OSError:
        return []
    # The very same name has come since it was looked for: that is a conflict, which is found when the file is written.
    same = sorted(name for name in names if name != part and name_key(name) == name_key(part))
    return [
        NameProblem(
            code="case_clash",
            part=part,
            message=f"the name {quote_path(part)} differs from {quote_path(other)} only in form",
        )
        for other in same
    ]


_MISSING_ERRORS: Final = (FileNotFoundError, NotADirectoryError)


def lstat_or_none(path: str, *, windows: bool = WINDOWS) -> os.stat_result | None:
    """Return the status of a file, folder or link itself; None where there is none.

    Windows says of a name that it can't hold, such as ``What?``, that it is invalid, and finds its devices in each
    folder, such as ``nul.md``: neither is there.
    """
    try:
        status = os.lstat(path)
    except _MISSING_ERRORS:
        return None
    except OSError:
        name = posixpath.basename(path)
        if windows and (_NOT_PORTABLE.search(name) or _RESERVED_NAME.fullmatch(name)):
            return None
        raise
    return None if windows and stat.S_ISCHR(status.st_mode) else status


def _is_there(path: str) -> bool:
    """Return whether there is a file, folder or link; false where the system doesn't tell."""
    with contextlib.suppress(OSError, ValueError):
        return lstat_or_none(path) is not None
    return False


def is_exact_name(folder: str, name: str, path_status: os.stat_result, *, windows: bool = WINDOWS) -> bool:
    """Return whether an existing name is certainly spelled as its folder lists it.

    A file system that ignores case or Unicode form also opens names that it doesn't list, and other spellings of them.
    Windows also has short names, which only the listing resolves.

    Args:
        folder: Its folder.
        name: The name that was asked for.
        path_status: Its status from `lstat_or_none`.
        windows: The system is Windows.
    """
    if windows:
        return False
    own = (path_status.st_dev, path_status.st_ino)
    forms = {name.swapcase()}
    if not name.isascii():
        forms |= {unicodedata.normalize("NFC", name), unicodedata.normalize("NFD", name)}
    spellings = [form for form in forms - {name} if len(form.encode()) <= MAX_PART_BYTES]
    others = (lstat_or_none(f"{folder}/{other}") for other in spellings)
    return not any(other and (other.st_dev, other.st_ino) == own for other in others)


MAX_GLOB_LENGTH: Final = 1000
"""Characters; real gitignore files hold far shorter ones."""

_TRAILING_SPACES: Final = re.compile(r"(?:(?<![\\ ])|(?<=\\ )) +\Z")
_PART_END: Final = "(?![^/])"
_CHARACTER_CLASSES: Final = {
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
class GlobRule:
    """One compiled pattern."""

    regex: re.Pattern[str]
    includes: bool
    """False for a pattern that begins with ``!``."""
    folders_only: bool
    on_name: bool
    """Whether the pattern is compared with the last part alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Globs:
    """Patterns in gitignore's syntax; the last one that matches decides."""

    rules: tuple[GlobRule, ...] = ()
    """In reverse order: the last line first."""
    problems: tuple[str, ...] = ()
    """Lines that aren't patterns and match nothing, with the reason."""

    def match(self, path: str, *, is_folder: bool = False) -> bool:
        """Return whether the patterns match a path or a folder above it, below which ``!`` can't re-include."""
        if not self.rules:
            return False
        folded_path = name_key(path)
        stop = folded_path.find("/")
        while stop >= 0:
            if self._match_folded(folded_path[:stop], is_folder=True):
                return True
            stop = folded_path.find("/", stop + 1)
        return self._match_folded(folded_path, is_folder=is_folder)

    def match_only(self, path: str, *, is_folder: bool) -> bool:
        """Return whether the patterns match this path itself, whatever its folders."""
        return bool(self.rules) and self._match_folded(name_key(path), is_folder=is_folder)

    def _match_folded(self, path: str, *, is_folder: bool) -> bool:
        for rule in self.rules:
            if rule.folders_only and not is_folder:
                continue
            if rule.regex.fullmatch(base_name(path) if rule.on_name else path):
                return rule.includes
        return False


def parse_globs(lines: Iterable[str]) -> Globs:
    """Parse patterns, one a line, as gitignore's documentation describes them.

    ``["Private/", "*.tmp", "!keep.tmp"]`` matches ``a/Private/b.md`` and ``x.tmp``, not ``keep.tmp``.
    """
    rules: list[GlobRule] = []
    problems: list[str] = []
    for number, line in enumerate(lines, start=1):
        try:
            rule = _parse_rule(line)
        except ValueError as error:
            problems.append(f"line {number}, {quote_path(line)}: {error}")
            continue
        if rule:
            rules.append(rule)
    return Globs(rules=tuple(reversed(rules)), problems=tuple(problems))


def _parse_rule(line: str) -> GlobRule | None:
    text = _TRAILING_SPACES.sub("", line.rstrip("\r\n"))
    if len(text) > MAX_GLOB_LENGTH:
        msg = f"longer than {MAX_GLOB_LENGTH} characters"
        raise ValueError(msg)
    if not text or text.startswith("#"):
        return None
    glob = name_key(text.removeprefix("!"))
    body = glob.removesuffix("/")
    on_name = "/" not in body
    return GlobRule(
        regex=re.compile(_part_regex(body) if on_name else _path_regex(body.removeprefix("/").split("/")), re.DOTALL),
        includes=not text.startswith("!"),
        folders_only=body != glob,
        on_name=on_name,
    )


def _path_regex(parts: list[str]) -> str:
    """Translate a pattern of several path parts; ``**`` matches any number of parts."""
    runs: list[list[str]] = [[]]
    for part in parts:
        if part == "**":
            runs.append([])
        else:
            runs[-1].append(part)
    inner = [run for run in runs[1:-1] if run]
    regex = _run_regex(runs[0])
    glue = "/" if regex else ""
    for run in inner:
        # Atomic groups keep the match linear: an untrusted pattern of many "**" must not backtrack.
        regex += f"{glue}(?>(?:[^/]+/)*?{_run_regex(run)})"
        glue = "/"
    if len(runs) == 1:
        return regex
    return f"{regex}{glue}(?:[^/]+/)*?{_run_regex(runs[-1])}" if runs[-1] else f"{regex}{glue}.+"


def _run_regex(parts: list[str]) -> str:
    return "/".join(f"(?>{_part_regex(part)}{_PART_END})" for part in parts)


def _part_regex(glob: str) -> str:
    """Translate the pattern of one part of a path."""
    pieces = [""]
    at = 0
    while at < len(glob):
        if glob[at] == "*":
            pieces += [""] if pieces[-1] or len(pieces) == 1 else []
            at += 1
            continue
        piece, at = _character_regex(glob, at)
        pieces[-1] += piece
    if len(pieces) == 1:
        return pieces[0]
    # Atomic as well: the shortest match of each piece is enough, so nothing has to be tried again.
    middle = "".join(f"(?>[^/]*?{piece})" for piece in pieces[1:-1])
    return f"{pieces[0]}{middle}[^/]*{pieces[-1]}"


def _character_regex(glob: str, at: int) -> tuple[str, int]:
    """Translate what matches one character; return the regex and the position after it."""
    if glob[at] == "?":
        return "[^/]", at + 1
    if glob[at] == "[":
        return _set_regex(glob, at + 1)
    if glob[at] != "\\":
        return re.escape(glob[at]), at + 1
    if at + 1 == len(glob):
        msg = "a backslash at the end escapes nothing"
        raise ValueError(msg)
    return re.escape(glob[at + 1]), at + 2


def _set_regex(glob: str, at: int) -> tuple[str, int]:
    """Translate a set such as ``[a-z_]``; *at* is the position after its bracket."""
    negated = glob[at : at + 1] in {"!", "^"}
    at += negated
    members: list[str] = []
    first = at
    while at == first or glob[at : at + 1] != "]":
        member, at = _set_member_regex(glob, at)
        members.append(member)
    inside = "".join(members)
    if negated:
        return f"[^/{inside}]", at + 1
    return (f"(?!/)[{inside}]" if inside else "(?!)"), at + 1


def _set_member_regex(glob: str, at: int) -> tuple[str, int]:
    if glob.startswith("[:", at):
        word, closed, _ = glob[at + 2 :].partition(":]")
        if not closed or word not in _CHARACTER_CLASSES:
            msg = "a set holds an unknown class"
            raise ValueError(msg)
        return _CHARACTER_CLASSES[word], at + len(word) + 4
    low, at = _literal_character(glob, at)
    if glob[at : at + 1] != "-" or glob[at + 1 : at + 2] in {"", "]"}:
        return re.escape(low), at
    high, at = _literal_character(glob, at + 1)
    return (f"{re.escape(low)}-{re.escape(high)}" if low <= high else ""), at


def _literal_character(glob: str, at: int) -> tuple[str, int]:
    at += glob.startswith("\\", at)
    if at >= len(glob):
        msg = "a set isn't closed"
        raise ValueError(msg)
    return glob[at], at + 1


MAX_REGEX_LENGTH: Final = 300
"""Maximum characters of an expression."""
MAX_MEMORY: Final = 256 * 1024
"""Bytes that RE2 may use for an expression and its cached states; a vault may have 200 expressions."""

_ATOM: Final = re.compile(
    r"""
    \\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}  # a surrogate pair
    | \\u[0-9a-fA-F]{4}
    | \\x[0-9a-fA-F]{2}
    | \\.?
    | \[\^?\]?              # a set's beginning, or an empty set
    | \(\?(?!:|<(?![=!]))   # neither a group nor a named one
    | .
    """,
    re.DOTALL | re.VERBOSE,
)
_ESCAPES: Final = frozenset("dDwWtnrfvbB")
"""Letters that mean the same behind a backslash in JavaScript and in RE2."""
_SPACES: Final = r"\t-\r\x{2028}\x{2029}\x{feff}\p{Zs}"
_OTHERS: Final = (
    r"\x{0}-\x{8}\x{e}-\x{1f}\x{21}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}"
    r"\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{fefe}\x{ff00}-\x{10ffff}\d"
)
_CLASSES: Final = {r"\s": _SPACES, r"\S": _OTHERS}
r"""What JavaScript's ``\s`` and ``\S`` hold; RE2's ``\s`` lacks the no-break space, for one.

Each ends in a class, so that no hyphen behind it makes a range.
"""


class _Compiled(Protocol):
    def search(self, text: bytes) -> object:
        """Return the first match, or None."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Regex:
    """A regular expression that RE2 has compiled."""

    pattern: str
    compiled: _Compiled = field(repr=False, compare=False)

    def search(self, text: str) -> bool:
        """Check whether the expression matches anywhere in a text, whatever the letters' case."""
        return self.compiled.search(text.encode(errors="replace")) is not None


def parse_regex(pattern: str) -> Regex:
    """Compile a regular expression as Obsidian's filters have it (JavaScript); ``.`` also matches line breaks.

    Raises:
        ValueError: It is invalid, too large or not supported by RE2, or RE2 isn't installed; the text says which.
    """
    if len(pattern) > MAX_REGEX_LENGTH:
        msg = f"longer than {MAX_REGEX_LENGTH} characters"
        raise ValueError(msg)
    written = _as_re2(pattern).encode(errors="replace")
    try:
        # Imported here: few vaults have such a filter, and it isn't available on all systems.
        re2 = importlib.import_module("re2")
    except ImportError as error:
        msg = "the package google-re2, which reads expressions, isn't installed (not all systems have it)"
        raise ValueError(msg) from error
    options = re2.Options()
    options.case_sensitive = False
    options.dot_nl = True
    options.never_capture = True
    options.max_mem = MAX_MEMORY
    # RE2 would write each error to stderr.
    options.log_errors = False
    try:
        return Regex(pattern=pattern, compiled=re2.compile(written, options))
    except re2.error as error:
        raise ValueError(error.args[0].decode(errors="replace")) from error


def _as_re2(pattern: str) -> str:
    """Translate a JavaScript expression to RE2's syntax.

    Raises:
        ValueError: It uses what RE2 doesn't support or reads differently.
    """
    parts: list[str] = []
    in_set = False
    for atom in _ATOM.findall(pattern):
        part = atom
        if atom.startswith("\\"):
            part = _escape(atom, in_set=in_set)
        elif in_set:
            # In RE2 `[:` would begin a class such as `[:alpha:]`.
            part = atom.replace("[", r"\[")
            in_set = not atom.endswith("]")
        elif atom == "[]":
            msg = "a set is empty"
            raise ValueError(msg)
        elif atom == "(?":
            msg = "look-around and flags aren't covered"
            raise ValueError(msg)
        elif atom == "[^]":
            part = r"[\x{0}-\x{10ffff}]"
        else:
            in_set = atom.startswith("[")
        parts.append(part)
    return "".join(parts)


def _escape(atom: str, *, in_set: bool) -> str:
    if atom in _CLASSES:
        return _CLASSES[atom] if in_set else f"[{_CLASSES[atom]}]"
    if len(atom) > len(r"\x00"):
        code = ord(json.loads(f'"{atom}"'))
        return f"\\x{{{code:x}}}"
    char = atom[1:]
    if len(char) == 1 and char.isascii() and char.isalnum() and char not in _ESCAPES:
        msg = f"{atom!r} isn't covered"
        raise ValueError(msg)
    return atom if char.isascii() else char

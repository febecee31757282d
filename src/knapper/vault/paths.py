"""Parse and check vault paths and file names, and compare names as they are spelled on disk."""

import os
import posixpath
import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, NewType

from knapper.errors import BadInput, RefusedError

NotePath = NewType("NotePath", str)
"""A checked path: relative to the vault, with ``/`` between its parts, spelled as on disk."""
NameCode = Literal[
    "forbidden_character", "breaks_links", "trailing_dot_or_space", "reserved_name", "dot_name", "case_clash"
]

WINDOWS: Final = os.name == "nt"
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
            _check_part(part, windows=windows)
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


def _check_part(part: str, *, windows: bool) -> None:
    if len(part.encode()) > MAX_PART_BYTES:
        raise BadInput(f"the name {quote_path(part)} is longer than {MAX_PART_BYTES} bytes", hint="shorten it")
    if windows and (":" in part or not part.rstrip(". ")):
        msg = f"{quote_path(part)} can't be a name on Windows"
        raise BadInput(msg, hint="leave out ':', and names of nothing but dots and spaces")


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
        if not os.path.lexists(at / part):
            problems += _name_problems(part)
            problems += _case_clashes(at, part)
        at /= part
    for problem in problems:
        if portable and problem.code not in {"breaks_links", "dot_name"}:
            raise BadInput(problem.message, code=problem.code, hint="choose another name")
    return tuple(problems)


def _name_problems(part: str) -> list[NameProblem]:
    if match := _CONTROL_CHARACTER.search(part):
        msg = f"the name {quote_path(part)} holds {match.group()!r}, which no new file may have"
        raise BadInput(msg, code="forbidden_character", hint="leave it out, or write a space in its place")
    checks: list[tuple[NameCode, bool, str]] = [
        ("forbidden_character", bool(_NOT_PORTABLE.search(part)), 'holds one of : * ? " < > |'),
        ("breaks_links", bool(_BREAKS_LINKS.search(part)), "holds one of # ^ [ ] %%, so that links to it break"),
        ("trailing_dot_or_space", part[-1] in ". ", "ends with a dot or a space, which Windows drops"),
        ("reserved_name", bool(_RESERVED_NAME.fullmatch(part)), "is a device's name on Windows"),
        ("dot_name", part[0] == ".", "begins with a dot, so that it isn't part of the vault"),
    ]
    return [
        NameProblem(code=code, part=part, message=f"the name {quote_path(part)} {what}")
        for code, wrong, what in checks
        if wrong
    ]


def _case_clashes(at: Path, part: str) -> list[NameProblem]:
    try:
        same = sorted(other.name for other in at.iterdir() if name_key(other.name) == name_key(part))
    except OSError:
        return []
    return [
        NameProblem(
            code="case_clash",
            part=part,
            message=f"the name {quote_path(part)} differs from {quote_path(other)} only in form",
        )
        for other in same
    ]


_MISSING_ERRORS: Final = (FileNotFoundError, NotADirectoryError)


def lstat_or_none(path: str) -> os.stat_result | None:
    """Return the status of a file, folder or link itself; None where there is none."""
    try:
        return os.lstat(path)
    except _MISSING_ERRORS:
        return None


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
    others = (lstat_or_none(f"{folder}/{other}") for other in _other_spellings(name))
    return not any(other and (other.st_dev, other.st_ino) == own for other in others)


def _other_spellings(name: str) -> set[str]:
    forms = {name.swapcase(), unicodedata.normalize("NFC", name), unicodedata.normalize("NFD", name)}
    return {form for form in forms - {name} if len(form.encode()) <= MAX_PART_BYTES}

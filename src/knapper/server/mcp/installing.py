"""Enter our server into a client's settings, with a backup of what was there."""

import codecs
import contextlib
import errno
import os
import stat
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from knapper.errors import BadInput, SetupError, StorageError
from knapper.jsontypes import JSONValue
from knapper.server.mcp import clients
from knapper.server.mcp.clients import Client, Entry, Machine, System

_WRITABLE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Say what is to be entered."""

    command: Sequence[str]
    environment: Mapping[str, str]
    name: str = clients.NAME


def machine() -> Machine:
    """Look at this machine."""
    system: System = {"darwin": "macos", "win32": "windows"}.get(sys.platform, "linux")  # pyright: ignore[reportAssignmentType]
    return Machine(system=system, home=Path.home(), config=config_folder(system, Path.home()))


def config_folder(system: System, home: Path) -> Path:
    """Tell where a system's programs keep a person's settings."""
    if system == "macos":
        return home / "Library" / "Application Support"
    if system == "windows":
        return platformdirs.user_config_path(roaming=True) if sys.platform == "win32" else home / "AppData" / "Roaming"
    return platformdirs.user_config_path() if sys.platform.startswith("linux") else home / ".config"


def install(client: Client, wanted: Wanted, where: Path, *, dry_run: bool = False) -> dict[str, JSONValue]:
    """Enter our server into a client's settings.

    Args:
        client: Whose.
        wanted: What is entered.
        where: The settings' file.
        dry_run: Only tell what would be entered.

    Returns:
        ``path``, ``backup`` where there was a file, ``content`` with what is entered, ``changed``. The other settings
        aren't told, for they may hold keys. Where only telling was asked for and the settings can't be changed,
        ``problem`` says so.

    Raises:
        BadInput: The entry's name isn't one.
        SetupError: The settings can't be changed; they're left alone.
        StorageError: They can't be read or written.
    """
    _check_name(wanted.name)
    try:
        made, raw, content, problem = _planned(client, wanted, where, dry_run=dry_run)
        told: dict[str, JSONValue] = {
            "success": True,
            "client": client.name,
            "path": str(where),
            "content": clients.merged(client, "", made, where, name=wanted.name),
            "changed": bool(problem) or content != raw,
        }
        if problem:
            told["problem"] = problem
        if dry_run or content == raw:
            return told
        if raw:
            told["backup"] = str(_backup(where, raw))
        _replace(where, content)
    except OSError as error:
        message = f"the settings of {client.title} can't be written: {error.filename or where}: {error.strerror}"
        raise StorageError(message, hint="check the folder's permissions, or give --file") from error
    return told


def _check_name(name: str) -> None:
    if not name.strip() or not name.isprintable():
        raise BadInput(f"{name!r} is no name for an entry", hint="give letters, digits and hyphens, such as knapper")


def _planned(client: Client, wanted: Wanted, where: Path, *, dry_run: bool) -> tuple[Entry, bytes, bytes, str]:
    """Give our entry, the settings before and after, and what keeps us from changing them if only telling is asked."""
    made, raw = clients.entry(client, wanted.command, wanted.environment), b""
    try:
        raw = _read(where)
        text = _text(raw, where)
        before = clients.present(client, text, where, name=wanted.name)
        made = clients.entry(client, wanted.command, wanted.environment, before)
        changed = clients.merged(client, text, made, where, name=wanted.name)
    except SetupError as error:
        if not dry_run:
            raise
        return made, raw, b"", error.message
    mark = codecs.BOM_UTF8 if raw.startswith(codecs.BOM_UTF8) else b""
    return made, raw, mark + changed.encode(), ""


def _read(where: Path) -> bytes:
    """Read the settings; nothing where there are none."""
    try:
        found = where.stat()
    except FileNotFoundError:
        return b""
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(where))
    if not stat.S_ISREG(found.st_mode):
        raise clients.unusable(where, "it isn't a file")
    if not found.st_mode & _WRITABLE:
        raise clients.unusable(where, "it is read-only")
    return where.read_bytes()


def _text(raw: bytes, where: Path) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise clients.unusable(where, f"it isn't plain JSON ({error})") from None


def _backup(where: Path, raw: bytes) -> Path:
    """Keep the settings beside themselves under a free name, and as private as they are: they may hold keys."""
    mode = stat.S_IMODE(where.stat().st_mode)
    for number in range(1_000):
        place = where.with_name(f"{where.name}.bak{number or ''}")
        if place.exists() and place.read_bytes() == raw:
            return place
        with contextlib.suppress(FileExistsError):
            handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode & 0o700)
            with os.fdopen(handle, "wb") as file:
                file.write(raw)
            place.chmod(mode)
            return place
    raise OSError(0, "there are 1,000 backups", str(where))


def _replace(where: Path, content: bytes) -> None:
    """Write the settings whole, where a link leads if it is one; its mode stays."""
    target = where.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    temp = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            temp.chmod(target.stat().st_mode & 0o7777)
        temp.replace(target)
    finally:
        temp.unlink(missing_ok=True)

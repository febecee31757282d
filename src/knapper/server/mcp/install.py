"""Enter the server into an MCP client's settings, or take it out, with a backup."""

import codecs
import contextlib
import errno
import os
import stat
import tempfile
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from knapper.errors import BadInput, ConflictError, SetupError, StorageError
from knapper.jsontypes import JSONValue
from knapper.server.mcp import client_settings, clients
from knapper.server.mcp.client_settings import UnreadableError
from knapper.server.mcp.clients import McpClient, ServerEntry

ENTRY_NAME: Final = "knapper"


def merge_entry(
    client: McpClient, text: str, new_entry: ServerEntry, settings_file: Path, *, name: str = ENTRY_NAME
) -> str:
    """Add an entry to a client's settings; the rest stays as written.

    Args:
        client: The client.
        text: The present settings; empty if there are none.
        new_entry: The entry.
        settings_file: The settings' file, for messages.
        name: The entry's.

    Raises:
        SetupError: The settings can't be changed safely; they're left alone.
    """
    try:
        return client_settings.put_member(text, client.key, name, new_entry, client.format)
    except UnreadableError as error:
        raise settings_error(settings_file, str(error)) from None


def read_entry(client: McpClient, text: str, settings_file: Path, *, name: str = ENTRY_NAME) -> object:
    """Return the entry of that name in a client's settings; None if there is none.

    Raises:
        SetupError: The settings can't be read.
    """
    try:
        return client_settings.get_member(text, client.key, name, client.format)
    except UnreadableError as error:
        raise settings_error(settings_file, str(error)) from None


def settings_error(settings_file: Path, why: str, *, hint: str = "") -> SetupError:
    """Return the error for settings that can't be edited."""
    hint = hint or "enter by hand what `knap mcp install CLIENT --dry-run` shows"
    return SetupError(f"{settings_file} can't be changed: {why}", hint=hint, code="client_settings")


_WRITE_BITS = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallRequest:
    """The entry to install, and its options."""

    command: Sequence[str]
    environment: Mapping[str, str]
    name: str = ENTRY_NAME


def install(
    client: McpClient, request: InstallRequest, settings_file: Path, *, dry_run: bool = False
) -> dict[str, JSONValue]:
    """Add our server to a client's settings.

    Args:
        client: The client.
        request: The entry.
        settings_file: The settings' file.
        dry_run: Only report what would be written.

    Returns:
        ``path``, ``backup`` where there was a file, ``content`` with what is entered, ``changed``. The other settings
        aren't told, for they may hold keys. Where only telling was asked for and the settings can't be changed,
        ``problem`` says so.

    Raises:
        BadInput: The entry's name isn't one.
        SetupError: The settings can't be changed; they're left alone.
        StorageError: They can't be read or written.
    """
    _check_name(request.name)
    with _told_errors(client, settings_file):
        new_entry, raw, content, problem = _plan_change(client, request, settings_file, dry_run=dry_run)
        report: dict[str, JSONValue] = {
            "success": True,
            "client": client.name,
            "path": str(settings_file),
            "content": merge_entry(client, "", new_entry, settings_file, name=request.name),
            "changed": bool(problem) or content != raw,
        }
        if problem:
            report["problem"] = problem
        if dry_run or content == raw:
            return report
        if raw:
            report["backup"] = str(_write_backup(settings_file, raw))
        _replace_file(settings_file, raw, content)
    return report


def uninstall(
    client: McpClient, settings_file: Path, *, name: str = ENTRY_NAME, dry_run: bool = False
) -> dict[str, JSONValue]:
    """Take our server out of a client's settings; all else in them stays as it is written.

    Args:
        client: The client.
        settings_file: The settings' file.
        name: The entry's.
        dry_run: Only report whether something would be taken out.

    Returns:
        ``path``, ``changed``, and ``backup`` where the settings were changed.

    Raises:
        SetupError: The settings can't be changed; they're left alone.
        ConflictError: The client saved them meanwhile.
        StorageError: They can't be read or written.
    """
    _check_name(name)
    report: dict[str, JSONValue] = {
        "success": True,
        "client": client.name,
        "path": str(settings_file),
        "name": name,
        "changed": False,
    }
    with _told_errors(client, settings_file):
        raw = _read_settings(settings_file, is_for_writing=False)
        text = _decode_settings(raw, settings_file)
        if read_entry(client, text, settings_file, name=name) is None:
            return report
        _ = _read_settings(settings_file)  # refuses what is read-only
        try:
            changed = client_settings.remove_member(text, client.key, name, client.format)
        except UnreadableError as error:
            hint = f"remove the entry '{name}' there by hand"
            raise settings_error(settings_file, str(error), hint=hint) from None
        report["changed"] = True
        if not dry_run:
            report["backup"] = str(_write_backup(settings_file, raw))
            _replace_file(settings_file, raw, _mark_of(raw) + changed.encode())
    return report


def find_entry(client: McpClient, settings_file: Path, *, name: str = ENTRY_NAME) -> object:
    """Return our entry in the settings of a client; None if there is none.

    Raises:
        SetupError: The settings can't be understood.
        StorageError: They can't be read.
    """
    with _told_errors(client, settings_file, "read"):
        raw = _read_settings(settings_file, is_for_writing=False)
        return read_entry(client, _decode_settings(raw, settings_file), settings_file, name=name)


@contextlib.contextmanager
def _told_errors(client: McpClient, settings_file: Path, verb: str = "written") -> Generator[None]:
    """Convert the system's errors on a client's settings."""
    try:
        yield
    except OSError as error:
        message = f"the settings of {client.title} can't be {verb}: {error.filename or settings_file}: {error.strerror}"
        raise StorageError(message, hint="check the folder's permissions, or give --file") from error


def _check_name(name: str) -> None:
    if not name.strip() or not name.isprintable():
        raise BadInput(f"{name!r} is no name for an entry", hint="give letters, digits and hyphens, such as knapper")


def _plan_change(
    client: McpClient, request: InstallRequest, settings_file: Path, *, dry_run: bool
) -> tuple[ServerEntry, bytes, bytes, str]:
    """Return our entry, the settings before and after, and for a dry run the problem that prevents the change."""
    new_entry, raw = clients.build_entry(client, request.command, request.environment), b""
    try:
        raw = _read_settings(settings_file)
        text = _decode_settings(raw, settings_file)
        existing_entry = read_entry(client, text, settings_file, name=request.name)
        new_entry = clients.build_entry(client, request.command, request.environment, existing_entry)
        changed = merge_entry(client, text, new_entry, settings_file, name=request.name)
    except SetupError as error:
        if not dry_run:
            raise
        return new_entry, raw, b"", error.message
    return new_entry, raw, _mark_of(raw) + changed.encode(), ""


def _mark_of(raw: bytes) -> bytes:
    return codecs.BOM_UTF8 if raw.startswith(codecs.BOM_UTF8) else b""


def _read_settings(settings_file: Path, *, is_for_writing: bool = True) -> bytes:
    """Read the settings; empty if there are none."""
    try:
        file_stat = settings_file.stat()
    except FileNotFoundError:
        return b""
    if stat.S_ISDIR(file_stat.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(settings_file))
    if not stat.S_ISREG(file_stat.st_mode):
        raise settings_error(settings_file, "it isn't a file")
    if is_for_writing and not file_stat.st_mode & _WRITE_BITS:
        raise settings_error(settings_file, "it is read-only")
    return settings_file.read_bytes()


def _decode_settings(raw: bytes, settings_file: Path) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise settings_error(settings_file, f"it isn't text in UTF-8 ({error})") from None


def _write_backup(settings_file: Path, raw: bytes) -> Path:
    """Copy the settings to a free name beside them, as private as they are: they may contain keys."""
    mode = stat.S_IMODE(settings_file.stat().st_mode)
    for number in range(1_000):
        backup_file = settings_file.with_name(f"{settings_file.name}.bak{number or ''}")
        if backup_file.exists() and backup_file.read_bytes() == raw:
            return backup_file
        with contextlib.suppress(FileExistsError):
            handle = os.open(
                backup_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode & 0o700
            )
            with os.fdopen(handle, "wb") as file:
                file.write(raw)
            backup_file.chmod(mode)
            return backup_file
    raise OSError(0, "there are 1,000 backups", str(settings_file))


def _replace_file(settings_file: Path, before: bytes, content: bytes) -> None:
    """Replace the settings file atomically, following a symbolic link and keeping the mode.

    Raises:
        ConflictError: Somebody else saved it since it was read; some clients do so all the time.
    """
    target = settings_file.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    temporary_file = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if (target.read_bytes() if target.exists() else b"") != before:
            raise ConflictError(f"{settings_file} changed meanwhile", hint="close the client, and try again")
        if target.exists():
            temporary_file.chmod(target.stat().st_mode & 0o7777)
        temporary_file.replace(target)
    finally:
        temporary_file.unlink(missing_ok=True)

"""Enter our server into a client's settings, with a backup of what was there."""

import contextlib
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from knapper.errors import SetupError, StorageError
from knapper.server.mcp import clients
from knapper.server.mcp.clients import Client, Machine, System
from knapper.vault.outline import JSONValue


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
        dry_run: Only tell what would be written.

    Returns:
        ``path``, ``backup`` where there was a file, ``content`` as it is written, ``changed``. Where only telling was
        asked for and the settings can't be read as JSON, ``problem`` says so, and ``content`` holds our entry alone.

    Raises:
        SetupError: The settings can't be read as JSON; they're left alone.
        StorageError: They can't be read or written.
    """
    try:
        raw = where.read_bytes() if where.exists() else b""
        content, problem = _merged(client, raw, wanted, where, dry_run=dry_run)
        told: dict[str, JSONValue] = {
            "success": True,
            "client": client.name,
            "path": str(where),
            "content": content.decode(),
            "changed": content != raw,
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


def _merged(client: Client, raw: bytes, wanted: Wanted, where: Path, *, dry_run: bool) -> tuple[bytes, str]:
    """Give the settings with our entry, and what keeps us from reading them where they needn't be read."""
    made = clients.entry(client, wanted.command, wanted.environment)
    try:
        return clients.merged(client, raw, made, where, name=wanted.name), ""
    except SetupError as error:
        if not dry_run:
            raise
        return clients.merged(client, b"", made, where, name=wanted.name), error.message


def _backup(where: Path, raw: bytes) -> Path:
    """Keep the settings beside themselves, under a name that is free."""
    for number in range(1_000):
        place = where.with_name(f"{where.name}.bak{number or ''}")
        if place.exists() and place.read_bytes() == raw:
            return place
        with contextlib.suppress(FileExistsError), place.open("xb") as file:
            file.write(raw)
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

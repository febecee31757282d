"""Add the server to an MCP client's settings, with a backup."""

import codecs
import contextlib
import errno
import json
import os
import re
import stat
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, NoReturn, cast

import platformdirs

from knapper import jsonscan
from knapper.config.settings import CONFIG_ENV, STATE_ENV
from knapper.errors import BadInput, SetupError, StorageError
from knapper.jsonscan import JSONPath, JSONSpan
from knapper.jsontypes import JSONValue

_INDENT: Final = re.compile(r"\n([ \t]+)\S")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_DEFAULT_INDENT: Final = "  "
_DEPTH: Final = 2
"""Of a member of the object *key*; nothing deeper is changed."""


class UnreadableError(ValueError):
    """A settings text that can't be edited safely."""


def get_member(text: str, key: str, name: str) -> object:
    """Return the member *name* of the object *key*; None if there is none.

    Raises:
        UnreadableError: The text isn't plain JSON, names a member twice, or has something else there.
    """
    member_object = _parse_settings(text, key).get(key)
    return cast("dict[str, object]", member_object).get(name) if isinstance(member_object, dict) else None


def put_member(text: str, key: str, name: str, value: object) -> str:
    """Set the member *name* of the object *key*, which is created if missing.

    Raises:
        UnreadableError: As `get_member` raises.
    """
    settings = _parse_settings(text, key)
    if not text.strip():
        return _dump_json({key: {name: value}}, _DEFAULT_INDENT) + "\n"
    values = {found.path: found for found in jsonscan.find_values(text) if len(found.path) <= _DEPTH}
    return _put(text, values, (key, name), value) if key in settings else _put(text, values, (key,), {name: value})


def _parse_settings(text: str, key: str) -> dict[str, object]:
    """Parse the whole text, refusing what programs read differently."""
    if not text.strip():
        return {}
    try:
        parsed: object = json.loads(text, object_pairs_hook=_reject_duplicates, parse_constant=_refuse_constant)
    except UnreadableError:
        raise
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"it isn't plain JSON ({error})") from None
    if not isinstance(parsed, dict):
        raise UnreadableError("it isn't an object")
    settings = cast("dict[str, object]", parsed)
    if not isinstance(settings.get(key, {}), dict):
        raise UnreadableError(f"'{key}' isn't an object")
    return settings


def _reject_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members: dict[str, object] = {}
    for name, value in pairs:
        if name in members:
            raise UnreadableError(f"{name!r} stands in one object twice")
        members[name] = value
    return members


def _refuse_constant(constant: str) -> NoReturn:
    raise UnreadableError(f"it isn't plain JSON ({constant})")


def _put(text: str, values: Mapping[JSONPath, JSONSpan], path: JSONPath, value: object) -> str:
    """Write a member in its place or after the last one, on lines of its own if the others are."""
    into = values[path[:-1]]
    members = [found for found in values.values() if found.path and found.path[:-1] == into.path]
    # An empty object doesn't tell how its members would stand; the whole text does.
    has_lines = "\n" in (text[into.start : into.stop] if members else text.strip())
    line = _line_break(text, len(path)) if has_lines else ""
    written = _dump_json(value, _detect_indent(text)).replace("\n", line) if has_lines else _dump_json(value)
    if old := values.get(path):
        is_same = json.loads(text[old.start : old.stop]) == value
        return text if is_same else text[: old.start] + written + text[old.stop :]
    member = f"{_dump_json(path[-1])}: {written}"
    if members:
        last = members[-1].stop
        return f"{text[:last]},{line or ' '}{member}{text[last:]}"
    after = _line_break(text, len(path) - 1) if has_lines else ""
    return f"{text[: into.start + 1]}{line}{member}{after}{text[into.stop - 1 :]}"


def _dump_json(value: object, indent: str | None = None) -> str:
    """Write JSON that can be encoded: a lone surrogate stays an escape."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return _SURROGATE.sub(lambda half: f"\\u{ord(half[0]):04x}", text)


def _line_break(text: str, depth: int) -> str:
    return ("\r\n" if "\r\n" in text else "\n") + _detect_indent(text) * depth


def _detect_indent(text: str) -> str:
    match = _INDENT.search(text)
    return match[1] if match else _DEFAULT_INDENT


System = Literal["linux", "macos", "windows"]
ServerEntry = dict[str, object]
ENTRY_NAME: Final = "knapper"
_OUR_VARIABLES: Final = frozenset({CONFIG_ENV, STATE_ENV})
"""Those that an entry has from us."""
_OUR_KEYS: Final = frozenset({"type", "command", "args", "env", "url", "serverUrl", "httpUrl", "headers"})
"""What says how a server is reached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachinePaths:
    """The facts of this machine that decide where programs keep their settings."""

    system: System
    home: Path
    config: Path
    """Where programs keep a person's settings: ``~/.config``, ``~/Library/Application Support``, ``%APPDATA%``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpClient:
    """One MCP client, and where its settings are."""

    name: str
    title: str
    key: str
    """The object in its settings that holds its servers."""
    place: tuple[str, ...]
    """Of the settings: folders and name, below the home folder, or below that of settings where ``below`` says so."""
    below: Literal["home", "config"] = "home"
    typed: bool = False
    """Whether an entry says by which transport it speaks."""

    def file(self, machine: MachinePaths) -> Path:
        """Return the path of its settings, whether or not they exist."""
        return (machine.home if self.below == "home" else machine.config).joinpath(*self.place)


CLIENTS: Final = (
    McpClient(
        name="claude-desktop",
        title="Claude Desktop",
        key="mcpServers",
        place=("Claude", "claude_desktop_config.json"),
        below="config",
    ),
    McpClient(name="claude-code", title="Claude Code", key="mcpServers", place=(".claude.json",), typed=True),
    McpClient(name="cursor", title="Cursor", key="mcpServers", place=(".cursor", "mcp.json")),
    McpClient(
        name="vscode",
        title="Visual Studio Code",
        key="servers",
        place=("Code", "User", "mcp.json"),
        below="config",
        typed=True,
    ),
    McpClient(name="windsurf", title="Windsurf", key="mcpServers", place=(".codeium", "windsurf", "mcp_config.json")),
    McpClient(name="gemini-cli", title="Gemini CLI", key="mcpServers", place=(".gemini", "settings.json")),
    McpClient(name="lm-studio", title="LM Studio", key="mcpServers", place=(".lmstudio", "mcp.json")),
)


def find_client(name: str) -> McpClient:
    """Return a client by its name.

    Raises:
        BadInput: None has it.
    """
    match = next((client for client in CLIENTS if client.name == name), None)
    if match is None:
        known_names = ", ".join(client.name for client in CLIENTS)
        raise BadInput(f"there is no client '{name}'", hint=f"clients: {known_names}", code="no_client")
    return match


def build_entry(
    client: McpClient, command: Sequence[str], environment: Mapping[str, str], before: object = None
) -> ServerEntry:
    """Build the entry that starts our server.

    Args:
        client: The client.
        command: The server's command line.
        environment: Environment variables that it needs.
        before: The existing entry; a person's additions stay, such as tools that need no confirmation.
    """
    new_entry: ServerEntry = {"command": command[0], "args": list(command[1:])}
    if client.typed:
        new_entry = {"type": "stdio", **new_entry}
    existing = cast("dict[str, object]", before) if isinstance(before, dict) else {}
    variables = existing.get("env")
    existing_variables = cast("dict[str, object]", variables) if isinstance(variables, dict) else {}
    merged_variables = {
        **{name: value for name, value in existing_variables.items() if name not in _OUR_VARIABLES},
        **environment,
    }
    if merged_variables:
        new_entry["env"] = merged_variables
    return {**new_entry, **{name: value for name, value in existing.items() if name not in _OUR_KEYS}}


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
        SetupError: The settings aren't plain JSON; they're left alone.
    """
    try:
        return put_member(text, client.key, name, new_entry)
    except UnreadableError as error:
        raise settings_error(settings_file, str(error)) from None


def read_entry(client: McpClient, text: str, settings_file: Path, *, name: str = ENTRY_NAME) -> object:
    """Return the entry of that name in a client's settings; None if there is none.

    Raises:
        SetupError: The settings aren't plain JSON.
    """
    try:
        return get_member(text, client.key, name)
    except UnreadableError as error:
        raise settings_error(settings_file, str(error)) from None


def settings_error(settings_file: Path, why: str) -> SetupError:
    """Return the error for settings that can't be edited."""
    hint = "enter by hand what the same command with --dry-run shows"
    return SetupError(f"{settings_file} can't be changed: {why}", hint=hint, code="client_settings")


_WRITE_BITS = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallRequest:
    """The entry to install, and its options."""

    command: Sequence[str]
    environment: Mapping[str, str]
    name: str = ENTRY_NAME


def detect_machine() -> MachinePaths:
    """Return the facts of this machine."""
    system: System = {"darwin": "macos", "win32": "windows"}.get(sys.platform, "linux")  # pyright: ignore[reportAssignmentType]
    return MachinePaths(system=system, home=Path.home(), config=config_folder(system, Path.home()))


def config_folder(system: System, home: Path) -> Path:
    """Return the folder where a system's programs keep a person's settings."""
    if system == "macos":
        return home / "Library" / "Application Support"
    if system == "windows":
        return platformdirs.user_config_path(roaming=True) if sys.platform == "win32" else home / "AppData" / "Roaming"
    return platformdirs.user_config_path() if sys.platform.startswith("linux") else home / ".config"


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
    try:
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
        _replace_file(settings_file, content)
    except OSError as error:
        message = (
            f"the settings of {client.title} can't be written: {error.filename or settings_file}: {error.strerror}"
        )
        raise StorageError(message, hint="check the folder's permissions, or give --file") from error
    return report


def _check_name(name: str) -> None:
    if not name.strip() or not name.isprintable():
        raise BadInput(f"{name!r} is no name for an entry", hint="give letters, digits and hyphens, such as knapper")


def _plan_change(
    client: McpClient, request: InstallRequest, settings_file: Path, *, dry_run: bool
) -> tuple[ServerEntry, bytes, bytes, str]:
    """Return our entry, the settings before and after, and for a dry run the problem that prevents the change."""
    new_entry, raw = build_entry(client, request.command, request.environment), b""
    try:
        raw = _read_settings(settings_file)
        text = _decode_settings(raw, settings_file)
        existing_entry = read_entry(client, text, settings_file, name=request.name)
        new_entry = build_entry(client, request.command, request.environment, existing_entry)
        changed = merge_entry(client, text, new_entry, settings_file, name=request.name)
    except SetupError as error:
        if not dry_run:
            raise
        return new_entry, raw, b"", error.message
    bom = codecs.BOM_UTF8 if raw.startswith(codecs.BOM_UTF8) else b""
    return new_entry, raw, bom + changed.encode(), ""


def _read_settings(settings_file: Path) -> bytes:
    """Read the settings; empty if there are none."""
    try:
        file_stat = settings_file.stat()
    except FileNotFoundError:
        return b""
    if stat.S_ISDIR(file_stat.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(settings_file))
    if not stat.S_ISREG(file_stat.st_mode):
        raise settings_error(settings_file, "it isn't a file")
    if not file_stat.st_mode & _WRITE_BITS:
        raise settings_error(settings_file, "it is read-only")
    return settings_file.read_bytes()


def _decode_settings(raw: bytes, settings_file: Path) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise settings_error(settings_file, f"it isn't plain JSON ({error})") from None


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


def _replace_file(settings_file: Path, content: bytes) -> None:
    """Replace the settings file atomically, following a symbolic link and keeping the mode."""
    target = settings_file.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    temporary_file = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            temporary_file.chmod(target.stat().st_mode & 0o7777)
        temporary_file.replace(target)
    finally:
        temporary_file.unlink(missing_ok=True)

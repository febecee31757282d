"""Enter the server into an MCP client's settings (JSON, JSON with comments or TOML), or take it out, with a backup."""

import codecs
import contextlib
import copy
import errno
import json
import os
import re
import stat
import tempfile
import tomllib
from collections.abc import Callable, Generator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn, cast

from knapper import jsonscan
from knapper.errors import BadInput, ConflictError, SetupError, StorageError
from knapper.jsonscan import JSONPath, JSONSpan
from knapper.jsontypes import JSONValue, is_object, object_or_empty
from knapper.server.mcp import clients
from knapper.server.mcp.clients import McpClient, ServerEntry, SettingsFormat

_INDENT: Final = re.compile(r"\n([ \t]+)[^\s/]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_COMMA: Final = re.compile(r"\s*,")
_BLANK_END: Final = re.compile(r"\n\r?\n\Z")
_DEFAULT_INDENT: Final = "  "
_DEPTH: Final = 2
"""Of a member of the object *key*; nothing deeper is changed."""
_SPACES: Final = " \t\r\n"


class UnreadableError(ValueError):
    """A settings text that can't be edited safely."""


def get_member(text: str, key: str, name: str, settings_format: SettingsFormat = "json") -> object:
    """Return the member *name* of the object *key*; None if there is none.

    Raises:
        UnreadableError: The text isn't of that format, names a member twice, or has something else there.
    """
    settings = _read(text, key, settings_format)
    return object_or_empty(settings.get(key)).get(name)


def put_member(text: str, key: str, name: str, value: object, settings_format: SettingsFormat = "json") -> str:
    """Set the member *name* of the object *key*, which is created if missing.

    Raises:
        UnreadableError: As `get_member` raises; or the text is written in a way in which it can't be changed.
    """
    settings = _read(text, key, settings_format)
    expected = {**settings, key: {**object_or_empty(settings.get(key)), name: value}}
    if settings_format == "toml":
        entry = cast("Mapping[str, object]", value)
        ways = [lambda: _append_toml(text, key, name, entry), lambda: _change_toml(text, key, name, entry)]
        return _first_exact(ways, expected, settings_format)
    return _first_exact([lambda: _put_json(text, key, name, value)], expected, settings_format)


def remove_member(text: str, key: str, name: str, settings_format: SettingsFormat = "json") -> str:
    """Remove the member *name* of the object *key*, which stays, if need be empty.

    Raises:
        UnreadableError: As `put_member` raises.
    """
    settings = _read(text, key, settings_format)
    servers = object_or_empty(settings.get(key))
    if name not in servers:
        return text
    expected = {**settings, key: {each: value for each, value in servers.items() if each != name}}
    if settings_format == "toml":
        ways = [lambda: _cut_toml(text, key, name), lambda: _delete_toml(text, key, name)]
        return _first_exact(ways, expected, settings_format)
    ways = [lambda: _cut_json(text, key, name), lambda: _cut_json(text, key, name, keeps_spaces=True)]
    return _first_exact(ways, expected, settings_format)


def _read(text: str, key: str, settings_format: SettingsFormat) -> Mapping[str, object]:
    """Read the whole text, refusing what programs read differently."""
    settings = _read_toml(text) if settings_format == "toml" else _read_json(text, settings_format)
    if not isinstance(settings.get(key, {}), dict):
        raise UnreadableError(f"'{key}' isn't an object")
    return settings


def _read_json(text: str, settings_format: SettingsFormat) -> Mapping[str, object]:
    if not text.strip():
        return {}
    if settings_format == "jsonc":
        text = jsonscan.blank_trailing_commas(jsonscan.blank_comments(text))
    kind = "plain JSON" if settings_format == "json" else "JSON"
    try:
        parsed: object = json.loads(text, object_pairs_hook=_reject_duplicates, parse_constant=_refuse_constant)
    except UnreadableError:
        raise
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"it isn't {kind} ({error})") from None
    if not is_object(parsed):
        raise UnreadableError("it isn't an object")
    return parsed


def _read_toml(text: str) -> dict[str, object]:
    try:
        return tomllib.loads(text.replace("\r\n", "\n"))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UnreadableError(f"it isn't TOML ({error})") from None


def _reject_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members: dict[str, object] = {}
    for name, value in pairs:
        if name in members:
            raise UnreadableError(f"{name!r} stands in one object twice")
        members[name] = value
    return members


def _refuse_constant(constant: str) -> NoReturn:
    raise UnreadableError(f"it isn't plain JSON ({constant})")


def _first_exact(
    ways: Sequence[Callable[[], str]], expected: Mapping[str, object], settings_format: SettingsFormat
) -> str:
    """Return the first of several ways to edit a text that says exactly what it should.

    Raises:
        UnreadableError: None does.
    """
    for way in ways:
        try:
            edited = way()
            settings = _read_toml(edited) if settings_format == "toml" else _read_json(edited, settings_format)
        except UnreadableError:
            continue
        if _dump_comparable(settings) == _dump_comparable(expected):
            return edited
    raise UnreadableError("it is written in a way that can't be changed safely")


def _dump_comparable(settings: Mapping[str, object]) -> str:
    """Return settings for a comparison, in which an empty table is none: TOML needs no table without entries."""
    filled = {name: value for name, value in settings.items() if value != {}}
    return json.dumps(filled, sort_keys=True, default=str)


@dataclass(frozen=True, slots=True, kw_only=True)
class _JsonText:
    """A settings text in JSON, with the positions of the members down to the entries."""

    text: str
    plain: str
    """The text with spaces in the place of comments; trailing commas stand in it."""
    values: Mapping[JSONPath, JSONSpan]

    @classmethod
    def scan(cls, text: str) -> "_JsonText":
        plain = jsonscan.blank_comments(text)
        spans = jsonscan.find_values(jsonscan.blank_trailing_commas(plain))
        return cls(text=text, plain=plain, values={one.path: one for one in spans if len(one.path) <= _DEPTH})

    def members(self, path: JSONPath) -> list[JSONSpan]:
        """Return the members of an object, in their order."""
        return [one for one in self.values.values() if one.path and one.path[:-1] == path]

    def stop_of_comments(self, start: int) -> int:
        """Return where the comments end that follow on the same line."""
        stop = start
        while True:
            at = stop
            while self.text[at : at + 1] in {" ", "\t"}:
                at += 1
            if self.text.startswith("//", at):
                end = self.text.find("\n", at)
                end = len(self.text) if end < 0 else end
                return end - (self.text[end - 1] == "\r")
            if not self.text.startswith("/*", at):
                return stop
            stop = self.text.index("*/", at) + 2


def _put_json(text: str, key: str, name: str, value: object) -> str:
    if not text.strip():
        return _dump_json({key: {name: value}}, _DEFAULT_INDENT) + "\n"
    scanned = _JsonText.scan(text)
    if (key,) in scanned.values:
        return _put(scanned, (key, name), value)
    return _put(scanned, (key,), {name: value})


def _put(scanned: _JsonText, path: JSONPath, value: object) -> str:
    """Write a member in its place or after the last one, on lines of its own if the others are."""
    text, into = scanned.text, scanned.values[path[:-1]]
    members = scanned.members(path[:-1])
    # An empty object doesn't tell how its members would stand; the whole text does.
    has_lines = "\n" in (text[into.start : into.stop] if members else text.strip())
    line = _line_break(text, len(path)) if has_lines else ""
    written = _dump_json(value, _detect_indent(text)).replace("\n", line) if has_lines else _dump_json(value)
    if old := scanned.values.get(path):
        old_value: object = None
        with contextlib.suppress(ValueError):
            old_text = text[old.start : old.stop]
            old_value = json.loads(jsonscan.blank_trailing_commas(jsonscan.blank_comments(old_text)))
        return text if old_value == value else text[: old.start] + written + text[old.stop :]
    member = f"{_dump_json(path[-1])}: {written}"
    if members:  # after the last one, and after the comments of that one's line; a trailing comma is kept up
        last, comma = members[-1].stop, _COMMA.match(scanned.plain, members[-1].stop)
        stop = comma.end() if comma else last
        at = scanned.stop_of_comments(stop) if line else stop
        separator = line or " "
        if comma:
            return f"{text[:at]}{separator}{member},{text[at:]}"
        return f"{text[:stop]},{text[stop:at]}{separator}{member}{text[at:]}"
    # Comments in an empty object stay before the member.
    inner = text[into.start + 1 : into.stop - 1].rstrip()
    after = _line_break(text, len(path) - 1) if has_lines else ""
    return f"{text[: into.start + 1]}{inner}{line}{member}{after}{text[into.stop - 1 :]}"


def _cut_json(text: str, key: str, name: str, *, keeps_spaces: bool = False) -> str:
    """Cut a member with its comma and the spaces before it."""
    scanned = _JsonText.scan(text)
    span, into = scanned.values[key, name], scanned.values[(key,)]
    siblings = scanned.members((key,))
    index = siblings.index(span)
    before = siblings[index - 1] if index else None
    lower = before.stop if before else into.start + 1
    start = scanned.plain.index('"', lower)
    comma = _COMMA.match(scanned.plain, span.stop)
    stop = comma.end() if comma else span.stop
    if not keeps_spaces:
        while start > lower and text[start - 1] in _SPACES:
            start -= 1
    if before and not comma:  # the comma before it has nothing to separate any more
        separator = scanned.plain.index(",", lower)
        return text[:separator] + text[separator + 1 : start] + text[stop:]
    if len(siblings) == 1 and not (text[into.start + 1 : start] + text[stop : into.stop - 1]).strip():
        return f"{text[: into.start + 1]}{text[into.stop - 1 :]}"
    return text[:start] + text[stop:]


def _dump_json(value: object, indent: str | None = None) -> str:
    """Write JSON that can be encoded: a lone surrogate stays an escape."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return _SURROGATE.sub(lambda half: f"\\u{ord(half[0]):04x}", text)


def _line_break(text: str, depth: int) -> str:
    return ("\r\n" if "\r\n" in text else "\n") + _detect_indent(text) * depth


def _detect_indent(text: str) -> str:
    match = _INDENT.search(text)
    return match[1] if match else _DEFAULT_INDENT


def _append_toml(text: str, key: str, name: str, entry: Mapping[str, object]) -> str:
    """Write a new table at the end of the text, where it parts no comment from the table below it."""
    import tomlkit  # noqa: PLC0415 - 40 ms that only a change of settings should cost

    if get_member(text, key, name, "toml") is not None:
        raise UnreadableError("the entry stands there already")
    document = tomlkit.document()
    table = tomlkit.table(is_super_table=True)
    table.add(name, dict(entry))
    document.add(key, table)
    separator = "" if not text.strip() else "\n" if text.endswith("\n") else "\n\n"
    return _with_line_breaks(f"{text}{separator}{tomlkit.dumps(document)}", text)


def _change_toml(text: str, key: str, name: str, entry: Mapping[str, object]) -> str:
    """Write in its place what differs in an entry, or an entry into a table that stands on one line."""
    import tomlkit  # noqa: PLC0415 - as above
    from tomlkit.exceptions import TOMLKitError  # noqa: PLC0415 - as above

    document = tomlkit.parse(text)
    tables = cast("MutableMapping[str, Any]", document)
    try:
        if name in tables[key]:
            _update(tables[key][name], entry)
        else:
            tables[key][name] = dict(entry)
    except (TOMLKitError, TypeError, AttributeError, KeyError) as error:
        raise UnreadableError(f"it can't be changed there ({error})") from None
    return _with_line_breaks(tomlkit.dumps(document), text)


def _update(table: MutableMapping[str, Any], members: Mapping[str, object]) -> None:
    """Make a table hold exactly some members; those that are the same stay as they are written."""
    for name in [name for name in table if name not in members]:
        del table[name]
    for name, value in members.items():
        present = table.get(name)
        if isinstance(present, MutableMapping) and is_object(value):
            _update(cast("MutableMapping[str, Any]", present), value)
        elif present != value:
            table[name] = copy.deepcopy(value)


def _cut_toml(text: str, key: str, name: str) -> str:
    """Cut the tables of an entry, up to the comments before the next table."""
    quoted = rf"""(?:{re.escape(name)}|"{re.escape(name)}"|'{re.escape(name)}')"""
    header = re.compile(rf"\s*\[\s*{re.escape(key)}\s*\.\s*{quoted}\s*[.\]]")
    kept: list[str] = []
    pending: list[str] = []
    """Blank lines and comments in an entry: they belong to what follows, if that isn't the entry's."""
    is_inside = False
    for line in text.splitlines(keepends=True):
        if line.lstrip().startswith("["):
            was_inside, is_inside = is_inside, header.match(line) is not None
            if not is_inside:
                kept += _without_first_blank(pending) if was_inside else []
            pending = []
        if not is_inside:
            kept.append(line)
        elif not line.strip() or line.lstrip().startswith("#"):
            pending.append(line)
        else:
            pending = []
    kept += _without_first_blank(pending)
    cut = "".join(kept)
    # The blank line that separated the entry from what comes before it.
    return cut.removesuffix("\n").removesuffix("\r") if _BLANK_END.search(cut) and is_inside else cut


def _without_first_blank(lines: list[str]) -> list[str]:
    return lines[1:] if lines and not lines[0].strip() else lines


def _delete_toml(text: str, key: str, name: str) -> str:
    import tomlkit  # noqa: PLC0415 - as above

    document = tomlkit.parse(text)
    del cast("MutableMapping[str, Any]", document)[key][name]
    written = _with_line_breaks(tomlkit.dumps(document), text)
    has_new_blank_line = _BLANK_END.search(written) and not _BLANK_END.search(text)
    return written.removesuffix("\n").removesuffix("\r") if has_new_blank_line else written


def _with_line_breaks(written: str, like: str) -> str:
    """Return a text with the line breaks of another one, if that has one kind."""
    has_windows_breaks = "\r\n" in like and not re.search(r"(?<!\r)\n", like)
    return re.sub(r"(?<!\r)\n", "\r\n", written) if has_windows_breaks else written


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
        return put_member(text, client.key, name, new_entry, client.format)
    except UnreadableError as error:
        raise settings_error(settings_file, str(error)) from None


def read_entry(client: McpClient, text: str, settings_file: Path, *, name: str = ENTRY_NAME) -> object:
    """Return the entry of that name in a client's settings; None if there is none.

    Raises:
        SetupError: The settings can't be read.
    """
    try:
        return get_member(text, client.key, name, client.format)
    except UnreadableError as error:
        raise settings_error(settings_file, str(error)) from None


def settings_error(settings_file: Path, why: str, *, hint: str = "") -> SetupError:
    """Return the error for settings that can't be edited."""
    hint = hint or "enter by hand what `knap mcp install CLIENT --dry-run` shows"
    return SetupError(f"{settings_file} can't be changed: {why}", hint=hint, code="client_settings")


_MOST_BACKUPS: Final = 10
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
        new_entry = clients.build_entry(client, request.command, request.environment)
        raw, content, problem = b"", b"", ""
        try:
            raw = _read_settings(settings_file)
            text = _decode_settings(raw, settings_file)
            existing_entry = read_entry(client, text, settings_file, name=request.name)
            new_entry = clients.build_entry(client, request.command, request.environment, existing_entry)
            content = _mark_of(raw) + merge_entry(client, text, new_entry, settings_file, name=request.name).encode()
        except SetupError as error:
            if not dry_run:
                raise
            problem = error.message
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
            changed = remove_member(text, client.key, name, client.format)
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
    """Copy the settings to a name beside them, as private as they are: they may contain keys.

    Of `_MOST_BACKUPS`, the first stays for good, as it is from before Knapper. The oldest other one makes room.
    """
    mode = stat.S_IMODE(settings_file.stat().st_mode)
    names = [settings_file.with_name(f"{settings_file.name}.bak{number or ''}") for number in range(_MOST_BACKUPS)]
    present = [file for file in names if file.exists()]
    if same := next((file for file in present if file.read_bytes() == raw), None):
        return same
    if len(present) == _MOST_BACKUPS:
        min(names[1:], key=lambda file: file.stat().st_mtime_ns).unlink()
    for backup_file in names:
        with contextlib.suppress(FileExistsError):
            handle = os.open(
                backup_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode & 0o700
            )
            with os.fdopen(handle, "wb") as file:
                file.write(raw)
            backup_file.chmod(mode)
            return backup_file
    raise OSError(errno.EEXIST, "other backups are being made", str(settings_file))


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

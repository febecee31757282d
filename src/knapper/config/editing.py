"""Change settings in the configuration file, and leave comments, order and everything else as written."""

from __future__ import annotations

import contextlib
import os
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from knapper.config import declarations, files, loading
from knapper.config.declarations import Setting, SettingValue
from knapper.config.settings import CLIENT_SETTINGS, RIGHTS, SETTINGS, VAULT_SETTINGS, Settings
from knapper.errors import BadInput, ConflictError, RefusedError, SetupError, StorageError
from knapper.jsontypes import is_list, is_object
from knapper.system import opening, private

if TYPE_CHECKING:
    from collections.abc import MutableMapping


SettingName = tuple[str, ...]
"""A setting's name in parts, as tables of TOML nest: ``("vaults", "My notes", "path")``."""
_GROUPS: Final = {"vaults": VAULT_SETTINGS, "clients": CLIENT_SETTINGS}
"""Sections that the person names, and what each may hold."""
_NAMED_PARTS: Final = 3


def parse_name(name: str) -> SettingName:
    """Return a setting's name in parts: ``vaults."My notes".path``, as TOML writes it.

    Raises:
        BadInput: It isn't the name of a key in TOML.
    """
    try:
        keys: object = tomllib.loads(f"{name} = 0")
    except ValueError:
        keys = None
    parts: list[str] = []
    while is_object(keys):
        table = keys
        if len(table) != 1:
            break
        part, keys = next(iter(table.items()))
        parts.append(part)
    if keys != 0 or "\n" in name:
        raise BadInput(f"'{name}' isn't the name of a setting", hint="`knap config` lists them", code="bad_setting")
    return tuple(parts)


def check_name(name: SettingName) -> None:
    """Check that a setting, or a section of settings, has this name.

    Raises:
        BadInput: There is none (code ``config_invalid``); the hint names the nearest one.
    """
    if name[0] in _GROUPS:
        known = {f"{name[0]}.{name[1]}.{row.name}" for row in _GROUPS[name[0]]} if len(name) >= _NAMED_PARTS else ()
    else:
        known = {row.name for row in SETTINGS} | {row.name.partition(".")[0] for row in SETTINGS}
    written = ".".join(name)
    if known and written not in known:
        hint = declarations.did_you_mean(written, known, "`knap config` lists all")
        raise BadInput(f"there is no setting '{written[:60]}'", hint=hint, code="config_invalid")


def check_can_be_set(name: SettingName) -> None:
    """Check that a value can be set by this name, before a file is written for it.

    Raises:
        BadInput: There is no such setting, or it is the name of a section (code ``config_invalid``).
    """
    check_name(name)
    written = ".".join(name)
    if name[0] in _GROUPS:
        inside = [row.name for row in _GROUPS[name[0]]] if len(name) < _NAMED_PARTS else []
        prefix = written if len(name) > 1 else f"{written}.NAME"
    else:
        prefix = written
        inside = [row.name.removeprefix(f"{written}.") for row in SETTINGS if row.name.startswith(f"{written}.")]
    if inside:
        hint = f"name one of its settings, such as {prefix}.{inside[0]}; `knap config` lists all"
        raise BadInput(
            f"'{written[:60]}' is a section, which has no value of its own", hint=hint, code="config_invalid"
        )


def parse_value(name: SettingName, text: str) -> SettingValue:
    """Return a value as the file has it, from what a person types: a number, a text, or texts with commas between.

    Raises:
        BadInput: The setting is a number, and the text isn't.
    """
    if len(name) == _NAMED_PARTS and name[0] in _GROUPS:
        rows, wanted = _GROUPS[name[0]], name[2]
    else:
        rows, wanted = SETTINGS, ".".join(name)
    kind = next((row.kind for row in rows if row.name == wanted), None)
    if kind == "count":
        try:
            return int(text)
        except ValueError:
            raise BadInput(
                f"{'.'.join(name)} is a whole number, and '{text}' isn't", hint="give digits alone", code="bad_setting"
            ) from None
    if kind == "texts":
        return tuple(part for part in (part.strip() for part in text.split(",")) if part)
    return text


def set_values(
    file: Path, values: Mapping[SettingName, SettingValue | None], *, check: Callable[[Path], object] | None = None
) -> bool:
    """Set settings in a configuration file, which is made if it is missing.

    The changed file is read as a whole before it takes the place of the old one, so that a mistake changes nothing.

    Args:
        file: The file; a link is followed, and stays.
        values: By name; None removes the setting from the file, which then has its default.
        check: Reads the configuration from the new file, which has another name yet; what it raises leaves the old one
            as it is. By default it is read as `knap` does.

    Returns:
        Whether anything changed.

    Raises:
        SetupError: The file can't be read, or would hold a name or a value that isn't a setting's.
        ConflictError: Somebody else saved the file meanwhile.
        StorageError: It can't be written.
    """
    import tomlkit  # noqa: PLC0415 - 40 ms that only a change of settings should cost
    from tomlkit.exceptions import TOMLKitError  # noqa: PLC0415 - the same

    before = b""
    if files.path_exists(file):
        _ = files.read_toml(file)  # the error names the line
        before = file.read_bytes()
    text = before.decode("utf-8-sig")
    try:
        document = tomlkit.parse(text)
        for name, value in values.items():
            tables = cast("MutableMapping[str, Any]", document)
            if value is None:
                _remove(tables, name)
            else:
                _put(tables, name, list(value) if isinstance(value, tuple) else value)
        changed = tomlkit.dumps(document)
    except (TOMLKitError, TypeError, AttributeError) as error:
        raise SetupError(
            f"{file} can't be changed here: {error}", hint=f"change it in an editor: {file}", code="config_invalid"
        ) from error
    if changed == text:
        return False
    mark = before[: len(before) - len(text.encode())]  # of the encoding
    check = check or (lambda fresh: loading.load(config_file=str(fresh)))
    _replace_checked(file, before, mark + changed.encode(), check)
    return True


def _put(document: MutableMapping[str, Any], name: SettingName, value: object) -> None:
    """Set a value in nested tables; missing tables are made."""
    import tomlkit  # noqa: PLC0415 - as above

    table: MutableMapping[str, Any] = document
    for part in name[:-1]:
        if part not in table:
            table[part] = tomlkit.table(is_super_table=part in _GROUPS)
        table = table[part]
    if name[-1] not in table or table[name[-1]] != value:
        table[name[-1]] = value


def _remove(document: MutableMapping[str, Any], name: SettingName) -> None:
    """Remove a value, if it is there, and the section of a vault or client that it leaves without value or comment."""
    table: MutableMapping[str, Any] | None = document
    for part in name[:-1]:
        table = table.get(part) if table is not None else None
    if table is None:
        return
    _ = table.pop(name[-1], None)
    if len(name) == _NAMED_PARTS and name[0] in _GROUPS and not table and not cast("Any", table).as_string().strip():
        del document[name[0]][name[1]]


def _replace_checked(file: Path, before: bytes, after: bytes, check: Callable[[Path], object]) -> None:
    """Write the file in one step, after the whole configuration could be read from its new content."""
    target = Path(os.path.realpath(file))
    fresh = private.new_name(target.with_name(f".{target.name}"))
    if target.exists() and not os.access(target, os.W_OK):  # a rename would pass over what its owner set
        raise StorageError(
            f"the configuration {file} is read-only",
            hint="make it writable, or edit it where it comes from",
            code="config_unwritable",
        )
    try:
        private.make_folder(target.parent)
        with os.fdopen(private.open_new(fresh), "wb") as stream:
            _ = stream.write(after)
            stream.flush()
            os.fsync(stream.fileno())
        _check(fresh, file, check)
        if (target.read_bytes() if target.exists() else b"") != before:
            raise ConflictError(f"the configuration {file} changed meanwhile", hint="look at it again", code="stale")
        if target.exists():
            fresh.chmod(target.stat().st_mode & 0o7777)
        opening.patiently(lambda: os.replace(fresh, target))  # noqa: PTH105 - which returns nothing
    except OSError as error:
        raise StorageError(
            f"the configuration {file} can't be written: {error.strerror or error}",
            hint="check the folder's permissions and free space",
            code="config_unwritable",
        ) from error
    finally:
        with contextlib.suppress(OSError):
            fresh.unlink(missing_ok=True)


def _check(fresh: Path, file: Path, check: Callable[[Path], object]) -> None:
    try:
        _ = check(fresh)
    except SetupError as error:
        # It names the new file and its lines, which the person will never see.
        message, hint = (_without_line(text, fresh, file) for text in (error.message, error.hint))
        if files.path_exists(file):
            try:
                _ = check(file)
            except SetupError as earlier:
                if _without_line(earlier.message, file, file) == message:
                    raise earlier from error  # the file has the fault already, and this names its line there
        raise SetupError(message, hint=hint, code=error.code) from error


def _without_line(text: str, fresh: Path, file: Path) -> str:
    """Return an error's text with the name of the file that was checked replaced, and without a line in it."""
    return re.sub(rf"{re.escape(str(fresh))}(:\d+)?", lambda _: str(file), text).replace(fresh.name, file.name)


def dotted(name: Sequence[str]) -> str:
    """Return a name as TOML writes it: ``vaults."My notes".path``."""
    import tomlkit  # noqa: PLC0415 - as above

    return ".".join(tomlkit.key(part).as_string() for part in name)


_FILE_ONLY_SECTIONS: Final = ("server.", "scripts.", "git.")
_FILE_ONLY_NAMES: Final = frozenset({"state_dir", "default_vault", "index.engine", "index.password", "index.readers"})
_ADDRESS_MARK: Final = "://"
SETTINGS_BY_NAME: Final = {setting.name: setting for setting in SETTINGS}


def is_savable(setting: Setting) -> bool:
    """Return whether a setting may be changed otherwise than in the file.

    Who gets in, what is run and read on the machine, and where state lies can't be.
    """
    is_file_only = setting.kind == "path" or setting.name in _FILE_ONLY_NAMES
    return not is_file_only and not setting.name.startswith(_FILE_ONLY_SECTIONS)


def read_settings_again(settings: Settings) -> Settings:
    """Load the settings anew from where they came from, without the flags of the command line.

    Raises:
        SetupError: A source can't be read, or says something that isn't a setting.
    """
    return _load_file(settings, settings.config_file)


def save_settings(settings: Settings, raw_values: Mapping[str, object]) -> Settings:
    """Save settings in the configuration file, and return what all sources say then.

    Args:
        settings: As they were loaded.
        raw_values: New values by name; None takes one out of the file.

    Raises:
        BadInput: A value can't be used, by itself or with the others.
        RefusedError: One may only be changed in the file, or an address while a key is set that may be sent there.
        SetupError: The file is written in a form that can't be changed by values.
        ConflictError: Somebody else saved the file meanwhile.
        StorageError: The file can't be written.
    """
    for name, raw in raw_values.items():
        setting = SETTINGS_BY_NAME.get(name)
        if setting is None:
            hint = declarations.did_you_mean(name, SETTINGS_BY_NAME, "`knap config` lists all")
            raise BadInput(f"there is no setting '{name[:60]}'", hint=hint, code="config_invalid")
        if not is_savable(setting):
            raise RefusedError(
                f"{name} is changed in the configuration file only",
                hint="it decides who gets in, or what is run or read on the machine; `knap config path` shows the file",
                code="file_only",
            )
        texts = raw if is_list(raw) else [raw]
        is_address = setting.kind == "url" or any(_ADDRESS_MARK in str(text) for text in texts)
        if not is_address or setting.secret:
            continue
        origins = {origin.name: origin for origin in read_settings_again(settings).origins}
        if any(each.secret and is_savable(each) and origins[each.name].value for each in SETTINGS):
            raise RefusedError(
                f"{name} isn't changed while a key is set: it might be sent to another address",
                hint="change it in the configuration file; `knap config path` shows where that is",
                code="file_only",
            )
    return _save(settings, {tuple(name.split(".")): (SETTINGS_BY_NAME[name], raw) for name, raw in raw_values.items()})


def save_rights(settings: Settings, client: str, raw_values: Mapping[str, object]) -> Settings:
    """Save what a client may see and change in its section of the configuration file; return what the file says then.

    Args:
        settings: As they were loaded.
        client: Its name; it gets a section if it has none.
        raw_values: New values by the names of `RIGHTS`; None takes one out of the file.

    Raises:
        BadInput: A value can't be used, by itself or with the others.
        SetupError: The file is written in a form that can't be changed by values.
        ConflictError: Somebody else saved the file meanwhile.
        StorageError: The file can't be written.
    """
    rights = {right.name: right for right in RIGHTS}
    for name in raw_values:
        if name not in rights:
            hint = declarations.did_you_mean(name, rights, "one of: " + ", ".join(rights))
            raise BadInput(f"there is no right '{name[:60]}'", hint=hint, code="config_invalid")
    return _save(settings, {("clients", client, name): (rights[name], raw) for name, raw in raw_values.items()})


def is_writable(file: Path) -> bool:
    """Return whether a configuration file can be changed, or made where it is missing."""
    target = Path(os.path.realpath(file))
    if target.exists() and not os.access(target, os.W_OK):
        return False
    folder = next(folder for folder in target.parents if folder.exists())
    return os.access(folder, os.W_OK)


def _save(settings: Settings, raw_values: Mapping[SettingName, tuple[Setting, object]]) -> Settings:
    """Check values and write them; the whole file must be good with them."""
    base = settings.config_file.parent
    try:
        changes = {
            name: None if raw is None else declarations.check_value(setting, raw, place="the request", base=base)
            for name, (setting, raw) in raw_values.items()
        }
        _ = set_values(settings.config_file, changes, check=partial(_load_file, settings))
    except SetupError as error:
        if error.code not in {"config_invalid", SetupError.code}:  # that of a pattern that isn't one
            raise
        raise BadInput(error.message, hint=error.hint, code="config_invalid") from error
    return read_settings_again(settings)


def _load_file(settings: Settings, config_file: Path) -> Settings:
    env_file = settings.env_file
    usual_env_file = settings.config_file.with_name(".env")
    return loading.load(
        config_file=str(config_file),
        env_file=str(env_file) if env_file and env_file != usual_env_file else "",
        cwd=settings.config_file.parent,
        may_be_missing=True,
    )

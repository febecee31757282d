"""Save settings in the configuration file, checked as a whole before anything is written."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final, cast

from knapper.config import editing, loading, values
from knapper.config.declarations import Setting, SettingValue
from knapper.config.settings import SETTINGS, Settings
from knapper.errors import BadInput, RefusedError, SetupError

_FILE_ONLY_SECTIONS: Final = ("server.", "scripts.", "git.")
_FILE_ONLY_NAMES: Final = frozenset({"state_dir", "default_vault"})
_ADDRESS_MARK: Final = "://"
SETTINGS_BY_NAME: Final = {setting.name: setting for setting in SETTINGS}


def is_savable(setting: Setting) -> bool:
    """Return whether a setting may be changed otherwise than in the file.

    Who gets in, what is run and read on the machine, and where state lies can't be.
    """
    is_file_only = setting.kind == "path" or setting.name in _FILE_ONLY_NAMES
    return not is_file_only and not setting.name.startswith(_FILE_ONLY_SECTIONS)


def read_again(settings: Settings) -> Settings:
    """Load the settings anew from where they came from, without the flags of the command line.

    Raises:
        SetupError: A source can't be read, or says something that isn't a setting.
    """
    return _load_file(settings, settings.config_file)


def save(settings: Settings, raw_values: Mapping[str, object]) -> Settings:
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
        _check_savable(settings, name, raw)
    try:
        changes = {tuple(name.split(".")): _check_value(settings, name, raw) for name, raw in raw_values.items()}
        _ = editing.set_values(settings.config_file, changes, check=partial(_load_file, settings))
    except SetupError as error:
        if error.code != "config_invalid":
            raise
        raise BadInput(error.message, hint=error.hint, code=error.code) from error
    return read_again(settings)


def _check_savable(settings: Settings, name: str, raw: object) -> None:
    setting = SETTINGS_BY_NAME.get(name)
    if setting is None:
        hint = values.did_you_mean(name, SETTINGS_BY_NAME, "`knap config` lists all")
        raise BadInput(f"there is no setting '{name[:60]}'", hint=hint, code="config_invalid")
    if not is_savable(setting):
        raise RefusedError(
            f"{name} is changed in the configuration file only",
            hint="it decides who gets in, or what is run or read on the machine; `knap config path` tells the file",
            code="file_only",
        )
    texts = cast("list[object]", raw) if isinstance(raw, list) else [raw]
    is_address = setting.kind == "url" or any(_ADDRESS_MARK in str(text) for text in texts)
    if is_address and not setting.secret and _has_key(settings):
        raise RefusedError(
            f"{name} isn't changed while a key is set: it might be sent to another address",
            hint="change it in the configuration file; `knap config path` tells where that is",
            code="file_only",
        )


def _has_key(settings: Settings) -> bool:
    origins = {origin.name: origin for origin in read_again(settings).origins}
    return any(setting.secret and is_savable(setting) and origins[setting.name].value for setting in SETTINGS)


def _check_value(settings: Settings, name: str, raw: object) -> SettingValue | None:
    if raw is None:
        return None
    return values.check_value(SETTINGS_BY_NAME[name], raw, place="the request", base=settings.config_file.parent)


def _load_file(settings: Settings, config_file: Path) -> Settings:
    env_file = settings.env_file
    usual_env_file = settings.config_file.with_name(".env")
    return loading.load(
        config_file=str(config_file),
        env_file=str(env_file) if env_file and env_file != usual_env_file else "",
        cwd=settings.config_file.parent,
        may_be_missing=True,
    )

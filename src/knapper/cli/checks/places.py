"""Check the places that the program reads and writes: configuration, vault, state folder, disk."""

import os
import shutil
import tempfile
from pathlib import Path

from knapper import config
from knapper.cli.finding import Finding
from knapper.cli.render.amounts import size
from knapper.config import Settings, Vault
from knapper.errors import KnapError

_LITTLE_SPACE = 200_000_000


def failed(name: str, error: KnapError) -> Finding:
    """Turn an error into a finding."""
    return Finding(name=name, state="fail", text=error.message, hint=error.hint)


def configuration(settings: Settings) -> Finding:
    """Tell which configuration was read, and warn where a vault's tools could write it."""
    where = settings.config_file
    for vault in settings.vaults:
        if config.holds(vault.path, where):
            hint = "move it out of the vault and name it with KNAP_CONFIG: what can write notes could change it"
            return Finding(name="config", state="warn", text=f"{where} lies in the vault '{vault.name}'", hint=hint)
    text = f"{where} is fine" if where.exists() else f"{where} isn't there, and not needed"
    return Finding(name="config", state="ok", text=text)


def vault(settings: Settings) -> Finding:
    """Check that the vault is chosen, there and readable."""
    try:
        chosen = settings.vault
    except KnapError as error:
        return failed("vault", error)
    try:
        with os.scandir(chosen.path) as entries:
            next(entries, None)
    except OSError as error:
        text = f"{chosen.path} can't be read: {error.strerror}"
        return Finding(name="vault", state="fail", text=text, hint="check its permissions")
    return Finding(name="vault", state="ok", text=f"{chosen.name}: {chosen.path}")


def state(settings: Settings) -> Finding:
    """Check that the state folder lies outside the vault and can be written."""
    try:
        folder = config.state_folder(settings) if isinstance(settings.choice, Vault) else settings.state_dir
    except KnapError as error:
        return failed("state", error)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"can be written")
    except OSError as error:
        text = f"{folder} can't be written: {error.strerror}"
        return Finding(name="state", state="fail", text=text, hint="check its permissions, or set KNAP_STATE_DIR")
    return Finding(name="state", state="ok", text=str(folder))


def disk(settings: Settings) -> Finding:
    """Check the space that is left for state."""
    folder = _there(settings.state_dir)
    free = shutil.disk_usage(folder).free
    if free < _LITTLE_SPACE:
        hint = "make room, or set KNAP_STATE_DIR to another disk"
        return Finding(name="disk", state="warn", text=f"only {size(free)} free at {folder}", hint=hint)
    return Finding(name="disk", state="ok", text=f"{size(free)} free")


def _there(path: Path) -> Path:
    return next(folder for folder in (path, *path.parents) if folder.exists())

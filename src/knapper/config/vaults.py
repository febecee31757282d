"""Tell which vault is meant, and where its state is kept."""

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from knapper.config import spelling, values
from knapper.config.files import Document
from knapper.config.settings import Settings, Vault
from knapper.config.table import VAULT_SETTINGS
from knapper.errors import SetupError

_MARK = ".obsidian"
"""The folder that makes its parent a vault of Obsidian's."""
_LONGEST_NAME = 60
_UNSAFE = re.compile(r"[^\w.-]+")
_NEXT_STEP = "name one: `knap --vault FOLDER …`, set VAULT_PATH, or add [vaults.NAME] with its path to {file}"


def configured(document: Document, sections: Mapping[str, Mapping[str, object]]) -> tuple[Vault, ...]:
    """Read the vaults of a configuration file.

    Args:
        document: The file, for messages and relative paths.
        sections: What stands below ``[vaults]``, by name.

    Raises:
        SetupError: A vault has no path, or a value of the wrong kind.
    """
    return tuple(_configured(document, name, section) for name, section in sections.items())


def choose(
    wanted: str, *, base: Path, vaults: Sequence[Vault], config_file: Path, place: str = ""
) -> tuple[Vault | SetupError, str]:
    """Choose a vault.

    Args:
        wanted: A configured name or a folder; empty where the person named none.
        base: Where a relative folder starts.
        vaults: Those that are configured.
        config_file: For the hint.
        place: What names *wanted*, where that isn't the command itself.

    Returns:
        The vault, or why there is none; and what chose it where nothing was *wanted*.
    """
    if wanted:
        return _named(wanted, place, base, vaults), ""
    if len(vaults) == 1:
        return _checked(vaults[0]), "the only configured vault"
    for folder in _around(base):
        if _is_folder(folder / _MARK):
            return _at(folder, vaults), f"the current folder: it is in a vault ({_MARK})"
    known = ", ".join(vault.name for vault in vaults)
    hint = f"choose one: `knap --vault NAME …`, with one of {known}" if known else _NEXT_STEP.format(file=config_file)
    return SetupError("no vault is chosen", code="no_vault", hint=hint), ""


def around(base: Path, chosen: Vault) -> Path | None:
    """Give the vault that holds a folder, where that is another one than the chosen."""
    if holds(chosen.path, base):
        return None
    return next((folder for folder in _around(base) if _is_folder(folder / _MARK)), None)


def holds(vault: Path, path: Path) -> bool:
    """Tell whether *path* lies in the folder *vault*, by whatever name it is reached."""
    real = _real(path)
    for folder in (real, *real.parents):
        try:
            if folder.samefile(vault):
                return True
        except OSError:
            continue
    return False


def state_folder(settings: Settings, vault: Vault | None = None) -> Path:
    """Give the folder that holds the state of a vault, the chosen one by default; it may not be there yet.

    The same folder of notes keeps its state when it gets another name in the configuration.

    Raises:
        SetupError: It would lie inside the vault.
    """
    vault = vault or settings.vault
    if holds(vault.path, settings.state_dir):
        raise SetupError(
            f"the state folder {settings.state_dir} lies inside the vault {vault.path}",
            code="state_in_vault",
            hint="set state_dir in the configuration, or KNAP_STATE_DIR, to a folder outside it",
        )
    parent = settings.state_dir / "vaults"
    digest = hashlib.sha256(os.fsencode(os.path.normcase(vault.path))).hexdigest()[:10]
    safe = _UNSAFE.sub("-", vault.name)[:_LONGEST_NAME].strip(".-") or "vault"
    own = parent / f"{safe}-{digest}"
    if not own.is_dir():
        return next((old for old in sorted(parent.glob(f"*-{digest}")) if old.is_dir()), own)
    return own


def _configured(document: Document, name: str, section: Mapping[str, object]) -> Vault:
    found = values.section(document, f"vaults.{name}", section, VAULT_SETTINGS)
    if "path" not in section:
        place = document.place(f"vaults.{name}")
        raise SetupError(
            f"the vault '{name}' in {place} has no path",
            code="config_invalid",
            hint=f'add a line to its section: path = "/the/folder/of/{name}"',
        )
    return Vault(
        name=name,
        path=_real(Path(str(found["path"]))),
        hidden=values.texts(found, "hidden"),
        read=values.texts(found, "read"),
        foreign_folders=values.texts(found, "foreign_folders"),
        foreign_properties=values.texts(found, "foreign_properties"),
    )


def _named(wanted: str, place: str, base: Path, vaults: Sequence[Vault]) -> Vault | SetupError:
    for vault in vaults:
        if vault.name == wanted:
            return _checked(vault)
    folder = values.expand(wanted, base)
    if _is_folder(folder):
        return _at(folder, vaults)
    names = [vault.name for vault in vaults]
    known = f"one of {', '.join(names)}" if names else "a name from the configuration"
    hint = f"give the folder of your notes, or {known}"
    by = f", which {place} names" if place else ""
    if _is_file(folder):
        return SetupError(f"'{wanted}' is a file, and no vault{by}", code="no_vault", hint=hint)
    hint = spelling.did_you_mean(wanted, names, hint)
    return SetupError(f"there is no vault and no folder '{wanted}'{by}", code="no_vault", hint=hint)


def _at(folder: Path, vaults: Sequence[Vault]) -> Vault:
    """Give the vault in *folder*; where it is a configured one, with what its owner says about it."""
    real = _real(folder)
    for vault in vaults:
        if vault.path == real or _same(vault.path, real):
            return vault
    return Vault(name=real.name or "vault", path=real)


def _checked(vault: Vault) -> Vault | SetupError:
    if _is_folder(vault.path):
        return vault
    problem = "is a file" if _is_file(vault.path) else "isn't there"
    return SetupError(
        f"the folder {vault.path} of the vault '{vault.name}' {problem}",
        code="no_vault",
        hint="correct its path in the configuration; `knap config path` tells where that is",
    )


def _around(base: Path) -> tuple[Path, ...]:
    real = _real(base)
    return (real, *real.parents)


def _real(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError):  # links in a circle
        return path.absolute()


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False

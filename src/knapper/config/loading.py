"""Load the settings from defaults, files, environment and flags, and choose the vault."""

import contextlib
import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, cast

import platformdirs

from knapper.config import declarations, files, settings
from knapper.config.declarations import Setting, SettingValue, read_section
from knapper.config.files import ALWAYS_MEANT, ConfigDocument, find_unused
from knapper.config.settings import (
    CLIENT_SETTINGS,
    CONFIG_ENV,
    SETTINGS,
    VAULT_SETTINGS,
    SettingOrigin,
    Settings,
    Vault,
)
from knapper.errors import SetupError

APP_NAME: Final = "knapper"
VAULTS = "vaults"
CLIENTS = "clients"
MASK = "(set)"
"""Stands for a secret that is set."""

_SECTION_SETTINGS: Mapping[str, tuple[Setting, ...]] = {VAULTS: VAULT_SETTINGS, CLIENTS: CLIENT_SETTINGS}
_SECTION_HINTS = {
    VAULTS: 'write [vaults.NAME] on a line, and path = "/the/folder" below it',
    CLIENTS: "write [clients.mcp] on a line, or another client's name, and its settings below it",
}
_URL_LOGIN = re.compile(r"//[^/@\s]+@")
_OBSIDIAN_FOLDER = ".obsidian"
"""The folder that makes its parent a vault of Obsidian's."""
_MAX_NAME_CHARS = 60
_UNSAFE_CHARACTERS = re.compile(r"[^\w.-]+")
_NO_VAULT_HINT = (
    "`knap setup` finds and sets up one; or name it: `knap --vault FOLDER …`, VAULT_PATH, "
    "or [vaults.NAME] with its path in {file}"
)
_NO_FLAGS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingSources:
    """What each source says; a later field is weaker."""

    flags: Mapping[str, str]
    """By setting's name."""
    environment: Mapping[str, str]
    env_file: ConfigDocument | None
    document: ConfigDocument | None
    defaults: Mapping[str, SettingValue]
    """Those that depend on the machine."""
    cwd: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedSetting:
    """A setting's value and its origin."""

    setting: Setting
    value: SettingValue
    source: str
    base: Path
    """The folder that a relative path starts at."""


def resolve_settings(sources: SettingSources) -> dict[str, ResolvedSetting]:
    """Resolve every setting: its value in the strongest source that has one.

    Raises:
        SetupError: A value isn't of its setting's kind.
    """
    resolved: dict[str, ResolvedSetting] = {}
    for setting in SETTINGS:
        strongest = next(_candidates(setting, sources), None)
        if strongest is None:
            value, source, base = sources.defaults.get(setting.name, setting.default), "default", sources.cwd
        else:
            raw, source, base = strongest
            value = declarations.check_value(setting, raw, place=source, base=base)
        resolved[setting.name] = ResolvedSetting(setting=setting, value=value, source=source, base=base)
    return resolved


def describe_value(setting: Setting, value: SettingValue, source: str, name: str = "") -> SettingOrigin:
    """Describe a setting's value, a secret masked."""
    text = ", ".join(value) if isinstance(value, tuple) else str(value)
    shown_value = _URL_LOGIN.sub(f"//{MASK}@", value) if isinstance(value, str) else value
    return SettingOrigin(
        content="" if setting.secret else shown_value,
        name=name or setting.name,
        value=MASK if setting.secret and text else _URL_LOGIN.sub(f"//{MASK}@", text),
        source=source,
        doc=setting.doc,
    )


def check_sections(document: ConfigDocument) -> dict[str, dict[str, Mapping[str, object]]]:
    """Return the sections of vaults and of clients by name, and refuse what no setting is called.

    Raises:
        SetupError: A name is unknown; the hint tells the nearest.
    """
    known = {setting.name for setting in SETTINGS}
    groups = {name.partition(".")[0] for name in known if "." in name}
    for name in _setting_names(document.values):
        if name not in known and not (name in groups and document.values.get(name) == {}):  # all of it commented out
            raise _unknown_setting_error(document, name, known)
    sections: dict[str, dict[str, Mapping[str, object]]] = {}
    for group, rows in _SECTION_SETTINGS.items():
        named = _as_mapping(document.values.get(group, {}))
        if named is None:
            raise _not_a_section_error(document, group, group)
        sections[group] = {}
        for name, written in named.items():
            title = f"{group}.{name}"
            section = _as_mapping(written)
            if section is None:
                raise _not_a_section_error(document, group, title)
            known = {f"{title}.{setting.name}" for setting in rows}
            for full_name in (f"{title}.{key}" for key in section):
                if full_name not in known:
                    raise _unknown_setting_error(document, full_name, known)
            sections[group][name] = section
    return sections


def describe_sections(
    document: ConfigDocument, sections_by_group: Mapping[str, Mapping[str, Mapping[str, object]]]
) -> tuple[SettingOrigin, ...]:
    """Describe what the sections of vaults and clients say, each value checked.

    Raises:
        SetupError: A value isn't of its setting's kind.
    """
    return tuple(
        describe_value(
            setting, checked[setting.name], document.place(f"{title}.{setting.name}"), f"{title}.{setting.name}"
        )
        for group, settings in _SECTION_SETTINGS.items()
        for title, section in ((f"{group}.{name}", section) for name, section in sections_by_group[group].items())
        for checked in [declarations.check_section(document, title, section, settings)]
        for setting in settings
        if setting.name in section
    )


def _setting_names(table: Mapping[str, object]) -> Iterator[str]:
    for name, value in table.items():
        section = _as_mapping(value)
        if name in _SECTION_SETTINGS:
            continue
        if section:
            yield from (f"{name}.{key}" for key in section)
        else:
            yield name


def _as_mapping(value: object) -> Mapping[str, object] | None:
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else None


def _candidates(setting: Setting, sources: SettingSources) -> Iterator[tuple[object, str, Path]]:
    """Yield a setting's raw values, each with its source and the folder that a relative path starts at.

    The strongest comes first. Whoever takes that one leaves the others unchecked: a variable or a flag helps where a
    weaker source has a wrong value.
    """
    if sources.flags.get(setting.name):
        yield sources.flags[setting.name], setting.flag, sources.cwd
    for name in setting.env:
        if name in sources.environment:
            yield sources.environment[name], name, sources.cwd
    if sources.env_file:
        env_file = sources.env_file
        for name in setting.env:
            if env_file.values.get(name):
                yield env_file.values[name], f"{name} in {env_file.place(name)}", env_file.path.parent
    if sources.document:
        section, _, key = setting.name.rpartition(".")
        inner = _as_mapping(sources.document.values.get(section, {})) if section else sources.document.values
        value = inner.get(key) if inner else None
        if value is not None:
            yield value, sources.document.place(setting.name), sources.document.path.parent


def _unknown_setting_error(document: ConfigDocument, name: str, known: set[str]) -> SetupError:
    return SetupError(
        f"there is no setting '{name}' ({document.place(name)})",
        code="config_invalid",
        hint=declarations.did_you_mean(name, known, "`knap config` without this file lists all settings"),
    )


def _not_a_section_error(document: ConfigDocument, group: str, name: str) -> SetupError:
    return SetupError(
        f"'{name}' in {document.place(name)} must be a section",
        code="config_invalid",
        hint=_SECTION_HINTS[group],
    )


def read_vaults(document: ConfigDocument, sections: Mapping[str, Mapping[str, object]]) -> tuple[Vault, ...]:
    """Read the vaults of a configuration file.

    Args:
        document: The file, for messages and relative paths.
        sections: What stands below ``[vaults]``, by name.

    Raises:
        SetupError: A vault has no path, or a value of the wrong kind.
    """
    vaults: list[Vault] = []
    for name, section in sections.items():
        checked_values = declarations.check_section(document, f"vaults.{name}", section, VAULT_SETTINGS)
        if "path" not in section:
            place = document.place(f"vaults.{name}")
            raise SetupError(
                f"the vault '{name}' in {place} has no path",
                code="config_invalid",
                hint=f'add a line to its section: path = "/the/folder/of/{name}"',
            )
        vault = read_section(Vault, checked_values, name=name)
        vaults.append(replace(vault, path=_resolve_path(vault.path)))
    return tuple(vaults)


def choose_vault(
    name_or_folder: str, *, base: Path, vaults: Sequence[Vault], config_file: Path, place: str = ""
) -> tuple[Vault | SetupError, str]:
    """Choose a vault.

    Args:
        name_or_folder: A configured name or a folder; empty where the person named none.
        base: Where a relative folder starts.
        vaults: Those that are configured.
        config_file: For the hint.
        place: What names *name_or_folder*, where that isn't the command itself.

    Returns:
        The vault, or why there is none; and what chose it where nothing was *name_or_folder*.
    """
    if name_or_folder:
        return _find_named_vault(name_or_folder, place, base, vaults), ""
    if len(vaults) == 1:
        return check_vault_folder(vaults[0]), "the only configured vault"
    for folder in _enclosing_folders(base):
        if _is_folder(folder / _OBSIDIAN_FOLDER):
            return _vault_in_folder(folder, vaults), f"the current folder: it is in a vault ({_OBSIDIAN_FOLDER})"
    known = ", ".join(vault.name for vault in vaults)
    hint = (
        f"choose one: `knap --vault NAME …`, with one of {known}" if known else _NO_VAULT_HINT.format(file=config_file)
    )
    return SetupError("no vault is chosen", code="no_vault", hint=hint), ""


def enclosing_vault(base: Path, chosen: Vault) -> Path | None:
    """Return the vault that holds a folder, where that is another one than the chosen."""
    if holds(chosen.path, base):
        return None
    return next((folder for folder in _enclosing_folders(base) if _is_folder(folder / _OBSIDIAN_FOLDER)), None)


def holds(vault: Path, path: Path) -> bool:
    """Check whether *path* lies in the folder *vault*, by whatever name it is reached."""
    real = _resolve_path(path)
    for folder in (real, *real.parents):
        try:
            if folder.samefile(vault):
                return True
        except OSError:
            continue
    return False


def state_folder(settings: Settings, vault: Vault | None = None) -> Path:
    """Return the folder that holds the state of a vault, the chosen one by default; it may not be there yet.

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
    safe = _UNSAFE_CHARACTERS.sub("-", vault.name)[:_MAX_NAME_CHARS].strip(".-") or "vault"
    own = parent / f"{safe}-{digest}"
    if not own.is_dir():
        return next((old for old in sorted(parent.glob(f"*-{digest}")) if old.is_dir()), own)
    return own


def _find_named_vault(name_or_folder: str, place: str, base: Path, vaults: Sequence[Vault]) -> Vault | SetupError:
    for vault in vaults:
        if vault.name == name_or_folder:
            return check_vault_folder(vault)
    folder = declarations.expand_path(name_or_folder, base)
    if _is_folder(folder):
        return _vault_in_folder(folder, vaults)
    names = [vault.name for vault in vaults]
    known = f"one of {', '.join(names)}" if names else "a name from the configuration"
    hint = f"give the folder of your notes, or {known}"
    by = f", which {place} names" if place else ""
    if _is_file(folder):
        return SetupError(f"'{name_or_folder}' is a file, and no vault{by}", code="no_vault", hint=hint)
    hint = declarations.did_you_mean(name_or_folder, names, hint)
    return SetupError(f"there is no vault and no folder '{name_or_folder}'{by}", code="no_vault", hint=hint)


def _vault_in_folder(folder: Path, vaults: Sequence[Vault]) -> Vault:
    """Return the vault in *folder*; where it is a configured one, with what its owner says about it."""
    real = _resolve_path(folder)
    for vault in vaults:
        with contextlib.suppress(OSError):  # one of the two isn't there
            if vault.path == real or vault.path.samefile(real):
                return vault
    return Vault(name=real.name or "vault", path=real)


def check_vault_folder(vault: Vault) -> Vault | SetupError:
    """Return the vault, or the error that its folder isn't there; one that is read elsewhere needs none."""
    if _is_folder(vault.path) or not vault.has_files:
        return vault
    problem = "is a file" if _is_file(vault.path) else "isn't there"
    return SetupError(
        f"the folder {vault.path} of the vault '{vault.name}' {problem}",
        code="vault_missing",
        hint="correct its path in the configuration; `knap config path` shows where that is",
    )


def _enclosing_folders(base: Path) -> tuple[Path, ...]:
    real = _resolve_path(base)
    return (real, *real.parents)


def _resolve_path(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError):  # links in a circle
        return path.absolute()


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


def load(
    flags: Mapping[str, str] = _NO_FLAGS,
    *,
    config_file: str = "",
    env_file: str = "",
    cwd: Path | None = None,
    may_be_missing: bool = False,
    variables: Mapping[str, str] | None = None,
) -> Settings:
    """Read every source of settings.

    Args:
        flags: By setting's name: ``{"default_vault": "~/Notes"}`` is ``--vault ~/Notes``; empty ones aren't given.
        config_file: The TOML file that a flag names; it has to be there, unless it may be missing.
        env_file: The file of NAME=value lines that a flag names; it has to be there.
        cwd: Where relative paths start; the current folder by default.
        may_be_missing: Take the defaults where *config_file* isn't there.
        variables: Those of `variable_names` that another process has set; None for this process's own.

    Raises:
        SetupError: A file can't be read, or says something that isn't a setting. That no vault can be chosen is told
            only when the vault is asked for.
    """
    cwd = cwd or _current_folder()
    environ = files.read_variables(variable_names()) if variables is None else variables
    config_path = _config_path(config_file, environ, cwd)
    is_needed = bool(config_file) and not may_be_missing
    document = files.read_toml(config_path) if is_needed or files.path_exists(config_path) else None
    env_path = declarations.expand_path(env_file, cwd) if env_file else config_path.with_name(".env")
    secrets = files.read_env(env_path) if env_file or files.path_exists(env_path) else None
    sources = SettingSources(
        flags=flags,
        environment=environ,
        env_file=secrets,
        document=document,
        defaults={"state_dir": str(platformdirs.user_data_path(APP_NAME, appauthor=False))},
        cwd=cwd,
    )
    return _build_settings(sources, config_path)


def variable_names(*, secret: bool | None = None) -> list[str]:
    """Return the names of the variables that mean something to `load`: all, or those whose values are secret or not."""
    usual = [] if secret else [CONFIG_ENV, *ALWAYS_MEANT]
    return [*usual, *(name for each in SETTINGS if secret in {None, each.secret} for name in each.env)]


def locate(config_file: str = "", *, cwd: Path | None = None) -> Path:
    """Return where the configuration file is, or would be, without reading it.

    Args:
        config_file: The one that a flag names.
        cwd: Where relative paths start; the current folder by default.
    """
    return _config_path(config_file, files.read_variables([CONFIG_ENV]), cwd or _current_folder())


def _current_folder() -> Path:
    try:
        return Path.cwd()
    except OSError as error:
        raise SetupError(
            "the current folder isn't there any more", code="no_folder", hint="go to another one"
        ) from error


def _config_path(config_file: str, environ: Mapping[str, str], cwd: Path) -> Path:
    named = config_file or environ.get(CONFIG_ENV, "")
    if named:
        return declarations.expand_path(named, cwd)
    return platformdirs.user_config_path(APP_NAME, appauthor=False) / "config.toml"


def _build_settings(sources: SettingSources, config_path: Path) -> Settings:
    document = sources.document
    sections = check_sections(document) if document else {}
    resolved = resolve_settings(sources)
    values_by_name = {name: each.value for name, each in resolved.items()}
    configured_vaults = read_vaults(document, sections[VAULTS]) if document else ()
    configured_clients = (
        settings.read_clients(document, sections[CLIENTS], [vault.name for vault in configured_vaults])
        if document
        else ()
    )
    vault_setting = resolved["default_vault"]
    is_named = bool(sources.flags.get("default_vault"))
    choice, choice_reason = choose_vault(
        str(vault_setting.value),
        base=vault_setting.base,
        vaults=configured_vaults,
        config_file=config_path,
        place="" if is_named else vault_setting.source,
    )
    # Only now: the chosen vault may be a folder that no section names.
    _refuse_env_in_vault(sources.env_file, [*configured_vaults, *([choice] if isinstance(choice, Vault) else [])])
    return read_section(
        Settings,
        values_by_name,
        choice=choice,
        passed_by=None if is_named or isinstance(choice, SetupError) else enclosing_vault(sources.cwd, choice),
        vaults=configured_vaults,
        clients=configured_clients,
        config_file=config_path,
        env_file=sources.env_file.path if sources.env_file else None,
        origins=_list_origins(
            resolved, choice, choice_reason, describe_sections(document, sections) if document else ()
        ),
        unused=tuple(find_unused(sources.environment, sources.env_file)),
    )


def _list_origins(
    resolved: Mapping[str, ResolvedSetting], choice: Vault | SetupError, why: str, stated: Sequence[SettingOrigin]
) -> tuple[SettingOrigin, ...]:
    chosen = SettingOrigin(
        name="vault",
        value=str(choice.path) if isinstance(choice, Vault) else "",
        source=why or (resolved["default_vault"].source if isinstance(choice, Vault) else choice.message),
        doc="The vault that a command works on now.",
    )
    return (chosen, *(describe_value(each.setting, each.value, each.source) for each in resolved.values()), *stated)


def _refuse_env_in_vault(env_file: ConfigDocument | None, known: Sequence[Vault]) -> None:
    for vault in known if env_file else ():
        if env_file and holds(vault.path, env_file.path):
            raise SetupError(
                f"the file of secrets {env_file.path} lies inside the vault {vault.path}",
                code="env_in_vault",
                hint="move it out of the vault, where no tool reads or writes, and name it with --env-file",
            )

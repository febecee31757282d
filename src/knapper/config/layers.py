"""Find each setting's value in the sources, the strongest first."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from knapper.config import spelling, values
from knapper.config.files import Document
from knapper.config.setting import Setting, Value
from knapper.config.settings import Origin
from knapper.config.table import CLIENT_SETTINGS, SETTINGS, VAULT_SETTINGS
from knapper.errors import SetupError

VAULTS = "vaults"
CLIENTS = "clients"
MASK = "(set)"
"""Stands for a secret that is set."""

_GROUPS: Mapping[str, tuple[Setting, ...]] = {VAULTS: VAULT_SETTINGS, CLIENTS: CLIENT_SETTINGS}
_HINTS = {
    VAULTS: 'write [vaults.NAME] on a line, and path = "/the/folder" below it',
    CLIENTS: "write [clients.mcp] on a line, or another client's name, and its settings below it",
}
_LOGIN = re.compile(r"//[^/@\s]+@")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Hold what the sources say; a later field is weaker."""

    flags: Mapping[str, str]
    """By setting's name."""
    environment: Mapping[str, str]
    env_file: Document | None
    document: Document | None
    defaults: Mapping[str, Value]
    """Those that depend on the machine."""
    cwd: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Hold a setting's value and its origin."""

    setting: Setting
    value: Value
    source: str
    base: Path
    """The folder that a relative path starts at."""


def find(sources: Sources) -> dict[str, Found]:
    """Find every setting's value.

    Raises:
        SetupError: A value isn't of its setting's kind.
    """
    return {setting.name: _find(setting, sources) for setting in SETTINGS}


def origin(found: Found) -> Origin:
    """Describe a found setting, a secret masked."""
    return describe(found.setting, found.value, found.source)


def describe(setting: Setting, value: Value, source: str, name: str = "") -> Origin:
    """Describe a setting's value, a secret masked."""
    text = ", ".join(value) if isinstance(value, tuple) else str(value)
    return Origin(
        name=name or setting.name,
        value=MASK if setting.secret and text else _LOGIN.sub(f"//{MASK}@", text),
        source=source,
        doc=setting.doc,
    )


def sections(document: Document) -> dict[str, dict[str, Mapping[str, object]]]:
    """Give the sections of vaults and of clients by name, and refuse what no setting is called.

    Raises:
        SetupError: A name is unknown; the hint tells the nearest.
    """
    known = {setting.name for setting in SETTINGS}
    groups = {name.partition(".")[0] for name in known if "." in name}
    for name in _names(document.values):
        if name not in known and not (name in groups and document.values.get(name) == {}):  # all of it commented out
            raise _unknown(document, name, known)
    return {group: _sections(document, group) for group in _GROUPS}


def stated(document: Document, found: Mapping[str, Mapping[str, Mapping[str, object]]]) -> tuple[Origin, ...]:
    """Describe what the sections of `sections` say, each value checked.

    Raises:
        SetupError: A value isn't of its setting's kind.
    """
    return tuple(
        describe(setting, checked[setting.name], document.place(f"{title}.{setting.name}"), f"{title}.{setting.name}")
        for group, settings in _GROUPS.items()
        for title, section in ((f"{group}.{name}", section) for name, section in found[group].items())
        for checked in [values.section(document, title, section, settings)]
        for setting in settings
        if setting.name in section
    )


def _sections(document: Document, group: str) -> dict[str, Mapping[str, object]]:
    mapping = _mapping(document.values.get(group, {}))
    if mapping is None:
        raise _no_section(document, group, group)
    return {name: _section(document, group, name, section) for name, section in mapping.items()}


def _section(document: Document, group: str, name: str, section: object) -> Mapping[str, object]:
    mapping = _mapping(section)
    if mapping is None:
        raise _no_section(document, group, f"{group}.{name}")
    prefix = f"{group}.{name}."
    known = {prefix + setting.name for setting in _GROUPS[group]}
    for key in mapping:
        if prefix + key not in known:
            raise _unknown(document, prefix + key, known)
    return mapping


def _names(table: Mapping[str, object]) -> Iterator[str]:
    for name, value in table.items():
        section = _mapping(value)
        if name in _GROUPS:
            continue
        if section:
            yield from (f"{name}.{key}" for key in section)
        else:
            yield name


def _mapping(value: object) -> Mapping[str, object] | None:
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else None


def _find(setting: Setting, sources: Sources) -> Found:
    for raw, source, base in _candidates(setting, sources):
        return Found(
            setting=setting, value=values.check(setting, raw, place=source, base=base), source=source, base=base
        )
    value = sources.defaults.get(setting.name, setting.default)
    return Found(setting=setting, value=value, source="default", base=sources.cwd)


def _candidates(setting: Setting, sources: Sources) -> Iterator[tuple[object, str, Path]]:
    if sources.flags.get(setting.name):
        yield sources.flags[setting.name], setting.flag, sources.cwd
    for name in setting.env:
        if name in sources.environment:
            yield sources.environment[name], name, sources.cwd
    if sources.env_file:
        said = sources.env_file
        for name in setting.env:
            if said.values.get(name):
                yield said.values[name], f"{name} in {said.place(name)}", said.path.parent
    if sources.document:
        value = _lookup(sources.document.values, setting.name)
        if value is not None:
            yield value, sources.document.place(setting.name), sources.document.path.parent


def _lookup(table: Mapping[str, object], name: str) -> object:
    section, _, key = name.rpartition(".")
    inner = _mapping(table.get(section, {})) if section else table
    return inner.get(key) if inner else None


def _unknown(document: Document, name: str, known: set[str]) -> SetupError:
    return SetupError(
        f"there is no setting '{name}' ({document.place(name)})",
        code="config_invalid",
        hint=spelling.did_you_mean(name, known, "`knap config` without this file lists all settings"),
    )


def _no_section(document: Document, group: str, name: str) -> SetupError:
    return SetupError(
        f"'{name}' in {document.place(name)} must be a section",
        code="config_invalid",
        hint=_HINTS[group],
    )

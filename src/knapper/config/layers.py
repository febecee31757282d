"""Find each setting's value in the sources, the strongest first."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from knapper.config import spelling, values
from knapper.config.files import Document
from knapper.config.settings import Origin
from knapper.config.table import SETTINGS, VAULT_SETTINGS, Setting, Value
from knapper.errors import SetupError

VAULTS = "vaults"
MASK = "(set)"
"""Stands for a secret that is set."""

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


def describe(setting: Setting, value: Value, source: str, *, name: str = "") -> Origin:
    """Describe a setting's value, a secret masked."""
    text = ", ".join(value) if isinstance(value, tuple) else str(value)
    return Origin(
        name=name or setting.name,
        value=MASK if setting.secret and text else _LOGIN.sub(f"//{MASK}@", text),
        source=source,
        doc=setting.doc,
    )


def sections(document: Document) -> dict[str, Mapping[str, object]]:
    """Give the vaults' sections, and refuse what no setting is called.

    Raises:
        SetupError: A name is unknown; the hint tells the nearest.
    """
    known = {setting.name for setting in SETTINGS}
    for name in _names(document.values):
        if name not in known:
            raise _unknown(document, name, known)
    vaults = _mapping(document.values.get(VAULTS, {}))
    if vaults is None:
        raise _no_section(document, VAULTS)
    return {name: _vault(document, name, section) for name, section in vaults.items()}


def _vault(document: Document, name: str, section: object) -> Mapping[str, object]:
    mapping = _mapping(section)
    if mapping is None:
        raise _no_section(document, f"{VAULTS}.{name}")
    prefix = f"{VAULTS}.{name}."
    known = {prefix + setting.name for setting in VAULT_SETTINGS}
    for key in mapping:
        if prefix + key not in known:
            raise _unknown(document, prefix + key, known)
    return mapping


def _names(table: Mapping[str, object]) -> Iterator[str]:
    for name, value in table.items():
        section = _mapping(value)
        if name == VAULTS:
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


def _no_section(document: Document, name: str) -> SetupError:
    return SetupError(
        f"'{name}' in {document.place(name)} must be a section",
        code="config_invalid",
        hint='write [vaults.NAME] on a line, and path = "/the/folder" below it',
    )

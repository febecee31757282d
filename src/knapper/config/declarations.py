"""Say what a setting is: its name in the configuration file, the variables that set it, its default, its purpose."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

SettingKind = Literal["text", "path", "url", "count", "choice", "texts"]
SettingValue = str | int | tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Describe one setting."""

    name: str
    """Dotted, as in the file: ``embeddings.kind`` is ``kind`` in the section ``[embeddings]``."""
    doc: str
    kind: SettingKind = "text"
    default: SettingValue = ""
    env: tuple[str, ...] = ()
    """Variables that set it; the first one that is set counts."""
    flag: str = ""
    choices: tuple[str, ...] = ()
    least: int = 0
    most: int = 0
    secret: bool = False


SettingValues = Mapping[str, SettingValue]
"""Checked values, by the settings' names."""


def get_text(values: SettingValues, name: str) -> str:
    """Give a setting that is a text, a path, an address or a choice."""
    return str(values[name])


def get_count(values: SettingValues, name: str) -> int:
    """Give a setting that is a number."""
    value = values[name]
    return value if isinstance(value, int) else 0


def get_texts(values: SettingValues, name: str) -> tuple[str, ...]:
    """Give a setting that is a list of texts."""
    value = values.get(name, ())
    return value if isinstance(value, tuple) else ()

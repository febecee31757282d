"""Check the values of settings."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from knapper.config.files import Document
from knapper.config.setting import Setting, Value
from knapper.errors import SetupError

_URL = re.compile(r"https?://[^\s/]+(?:/\S*)?")
_ON = ("on", "yes")
_OFF = ("off", "no")
_SWITCHED: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("true", "yes", "on"), _ON),
    **dict.fromkeys(("false", "no", "off"), _OFF),
}
_WANTED = {
    "text": "a text",
    "path": "a path",
    "url": "an address that begins with http:// or https://",
    "texts": "a list of texts",
}


def check(setting: Setting, raw: object, *, place: str, base: Path) -> Value:
    """Turn a raw value into a setting's.

    Args:
        setting: Says what is wanted.
        raw: As TOML has it; text, where it comes from elsewhere.
        place: Where it comes from, for the message.
        base: The folder that a relative path starts at.

    Raises:
        SetupError: The value isn't of the setting's kind.
    """
    value: Value | None = None
    if setting.kind == "count":
        value = _count(setting, raw)
    elif setting.kind == "texts":
        value = _texts(setting, raw)
    elif setting.kind == "choice" and str(raw).strip().casefold() in _SWITCHED:
        value = _switch(setting, str(raw).strip().casefold())
    elif isinstance(raw, str) and "\0" not in raw:
        value = _text(setting, raw.strip(), base)
    if value is None:
        raise _wrong(setting, raw, place)
    return value


def section(
    document: Document, name: str, given: Mapping[str, object], settings: Sequence[Setting]
) -> dict[str, Value]:
    """Read the settings of one section, with the defaults of those that it doesn't give.

    Args:
        document: The file.
        name: The section's, dotted.
        given: What it says.
        settings: What it may say.

    Raises:
        SetupError: A value isn't of its setting's kind.
    """
    found: dict[str, Value] = {}
    for setting in settings:
        found[setting.name] = setting.default
        if setting.name in given:
            place = document.place(f"{name}.{setting.name}")
            found[setting.name] = check(setting, given[setting.name], place=place, base=document.path.parent)
    return found


def texts(found: Mapping[str, Value], name: str) -> tuple[str, ...]:
    """Give a setting that is a list of texts."""
    value = found.get(name, ())
    return value if isinstance(value, tuple) else ()


def expand(raw: str, base: Path) -> Path:
    """Make a path absolute; ``~`` is the home folder."""
    try:
        path = Path(raw).expanduser()
    except RuntimeError:  # no such user
        path = Path(raw)
    return base / path


def _text(setting: Setting, raw: str, base: Path) -> str | None:
    if setting.kind == "choice":
        return raw if raw in setting.choices else None
    if setting.kind == "url":
        return raw.rstrip("/") if not raw or _URL.fullmatch(raw) else None
    if setting.kind == "path":
        return str(expand(raw, base)) if raw else None
    return raw


def _switch(setting: Setting, said: str) -> str | None:
    """Take ``true`` and ``no`` for what a setting calls them."""
    return next((word for word in _SWITCHED[said] if word in setting.choices), None)


def _count(setting: Setting, raw: object) -> int | None:
    if isinstance(raw, str):
        raw = int(raw) if re.fullmatch(r"\s*\d{1,9}\s*", raw) else None
    if not isinstance(raw, int) or isinstance(raw, bool):
        return None
    return raw if setting.least <= raw <= setting.most else None


def _texts(setting: Setting, raw: object) -> tuple[str, ...] | None:
    if not isinstance(raw, list):
        return None
    items = cast("list[object]", raw)
    texts = tuple(item for item in items if isinstance(item, str) and "\0" not in item)
    if setting.choices:
        texts = tuple(item for item in texts if item in setting.choices)
    return texts if len(texts) == len(items) else None


def _wrong(setting: Setting, raw: object, place: str) -> SetupError:
    wanted = _WANTED.get(setting.kind, "")
    if setting.choices:
        wanted = ("one of " if setting.kind == "choice" else "a list with some of ") + ", ".join(setting.choices)
    if setting.kind == "count":
        wanted = f"a whole number from {setting.least} to {setting.most}"
    shown = "its value" if setting.secret else repr(raw)[:80]
    return SetupError(
        f"{setting.name} in {place} must be {wanted}, not {shown}",
        code="config_invalid",
        hint=f"{setting.name}: {setting.doc}",
    )

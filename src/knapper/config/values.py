"""Check the values of settings, and suggest what a mistyped word may have meant."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import cast

from knapper.config.declarations import OFF_WORDS, ON_WORDS, Setting, SettingValue
from knapper.config.files import ConfigDocument
from knapper.errors import SetupError

_URL = re.compile(r"https?://[^\s/]+(?:/\S*)?")
_SWITCH_WORDS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("true", "yes", "on"), ON_WORDS),
    **dict.fromkeys(("false", "no", "off"), OFF_WORDS),
}
_EXPECTED_KINDS = {
    "text": "a text",
    "verbatim": "a text",
    "path": "a path",
    "url": "an address that begins with http:// or https://",
    "texts": "a list of texts",
}
_MIN_LIKENESS = 60
"""From 0 to 100: a word that is less like another is no misspelling of it."""


def check_value(setting: Setting, raw: object, *, place: str, base: Path) -> SettingValue:
    """Turn a raw value into a setting's.

    Args:
        setting: Says what is wanted.
        raw: As TOML has it; text, where it comes from elsewhere.
        place: Where it comes from, for the message.
        base: The folder that a relative path starts at.

    Raises:
        SetupError: The value isn't of the setting's kind.
    """
    value: SettingValue | None = None
    if setting.kind == "count":
        value = _parse_count(setting, raw)
    elif setting.kind == "texts":
        value = _parse_texts(setting, raw)
    elif setting.kind == "choice" and str(raw).strip().casefold() in _SWITCH_WORDS:
        value = _parse_switch(setting, str(raw).strip().casefold())
    elif isinstance(raw, str) and "\0" not in raw:
        value = raw if setting.kind == "verbatim" else _parse_text(setting, raw.strip(), base)
    if value is None:
        raise _wrong_value_error(setting, raw, place)
    return value


def check_section(
    document: ConfigDocument, name: str, raw_values: Mapping[str, object], settings: Sequence[Setting]
) -> dict[str, SettingValue]:
    """Read the settings of one section, with the defaults of those that it doesn't give.

    Args:
        document: The file.
        name: The section's, dotted.
        raw_values: What it says.
        settings: What it may say.

    Raises:
        SetupError: A value isn't of its setting's kind.
    """
    checked_values: dict[str, SettingValue] = {}
    for setting in settings:
        checked_values[setting.name] = setting.default
        if setting.name in raw_values:
            place = document.place(f"{name}.{setting.name}")
            checked_values[setting.name] = check_value(
                setting, raw_values[setting.name], place=place, base=document.path.parent
            )
    return checked_values


def expand_path(raw: str, base: Path) -> Path:
    """Make a path absolute; ``~`` is the home folder."""
    try:
        path = Path(raw).expanduser()
    except RuntimeError:  # no such user
        path = Path(raw)
    return base / path


def _parse_text(setting: Setting, raw: str, base: Path) -> str | None:
    if setting.kind == "choice":
        return raw if raw in setting.choices else None
    if setting.kind == "url":
        return raw.rstrip("/") if not raw or _URL.fullmatch(raw) else None
    if setting.kind == "path":
        return str(expand_path(raw, base)) if raw else None
    return raw


def _parse_switch(setting: Setting, said: str) -> str | None:
    """Return the setting's own word for ``true``, ``no`` and the like; None where it has none."""
    return next((word for word in _SWITCH_WORDS[said] if word in setting.choices), None)


def _parse_count(setting: Setting, raw: object) -> int | None:
    if isinstance(raw, str):
        raw = int(raw) if re.fullmatch(r"\s*\d{1,9}\s*", raw) else None
    if not isinstance(raw, int) or isinstance(raw, bool):
        return None
    return raw if setting.least <= raw <= setting.most else None


def _parse_texts(setting: Setting, raw: object) -> tuple[str, ...] | None:
    if not isinstance(raw, list):
        return None
    items = cast("list[object]", raw)
    texts = tuple(item for item in items if isinstance(item, str) and "\0" not in item)
    if setting.choices:
        texts = tuple(item for item in texts if item in setting.choices)
    return texts if len(texts) == len(items) else None


def _wrong_value_error(setting: Setting, raw: object, place: str) -> SetupError:
    wanted = _EXPECTED_KINDS.get(setting.kind, "")
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


def nearest_word(word: str, known: Iterable[str]) -> str:
    """Return the known word that is most like *word*; empty where none is."""
    from rapidfuzz import fuzz, process  # noqa: PLC0415  # 30 ms that only a mistyped word should cost

    hit = process.extractOne(word.casefold(), sorted(known), scorer=fuzz.ratio, score_cutoff=_MIN_LIKENESS)
    return hit[0] if hit else ""


def did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    """Make a hint of the nearest known word, or return *otherwise*."""
    near = nearest_word(word, known)
    return f"did you mean '{near}'?" if near else otherwise

"""Tell where a vault keeps its daily notes and what they begin with, as its own Obsidian settings say."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, cast

from knapper.vault import moment, settings
from knapper.vault.paths import NotePath

FOLDER: Final = "Daily Notes"
"""Where daily notes go in a vault that says nothing of them."""
FORMAT: Final = "YYYY-MM-DD"
_PLUGINS: Final = NotePath(".obsidian/community-plugins.json")
_PERIODIC: Final = NotePath(".obsidian/plugins/periodic-notes/data.json")
_NOTE: Final = ".md"
_VARIABLE: Final = re.compile(r"\{\{\s*(?P<word>date|time|title|yesterday|tomorrow)\s*(?::(?P<pattern>.*?))?\}\}", re.I)


@dataclass(frozen=True, slots=True, kw_only=True)
class DailyNotes:
    """Hold what a vault says of its daily notes."""

    folder: str = FOLDER
    """Empty for the vault itself."""
    format: str = FORMAT
    """A pattern of Moment.js; may hold ``/``."""
    template: str = ""
    """Path of a note; empty for none."""

    def path(self, at: datetime) -> str:
        """Give the path of a day's note, as it would be made: ``Journal/2026/2026-11-22.md``."""
        parts = (part.strip() for part in f"{self.folder}/{moment.write(at, self.format)}".split("/"))
        joined = "/".join(part for part in parts if part)
        return joined if joined.endswith(_NOTE) else f"{joined}{_NOTE}"

    def fill(self, template: str, at: datetime) -> str:
        """Write the variables of a template, as Obsidian does when it makes the note.

        ``{{date}}``, ``{{time}}`` and ``{{title}}``, the first two also with a pattern: ``{{date:dddd}}``; and
        ``{{yesterday}}`` and ``{{tomorrow}}``. What isn't known stays.
        """
        title = self.path(at).rpartition("/")[2].removesuffix(_NOTE)

        def value(found: re.Match[str]) -> str:
            word, pattern = found["word"].lower(), (found["pattern"] or "").strip()
            match word:
                case "title":
                    return title
                case "time":
                    return moment.write(at, pattern or "HH:mm")
                case _:
                    days = {"yesterday": -1, "tomorrow": 1}.get(word, 0)
                    return moment.write(at + timedelta(days=days), pattern or self.format)

        return _VARIABLE.sub(value, template)


def read(root: Path) -> DailyNotes:
    """Read what a vault says: the plugin Periodic Notes where it is in use, else Obsidian's own settings."""
    plugins = settings.load(root, _PLUGINS, [])
    if isinstance(plugins, list) and "periodic-notes" in plugins:
        periodic = _periodic(_object(settings.load(root, _PERIODIC, [])))
        if periodic is not None:
            return periodic
    said = settings.load(root, settings.DAILY_NOTES, [])
    return DailyNotes() if said is None else _of(_object(said), template="template")


def _periodic(values: Mapping[str, object]) -> DailyNotes | None:
    """Read the plugin's settings of either form; None where it has no daily notes."""
    daily = _object(values.get("daily"))
    if daily.get("enabled"):
        return _of(daily, template="template")
    sets = values.get("calendarSets")
    active = values.get("activeCalendarSet")
    found = [_object(one) for one in cast("list[object]", sets)] if isinstance(sets, list) else []
    chosen = next((one for one in found if one.get("id") == active), found[0] if found else {})
    day = _object(chosen.get("day"))
    return _of(day, template="templatePath") if day.get("enabled") else None


def _of(values: Mapping[str, object], *, template: str) -> DailyNotes:
    return DailyNotes(
        folder=_text(values.get("folder")),
        format=_text(values.get("format")) or FORMAT,
        template=_text(values.get(template)),
    )


def _object(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""

"""Read Obsidian's settings: its list of vaults, and a vault's link format, daily notes, dates and attachments."""

import json
import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Final, Literal, TypeVar

from knapper.errors import KnapError, NotFound
from knapper.jsontypes import is_list, is_object, object_or_empty
from knapper.system import opening
from knapper.vault import files, links, paths
from knapper.vault.paths import NotePath

LinkFormat = Literal["shortest", "relative", "absolute"]
TrashOption = Literal["system", "local", "none"]
NewFileLocation = Literal["root", "current", "folder"]
_Choice = TypeVar("_Choice", bound=str)
_Default = TypeVar("_Default")

APP_FILE: Final = NotePath(".obsidian/app.json")
DAILY_NOTES_FILE: Final = NotePath(".obsidian/daily-notes.json")
MAX_SETTINGS_BYTES: Final = 1024 * 1024
MAX_FILTERS: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ObsidianSettings:
    """The settings that matter outside Obsidian; the defaults are Obsidian's."""

    user_ignore_filters: tuple[str, ...] = ()
    """Path prefixes, or regular expressions between slashes."""
    attachment_folder_path: str = "/"
    """``/`` is the vault, ``./`` the note's folder, ``./sub`` a folder below that, else a folder in the vault."""
    new_link_format: LinkFormat = "shortest"
    use_markdown_links: bool = False
    always_update_links: bool = False
    trash_option: TrashOption = "system"
    new_file_location: NewFileLocation = "root"
    new_file_folder_path: str = "/"
    show_unsupported_files: bool = False
    daily_notes_folder: str = ""
    """Empty for the vault itself."""
    daily_notes_format: str = "YYYY-MM-DD"
    """A pattern of Moment.js; may hold ``/``."""
    daily_notes_template: str = ""
    """Path of a note, its ``.md`` often left out; empty for none."""
    problems: tuple[str, ...] = ()
    """Values that couldn't be used and were replaced by their defaults."""


def read_settings(root: Path) -> ObsidianSettings:
    """Read the settings of a vault; missing or invalid values get defaults, invalid ones are reported."""
    problems: list[str] = []
    app = _SettingsReader(file=APP_FILE, values=_load_object(root, APP_FILE, problems), problems=problems)
    daily = _SettingsReader(
        file=DAILY_NOTES_FILE, values=_load_object(root, DAILY_NOTES_FILE, problems), problems=problems
    )
    return ObsidianSettings(
        user_ignore_filters=app.texts("userIgnoreFilters"),
        attachment_folder_path=app.text("attachmentFolderPath", "/"),
        new_link_format=app.choice("newLinkFormat", ("shortest", "relative", "absolute")),
        use_markdown_links=app.flag("useMarkdownLinks"),
        always_update_links=app.flag("alwaysUpdateLinks"),
        trash_option=app.choice("trashOption", ("system", "local", "none")),
        new_file_location=app.choice("newFileLocation", ("root", "current", "folder")),
        new_file_folder_path=app.text("newFileFolderPath", "/"),
        show_unsupported_files=app.flag("showUnsupportedFiles"),
        daily_notes_folder=daily.text("folder", ""),
        daily_notes_format=daily.text("format", "") or "YYYY-MM-DD",
        daily_notes_template=daily.text("template", ""),
        problems=tuple(problems),
    )


def load_json(root: Path, path: NotePath, problems: list[str]) -> object:
    """Read a JSON file that Obsidian or a plugin keeps in the vault; None where it is missing or invalid.

    Args:
        root: The vault's folder.
        path: Such as ``.obsidian/app.json``.
        problems: Receives a message where the file is invalid.
    """
    try:
        file = files.find_path(root, path, must_exist=False)
        if not _may_exist(file.file):  # most vaults lack one of these files: no error is made for that
            return None
        value: object = json.loads(files.read_bytes(file.file, shown_as=path, max_bytes=MAX_SETTINGS_BYTES))
    except NotFound:
        return None
    except KnapError as error:
        problems.append(f"{path}: {error.message}; defaults are used")
    except (ValueError, RecursionError):
        problems.append(f"{path} isn't valid JSON; defaults are used")
    else:
        if value is None:
            problems.append(f"{path} holds nothing; defaults are used")
        return value
    return None


def _may_exist(file: Path) -> bool:
    try:
        return opening.exists(file)
    except OSError:  # reading it says what is the matter
        return True


def _load_object(root: Path, path: NotePath, problems: list[str]) -> Mapping[str, object]:
    values = load_json(root, path, problems)
    if values is not None and not is_object(values):
        problems.append(f"{path} holds no object; defaults are used")
    return values if is_object(values) else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class _SettingsReader:
    """Reads typed values from one file, and records invalid ones as problems."""

    file: NotePath
    values: Mapping[str, object]
    problems: list[str]

    def text(self, name: str, default: str) -> str:
        value = self.values.get(name)
        return value if isinstance(value, str) else self.default(name, default)

    def flag(self, name: str) -> bool:
        value = self.values.get(name)
        return value if isinstance(value, bool) else self.default(name, default=False)

    def choice(self, name: str, choices: tuple[_Choice, ...]) -> _Choice:
        value = self.values.get(name)
        return next((choice for choice in choices if choice == value), None) or self.default(name, choices[0])

    def texts(self, name: str) -> tuple[str, ...]:
        value = self.values.get(name)
        if not is_list(value):
            return self.default(name, ())
        texts = [item for item in value if isinstance(item, str)]
        if len(texts) < len(value) or len(texts) > MAX_FILTERS:
            self.problems.append(f"{self.file}: of {name} only texts are used, and only the first {MAX_FILTERS}")
        return tuple(texts[:MAX_FILTERS])

    def default(self, name: str, default: _Default) -> _Default:
        if self.values.get(name) is not None:
            self.problems.append(f"{self.file}: {name} has a value that isn't understood; {default!r} is used")
        return default


_TOKEN: Final = re.compile(
    r"\[[^\[\]]*\]|\\.|Y{4,6}|YY|Y|Qo|Q|M{3,4}|Mo|MM|M|DDDD|DDDo|DDD|Do|DD|D|d{3,4}|do|dd|d|e|E|ww|wo|w|WW|Wo|W"
    r"|gggg|gg|GGGG|GG|hh|h|HH|H|kk|k|mm|m|ss|s|S{1,9}|A|a|ZZ|Z|X|x|LTS|LT|L{1,4}|l{1,4}",
    re.DOTALL,
)
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June", "July", "August"),
    *("September", "October", "November", "December"),
)
_DAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_LOCALE_PATTERNS: Final[Mapping[str, str]] = {
    "LT": "h:mm A",
    "LTS": "h:mm:ss A",
    "L": "MM/DD/YYYY",
    "LL": "MMMM D, YYYY",
    "LLL": "MMMM D, YYYY h:mm A",
    "LLLL": "dddd, MMMM D, YYYY h:mm A",
    "l": "M/D/YYYY",
    "ll": "MMM D, YYYY",
    "lll": "MMM D, YYYY h:mm A",
    "llll": "ddd, MMM D, YYYY h:mm A",
}
_TOKEN_FORMATS: Final[Mapping[str, Callable[[datetime], str]]] = {
    "YYYYYY": lambda at: f"+{at.year:06}",
    "YYYYY": lambda at: f"{at.year:05}",
    "YYYY": lambda at: f"{at.year:04}",
    "YY": lambda at: f"{at.year % 100:02}",
    "Y": lambda at: str(at.year),
    "Q": lambda at: str(_quarter(at)),
    "Qo": lambda at: _ordinal(_quarter(at)),
    "MMMM": lambda at: _MONTHS[at.month - 1],
    "MMM": lambda at: _MONTHS[at.month - 1][:3],
    "MM": lambda at: f"{at.month:02}",
    "Mo": lambda at: _ordinal(at.month),
    "M": lambda at: str(at.month),
    "DDDD": lambda at: f"{_day_of_year(at):03}",
    "DDDo": lambda at: _ordinal(_day_of_year(at)),
    "DDD": lambda at: str(_day_of_year(at)),
    "DD": lambda at: f"{at.day:02}",
    "Do": lambda at: _ordinal(at.day),
    "D": lambda at: str(at.day),
    "dddd": lambda at: _DAYS[_weekday(at)],
    "ddd": lambda at: _DAYS[_weekday(at)][:3],
    "dd": lambda at: _DAYS[_weekday(at)][:2],
    "do": lambda at: _ordinal(_weekday(at)),
    "d": lambda at: str(_weekday(at)),
    "e": lambda at: str(_weekday(at)),
    "E": lambda at: str(at.isoweekday()),
    "gggg": lambda at: f"{_sunday_week(at)[0]:04}",
    "gg": lambda at: f"{_sunday_week(at)[0] % 100:02}",
    "ww": lambda at: f"{_sunday_week(at)[1]:02}",
    "wo": lambda at: _ordinal(_sunday_week(at)[1]),
    "w": lambda at: str(_sunday_week(at)[1]),
    "GGGG": lambda at: f"{at.isocalendar().year:04}",
    "GG": lambda at: f"{at.isocalendar().year % 100:02}",
    "WW": lambda at: f"{at.isocalendar().week:02}",
    "Wo": lambda at: _ordinal(at.isocalendar().week),
    "W": lambda at: str(at.isocalendar().week),
    "HH": lambda at: f"{at.hour:02}",
    "H": lambda at: str(at.hour),
    "hh": lambda at: f"{at.hour % 12 or 12:02}",
    "h": lambda at: str(at.hour % 12 or 12),
    "kk": lambda at: f"{at.hour or 24:02}",
    "k": lambda at: str(at.hour or 24),
    "mm": lambda at: f"{at.minute:02}",
    "m": lambda at: str(at.minute),
    "ss": lambda at: f"{at.second:02}",
    "s": lambda at: str(at.second),
    "A": lambda at: "AM" if at.hour < 12 else "PM",
    "a": lambda at: "am" if at.hour < 12 else "pm",
    "ZZ": lambda at: at.strftime("%z") or "+0000",
    "Z": lambda at: _utc_offset(at),
    "X": lambda at: str(int(at.timestamp())),
    "x": lambda at: str(int(at.timestamp() * 1000)),
}


def format_date(at: datetime, pattern: str) -> str:
    """Format a time by a Moment.js pattern.

    ``dddd, Do MMMM YYYY [at] HH:mm`` gives ``Sunday, 22nd November 2026 at 14:05``. Text in brackets stays as
    it is, and so do letters without a meaning. Weeks of ``w`` and ``g`` begin on Sunday, those of ``W`` and ``G`` on
    Monday.

    Source: momentjs.com/docs/#/displaying/format.
    """
    return _TOKEN.sub(lambda token: _format_token(at, token.group()), pattern)


def _format_token(at: datetime, token: str) -> str:
    if token.startswith("["):
        return token[1:-1]
    if token.startswith("\\"):
        return token[1:]
    if token.startswith("S"):
        return f"{at.microsecond:06}000"[: len(token)]
    if token in _LOCALE_PATTERNS:
        return format_date(at, _LOCALE_PATTERNS[token])
    return _TOKEN_FORMATS[token](at) if token in _TOKEN_FORMATS else token


def _ordinal(number: int) -> str:
    if number % 100 in {11, 12, 13}:
        return f"{number}th"
    return f"{number}{({1: 'st', 2: 'nd', 3: 'rd'}).get(number % 10, 'th')}"


def _quarter(at: datetime) -> int:
    return (at.month + 2) // 3


def _day_of_year(at: datetime) -> int:
    return at.timetuple().tm_yday


def _weekday(at: datetime) -> int:
    """Return the weekday, with Sunday as 0."""
    return at.isoweekday() % 7


def _sunday_week(at: datetime) -> tuple[int, int]:
    """Return year and number of a week that begins on Sunday; the first week contains January 1."""
    sunday = at.date() - timedelta(days=_weekday(at))
    year = (sunday + timedelta(days=6)).year
    new_year = date(year, 1, 1)
    first = new_year - timedelta(days=new_year.isoweekday() % 7)
    return year, (sunday - first).days // 7 + 1


def _utc_offset(at: datetime) -> str:
    offset = at.strftime("%z") or "+0000"
    return f"{offset[:3]}:{offset[3:5]}"


DAILY_FOLDER: Final = "Daily Notes"
"""Default path pattern of daily notes."""
DAILY_FORMAT: Final = "YYYY-MM-DD"
_PLUGINS_FILE: Final = NotePath(".obsidian/community-plugins.json")
_PERIODIC_NOTES_FILE: Final = NotePath(".obsidian/plugins/periodic-notes/data.json")
_TEMPLATE_VARIABLE: Final = re.compile(
    r"\{\{\s*(?P<word>date|time|title|yesterday|tomorrow)\s*(?::(?P<pattern>.*?))?\}\}", re.I
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DailyNotes:
    """A vault's settings for daily notes."""

    folder: str = DAILY_FOLDER
    """Empty for the vault itself."""
    format: str = DAILY_FORMAT
    """A pattern of Moment.js; may hold ``/``."""
    template: str = ""
    """Path of a note; empty for none."""

    def path(self, at: datetime) -> str:
        """Return the path of a day's note: ``Journal/2026/2026-11-22.md``."""
        parts = (part.strip() for part in f"{self.folder}/{format_date(at, self.format)}".split("/"))
        relative_path = "/".join(part for part in parts if part)
        return relative_path if relative_path.endswith(paths.NOTE_SUFFIX) else f"{relative_path}{paths.NOTE_SUFFIX}"

    def fill(self, template: str, at: datetime) -> str:
        """Fill in the variables of a template, as Obsidian does when it creates the note.

        ``{{date}}``, ``{{time}}`` and ``{{title}}``, the first two also with a pattern: ``{{date:dddd}}``; and
        ``{{yesterday}}`` and ``{{tomorrow}}``. Unknown variables stay.
        """
        title = self.path(at).rpartition("/")[2].removesuffix(paths.NOTE_SUFFIX)

        def value(variable: re.Match[str]) -> str:
            word, pattern = variable["word"].lower(), (variable["pattern"] or "").strip()
            match word:
                case "title":
                    return title
                case "time":
                    return format_date(at, pattern or "HH:mm")
                case _:
                    days = {"yesterday": -1, "tomorrow": 1}.get(word, 0)
                    return format_date(at + timedelta(days=days), pattern or self.format)

        return _TEMPLATE_VARIABLE.sub(value, template)


def read_daily_notes(root: Path) -> DailyNotes:
    """Read the settings for daily notes: of the plugin Periodic Notes where it is enabled, else Obsidian's own."""
    plugins = load_json(root, _PLUGINS_FILE, [])
    if isinstance(plugins, list) and "periodic-notes" in plugins:
        periodic_notes = _read_periodic_notes(object_or_empty(load_json(root, _PERIODIC_NOTES_FILE, [])))
        if periodic_notes is not None:
            return periodic_notes
    daily_settings = load_json(root, DAILY_NOTES_FILE, [])
    return (
        DailyNotes()
        if daily_settings is None
        else _make_daily_notes(object_or_empty(daily_settings), template="template")
    )


def _read_periodic_notes(values: Mapping[str, object]) -> DailyNotes | None:
    """Read the plugin's settings in either of its formats; None where daily notes are off."""
    daily = object_or_empty(values.get("daily"))
    if daily.get("enabled"):
        return _make_daily_notes(daily, template="template")
    raw_sets = values.get("calendarSets")
    active = values.get("activeCalendarSet")
    calendar_sets = [object_or_empty(one) for one in raw_sets] if is_list(raw_sets) else []
    active_set = next(
        (one for one in calendar_sets if one.get("id") == active), calendar_sets[0] if calendar_sets else {}
    )
    day = object_or_empty(active_set.get("day"))
    return _make_daily_notes(day, template="templatePath") if day.get("enabled") else None


def _make_daily_notes(values: Mapping[str, object], *, template: str) -> DailyNotes:
    return DailyNotes(
        folder=_as_text(values.get("folder")),
        format=_as_text(values.get("format")) or DAILY_FORMAT,
        template=_as_text(values.get(template)),
    )


def _as_text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


AUDIO_SUFFIXES: Final = frozenset(
    {".m4a", ".webm", ".mp3", ".wav", ".ogg", ".oga", ".opus", ".flac", ".mp4", ".3gp", ".aac"}
)
"""Suffixes of files that may hold speech."""


def is_audio(path: str) -> bool:
    """Return whether a path's suffix is that of an audio file."""
    return paths.suffix(path).lower() in AUDIO_SUFFIXES


def attachment_folder(source: NotePath, settings: ObsidianSettings) -> NotePath:
    """Return the folder where Obsidian puts a note's attachments; empty for the vault itself.

    ``./files`` gives ``Work/files`` for the note ``Work/a.md``.
    """
    setting = settings.attachment_folder_path
    if setting == "." or setting.startswith("./"):
        return _normalize_path(f"{paths.parent_folder(source)}/{setting}") or NotePath("")
    return _normalize_path(setting) or NotePath("")


def list_attachment_paths(
    target: str, *, source: NotePath, settings: ObsidianSettings, lookup: Callable[[str], Sequence[NotePath]]
) -> tuple[NotePath, ...]:
    """Return the possible paths of the file that a link in a note refers to, the likeliest first.

    First the known file that the link resolves to. Then, for a file that was added a moment ago: the
    folder for attachments, the note's own folder, the vault's. A target that begins with ``/`` is relative to the
    vault's folder alone, one with ``./`` or ``../`` to the note's.

    Args:
        target: The link's target, decoded, such as ``recording.m4a`` or ``../Audio/recording.m4a``.
        source: The note that holds the link.
        settings: For the folder where attachments are put.
        lookup: As `knapper.vault.links.resolve` takes it; returns only visible files.

    Returns:
        Paths in the vault; the files may not exist.
    """
    note_folder = paths.parent_folder(source)
    folders: Sequence[str] = (attachment_folder(source, settings), note_folder, "")
    if target.startswith("/"):
        folders = ("",)
    elif target.startswith(("./", "../")):
        folders = (note_folder,)
    resolved = links.resolve(target, source, lookup).path if target.strip("/") else None
    candidates = (_normalize_path(f"{start}/{target}") for start in folders)
    return tuple(dict.fromkeys(path for path in (resolved, *candidates) if path))


def _normalize_path(path: str) -> NotePath | None:
    """Resolve ``.`` and ``..`` in a path; None where it leaves the vault or is empty."""
    clean = posixpath.normpath(path.lstrip("/") or ".")
    return None if clean == "." or clean.split("/")[0] == ".." else NotePath(clean)


System = Literal["linux", "macos", "windows"]
REGISTRY_NAME: Final = "obsidian.json"
_MAX_BYTES: Final = 10_000_000
_PACKAGED: Final = (
    ".var/app/md.obsidian.Obsidian/config/obsidian",  # Flatpak
    "snap/obsidian/current/.config/obsidian",
)
"""Folders of settings below the home folder, where Linux packages with a sandbox of their own keep them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownVault:
    """A vault in Obsidian's list."""

    path: Path
    is_open: bool
    """Whether it is open in Obsidian, or was when Obsidian ended."""
    opened_ms: int
    """When it was last opened, in milliseconds since 1970; 0 if that isn't known."""


def registry_files(system: System, *, home: Path, config: Path) -> list[Path]:
    """Return where Obsidian's list may be.

    Args:
        system: The operating system.
        home: The person's home folder.
        config: Where programs keep settings: ``~/.config``, ``~/Library/Application Support``, ``%APPDATA%``.
    """
    folders = [config / "obsidian"]
    if system == "linux":
        folders += [home / place for place in _PACKAGED]
    return [folder / REGISTRY_NAME for folder in folders]


def find_vaults(registries: Sequence[Path]) -> list[KnownVault]:
    """Return the vaults of Obsidian's lists that exist, open ones and those last opened first, each once.

    A list that is missing or can't be read has none.
    """
    vaults: dict[Path, KnownVault] = {}
    for file in registries:
        try:
            if file.stat().st_size > _MAX_BYTES:
                continue
            decoded: object = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            continue
        rows = decoded.get("vaults") if is_object(decoded) else None
        for entry in rows.values() if is_object(rows) else ():
            vault = _read_entry(entry)
            if vault is not None:
                vaults[vault.path] = vault
    return sorted(vaults.values(), key=lambda vault: (not vault.is_open, -vault.opened_ms, str(vault.path)))


def _read_entry(entry: object) -> KnownVault | None:
    """Return a vault of the list; None if it isn't an existing folder with an absolute path."""
    if not is_object(entry):
        return None
    path_text, opened = entry.get("path"), entry.get("ts")
    if not isinstance(path_text, str) or "\0" in path_text:
        return None
    path = Path(path_text)
    try:
        if not path.is_absolute() or not path.is_dir():
            return None
    except OSError:
        return None
    opened_ms = int(opened) if isinstance(opened, int | float) and 0 <= opened < 2**60 else 0
    return KnownVault(path=path, is_open=entry.get("open") is True, opened_ms=opened_ms)

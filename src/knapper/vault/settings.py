"""Read what the vault's own Obsidian settings say about its files."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeVar, cast

from knapper.errors import KnapError, NotFound
from knapper.vault import disk, lookup
from knapper.vault.paths import NotePath

LinkFormat = Literal["shortest", "relative", "absolute"]
TrashOption = Literal["system", "local", "none"]
NewFileLocation = Literal["root", "current", "folder"]
_Choice = TypeVar("_Choice", bound=str)
_Default = TypeVar("_Default")

APP: Final = NotePath(".obsidian/app.json")
DAILY_NOTES: Final = NotePath(".obsidian/daily-notes.json")
MAX_BYTES: Final = 1024 * 1024
MAX_FILTERS: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ObsidianSettings:
    """Hold the settings that matter outside Obsidian; the defaults are Obsidian's."""

    user_ignore_filters: tuple[str, ...] = ()
    """Beginnings of paths, or regular expressions between slashes."""
    attachment_folder_path: str = "/"
    """``/`` the vault, ``./`` the note's folder, ``./sub`` a folder below it, else a folder in the vault."""
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
    """What couldn't be used, and was replaced by the default."""


def read(root: Path) -> ObsidianSettings:
    """Read the settings of a vault; what is absent or broken has its default, and a broken one a problem's text."""
    problems: list[str] = []
    app = _Values(file=APP, values=_load(root, APP, problems), problems=problems)
    daily = _Values(file=DAILY_NOTES, values=_load(root, DAILY_NOTES, problems), problems=problems)
    return ObsidianSettings(
        user_ignore_filters=app.texts("userIgnoreFilters"),
        attachment_folder_path=app.text("attachmentFolderPath", "/"),
        new_link_format=app.choice("newLinkFormat", ("shortest", "relative", "absolute")),
        use_markdown_links=app.switch("useMarkdownLinks"),
        always_update_links=app.switch("alwaysUpdateLinks"),
        trash_option=app.choice("trashOption", ("system", "local", "none")),
        new_file_location=app.choice("newFileLocation", ("root", "current", "folder")),
        new_file_folder_path=app.text("newFileFolderPath", "/"),
        show_unsupported_files=app.switch("showUnsupportedFiles"),
        daily_notes_folder=daily.text("folder", ""),
        daily_notes_format=daily.text("format", "") or "YYYY-MM-DD",
        daily_notes_template=daily.text("template", ""),
        problems=tuple(problems),
    )


def load(root: Path, path: NotePath, problems: list[str]) -> object:
    """Read a file of JSON that Obsidian or a plugin keeps in the vault; None where it is absent or broken.

    Args:
        root: The vault's folder.
        path: Such as ``.obsidian/app.json``.
        problems: Told what is broken.
    """
    try:
        found = lookup.find(root, path)
        value: object = json.loads(disk.read_bytes(found.file, shown_as=path, max_bytes=MAX_BYTES))
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


def _load(root: Path, path: NotePath, problems: list[str]) -> Mapping[str, object]:
    values = load(root, path, problems)
    if values is not None and not isinstance(values, dict):
        problems.append(f"{path} holds no object; defaults are used")
    return cast("dict[str, object]", values) if isinstance(values, dict) else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Values:
    """Take values of the wanted kind out of one file, and note the others."""

    file: NotePath
    values: Mapping[str, object]
    problems: list[str]

    def text(self, name: str, default: str) -> str:
        value = self.values.get(name)
        return value if isinstance(value, str) else self.default(name, default)

    def switch(self, name: str) -> bool:
        value = self.values.get(name)
        return value if isinstance(value, bool) else self.default(name, default=False)

    def choice(self, name: str, choices: tuple[_Choice, ...]) -> _Choice:
        value = self.values.get(name)
        return next((choice for choice in choices if choice == value), None) or self.default(name, choices[0])

    def texts(self, name: str) -> tuple[str, ...]:
        value = self.values.get(name)
        if not isinstance(value, list):
            return self.default(name, ())
        items = cast("list[object]", value)
        texts = [item for item in items if isinstance(item, str)]
        if len(texts) < len(items) or len(texts) > MAX_FILTERS:
            self.problems.append(f"{self.file}: of {name} only texts are used, and only the first {MAX_FILTERS}")
        return tuple(texts[:MAX_FILTERS])

    def default(self, name: str, default: _Default) -> _Default:
        if self.values.get(name) is not None:
            self.problems.append(f"{self.file}: {name} has a value that isn't understood; {default!r} is used")
        return default

"""Say what in a vault's folder isn't part of the vault."""

import hashlib
import json
import os
import unicodedata
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from knapper.errors import KnapError, NotFound, SetupError
from knapper.vault import disk, globs, lookup, regexes
from knapper.vault.globs import Globs
from knapper.vault.paths import NotePath, key, shown
from knapper.vault.regexes import Regex
from knapper.vault.settings import ObsidianSettings

IGNORE_FILE: Final = NotePath(".knapignore")
MAX_IGNORE_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Ignore:
    """Say what in the vault's folder isn't part of the vault.

    Always so: names that begin with a dot, such as ``.obsidian``, ``.git``, ``.trash``, ``.venv`` or ``.chroma_db``.
    Only names below the vault's folder count; the vault itself may lie in a folder of any name.
    """

    patterns: Globs = field(default_factory=Globs)
    """Of ``.knapignore`` and of the caller, in gitignore's syntax."""
    prefixes: tuple[str, ...] = ()
    """Obsidian's filters, by `key`: what begins so is left out."""
    regexes: tuple[Regex, ...] = ()
    """Obsidian's filters between slashes; tried on files, as Obsidian does, and not on folders."""
    problems: tuple[str, ...] = ()
    """Lines and filters that have no effect, with the reason."""
    fingerprint: str = ""
    """Tells these rules from those that say something else."""

    @classmethod
    def load(cls, root: Path, settings: ObsidianSettings) -> "Ignore":
        """Gather the rules of a vault.

        Args:
            root: The vault's folder, whose ``.knapignore`` is read if there is one.
            settings: For Obsidian's filters.

        Raises:
            SetupError: There is a ``.knapignore`` that can't be read; to go on would show what it hides.
        """
        lines = _lines(root)
        patterns = globs.parse(lines)
        problems = [f"{IGNORE_FILE}, {problem}" for problem in patterns.problems]
        prefixes: list[str] = []
        expressions: list[Regex] = []
        for text in settings.user_ignore_filters:
            if len(text) > 1 and text[0] == text[-1] == "/":
                try:
                    expressions.append(regexes.parse(text[1:-1]))
                except ValueError as error:
                    problems.append(f"Obsidian's filter {shown(text)} has no effect: {error}")
            elif text:
                prefixes.append(key(text))
        said = json.dumps([lines, settings.user_ignore_filters])
        return cls(
            patterns=patterns,
            prefixes=tuple(prefixes),
            regexes=tuple(expressions),
            problems=tuple(problems),
            fingerprint=hashlib.sha256(said.encode()).hexdigest(),
        )

    def hides(self, path: str, *, is_folder: bool = False) -> bool:
        """Tell whether a file or folder isn't part of the vault, be it for the sake of a folder around it."""
        if path.startswith(".") or "/." in path:
            return True
        return self.patterns.match(path, is_folder=is_folder) or self._filtered(path, is_folder=is_folder)

    def hides_only(self, path: str, *, is_folder: bool) -> bool:
        """Tell the same of a path whose folders are known not to be hidden, and whose name has no leading dot."""
        return self.patterns.match_only(path, is_folder=is_folder) or self._filtered(path, is_folder=is_folder)

    def _filtered(self, path: str, *, is_folder: bool) -> bool:
        if self.prefixes and (key(path) + "/" * is_folder).startswith(self.prefixes):
            return True
        if is_folder or not self.regexes:
            return False
        text = unicodedata.normalize("NFC", path)
        return any(regex.search(text) for regex in self.regexes)


def _lines(root: Path) -> list[str]:
    try:
        found = lookup.find(root, IGNORE_FILE)
        raw = disk.read_bytes(found.file, shown_as=IGNORE_FILE, max_bytes=MAX_IGNORE_BYTES)
    except NotFound:
        if os.path.islink(root / IGNORE_FILE):  # noqa: PTH114 - unlike Path's, no error where the folder is closed
            msg = f"the vault's rules can't be read: the symbolic link {IGNORE_FILE} leads nowhere"
            raise SetupError(msg, hint=f"mend or remove {IGNORE_FILE} in the vault's folder") from None
        return []
    except KnapError as error:
        msg = f"the vault's rules can't be read: {error.message}"
        raise SetupError(msg, hint=f"mend or remove {IGNORE_FILE} in the vault's folder") from error
    return raw.decode("utf-8-sig", "replace").split("\n")

"""Put the built Obsidian plugin into a vault, and take it away again; never half of it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import stat
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from knapper.errors import RefusedError, SetupError, StorageError
from knapper.jsontypes import JSONValue, is_list, object_or_empty
from knapper.system import private

PLUGIN_ID: Final = "knapper"
PLUGIN_FOLDER: Final = Path(__file__).parents[1] / "data" / "plugin"
"""The built plugin in this installation."""
MANIFEST: Final = "manifest.json"
FILES: Final = (MANIFEST, "main.js", "styles.css")
DATA_FILE: Final = "data.json"
"""What the plugin itself keeps: its settings, no token."""
_LIST_FILE: Final = "community-plugins.json"
_NEW_NAME: Final = ".knapper-new"
_OLD_NAME: Final = ".knapper-old"
_MAX_BYTES: Final = 10_000_000
_LOCK_S: Final = 10.0
_VERSION: Final = re.compile(r"[0-9A-Za-z.+-]{1,40}")

PluginState = Literal["absent", "current", "other_version", "changed"]
PluginChange = Literal["installed", "updated", "unchanged", "enabled", "disabled", "removed", "kept"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltPlugin:
    """The plugin as it was built: its version, and its files by name."""

    version: str
    files: Mapping[str, bytes] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginStatus:
    """What of the plugin is in a vault."""

    state: PluginState
    folder: Path
    version: str = ""
    """Of what is installed; empty for none."""
    shipped: str = ""
    """Of what this installation has; empty where it wasn't built."""
    enabled: bool = False
    """Whether Obsidian's list of enabled plugins names it."""

    def as_dict(self) -> dict[str, object]:
        """Return it to a program."""
        return {
            "state": self.state,
            "folder": str(self.folder),
            "version": self.version or None,
            "shipped": self.shipped or None,
            "enabled": self.enabled,
        }


def load_built(folder: Path = PLUGIN_FOLDER) -> BuiltPlugin:
    """Read the built plugin of this installation.

    Raises:
        SetupError: It wasn't built (code ``plugin_not_built``), or isn't whole.
    """
    try:
        files = {name: (folder / name).read_bytes() for name in FILES}
    except OSError as error:
        raise SetupError(
            f"the Obsidian plugin isn't in this installation: {folder} has no {Path(error.filename or MANIFEST).name}",
            hint="install a release that has it; or, in a clone, `python -m scripts.plugin build` builds it, and "
            "`./install.sh` installs it",
            code="plugin_not_built",
        ) from error
    version = _manifest_version(files[MANIFEST])
    if version is None or not files["main.js"]:
        raise SetupError(
            f"the plugin in {folder} isn't whole: its manifest isn't that of '{PLUGIN_ID}', or main.js is empty",
            hint="rebuild it, or install Knapper again",
            code="plugin_not_built",
        )
    return BuiltPlugin(version=version, files=files)


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultPlugin:
    """The plugin's place in one vault."""

    root: Path
    """The vault's folder."""
    lock_folder: Path
    """In the state folder: two commands at once would take each other's files for their own."""

    @property
    def settings_folder(self) -> Path:
        """Return Obsidian's folder in the vault."""
        return self.root / ".obsidian"

    @property
    def folder(self) -> Path:
        """Return the plugin's folder."""
        return self.settings_folder / "plugins" / PLUGIN_ID

    def status(self, built: BuiltPlugin | None) -> PluginStatus:
        """Return what is installed, compared with what this installation has.

        Raises:
            SetupError: The folder isn't a vault of Obsidian's.
            RefusedError: Something there is a link, or another program's.
        """
        self._check_places()
        version = self._own_version()
        shipped = built.version if built else ""
        state: PluginState = "absent" if version is None else "other_version"
        if built and version == built.version:
            state = "current" if self._has_files(built) else "changed"
        names = self._read_enabled() or []
        return PluginStatus(
            state=state, folder=self.folder, version=version or "", shipped=shipped, enabled=PLUGIN_ID in names
        )

    def install(self, built: BuiltPlugin, *, enable: bool, dry_run: bool = False) -> list[PluginChange]:
        """Put the plugin into the vault, or a newer one in its place; its settings stay.

        Args:
            built: What to install.
            enable: Also add it to Obsidian's list of enabled plugins.
            dry_run: Change nothing.

        Returns:
            What was done, or would be.

        Raises:
            SetupError: The folder isn't a vault of Obsidian's.
            RefusedError: Something there is a link, or another program's.
            StorageError: A file can't be written; then what was there is as before.
        """
        with self._changing(is_dry=dry_run):
            version = self._own_version()
            names = self._read_enabled() if enable else None
            is_current = version == built.version and self._has_files(built)
            changes: list[PluginChange] = ["unchanged" if is_current else "installed" if version is None else "updated"]
            if enable and PLUGIN_ID not in (names or []):
                changes.append("enabled")
            if not dry_run:
                if not is_current:
                    self._put(built)
                if "enabled" in changes:
                    self._write_enabled([*(names or []), PLUGIN_ID])
        return changes

    def uninstall(self, *, with_data: bool, dry_run: bool = False) -> list[PluginChange]:
        """Take away what was installed; the plugin's own settings stay unless *with_data* is set.

        Returns:
            What was done, or would be; empty if nothing was there.

        Raises:
            RefusedError: Something there is a link, or another program's.
            StorageError: A file can't be removed.
        """
        if not self.settings_folder.exists():
            return []
        with self._changing(is_dry=dry_run):
            changes: list[PluginChange] = []
            names = self._read_enabled()
            if names is not None and PLUGIN_ID in names:
                changes.append("disabled")
            if self._own_version() is not None:
                changes.append("removed")
            has_data = (self.folder / DATA_FILE).is_file()
            if has_data and not with_data:
                changes.append("kept")
            if not dry_run:
                if names is not None and "disabled" in changes:
                    self._write_enabled([name for name in names if name != PLUGIN_ID])
                # The manifest goes last: while it is there, this is known to be ours, and the command can be run again.
                own_files = [*reversed(FILES)] if self._own_version() is not None else []
                for name in [*own_files, DATA_FILE] if with_data else own_files:
                    (self.folder / name).unlink(missing_ok=True)
                with contextlib.suppress(OSError):  # settings, or what others put there
                    self.folder.rmdir()
        return changes

    def _put(self, built: BuiltPlugin) -> None:
        """Make the new folder aside, and exchange it with the old one, whose other files it takes over.

        A kill between the two renames leaves no plugin rather than half of one, and the next command puts it back.
        """
        new, old = self.settings_folder / _NEW_NAME, self.settings_folder / _OLD_NAME
        self.folder.parent.mkdir(exist_ok=True)
        try:
            new.mkdir()
            kept: dict[str, tuple[int, int] | None] = {}
            for entry in sorted(self.folder.iterdir()) if self.folder.is_dir() else ():
                if entry.name in FILES:
                    continue
                kept[entry.name] = _stamp(entry)
                if entry.is_dir() and not entry.is_symlink():
                    shutil.copytree(entry, new / entry.name, symlinks=True)
                else:
                    shutil.copy2(entry, new / entry.name, follow_symlinks=False)
            for name, content in built.files.items():
                _write_whole(new / name, content)
            if self.folder.exists():
                self.folder.rename(old)
            new.rename(self.folder)
        except BaseException:
            if old.exists() and not self.folder.exists():
                old.rename(self.folder)
            shutil.rmtree(new, ignore_errors=True)
            raise
        for name, stamp in kept.items():
            # Obsidian may have saved the plugin's settings after they were copied.
            if _stamp(old / name) not in {stamp, None}:
                with contextlib.suppress(OSError):
                    (old / name).replace(self.folder / name)
        shutil.rmtree(old, ignore_errors=True)

    @contextlib.contextmanager
    def _changing(self, *, is_dry: bool) -> Generator[None]:
        """Let one command change the vault's plugin at a time, and tidy up after one that was killed."""
        self._check_places()
        if is_dry:
            yield
            return
        from filelock import Timeout  # noqa: PLC0415 - 15 ms that only a change should cost

        try:
            private.make_folder(self.lock_folder)
            with private.file_lock(self.lock_folder / "plugin.lock", timeout_s=_LOCK_S):
                new, old = self.settings_folder / _NEW_NAME, self.settings_folder / _OLD_NAME
                if old.is_dir() and not self.folder.exists():
                    old.rename(self.folder)
                for leftover in (new, old):
                    if leftover.is_dir() and not _is_link(leftover):
                        shutil.rmtree(leftover)
                self._check_places()
                yield
        except Timeout as error:
            raise StorageError("another command changes the plugin", hint="try again in a moment") from error
        except OSError as error:
            raise StorageError(
                f"the plugin can't be changed in {self.settings_folder}: {error.strerror or error}",
                hint="check the folder's permissions and space; nothing is half done",
                code="plugin_not_written",
            ) from error

    def _check_places(self) -> None:
        """Check that nothing on the way is a link, and that what is there is the plugin's.

        Raises:
            SetupError: Obsidian has never opened this folder.
            RefusedError: Something is a link, a folder in a file's place, or another program's.
        """
        settings_folder = self.settings_folder
        if not settings_folder.is_dir():
            raise SetupError(
                f"{self.root} isn't a vault of Obsidian's: it has no folder .obsidian",
                hint="open the folder as a vault in Obsidian once",
                code="no_obsidian",
            )
        folders = (settings_folder, settings_folder / "plugins", self.folder)
        for path in (*folders, settings_folder / _LIST_FILE, settings_folder / _NEW_NAME, settings_folder / _OLD_NAME):
            if _is_link(path):
                raise _refusal(f"{path} is a link, which may lead out of the vault", "copy the plugin by hand")
        for path in folders[1:]:
            if path.exists() and not path.is_dir():
                raise _refusal(f"{path} is a file, where a folder should be", "move it away")
        for name in (*FILES, DATA_FILE):
            path = self.folder / name
            if _is_link(path) or (path.exists() and not path.is_file()):
                raise _refusal(f"{path} isn't a plain file", "copy the plugin by hand")
        present = [name for name in FILES if (self.folder / name).exists()]
        if present and self._own_version() is None:
            raise _refusal(
                f"{self.folder} holds another plugin: its {MANIFEST} doesn't name '{PLUGIN_ID}'",
                "move that folder away, or remove that plugin in Obsidian",
            )

    def _own_version(self) -> str | None:
        """Return the installed plugin's version; None if it isn't installed."""
        try:
            return _manifest_version(_read_bounded(self.folder / MANIFEST))
        except OSError:
            return None

    def _has_files(self, built: BuiltPlugin) -> bool:
        try:
            return all(_read_bounded(self.folder / name) == content for name, content in built.files.items())
        except OSError:
            return False

    def _read_enabled(self) -> list[JSONValue] | None:
        """Return Obsidian's list of enabled plugins as it is; None if there is none.

        Raises:
            RefusedError: The file holds something else.
        """
        file = self.settings_folder / _LIST_FILE
        try:
            decoded: object = json.loads(_read_bounded(file).decode("utf-8-sig"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            raise _refusal(f"{file} can't be read as Obsidian's list of plugins", "enable it in Obsidian") from error
        if not is_list(decoded):
            raise _refusal(f"{file} holds no list", "enable it in Obsidian, under Community plugins")
        return decoded

    def _write_enabled(self, names: Sequence[object]) -> None:
        file = self.settings_folder / _LIST_FILE
        fresh = private.new_name(file)
        try:
            _write_whole(fresh, json.dumps(names, ensure_ascii=False, indent=2).encode())
            _ = fresh.replace(file)
        except BaseException:
            fresh.unlink(missing_ok=True)
            raise


def _manifest_version(content: bytes) -> str | None:
    """Return the version in the plugin's manifest; None for anything else."""
    try:
        manifest: object = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None
    fields = object_or_empty(manifest)
    version = fields.get("version")
    is_ours = fields.get("id") == PLUGIN_ID and isinstance(version, str) and _VERSION.fullmatch(version)
    return str(version) if is_ours else None


def _read_bounded(file: Path) -> bytes:
    """Return a file's content, or so much of it that it can't be the plugin's."""
    with file.open("rb") as stream:
        return stream.read(_MAX_BYTES)


def _write_whole(file: Path, content: bytes) -> None:
    """Write a new file to the disk, so that after a power cut it is whole once it has its name."""
    with file.open("xb") as stream:
        _ = stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def _is_link(path: Path) -> bool:
    """Return whether a path is a symbolic link, or a junction of Windows."""
    try:
        status = path.lstat()
    except OSError:
        return False
    reparses = getattr(status, "st_file_attributes", 0) & getattr(stat, "FILE_ATTRIBUTE_REPARSE_POINT", 0x400)
    return stat.S_ISLNK(status.st_mode) or bool(reparses)


def _stamp(path: Path) -> tuple[int, int] | None:
    """Return what tells a file from a later state of it; None if there is none."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _refusal(problem: str, hint: str) -> RefusedError:
    return RefusedError(problem, hint=hint, code="plugin_refused")

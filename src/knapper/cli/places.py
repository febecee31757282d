"""Find the configuration and the state as `knapper.config` does, without its 80 ms.

For what must answer at once: completions, and commands that a server answers. Tests hold both to the same places. Paths
are plain texts here: `pathlib` alone takes 5 ms.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_MAX_CONFIG_BYTES: Final = 1_000_000
_BOM: Final = b"\xef\xbb\xbf"
_USER_FOLDERS: Final = {"config": ("XDG_CONFIG_HOME", ".config"), "data": ("XDG_DATA_HOME", ".local/share")}


class ConfigPlaces:
    """The files that a command reads its configuration from."""

    def __init__(self, options: Mapping[str, str], environment: Mapping[str, str], folder: str) -> None:
        """Find the files.

        Args:
            options: Values of the options that were given, by their long names: ``--config``.
            environment: The variables.
            folder: The current one.
        """
        self._environment = environment
        self._folder = folder
        named = options.get("--config", "") or environment.get("KNAP_CONFIG", "").strip()
        self.file = expand(named, folder) if named else os.path.join(user_folder(environment, "config"), "config.toml")
        """The configuration file; it needn't be there."""
        env_file = options.get("--env-file", "")
        self.env_file = expand(env_file, folder) if env_file else os.path.join(os.path.dirname(self.file), ".env")
        """The file of variables; it needn't be there."""

    def find_state(self) -> str:
        """Return the state folder of all vaults; each source is read only where no stronger one names it."""
        return (
            self.first_path([(self._environment.get("KNAP_STATE_DIR", ""), self._folder)])
            or self.first_path([(read_env(self.env_file).get("KNAP_STATE_DIR", ""), os.path.dirname(self.env_file))])
            or self.first_path([(str(self.read("state_dir").get("state_dir", "")), os.path.dirname(self.file))])
            or user_folder(self._environment, "data")
        )

    def read(self, wanted: str = "") -> dict[str, object]:
        """Return what the configuration says; nothing where it can't be read, or doesn't hold *wanted* at all."""
        try:
            with open(self.file, "rb") as opened:
                raw = opened.read(_MAX_CONFIG_BYTES + 1)
            if len(raw) > _MAX_CONFIG_BYTES or wanted.encode() not in raw:
                return {}
            import tomllib  # noqa: PLC0415 - only for what the configuration decides

            return tomllib.loads(raw.removeprefix(_BOM).decode())
        except (OSError, ValueError, RecursionError):
            return {}

    @staticmethod
    def first_path(candidates: Iterable[tuple[str, str]]) -> str:
        """Return the first path that isn't empty, each from a folder where it is relative; empty if all are."""
        return next((expand(text.strip(), base) for text, base in candidates if text.strip()), "")


def user_folder(environment: Mapping[str, str], kind: str) -> str:
    """Return the folder that platformdirs names; on Linux without importing it, which takes as long as all the rest."""
    if sys.platform.startswith("linux"):
        variable, usual = _USER_FOLDERS[kind]
        folder = environment.get(variable, "").strip()
        return os.path.join(os.path.expanduser(folder or os.path.join("~", usual)), "knapper")
    import platformdirs  # noqa: PLC0415 - as above

    find = platformdirs.user_config_dir if kind == "config" else platformdirs.user_data_dir
    return find("knapper", appauthor=False)


def read_env(file: str) -> dict[str, str]:
    """Return what a file of variables says, if it names a vault or a state folder."""
    try:
        with open(file, encoding="utf-8-sig") as opened:
            text = opened.read()
    except (OSError, ValueError):
        return {}
    if "VAULT_PATH" not in text and "KNAP_STATE_DIR" not in text:
        return {}
    import io  # noqa: PLC0415 - only for such a file

    from dotenv.parser import parse_stream  # noqa: PLC0415 - the same

    return {each.key: each.value for each in parse_stream(io.StringIO(text)) if each.key and each.value}


def expand(text: str, base: str) -> str:
    """Return a path with the home folder in the place of ``~``; a relative one starts at *base*."""
    return os.path.join(base, os.path.expanduser(text))

"""Read configuration files (TOML, and lines of NAME=value) and variables, and tell those without a meaning here."""

import io
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from knapper.errors import SetupError

MAX_CONFIG_BYTES = 1_000_000
"""A larger file is no configuration."""
_FileKind = Literal["configuration", "environment file"]
"""What a file is called in errors."""

_TOML_POSITION = re.compile(r" ?\(at line (\d+), column \d+\)")
_SECTION_HEADER = re.compile(r"\s*\[\s*([^\[\]]+?)\s*\]\s*(?:#.*)?$")
_KEY_LINE = re.compile(r"""\s*([\w"'][\w."' -]*?)\s*=""")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigDocument:
    """A configuration file that was read."""

    path: Path
    values: Mapping[str, object]
    """Sections are mappings themselves."""
    lines: Mapping[str, int]
    """Lines of dotted names, as far as they were found."""

    def place(self, name: str) -> str:
        """Return the file and, where it is known, the line of a setting."""
        line = self.lines.get(name)
        return f"{self.path}:{line}" if line else str(self.path)


def read_toml(path: Path) -> ConfigDocument:
    """Read a TOML file.

    Raises:
        SetupError: It can't be read, or isn't TOML; the message names the line.
    """
    import tomllib  # noqa: PLC0415 - 4 ms that only reading a configuration should cost

    text = _read_config_text(path, "configuration")
    try:
        values = tomllib.loads(text)
    except RecursionError as error:
        raise _invalid_error("configuration", path, 0, "it is nested too deeply") from error
    except ValueError as error:  # TOMLDecodeError, and numbers too long for Python
        position = _TOML_POSITION.search(str(error))
        end = text.rstrip().count("\n") + 1 if "end of document" in str(error) else 0
        line = int(position.group(1)) if position else end
        raise _invalid_error("configuration", path, line, _TOML_POSITION.sub("", str(error))) from error
    lines: dict[str, int] = {}  # good enough to point at: texts over several lines may mislead it
    section = ""
    for number, row in enumerate(text.splitlines(), 1):
        if header := _SECTION_HEADER.match(row):
            section = _strip_quotes(header.group(1))
            lines.setdefault(section, number)
        elif key := _KEY_LINE.match(row):
            lines.setdefault(f"{section}.{_strip_quotes(key.group(1))}".lstrip("."), number)
    return ConfigDocument(path=path, values=values, lines=lines)


def read_env(path: Path) -> ConfigDocument:
    """Read a file of NAME=value lines; references to other variables stay text.

    Raises:
        SetupError: It can't be read, or a line isn't of that form.
    """
    from dotenv.parser import parse_stream  # noqa: PLC0415  # 20 ms that only a .env file should cost

    values: dict[str, object] = {}
    lines: dict[str, int] = {}
    for binding in parse_stream(io.StringIO(_read_config_text(path, "environment file"))):
        if binding.error:
            raise _invalid_error("environment file", path, binding.original.line, "it isn't NAME=value")
        if binding.key and binding.value is not None:
            values[binding.key] = binding.value
            raw = binding.original.string
            blank_lines = raw[: len(raw) - len(raw.lstrip())].splitlines()
            lines[binding.key] = binding.original.line + len(blank_lines)
    return ConfigDocument(path=path, values=values, lines=lines)


def path_exists(path: Path) -> bool:
    """Check whether there is a file, or something that stands in its way."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return True


def _read_config_text(path: Path, kind: _FileKind) -> str:
    try:
        if path.exists() and not path.is_file():
            raise _unreadable_error(kind, path, "it isn't a file")
        with path.open("rb") as file:
            raw = file.read(MAX_CONFIG_BYTES + 1)
    except (OSError, ValueError) as error:
        raise _unreadable_error(kind, path, getattr(error, "strerror", None) or str(error)) from error
    if len(raw) > MAX_CONFIG_BYTES:
        raise _unreadable_error(kind, path, f"it is larger than {MAX_CONFIG_BYTES // 1_000_000} MB")
    if b"\0" in raw:
        raise _invalid_error(kind, path, raw.count(b"\n", 0, raw.index(b"\0")) + 1, "it holds a NUL byte")
    try:
        return raw.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise _invalid_error(kind, path, raw.count(b"\n", 0, error.start) + 1, "it isn't UTF-8 text") from error


def _unreadable_error(kind: _FileKind, path: Path, cause: str) -> SetupError:
    return SetupError(
        f"the {kind} {path} can't be read: {cause}",
        code="config_unreadable",
        hint="check the path and its permissions",
    )


def _invalid_error(kind: _FileKind, path: Path, line: int, cause: str) -> SetupError:
    place = f"{path}, line {line}" if line else str(path)
    return SetupError(
        f"the {kind} {place} is invalid: {cause[:1].lower()}{cause[1:]}",
        code="config_invalid",
        hint="correct that line, or move the file away",
    )


def _strip_quotes(dotted: str) -> str:
    return re.sub(r"""["']""", "", re.sub(r"\s*\.\s*", ".", dotted))


_COLOURLESS_TERMINALS: Final = ("dumb", "unknown")
"""Terminals that print the codes of colours as they are."""


def read_variables(names: Iterable[str]) -> dict[str, str]:
    """Return the named variables that are set to something."""
    values = {name: os.environ.get(name, "") for name in names}
    return {name: value for name, value in values.items() if value.strip()}


def environment_variables() -> dict[str, str]:
    """Return all variables, for a program that is started and needs its owner's."""
    return dict(os.environ)


def keep_libraries_to_one_thread() -> None:
    """Let the libraries of numpy and turbovec compute in one thread, unless the owner set it otherwise.

    A server calls them from threads of its own; more of the libraries' only wait for one another, and double the work
    of a search: each of turbovec's threads chooses as many candidates as are wanted of all. It counts only before
    numpy and turbovec are imported.
    """
    for name in ("OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "RAYON_NUM_THREADS"):
        os.environ.setdefault(name, "1")


def wants_colour() -> bool:
    """Check that NO_COLOR leaves colours alone, and that the terminal isn't one that would print their codes.

    Source: no-color.org: any value that isn't empty turns colours off.
    """
    return (
        not read_variables(["NO_COLOR"])
        and read_variables(["TERM"]).get("TERM", "").strip().lower() not in _COLOURLESS_TERMINALS
    )


UNUSED_VARIABLES: Final[Mapping[str, str]] = {
    "CHROMA_PATH": "the index lies below `state_dir`, which KNAP_STATE_DIR sets",
    "EXCLUDED_DIRS": "the vault's .knapignore says what is left out",
    "PREFERENCES_FILE": "preferences are in Preferences.md at the vault's root",
    "ATTACHMENTS_DIR": "Obsidian's own setting of the folder for attachments counts",
    "MAX_TOOL_RESULT_CHARS": "a model is shown 4,000 characters of a result, and can ask for the rest",
    "SYSTEM_PROMPT_FILE": "the folder `prompts` beside the configuration file has the prompts",
}
"""Variables of the programs that Knapper follows, each with what to use instead."""
ALWAYS_MEANT: Final = ("CHROMA_PATH",)
"""Those that count in the environment too; other programs may have the rest there for themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusedVariable:
    """A variable that is set and means nothing here."""

    name: str
    source: str
    """The environment, or a file and line."""
    instead: str
    """What to use in its place."""

    @property
    def message(self) -> str:
        """Return a sentence about it, without its value."""
        return f"{self.name} ({self.source}) means nothing here: {self.instead}"


def are_told(unused: Iterable[UnusedVariable], record: Path) -> bool:
    """Return whether a person was told of these variables before, by what the state folder's *record* lists.

    Raises:
        OSError: The record can't be read.
    """
    names = {each.name for each in unused}
    return not names or names <= set(record.read_text(encoding="utf-8").split())


def find_unused(environment: Mapping[str, str], env_file: ConfigDocument | None) -> Iterator[UnusedVariable]:
    """Yield the variables that are set and mean nothing here.

    Args:
        environment: The values of those of `ALWAYS_MEANT` that are set.
        env_file: The file of variables, if there is one.
    """
    for name, instead in UNUSED_VARIABLES.items():
        if env_file is not None and env_file.values.get(name):
            yield UnusedVariable(name=name, source=str(env_file.place(name)), instead=instead)
        elif environment.get(name):
            yield UnusedVariable(name=name, source="the environment", instead=instead)

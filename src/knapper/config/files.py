"""Read configuration files: TOML, and lines of NAME=value."""

import io
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from knapper.errors import SetupError

MAX_CONFIG_BYTES = 1_000_000
"""A larger file is no configuration."""

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
    text = _read_config_text(path)
    try:
        values = tomllib.loads(text)
    except RecursionError as error:
        raise _invalid_error(path, 0, "it is nested too deeply") from error
    except ValueError as error:  # TOMLDecodeError, and numbers too long for Python
        position = _TOML_POSITION.search(str(error))
        end = text.rstrip().count("\n") + 1 if "end of document" in str(error) else 0
        line = int(position.group(1)) if position else end
        raise _invalid_error(path, line, _TOML_POSITION.sub("", str(error))) from error
    return ConfigDocument(path=path, values=values, lines=_find_setting_lines(text))


def read_env(path: Path) -> ConfigDocument:
    """Read a file of NAME=value lines; references to other variables stay text.

    Raises:
        SetupError: It can't be read, or a line isn't of that form.
    """
    from dotenv.parser import parse_stream  # noqa: PLC0415  # 20 ms that only a .env file should cost

    values: dict[str, object] = {}
    lines: dict[str, int] = {}
    for binding in parse_stream(io.StringIO(_read_config_text(path))):
        if binding.error:
            raise _invalid_error(path, binding.original.line, "it isn't NAME=value")
        if binding.key and binding.value is not None:
            values[binding.key] = binding.value
            lines[binding.key] = binding.original.line + _blank_lines(binding.original.string)
    return ConfigDocument(path=path, values=values, lines=lines)


def path_exists(path: Path) -> bool:
    """Check whether there is a file, or something that stands in its way."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return True


def _read_config_text(path: Path) -> str:
    try:
        if path.exists() and not path.is_file():
            raise _unreadable_error(path, "it isn't a file")
        with path.open("rb") as file:
            raw = file.read(MAX_CONFIG_BYTES + 1)
    except (OSError, ValueError) as error:
        raise _unreadable_error(path, getattr(error, "strerror", None) or str(error)) from error
    if len(raw) > MAX_CONFIG_BYTES:
        raise _unreadable_error(path, f"it is larger than {MAX_CONFIG_BYTES // 1_000_000} MB")
    if b"\0" in raw:
        raise _invalid_error(path, raw.count(b"\n", 0, raw.index(b"\0")) + 1, "it holds a NUL byte")
    try:
        return raw.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise _invalid_error(path, raw.count(b"\n", 0, error.start) + 1, "it isn't UTF-8 text") from error


def _unreadable_error(path: Path, cause: str) -> SetupError:
    return SetupError(
        f"the configuration {path} can't be read: {cause}",
        code="config_unreadable",
        hint="check the path and its permissions",
    )


def _invalid_error(path: Path, line: int, cause: str) -> SetupError:
    place = f"{path}, line {line}" if line else str(path)
    return SetupError(
        f"the configuration {place} is invalid: {cause[:1].lower()}{cause[1:]}",
        code="config_invalid",
        hint="correct that line, or move the file away",
    )


def _blank_lines(text: str) -> int:
    return len(text[: len(text) - len(text.lstrip())].splitlines())


def _find_setting_lines(text: str) -> dict[str, int]:
    """Find the lines of settings; good enough to point at, so that texts over several lines may mislead it."""
    lines: dict[str, int] = {}
    section = ""
    for number, line in enumerate(text.splitlines(), 1):
        if header := _SECTION_HEADER.match(line):
            section = _strip_quotes(header.group(1))
            lines.setdefault(section, number)
        elif key := _KEY_LINE.match(line):
            lines.setdefault(f"{section}.{_strip_quotes(key.group(1))}".lstrip("."), number)
    return lines


def _strip_quotes(dotted: str) -> str:
    return re.sub(r"""["']""", "", re.sub(r"\s*\.\s*", ".", dotted))

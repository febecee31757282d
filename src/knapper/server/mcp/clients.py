"""Know where the common clients keep their list of servers, and how an entry looks there."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, cast

from knapper.errors import BadInput, SetupError

System = Literal["linux", "macos", "windows"]
Entry = dict[str, object]
NAME: Final = "knapper"
_INDENT: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Hold what tells where programs keep their settings."""

    system: System
    home: Path
    config: Path
    """Where programs keep a person's settings: ``~/.config``, ``~/Library/Application Support``, ``%APPDATA%``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """Describe one client."""

    name: str
    title: str
    key: str
    """The object in its settings that holds its servers."""
    place: tuple[str, ...]
    """Of the settings: folders and name, below the home folder, or below that of settings where ``below`` says so."""
    below: Literal["home", "config"] = "home"
    typed: bool = False
    """Whether an entry says by which transport it speaks."""

    def file(self, machine: Machine) -> Path:
        """Tell where its settings are, or would be."""
        return (machine.home if self.below == "home" else machine.config).joinpath(*self.place)


CLIENTS: Final = (
    Client(
        name="claude-desktop",
        title="Claude Desktop",
        key="mcpServers",
        place=("Claude", "claude_desktop_config.json"),
        below="config",
    ),
    Client(name="claude-code", title="Claude Code", key="mcpServers", place=(".claude.json",), typed=True),
    Client(name="cursor", title="Cursor", key="mcpServers", place=(".cursor", "mcp.json")),
    Client(
        name="vscode",
        title="Visual Studio Code",
        key="servers",
        place=("Code", "User", "mcp.json"),
        below="config",
        typed=True,
    ),
    Client(name="windsurf", title="Windsurf", key="mcpServers", place=(".codeium", "windsurf", "mcp_config.json")),
    Client(name="gemini-cli", title="Gemini CLI", key="mcpServers", place=(".gemini", "settings.json")),
    Client(name="lm-studio", title="LM Studio", key="mcpServers", place=(".lmstudio", "mcp.json")),
)


def find(name: str) -> Client:
    """Give a client by its name.

    Raises:
        BadInput: None has it.
    """
    found = next((client for client in CLIENTS if client.name == name), None)
    if found is None:
        known = ", ".join(client.name for client in CLIENTS)
        raise BadInput(f"there is no client '{name}'", hint=f"clients: {known}", code="no_client")
    return found


def entry(client: Client, command: Sequence[str], environment: Mapping[str, str]) -> Entry:
    """Make the entry that starts our server."""
    made: Entry = {"command": command[0], "args": list(command[1:])}
    if environment:
        made["env"] = dict(environment)
    return {"type": "stdio", **made} if client.typed else made


def merged(client: Client, raw: bytes, made: Entry, where: Path, *, name: str = NAME) -> bytes:
    """Put an entry into a client's settings; all others stay, in their order.

    Args:
        client: Whose settings.
        raw: The settings as they are; empty where there are none.
        made: The entry.
        where: The settings' file, for messages.
        name: The entry's.

    Raises:
        SetupError: The settings aren't plain JSON; they're left alone.
    """
    settings = _settings(raw, where)
    servers = settings.setdefault(client.key, {})
    if not isinstance(servers, dict):
        raise _unusable(where, f"'{client.key}' isn't an object")
    cast("dict[str, object]", servers)[name] = made
    text = json.dumps(settings, ensure_ascii=False, indent=_INDENT) + "\n"
    return text.encode()


def _settings(raw: bytes, where: Path) -> dict[str, object]:
    if not raw.strip():
        return {}
    try:
        found: object = json.loads(raw.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise _unusable(where, f"it isn't plain JSON ({error})") from None
    if not isinstance(found, dict):
        raise _unusable(where, "it isn't an object")
    return cast("dict[str, object]", found)


def _unusable(where: Path, why: str) -> SetupError:
    hint = "add the entry by hand: `knap mcp install --dry-run` shows it"
    return SetupError(f"{where} can't be changed: {why}", hint=hint, code="client_settings")

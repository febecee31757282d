"""Know where the common clients keep their list of servers, and how an entry looks there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, cast

from knapper.config.table import CONFIG_ENV, STATE_ENV
from knapper.errors import BadInput, SetupError
from knapper.server.mcp import members
from knapper.server.mcp.members import UnreadableError

System = Literal["linux", "macos", "windows"]
Entry = dict[str, object]
NAME: Final = "knapper"
_VARIABLES: Final = frozenset({CONFIG_ENV, STATE_ENV})
"""Those that an entry has from us."""
_OURS: Final = frozenset({"type", "command", "args", "env", "url", "serverUrl", "httpUrl", "headers"})
"""What says how a server is reached."""


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


def entry(client: Client, command: Sequence[str], environment: Mapping[str, str], before: object = None) -> Entry:
    """Make the entry that starts our server.

    Args:
        client: Whose settings.
        command: The server's command line.
        environment: Variables that it needs.
        before: The entry that stands there; what a person added to it stays, such as which tools need no asking.
    """
    ours: Entry = {"command": command[0], "args": list(command[1:])}
    if client.typed:
        ours = {"type": "stdio", **ours}
    kept = cast("dict[str, object]", before) if isinstance(before, dict) else {}
    variables = kept.get("env")
    others = cast("dict[str, object]", variables) if isinstance(variables, dict) else {}
    env = {**{name: value for name, value in others.items() if name not in _VARIABLES}, **environment}
    if env:
        ours["env"] = env
    return {**ours, **{name: value for name, value in kept.items() if name not in _OURS}}


def merged(client: Client, text: str, made: Entry, where: Path, *, name: str = NAME) -> str:
    """Put an entry into a client's settings; all else stays as it is written.

    Args:
        client: Whose settings.
        text: The settings as they are; empty where there are none.
        made: The entry.
        where: The settings' file, for messages.
        name: The entry's.

    Raises:
        SetupError: The settings aren't plain JSON; they're left alone.
    """
    try:
        return members.put(text, client.key, name, made)
    except UnreadableError as error:
        raise unusable(where, str(error)) from None


def present(client: Client, text: str, where: Path, *, name: str = NAME) -> object:
    """Give the entry of that name that stands in a client's settings; None where there is none.

    Raises:
        SetupError: The settings aren't plain JSON.
    """
    try:
        return members.get(text, client.key, name)
    except UnreadableError as error:
        raise unusable(where, str(error)) from None


def unusable(where: Path, why: str) -> SetupError:
    """Make the error that says why settings are left alone."""
    hint = "enter by hand what the same command with --dry-run shows"
    return SetupError(f"{where} can't be changed: {why}", hint=hint, code="client_settings")

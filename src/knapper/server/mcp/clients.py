"""The MCP clients that Knapper can be entered into: where each keeps its settings, and what an entry looks like.

Sources, as of 2026: for Claude Desktop and Claude Code the MCP user guide and ``code.claude.com/docs/en/mcp``; for VS
Code ``code.visualstudio.com/docs/copilot/chat/mcp-servers``; for Zed ``docs/src/ai/mcp.md`` of zed-industries/zed and
``zed.dev/docs/configuring-zed``; for Codex ``developers.openai.com/codex/mcp`` and ``docs/config.md`` of openai/codex;
for Devin Desktop ``docs.devin.ai/cli/extensibility/configuration`` (it took Windsurf's place in June 2026); for Copilot
CLI ``docs.github.com/en/copilot/how-tos/copilot-cli/customize-copilot/add-mcp-servers``, and issue 1047 of
github/copilot-cli, since older versions refuse an entry without ``tools``; for Gemini CLI ``docs/tools/mcp-server.md``
of google-gemini/gemini-cli.
"""

import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

import platformdirs

from knapper.config import files
from knapper.config.settings import CONFIG_ENV, STATE_ENV
from knapper.errors import BadInput
from knapper.jsontypes import is_list, object_or_empty

System = Literal["linux", "macos", "windows"]
ServerEntry = dict[str, object]
SettingsFormat = Literal["json", "jsonc", "toml"]
"""Plain JSON; JSON that may hold comments and trailing commas; TOML."""
_OUR_VARIABLES: Final = frozenset({CONFIG_ENV, STATE_ENV})
"""Those that an entry has from us."""
_OUR_KEYS: Final = frozenset(
    {
        "type",
        "source",
        "command",
        "args",
        "env",
        "url",
        "serverUrl",
        "httpUrl",
        "headers",
        "http_headers",
        "env_http_headers",
        "bearer_token_env_var",
    }
)
"""What says how a server is reached."""
_SWITCHES: Final = (("disabled", True), ("enabled", False), ("isActive", False))
"""Members of an entry with the value by which a person switches it off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachinePaths:
    """The facts of this machine that decide where programs keep their settings, and which are installed."""

    system: System
    home: Path
    config: Path
    """Where programs keep a person's settings: ``~/.config``, ``~/Library/Application Support``, ``%APPDATA%``."""
    folders: Mapping[str, Path] = field(default_factory=dict[str, Path])
    """Folders that variables name, such as ``CODEX_HOME``."""
    programs: frozenset[str] = frozenset()
    """Names of clients' programs that a command line would find."""

    @property
    def dot_config(self) -> Path:
        """Return where programs keep settings that follow Linux's custom on macOS too."""
        return self.home / ".config" if self.system == "macos" else self.config


@dataclass(frozen=True, slots=True, kw_only=True)
class McpClient:
    """One MCP client, and where its settings are."""

    name: str
    title: str
    place: tuple[str, ...]
    """Of the settings: folders and name, below the folder that ``below`` names."""
    below: Literal["home", "config", "dot_config"] = "home"
    older_place: tuple[str, ...] = ()
    """Where it kept them before, below the home folder; used where only that folder is there."""
    folder_variable: str = ""
    """The variable that names the settings' folder in the place of the usual one."""
    program: str = ""
    """The program's name on the command line, where it has one."""
    older_names: tuple[str, ...] = ()
    key: str = "mcpServers"
    """The object in its settings that holds its servers."""
    format: SettingsFormat = "jsonc"
    fixed: Mapping[str, object] = field(default_factory=dict[str, object])
    """What an entry has besides the command, such as the transport; a person's own values of other keys stay."""

    def file(self, machine: MachinePaths) -> Path:
        """Return the path of its settings, whether or not they exist."""
        if self.folder_variable in machine.folders:
            return machine.folders[self.folder_variable] / self.place[-1]
        below = {"home": machine.home, "config": machine.config, "dot_config": machine.dot_config}[self.below]
        usual = below.joinpath(*self.place)
        older = machine.home.joinpath(*self.older_place) if self.older_place else usual
        return older if older.parent.is_dir() and not usual.parent.is_dir() else usual

    def is_installed(self, machine: MachinePaths) -> bool:
        """Return whether the client has settings here, a folder for them, or a program that a command line finds."""
        file = self.file(machine)
        has_folder = file.parent != machine.home and file.parent.is_dir()
        return file.is_file() or has_folder or self.program in machine.programs


_STDIO: Final[Mapping[str, object]] = {"type": "stdio"}
CLIENTS: Final = (
    McpClient(
        name="claude-desktop",
        title="Claude Desktop",
        place=("Claude", "claude_desktop_config.json"),
        below="config",
        format="json",
    ),
    McpClient(
        name="claude-code",
        title="Claude Code",
        place=(".claude.json",),
        folder_variable="CLAUDE_CONFIG_DIR",
        program="claude",
        format="json",
        fixed=_STDIO,
    ),
    McpClient(name="cursor", title="Cursor", place=(".cursor", "mcp.json"), program="cursor"),
    McpClient(
        name="vscode",
        title="Visual Studio Code",
        place=("Code", "User", "mcp.json"),
        below="config",
        program="code",
        key="servers",
        fixed=_STDIO,
    ),
    McpClient(
        name="zed",
        title="Zed",
        place=("zed", "settings.json"),
        below="dot_config",
        program="zed",
        key="context_servers",
        fixed={"source": "custom"},
    ),
    McpClient(
        name="codex",
        title="Codex",
        place=(".codex", "config.toml"),
        folder_variable="CODEX_HOME",
        program="codex",
        key="mcp_servers",
        format="toml",
    ),
    McpClient(
        name="devin",
        title="Devin Desktop",
        place=("devin", "mcp_config.json"),
        below="dot_config",
        older_place=(".codeium", "windsurf", "mcp_config.json"),
        older_names=("windsurf", "devin-desktop"),
        program="devin",
    ),
    McpClient(
        name="copilot-cli",
        title="Copilot CLI",
        place=(".copilot", "mcp-config.json"),
        folder_variable="COPILOT_HOME",
        program="copilot",
        fixed={"type": "local", "tools": ["*"]},
    ),
    McpClient(name="gemini-cli", title="Gemini CLI", place=(".gemini", "settings.json"), program="gemini"),
    McpClient(name="lm-studio", title="LM Studio", place=(".lmstudio", "mcp.json")),
)


def find_client(name: str) -> McpClient:
    """Return a client by its name, or by the one that it had before.

    Raises:
        BadInput: None has it.
    """
    match = next((client for client in CLIENTS if name in {client.name, *client.older_names}), None)
    if match is None:
        known_names = ", ".join(client.name for client in CLIENTS)
        raise BadInput(f"there is no client '{name}'", hint=f"clients: {known_names}", code="no_client")
    return match


def detect_machine() -> MachinePaths:
    """Return the facts of this machine."""
    system: System = {"darwin": "macos", "win32": "windows"}.get(sys.platform, "linux")  # pyright: ignore[reportAssignmentType]
    folders = files.read_variables(client.folder_variable for client in CLIENTS if client.folder_variable)
    return MachinePaths(
        system=system,
        home=Path.home(),
        config=config_folder(system, Path.home()),
        folders={name: Path(value).expanduser().absolute() for name, value in folders.items()},
        programs=frozenset(client.program for client in CLIENTS if client.program and shutil.which(client.program)),
    )


def config_folder(system: System, home: Path) -> Path:
    """Return the folder where a system's programs keep a person's settings."""
    if system == "macos":
        return home / "Library" / "Application Support"
    if system == "windows":
        return platformdirs.user_config_path(roaming=True) if sys.platform == "win32" else home / "AppData" / "Roaming"
    return platformdirs.user_config_path() if sys.platform.startswith("linux") else home / ".config"


def build_entry(
    client: McpClient, command: Sequence[str], environment: Mapping[str, str], before: object = None
) -> ServerEntry:
    """Build the entry that starts our server.

    Args:
        client: The client.
        command: The server's command line.
        environment: Environment variables that it needs.
        before: The existing entry; a person's additions stay, such as tools that need no confirmation.
    """
    new_entry: ServerEntry = {**client.fixed, "command": command[0], "args": list(command[1:])}
    existing = object_or_empty(before)
    existing_variables = object_or_empty(existing.get("env"))
    merged_variables = {
        **{name: value for name, value in existing_variables.items() if name not in _OUR_VARIABLES},
        **environment,
    }
    if merged_variables:
        new_entry["env"] = merged_variables
    return {**new_entry, **{name: value for name, value in existing.items() if name not in _OUR_KEYS}}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLaunch:
    """How an entry of a client's settings starts a server."""

    command: tuple[str, ...]
    environment: Mapping[str, str]

    @property
    def key(self) -> tuple[object, ...]:
        """Return what two entries share that start the same."""
        return (self.command, tuple(sorted(self.environment.items())))


def read_launch(entry: object) -> ServerLaunch | None:
    """Return how an entry starts its server; None for one that names an address, or that can't be read."""
    members = object_or_empty(entry)
    command, arguments, variables = members.get("command"), members.get("args", []), members.get("env", {})
    if not isinstance(command, str) or not command or not is_list(arguments):
        return None
    pairs = object_or_empty(variables)
    return ServerLaunch(
        command=(command, *map(str, arguments)), environment={name: str(value) for name, value in pairs.items()}
    )


def is_switched_off(entry: object) -> bool:
    """Return whether a person has switched an entry off, in the forms that clients have for that."""
    members = object_or_empty(entry)
    return any(members.get(name) is value for name, value in _SWITCHES)

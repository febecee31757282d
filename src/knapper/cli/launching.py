"""How other programs start this server, and find it: the service of the system, MCP clients, and paired devices."""

from __future__ import annotations

import codecs
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from knapper.config import files
from knapper.config.editing import SETTINGS_BY_NAME
from knapper.config.settings import CONFIG_ENV, STATE_ENV
from knapper.errors import SetupError
from knapper.server import addresses
from knapper.service import definition
from knapper.service.definition import ServiceDefinition
from knapper.service.platforms import LaunchdManager, SystemdManager, TaskSchedulerManager

if TYPE_CHECKING:
    from knapper.cli.options import GlobalOptions
    from knapper.config import Settings, Vault
    from knapper.config.settings import SettingOrigin
    from knapper.server.addresses import ServerRecord
    from knapper.server.credentials import Invitation
    from knapper.service.definition import CommandRunner, MachineFacts, ServiceManager, System
    from knapper.tools.context import ToolSelection


START_S: Final = 20.0
"""How long a started server may take to answer, in seconds."""
_LOOK_S: Final = 0.2
_OPEN_S: Final = 20.0
_LINK_HINT: Final = "install Obsidian and start it once; or type the code that `knap connect` shows into the plugin"
_CONFIG_HOME: Final = "XDG_CONFIG_HOME"
_DATA_HOME: Final = "XDG_DATA_HOME"
_HANDED_ON: Final = frozenset({"state_dir", "default_vault", "server.host", "server.port"})
"""Settings that reach a service although a variable has them, and that an MCP server gets or doesn't need."""
_PROVIDER_KEY: Final = re.compile(r"model\.([a-z]+)_api_key")


def choose_manager(machine: MachineFacts, runner: CommandRunner) -> ServiceManager:
    """Return the service manager of a machine's system."""
    match machine.system:
        case "linux":
            return SystemdManager(machine=machine, runner=runner)
        case "macos":
            return LaunchdManager(machine=machine, runner=runner)
        case "windows":
            return TaskSchedulerManager(machine=machine, runner=runner)


def open_manager() -> ServiceManager:
    """Return this system's service manager."""
    return choose_manager(definition.detect_machine(), definition.SystemRunner())


def define_service(
    global_options: GlobalOptions,
    settings: Settings,
    *,
    host: str = "",
    port: int | None = None,
    watch_only: bool = False,
) -> ServiceDefinition:
    """Return what the service runs: this installation, with the vault and the settings of this command.

    Args:
        global_options: Those of the command.
        settings: What they come to.
        host: Where the server listens; empty for what is configured.
        port: The same.
        watch_only: Keep the index of one vault up to date, without a server.
    """
    machine = definition.detect_machine()
    arguments = ["watch"] if watch_only else ["serve", "--as-service"]
    # VAULT_PATH or this folder may name one, and a service has neither; and only one is watched.
    if global_options.vault or not settings.vaults or watch_only:
        vault = settings.vault
        arguments += ["--vault", vault.name if vault in settings.vaults else str(vault.path)]
    # A variable of this command says it as an option does: the service hasn't it.
    named = {origin.name for origin in _variable_origins(settings)}
    if not watch_only and (host or "server.host" in named):
        arguments += ["--host", host or settings.server.host]
    if not watch_only and (port is not None or "server.port" in named):
        arguments += ["--port", str(settings.server.port if port is None else port)]
    if _names_config(global_options, settings):
        arguments += ["--config", str(settings.config_file)]
    if settings.env_file and global_options.env_file:
        arguments += ["--env-file", str(settings.env_file)]
    if machine.system != "linux" and not watch_only:  # there the journal keeps it
        arguments += ["--log-file", str(log_file())]
    return ServiceDefinition(
        program=definition.find_program(sys.executable, system=machine.system),
        arguments=arguments,
        environment=server_environment(settings, system=machine.system),
        log_file=log_file(),
    )


def explain_variables(settings: Settings, who: str, *, section: str = "") -> str:
    """Return a remark on variables of this command that another process won't have; empty if there are none.

    Args:
        settings: What this command uses.
        who: The other processes, such as ``the service``.
        section: Only settings of this section; empty for all that aren't handed on.
    """
    remedies: dict[str, str] = {}
    for origin in _variable_origins(settings):
        if origin.name in _HANDED_ON or not origin.name.startswith(f"{section}." if section else ""):
            continue
        provider = _PROVIDER_KEY.fullmatch(origin.name)
        if provider:
            remedies[origin.source] = f"`knap models key {provider[1]}` stores it in the system's keyring"
        elif SETTINGS_BY_NAME[origin.name].secret:
            _ = remedies.setdefault(origin.source, "")
        else:
            remedies[origin.source] = f"`knap config set {origin.name} {shlex.quote(origin.value)}`"
    if not remedies:
        return ""
    ways = [*filter(None, remedies.values()), f"or write it into {settings.config_file.with_name('.env')}"]
    return f"{', '.join(remedies)}: set in this shell alone, so {who} won't have it; {'; '.join(ways)}"


def _variable_origins(settings: Settings) -> list[SettingOrigin]:
    """Return the settings that come from a variable of this process, in the place of a file."""
    return [origin for origin in settings.origins if origin.source in _settings_variables(origin.name)]


def _settings_variables(name: str) -> tuple[str, ...]:
    setting = SETTINGS_BY_NAME.get(name)
    return setting.env if setting else ()


def only_watches(manager: ServiceManager) -> bool:
    """Return whether the installed service has no server, as its definition says."""
    try:
        data = manager.file.read_bytes()
    except OSError:
        return False
    text = data.decode("utf-16" if data[:2] in {codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE} else "utf-8", "replace")
    # The words of a definition stand in quotes, between tags, or alone.
    command = re.search(r"-m(?:\W|string)+knapper\.cli(?:\W|string)+(\w+)", text)
    return command is not None and command[1] == "watch"


def log_file() -> Path:
    """Return the service's log, where the system keeps none itself."""
    return definition.detect_machine().logs / "serve.log"


def wait_for_service(state_dir: Path, address: str = "") -> ServerRecord | None:
    """Return the record of the service's server once it answers; None if it doesn't within `START_S`.

    Args:
        state_dir: Whose server it is.
        address: What the service was told to take, ``http://127.0.0.1:25627``: where another server has it, there is
            nothing to wait for. Empty if that isn't known.
    """
    stop = time.monotonic() + START_S
    while time.monotonic() < stop:
        running_server = addresses.find_server(state_dir)
        if running_server is not None and running_server.service:
            return running_server
        if running_server is not None and running_server.url == address:
            return None
        time.sleep(_LOOK_S)
    return None


def service_address(settings: Settings, *, host: str = "", port: int | None = None) -> str:
    """Return where the server of a service answers that is installed with these settings."""
    server = addresses.override_address(settings, host, port).server
    return addresses.client_url(server.host, server.port)


def explain_silence(state_dir: Path, manager: ServiceManager) -> str:
    """Return why the service's server doesn't answer, as far as it can be seen from outside."""
    other = addresses.find_server(state_dir)
    if other is None:
        return f"{manager.name} started it, but no server answers yet; `knap service logs` says why"
    return (
        f"{describe_other(other)}; end it there, and the service takes its place within seconds "
        "(`knap service status` shows it)"
    )


def describe_other(server: ServerRecord) -> str:
    """Return the remark that a server which answers isn't the service's."""
    return (
        f"the server that answers at {server.url} (process {server.pid}, since {server.started}) "
        "isn't the service's: it was started elsewhere"
    )


def make_pairing_code(settings: Settings, vault: Vault, *, name: str = "", address: str = "") -> Invitation:
    """Create a code that pairs a device with a vault; the server needn't run.

    Args:
        settings: Whose server it is.
        vault: What the device may see and change.
        name: What the client is called; empty where the device says it.
        address: Where the device finds the server; empty for where it runs, or would.

    Raises:
        KnapError: The address or the name can't be used, or the code not be stored.
    """
    from knapper.server import credentials  # noqa: PLC0415 - what doesn't pair needn't pay for it

    record = addresses.find_server(settings.state_dir)
    own = urlsplit(record.url) if record else None
    host, port = (own.hostname or "", own.port or 0) if own else (settings.server.host, settings.server.port)
    checked_address = credentials.check_address(settings, address or addresses.client_url(host, port))
    offer = credentials.offer_vault(vault, name, "cli")
    code = credentials.open_codes(settings.state_dir).new(offer)
    return credentials.Invitation(code=code, address=checked_address, offer=offer)


def open_link(link: str) -> None:
    """Open a link with the program that the system has for it.

    Raises:
        SetupError: It has none.
    """
    error = SetupError(f"nothing here opens {link.partition('?')[0]} links", hint=_LINK_HINT, code="no_opener")
    if sys.platform == "win32":
        try:
            os.startfile(link)  # noqa: S606 - a link of our own, whose values are quoted
        except OSError as failure:
            raise error from failure
        return
    program = shutil.which("open" if sys.platform == "darwin" else "xdg-open")
    if program is None:
        raise error
    try:
        # no shell; and the link begins with its scheme, so that it is no option
        _ = subprocess.run([program, link], check=True, timeout=_OPEN_S, capture_output=True)  # noqa: S603
    except (OSError, subprocess.SubprocessError) as failure:
        raise error from failure


def server_command(options: GlobalOptions, config: Settings, profile: ToolSelection) -> list[str]:
    """Return the command line that starts the server for these options, from any folder.

    Raises:
        SetupError: This installation lies in a cache that is emptied some day, or there is no such vault.
    """
    system = definition.detect_machine().system
    words = [*definition.find_program(sys.executable, system=system, needs_streams=True), "mcp"]
    if options.vault or not config.vaults:  # else VAULT_PATH or the current folder says it, and a client has neither
        folder = str(config.vault.path)
        is_name = options.vault and not Path(options.vault).expanduser().exists()
        words += ["--vault", options.vault if is_name else folder]
    if _names_config(options, config):
        words += ["--config", str(config.config_file)]
    if options.env_file:
        words += ["--env-file", str(Path(options.env_file).absolute())]
    return words if profile == "standard" else [*words, "--profile", profile]


def _names_config(options: GlobalOptions, settings: Settings) -> bool:
    """Return whether the configuration file has to be named, as another process would look elsewhere."""
    is_elsewhere = files.read_variables([CONFIG_ENV, _CONFIG_HOME]) and settings.config_file.is_file()
    return bool(options.config or is_elsewhere)


def server_environment(config: Settings, *, system: System = "linux") -> dict[str, str]:
    """Return the variables without which the server would use another state folder than this command.

    Args:
        config: What this command uses.
        system: Windows has its own place for data, whatever ``XDG_DATA_HOME`` says.
    """
    variables: dict[str, str] = {}
    if (
        files.read_variables([CONFIG_ENV]) and not config.config_file.is_file()
    ):  # to be made, so that no option can name it
        variables[CONFIG_ENV] = str(config.config_file)
    if files.read_variables([STATE_ENV] if system == "windows" else [STATE_ENV, _DATA_HOME]):
        variables[STATE_ENV] = str(config.state_dir)
    return variables

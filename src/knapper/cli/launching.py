"""How other programs start this server, find it, and reach it: the service, MCP clients, and paired devices."""

from __future__ import annotations

import codecs
import contextlib
import json
import os
import queue
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, Literal
from urllib.parse import urlsplit

from knapper import __version__
from knapper.cli import output
from knapper.config import files
from knapper.config.editing import SETTINGS_BY_NAME
from knapper.config.settings import CONFIG_ENV, STATE_ENV
from knapper.errors import KnapError, SetupError
from knapper.jsontypes import Record, is_list, object_or_empty
from knapper.server import addresses
from knapper.service import definition
from knapper.service.definition import ServiceDefinition
from knapper.service.platforms import LaunchdManager, SystemdManager, TaskSchedulerManager

if TYPE_CHECKING:
    from collections.abc import Sequence

    from knapper.cli.options import GlobalOptions
    from knapper.config import Settings, Vault
    from knapper.config.settings import SettingOrigin
    from knapper.server.addresses import ServerRecord
    from knapper.server.credentials import Invitation
    from knapper.server.mcp.clients import MachinePaths, McpClient, ServerLaunch
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
    return [
        origin
        for origin in settings.origins
        if origin.name in SETTINGS_BY_NAME and origin.source in SETTINGS_BY_NAME[origin.name].env
    ]


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


PROBE_TOOL: Final = "find_notes"
"""The tool that is called: it opens a vault and its index, and changes nothing."""
_PROBE_ARGUMENTS: Final = {"limit": 1}
_PROTOCOL_VERSION: Final = "2025-11-25"
_INHERITED: Final = (
    "APPDATA HOMEDRIVE HOMEPATH LOCALAPPDATA PATH PATHEXT PROCESSOR_ARCHITECTURE SYSTEMDRIVE SYSTEMROOT TEMP TMP"
    " USERNAME USERPROFILE"
    if sys.platform == "win32"
    else "HOME LANG LC_ALL LOGNAME PATH SHELL TERM TMPDIR USER"
).split()
"""The variables that clients hand on; a server that needs another one has to have it in its entry."""
_MAX_LINE_BYTES: Final = 8_000_000
_MAX_LOG_LINES: Final = 30
_MAX_WORDS: Final = 200
_STOP_S: Final = 3.0

ProbeState = Literal["ok", "failed"]


class ProbeFailure(KnapError):
    """A server that doesn't answer as it should."""

    code = "probe_failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """What a trial of a server came to."""

    state: ProbeState
    text: str
    """What it answered, or what failed."""
    hint: str = ""
    server: str = ""
    """Its name and version, as it says."""
    tools: int = 0
    seconds: float = 0.0


def probe(launch: ServerLaunch, *, timeout_s: float) -> ProbeResult:
    """Start a server and make one call.

    Args:
        launch: How it is started.
        timeout_s: How long all of it may take, in seconds.
    """
    began = time.monotonic()
    try:
        with _started(launch, began + timeout_s) as conversation:
            server, tools, text = _converse(conversation)
    except ProbeFailure as error:
        return ProbeResult(
            state="failed", text=error.message, hint=error.hint, seconds=round(time.monotonic() - began, 2)
        )
    return ProbeResult(state="ok", text=text, server=server, tools=tools, seconds=round(time.monotonic() - began, 2))


def _converse(conversation: _Conversation) -> tuple[str, int, str]:
    """Return who answers, how many tools it lists, and what the call gave."""
    client = {"name": "knap mcp status", "version": __version__}
    hello = {"protocolVersion": _PROTOCOL_VERSION, "capabilities": {}, "clientInfo": client}
    greeting = conversation.ask("initialize", hello)
    conversation.tell("notifications/initialized")
    listed = conversation.ask("tools/list", {}).get("tools")
    result = conversation.ask("tools/call", {"name": PROBE_TOOL, "arguments": _PROBE_ARGUMENTS})
    answer = _read_answer(result)
    info = object_or_empty(greeting.get("serverInfo"))
    server = f"{info.get('name', 'unnamed')} {info.get('version', '')}".strip()[:_MAX_WORDS]
    if result.get("isError") or answer.get("success") is False:
        words = str(answer.get("error") or "it answered with an error")[:_MAX_WORDS]
        raise ProbeFailure(f"{PROBE_TOOL} failed: {words}", hint=str(answer.get("hint") or _DOCTOR)[:_MAX_WORDS])
    total, remarks = answer.get("total"), answer.get("notes")
    text = f"{total} note{'' if total == 1 else 's'}" if isinstance(total, int) else f"{PROBE_TOOL} answered"
    if is_list(remarks) and remarks:  # such as that the index isn't filled yet
        text = f"{text}; {str(remarks[0])[:_MAX_WORDS]}"
    return server, len(listed) if is_list(listed) else 0, text


def _read_answer(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a call's answer, which an error has as text alone."""
    if isinstance(result.get("structuredContent"), dict):
        return result["structuredContent"]
    content = result.get("content")
    first = object_or_empty(content[0] if is_list(content) and content else None)
    try:
        return object_or_empty(json.loads(str(first.get("text", ""))))
    except ValueError:
        return {"error": str(first.get("text", ""))} if result.get("isError") else {}


@dataclass(slots=True, kw_only=True)
class _Conversation:
    """The messages to and from a server that was started."""

    process: subprocess.Popen[bytes]
    deadline: float
    lines: queue.Queue[bytes] = field(default_factory=lambda: queue.Queue())
    log: deque[bytes] = field(default_factory=lambda: deque(maxlen=_MAX_LOG_LINES))
    threads: list[threading.Thread] = field(default_factory=list[threading.Thread])
    _number: int = 0

    def listen(self) -> None:
        """Read what the server sends in threads, since a pipe's read has no time limit on every system."""
        for stream, hear in ((self.process.stdout, self.lines.put), (self.process.stderr, self.log.append)):
            thread = threading.Thread(target=_read_lines, args=(stream, hear), daemon=True)
            self.threads.append(thread)
            thread.start()

    def ask(self, method: str, params: Mapping[str, object]) -> Mapping[str, Any]:
        """Send a request, and return its result.

        Raises:
            ProbeFailure: There is none in time, or it is an error.
        """
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params}, method)
        while True:
            try:
                line = self.lines.get(timeout=max(self.deadline - time.monotonic(), 0))
            except queue.Empty:
                raise ProbeFailure(
                    f"no answer to {method} in time", hint=f"give it longer with --timeout; {_DOCTOR}"
                ) from None
            if not line:
                raise self._ended(method)
            try:
                message = object_or_empty(json.loads(line))
            except (ValueError, RecursionError):
                raise ProbeFailure("it doesn't speak MCP: it prints other text", hint=_AGAIN) from None
            if message.get("id") != self._number or "method" in message:
                continue
            if "error" in message:
                words = str(object_or_empty(message["error"]).get("message", "an error"))[:_MAX_WORDS]
                raise ProbeFailure(f"{method} was refused: {words}", hint=_AGAIN)
            return object_or_empty(message.get("result"))

    def tell(self, method: str) -> None:
        """Send a notification."""
        self._send({"method": method}, method)

    def _send(self, message: Mapping[str, object], method: str) -> None:
        assert self.process.stdin is not None  # noqa: S101 - it was started with a pipe
        try:
            self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            raise self._ended(method) from None

    def _ended(self, method: str) -> ProbeFailure:
        """Return the failure of a server that has ended, with its own last words."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_STOP_S)
        for thread in self.threads[1:]:
            thread.join(_STOP_S)
        lines = (line.decode(errors="replace").strip() for line in reversed(self.log))
        words = next((line for line in lines if line and not line.startswith("hint: ")), "")
        text = f"it ended before it answered {method}" + (f": {words[:_MAX_WORDS]}" if words else "")
        return ProbeFailure(text, hint=_AGAIN)


_DOCTOR: Final = "`knap doctor` says whether the vault can be read"
_AGAIN: Final = "`knap mcp install CLIENT` enters the server of this installation anew"


def _read_lines(stream: IO[bytes], hear: Callable[[bytes], object]) -> None:
    """Pass on each line; an empty one says that no more come."""
    with contextlib.suppress(OSError, ValueError):  # closed meanwhile
        while line := stream.readline(_MAX_LINE_BYTES):
            hear(line)
    hear(b"")


@contextlib.contextmanager
def _started(launch: ServerLaunch, deadline: float) -> Generator[_Conversation]:
    """Start a server as a client does: with few variables, from the home folder, and with all its processes ended."""
    environment = {**files.read_variables(_INHERITED), **launch.environment}
    try:
        process = subprocess.Popen(  # noqa: S603 - what the client's own settings say, as the client starts it
            list(launch.command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            cwd=Path.home(),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ProbeFailure(f"it can't be started: {launch.command[0]}: {reason}", hint=_AGAIN) from None
    conversation = _Conversation(process=process, deadline=deadline)
    conversation.listen()
    try:
        yield conversation
    finally:
        with contextlib.suppress(OSError):
            if process.stdin is not None:
                process.stdin.close()  # which lets it end by itself
        try:
            _ = process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            if sys.platform == "win32":
                process.kill()
            else:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)  # the session that was begun for it, and nothing else
            _ = process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


ConnectionState = Literal["ok", "failed", "configured", "off", "address", "none"]
"""It answers; it doesn't, or the settings can't be read; it wasn't tried; it is switched off; the entry names an
address and starts nothing; there is no entry."""
_MARKS: Final = {"ok": "✓", "failed": "✗", "configured": "·", "off": "-", "address": "·", "none": "-"}
_MAX_TRIALS: Final = 2
"""At the same time: each costs a second of processor time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConnection(Record):
    """What is known of one client."""

    client: str
    title: str
    path: str
    installed: bool
    configured: bool
    state: ConnectionState
    text: str = ""
    hint: str = ""
    command: tuple[str, ...] = ()
    """How its settings start the server; without the variables, which may hold keys."""
    server: str = ""
    tools: int = 0
    seconds: float = 0.0


def list_connections(machine: MachinePaths, *, name: str, timeout_s: float) -> list[ClientConnection]:
    """Return what is known of each client, in the order in which they are listed.

    Clients whose entries are the same are tried once.

    Args:
        machine: Where they keep their settings.
        name: Of the entry.
        timeout_s: How long one trial may take, in seconds; 0 tries nothing.
    """
    from knapper.server.mcp import clients  # noqa: PLC0415 - `knap mcp` serves, and needs neither of the two for it

    connections = [_read_connection(client, machine, name) for client in clients.CLIENTS]
    launches = {launch.key: launch for _, launch in connections if launch is not None} if timeout_s else {}

    def try_server(launch: ServerLaunch) -> ProbeResult:
        return probe(launch, timeout_s=timeout_s)

    with ThreadPoolExecutor(max_workers=_MAX_TRIALS) as trials:
        results = dict(zip(launches, trials.map(try_server, launches.values()), strict=True))
    rows: list[ClientConnection] = []
    for connection, launch in connections:
        result = results.get(launch.key) if launch is not None else None
        if result is None:
            rows.append(connection)
            continue
        row = replace(
            connection,
            state=result.state,
            text=result.text,
            hint=result.hint.replace("CLIENT", connection.client),
            server=result.server,
            tools=result.tools,
            seconds=result.seconds,
        )
        rows.append(row)
    return rows


def _read_connection(
    client: McpClient, machine: MachinePaths, name: str
) -> tuple[ClientConnection, ServerLaunch | None]:
    """Return what a client's settings say, and how they start the server if it is to be tried."""
    from knapper.server.mcp import clients, install  # noqa: PLC0415 - the same

    file = client.file(machine)
    connection = ClientConnection(
        client=client.name,
        title=client.title,
        path=str(file),
        installed=client.is_installed(machine),
        configured=False,
        state="none",
    )
    try:
        entry = install.find_entry(client, file, name=name)
    except KnapError as error:
        return replace(connection, state="failed", text=error.message, hint=_INSTALL_HINT.format(client.name)), None
    if entry is None:
        return connection, None
    launch = clients.read_launch(entry)
    connection = replace(connection, configured=True, command=launch.command if launch else ())
    if clients.is_switched_off(entry):
        return replace(connection, state="off", text="switched off in its settings"), None
    if launch is None:
        return replace(connection, state="address", text="reached by an address, which isn't tried"), None
    return replace(connection, state="configured", text="not tried"), launch


_INSTALL_HINT: Final = "`knap mcp install {} --dry-run` shows what to enter by hand"


def render_connections(rows: Sequence[ClientConnection]) -> str:
    """Return a line for each client that is installed or configured, with the way out where something failed."""
    lines: list[str] = []
    for row in rows:
        if not row.installed and not row.configured and row.state == "none":
            continue
        text = row.text
        if row.state == "none":
            text = f"not connected: knap mcp install {row.client}"
        elif row.state == "ok":
            text = f"{text}; {row.tools} tools; {row.seconds:.1f} s"
        # A settings file and the server that it names may say anything.
        lines.append(f"{_MARKS[row.state]} {row.title:<20}{output.one_line(text)}")
        if row.state == "failed" and row.hint:
            lines.append(f"  {'':<20}{output.one_line(row.hint)}")
    return "\n".join(lines) or "no MCP client was found here; `knap mcp install NAME` enters it all the same"

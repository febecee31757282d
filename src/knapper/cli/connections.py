"""Find which MCP clients start this server, and try it as they do: greet it, list its tools, make one real call."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, Literal

from knapper import __version__
from knapper.cli import output
from knapper.config import files
from knapper.errors import KnapError
from knapper.jsontypes import is_list, object_or_empty
from knapper.server.mcp import clients, install
from knapper.server.mcp.clients import ServerLaunch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from knapper.server.mcp.clients import MachinePaths, McpClient


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
    return server, len(listed) if is_list(listed) else 0, _describe_end(answer)


def _describe_end(answer: Mapping[str, Any]) -> str:
    total, remarks = answer.get("total"), answer.get("notes")
    text = f"{total} note{'' if total == 1 else 's'}" if isinstance(total, int) else f"{PROBE_TOOL} answered"
    # Such as that the index isn't filled yet.
    return f"{text}; {str(remarks[0])[:_MAX_WORDS]}" if is_list(remarks) and remarks else text


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
    log: deque[str] = field(default_factory=lambda: deque(maxlen=_MAX_LOG_LINES))
    threads: list[threading.Thread] = field(default_factory=list[threading.Thread])
    _number: int = 0

    def listen(self) -> None:
        """Read what the server sends in threads, since a pipe's read has no time limit on every system."""
        for stream, hear in ((self.process.stdout, self.lines.put), (self.process.stderr, self._log_line)):
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
            message = self._receive(method)
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

    def _receive(self, method: str) -> Mapping[str, Any]:
        try:
            line = self.lines.get(timeout=max(self.deadline - time.monotonic(), 0))
        except queue.Empty:
            raise ProbeFailure(
                f"no answer to {method} in time", hint=f"give it longer with --timeout; {_DOCTOR}"
            ) from None
        if not line:
            raise self._ended(method)
        try:
            return object_or_empty(json.loads(line))
        except (ValueError, RecursionError):
            raise ProbeFailure("it doesn't speak MCP: it prints other text", hint=_AGAIN) from None

    def _ended(self, method: str) -> ProbeFailure:
        """Return the failure of a server that has ended, with its own last words."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_STOP_S)
        for thread in self.threads[1:]:
            thread.join(_STOP_S)
        lines = (line.strip() for line in reversed(self.log))
        words = next((line for line in lines if line and not line.startswith("hint: ")), "")
        text = f"it ended before it answered {method}" + (f": {words[:_MAX_WORDS]}" if words else "")
        return ProbeFailure(text, hint=_AGAIN)

    def _log_line(self, line: bytes) -> None:
        self.log.append(line.decode(errors="replace"))


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
        _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Let a server end by closing its input, and end it and what it started if it doesn't."""
    with contextlib.suppress(OSError):
        if process.stdin is not None:
            process.stdin.close()
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
class ClientConnection:
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

    def as_dict(self) -> dict[str, object]:
        """Return it to a program."""
        return {**asdict(self), "command": list(self.command)}


def list_connections(machine: MachinePaths, *, name: str, timeout_s: float) -> list[ClientConnection]:
    """Return what is known of each client, in the order in which they are listed.

    Clients whose entries are the same are tried once.

    Args:
        machine: Where they keep their settings.
        name: Of the entry.
        timeout_s: How long one trial may take, in seconds; 0 tries nothing.
    """
    connections = [_read_connection(client, machine, name) for client in clients.CLIENTS]
    launches = {launch.key: launch for _, launch in connections if launch is not None} if timeout_s else {}

    def try_server(launch: ServerLaunch) -> ProbeResult:
        return probe(launch, timeout_s=timeout_s)

    with ThreadPoolExecutor(max_workers=_MAX_TRIALS) as trials:
        results = dict(zip(launches, trials.map(try_server, launches.values()), strict=True))
    return [
        _with_result(connection, results[launch.key]) if launch is not None and launch.key in results else connection
        for connection, launch in connections
    ]


def _read_connection(
    client: McpClient, machine: MachinePaths, name: str
) -> tuple[ClientConnection, ServerLaunch | None]:
    """Return what a client's settings say, and how they start the server if it is to be tried."""
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


def _with_result(connection: ClientConnection, result: ProbeResult) -> ClientConnection:
    return replace(
        connection,
        state=result.state,
        text=result.text,
        hint=result.hint.replace("CLIENT", connection.client),
        server=result.server,
        tools=result.tools,
        seconds=result.seconds,
    )


def render_connections(rows: Sequence[ClientConnection]) -> str:
    """Return a line for each client that is installed or configured, with the way out where something failed."""
    lines: list[str] = []
    for row in rows:
        if not row.installed and not row.configured and row.state == "none":
            continue
        # A settings file and the server that it names may say anything.
        lines.append(f"{_MARKS[row.state]} {row.title:<20}{output.one_line(_describe(row))}")
        if row.state == "failed" and row.hint:
            lines.append(f"  {'':<20}{output.one_line(row.hint)}")
    return "\n".join(lines) or "no MCP client was found here; `knap mcp install NAME` enters it all the same"


def _describe(row: ClientConnection) -> str:
    if row.state == "none":
        return f"not connected: knap mcp install {row.client}"
    if row.state == "ok":
        return f"{row.text}; {row.tools} tools; {row.seconds:.1f} s"
    return row.text

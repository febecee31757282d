"""Which MCP clients start this server, and whether it answers them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from knapper.cli import output
from knapper.errors import KnapError
from knapper.server.mcp import clients, install, probing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from knapper.server.mcp.clients import MachinePaths, McpClient, ServerLaunch
    from knapper.server.mcp.probing import ProbeResult

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
    found = [_read_connection(client, machine, name) for client in clients.CLIENTS]
    launches = {launch.key: launch for _, launch in found if launch is not None} if timeout_s else {}

    def try_server(launch: ServerLaunch) -> ProbeResult:
        return probing.probe(launch, timeout_s=timeout_s)

    with ThreadPoolExecutor(max_workers=_MAX_TRIALS) as trials:
        results = dict(zip(launches, trials.map(try_server, launches.values()), strict=True))
    return [
        _with_result(connection, results[launch.key]) if launch is not None and launch.key in results else connection
        for connection, launch in found
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

"""Put the server together and run it: routes, MCP, watchers, and an orderly end."""

import logging.config
from collections.abc import Callable
from dataclasses import replace

from knapper.app import Hub
from knapper.config import Settings
from knapper.server import auth, logs, running, sockets, watchers
from knapper.server.http import app, rooms
from knapper.server.http.app import Mount, Work
from knapper.server.http.page import routes as page
from knapper.server.http.page import seats as page_seats
from knapper.server.http.page.seats import Seats
from knapper.server.http.runs import routes as runs
from knapper.server.mcp import http as mcp
from knapper.server.threads import Threads


def run(hub: Hub, settings: Settings, *, watch: bool = True, on_start: Callable[[str, str], None]) -> None:
    """Serve a hub's vaults until a signal comes.

    Args:
        hub: The vaults.
        settings: Where the server listens, whom it lets in, and how much it takes on.
        watch: Keep the indexes up to date meanwhile.
        on_start: Called once requests are answered, with the server's address, and one that signs a browser in to the
            page, once.

    Raises:
        SetupError: The port is taken, there is no such address, or it would be open to others without a token.
        StorageError: A token can't be read or written.
    """
    server = settings.server
    seats = page_seats.of_state(settings.state_dir)
    work = Work(threads=Threads(server.threads))
    answering = app.create(hub, server, auth.keys(settings), work, _mounts(hub, seats, work, watch=watch))
    taken = sockets.bind(server.host, server.port)
    address = sockets.address(taken)
    logging.config.dictConfig(logs.configuration())
    try:
        door = page_seats.address(address, seats.new_code())
        running.serve(
            answering, taken, stop=work.stop, stop_s=server.stop_seconds, on_start=lambda: on_start(address, door)
        )
    finally:
        taken.close()
        work.threads.close()
    running.leave(0)


def listening_at(settings: Settings, host: str, port: int | None) -> Settings:
    """Give the settings with another address, as far as one is given."""
    server = replace(settings.server, **({"host": host} if host else {}), **({} if port is None else {"port": port}))
    return replace(settings, server=server)


def _mounts(hub: Hub, seats: Seats, work: Work, *, watch: bool) -> list[Mount]:
    """List what answers or works beside the routes of tools; a line each."""
    opens = watchers.engines(hub) if watch else {}
    return [
        Mount(lifespan=lambda: watchers.running(opens)),
        mcp.mount(hub, work.threads),
        page.mount(seats, hub.vaults),
        rooms.mount(hub, work.stop),
        runs.mount(hub, work.stop),
    ]

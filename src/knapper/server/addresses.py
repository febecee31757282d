"""Where the server listens, bound before anything slow is imported, and the record that others find it by."""

import contextlib
import errno
import ipaddress
import json
import os
import re
import socket
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from knapper import __version__
from knapper.config import Settings
from knapper.config.sections import DEFAULT_PORT, ServerSettings
from knapper.errors import SetupError, StorageError
from knapper.jsontypes import is_object, object_or_empty
from knapper.system import private

MAY_PASS: Final = frozenset({"already_serving", "no_address", "port_taken"})
"""Codes of what keeps a server from its address now, and may not later: another program, a network that isn't up."""


def override_address(settings: Settings, host: str, port: int | None) -> Settings:
    """Return the settings with the given host and port."""
    server = replace(settings.server, **({"host": host} if host else {}), **({} if port is None else {"port": port}))
    return replace(settings, server=server)


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    address = parse_address(host.strip("[]"))
    return address.is_loopback if address else host.lower() == "localhost"


def parse_address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return an IP address; None if it is a name."""
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def check_guarded(server: ServerSettings) -> None:
    """Check that a server which others can reach has a token.

    Raises:
        SetupError: It would listen beyond loopback without a token set by the owner.
    """
    if not is_loopback(server.host) and not server.token:
        raise SetupError(
            f"the server isn't started at {server.host}, which other machines can reach, without a token of yours",
            hint="set server.token, or KNAP_TOKEN, to what `knap token new` prints; or leave --host out",
            code="token_needed",
        )


def bind_socket(host: str, port: int, state_dir: Path | None = None) -> socket.socket:
    """Bind a socket to an address and a port.

    Args:
        host: A name or an address; one of IPv6 may stand in brackets, as in URLs.
        port: 0 for any free one.
        state_dir: Whose server's record tells whether a taken port is this account's own server; None to tell nothing
            of who has it.

    Raises:
        SetupError: The port is taken or not allowed, or the machine has no such address.
    """
    try:
        addresses = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
        family, kind, protocol, _, address = addresses[0]
    except (OSError, UnicodeError) as error:
        raise SetupError(
            f"there is no address '{host}'", hint="give --host an address of this machine", code="no_address"
        ) from error
    bound_socket = socket.socket(family, kind, protocol)
    try:
        if os.name == "posix":  # elsewhere this would let two servers have one port
            bound_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        elif (exclusive := getattr(socket, "SO_EXCLUSIVEADDRUSE", None)) is not None:
            bound_socket.setsockopt(socket.SOL_SOCKET, exclusive, 1)
        bound_socket.bind(address)
        bound_socket.listen(1)  # some systems tell only now that the port is taken
    except OSError as error:
        bound_socket.close()
        raise _bind_error(host, port, error, state_dir) from error
    bound_socket.setblocking(False)  # noqa: FBT003 - the standard library's signature
    return bound_socket


def socket_url(bound_socket: socket.socket) -> str:
    """Return the URL of a bound socket: ``http://127.0.0.1:25627``."""
    host, port = bound_socket.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _bind_error(host: str, port: int, error: OSError, state_dir: Path | None) -> SetupError:
    if error.errno in {errno.EADDRINUSE, getattr(errno, "WSAEADDRINUSE", errno.EADDRINUSE)}:
        # Whose the port is: another program's, this account's own server's, or that of another Knapper.
        other_port = f"`knap serve --port {port + 1 if port < _MAX_PORT else DEFAULT_PORT}`"
        health = read_health(client_url(host, port)) if state_dir else None
        if state_dir is None or health is None:
            return SetupError(
                f"port {port} of {host} is taken by another program",
                hint=f"stop that one, or take another port: {other_port}",
                code="port_taken",
            )
        record = read_record(state_dir)
        if record is not None and record.instance == health.get("instance"):
            return SetupError(
                f"your server already answers at {record.url} (process {record.pid}, since {record.started})",
                hint="`knap token page` opens its page; `knap service stop`, or Ctrl-C where it runs, ends it; "
                f"{other_port} starts another one",
                code="already_serving",
            )
        version = str(health.get("version"))
        return SetupError(
            f"port {port} of {host} has another Knapper{f' {version}' if _VERSION.fullmatch(version) else ''}: "
            "one of another account, or with another state folder",
            hint=f"take another port: {other_port}",
            code="port_taken",
        )
    if error.errno in {errno.EACCES, errno.EPERM}:
        return SetupError(
            f"port {port} of {host} isn't allowed to this user", hint="take one above 1023", code="port_forbidden"
        )
    return SetupError(
        f"the server can't listen at {host}, port {port}: {error.strerror}",
        hint="give --host an address of this machine",
        code="no_address",
    )


_VERSION: Final = re.compile(r"[\w.+-]{1,40}", re.ASCII)


def client_url(host: str, port: int) -> str:
    """Return where this machine's programs call a server that listens at an address: an unspecified one is loopback."""
    host = host.strip("[]")
    address = parse_address(host)
    if address is not None and address.is_unspecified:
        host = "::1" if address.version == _IP_V6 else "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


PRODUCT: Final = "knapper"
_IP_V6: Final = 6
_MAX_PORT: Final = 65_535
_PROBE_S: Final = 2.0
_PIECE_BYTES: Final = 4_096
_MAX_REPLY_BYTES: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRecord:
    """Where a server answers, and which one it is.

    ``ServerRecord(pid=4711, url="http://127.0.0.1:25627", started="2026-11-23T09:00:00+00:00", version="0.9.0",
    instance="5f1d…")``
    """

    pid: int
    url: str
    started: str
    """The time of its start, with the zone: ``2026-11-23T09:00:00+00:00``."""
    version: str
    instance: str
    """Random, and the same in ``/health``: a token is shown to no other program that has got the port."""
    service: bool = False
    """Whether it was started as the system's service, and not by hand."""


def make_record(url: str, instance: str, *, service: bool = False) -> ServerRecord:
    """Return the record of this process."""
    started = datetime.now(UTC).isoformat(timespec="seconds")
    return ServerRecord(
        pid=os.getpid(), url=url, started=started, version=__version__, instance=instance, service=service
    )


def record_path(state_dir: Path) -> Path:
    """Return the path of the record's file."""
    return state_dir / "server" / "server.json"


def write_record(state_dir: Path, record: ServerRecord) -> None:
    """Write the record, readable by its owner alone, in the place of an older one.

    Raises:
        StorageError: It can't be written.
    """
    path = record_path(state_dir)
    try:
        private.make_folder(path.parent)
        private.write_text(path, json.dumps(asdict(record), indent=2))
    except OSError as error:
        raise StorageError(
            f"{path} can't be written: {error.strerror or error}", hint="`knap doctor` checks the state folder"
        ) from error


def remove_record(state_dir: Path, record: ServerRecord) -> None:
    """Remove the record, unless a later server has written its own."""
    if read_record(state_dir) == record:
        with contextlib.suppress(OSError):  # a record that stays is seen to be stale
            record_path(state_dir).unlink(missing_ok=True)


def read_record(state_dir: Path) -> ServerRecord | None:
    """Return the record of the last server; None if there is none, or the file holds something else."""
    try:
        decoded: object = json.loads(record_path(state_dir).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not is_object(decoded):
        return None
    values: dict[str, Any] = {"service": False, **decoded}  # an older server doesn't say it
    kinds = {"pid": int, "service": bool}
    if any(not isinstance(values.get(each.name), kinds.get(each.name, str)) for each in fields(ServerRecord)):
        return None
    record = ServerRecord(**{each.name: values[each.name] for each in fields(ServerRecord)})
    # Whoever reads it may open the address, so it is an address of the web and nothing else.
    return record if record.url.startswith(("http://", "https://")) else None


def describe_server(state_dir: Path) -> str:
    """Return the address of the server that runs, and how many processes answer searches; empty where none runs."""
    record = read_record(state_dir)
    health = read_health(record.url) if record is not None else None
    if record is None or health is None or health.get("instance") != record.instance:
        return ""
    count = health.get("readers")
    readers = f", with {count} reader{'s' * (count != 1)}" if isinstance(count, int) and count else ""
    return f"{record.url}{readers}"


def find_server(state_dir: Path) -> ServerRecord | None:
    """Return the record of the server that runs; None if none answers, or another program has its port."""
    record = read_record(state_dir)
    if record is None:
        return None
    health = read_health(record.url)
    return record if health is not None and health.get("instance") == record.instance else None


def read_health(url: str) -> Mapping[str, object] | None:
    """Return what a Knapper server says of itself at ``/health``; None if none answers within 2 s.

    No token is shown, and no proxy is asked: the address is this machine's.
    """
    try:
        parts = urlsplit(url)
        if parts.scheme != "http" or not parts.hostname:
            return None
        # Spoken by hand: an HTTP client takes 30 ms to import, and its time limit holds for each piece, so that a
        # program which sends a byte a second would be listened to for hours.
        deadline, reply = time.monotonic() + _PROBE_S, b""
        with socket.create_connection((parts.hostname, parts.port or 80), timeout=_PROBE_S) as connection:
            connection.sendall(f"GET /health HTTP/1.0\r\nHost: {parts.netloc}\r\n\r\n".encode("ascii"))
            while len(reply) < _MAX_REPLY_BYTES and (left_s := deadline - time.monotonic()) > 0:
                connection.settimeout(left_s)
                piece = connection.recv(_PIECE_BYTES)
                if not piece:
                    break
                reply += piece
        head, _, body = reply.partition(b"\r\n\r\n")
        decoded: object = json.loads(body) if head.split(b" ")[1:2] == [b"200"] else None
    except (OSError, ValueError, RecursionError):
        return None
    health = object_or_empty(decoded)
    return health if health.get("product") == PRODUCT else None

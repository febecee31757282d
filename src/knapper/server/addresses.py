"""Where the server listens: an address and a port, bound before anything slow is imported."""

import errno
import ipaddress
import os
import socket
from dataclasses import replace

from knapper.config import Settings
from knapper.config.sections.network import ServerSettings
from knapper.errors import SetupError


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


def bind_socket(host: str, port: int) -> socket.socket:
    """Bind a socket to an address and a port.

    Args:
        host: A name or an address; one of IPv6 may stand in brackets, as in URLs.
        port: 0 for any free one.

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
        raise _bind_error(host, port, error) from error
    bound_socket.setblocking(False)  # noqa: FBT003 - the standard library's signature
    return bound_socket


def socket_url(bound_socket: socket.socket) -> str:
    """Return the URL of a bound socket: ``http://127.0.0.1:8000``."""
    host, port = bound_socket.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _bind_error(host: str, port: int, error: OSError) -> SetupError:
    if error.errno in {errno.EADDRINUSE, getattr(errno, "WSAEADDRINUSE", errno.EADDRINUSE)}:
        return SetupError(
            f"port {port} of {host} is taken by another program",
            hint=f"stop that one, or take another port: `knap serve --port {port + 1 if port < 65_535 else 8000}`",
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

"""Take the address that the server listens at."""

import errno
import os
import socket

from knapper.errors import SetupError


def bind(host: str, port: int) -> socket.socket:
    """Take an address and a port.

    Args:
        host: A name or an address; one of IPv6 may stand in brackets, as in URLs.
        port: 0 for any free one.

    Raises:
        SetupError: The port is taken or not allowed, or the machine has no such address.
    """
    try:
        found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
        family, kind, protocol, _, address = found[0]
    except (OSError, UnicodeError) as error:
        raise SetupError(
            f"there is no address '{host}'", hint="give --host an address of this machine", code="no_address"
        ) from error
    taken = socket.socket(family, kind, protocol)
    try:
        if os.name == "posix":  # elsewhere this would let two servers have one port
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        elif (exclusive := getattr(socket, "SO_EXCLUSIVEADDRUSE", None)) is not None:
            taken.setsockopt(socket.SOL_SOCKET, exclusive, 1)
        taken.bind(address)
        taken.listen(1)  # some systems tell only now that the port is taken
    except OSError as error:
        taken.close()
        raise _refused(host, port, error) from error
    taken.setblocking(False)  # noqa: FBT003 - the standard library's signature
    return taken


def address(taken: socket.socket) -> str:
    """Write a taken address as a browser takes it: ``http://127.0.0.1:8000``."""
    host, port = taken.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _refused(host: str, port: int, error: OSError) -> SetupError:
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

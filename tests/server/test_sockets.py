"""Where a server listens."""

import socket

import pytest

from knapper.errors import SetupError
from knapper.server import addresses


@pytest.mark.skipif(not socket.has_ipv6, reason="this machine has no IPv6")
@pytest.mark.parametrize("host", ["::1", "[::1]"])
def test_an_address_of_ipv6_may_stand_in_brackets(host: str) -> None:
    try:
        taken = addresses.bind_socket("::1", 0)
    except SetupError:
        pytest.skip("IPv6 is switched off here")
    taken.close()

    with addresses.bind_socket(host, 0) as again:
        address = addresses.socket_url(again)

    assert address.startswith("http://[::1]:")

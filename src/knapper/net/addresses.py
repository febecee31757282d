"""Tell public addresses from all others.

Source: IANA's registries of special-purpose addresses (RFC 6890 and its successors), written out here: what Python
calls global has changed between its versions.
"""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

_CLOSED_V4: Final = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # behind a carrier's address translation
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # a cloud's own services, at an address that looks public
        "169.254.0.0/16",  # link-local, and clouds' metadata
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # relays of 6to4
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
    )
)
_OPEN_V6: Final = IPv6Network("2000::/3")
_CLOSED_V6: Final = tuple(
    IPv6Network(network)
    for network in (
        "2001::/23",  # protocol assignments, Teredo among them
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4, which wraps any IPv4 address
        "3fff::/20",  # documentation
    )
)
_NAT64: Final = IPv6Network("64:ff9b::/96")
_LOCAL_NAMES: Final = ("localhost", "local", "internal", "home.arpa", "onion", "alt", "lan", "intranet")


def is_public(address: str) -> bool:
    """Tell whether an address is one that anybody on the internet may reach.

    An IPv6 address that wraps an IPv4 one (NAT64) is as public as that; one in any other wrapping isn't.
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, IPv4Address):
        return not any(parsed in network for network in _CLOSED_V4)
    return _is_public_v6(parsed)


def all_public(addresses: Sequence[str]) -> bool:
    """Tell whether there are addresses, and each of them is public."""
    return bool(addresses) and all(is_public(address) for address in addresses)


def is_local_name(host: str) -> bool:
    """Tell whether a name is kept for one's own machine or network, so that asking for its address is no use."""
    return any(host == name or host.endswith(f".{name}") for name in _LOCAL_NAMES)


def _is_public_v6(address: IPv6Address) -> bool:
    if address.scope_id is not None:
        return False
    if address in _NAT64:
        return is_public(str(IPv4Address(address.packed[-4:])))
    return address in _OPEN_V6 and not any(address in network for network in _CLOSED_V6)

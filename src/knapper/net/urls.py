"""Read addresses of the web, one spelling only.

What a browser would forgive is refused here: two programs that read one address differently are how guards are
passed. Source: RFC 3986; for hosts the WHATWG URL standard, section 3.5, of which only the plain forms are taken.
"""

import re
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Final
from urllib.parse import quote, urljoin

import idna

from knapper.net.failures import BadAddress

MAX_LENGTH: Final = 4_000
_PORTS: Final = {"http": 80, "https": 443}
_FORM: Final = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<target>[^#]*)(?:#.*)?")
_UNSAFE: Final = re.compile(r"[\x00-\x20\x7f-\xa0\u2028\u2029\ud800-\udfff\ufeff\\]")
_LABEL: Final = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_NUMERIC: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
_KEPT: Final = "/?:@!$&'()*+,;=%-._~[]"
_HINT: Final = "write it as https://example.org/page"


@dataclass(frozen=True, slots=True, kw_only=True)
class Url:
    """Hold an address that has been read."""

    scheme: str
    """``http`` or ``https``."""
    host: str
    """Lower case, ASCII, without a dot at its end; IPv6 without brackets."""
    port: int
    target: str
    """Path and query, percent-encoded; begins with a slash."""

    @property
    def authority(self) -> str:
        """Give host and port; the port only where it isn't the scheme's own."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def literal(self) -> IPv4Address | IPv6Address | None:
        """Give the host as an address, where it is one."""
        return _literal(self.host)

    def __str__(self) -> str:
        """Write it, without a fragment."""
        return f"{self.scheme}://{self.authority}{self.target}"


def parse(text: str) -> Url:
    """Read an address.

    ``HTTP://Example.ORG:80/a#b`` gives ``http://example.org/a``.

    Raises:
        BadAddress: It isn't a plain address of the web.
    """
    if len(text) > MAX_LENGTH:
        raise BadAddress(f"the address is longer than {MAX_LENGTH:,} characters", hint="leave out what isn't needed")
    found = _FORM.fullmatch(text.strip(" \t\r\n"))
    if found is None or _UNSAFE.search(found["authority"] + found["target"]):
        raise BadAddress("that isn't an address of the web", hint=_HINT)
    scheme = found["scheme"].lower()
    if scheme not in _PORTS:
        raise BadAddress(f"addresses that begin with {scheme}: aren't fetched", hint="give an http or https address")
    host, port = _split(found["authority"], _PORTS[scheme])
    return Url(scheme=scheme, host=host, port=port, target=_target(found["target"]))


def join(url: Url, location: str) -> Url:
    """Read the address that a page sends one to, seen from its own.

    Raises:
        BadAddress: It isn't a plain address of the web.
    """
    if _UNSAFE.search(location):
        raise BadAddress("that isn't an address of the web", hint=_HINT)
    try:
        return parse(urljoin(str(url), location))
    except ValueError as error:
        raise BadAddress("that isn't an address of the web", hint=_HINT) from error


def read_host(text: str) -> str:
    """Bring a host into the one spelling in which hosts are compared; IPv6 stands in brackets.

    Raises:
        BadAddress: It isn't a host.
    """
    if text.startswith("[") and text.endswith("]"):
        try:
            address = IPv6Address(text[1:-1])
        except AddressValueError as error:
            raise BadAddress("the address holds a broken IPv6 host", hint=_HINT) from error
        if address.scope_id is not None:
            raise BadAddress("the address names a network card", hint=_HINT)
        return str(address)
    host = _ascii(text).removesuffix(".")
    labels = host.split(".")
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):  # RFC 1035, 2.3.4
        raise BadAddress("the host's name has a form that no public host has", hint=_HINT)
    if _NUMERIC.fullmatch(labels[-1]) and _literal(host) is None:
        raise BadAddress("the host is a number in an unusual spelling", hint="write it as four numbers, 192.0.2.1")
    return host


def _split(authority: str, port: int) -> tuple[str, int]:
    if "@" in authority:
        raise BadAddress("the address holds a user name or password", hint="leave out what stands before the @")
    host, colon, digits = authority.rpartition(":")
    if not colon or authority.endswith("]"):
        return read_host(authority), port
    if not re.fullmatch(r"[0-9]{1,5}", digits) or not 0 < int(digits) < 65_536:
        raise BadAddress("the address has a port that isn't one", hint=_HINT)
    return read_host(host), int(digits)


def _ascii(host: str) -> str:
    if host.isascii():
        return host.lower()
    try:
        return idna.encode(host, uts46=True).decode("ascii").lower()
    except (idna.IDNAError, UnicodeError) as error:
        raise BadAddress("the host's name holds characters that no host has", hint=_HINT) from error


def _literal(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return IPv6Address(host) if ":" in host else IPv4Address(host)
    except AddressValueError:
        return None


def _target(raw: str) -> str:
    target = raw if raw.startswith("/") else f"/{raw}"
    return quote(target, safe=_KEPT)

"""Parse URLs strictly into one spelling; and the errors of a fetch."""

import re
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Final
from urllib.parse import quote, urljoin

import idna

from knapper.errors import BadInput, CallerError, NotFound, RefusedError, SetupError


class BadAddress(BadInput):
    """A URL can't be used as written."""

    code = "bad_address"


class NotPublic(RefusedError):
    """A URL leads to a place that requests may not reach."""

    code = "not_public"


class NoAnswer(CallerError):
    """No complete response arrived."""

    code = "no_answer"


class BadStatus(NotFound):
    """The server answered with an error; ``details`` contain its ``status``."""

    code = "http_status"


class TooLarge(CallerError):
    """A response is longer than allowed."""

    code = "too_large"


class WrongType(CallerError):
    """A response is of a type that isn't read."""

    code = "content_type"


class SearchFailed(SetupError):
    """A search provider doesn't answer, or not as expected."""

    code = "search_failed"


MAX_LENGTH: Final = 4_000
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_URL_FORM: Final = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<target>[^#]*)(?:#.*)?")
_UNSAFE: Final = re.compile(r"[\x00-\x20\x7f-\xa0\u2028\u2029\ud800-\udfff\ufeff\\]")
_HOST_LABEL: Final = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_NUMERIC_LABEL: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
_UNQUOTED: Final = "/?:@!$&'()*+,;=%-._~[]"
_URL_HINT: Final = "write it as https://example.org/page"


@dataclass(frozen=True, slots=True, kw_only=True)
class Url:
    """A parsed URL."""

    scheme: str
    """``http`` or ``https``."""
    host: str
    """Lower case, ASCII, without a dot at its end; IPv6 without brackets."""
    port: int
    target: str
    """Path and query, percent-encoded; begins with a slash."""

    @property
    def authority(self) -> str:
        """Return host and port; the port only where it isn't the scheme's default."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def literal(self) -> IPv4Address | IPv6Address | None:
        """Return the host as an IP address, where it is one."""
        return _ip_literal(self.host)

    def __str__(self) -> str:
        """Return the URL without a fragment."""
        return f"{self.scheme}://{self.authority}{self.target}"


def parse(text: str) -> Url:
    """Parse a URL.

    ``HTTP://Example.ORG:80/a#b`` gives ``http://example.org/a``.

    Raises:
        BadAddress: It isn't a plain URL of the web.
    """
    if len(text) > MAX_LENGTH:
        raise BadAddress(f"the address is longer than {MAX_LENGTH:,} characters", hint="leave out what isn't needed")
    match = _URL_FORM.fullmatch(text.strip(" \t\r\n"))
    if match is None or _UNSAFE.search(match["authority"] + match["target"]):
        raise BadAddress("that isn't an address of the web", hint=_URL_HINT)
    scheme = match["scheme"].lower()
    if scheme not in _DEFAULT_PORTS:
        raise BadAddress(f"addresses that begin with {scheme}: aren't fetched", hint="give an http or https address")
    authority = match["authority"]
    if "@" in authority:
        raise BadAddress("the address holds a user name or password", hint="leave out what stands before the @")
    name, colon, digits = authority.rpartition(":")
    if not colon or authority.endswith("]"):
        name, digits = authority, str(_DEFAULT_PORTS[scheme])
    if not re.fullmatch(r"[0-9]{1,5}", digits) or not 0 < int(digits) < 65_536:
        raise BadAddress("the address has a port that isn't one", hint=_URL_HINT)
    raw = match["target"]
    target = raw if raw.startswith("/") else f"/{raw}"
    return Url(scheme=scheme, host=normalize_host(name), port=int(digits), target=quote(target, safe=_UNQUOTED))


def join(url: Url, location: str) -> Url:
    """Parse the target of a redirect, relative to the page's own URL.

    Raises:
        BadAddress: It isn't a plain URL of the web.
    """
    if _UNSAFE.search(location):
        raise BadAddress("that isn't an address of the web", hint=_URL_HINT)
    try:
        return parse(urljoin(str(url), location))
    except ValueError as error:
        raise BadAddress("that isn't an address of the web", hint=_URL_HINT) from error


def normalize_host(text: str) -> str:
    """Normalise a host for comparisons; IPv6 is expected in brackets.

    Raises:
        BadAddress: It isn't a host.
    """
    if text.startswith("[") and text.endswith("]"):
        try:
            address = IPv6Address(text[1:-1])
        except AddressValueError as error:
            raise BadAddress("the address holds a broken IPv6 host", hint=_URL_HINT) from error
        if address.scope_id is not None:
            raise BadAddress("the address names a network card", hint=_URL_HINT)
        return str(address)
    try:
        host = text if text.isascii() else idna.encode(text, uts46=True).decode("ascii")
    except (idna.IDNAError, UnicodeError) as error:
        raise BadAddress("the host's name holds characters that no host has", hint=_URL_HINT) from error
    host = host.lower().removesuffix(".")
    labels = host.split(".")
    # RFC 1035, section 2.3.4.
    if len(host) > 253 or not all(_HOST_LABEL.fullmatch(label) for label in labels):
        raise BadAddress("the host's name has a form that no public host has", hint=_URL_HINT)
    if _NUMERIC_LABEL.fullmatch(labels[-1]) and _ip_literal(host) is None:
        raise BadAddress("the host is a number in an unusual spelling", hint="write it as four numbers, 192.0.2.1")
    return host


def _ip_literal(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return IPv6Address(host) if ":" in host else IPv4Address(host)
    except AddressValueError:
        return None

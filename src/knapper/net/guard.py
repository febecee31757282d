"""Fetch untrusted URLs safely: public addresses only, pinned connections, and limits on time, size and redirects."""

import contextlib
import queue
import re
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Network, ip_address
from typing import Any, Final

import httpcore2
import httpx2

from knapper import __version__
from knapper.errors import SetupError
from knapper.net import urls
from knapper.net.urls import BadAddress, NoAnswer, NotPublic, TooLarge, Url, WrongType

_SPECIAL_V4: Final = tuple(
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
_GLOBAL_V6: Final = IPv6Network("2000::/3")
_SPECIAL_V6: Final = tuple(
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
    """Return whether an address is in the public internet.

    An IPv6 address that embeds an IPv4 one by NAT64 is as public as that; other embeddings aren't public.
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, IPv4Address):
        return not any(parsed in network for network in _SPECIAL_V4)
    if parsed.scope_id is not None:
        return False
    if parsed in _NAT64:
        return is_public(str(IPv4Address(parsed.packed[-4:])))
    return parsed in _GLOBAL_V6 and not any(parsed in network for network in _SPECIAL_V6)


def all_public(addresses: Sequence[str]) -> bool:
    """Return whether there are addresses and all of them are public."""
    return bool(addresses) and all(is_public(address) for address in addresses)


def is_local_name(host: str) -> bool:
    """Return whether a name is reserved for the own machine or network, so that it needn't be looked up."""
    return any(host == name or host.endswith(f".{name}") for name in _LOCAL_NAMES)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostAllowlist:
    """The hosts that a fetch may reach."""

    names: frozenset[str]
    """Hosts at the usual ports, which have to be public."""
    parents: tuple[str, ...]
    """Suffixes of such hosts: ``.example.org``."""
    host_ports: frozenset[tuple[str, int]]
    """Hosts with a port, which may also be private or on this machine."""

    def allows(self, url: Url) -> bool:
        """Return whether the list contains the host of a URL."""
        return self.is_exempt(url) or url.host in self.names or url.host.endswith(self.parents)

    def is_exempt(self, url: Url) -> bool:
        """Return whether the list contains this host with its port, so that it needn't be public."""
        return (url.host, url.port) in self.host_ports


def parse_hosts(entries: Sequence[str]) -> HostAllowlist:
    """Parse a list such as ``["example.org", "*.example.org", "localhost:9000"]``.

    Raises:
        SetupError: An entry isn't a host.
    """
    names: set[str] = set()
    parents: list[str] = []
    host_ports: set[tuple[str, int]] = set()
    for entry in entries:
        text = entry.strip()
        parent = text.removeprefix("*.")
        hint = "write example.org, *.example.org, or localhost:9000"
        try:
            url = urls.parse(f"http://{parent}")
        except BadAddress as error:
            raise SetupError(f"'{entry}' in the list of hosts is no host", hint=hint, code="config_invalid") from error
        if url.target != "/" or "/" in parent:
            raise SetupError(f"'{entry}' in the list of hosts is more than a host", hint=hint, code="config_invalid")
        if parent != text:
            parents.append(f".{url.host}")
        elif text.endswith(f":{url.port}") and not text.endswith("]"):
            host_ports.add((url.host, url.port))
        else:
            names.add(url.host)
    return HostAllowlist(names=frozenset(names), parents=tuple(parents), host_ports=frozenset(host_ports))


_INFLATE_WINDOWS: Final = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}
_INFLATE_STEP: Final = 65_536
ACCEPTED_ENCODINGS: Final = "gzip, deflate"
_ACCEPTED_TYPES: Final = b"text/html, text/markdown, text/plain, application/json, application/xml;q=0.9, */*;q=0.1"


def decode_body(parts: Iterable[bytes], coding: str, *, max_bytes: int) -> bytes:
    """Join and decompress a body.

    Args:
        parts: The received parts, in order.
        coding: The header Content-Encoding.
        max_bytes: Limit of the body, both compressed and decompressed.

    Raises:
        TooLarge: It is longer, compressed or decompressed.
        WrongType: The coding isn't one that was asked for.
        NoAnswer: The body is damaged or incomplete.
    """
    name = coding.strip().lower()
    if name in {"", "identity"}:
        return b"".join(_limit_size(parts, max_bytes))
    if name not in _INFLATE_WINDOWS:
        raise WrongType("the page is packed in a way that wasn't asked for", hint="try another page")
    return b"".join(_limit_size(_inflate(_limit_size(parts, max_bytes), _INFLATE_WINDOWS[name]), max_bytes))


def _limit_size(parts: Iterable[bytes], max_bytes: int) -> Iterator[bytes]:
    size = 0
    for part in parts:
        size += len(part)
        if size > max_bytes:
            raise TooLarge(f"the page is longer than {max_bytes:,} bytes", hint="look for a shorter page on the same")
        yield part


def _inflate(parts: Iterable[bytes], window: int) -> Iterator[bytes]:
    stream = None
    try:
        for part in parts:
            if part:
                stream = stream or _Inflater(part, window)
                yield from stream.inflate(part)
    except zlib.error as error:
        raise NoAnswer("the page came damaged", hint="try again, or another page") from error
    if stream is not None and not stream.is_whole():
        raise NoAnswer("the page came incomplete", hint="try again, or another page")


class _Inflater:
    def __init__(self, first: bytes, window: int) -> None:
        # Some servers send raw deflate data, without zlib's header.
        is_raw = window == zlib.MAX_WBITS and first[0] & 0x0F != zlib.DEFLATED
        self._stream = zlib.decompressobj(-zlib.MAX_WBITS if is_raw else window)

    def inflate(self, part: bytes) -> Iterator[bytes]:
        packed = part
        while not self._stream.eof:
            unpacked = self._stream.decompress(packed, _INFLATE_STEP)
            yield unpacked
            packed = self._stream.unconsumed_tail
            if not packed and len(unpacked) < _INFLATE_STEP:
                return

    def is_whole(self) -> bool:
        return self._stream.eof


Resolver = Callable[[str, int], Sequence[str]]
"""Returns the addresses of a host as text; raises OSError where there are none."""
Connector = Callable[[str, int, float], socket.socket]
"""Connects to an address and port within so many seconds; raises OSError."""


def look_up_addresses(host: str, port: int) -> list[str]:
    """Look up a host's addresses with the system's resolver, each once, in its order."""
    entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in entries))


def connect_checked(address: str, port: int, timeout_s: float) -> socket.socket:
    """Connect to an address, without a name look-up.

    Raises:
        OSError: No server answers, or the address is this machine's own, whose servers aren't public.
    """
    sock = socket.create_connection((address, port), timeout_s)
    if is_public(address) and is_same_machine(sock):
        sock.close()
        raise OSError("this machine's own address")
    return sock


def is_same_machine(sock: socket.socket) -> bool:
    """Return whether both ends of a connection are on this machine."""
    return sock.getsockname()[0] == sock.getpeername()[0]


def system_certificates() -> ssl.SSLContext:
    """Return the certificates that the system trusts, whatever the environment sets."""
    return httpx2.create_ssl_context(trust_env=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialer:
    """The three functions that reach the network; tests replace them."""

    resolve: Resolver = look_up_addresses
    connect: Connector = connect_checked
    trust: Callable[[], ssl.SSLContext] = system_certificates


class UntrustedCertificate(httpcore2.ConnectError):
    """A server's certificate isn't trusted for its name."""


class Deadline:
    """The time limit of a fetch."""

    def __init__(self, seconds: float) -> None:
        """Start the limit now."""
        self._end = time.monotonic() + seconds

    def remaining_s(self, limit_s: float | None = None) -> float:
        """Return the seconds that are left, at most *limit_s*.

        Raises:
            httpcore2.ReadTimeout: No time is left.
        """
        remaining = self._end - time.monotonic()
        if remaining <= 0:
            raise httpcore2.ReadTimeout("the time is over")
        return remaining if limit_s is None else min(remaining, limit_s)


def resolve_host(dialer: Dialer, host: str, port: int, timeout_s: float) -> list[str]:
    """Look up a host within a time limit; a look-up that hangs is left running in its thread.

    Raises:
        OSError: There is no such host.
        TimeoutError: There was no answer in time.
    """
    answers: queue.SimpleQueue[list[str] | OSError] = queue.SimpleQueue()

    def look_up() -> None:
        try:
            answers.put(list(dialer.resolve(host, port)))
        except (OSError, UnicodeError) as error:
            answers.put(error if isinstance(error, OSError) else OSError(str(error)))

    # The system's look-up takes no time-out: a daemon thread can be left behind and doesn't delay the program's end.
    threading.Thread(target=look_up, name="lookup", daemon=True).start()
    try:
        answer = answers.get(timeout=timeout_s)
    except queue.Empty as error:
        raise TimeoutError("no answer from the name server") from error
    if isinstance(answer, OSError):
        raise answer
    return answer


class PinnedBackend(httpcore2.NetworkBackend):
    """A network backend that connects to checked addresses only, whatever host the library asks for."""

    def __init__(self, dialer: Dialer, pins: Sequence[str], deadline: Deadline, connect_s: float) -> None:
        """Pin the checked addresses.

        Args:
            dialer: Reaches the network.
            pins: Addresses, tried in turn.
            deadline: The time limit of the whole fetch.
            connect_s: Time limit for each address.
        """
        self._dialer = dialer
        self._pins = pins
        self._deadline = deadline
        self._connect_s = connect_s

    def connect_tcp(
        self,
        host: str,  # noqa: ARG002 - only checked addresses are used
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,  # noqa: ARG002 - the interface of httpcore2
        socket_options: Iterable[Any] | None = None,  # noqa: ARG002 - the same
    ) -> httpcore2.NetworkStream:
        """Connect to the first address that answers."""
        last: OSError | None = None
        for address in self._pins:
            try:
                # The checked address and not the host: a second look-up could return another one (DNS rebinding).
                sock = self._dialer.connect(address, port, self._deadline.remaining_s(timeout or self._connect_s))
            except OSError as error:
                last = error
                continue
            return _DeadlineStream(sock, self._deadline)
        raise httpcore2.ConnectError("no address answers") from last


class _DeadlineStream(httpcore2.NetworkStream):
    """A stream whose reads and writes share one deadline, however slowly data arrives."""

    def __init__(self, sock: socket.socket, deadline: Deadline) -> None:
        self._sock = sock
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        self._sock.settimeout(self._deadline.remaining_s(timeout))
        try:
            return self._sock.recv(max_bytes)
        except TimeoutError as error:
            raise httpcore2.ReadTimeout("nothing came") from error
        except OSError as error:
            raise httpcore2.ReadError("broken off") from error

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._sock.settimeout(self._deadline.remaining_s(timeout))
        try:
            self._sock.sendall(buffer)
        except TimeoutError as error:
            raise httpcore2.WriteTimeout("nothing is taken") from error
        except OSError as error:
            raise httpcore2.WriteError("broken off") from error

    def close(self) -> None:
        self._sock.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        try:
            self._sock.settimeout(self._deadline.remaining_s(timeout))
            # The certificate is checked for the host's name although the connection is to a pinned address.
            return _DeadlineStream(ssl_context.wrap_socket(self._sock, server_hostname=server_hostname), self._deadline)
        except TimeoutError as error:
            self.close()
            raise httpcore2.ConnectTimeout("no handshake") from error
        except ssl.SSLCertVerificationError as error:
            self.close()
            raise UntrustedCertificate("no trusted certificate") from error
        except (OSError, ValueError) as error:
            # SSLError is an OSError, too.
            self.close()
            raise httpcore2.ConnectError("no handshake") from error

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401 - the interface of httpcore2
        return self._sock if info == "socket" else None


USER_AGENT: Final = f"knapper/{__version__}"
PORTS: Final = frozenset({80, 443})
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_OK_STATUSES: Final = range(200, 300)
_MEDIA_TYPE: Final = re.compile(r"[a-z0-9][a-z0-9.+-]{0,40}/[a-z0-9][a-z0-9.+-]{0,60}")
_CHARSET: Final = re.compile(r"charset\s*=\s*\"?([A-Za-z0-9._:-]{1,40})", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of a fetch."""

    total_s: float = 20.0
    """Time for the whole fetch, redirects and name look-ups included."""
    connect_s: float = 5.0
    """Time for connecting to each address."""
    max_bytes: int = 3_000_000
    """Limit of the body, both compressed and decompressed."""
    redirects: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedResponse:
    """A server's response of any status but a redirect."""

    url: str
    """The final URL, after redirects."""
    status: int
    content_type: str
    """``text/html``, without parameters; empty where the header is missing."""
    charset: str
    """As in the header; empty where it names none."""
    body: bytes


class Guard:
    """A thread-safe fetcher for pages of the public internet."""

    def __init__(self, *, limits: Limits | None = None, dialer: Dialer | None = None) -> None:
        """Set the limits and the dialer.

        Args:
            limits: For each request; None takes the defaults.
            dialer: Reaches the network; None takes the system's.
        """
        self._limits = limits or Limits()
        self._dialer = dialer or Dialer()

    def get(
        self,
        url: str,
        *,
        allowed_hosts: Sequence[str] | None = None,
        accepts: Callable[[str], bool] | None = None,
    ) -> FetchedResponse:
        """Fetch a URL.

        Args:
            url: The URL as written.
            allowed_hosts: The only hosts that may be reached, redirects included, such as ``*.example.org``; one with
                its port, like ``localhost:9000``, may also be private. None for any public host.
            accepts: Decides by the media type whether the body is wanted; a refused one isn't read.

        Returns:
            The first response that isn't a redirect, even where its status is an error.

        Raises:
            BadAddress: It isn't a plain URL of the web.
            NotPublic: It leads out of the public internet, or to a host that isn't listed.
            NoAnswer: No complete response arrived, or not in time.
            TooLarge: The response is longer than allowed.
            WrongType: The response is of a type that isn't wanted.
            SetupError: An entry of *allowed_hosts* isn't a host.
        """
        allowlist = None if allowed_hosts is None else parse_hosts(allowed_hosts)
        fetch = _Fetch(self._limits, self._dialer, allowlist, urls.parse(url).host)
        return fetch.run(urls.parse(url), accepts or (lambda _: True))


class _Fetch:
    """One fetch from a URL through redirects to the response, within one time limit.

    Messages name the host that was asked for and never one that a server named.
    """

    def __init__(self, limits: Limits, dialer: Dialer, allowlist: HostAllowlist | None, name: str) -> None:
        self._limits = limits
        self._dialer = dialer
        self._listed = allowlist
        self._name = name
        self._deadline = Deadline(limits.total_s)

    def run(self, url: Url, accepts: Callable[[str], bool]) -> FetchedResponse:
        with self._translate_errors():
            outcome = self._request(url, self._checked_addresses(url), accepts)
            for _ in range(self._limits.redirects):
                if isinstance(outcome, FetchedResponse):
                    return outcome
                try:
                    following = urls.join(url, outcome)
                except BadAddress as error:
                    raise self._redirect_error() from error
                if url.scheme == "https" and following.scheme == "http" and url.host != following.host:
                    raise NotPublic(
                        f"{self._name} redirects to another host without encryption",
                        hint="try another page",
                        code="downgrade",
                    )
                url = following
                try:
                    pins = self._checked_addresses(url)
                except NotPublic as error:
                    raise self._redirect_error() from error
                outcome = self._request(url, pins, accepts)
        if isinstance(outcome, FetchedResponse):
            return outcome
        raise NoAnswer(
            f"{self._name} redirects more than {self._limits.redirects} times",
            hint="try another page",
            code="redirects",
        )

    def _checked_addresses(self, url: Url) -> list[str]:
        """Return the checked addresses to connect to."""
        exempt = self._listed is not None and self._listed.is_exempt(url)
        if self._listed is not None and not self._listed.allows(url):
            raise NotPublic(
                f"{self._name} isn't a host that was allowed", hint="use a host of the list", code="not_listed"
            )
        if not exempt and url.port not in PORTS:
            raise NotPublic(f"port {url.port} isn't one that pages are fetched from", hint="only ports 80 and 443 are")
        if not exempt and is_local_name(url.host):
            raise self._not_public_error()
        try:
            pins = (
                [str(url.literal)]
                if url.literal
                else resolve_host(self._dialer, url.host, url.port, self._deadline.remaining_s())
            )
        except TimeoutError as error:
            raise self._timeout_error() from error
        except OSError as error:
            if exempt:
                raise self._unreachable() from error
            # The same error as for a private address: it must not reveal whether a private name exists.
            raise self._not_public_error() from None
        if not exempt and not all_public(pins):
            raise self._not_public_error()
        return pins

    def _request(self, url: Url, pins: Sequence[str], accepts: Callable[[str], bool]) -> FetchedResponse | str:
        """Return the response, or the URL that it redirects to."""
        with httpcore2.ConnectionPool(
            ssl_context=self._dialer.trust() if url.scheme == "https" else None,
            max_connections=1,
            network_backend=PinnedBackend(self._dialer, pins, self._deadline, self._limits.connect_s),
        ) as pool:
            raw_url = httpcore2.URL(
                scheme=url.scheme.encode(), host=url.host.encode(), port=url.port, target=url.target.encode()
            )
            timeout = {"connect": self._limits.connect_s}
            headers = [
                (b"Host", url.authority.encode()),
                (b"User-Agent", USER_AGENT.encode()),
                (b"Accept", _ACCEPTED_TYPES),
                (b"Accept-Encoding", ACCEPTED_ENCODINGS.encode()),
                (b"Connection", b"close"),
            ]
            with pool.stream("GET", raw_url, headers=headers, extensions={"timeout": timeout}) as response:
                head = _ResponseHead(response)
                if head.status in _REDIRECTS and head.header("location"):
                    return head.header("location")
                # Before the body is read, so that an unwanted download costs nothing.
                if head.status in _OK_STATUSES and not accepts(head.content_type):
                    raise WrongType(
                        f"{self._name} answers with {head.content_type or 'something else'}, not with text",
                        hint="look for a page of text on the same",
                        details={"content_type": head.content_type},
                    )
                return FetchedResponse(
                    url=str(url),
                    status=head.status,
                    content_type=head.content_type,
                    charset=head.charset,
                    body=self._read(response, head),
                )

    def _read(self, response: httpcore2.Response, head: "_ResponseHead") -> bytes:
        limit = self._limits.max_bytes
        length = head.header("content-length")
        # Nothing is read where the header already says too much; `decode_body` counts the bytes that really arrive.
        if length.isdigit() and len(length) < len(str(limit)) + 2 and int(length) > limit:
            raise TooLarge(f"the page is longer than {limit:,} bytes", hint="look for a shorter page on the same")
        return decode_body(self._in_time(response), head.header("content-encoding"), max_bytes=limit)

    def _in_time(self, response: httpcore2.Response) -> Iterator[bytes]:
        for part in response.iter_stream():
            # Raises after the deadline: a server that sends a few bytes at a time must not extend it.
            _ = self._deadline.remaining_s()
            yield part

    @contextlib.contextmanager
    def _translate_errors(self) -> Generator[None]:
        try:
            yield
        except httpcore2.TimeoutException as error:
            raise self._timeout_error() from error
        except UntrustedCertificate as error:
            raise NoAnswer(
                f"{self._name} shows no certificate that is trusted", hint="try another page", code="certificate"
            ) from error
        except (httpcore2.NetworkError, httpcore2.ProtocolError) as error:
            raise self._unreachable() from error

    def _not_public_error(self) -> NotPublic:
        return NotPublic(
            f"'{self._name}' isn't a host of the public internet: it is unknown, or in a private network",
            hint="check the spelling, and that this machine is online; pages of private networks aren't fetched",
        )

    def _redirect_error(self) -> NotPublic:
        return NotPublic(
            f"{self._name} redirects to a place that isn't allowed", hint="try another page", code="redirect_refused"
        )

    def _unreachable(self) -> NoAnswer:
        return NoAnswer(f"{self._name} can't be reached, or broke off", hint="try again later, or another page")

    def _timeout_error(self) -> NoAnswer:
        return NoAnswer(
            f"{self._name} gave no whole answer within {self._limits.total_s:g} seconds",
            hint="try again later, or another page",
            code="timeout",
        )


class _ResponseHead:
    """The head of a response, of which nothing is trusted."""

    def __init__(self, response: httpcore2.Response) -> None:
        self.status = response.status
        self._headers = response.headers
        content_type = self.header("content-type")
        media_type = content_type.partition(";")[0].strip().lower()
        self.content_type = media_type if _MEDIA_TYPE.fullmatch(media_type) else ""
        charset = _CHARSET.search(content_type)
        self.charset = charset[1] if charset else ""

    def header(self, name: str) -> str:
        """Return a header's values, without those that aren't text."""
        values = [value for key, value in self._headers if key.lower() == name.encode()]
        try:
            return b", ".join(values).decode("utf-8").strip()
        except UnicodeDecodeError:
            return ""

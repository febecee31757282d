"""Guard requests to places that the owner didn't configure: the only way to them.

Only http and https, only ports 80 and 443, only public addresses. A host is looked up once, each of its addresses has
to be public, and the connection goes to those very addresses; the certificate is checked for the host's name. Each
redirect is checked the same way. Time and size are limited, also once unpacked. No cookies, no credentials, no proxies.
"""

import contextlib
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import httpcore2

from knapper import __version__
from knapper.net import addresses, decoding, dial, hosts, urls
from knapper.net.dial import Deadline, Dialer, Pinned, Untrusted
from knapper.net.failures import BadAddress, NoAnswer, NotPublic, TooLarge, WrongType
from knapper.net.hosts import Hosts
from knapper.net.urls import Url

USER_AGENT: Final = f"knapper/{__version__}"
PORTS: Final = frozenset({80, 443})
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_OK: Final = range(200, 300)
_MEDIA_TYPE: Final = re.compile(r"[a-z0-9][a-z0-9.+-]{0,40}/[a-z0-9][a-z0-9.+-]{0,60}")
_CHARSET: Final = re.compile(r"charset\s*=\s*\"?([A-Za-z0-9._:-]{1,40})", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Say how far a request may go."""

    total_s: float = 20.0
    """For all of it, redirects and looking up names included."""
    connect_s: float = 5.0
    """For each address that is tried."""
    max_bytes: int = 3_000_000
    """Of the body, packed and unpacked."""
    redirects: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Hold what a server said, whatever its status, but for redirects."""

    url: str
    """Where it was found, after redirects."""
    status: int
    content_type: str
    """``text/html``, without parameters; empty where none was said."""
    charset: str
    """As said in the header; empty where none was."""
    body: bytes


class Guard:
    """Fetch what anybody on the internet could fetch; any thread may."""

    def __init__(self, *, limits: Limits | None = None, dialer: Dialer | None = None) -> None:
        """Make one.

        Args:
            limits: For each request; the usual ones where they aren't given.
            dialer: Reaches the network; the system's where it isn't given.
        """
        self._limits = limits or Limits()
        self._dialer = dialer or Dialer()

    def get(
        self,
        url: str,
        *,
        allowed_hosts: Sequence[str] | None = None,
        accepts: Callable[[str], bool] | None = None,
    ) -> Answer:
        """Fetch an address.

        Args:
            url: As somebody wrote it.
            allowed_hosts: All that may be reached, redirects included: ``example.org``, ``*.example.org``; one with
                its port, like ``localhost:9000``, may stand anywhere. None for any public host.
            accepts: Whether the body is wanted, told by its media type; what is refused isn't read.

        Returns:
            The first answer that isn't a redirect, also where its status is an error.

        Raises:
            BadAddress: It isn't a plain address of the web.
            NotPublic: It leads somewhere else than into the public internet, or to a host that isn't listed.
            NoAnswer: No whole answer came, or not in time.
            TooLarge: The answer is longer than allowed.
            WrongType: The answer isn't wanted.
            SetupError: An entry of *allowed_hosts* names no host.
        """
        listed = None if allowed_hosts is None else hosts.read(allowed_hosts)
        trip = _Trip(self._limits, self._dialer, listed, urls.parse(url).host)
        return trip.go(urls.parse(url), accepts or _anything)


class _Trip:
    """Go from an address to the answer, through redirects, on one budget of time.

    Messages name the host that was asked for and never one that a server named.
    """

    def __init__(self, limits: Limits, dialer: Dialer, listed: Hosts | None, name: str) -> None:
        self._limits = limits
        self._dialer = dialer
        self._listed = listed
        self._name = name
        self._deadline = Deadline(limits.total_s)

    def go(self, url: Url, accepts: Callable[[str], bool]) -> Answer:
        with self._explained():
            outcome = self._visit(url, self._pins(url), accepts)
            for _ in range(self._limits.redirects):
                if isinstance(outcome, Answer):
                    return outcome
                url = self._next(url, outcome)
                outcome = self._visit(url, self._next_pins(url), accepts)
        if isinstance(outcome, Answer):
            return outcome
        raise NoAnswer(
            f"{self._name} sends one on more than {self._limits.redirects} times",
            hint="try another page",
            code="redirects",
        )

    def _pins(self, url: Url) -> list[str]:
        """Give the addresses to connect to, checked."""
        exempt = self._listed is not None and self._listed.exempt(url)
        if self._listed is not None and not self._listed.allow(url):
            raise NotPublic(
                f"{self._name} isn't a host that was allowed", hint="use a host of the list", code="not_listed"
            )
        if not exempt and url.port not in PORTS:
            raise NotPublic(f"port {url.port} isn't one that pages are fetched from", hint="only ports 80 and 443 are")
        if not exempt and addresses.is_local_name(url.host):
            raise self._private()
        pins = [str(url.literal)] if url.literal else self._look_up(url, exempt=exempt)
        if not exempt and not addresses.all_public(pins):
            raise self._private()
        return pins

    def _look_up(self, url: Url, *, exempt: bool) -> list[str]:
        try:
            return dial.resolve(self._dialer, url.host, url.port, self._deadline.left())
        except TimeoutError as error:
            raise self._late() from error
        except OSError as error:
            if exempt:
                raise self._unreachable() from error
            raise self._private() from None  # whether a private name exists is nobody's business

    def _next(self, url: Url, location: str) -> Url:
        try:
            following = urls.join(url, location)
        except BadAddress as error:
            raise self._astray() from error
        if url.scheme == "https" and following.scheme == "http" and url.host != following.host:
            raise NotPublic(
                f"{self._name} sends one on to another host without encryption",
                hint="try another page",
                code="downgrade",
            )
        return following

    def _next_pins(self, url: Url) -> list[str]:
        try:
            return self._pins(url)
        except NotPublic as error:
            raise self._astray() from error

    def _visit(self, url: Url, pins: Sequence[str], accepts: Callable[[str], bool]) -> Answer | str:
        """Give the answer, or where it sends one."""
        with httpcore2.ConnectionPool(
            ssl_context=self._dialer.trust() if url.scheme == "https" else None,
            max_connections=1,
            network_backend=Pinned(self._dialer, pins, self._deadline, self._limits.connect_s),
        ) as pool:
            place = httpcore2.URL(
                scheme=url.scheme.encode(), host=url.host.encode(), port=url.port, target=url.target.encode()
            )
            timeout = {"connect": self._limits.connect_s}
            headers = _headers(url)
            with pool.stream("GET", place, headers=headers, extensions={"timeout": timeout}) as response:
                said = _Said(response)
                if said.status in _REDIRECTS and said.header("location"):
                    return said.header("location")
                if said.status in _OK and not accepts(said.content_type):
                    raise WrongType(
                        f"{self._name} answers with {said.content_type or 'something else'}, not with text",
                        hint="look for a page of text on the same",
                        details={"content_type": said.content_type},
                    )
                return Answer(
                    url=str(url),
                    status=said.status,
                    content_type=said.content_type,
                    charset=said.charset,
                    body=self._read(response, said),
                )

    def _read(self, response: httpcore2.Response, said: "_Said") -> bytes:
        limit = self._limits.max_bytes
        length = said.header("content-length")
        if length.isdigit() and len(length) < len(str(limit)) + 2 and int(length) > limit:
            raise TooLarge(f"the page is longer than {limit:,} bytes", hint="look for a shorter page on the same")
        return decoding.unpack(self._in_time(response), said.header("content-encoding"), max_bytes=limit)

    def _in_time(self, response: httpcore2.Response) -> Iterator[bytes]:
        for part in response.iter_stream():
            _ = self._deadline.left()
            yield part

    @contextlib.contextmanager
    def _explained(self) -> Generator[None]:
        try:
            yield
        except httpcore2.TimeoutException as error:
            raise self._late() from error
        except Untrusted as error:
            raise NoAnswer(
                f"{self._name} shows no certificate that is trusted", hint="try another page", code="certificate"
            ) from error
        except (httpcore2.NetworkError, httpcore2.ProtocolError) as error:
            raise self._unreachable() from error

    def _private(self) -> NotPublic:
        return NotPublic(
            f"'{self._name}' isn't a host of the public internet: it is unknown, or in a private network",
            hint="check the spelling, and that this machine is online; pages of private networks aren't fetched",
        )

    def _astray(self) -> NotPublic:
        return NotPublic(
            f"{self._name} sends one on to a place that isn't allowed", hint="try another page", code="redirect_refused"
        )

    def _unreachable(self) -> NoAnswer:
        return NoAnswer(f"{self._name} can't be reached, or broke off", hint="try again later, or another page")

    def _late(self) -> NoAnswer:
        return NoAnswer(
            f"{self._name} gave no whole answer within {self._limits.total_s:g} seconds",
            hint="try again later, or another page",
            code="timeout",
        )


class _Said:
    """Read the head of an answer, of which nothing is trusted."""

    def __init__(self, response: httpcore2.Response) -> None:
        self.status = response.status
        self._headers = response.headers
        found = self.header("content-type")
        media_type = found.partition(";")[0].strip().lower()
        self.content_type = media_type if _MEDIA_TYPE.fullmatch(media_type) else ""
        charset = _CHARSET.search(found)
        self.charset = charset[1] if charset else ""

    def header(self, name: str) -> str:
        """Give a header's values; what isn't text counts as none."""
        values = [value for key, value in self._headers if key.lower() == name.encode()]
        try:
            return b", ".join(values).decode("utf-8").strip()
        except UnicodeDecodeError:
            return ""


def _headers(url: Url) -> list[tuple[bytes, bytes]]:
    return [
        (b"Host", url.authority.encode()),
        (b"User-Agent", USER_AGENT.encode()),
        (b"Accept", b"text/html, text/markdown, text/plain, application/json, application/xml;q=0.9, */*;q=0.1"),
        (b"Accept-Encoding", decoding.ACCEPTED.encode()),
        (b"Connection", b"close"),
    ]


def _anything(_: str) -> bool:
    return True

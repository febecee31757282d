"""Say where the HTTP server listens, whom it lets in, and how much it takes on."""

import re
from dataclasses import dataclass, field

from knapper.config.setting import Setting, Values, count, text, texts
from knapper.errors import SetupError

_LEAST_TOKEN = 24
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/*?#@]+")
_HOST = re.compile(r"[^\s/*?#@]+")

SETTINGS = (
    Setting(
        name="server.host",
        doc="The address to listen at; one other than loopback needs server.token.",
        default="127.0.0.1",
        env=("KNAP_HOST",),
    ),
    Setting(
        name="server.port",
        doc="The port of the HTTP server.",
        kind="count",
        default=8000,
        env=("API_PORT",),
        least=1,
        most=65_535,
    ),
    Setting(
        name="server.token",
        doc="The token that programs show; empty for one that is made at the first start and kept in a file.",
        env=("KNAP_TOKEN",),
        secret=True,
    ),
    Setting(
        name="server.origins",
        doc="Origins whose web pages may call the server.",
        kind="texts",
        default=("app://obsidian.md",),
    ),
    Setting(
        name="server.hosts",
        doc="Names by which the server may be called besides its own address, such as a proxy's.",
        kind="texts",
        default=(),
    ),
    Setting(
        name="server.max_body_mb",
        doc="How large a request may be, in megabytes.",
        kind="count",
        default=10,
        least=1,
        most=1_000,
    ),
    Setting(
        name="server.requests_per_minute",
        doc="How many requests one client may make in a minute; 0 for no limit.",
        kind="count",
        default=1_200,
        most=1_000_000,
    ),
    Setting(
        name="server.threads",
        doc="Threads for calls that read; half as many for those that write. As many begin at once as compute well.",
        kind="count",
        default=8,
        least=1,
        most=256,
    ),
    Setting(
        name="server.stop_seconds",
        doc="How long running calls may take to finish when the server is stopped, in seconds.",
        kind="count",
        default=10,
        least=1,
        most=600,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Say where the HTTP server listens, whom it lets in, and how much it takes on."""

    host: str = "127.0.0.1"
    port: int = 8000
    """0 for any free one."""
    token: str = field(default="", repr=False)
    """Empty for the one that is kept in a file."""
    origins: tuple[str, ...] = ("app://obsidian.md",)
    """Whose web pages may call."""
    hosts: tuple[str, ...] = ()
    """What the server may be called besides its own address."""
    max_body_mb: int = 10
    requests_per_minute: int = 1_200
    """Of one client; 0 for no limit."""
    threads: int = 8
    stop_seconds: int = 10


def read(values: Values) -> Server:
    """Give the section.

    Raises:
        SetupError: The token is too short, or something isn't an origin or a name.
    """
    token = text(values, "server.token")
    if token and (len(token) < _LEAST_TOKEN or not token.isascii() or not token.isprintable() or " " in token):
        raise _wrong(
            "server.token", "it has to have at least 24 letters, digits and signs", "`knap token new` makes one"
        )
    origins = tuple(one.rstrip("/").lower() for one in texts(values, "server.origins"))
    _check("server.origins", origins, _ORIGIN, "write each as scheme://host, or scheme://host:port")
    hosts = tuple(one.lower() for one in texts(values, "server.hosts"))
    _check("server.hosts", hosts, _HOST, "write names alone, such as notes.example")
    return Server(
        host=text(values, "server.host") or "127.0.0.1",
        port=count(values, "server.port"),
        token=token,
        origins=origins,
        hosts=hosts,
        max_body_mb=count(values, "server.max_body_mb"),
        requests_per_minute=count(values, "server.requests_per_minute"),
        threads=count(values, "server.threads"),
        stop_seconds=count(values, "server.stop_seconds"),
    )


def _check(name: str, given: tuple[str, ...], form: re.Pattern[str], hint: str) -> None:
    for one in given:
        if not form.fullmatch(one):
            raise _wrong(name, f"'{one}' can't stand there", hint)


def _wrong(name: str, problem: str, hint: str) -> SetupError:
    return SetupError(f"{name} can't be used: {problem}", code="config_invalid", hint=hint)

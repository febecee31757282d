"""Say where the HTTP server listens."""

from dataclasses import dataclass

from knapper.config.setting import Setting, Values, count

SETTINGS = (
    Setting(
        name="server.port",
        doc="The port of the HTTP server.",
        kind="count",
        default=8000,
        env=("API_PORT",),
        least=1,
        most=65_535,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Say where the HTTP server listens."""

    port: int = 8000


def read(values: Values) -> Server:
    """Give the section."""
    return Server(port=count(values, "server.port"))

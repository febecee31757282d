"""Say whether tools may reach the web, and how."""

from dataclasses import dataclass

from knapper.config.setting import Setting, Values, text

SETTINGS = (
    Setting(
        name="web.access",
        doc="Whether tools may search the web and fetch pages.",
        kind="choice",
        default="off",
        choices=("off", "on"),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Web:
    """Say whether tools may reach the web, and how."""

    is_allowed: bool = False


def read(values: Values) -> Web:
    """Give the section."""
    return Web(is_allowed=text(values, "web.access") == "on")

"""Say what scripts in the sandbox may use."""

from dataclasses import dataclass

from knapper.config.setting import Setting, Values, count

SETTINGS = (
    Setting(
        name="scripts.timeout_s",
        doc="How long a script may run, in seconds.",
        kind="count",
        default=60,
        least=1,
        most=3_600,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scripts:
    """Say what scripts in the sandbox may use."""

    timeout_s: int = 60


def read(values: Values) -> Scripts:
    """Give the section."""
    return Scripts(timeout_s=count(values, "scripts.timeout_s"))

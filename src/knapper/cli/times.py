"""Read times as people write them."""

import datetime as dt
import re
from typing import Final

from knapper.errors import BadInput

_AGO: Final = re.compile(r"(?P<number>\d{1,6}) ?(?P<unit>[smhdw])")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def moment(text: str, *, now: dt.datetime | None = None) -> dt.datetime:
    """Read a day, a time, or how long ago: ``2026-01-31``, ``2026-01-31T18:30``, ``2h``; one without a zone is here's.

    Args:
        text: As written.
        now: The present; None for the clock's.

    Raises:
        BadInput: It is none.
    """
    try:
        if ago := _AGO.fullmatch(text.strip()):
            return (now or dt.datetime.now(dt.UTC)) - dt.timedelta(**{_UNITS[ago["unit"]]: int(ago["number"])})
        return dt.datetime.fromisoformat(text.strip()).astimezone()
    except (ValueError, OverflowError):
        hint = "write it like 2026-01-31, 2026-01-31T18:30, or 2h for two hours ago"
        raise BadInput(f"'{text}' is no time", hint=hint, code="invalid_time") from None

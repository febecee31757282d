"""Give scripts the time that the job says: there is no clock to ask, and the same job gives the same time again."""

import time
from time import struct_time
from typing import Any, Final

_FIELDS: Final = 9


class Clock:
    """Stand in for the module `time` where dates are made."""

    def __init__(self) -> None:
        self.now = 0.0
        """Seconds since 1970, UTC."""
        self.offset = 0
        """Of local time from UTC, in seconds."""
        self.struct_time = struct_time
        self.strftime = time.strftime

    def time(self) -> float:
        """Give the time of the job."""
        return self.now

    def time_ns(self) -> int:
        """Give the time of the job in nanoseconds."""
        return int(self.now * 1_000_000_000)

    def gmtime(self, seconds: float | None = None) -> struct_time:
        """Split a time into fields, UTC."""
        return _GMTIME(self.now if seconds is None else seconds)

    def localtime(self, seconds: float | None = None) -> struct_time:
        """Split a time into fields, local."""
        fields = _GMTIME((self.now if seconds is None else seconds) + self.offset)
        hours, minutes = divmod(abs(self.offset) // 60, 60)
        zone = f"{'-' if self.offset < 0 else '+'}{hours:02}:{minutes:02}" if self.offset else "UTC"
        return struct_time((*fields[:_FIELDS], zone, self.offset))

    def mktime(self, fields: tuple[int, ...]) -> float:
        """Join local fields to a time."""
        import calendar  # noqa: PLC0415 - loaded with the snapshot

        return calendar.timegm(fields) - self.offset


_GMTIME: Final = time.gmtime
CLOCK: Final = Clock()


def install(dates: Any) -> None:  # noqa: ANN401 - the module that makes dates has no type of its own
    """Let dates, and all else, read this clock."""
    dates._time = CLOCK  # noqa: SLF001 - the one seam that the module has
    for name in ("time", "time_ns", "gmtime", "localtime", "mktime"):
        setattr(time, name, getattr(CLOCK, name))
    for name in ("monotonic", "perf_counter", "process_time", "thread_time"):
        if hasattr(time, name):
            setattr(time, name, CLOCK.time)
            setattr(time, f"{name}_ns", CLOCK.time_ns)

"""Say what the server logs, and how: a line an event on the error stream, without texts of notes and without keys."""

import logging
import traceback
from types import TracebackType
from typing import Any, Final

from mcp.shared.exceptions import MCPError

_Failure = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class Lines(logging.Formatter):
    """Write a record as one line; of an exception its kind and where it came from, never its message."""

    def __init__(self) -> None:
        """Begin each line with the time and the level."""
        super().__init__("%(asctime)s %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%S%z")

    def formatException(self, ei: _Failure) -> str:  # noqa: N802 - the name that logging calls
        """Tell an exception by its kind and the lines of code; a message may hold a note's text."""
        kind, error, _ = ei
        parts: list[str] = []
        while error is not None:
            frames = traceback.extract_tb(error.__traceback__)
            places = " > ".join(f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames)
            parts.append(f"{type(error).__name__} at {places}")
            error = error.__cause__ or error.__context__
        return "; because of ".join(parts) if kind else ""


class Foreseen(logging.Filter):
    """Leave out what a client of the protocol was told anyway; its address may name a note."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep all but such records."""
        return not (record.exc_info and isinstance(record.exc_info[1], MCPError))


def configuration(level: str = "INFO") -> dict[str, Any]:
    """Give the configuration of logging, for `logging.config.dictConfig`."""
    own = {"handlers": ["lines"], "level": level, "propagate": False}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"lines": {"()": f"{__name__}.{Lines.__name__}"}},
        "filters": {"foreseen": {"()": f"{__name__}.{Foreseen.__name__}"}},
        "handlers": {
            "lines": {
                "class": "logging.StreamHandler",
                "formatter": "lines",
                "filters": ["foreseen"],
                "stream": "ext://sys.stderr",
            }
        },
        "loggers": {
            "knapper": own,
            "uvicorn": {**own, "level": _QUIET},  # what it says below this, the program says itself
            "fastmcp": {**own, "level": _QUIET},
            "mcp": {**own, "level": _QUIET},
        },
        "root": {"handlers": ["lines"], "level": _QUIET},
    }


_QUIET: Final = "WARNING"

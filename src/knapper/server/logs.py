"""Logging, request tracing, and redaction of file paths in replies."""

import copy
import logging
import logging.config
import re
import secrets
import sys
import time
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from knapper.config import Settings
from knapper.errors import KnapError
from knapper.jsontypes import JSONValue
from knapper.server import security
from knapper.system import private

_ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class LineFormatter(logging.Formatter):
    """Formats a record as one line; of an exception its type and place, never its message."""

    def __init__(self) -> None:
        """Start each line with the time and the level."""
        super().__init__("%(asctime)s %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%S%z")

    def formatException(self, ei: _ExcInfo) -> str:  # noqa: N802 - the name that logging calls
        """Return an exception's type and lines of code; its message may contain a note's text."""
        kind, error, _ = ei
        parts: list[str] = []
        while error is not None:
            frames = traceback.extract_tb(error.__traceback__)
            places = " > ".join(f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames)
            parts.append(f"{type(error).__name__} at {places}")
            error = error.__cause__ or error.__context__
        return "; because of ".join(parts) if kind else ""


class ExpectedErrorFilter(logging.Filter):
    """Drops records of errors that an MCP client received; their URI may contain a note's name."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is logged."""
        library = sys.modules.get("mcp.shared.exceptions")  # who hasn't imported it has none of its errors
        return not (library and record.exc_info and isinstance(record.exc_info[1], library.MCPError))


class PrivateLogHandler(RotatingFileHandler):
    """A rotated log of which every file, the first and the later ones, is its owner's alone."""

    def _open(self) -> TextIOWrapper:
        private.create_file(Path(self.baseFilename))
        return super()._open()


MAX_LOG_BYTES: Final = 5_000_000
_OLD_LOGS: Final = 3


def logging_configuration(level: str = "INFO", *, file: Path | None = None) -> dict[str, Any]:
    """Return the configuration of logging, for `logging.config.dictConfig`.

    Args:
        level: The least severe records that are logged.
        file: The log, of 5 MB at most, with three older ones beside it; None for the error stream.
    """
    target: dict[str, Any] = {"class": "logging.StreamHandler", "stream": "ext://sys.stderr"}
    if file is not None:
        target = {
            "()": f"{__name__}.{PrivateLogHandler.__name__}",
            "filename": str(file),
            "maxBytes": MAX_LOG_BYTES,
            "backupCount": _OLD_LOGS,
            "encoding": "utf-8",
        }
    shared_options = {"handlers": ["lines"], "level": level, "propagate": False}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"lines": {"()": f"{__name__}.{LineFormatter.__name__}"}},
        "filters": {"foreseen": {"()": f"{__name__}.{ExpectedErrorFilter.__name__}"}},
        "handlers": {"lines": {**target, "formatter": "lines", "filters": ["foreseen"]}},
        "loggers": {
            "knapper": shared_options,
            "uvicorn": {**shared_options, "level": _LIBRARY_LEVEL},  # what it says below this, the program says itself
            "fastmcp": {**shared_options, "level": _LIBRARY_LEVEL},
            "mcp": {**shared_options, "level": _LIBRARY_LEVEL},
        },
        "root": {"handlers": ["lines"], "level": _LIBRARY_LEVEL},
    }


def configure(file: Path | None) -> None:
    """Let this process log to a file, or to the error stream; see `logging_configuration`."""
    logging.config.dictConfig(logging_configuration(file=file))


_LIBRARY_LEVEL: Final = "WARNING"

REQUEST_ID_HEADER: Final = "x-request-id"
REQUEST_LOG: Final = logging.getLogger("knapper.server.requests")
_REQUEST_ID_KEY: Final = "knapper.request"
_VALID_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_FIRST_SEGMENT: Final = re.compile(r"/([a-z_]{1,40})(?=/|$)")
_KNOWN_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"})


def request_id(scope: Scope) -> str:
    """Return the id of a request; empty if it has none."""
    return str(scope.get("state", {}).get(_REQUEST_ID_KEY, ""))


class RequestTracing:
    """ASGI middleware that gives each request an id and logs its outcome; the outermost one."""

    def __init__(self, app: ASGIApp) -> None:
        """Wrap *app*."""
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; the client's own id is kept if it is well-formed."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        sent_id = Headers(scope=scope).get(REQUEST_ID_HEADER, "")
        trace_id = sent_id if _VALID_ID.fullmatch(sent_id) else secrets.token_hex(8)
        scope.setdefault("state", {})[_REQUEST_ID_KEY] = trace_id
        status = security.INTERNAL_SERVER_ERROR  # what a client gets of an error that nobody foresaw
        is_answered = False
        began = time.monotonic()

        async def marked(message: Message) -> None:
            nonlocal status, is_answered
            if message["type"] == "http.response.start":
                status, is_answered = message["status"], True
                MutableHeaders(scope=message)[REQUEST_ID_HEADER] = trace_id
            await send(message)

        try:
            await self.app(scope, receive, marked)
            status = status if is_answered else security.CLIENT_CLOSED_REQUEST
        finally:
            took_ms = round((time.monotonic() - began) * 1000)
            who = security.client_of(scope) if security.is_authenticated(scope) else "-"
            # The route's pattern, not the path, which may contain a note's name or any text.
            route = scope.get("route")
            pattern: object = getattr(route, "path_format", None) or getattr(route, "path", None)
            if not isinstance(pattern, str):
                noun = _FIRST_SEGMENT.match(scope["path"])
                pattern = f"/{noun.group(1)}…" if noun else "/…"
            REQUEST_LOG.info(
                "%s %s %s %s %d %d ms",
                trace_id,
                who,
                scope["method"] if scope["method"] in _KNOWN_METHODS else "?",
                pattern,
                status,
                took_ms,
            )


REDACTION_LOG: Final = logging.getLogger("knapper.server.logs")
_REDACTED: Final = "…"


@dataclass(frozen=True, slots=True, kw_only=True)
class PathRedaction:
    """The folders whose paths are shortened in replies to clients."""

    pattern: re.Pattern[str] | None = None

    def redact(self, text: str) -> str:
        """Shorten the folders in a text: ``/home/me/Notes/A.md`` is ``A.md``, and the folder alone is ``…``."""
        return self.pattern.sub(lambda match: "" if match["inside"] else _REDACTED, text) if self.pattern else text

    def redact_error(self, error: KnapError) -> KnapError:
        """Return an error redacted for clients."""
        redacted = copy.copy(error)
        redacted.message, redacted.hint = self.redact(error.message), self.redact(error.hint)
        return redacted


def redaction_for_settings(settings: Settings) -> PathRedaction:
    """Return the redaction of the vaults', the state's and the configuration's folders."""
    vaults = [vault.path for vault in (settings.choice, *settings.vaults) if not isinstance(vault, Exception)]
    files = [settings.config_file, *([settings.env_file] if settings.env_file else [])]
    return redaction_for_folders([*vaults, settings.state_dir, *(file.parent for file in files)])


def redaction_for_folders(folders: Iterable[Path]) -> PathRedaction:
    """Return the redaction of folders; the root of a disk isn't redacted."""
    folder_texts = {str(each) for folder in folders for each in (folder, folder.resolve()) if each != Path(each.anchor)}
    longest_first = sorted(folder_texts, key=len, reverse=True)
    if not longest_first:
        return PathRedaction()
    alternatives = "|".join(re.escape(folder_text).replace(r"\\", r"\\+") for folder_text in longest_first)
    return PathRedaction(
        pattern=re.compile(rf"(?<![\w/\\])(?:{alternatives})(?:(?P<inside>[/\\]+(?=[^\s'\"/\\]))|(?![\w.-]))")
    )


def request_redaction(scope: Scope) -> PathRedaction:
    """Return the redaction for a request, from the state of its app."""
    redaction: object = getattr(scope["app"].state, "places", None) if "app" in scope else None
    return redaction if isinstance(redaction, PathRedaction) else PathRedaction()


def redact_event(scope: Scope, data: Mapping[str, JSONValue]) -> dict[str, JSONValue]:
    """Return an error event, as `knapper.agents.events.Error` is serialised, without the redacted folders."""
    error = KnapError(str(data["error"]), hint=str(data["hint"]), code=str(data["code"]))
    redacted = redact_error(scope, error)
    return {**data, "error": redacted.message, "hint": redacted.hint}


def redact_error(scope: Scope, error: KnapError) -> KnapError:
    """Return an error redacted for a request's client; the full text is logged for the owner."""
    redacted = request_redaction(scope).redact_error(error)
    if (redacted.message, redacted.hint) != (error.message, error.hint):
        REDACTION_LOG.warning("%s %s: %r", request_id(scope), error.code, error.message)
    return redacted

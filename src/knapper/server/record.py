"""The running server's record in the state folder, by which other programs find it."""

import contextlib
import json
import os
import urllib.request
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, cast

from knapper import __version__
from knapper.errors import StorageError
from knapper.system import private

PRODUCT: Final = "knapper"
_PROBE_S: Final = 2.0
_MAX_REPLY_BYTES: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRecord:
    """Where a server answers, and which one it is.

    ``ServerRecord(pid=4711, url="http://127.0.0.1:8000", started="2026-11-23T09:00:00+00:00", version="0.9.0",
    instance="5f1d…")``
    """

    pid: int
    url: str
    started: str
    """The time of its start, with the zone: ``2026-11-23T09:00:00+00:00``."""
    version: str
    instance: str
    """Random, and the same in ``/health``: a token is shown to no other program that has got the port."""


def make_record(url: str, instance: str) -> ServerRecord:
    """Return the record of this process."""
    started = datetime.now(UTC).isoformat(timespec="seconds")
    return ServerRecord(pid=os.getpid(), url=url, started=started, version=__version__, instance=instance)


def record_path(state_dir: Path) -> Path:
    """Return the path of the record's file."""
    return state_dir / "server" / "server.json"


def write_record(state_dir: Path, record: ServerRecord) -> None:
    """Write the record, readable by its owner alone, in the place of an older one.

    Raises:
        StorageError: It can't be written.
    """
    path = record_path(state_dir)
    try:
        private.make_folder(path.parent)
        private.write_text(path, json.dumps(asdict(record), indent=2))
    except OSError as error:
        raise StorageError(
            f"{path} can't be written: {error.strerror or error}", hint="`knap doctor` checks the state folder"
        ) from error


def remove_record(state_dir: Path, record: ServerRecord) -> None:
    """Remove the record, unless a later server has written its own."""
    if read_record(state_dir) == record:
        with contextlib.suppress(OSError):  # a record that stays is seen to be stale
            record_path(state_dir).unlink(missing_ok=True)


def read_record(state_dir: Path) -> ServerRecord | None:
    """Return the record of the last server; None if there is none, or the file holds something else."""
    try:
        decoded: object = json.loads(record_path(state_dir).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(decoded, dict):
        return None
    values = cast("dict[str, Any]", decoded)
    kinds = {"pid": int}
    if any(not isinstance(values.get(each.name), kinds.get(each.name, str)) for each in fields(ServerRecord)):
        return None
    record = ServerRecord(**{each.name: values[each.name] for each in fields(ServerRecord)})
    # Whoever reads it may open the address, so it is an address of the web and nothing else.
    return record if record.url.startswith(("http://", "https://")) else None


def find_server(state_dir: Path) -> ServerRecord | None:
    """Return the record of the server that runs; None if none answers, or another program has its port."""
    record = read_record(state_dir)
    if record is None:
        return None
    health = read_health(record.url)
    return record if health is not None and health.get("instance") == record.instance else None


def read_health(url: str) -> Mapping[str, object] | None:
    """Return what a Knapper server says of itself at ``/health``; None if none answers within 2 s."""
    # No proxy: the address is this machine's, and a proxy's answer says nothing of it.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{url}/health", timeout=_PROBE_S) as reply:
            decoded: object = json.loads(reply.read(_MAX_REPLY_BYTES))
    except (OSError, ValueError):
        return None
    health = cast("dict[str, object]", decoded) if isinstance(decoded, dict) else {}
    return health if health.get("product") == PRODUCT else None

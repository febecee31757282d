"""The clients that were paired: devices of a person, each with a token of its own, kept in the state folder."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import unicodedata
from collections.abc import Callable, Collection, Generator
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from knapper.config import declarations
from knapper.errors import BadInput, NotFound, StorageError
from knapper.jsontypes import is_object
from knapper.system import private

MAX_CLIENTS: Final = 50
"""Paired clients at once: each request with an unknown token is compared with all of them."""
MAX_NAME_CHARS: Final = 40
MAX_DEVICE_CHARS: Final = 80
_KEPT_DAYS: Final = 90
"""How long a revoked client is remembered."""
_USE_STEP_S: Final = 60.0
"""How exactly it is known when a client was last there: most requests need no write then."""
_LOCK_S: Final = 10.0
_LOCK_NAME: Final = "pairing.lock"
_SUFFIX: Final = ".json"
_LABEL_SIGNS: Final = frozenset(".,()'\u2019+&@-_")
_LABEL_CATEGORIES: Final = frozenset("LMN")
"""Letters, their marks, and digits: no separators of paths, no quotes, nothing invisible or of a terminal's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedClient:
    """A device that was paired for one vault.

    ``PairedClient(name="Phone", device="iPhone", vault="Notes", folder="/home/me/Notes", token_hash="sha256:…",
    paired="2026-11-23T09:00:00+00:00", made_by="cli")``
    """

    name: str
    """Unique among all clients, in any case."""
    device: str
    """What it said of itself."""
    vault: str
    """The vault's name when it was paired."""
    folder: str
    """The vault's folder, which counts: another vault may come to have the name."""
    token_hash: str = field(repr=False)
    """``sha256:…``; empty once it is revoked."""
    paired: str
    """When, with the zone."""
    made_by: str
    """Who made the code: ``cli`` or ``page``."""
    revoked: str = ""
    """When; empty while it is good."""

    def as_dict(self, last_used: datetime | None) -> dict[str, str | None]:
        """Return what a person is told of it; never the token's hash."""
        return {
            "name": self.name,
            "device": self.device,
            "vault": self.vault,
            "paired": self.paired,
            "made_by": self.made_by,
            "last_used": last_used.isoformat(timespec="seconds") if last_used else None,
            "revoked": self.revoked or None,
        }


def clean_label(text: str, max_chars: int) -> str:
    """Return a name in one line, without what could steer a terminal or stand for a path; maybe empty."""
    kept = (
        sign if sign in _LABEL_SIGNS or unicodedata.category(sign)[0] in _LABEL_CATEGORIES else " "
        for sign in unicodedata.normalize("NFC", text)
    )
    return " ".join("".join(kept).split())[:max_chars].strip(" .")


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedClients:
    """The paired clients of a state folder, a file each; processes may share them, and see a change at once."""

    folder: Path
    now: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))
    _names: dict[str, str] = field(default_factory=dict[str, str], init=False, repr=False, compare=False)
    """Where a token was found last, by its hash: one file is read then, and not all; it is compared all the same."""

    def list_all(self, *, with_revoked: bool = False) -> list[PairedClient]:
        """Return the clients by name."""
        try:
            files = sorted(file for file in self.folder.iterdir() if file.suffix == _SUFFIX)
        except OSError:
            return []
        clients = [client for file in files if (client := _read(file)) is not None]
        return sorted((one for one in clients if with_revoked or not one.revoked), key=lambda one: one.name.casefold())

    def find(self, name: str) -> PairedClient | None:
        """Return the client of a name, also a revoked one; None if there was none."""
        return _read(self._file(name))

    def find_token(self, token: str) -> PairedClient | None:
        """Return the client that a token was given to; None if there is none, or it was revoked.

        All hashes are compared, each in constant time.
        """
        token_hash = hash_token(token)
        if name := self._names.get(token_hash):
            known = self.find(name)
            if known is not None and hmac.compare_digest(known.token_hash, token_hash):
                return known
            _ = self._names.pop(token_hash, None)
        found: PairedClient | None = None
        for client in self.list_all():
            if hmac.compare_digest(client.token_hash, token_hash):
                found = client
        if found is not None:
            self._names[token_hash] = found.name
        return found

    def is_current(self, client: PairedClient) -> bool:
        """Return whether a client is still paired with the same token."""
        current = self.find(client.name)
        return current is not None and not current.revoked and current.token_hash == client.token_hash

    def add(self, client: PairedClient, token: str, taken: Collection[str]) -> PairedClient:
        """Store a client with the hash of its token, under its name or that with a number.

        Args:
            client: As wanted; its name is cleaned, and its time and hash are set.
            token: What it shows from now on.
            taken: Names of other clients, which it can't have.

        Returns:
            The client as it is stored.

        Raises:
            BadInput: There are too many.
            StorageError: It can't be stored.
        """
        with self._locked():
            present = self.list_all(with_revoked=True)
            active = [one for one in present if not one.revoked]
            if len(active) >= MAX_CLIENTS:
                raise BadInput(
                    f"{len(active)} clients are paired, and there can't be more",
                    hint="`knap clients list` shows when each was last there, `knap clients revoke` takes one out",
                    code="too_many_clients",
                )
            oldest = (self.now() - timedelta(days=_KEPT_DAYS)).isoformat(timespec="seconds")
            for one in present:
                if one.revoked and one.revoked < oldest:
                    self._file(one.name).unlink(missing_ok=True)
            others = {each.casefold() for each in (*taken, *(one.name for one in active))}
            wanted = clean_label(client.name, MAX_NAME_CHARS) or "Obsidian"
            stored = replace(
                client,
                name=declarations.free_name(wanted, others, str.casefold),
                device=clean_label(client.device, MAX_DEVICE_CHARS),
                token_hash=hash_token(token),
                paired=self.now().isoformat(timespec="seconds"),
                revoked="",
            )
            self._write(stored)
        return stored

    def unknown_error(self, name: str) -> NotFound:
        """Return the error for a name that no paired client has."""
        names = [one.name for one in self.list_all()]
        hint = declarations.did_you_mean(name, names, "`knap clients list` shows those that are")
        return NotFound(f"no client '{name[:60]}' is paired", hint=hint, code="no_client")

    def revoke(self, name: str) -> PairedClient:
        """Take a client's token from it; from now on it may nothing.

        Raises:
            NotFound: No such client is paired.
            StorageError: It can't be stored.
        """
        with self._locked():
            client = self.find(name)
            if client is None or client.revoked:
                raise self.unknown_error(name)
            used = self.last_used(client)
            revoked = replace(client, token_hash="", revoked=self.now().isoformat(timespec="seconds"))
            self._write(revoked)
            if used is not None:
                with contextlib.suppress(OSError):
                    os.utime(self._file(name), (used.timestamp(), used.timestamp()))
        return revoked

    def note_use(self, client: PairedClient) -> None:
        """Record that a client is there now."""
        file, now = self._file(client.name), self.now().timestamp()
        with contextlib.suppress(OSError):  # a time that isn't known is no reason to refuse a request
            if not 0 <= now - file.stat().st_mtime < _USE_STEP_S:
                os.utime(file, (now, now))

    def last_used(self, client: PairedClient) -> datetime | None:
        """Return when a client was last there, to the minute; None if that isn't known."""
        try:
            return datetime.fromtimestamp(self._file(client.name).stat().st_mtime, UTC)
        except (OSError, OverflowError, ValueError):
            return None

    def _file(self, name: str) -> Path:
        digest = hashlib.sha256(name.casefold().encode("utf-8", "surrogatepass")).hexdigest()
        return self.folder / f"{digest[:32]}{_SUFFIX}"

    @contextlib.contextmanager
    def _locked(self) -> Generator[None]:
        from filelock import Timeout  # noqa: PLC0415 - 15 ms that only a change should cost

        try:
            private.make_folder(self.folder)
            with private.file_lock(self.folder / _LOCK_NAME, timeout_s=_LOCK_S):
                yield
        except Timeout as error:
            raise StorageError(
                f"another process changes the paired clients in {self.folder}", hint="try again in a moment"
            ) from error
        except OSError as error:
            raise StorageError(
                f"the paired clients in {self.folder} can't be changed: {error.strerror or error}",
                hint="`knap doctor` checks the state folder",
            ) from error

    def _write(self, client: PairedClient) -> None:
        private.write_text(self._file(client.name), json.dumps(asdict(client), ensure_ascii=False, indent=2))


def open_paired(state_dir: Path) -> PairedClients:
    """Return the paired clients of a state folder."""
    return PairedClients(folder=state_dir / "server" / "clients")


def hash_token(token: str) -> str:
    """Return the hash of a token for the configuration: ``sha256:…``; a long random text needs no slower hash."""
    return "sha256:" + hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _read(file: Path) -> PairedClient | None:
    """Return the client of a file; None if there is none, or it holds something else."""
    try:
        decoded: object = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if not is_object(decoded):
        return None
    texts = {str(name): value for name, value in decoded.items() if isinstance(value, str)}
    names = [each.name for each in fields(PairedClient)]
    if any(name not in texts for name in names):
        return None
    client = PairedClient(**{name: texts[name] for name in names})
    return client if client.revoked or client.token_hash else None

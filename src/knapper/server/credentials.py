"""Tokens, browser sessions and pairing codes, in files that only their owner can read."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import math
import os
import re
import secrets
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal
from urllib.parse import quote, urlsplit

from knapper.config.paired import MAX_NAME_CHARS, PairedClient, clean_label
from knapper.errors import BadInput, RefusedError, SetupError, StorageError
from knapper.jsontypes import Record, loads, object_or_empty
from knapper.server import addresses
from knapper.system import opening, private
from knapper.vault import access

if TYPE_CHECKING:
    from knapper.config import Settings, Vault


TokenName = Literal["api", "page", "terminal"]
"""For programs; for the page, behind which a person sits; or for this account's own commands, which never send it."""

_TOKEN_BYTES: Final = 32
_MIN_CHARS: Final = 24
_MAX_CHARS: Final = 1_000
_PREFIX: Final = "knap_"


def make_token() -> str:
    """Create a token of 256 random bits."""
    return _PREFIX + secrets.token_urlsafe(_TOKEN_BYTES)


def token_path(state_dir: Path, name: TokenName) -> Path:
    """Return the path of a token's file."""
    return state_dir / "server" / f"{name}.token"


def read_or_make_token(state_dir: Path, name: TokenName) -> str:
    """Return the stored token, creating one if there is none; concurrent callers get the same one.

    Raises:
        StorageError: It can't be read or written, or the file's text can't be sent as a token.
    """
    path = token_path(state_dir, name)
    try:
        token = path.read_text(encoding="ascii").strip()
        private.close_to_others(path)
    except FileNotFoundError:
        return _write_token(path, make_token(), is_first=True)
    except (OSError, UnicodeDecodeError) as error:
        raise _token_error(path, error) from error
    if not token:
        return replace_token(state_dir, name)
    if not (_MIN_CHARS <= len(token) <= _MAX_CHARS and token.isprintable() and " " not in token):
        raise _token_error(path, None)
    return token


def replace_token(state_dir: Path, name: TokenName) -> str:
    """Replace the stored token; a running server keeps using the old one.

    Raises:
        StorageError: It can't be written.
    """
    return _write_token(token_path(state_dir, name), make_token(), is_first=False)


def _write_token(path: Path, token: str, *, is_first: bool) -> str:
    """Write a token and return the stored one: with *is_first*, one that another process has written stays."""
    fresh = private.new_name(path)
    try:
        private.make_folder(path.parent)
        with os.fdopen(private.open_new(fresh), "w", encoding="ascii", newline="\n") as file:
            file.write(token + "\n")
        if not (is_first and _claim_path(fresh, path)):
            opening.patiently(lambda: os.replace(fresh, path))  # noqa: PTH105 - which returns nothing
            return token
        return path.read_text(encoding="ascii").strip()
    except OSError as error:
        raise StorageError(
            f"the token {path} can't be written: {error.strerror}",
            hint="check the permissions of its folder, or set KNAP_STATE_DIR to another one",
            code="token_unusable",
        ) from error
    finally:
        with contextlib.suppress(OSError):
            opening.patiently(lambda: fresh.unlink(missing_ok=True))


def _claim_path(fresh: Path, path: Path) -> bool:
    """Return whether the path exists already; if not, the fresh file is linked there."""
    try:
        path.hardlink_to(fresh)
    except FileExistsError:
        return True
    except (OSError, NotImplementedError):  # a disk whose files have one name only
        return False
    return True


def _token_error(path: Path, error: OSError | UnicodeDecodeError | None) -> StorageError:
    cause = error.strerror if isinstance(error, OSError) else "it holds something else"
    return StorageError(
        f"the token in {path} can't be used: {cause}",
        hint="check the file's permissions, or delete it: a new one is made",
        code="token_unusable",
    )


CODE_MAX_AGE_S: Final = 3_600
"""How long an address that signs in is good."""
SESSION_MAX_AGE_S: Final = 30 * 86_400
"""How long a browser stays signed in."""
_SECRET_BYTES: Final = 32
_MAX_SECRET_CHARS: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserSession:
    """The cookie and key that a signed-in browser sends."""

    cookie: str = field(repr=False)
    key: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserSessions:
    """The signed-in browsers, in files that only the owner can read; several processes may share them."""

    folder: Path
    token: str = field(repr=False)
    """The page's own; it never leaves the server."""
    now: Callable[[], float] = time.time

    def new_code(self) -> str:
        """Create a code that signs one browser in, once.

        Raises:
            StorageError: It can't be stored.
        """
        self._tidy()
        new_secret = secrets.token_urlsafe(_SECRET_BYTES)
        self._write(self._place("code", new_secret), str(self.now()))
        return new_secret

    def redeem(self, code: str) -> BrowserSession | None:
        """Exchange a code for a browser session; None if the code is unknown, used or expired.

        Raises:
            StorageError: The session can't be stored.
        """
        code_file = self._place("code", code)
        is_valid = self._is_young(code_file, CODE_MAX_AGE_S)
        if not private.remove_once(code_file) or not is_valid:
            return None
        session = BrowserSession(cookie=secrets.token_urlsafe(_SECRET_BYTES), key=secrets.token_urlsafe(_SECRET_BYTES))
        self._write(self._place("seat", session.cookie), f"{self.now()} {self._digest('key', session.key)}")
        return session

    def is_signed_in(self, session: BrowserSession) -> bool:
        """Return whether a browser is signed in."""
        session_file = self._place("seat", session.cookie)
        stored_digest = _read_file(session_file).partition(" ")[2]
        return hmac.compare_digest(stored_digest, self._digest("key", session.key)) and self._is_young(
            session_file, SESSION_MAX_AGE_S
        )

    def end(self, session: BrowserSession) -> None:
        """Sign a browser out."""
        if self.is_signed_in(session):
            self._place("seat", session.cookie).unlink(missing_ok=True)

    def _place(self, kind: str, secret: str) -> Path:
        return self.folder / f"{kind}-{self._digest(kind, secret)}"

    def _digest(self, kind: str, secret: str) -> str:
        text = f"{kind} {secret[:_MAX_SECRET_CHARS]}".encode("utf-8", "surrogatepass")
        return hmac.new(self.token.encode("utf-8", "surrogatepass"), text, hashlib.sha256).hexdigest()

    def _is_young(self, file: Path, most_s: float) -> bool:
        try:
            began = float(_read_file(file).partition(" ")[0])
        except ValueError:
            return False
        return began <= self.now() + 1 and self.now() - began < most_s

    def _write(self, file: Path, text: str) -> None:
        try:
            private.make_folder(self.folder)
            with os.fdopen(private.open_new(file), "w", encoding="ascii", newline="\n") as stream:
                _ = stream.write(text)
        except OSError as error:
            raise StorageError(
                f"who may use the page can't be kept in {self.folder}: {error.strerror}",
                hint="check the folder's permissions and space",
            ) from error

    def _tidy(self) -> None:
        """Remove expired codes and sessions."""
        for kind, most_s in (("code", CODE_MAX_AGE_S), ("seat", SESSION_MAX_AGE_S)):
            for file in self.folder.glob(f"{kind}-*"):
                if not self._is_young(file, most_s):
                    with contextlib.suppress(OSError):
                        file.unlink()


def open_browser_sessions(state_dir: Path) -> BrowserSessions:
    """Return the browser sessions of a state folder.

    Raises:
        StorageError: The page's token can't be read or created.
    """
    return BrowserSessions(folder=state_dir / "server" / "page", token=read_or_make_token(state_dir, "page"))


def sign_in_url(server: str, code: str) -> str:
    """Return the sign-in address; the part after ``#`` is never sent to a server or logged."""
    return f"{server.rstrip('/')}/#token={code}"


def _read_file(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return ""


PAIRING_CODE_MAX_AGE_S: Final = 120.0
"""How long a code is good."""
MAX_CODES: Final = 5
"""Codes at once; a further one takes the place of the oldest."""
_ALPHABET: Final = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"
"""Without letters and digits that look alike."""
_CODE_CHARS: Final = 8
"""31⁸ codes, 8.5·10¹¹: with the 30 tries that a server takes in two minutes, five are found once in 5·10⁹ times."""
_GROUP_CHARS: Final = 4
_MAX_TYPED_CHARS: Final = 40
_MAX_ADDRESS_CHARS: Final = 300
_CODE_PREFIX: Final = "code-"
LINK_START: Final = "obsidian://knapper"
HOW_TO: Final = "docs/how-to/connect-a-phone.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class PairingOffer:
    """What a code stands for: a client of one vault."""

    vault: str
    folder: str
    """The vault's folder, with symbolic links resolved."""
    name: str
    """The client's name; empty where the device may say it."""
    made_by: str
    """Who made the code: ``cli`` or ``page``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _StoredCode:
    """A code's file: its hash, and when it was made by two clocks."""

    digest: str
    made: float
    made_monotonic: float
    offer: PairingOffer


@dataclass(frozen=True, slots=True, kw_only=True)
class PairingCodes:
    """The codes of a state folder, a file each; several processes may share them, and no server has to run."""

    folder: Path
    key: str = field(repr=False)
    """Keys the hashes, so that a copy of a file alone tells no code: they are short."""
    now: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    """Of the system, so that its value means the same in each process."""

    def new(self, offer: PairingOffer) -> str:
        """Create a code, good once within two minutes: ``ABCD-EFGH``.

        Raises:
            StorageError: It can't be stored.
        """
        code = "".join(secrets.choice(_ALPHABET) for _ in range(_CODE_CHARS))
        stored = _StoredCode(digest=self._digest(code), made=self.now(), made_monotonic=self.monotonic(), offer=offer)
        self._tidy(MAX_CODES - 1)
        try:
            private.make_folder(self.folder)
            file = self.folder / f"{_CODE_PREFIX}{secrets.token_hex(8)}.json"
            with os.fdopen(private.open_new(file), "w", encoding="utf-8", newline="\n") as stream:
                json.dump(asdict(stored), stream, ensure_ascii=False)
        except OSError as error:
            raise StorageError(
                f"the code can't be kept in {self.folder}: {error.strerror or error}",
                hint="`knap doctor` checks the state folder",
            ) from error
        return f"{code[:_GROUP_CHARS]}-{code[_GROUP_CHARS:]}"

    def redeem(self, code: str, folders: Collection[str]) -> PairingOffer | None:
        """Use a code up, and return what it stands for.

        Args:
            code: As typed, in any case, with or without the hyphen.
            folders: Of the vaults that this server serves.

        Returns:
            None if the code is unknown, used or too old; all three sound the same.

        Raises:
            BadInput: The code is good, and this server doesn't serve its vault; it stays good for the one that does.
        """
        digest = self._digest("".join(re.findall(r"[^\W_]", code[:_MAX_TYPED_CHARS])).upper())
        match: tuple[Path, _StoredCode] | None = None
        for file, stored in self._list():
            # each is compared, in constant time
            if hmac.compare_digest(stored.digest, digest) and self._is_young(stored):
                match = file, stored
        if match is None:
            return None
        file, stored = match
        if stored.offer.folder not in folders:
            raise BadInput(
                "this code is for a vault that this server doesn't serve",
                hint="start the server that does, or make a code for a vault of this one: knap connect --vault NAME",
                code="other_vault",
            )
        return stored.offer if private.remove_once(file) else None

    def _is_young(self, stored: _StoredCode) -> bool:
        """Return whether a code is young by both clocks.

        The wall clock may be set back, and the other one stands still while the machine sleeps and starts over when it
        starts.
        """
        ages = (self.now() - stored.made, self.monotonic() - stored.made_monotonic)
        return all(-1 <= age < PAIRING_CODE_MAX_AGE_S for age in ages)

    def _digest(self, code: str) -> str:
        text = f"pair {code}".encode("utf-8", "surrogatepass")
        return hmac.new(self.key.encode("utf-8", "surrogatepass"), text, hashlib.sha256).hexdigest()

    def _list(self) -> list[tuple[Path, _StoredCode]]:
        """Return the codes, the oldest first."""
        stored_codes: list[tuple[Path, _StoredCode]] = []
        for file in sorted(self.folder.glob(f"{_CODE_PREFIX}*.json")):
            try:
                raw = object_or_empty(loads(file.read_text(encoding="utf-8")))
                raw_offer = object_or_empty(raw["offer"])
                offer = PairingOffer(**{each.name: str(raw_offer[each.name]) for each in fields(PairingOffer)})
                clocks = float(str(raw["made"])), float(str(raw["made_monotonic"]))
                digest = str(raw["digest"])
            except (OSError, ValueError, KeyError, TypeError, RecursionError):
                continue  # it was used meanwhile, or the file holds something else
            if digest.isascii() and all(map(math.isfinite, clocks)):
                stored = _StoredCode(digest=digest, made=clocks[0], made_monotonic=clocks[1], offer=offer)
                stored_codes.append((file, stored))
        return sorted(stored_codes, key=lambda one: one[1].made)

    def _tidy(self, most: int) -> None:
        """Remove codes that are too old, and the oldest of too many."""
        young = [file for file, stored in self._list() if self._is_young(stored)]
        kept = set(young[-most:])
        for file in self.folder.glob(f"{_CODE_PREFIX}*.json"):
            if file not in kept:
                with contextlib.suppress(OSError):
                    file.unlink()


def open_codes(state_dir: Path) -> PairingCodes:
    """Return the codes of a state folder.

    Raises:
        StorageError: The key of their hashes can't be read or created.
    """
    return PairingCodes(folder=state_dir / "server" / "codes", key=read_or_make_token(state_dir, "page"))


def offer_vault(vault: Vault, name: str, made_by: str) -> PairingOffer:
    """Return the offer of a vault to a client; *name* may be empty.

    Raises:
        BadInput: The name has nothing that can be shown.
    """
    label = clean_label(name, MAX_NAME_CHARS)
    if name and not label:
        raise BadInput("the client's name has no letters or digits", hint="give one such as 'Phone'", code="bad_name")
    return PairingOffer(vault=vault.name, folder=str(vault.path), name=label, made_by=made_by)


def pair(settings: Settings, offer: PairingOffer, name: str, device: str) -> tuple[PairedClient, str]:
    """Make the client that a code stood for.

    Args:
        settings: Whose configured clients keep their names.
        offer: From `PairingCodes.redeem`.
        name: What the device wants to be called; the name that the owner gave counts more.
        device: What it says of itself.

    Returns:
        The client, and its token, which is stored nowhere.

    Raises:
        BadInput: Too many clients are paired.
        StorageError: It can't be stored.
    """
    token = make_token()
    taken = {*access.CLIENT_KINDS, access.OWNER, *(client.name for client in settings.clients)}
    wanted = PairedClient(
        name=offer.name or name or device,
        device=device,
        vault=offer.vault,
        folder=offer.folder,
        token_hash="",
        paired="",
        made_by=offer.made_by,
    )
    return settings.paired.add(wanted, token, taken), token


def check_address(settings: Settings, address: str) -> str:
    """Return the address at which a device is to find the server: ``https://box.tail1234.ts.net``.

    Args:
        settings: Whose server it is.
        address: As given; scheme and host, and a port where it isn't the usual one.

    Raises:
        BadInput: It isn't such an address.
        SetupError: The server wouldn't answer by that name.
    """
    try:
        parts = urlsplit(address.rstrip("/"))
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        parts, host = urlsplit(""), ""
    is_text = address.isascii() and address.isprintable() and len(address) <= _MAX_ADDRESS_CHARS
    is_whole = parts.scheme in {"http", "https"} and host and is_text
    if not is_whole or parts.path or parts.query or parts.fragment or "@" in parts.netloc or " " in address:
        raise BadInput(
            f"'{address[:80]}' isn't the address of a server",
            hint="give scheme and name, such as https://box.tail1234.ts.net",
            code="bad_address",
        )
    own_name = settings.server.host.lower().strip("[]")
    is_any_address = not addresses.is_loopback(own_name) and addresses.parse_address(host) is not None
    if not (addresses.is_loopback(host) or is_any_address or host in {own_name, *settings.server.hosts}):
        listed = ",".join([*settings.server.hosts, host])
        raise SetupError(
            f"the server doesn't answer by the name {host}",
            hint=f"list it: knap config set server.hosts {listed}; then restart the server",
            code="host_not_listed",
        )
    return f"{parts.scheme}://{parts.netloc}"


def pairing_link(address: str, code: str, vault_folder: str) -> str:
    """Return the link that opens the plugin in Obsidian, in the vault's window; all of it is good for two minutes."""
    values = {"vault": Path(vault_folder).name, "address": address, "code": code}
    return f"{LINK_START}?" + "&".join(f"{name}={quote(value, safe='')}" for name, value in values.items())


def is_for_phones(address: str) -> bool:
    """Return whether a phone may be sent to an address: without HTTPS, what is said could be read on the way."""
    return address.startswith("https://")


def why_no_qr(address: str) -> str:
    """Return why there is no QR code for an address, and what to do; empty where there is one."""
    if is_for_phones(address):
        return ""
    if addresses.is_loopback(urlsplit(address).hostname or ""):
        return f"other devices don't reach {address}; for a phone, see {HOW_TO}"
    return f"no QR code for {address}: without HTTPS the token could be read on the way; see {HOW_TO}"


def qr_rows(text: str) -> Sequence[str]:
    """Return a QR code with its quiet zone as rows of 0 and 1, 1 for dark."""
    import segno  # noqa: PLC0415 - 60 ms that only a phone's code should cost

    matrix = segno.make_qr(text, error="m").matrix_iter(border=4)
    return ["".join("1" if module else "0" for module in row) for row in matrix]


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation(Record):
    """A new code, with what a person needs to use it."""

    shown = ("code", "expires_s", "vault", "name", "address", "link", "qr")
    code: str = field(repr=False)
    address: str
    offer: PairingOffer

    @property
    def expires_s(self) -> int:
        """Return for how many seconds it is good."""
        return int(PAIRING_CODE_MAX_AGE_S)

    @property
    def vault(self) -> str:
        """Return the vault's name."""
        return self.offer.vault

    @property
    def name(self) -> str:
        """Return what the client is called; empty where the device says it."""
        return self.offer.name

    @property
    def link(self) -> str:
        """Return the link that opens the plugin in Obsidian."""
        return pairing_link(self.address, self.code, self.offer.folder)

    @property
    def qr(self) -> Sequence[str] | None:
        """Return the link as a QR code; None for an address that a phone may not be sent to."""
        return qr_rows(self.link) if is_for_phones(self.address) else None


def unknown_code_error() -> RefusedError:
    """Return the refusal of a code."""
    return RefusedError(
        "this code isn't known, was used before, or is too old",
        hint="`knap connect` makes a new one, good once within two minutes",
        code="code_refused",
    )

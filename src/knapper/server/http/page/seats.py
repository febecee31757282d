"""Let a person's browser in: an address that is good once becomes a cookie and a key, both of which a call shows.

The cookie alone isn't enough, as browsers send it to every port of a machine; the key stays with the page's origin.
Only digests are kept, made with the page's token: a new token ends all of them.
"""

import contextlib
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from knapper.errors import StorageError
from knapper.server import tokens

CODE_S: Final = 3_600
"""How long an address that signs in is good."""
SEAT_S: Final = 30 * 86_400
"""How long a browser stays signed in."""
_BYTES: Final = 32
_LONGEST: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """Hold what a browser that was let in shows from then on."""

    cookie: str = field(repr=False)
    key: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seats:
    """Hold who was let in, in files that only the owner can read; several processes may share them."""

    folder: Path
    token: str = field(repr=False)
    """The page's own; it never leaves the server."""
    now: Callable[[], float] = time.time

    def new_code(self) -> str:
        """Make a code that lets one browser in, once.

        Raises:
            StorageError: It can't be kept.
        """
        self._tidy()
        code = secrets.token_urlsafe(_BYTES)
        self._write(self._place("code", code), str(self.now()))
        return code

    def redeem(self, code: str) -> Seat | None:
        """Take a code for a seat; None where it is nobody's, was taken before, or is too old.

        Raises:
            StorageError: The seat can't be kept.
        """
        place = self._place("code", code)
        is_good = self._is_young(place, CODE_S)
        try:
            place.unlink()  # whoever removes it has it: two browsers can't
        except OSError:
            return None
        if not is_good:
            return None
        seat = Seat(cookie=secrets.token_urlsafe(_BYTES), key=secrets.token_urlsafe(_BYTES))
        self._write(self._place("seat", seat.cookie), f"{self.now()} {self._digest('key', seat.key)}")
        return seat

    def knows(self, seat: Seat) -> bool:
        """Tell whether a browser was let in, and still is."""
        place = self._place("seat", seat.cookie)
        kept = _read(place).partition(" ")[2]
        return hmac.compare_digest(kept, self._digest("key", seat.key)) and self._is_young(place, SEAT_S)

    def end(self, seat: Seat) -> None:
        """Sign a browser out."""
        if self.knows(seat):
            self._place("seat", seat.cookie).unlink(missing_ok=True)

    def _place(self, kind: str, secret: str) -> Path:
        return self.folder / f"{kind}-{self._digest(kind, secret)}"

    def _digest(self, kind: str, secret: str) -> str:
        said = f"{kind} {secret[:_LONGEST]}".encode("utf-8", "surrogatepass")
        return hmac.new(self.token.encode("utf-8", "surrogatepass"), said, hashlib.sha256).hexdigest()

    def _is_young(self, place: Path, most_s: float) -> bool:
        try:
            began = float(_read(place).partition(" ")[0])
        except ValueError:
            return False
        return began <= self.now() + 1 and self.now() - began < most_s

    def _write(self, place: Path, text: str) -> None:
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            place.touch(mode=0o600, exist_ok=False)
            _ = place.write_text(text, encoding="ascii")
        except OSError as error:
            raise StorageError(
                f"who may use the page can't be kept in {self.folder}: {error.strerror}",
                hint="check the folder's permissions and space",
            ) from error

    def _tidy(self) -> None:
        """Remove what isn't good any more."""
        for kind, most_s in (("code", CODE_S), ("seat", SEAT_S)):
            for place in self.folder.glob(f"{kind}-*"):
                if not self._is_young(place, most_s):
                    with contextlib.suppress(OSError):
                        place.unlink()


def of_state(state_dir: Path) -> Seats:
    """Give the seats of a state folder.

    Raises:
        StorageError: The page's token can't be read or made.
    """
    return Seats(folder=state_dir / "server" / "page", token=tokens.read_or_make(state_dir, "page"))


def address(server: str, code: str) -> str:
    """Give the address that signs in; what follows the sign is sent to no server, and stands in no log."""
    return f"{server.rstrip('/')}/#token={code}"


def _read(place: Path) -> str:
    try:
        return place.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return ""

"""Store tokens and browser sessions in files that only their owner can read."""

import contextlib
import hashlib
import hmac
import os
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from knapper.errors import StorageError
from knapper.system import private

TokenName = Literal["api", "page", "terminal"]
"""For programs; for the page, behind which a person sits; or for this account's own commands, which never send it."""

_TOKEN_BYTES: Final = 32
_MIN_CHARS: Final = 24
_MAX_CHARS: Final = 1_000
_PREFIX: Final = "knap_"


def make_token() -> str:
    """Create a token of 256 random bits."""
    return _PREFIX + secrets.token_urlsafe(_TOKEN_BYTES)


def hash_token(token: str) -> str:
    """Return the hash of a token for the configuration: ``sha256:…``; a long random text needs no slower hash."""
    return "sha256:" + hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


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
    """Write a token and return the stored one: without *replace*, a token of another process stays."""
    fresh = private.new_name(path)
    try:
        private.make_folder(path.parent)
        with os.fdopen(private.open_new(fresh), "w", encoding="ascii") as file:
            file.write(token + "\n")
        if not (is_first and _claim_path(fresh, path)):
            fresh.replace(path)
            return token
        return path.read_text(encoding="ascii").strip()
    except OSError as error:
        raise _token_error(path, error) from error
    finally:
        with contextlib.suppress(OSError):
            fresh.unlink(missing_ok=True)


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
        try:
            code_file.unlink()  # whoever removes it has it: two browsers can't
        except OSError:
            return None
        if not is_valid:
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
            with os.fdopen(private.open_new(file), "w", encoding="ascii") as stream:
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

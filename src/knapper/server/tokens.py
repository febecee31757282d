"""Make tokens, and keep them in files that only their owner can read."""

import contextlib
import hashlib
import os
import secrets
from pathlib import Path
from typing import Final, Literal

from knapper.errors import StorageError

Name = Literal["api", "page"]
"""For programs, or for the page, behind which a person sits."""

_BYTES: Final = 32
_MIN_CHARS: Final = 24
_MAX_CHARS: Final = 1_000
_PREFIX: Final = "knap_"


def make() -> str:
    """Make a token: 256 random bits."""
    return _PREFIX + secrets.token_urlsafe(_BYTES)


def hash_of(token: str) -> str:
    """Give what may be kept of a token in a configuration: ``sha256:…``; a long random text needs no slower hash."""
    return "sha256:" + hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def place(state_dir: Path, name: Name) -> Path:
    """Tell where a token is kept."""
    return state_dir / "server" / f"{name}.token"


def read_or_make(state_dir: Path, name: Name) -> str:
    """Give the token that is kept; where there is none yet, one is made, the same for all who make one at once.

    Raises:
        StorageError: It can't be read or written, or the file holds what no request can show as a token.
    """
    path = place(state_dir, name)
    try:
        token = path.read_text(encoding="ascii").strip()
        _close_to_others(path)
    except FileNotFoundError:
        return _keep(path, make(), is_first=True)
    except (OSError, UnicodeDecodeError) as error:
        raise _unusable(path, error) from error
    if not token:
        return write_new(state_dir, name)
    if not (_MIN_CHARS <= len(token) <= _MAX_CHARS and token.isprintable() and " " not in token):
        raise _unusable(path, None)
    return token


def write_new(state_dir: Path, name: Name) -> str:
    """Make a token in the place of the one that was; a server that runs goes on with the old one.

    Raises:
        StorageError: It can't be written.
    """
    return _keep(place(state_dir, name), make(), is_first=False)


def _keep(path: Path, token: str, *, is_first: bool) -> str:
    """Write a token, and give the one that is kept: who only makes the first one leaves another's in place."""
    fresh = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(handle, "w", encoding="ascii") as file:  # noqa: PTH123 - a handle, opened with its mode
            file.write(token + "\n")
        if not (is_first and _is_taken(fresh, path)):
            fresh.replace(path)
            return token
        return path.read_text(encoding="ascii").strip()
    except OSError as error:
        raise _unusable(path, error) from error
    finally:
        with contextlib.suppress(OSError):
            fresh.unlink(missing_ok=True)


def _is_taken(fresh: Path, path: Path) -> bool:
    """Tell whether a name is taken: by somebody else, or by the fresh file, which gets it where it is free."""
    try:
        path.hardlink_to(fresh)
    except FileExistsError:
        return True
    except (OSError, NotImplementedError):  # a disk whose files have one name only
        return False
    return True


def _close_to_others(path: Path) -> None:
    """Take the file away from others, where somebody opened it to them; Windows' profile folders are closed anyway."""
    if os.name == "posix" and path.stat().st_mode & 0o077:
        path.chmod(0o600)


def _unusable(path: Path, error: OSError | UnicodeDecodeError | None) -> StorageError:
    cause = error.strerror if isinstance(error, OSError) else "it holds something else"
    return StorageError(
        f"the token in {path} can't be used: {cause}",
        hint="check the file's permissions, or delete it: a new one is made",
        code="token_unusable",
    )

"""Tell whether a name is spelled as on disk, without listing its folder where that can be known."""

import os
import unicodedata
from typing import Final

from knapper.vault.paths import MAX_PART_BYTES, WINDOWS

_MISSING: Final = (FileNotFoundError, NotADirectoryError)


def status(path: str) -> os.stat_result | None:
    """Tell what the system says of a file, folder or link itself; None where there is nothing."""
    try:
        return os.lstat(path)
    except _MISSING:
        return None


def is_exact(folder: str, name: str, known: os.stat_result, *, windows: bool = WINDOWS) -> bool:
    """Tell whether a name that is there is surely the one that its folder lists.

    A system that ignores case or Unicode form answers to names that it doesn't list, and then to another spelling too.
    Windows has short names besides, of which only the listing tells.

    Args:
        folder: Where it is.
        name: As it was asked for.
        known: What `status` gave for it.
        windows: The system is Windows.
    """
    if windows:
        return False
    own = (known.st_dev, known.st_ino)
    others = (status(f"{folder}/{other}") for other in _variants(name))
    return not any(other and (other.st_dev, other.st_ino) == own for other in others)


def _variants(name: str) -> set[str]:
    forms = {name.swapcase(), unicodedata.normalize("NFC", name), unicodedata.normalize("NFD", name)}
    return {form for form in forms - {name} if len(form.encode()) <= MAX_PART_BYTES}

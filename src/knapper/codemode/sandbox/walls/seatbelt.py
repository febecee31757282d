"""Confine a worker on macOS by its sandbox: no network, no writing, no new processes, no user's files.

The tool has been deprecated for years, but a program that isn't signed for the App Sandbox has no other.
"""

import json
from collections.abc import Iterable
from typing import Final

TOOL: Final = "/usr/bin/sandbox-exec"
_RULES: Final = (
    "(version 1)",
    "(allow default)",
    "(deny network*)",
    "(deny file-write*)",
    "(deny process-fork)",
    "(deny mach-lookup)",
    '(deny file-read* (subpath "/Users") (subpath "/Volumes"))',
    '(deny file-read* (subpath "/private/var/folders") (subpath "/private/tmp"))',
)


def prefix(readable: Iterable[str]) -> list[str]:
    """Return what precedes a command to confine it.

    Args:
        readable: Folders that hold what the command loads.
    """
    return [TOOL, "-p", profile(readable)]


def profile(readable: Iterable[str]) -> str:
    """Return the rules; of two that match, the later one applies."""
    # Last, since the folders that Python is loaded from may be below /Users or a temporary folder.
    places = " ".join(f"(subpath {json.dumps(folder, ensure_ascii=False)})" for folder in dict.fromkeys(readable))
    return "\n".join([*_RULES, f"(allow file-read* {places})"])

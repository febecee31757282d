"""Hold a worker on macOS with its sandbox: no network, no writing, no new processes, no one's files.

The tool is marked as deprecated for years, and there is nothing else for a program that isn't signed for it.
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
    """Return what comes before a command to hold it.

    Args:
        readable: Folders that hold what the command loads.
    """
    return [TOOL, "-p", profile(readable)]


def profile(readable: Iterable[str]) -> str:
    """Write the rules; of two that fit, the later one holds."""
    places = " ".join(f"(subpath {json.dumps(folder, ensure_ascii=False)})" for folder in dict.fromkeys(readable))
    return "\n".join([*_RULES, f"(allow file-read* {places})"])

"""Print a folder in memory where the tests' files can lie, if there is one: on a disk many tests mostly wait for it.

`python -m scripts.memory` prints nothing where there is none, or too little of it.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

_FOLDER: Final = Path("/dev/shm")  # noqa: S108 - files are made there in folders of one's own
_MIN_MB: Final = 3_000
_MIN_FREE_MB: Final = 5_000


def find_folder() -> Path | None:
    """Return a folder in memory with space to spare, from which programs can be started; None where there is none."""
    if sys.platform != "linux" or not _FOLDER.is_dir() or not os.access(_FOLDER, os.W_OK | os.X_OK):
        return None
    if os.statvfs(_FOLDER).f_flag & os.ST_NOEXEC or not _FOLDER.is_mount():
        return None
    try:
        with tempfile.TemporaryFile(dir=_FOLDER):
            pass
    except OSError:
        return None
    has_space = shutil.disk_usage(_FOLDER).free >= _MIN_MB * 1_000_000 and _available_mb() >= _MIN_FREE_MB
    return _FOLDER if has_space else None


def _available_mb() -> float:
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1_024 / 1_000_000
    return 0.0


if __name__ == "__main__":
    sys.stdout.write(str(find_folder() or ""))

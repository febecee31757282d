"""Measure a worker's memory, where the system tells it of other processes."""

from pathlib import Path
from typing import Final

_RESET_PEAK: Final = "5"
_KB_PER_MB: Final = 1_024


def reset_peak(process: int) -> None:
    """Let the peak begin anew.

    Source: proc_pid_clear_refs(5).
    """
    try:
        _ = Path(f"/proc/{process}/clear_refs").write_text(_RESET_PEAK, encoding="ascii")
    except OSError:
        return


def peak_mb(process: int) -> float:
    """Tell how much memory a process had at most; 0 where that isn't told."""
    try:
        status = Path(f"/proc/{process}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0.0
    for line in status.splitlines():
        if line.startswith("VmHWM:"):
            return round(int(line.split()[1]) / _KB_PER_MB, 1)
    return 0.0

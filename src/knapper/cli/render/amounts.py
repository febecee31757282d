"""Write counts, sizes and times for people."""

_KILO = 1_000
_MINUTE_S = 60


def count(number: int, noun: str) -> str:
    """Count things: ``1 note``, ``2 notes``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def size(number: float) -> str:
    """Write a size in bytes: ``320 B``, ``1.2 MB``."""
    for unit in ("B", "kB", "MB"):
        if number < _KILO:
            return f"{number:.0f} B" if unit == "B" else f"{number:.1f} {unit}"
        number /= _KILO
    return f"{number:.1f} GB"


def duration(seconds: float) -> str:
    """Write a time span: ``0.42 s``, ``12.3 s``, ``3 min 20 s``."""
    if seconds < 1:
        return f"{seconds:.2f} s"
    if seconds < _MINUTE_S:
        return f"{seconds:.1f} s"
    return f"{int(seconds // _MINUTE_S)} min {int(seconds % _MINUTE_S)} s"

"""Make short names for changes that sort by time and can't be guessed."""

import secrets
import time

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
"""Base 32 without letters that look like digits."""

_TIME_DIGITS = 9
_RANDOM_DIGITS = 8


def make() -> str:
    """Make an id: 9 digits of time in milliseconds, 8 random ones.

    ``0gpx4k2e9-7h2mq9xw``; two of one millisecond sort in any order.
    """
    moment = time.time_ns() // 1_000_000
    digits = (ALPHABET[moment >> shift & 31] for shift in range(5 * (_TIME_DIGITS - 1), -1, -5))
    return "".join(digits) + "-" + "".join(secrets.choice(ALPHABET) for _ in range(_RANDOM_DIGITS))

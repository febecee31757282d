"""Read cases from Markdown: a title, the input, and what is expected, each ended by a line with a single dot.

In the input ``␍`` stands for a carriage return, ``␀`` for NUL, ``␉`` for a tab, ``␠`` for a space, ``␂`` for a
byte-order mark, ``␗`` for a byte that is no UTF-8, and ``␃`` at its end for a missing last newline.
"""

from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "cases"
SIGNS = {"␍": b"\r", "␀": b"\0", "␉": b"\t", "␠": b" ", "␂": b"\xef\xbb\xbf", "␗": b"\xff"}


def load(name: str) -> list[object]:
    """Give each case of a file as a parameter set of input bytes and expected lines."""
    parts = (FOLDER / f"{name}.md").read_text(encoding="utf-8").split("\n.\n")
    assert len(parts) % 3 == 1, f"{name}.md: a case has a title, an input and an expectation"
    cases = zip(parts[0::3], parts[1::3], parts[2::3], strict=False)
    return [pytest.param(_raw(text), wanted, id=title.strip().splitlines()[-1]) for title, text, wanted in cases]


def _raw(text: str) -> bytes:
    raw = text.removesuffix("␃").encode() if text.endswith("␃") else f"{text}\n".encode()
    for sign, byte in SIGNS.items():
        raw = raw.replace(sign.encode(), byte)
    return raw


def shown(raw: bytes) -> str:
    """Write bytes on one line, their signs as in the input."""
    text = raw.decode(errors="backslashreplace")
    return text.replace("\n", "⏎").replace("\r", "␍").replace("\t", "␉").replace("\0", "␀")

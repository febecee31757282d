"""Turn a file's bytes into UTF-8 that spans can count in."""

import codecs
import re
from dataclasses import dataclass
from typing import Literal

from knapper.vault import lines
from knapper.vault.outline import Problem

Encoding = Literal["utf-8", "utf-8-sig", "utf-16", "unknown"]

_ESCAPED = re.compile("[\udc80-\udcff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Hold a file as valid UTF-8.

    Except for UTF-16, *data* has the file's length, and every offset into it is one into the file.
    """

    data: bytes
    encoding: Encoding
    problems: tuple[Problem, ...]


def decode(raw: bytes) -> Source:
    r"""Read a file's bytes as UTF-8 without moving any of them.

    ``b"a\\xffb"`` gives ``b"a?b"`` and the problem ``not_utf8``.

    Returns:
        The file itself where it is UTF-8, with one ``?`` for each byte that isn't otherwise. A file with a UTF-16
        byte-order mark is transcoded, without the mark, and its offsets count in the transcoded bytes.
    """
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return _transcoded(raw)
    encoding: Encoding = "utf-8-sig" if raw.startswith(codecs.BOM_UTF8) else "utf-8"
    problems: tuple[Problem, ...] = ()
    data = raw
    try:
        _ = raw.decode()
    except UnicodeDecodeError as error:
        # A UTF-8 decoder never yields a lone surrogate itself, so each one stands for exactly one bad byte.
        data = _ESCAPED.sub("?", raw.decode(errors="surrogateescape")).encode()
        line = lines.count(raw, error.start)
        byte = f"byte 0x{raw[error.start]:02x}"
        message = f"Not UTF-8 from line {line} on ({byte}): such lines are shown as Windows-1252."
        problems = (Problem(code="not_utf8", message=message, line=line),)
        encoding = encoding if encoding == "utf-8-sig" else "unknown"
    return Source(data=data, encoding=encoding, problems=problems + _nul_problems(data))


def _transcoded(raw: bytes) -> Source:
    text = raw.decode("utf-16", errors="replace")
    data = text.encode(errors="replace")
    problem = Problem(code="not_utf8", message="The file is UTF-16; it can be read, and not edited.", line=1)
    return Source(data=data, encoding="utf-16", problems=(problem, *_nul_problems(data)))


def _nul_problems(data: bytes) -> tuple[Problem, ...]:
    at = data.find(b"\0")
    if at < 0:
        return ()
    line = lines.count(data, at)
    return (Problem(code="nul_bytes", message=f"A NUL byte stands in line {line}.", line=line),)

"""Unpack an answer's body, never further than allowed."""

import zlib
from collections.abc import Iterable, Iterator
from typing import Final

from knapper.net.failures import NoAnswer, TooLarge, WrongType

_WINDOWS: Final = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}
_STEP: Final = 65_536
ACCEPTED: Final = "gzip, deflate"


def unpack(parts: Iterable[bytes], coding: str, *, max_bytes: int) -> bytes:
    """Join a body, decoded.

    Args:
        parts: As they come.
        coding: The header Content-Encoding.
        max_bytes: How long the result may be, and what came as well.

    Raises:
        TooLarge: It is longer, packed or unpacked.
        WrongType: The coding isn't one that was asked for.
        NoAnswer: What came is damaged.
    """
    name = coding.strip().lower()
    if name in {"", "identity"}:
        return b"".join(_within(parts, max_bytes))
    if name not in _WINDOWS:
        raise WrongType("the page is packed in a way that wasn't asked for", hint="try another page")
    return b"".join(_within(_inflate(_within(parts, max_bytes), _WINDOWS[name]), max_bytes))


def _within(parts: Iterable[bytes], max_bytes: int) -> Iterator[bytes]:
    size = 0
    for part in parts:
        size += len(part)
        if size > max_bytes:
            raise TooLarge(f"the page is longer than {max_bytes:,} bytes", hint="look for a shorter page on the same")
        yield part


def _inflate(parts: Iterable[bytes], window: int) -> Iterator[bytes]:
    stream = None
    try:
        for part in parts:
            if part:
                stream = stream or _Inflater(part, window)
                yield from stream.pour(part)
    except zlib.error as error:
        raise NoAnswer("the page came damaged", hint="try again, or another page") from error
    if stream is not None and not stream.is_whole():
        raise NoAnswer("the page came incomplete", hint="try again, or another page")


class _Inflater:
    def __init__(self, first: bytes, window: int) -> None:
        is_raw = window == zlib.MAX_WBITS and first[0] & 0x0F != zlib.DEFLATED  # what some servers send as deflate
        self._stream = zlib.decompressobj(-zlib.MAX_WBITS if is_raw else window)

    def pour(self, part: bytes) -> Iterator[bytes]:
        rest = part
        while not self._stream.eof:
            out = self._stream.decompress(rest, _STEP)
            yield out
            rest = self._stream.unconsumed_tail
            if not rest and len(out) < _STEP:
                return

    def is_whole(self) -> bool:
        return self._stream.eof

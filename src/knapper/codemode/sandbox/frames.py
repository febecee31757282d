"""Write and read the frames between the program and a worker: a letter, a length, and that many bytes."""

import struct
from collections.abc import Callable
from typing import Final, Literal

Letter = Literal["J", "A", "R", "C", "O", "D", "T"]
"""To a worker: a job, an answer. From it: ready, a call, output, done, a trap."""
_LETTERS: Final[tuple[Letter, ...]] = ("J", "A", "R", "C", "O", "D", "T")
_HEADER: Final = struct.Struct("<cI")
_JOB_HEADER: Final = struct.Struct("<dQII")
_READ_CHUNK: Final = 1 << 16


class BrokenFrame(Exception):
    """Input that isn't a frame, or is too large; nothing after it can be read."""


def pack(letter: Letter, content: bytes) -> bytes:
    """Build a frame."""
    return _HEADER.pack(letter.encode(), len(content)) + content


def read(receive: Callable[[int], bytes], most: int) -> tuple[Letter, bytes] | None:
    """Read one frame.

    Args:
        receive: Returns at most so many bytes, none at the end.
        most: Most bytes of the content; more are never requested.

    Returns:
        Its letter and content; None at the end.

    Raises:
        BrokenFrame: It isn't a frame, or is too large.
    """
    head = _read_exactly(receive, _HEADER.size)
    if head is None:
        return None
    length = int.from_bytes(head[1:], "little")
    letter: Letter | None = next((one for one in _LETTERS if one.encode() == head[:1]), None)
    if letter is None or length > most:
        raise BrokenFrame
    content = _read_exactly(receive, length)
    return None if content is None else (letter, content)


def pack_job(timeout_s: float, memory_bytes: int, sizes: tuple[int, int], job: bytes) -> bytes:
    """Build the content of a job's frame.

    Args:
        timeout_s: From start to result.
        memory_bytes: Memory limit of the script.
        sizes: Most bytes of output, and of one call.
        job: The guest's input, as JSON.
    """
    return _JOB_HEADER.pack(timeout_s, memory_bytes, *sizes) + job


def unpack_job(content: bytes) -> tuple[float, int, int, int, str]:
    """Read the content of a job's frame that `pack_job` built."""
    timeout_s, memory_bytes, output, call = _JOB_HEADER.unpack_from(content)
    return timeout_s, memory_bytes, output, call, content[_JOB_HEADER.size :].decode()


def _read_exactly(receive: Callable[[int], bytes], length: int) -> bytes | None:
    """Read so many bytes, a piece at a time, so that a length alone allocates nothing."""
    parts: list[bytes] = []
    missing = length
    while missing:
        part = receive(min(missing, _READ_CHUNK))
        if not part:
            return None
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)

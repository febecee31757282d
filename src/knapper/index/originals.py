"""Read a note as it is until a person has decided about the edits that wait in it."""

from bisect import bisect_right
from dataclasses import dataclass

from knapper.vault import pending, source
from knapper.vault.outline import Outline


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stretch:
    start: int
    """Where it begins in the original."""
    disk_start: int
    disk_stop: int
    """What stands for it on disk; a stretch that isn't waiting is as long there."""
    waiting: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Original:
    """Hold a note without its waiting blocks, each replaced by the text that it would change."""

    data: bytes
    stretches: tuple[_Stretch, ...]

    def place(self, start: int, stop: int) -> tuple[int, int]:
        """Find the span on disk that holds what stands here at *start* to *stop*."""
        first, last = self._at(start), self._at(max(start, stop - 1))
        begin = first.disk_start + (0 if first.waiting else start - first.start)
        end = last.disk_stop if last.waiting else last.disk_start + stop - last.start
        return begin, end

    def _at(self, offset: int) -> _Stretch:
        return self.stretches[bisect_right(self.stretches, offset, key=lambda stretch: stretch.start) - 1]


def restore(raw: bytes, outline: Outline) -> Original | None:
    """Put the text before each waiting edit in its block's place.

    A block that can't be read as an edit stays as it is.

    Returns:
        None where no edit waits.
    """
    blocks = [block for block in pending.find_pending(raw, outline) if block.kind is not None]
    if not blocks:
        return None
    data = source.decode(raw).data if outline.encoding == "utf-16" else raw
    parts: list[bytes] = []
    stretches: list[_Stretch] = []
    at, size = 0, 0
    for block in blocks:
        if block.start < at:
            continue
        before = block.before.encode(errors="replace")
        stretches.append(_Stretch(start=size, disk_start=at, disk_stop=block.start, waiting=False))
        size += block.start - at
        stretches.append(_Stretch(start=size, disk_start=block.start, disk_stop=block.tag_stop, waiting=True))
        size += len(before)
        parts += [data[at : block.start], before]
        at = block.tag_stop
    stretches.append(_Stretch(start=size, disk_start=at, disk_stop=len(data), waiting=False))
    return Original(data=b"".join([*parts, data[at:]]), stretches=tuple(stretches))

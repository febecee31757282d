"""The interface of transcribers: recordings, transcripts and errors."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO, Final, Protocol

from knapper.errors import SetupError

_BLOCK: Final = 1 << 20


class TranscriberError(SetupError):
    """Audio can't be transcribed; the code says why."""

    code = "transcriber"


@dataclass(frozen=True, slots=True, kw_only=True)
class Audio:
    """One recording, open for reading."""

    name: str
    """With its suffix, from which servers know the format."""
    content: BinaryIO
    """Positioned at the start; seekable."""
    size: int
    digest: str
    """SHA-256 of the whole content, hexadecimal."""

    @classmethod
    def measure(cls, name: str, content: BinaryIO) -> Audio:
        """Read size and digest of an open file, in pieces."""
        hasher = hashlib.sha256()
        size = 0
        _ = content.seek(0)
        while block := content.read(_BLOCK):
            hasher.update(block)
            size += len(block)
        _ = content.seek(0)
        return cls(name=name, content=content, size=size, digest=hasher.hexdigest())


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One speaker's uninterrupted words, or a sentence where speakers aren't told apart."""

    text: str
    start_s: float
    stop_s: float
    speaker: str = ""
    """``Speaker 1`` is the first to speak; empty where speakers aren't told apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """The text of a recording."""

    text: str
    segments: Sequence[Segment] = ()
    """In order; empty where the times aren't known."""
    language: str = ""
    duration_s: float = 0.0
    """0 where it isn't known."""
    model_id: str = ""
    """Id of the transcriber."""
    is_cached: bool = False
    """Whether it comes from the cache."""

    @property
    def shown(self) -> str:
        """Return the text, with a paragraph for each change of speaker where speakers are known.

        ``Speaker 1: Good morning.`` and ``Speaker 2: Hello.`` are two paragraphs.
        """
        if not any(segment.speaker for segment in self.segments):
            return self.text
        paragraphs: list[tuple[str, list[str]]] = []
        for segment in self.segments:
            if not paragraphs or paragraphs[-1][0] != segment.speaker:
                paragraphs.append((segment.speaker, []))
            paragraphs[-1][1].append(segment.text)
        return "\n\n".join(f"{speaker or 'Unknown'}: {' '.join(texts)}" for speaker, texts in paragraphs)


class Transcriber(Protocol):
    """A thread-safe transcriber of audio."""

    @property
    def model_id(self) -> str:
        """Return an id of the transcriber and its options, under which transcripts are cached."""
        ...

    @property
    def max_bytes(self) -> int:
        """Return the size limit of a recording."""
        ...

    def transcribe(self, audio: Audio) -> Transcript:
        """Transcribe a recording.

        Raises:
            TranscriberError: It can't be done; the code says why.
            Unreachable: The server doesn't answer, or not in time.
        """
        ...

    def close(self) -> None:
        """Release connections and models."""
        ...

"""Say what transcribers take and give."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO, Final, Protocol

from knapper.errors import SetupError

_BLOCK: Final = 1 << 20


class TranscriberError(SetupError):
    """Say that audio can't be transcribed; the code tells why."""

    code = "transcriber"


@dataclass(frozen=True, slots=True, kw_only=True)
class Audio:
    """One recording, open for reading."""

    name: str
    """With its ending, which tells servers what it is."""
    content: BinaryIO
    """At its beginning; can be read again from there."""
    size: int
    digest: str
    """SHA-256 of all of it, hexadecimal."""

    @classmethod
    def measure(cls, name: str, content: BinaryIO) -> Audio:
        """Measure an open file, a stretch at a time."""
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
    """What one speaker says in one go, or a sentence where speakers aren't told apart."""

    text: str
    start_s: float
    stop_s: float
    speaker: str = ""
    """``Speaker 1`` is whoever speaks first; empty where nobody is told apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """What was said."""

    text: str
    segments: Sequence[Segment] = ()
    """In order; empty where the times aren't known."""
    language: str = ""
    duration_s: float = 0.0
    """0 where it isn't known."""
    model_id: str = ""
    """What transcribed it."""
    is_cached: bool = False
    """It was transcribed earlier."""

    @property
    def shown(self) -> str:
        """Return the text, a paragraph for each change of speaker where speakers are known.

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
    """Turn audio into text; any thread may."""

    @property
    def model_id(self) -> str:
        """Name what transcribes, and with which options: transcripts of different ones aren't taken for each other."""
        ...

    @property
    def max_bytes(self) -> int:
        """Return how large a recording may be."""
        ...

    def transcribe(self, audio: Audio) -> Transcript:
        """Return what is said in a recording.

        Raises:
            TranscriberError: It can't be done, and the code tells who can mend that.
            Unreachable: The server doesn't answer, or not in time.
        """
        ...

    def close(self) -> None:
        """Let go of connections and models."""
        ...

"""Say what transcribing answers."""

from typing import NotRequired

from typing_extensions import TypedDict


class Said(TypedDict):
    """Show what is said in one go."""

    start: float
    """In seconds from the recording's beginning."""
    end: float
    text: str
    speaker: NotRequired[str]


class Recording(TypedDict):
    """Show what is said in one recording."""

    file: str
    """Its name."""
    path: str
    transcript: str
    """A paragraph for each change of speaker, where speakers are told apart."""
    cached: bool
    """Whether it had been transcribed before."""
    segments: NotRequired[list[Said]]
    language: NotRequired[str]
    duration_s: NotRequired[float]
    foreign: NotRequired[bool]
    """Whether it lies where other people's text does."""


class Failed(TypedDict):
    """Say why a recording couldn't be transcribed."""

    file: str
    error: str
    code: str
    hint: NotRequired[str]


class Transcripts(TypedDict):
    """List the transcripts of a note's recordings, in its order."""

    success: bool
    results: list[Recording]
    path: str
    message: NotRequired[str]
    errors: NotRequired[list[Failed]]

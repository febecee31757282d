"""Transcribe on this machine, by the library of the extra ``whisper``."""

import importlib
import threading
from collections.abc import Iterable
from functools import cached_property
from typing import BinaryIO, Final, Protocol, cast

from knapper import errors
from knapper.net.speech.transcripts import Audio, Segment, Transcriber, TranscriberError, Transcript

_LIBRARIES: Final = ("av", "ctranslate2", "huggingface_hub", "onnxruntime")
"""What the extra stands on; their errors have no root of their own."""
_HINT: Final = "check audio.model and the connection that it is fetched over; a model's folder will do too"


class Piece(Protocol):
    """Describe what the library says of one stretch."""

    text: str
    start: float
    end: float


class About(Protocol):
    """Describe what the library says of a whole recording."""

    language: str
    duration: float


class Model(Protocol):
    """Describe a loaded model of the library."""

    def transcribe(self, audio: BinaryIO, *, language: str | None, vad_filter: bool) -> tuple[Iterable[Piece], About]:
        """Give the stretches of speech, as they are found."""
        ...


class Models(Protocol):
    """Describe the library's class of models."""

    def __call__(self, model: str, *, device: str, compute_type: str) -> Model:
        """Load a model, and fetch it where it isn't here."""
        ...


class Whisper(Transcriber):
    """Run a model of the Whisper family, loaded on first use.

    Nothing that was said leaves the machine; who said it isn't told apart. One recording at a time: a second
    one would only make both slower.
    """

    def __init__(
        self, model: str, *, language: str = "", max_bytes: int = 2_000_000_000, models: Models | None = None
    ) -> None:
        """Take the settings.

        Args:
            model: Its name, such as ``small``, or its folder.
            language: Such as ``de``; empty lets the model find out.
            max_bytes: How large a recording may be.
            models: Stands in for the library's class.
        """
        self._name = model
        self._language = language
        self._limit = max_bytes
        self._models = models
        self._turn = threading.Lock()

    @property
    def model_id(self) -> str:
        """Name model and language."""
        return f"whisper|{self._name}|{self._language}"

    @property
    def max_bytes(self) -> int:
        """Tell how large a recording may be."""
        return self._limit

    def transcribe(self, audio: Audio) -> Transcript:
        """Transcribe here.

        Silence is left out before: the model hears words in it.

        Raises:
            TranscriberError: The extra isn't installed, the model can't be loaded, or the recording can't be read.
        """
        with self._turn:
            model = self._model
            _ = audio.content.seek(0)
            try:
                pieces, about = model.transcribe(audio.content, language=self._language or None, vad_filter=True)
                found = [
                    Segment(text=piece.text.strip(), start_s=round(piece.start, 3), stop_s=round(piece.end, 3))
                    for piece in pieces
                ]
            except Exception as error:
                if not errors.raised_by(error, *_LIBRARIES):
                    raise
                raise TranscriberError(
                    f"'{audio.name}' can't be transcribed ({type(error).__name__})",
                    hint="check that the file is what its ending says",
                    code="transcriber_refused",
                ) from error
        return Transcript(
            text=" ".join(segment.text for segment in found if segment.text),
            segments=found,
            language=str(about.language),
            duration_s=round(float(about.duration), 3),
            model_id=self.model_id,
        )

    def close(self) -> None:
        """Leave the model to the memory's care."""

    @cached_property
    def _model(self) -> Model:
        models = self._models or _installed()
        try:
            return models(self._name, device="auto", compute_type="default")
        except Exception as error:
            if not errors.raised_by(error, *_LIBRARIES):
                raise
            raise TranscriberError(
                f"the model '{self._name}' can't be loaded ({type(error).__name__})",
                hint=_HINT,
                code="transcriber_model",
            ) from error


def _installed() -> Models:
    try:
        return cast("Models", importlib.import_module("faster_whisper").WhisperModel)
    except ImportError as error:
        raise TranscriberError(
            "audio.provider is whisper, and the library for it isn't installed",
            hint="run: pip install 'knapper[whisper]'",
            code="transcriber_extra",
        ) from error

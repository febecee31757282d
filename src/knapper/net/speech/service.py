"""Choose a transcriber (a server or Whisper on this machine), and cache its transcripts."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import ipaddress
import json
import os
import threading
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, Final, Literal, Protocol
from urllib.parse import urlsplit

from knapper import errors, extras
from knapper.jsontypes import JSONValue, is_list, loads, object_or_empty
from knapper.net.speech.remote import (
    Audio,
    RemoteTranscriber,
    Segment,
    ServerOptions,
    Transcriber,
    TranscriberError,
    Transcript,
)
from knapper.system import private

_LIBRARIES: Final = ("av", "ctranslate2", "huggingface_hub", "onnxruntime")
"""Packages that the extra depends on; their errors have no common base class."""
_MODEL_HINT: Final = "check audio.model and the connection that it is fetched over; a model's folder will do too"


class WhisperSegment(Protocol):
    """One segment, as the library has it."""

    text: str
    start: float
    end: float


class WhisperInfo(Protocol):
    """Facts about a whole recording, as the library has them."""

    language: str
    duration: float


class WhisperModel(Protocol):
    """A loaded model, as the library has it."""

    def transcribe(
        self, audio: BinaryIO, *, language: str | None, vad_filter: bool
    ) -> tuple[Iterable[WhisperSegment], WhisperInfo]:
        """Return the segments of speech as they are recognised."""
        ...


class WhisperModelFactory(Protocol):
    """The library's class of models."""

    def __call__(self, model: str, *, device: str, compute_type: str) -> WhisperModel:
        """Load a model; download it where it isn't on this machine."""
        ...


class WhisperTranscriber(Transcriber):
    """A model of the Whisper family, loaded on first use.

    The audio doesn't leave the machine; speakers aren't told apart. Recordings are transcribed one at a time: a
    second one in parallel would only slow both down.
    """

    def __init__(
        self,
        model: str,
        *,
        language: str = "",
        max_bytes: int = 2_000_000_000,
        models: WhisperModelFactory | None = None,
    ) -> None:
        """Set the model; it is loaded on first use.

        Args:
            model: Its name, such as ``small``, or its folder.
            language: Such as ``de``; empty lets the model detect it.
            max_bytes: Size limit of a recording.
            models: Replaces the library's class, for tests.
        """
        self._name = model
        self._language = language
        self._limit = max_bytes
        self._models = models
        self._lock = threading.Lock()

    @property
    def model_id(self) -> str:
        """Return an id of model and language."""
        return f"whisper|{self._name}|{self._language}"

    @property
    def max_bytes(self) -> int:
        """Return the size limit of a recording."""
        return self._limit

    def transcribe(self, audio: Audio) -> Transcript:
        """Transcribe on this machine.

            Silence is removed first, because the model hallucinates words in it.

        Raises:
            TranscriberError: The extra isn't installed, the model can't be loaded, or the recording can't be read.
        """
        with self._lock:
            model = self._model
            _ = audio.content.seek(0)
            try:
                speech_segments, info = model.transcribe(
                    audio.content, language=self._language or None, vad_filter=True
                )
                segments = [
                    Segment(text=piece.text.strip(), start_s=round(piece.start, 3), stop_s=round(piece.end, 3))
                    for piece in speech_segments
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
            text=" ".join(segment.text for segment in segments if segment.text),
            segments=segments,
            language=str(info.language),
            duration_s=round(float(info.duration), 3),
            model_id=self.model_id,
        )

    def close(self) -> None:
        """Do nothing: the model is freed with the object."""

    @cached_property
    def _model(self) -> WhisperModel:
        models = self._models
        if models is None:
            try:
                models = importlib.import_module("faster_whisper").WhisperModel
            except ImportError as error:
                raise extras.missing(
                    "audio", "audio.provider = whisper", error=TranscriberError, code="transcriber_extra"
                ) from error
        try:
            return models(self._name, device="auto", compute_type="default")
        except Exception as error:
            if not errors.raised_by(error, *_LIBRARIES):
                raise
            raise TranscriberError(
                f"the model '{self._name}' can't be loaded ({type(error).__name__})",
                hint=_MODEL_HINT,
                code="transcriber_model",
            ) from error


MAX_TRANSCRIPTS: Final = 2_000
"""Limit of cached transcripts; the least recently used are removed first."""
_FILE_VERSION: Final = 1


class TranscriptStore:
    """A folder of transcripts, one file each, by a recording's content and its transcriber."""

    def __init__(self, folder: Path, *, most: int = MAX_TRANSCRIPTS) -> None:
        """Use *folder*, which is created with the first transcript; at most so many are kept."""
        self._folder = folder
        self._most = most

    def find(self, digest: str, model_id: str) -> Transcript | None:
        """Return the cached transcript; None where there is none, or it is damaged."""
        file = self._file(digest, model_id)
        try:
            transcript = _read_transcript(object_or_empty(loads(file.read_text(encoding="utf-8"))))
        except (OSError, ValueError, TypeError, LookupError, RecursionError):
            return None
        if transcript is None or transcript.model_id != model_id:
            return None
        # The time of the last use decides which transcripts are removed first.
        with contextlib.suppress(OSError):
            os.utime(file)
        return replace(transcript, is_cached=True)

    def save(self, digest: str, transcript: Transcript) -> None:
        """Save a transcript; a failure of the disk is ignored, as it can be made again."""
        file = self._file(digest, transcript.model_id)
        with contextlib.suppress(OSError):
            private.make_folder(self._folder)
            record = {"form": _FILE_VERSION, **asdict(transcript)}
            private.write_text(file, json.dumps(record, ensure_ascii=False))
            cached_files = [*self._folder.glob("*.json")]
            if len(cached_files) > self._most:
                by_age = sorted(cached_files, key=lambda one: one.stat().st_mtime_ns)
                for old in by_age[: len(cached_files) - self._most]:
                    old.unlink(missing_ok=True)

    def _file(self, digest: str, model_id: str) -> Path:
        name = hashlib.sha256(f"{digest}\n{model_id}".encode()).hexdigest()
        return self._folder / f"{name}.json"


class CachedTranscriber(Transcriber):
    """A transcriber with a cache."""

    def __init__(self, transcriber: Transcriber, store: TranscriptStore) -> None:
        """Cache the transcripts of *transcriber* in *store*."""
        self._transcriber = transcriber
        self._store = store

    @property
    def model_id(self) -> str:
        """Return the transcriber's id."""
        return self._transcriber.model_id

    @property
    def max_bytes(self) -> int:
        """Return the size limit of a recording."""
        return self._transcriber.max_bytes

    def transcribe(self, audio: Audio) -> Transcript:
        """Return the cached transcript, or transcribe; errors are the transcriber's, and aren't cached."""
        cached = self._store.find(audio.digest, self.model_id)
        if cached is not None:
            return cached
        transcript = replace(self._transcriber.transcribe(audio), model_id=self.model_id)
        # Not cached where the recording went on meanwhile: the transcript isn't that of the digest.
        if Audio.measure(audio.name, audio.content).digest == audio.digest:
            self._store.save(audio.digest, transcript)
        return transcript

    def close(self) -> None:
        """Close the transcriber."""
        self._transcriber.close()


def _read_transcript(record: Mapping[str, JSONValue]) -> Transcript | None:
    rows = record["segments"]
    if record["form"] != _FILE_VERSION or not isinstance(record["text"], str) or not is_list(rows):
        return None
    segments = [
        Segment(
            text=str(one["text"]),
            start_s=float(str(one["start_s"])),
            stop_s=float(str(one["stop_s"])),
            speaker=str(one["speaker"]),
        )
        for one in map(object_or_empty, rows)
    ]
    return Transcript(
        text=record["text"],
        segments=segments,
        language=str(record["language"]),
        duration_s=float(str(record["duration_s"])),
        model_id=str(record["model_id"]),
    )


SpeechAccess = Literal["auto", "off", "local", "on"]
SpeechProvider = Literal["auto", "fireworks", "openai", "server", "whisper"]
_ChosenProvider = Literal["fireworks", "openai", "server", "whisper"]

_FIREWORKS: Final = "https://audio-prod.api.fireworks.ai/v1"
_FIREWORKS_TURBO: Final = "https://audio-turbo.api.fireworks.ai/v1"
_OPENAI: Final = "https://api.openai.com/v1"
_OPENAI_BYTES: Final = 25_000_000
"""OpenAI's size limit."""
_DEFAULT_MODELS: Final = {"fireworks": "whisper-v3", "openai": "whisper-1", "server": "whisper-1", "whisper": "small"}
_KEY_VARIABLES: Final = {"fireworks": "FIREWORKS_API_KEY", "openai": "OPENAI_API_KEY"}
_TRANSCRIPTIONS_PATH: Final = "/audio/transcriptions"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechSettings:
    """The configured settings of transcription."""

    access: SpeechAccess = "auto"
    """``auto``: allowed where a provider, an address or a key is set. ``local``: nothing leaves the machine."""
    provider: SpeechProvider = "auto"
    """``auto``: the server at *base_url*, else Fireworks."""
    model: str = ""
    """Empty for the provider's default; so is Fireworks' default, which no other provider has."""
    base_url: str = ""
    api_key: str = field(default="", repr=False)
    fireworks_key: str = field(default="", repr=False)
    """Sent to Fireworks only, where *api_key* is empty."""
    openai_key: str = field(default="", repr=False)
    """Sent to OpenAI only, where *api_key* is empty."""
    language: str = ""
    max_bytes: int = 200_000_000
    timeout_s: float = 600.0
    env_proxies: bool = False


def open_transcriber(settings: SpeechSettings, *, folder: Path | None = None) -> Transcriber:
    """Open the configured transcriber; nothing is requested or loaded before the first recording.

    Args:
        settings: The configured settings.
        folder: Cache of transcripts; None for no cache.

    Raises:
        SetupError: It isn't allowed, or something is missing.
    """
    transcriber = _choose_transcriber(settings)
    return transcriber if folder is None else CachedTranscriber(transcriber, TranscriptStore(folder))


def is_loopback(base_url: str) -> bool:
    """Return whether an address is this machine's own, without a name look-up."""
    try:
        host = urlsplit(base_url).hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _choose_transcriber(settings: SpeechSettings) -> Transcriber:
    provider: _ChosenProvider = settings.provider if settings.provider != "auto" else "fireworks"
    if settings.provider == "auto" and settings.base_url:
        provider = "server"
    key = settings.api_key
    # A provider's key must not be sent to another address.
    if not key and not settings.base_url:
        key = {"fireworks": settings.fireworks_key, "openai": settings.openai_key}.get(provider, "")
    if settings.access == "off":
        raise _disabled_error("audio.access is off", "set audio.access to auto, local or on")
    if settings.access == "auto" and settings.provider == "auto" and not (settings.base_url or key):
        raise _disabled_error(
            "neither FIREWORKS_API_KEY nor audio.base_url is set",
            "set one of them; or audio.provider = whisper, which keeps all on this machine",
        )
    model = _DEFAULT_MODELS[provider] if settings.model in {"", _DEFAULT_MODELS["fireworks"]} else settings.model
    if provider == "whisper":
        return WhisperTranscriber(model, language=settings.language, max_bytes=settings.max_bytes)
    # It ends before ``/audio/transcriptions``.
    base_url = settings.base_url.strip().rstrip("/").removesuffix(_TRANSCRIPTIONS_PATH).rstrip("/")
    if base_url and base_url.count("/") == 2:
        base_url += "/v1"
    elif not base_url and provider == "fireworks":
        base_url = _FIREWORKS_TURBO if "turbo" in model else _FIREWORKS
    elif not base_url and provider == "openai":
        base_url = _OPENAI
    _check_choice(settings, provider, base_url, key)
    limit = _OPENAI_BYTES if base_url == _OPENAI else settings.max_bytes
    return RemoteTranscriber(
        ServerOptions(
            form=provider,
            base_url=base_url,
            model=model,
            api_key=key,
            language=settings.language,
            timeout_s=settings.timeout_s,
            max_bytes=min(limit, settings.max_bytes),
            env_proxies=settings.env_proxies,
        )
    )


def _check_choice(settings: SpeechSettings, provider: _ChosenProvider, base_url: str, key: str) -> None:
    if not base_url:
        raise TranscriberError(
            "audio.provider is server, and audio.base_url isn't set",
            hint="for example base_url = http://localhost:8000/v1",
            code="audio_address",
        )
    if settings.access == "local" and not is_loopback(base_url):
        raise TranscriberError(
            "audio.access is local, and the server isn't on this machine",
            hint="set audio.provider to whisper, or audio.base_url to a server on localhost, or audio.access to on",
            code="audio_local",
        )
    if provider in _KEY_VARIABLES and not key and not settings.base_url:
        raise TranscriberError(
            f"{_KEY_VARIABLES[provider]} isn't set",
            hint="set it, or audio.api_key; or transcribe on this machine with audio.provider = whisper",
            code="audio_key",
        )


def _disabled_error(reason: str, hint: str) -> TranscriberError:
    return TranscriberError(f"audio isn't transcribed: {reason}", hint=hint, code="audio_off")

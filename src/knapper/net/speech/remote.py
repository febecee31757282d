"""Transcribe with a server that has OpenAI's API, and parse its responses."""

from __future__ import annotations

import hashlib
import json
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import BinaryIO, Final, Literal, NoReturn, Protocol

from knapper.errors import SetupError
from knapper.jsontypes import is_list, is_object, replace_surrogates
from knapper.net.client import HttpClient, HttpResponse, Upload

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


_ERROR_CODE: Final = re.compile(r"\w{1,60}", re.ASCII)
_MAX_SEGMENTS: Final = 500_000
"""Limit of segments or words in a response."""

_JsonObject = Mapping[str, object]


def parse_transcript(body: bytes) -> Transcript:
    """Parse a transcript.

    Speakers come from the segments, from speaker segments, or else from the words, numbered in order of appearance.

    Raises:
        ValueError: The response is invalid; the message contains none of its text.
    """
    try:
        answer: object = json.loads(body)
    except (ValueError, RecursionError):
        kind = "HTML" if body.lstrip()[:1] == b"<" else "no JSON"
        raise ValueError(f"it is {kind}") from None
    fields = _as_object(answer)
    text = _transcript_text(fields)
    segments = _pick_segments(fields)
    # In order of appearance: servers' own labels have no meaning.
    labels = dict.fromkeys(segment.speaker for segment in segments if segment.speaker)
    names = {label: f"Speaker {number}" for number, label in enumerate(labels, 1)} | {"": ""}
    segments = [replace(segment, speaker=names[segment.speaker]) for segment in segments]
    language = fields.get("language")
    return Transcript(
        text=text.strip(),
        segments=segments,
        language=replace_surrogates(language[:40]) if isinstance(language, str) else "",
        duration_s=_read_seconds(fields.get("duration")) or (segments[-1].stop_s if segments else 0.0),
    )


def read_error_code(body: bytes) -> str:
    """Return a server's short error code; empty where there is none.

    A server's error message may repeat what was sent, so it is never shown.
    """
    try:
        error: object = json.loads(body)["error"]
    except (ValueError, RecursionError, LookupError, TypeError):
        return ""
    codes = (str(_as_object(error).get(name) or "") for name in ("code", "type"))
    return next((code for code in codes if _ERROR_CODE.fullmatch(code)), "")


def _as_object(value: object) -> _JsonObject:
    return value if is_object(value) else dict[str, object]()


def _transcript_text(fields: _JsonObject) -> str:
    match fields.get("text"):
        case str(text):
            return replace_surrogates(text)
        case _:
            raise ValueError("it has no text")


def _pick_segments(fields: _JsonObject) -> list[Segment]:
    segments = [*_read_segments(fields.get("segments"), "text")]
    speaker_turns = [*_read_segments(fields.get("speaker_segments"), "text")]
    if speaker_turns and not any(one.speaker for one in segments):
        return speaker_turns
    words = [*_read_segments(fields.get("words"), "word")]
    segments_have_speakers = bool(segments) and all(one.speaker for one in segments)
    if any(one.speaker for one in words) and not segments_have_speakers:
        turns = [list(turn) for _, turn in groupby(words, key=lambda word: word.speaker)]
        return [replace(turn[0], text=" ".join(word.text for word in turn), stop_s=turn[-1].stop_s) for turn in turns]
    return segments


def _read_segments(rows: object, name: str) -> Iterator[Segment]:
    if not is_list(rows):
        return
    for row in rows[:_MAX_SEGMENTS]:
        values = _as_object(row)
        text = values.get(name)
        if isinstance(text, str) and text.strip():
            start, stop = _read_seconds(values.get("start")), _read_seconds(values.get("end"))
            speaker = values.get("speaker_id") or values.get("speaker")
            yield Segment(
                text=replace_surrogates(text).strip(),
                start_s=start,
                stop_s=max(start, stop),
                speaker="" if speaker is None else str(speaker)[:80],
            )


def _read_seconds(value: object) -> float:
    """Read seconds; 0 for an invalid value."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return 0.0
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0.0
    return round(float(value), 3) if math.isfinite(value) and 0 <= value < 1e9 else 0.0


ServerKind = Literal["fireworks", "openai", "server"]
FormFields = Mapping[str, str | list[str]]

_BUSY_STATUSES: Final = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
"""Statuses of temporary failures, after which the request is sent again."""
_RETRY_WAITS_S: Final = (2.0,)
_MAX_ANSWER_BYTES: Final = 64_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """A server's address, key and options."""

    form: ServerKind
    base_url: str
    """Address up to, and without, ``/audio/transcriptions``."""
    model: str
    api_key: str = ""
    language: str = ""
    """Such as ``de``; empty lets the model detect it."""
    timeout_s: float = 600.0
    """Time for sending a recording and reading the whole response."""
    max_bytes: int = 200_000_000
    env_proxies: bool = False


class RemoteTranscriber(Transcriber):
    """A client of ``/v1/audio/transcriptions``; recordings are streamed from the disk."""

    def __init__(self, access: ServerOptions, *, pause: Callable[[float], None] = time.sleep) -> None:
        """Check the address and the key; the first request is sent on first use.

        Args:
            access: Its address, key and options.
            pause: Sleeps some seconds before a recording is sent again.

        Raises:
            SetupError: The address or the key can't be used.
        """
        self._access = access
        self._client = HttpClient(
            access.base_url, api_key=access.api_key, max_bytes=_MAX_ANSWER_BYTES, env_proxies=access.env_proxies
        )
        self._pause = pause

    @property
    def model_id(self) -> str:
        """Return an id of server, model and language."""
        access = self._access
        return "|".join((access.form, self._client.origin, access.model, access.language))

    @property
    def max_bytes(self) -> int:
        """Return the size limit of a recording."""
        return self._access.max_bytes

    def transcribe(self, audio: Audio) -> Transcript:
        """Send a recording, and read the server's transcript.

        A server that doesn't support the verbose response format is asked for the simple one, without times.

        Raises:
            TranscriberError: The server refuses, fails, or its response can't be read.
            Unreachable: The server doesn't answer, or not in time.
        """
        answer = self._send(audio, form_fields(self._access))
        if answer.status == 400 and self._access.form == "server":
            answer = self._send(audio, form_fields(self._access, short=True))
        if answer.status != 200:
            self._raise_refusal(answer)
        try:
            transcript = parse_transcript(answer.body)
        except ValueError as error:
            raise TranscriberError(
                f"the answer of {self._client.origin} can't be used: {error}",
                hint="check that audio.base_url is an API of OpenAI's form, and that audio.model transcribes",
                code="transcriber_answer",
            ) from error
        return replace(transcript, model_id=self.model_id)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _send(self, audio: Audio, form: FormFields) -> HttpResponse:
        """Send a recording, again after a temporary failure."""
        for wait_s in _RETRY_WAITS_S:
            answer = self._post(audio, form)
            if answer.status not in _BUSY_STATUSES:
                return answer
            self._pause(wait_s)
        return self._post(audio, form)

    def _post(self, audio: Audio, form: FormFields) -> HttpResponse:
        _ = audio.content.seek(0)
        upload = Upload(name=audio.name, content=audio.content, fields=form)
        return self._client.upload("audio/transcriptions", upload, timeout_s=self._access.timeout_s)

    def _raise_refusal(self, answer: HttpResponse) -> NoReturn:
        origin, model = self._client.origin, self._access.model
        error_code = read_error_code(answer.body)
        status_text = f"HTTP {answer.status}{f', {error_code}' if error_code else ''}"
        if answer.status in {401, 403}:
            raise TranscriberError(
                f"{origin} refuses the API key ({status_text})", hint="set audio.api_key", code="transcriber_key"
            )
        if answer.status == 413:
            raise TranscriberError(
                f"{origin} doesn't take a recording of this size ({status_text})",
                hint="split it, or save it in a format that is smaller, such as m4a",
                code="transcriber_too_large",
            )
        if answer.status in _BUSY_STATUSES:
            raise TranscriberError(
                f"{origin} can't transcribe now ({status_text})",
                hint="it is overloaded, or the account's limit is reached; try again later",
                code="transcriber_busy",
            )
        raise TranscriberError(
            f"{origin} doesn't transcribe this with model '{model}' ({status_text})",
            hint="check audio.model and audio.base_url, and that the file is what its ending says",
            code="transcriber_refused",
        )


def form_fields(access: ServerOptions, *, short: bool = False) -> FormFields:
    """Return the form fields of a recording; Fireworks has parameters of its own for telling speakers apart."""
    form: dict[str, str | list[str]] = {"model": access.model}
    if access.language:
        form["language"] = access.language
    if short:
        return {**form, "response_format": "json"}
    if access.form == "fireworks":
        times = "word,segment"
        return {**form, "response_format": "verbose_json", "timestamp_granularities": times, "diarize": "true"}
    if access.form == "openai" and "diarize" in access.model:
        return {**form, "response_format": "diarized_json", "chunking_strategy": "auto"}
    if access.form == "openai" and not access.model.startswith("whisper"):
        return {**form, "response_format": "json"}
    return {**form, "response_format": "verbose_json"}

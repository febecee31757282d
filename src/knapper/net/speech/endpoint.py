"""Transcribe with a server that speaks OpenAI's protocol: Fireworks, OpenAI, or one of one's own."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, NoReturn

from knapper.net.client import Answer, Client, Unreachable, Upload
from knapper.net.speech import answers
from knapper.net.speech.transcripts import Audio, Transcriber, TranscriberError, Transcript

Form = Literal["fireworks", "openai", "server"]
Fields = Mapping[str, str | list[str]]

_BUSY: Final = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
"""Statuses that may be another one a moment later."""
_WAITS_S: Final = (2.0,)
_ANSWER_BYTES: Final = 64_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Say where a server is, and how it is asked."""

    form: Form
    base_url: str
    """With the path that ends before ``/audio/transcriptions``."""
    model: str
    api_key: str = ""
    language: str = ""
    """Such as ``de``; empty lets the model find out."""
    timeout_s: float = 600.0
    """For sending a recording and reading the whole answer."""
    max_bytes: int = 200_000_000
    env_proxies: bool = False


class Endpoint(Transcriber):
    """Ask ``/v1/audio/transcriptions``; recordings are sent as they are read from the disk."""

    def __init__(self, access: Access, *, pause: Callable[[float], None] = time.sleep) -> None:
        """Check the address and the key; the server is asked on first use.

        Args:
            access: Where it is.
            pause: Waits some seconds before a recording is sent again.

        Raises:
            SetupError: The address or the key can't be used.
        """
        self._access = access
        self._client = Client(
            access.base_url, api_key=access.api_key, max_bytes=_ANSWER_BYTES, env_proxies=access.env_proxies
        )
        self._pause = pause

    @property
    def model_id(self) -> str:
        """Name server, model and language."""
        access = self._access
        return "|".join((access.form, self._client.place, access.model, access.language))

    @property
    def max_bytes(self) -> int:
        """Tell how large a recording may be."""
        return self._access.max_bytes

    def transcribe(self, audio: Audio) -> Transcript:
        """Send a recording, and read what the server makes of it.

        A server that doesn't know the long form of answers is asked for the short one, without times.

        Raises:
            TranscriberError: The server refuses, fails, or gives what can't be read.
            Unreachable: It doesn't answer, or not in time.
        """
        answer = self._send(audio, fields(self._access))
        if answer.status == 400 and self._access.form == "server":
            answer = self._send(audio, fields(self._access, short=True))
        if answer.status != 200:
            self._refuse(answer)
        try:
            read = answers.transcript(answer.body)
        except ValueError as error:
            raise TranscriberError(
                f"the answer of {self._client.place} can't be used: {error}",
                hint="check that audio.base_url is an API of OpenAI's form, and that audio.model transcribes",
                code="transcriber_answer",
            ) from error
        return replace(read, model_id=self.model_id)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _send(self, audio: Audio, said: Fields) -> Answer:
        """Send a recording, again where the failure may pass."""
        for wait_s in _WAITS_S:
            answer = self._post(audio, said)
            if answer.status not in _BUSY:
                return answer
            self._pause(wait_s)
        return self._post(audio, said)

    def _post(self, audio: Audio, said: Fields) -> Answer:
        _ = audio.content.seek(0)
        sent = Upload(name=audio.name, content=audio.content, fields=said)
        return self._client.upload("audio/transcriptions", sent, timeout_s=self._access.timeout_s)

    def _refuse(self, answer: Answer) -> NoReturn:
        place, model = self._client.place, self._access.model
        why = answers.reason(answer.body)
        said = f"HTTP {answer.status}{f', {why}' if why else ''}"
        if answer.status in {401, 403}:
            raise TranscriberError(
                f"{place} refuses the API key ({said})", hint="set audio.api_key", code="transcriber_key"
            )
        if answer.status == 413:
            raise TranscriberError(
                f"{place} doesn't take a recording of this size ({said})",
                hint="split it, or save it in a format that is smaller, such as m4a",
                code="transcriber_too_large",
            )
        if answer.status in _BUSY:
            raise TranscriberError(
                f"{place} can't transcribe now ({said})",
                hint="it is overloaded, or the account's limit is reached; try again later",
                code="transcriber_busy",
            )
        raise TranscriberError(
            f"{place} doesn't transcribe this with model '{model}' ({said})",
            hint="check audio.model and audio.base_url, and that the file is what its ending says",
            code="transcriber_refused",
        )


def fields(access: Access, *, short: bool = False) -> Fields:
    """Give the form that goes with a recording; only Fireworks is asked to tell speakers apart in its own words."""
    said: dict[str, str | list[str]] = {"model": access.model}
    if access.language:
        said["language"] = access.language
    if short:
        return {**said, "response_format": "json"}
    if access.form == "fireworks":
        times = "word,segment"
        return {**said, "response_format": "verbose_json", "timestamp_granularities": times, "diarize": "true"}
    if access.form == "openai" and "diarize" in access.model:
        return {**said, "response_format": "diarized_json", "chunking_strategy": "auto"}
    if access.form == "openai" and not access.model.startswith("whisper"):
        return {**said, "response_format": "json"}
    return {**said, "response_format": "verbose_json"}


__all__ = ["Access", "Endpoint", "Fields", "Form", "Unreachable", "fields"]

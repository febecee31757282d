"""Embed with a server that speaks OpenAI's protocol: Ollama, LM Studio, or a hosted one."""

import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from knapper.index.embed import EmbedderAway, EmbedderError, EmbedderStopped, EmbedSettings
from knapper.index.embedders import answers, prefixes
from knapper.index.embedders.forms import clean, normalise
from knapper.net.client import HttpClient, HttpResponse, Unreachable

_PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
"""Statuses that may be another one a moment later."""
_TOO_MUCH = frozenset({400, 413, 422})
"""Statuses that servers give to a batch or a text that is too long for them."""
_SHORTEST_CUT = 200
"""Characters; a shorter text isn't too long for any model."""
_GLANCE_S = 0.1
"""How often is looked whether a request is still wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Patience:
    timeout_s: float
    waits_s: tuple[float, ...]
    """Before each further try."""
    longest_wait_s: float
    """A server that asks for more than this is given up."""
    stop: threading.Event | None = None
    """Ends the waits."""


class _TooMuchError(EmbedderError):
    """Say that the server refuses the texts as they are."""


class _BusyError(EmbedderAway):
    """Say that the same request may succeed in a moment."""

    asked_s = 0.0
    """How long the server asks to be left alone."""


class Endpoint:
    """Ask ``/v1/embeddings``, a batch at a time, one request of passages after the other."""

    instant = False

    def __init__(self, settings: EmbedSettings, *, pause: Callable[[float], None] = time.sleep) -> None:
        """Check the settings; the server is asked on first use.

        Args:
            settings: The model and the address; a path of ``/v1`` is added to an address without one.
            pause: Waits some seconds before a request is sent again.

        Raises:
            EmbedderError: No model or no address is set.
            SetupError: The address or the key can't be used.
        """
        if not settings.model or not settings.base_url:
            missing = "model" if settings.base_url else "base_url"
            raise EmbedderError(
                f"embeddings.kind is endpoint, and embeddings.{missing} isn't set",
                hint="for example base_url = http://localhost:11434/v1 and model = nomic-embed-text",
            )
        self.model_id = prefixes.model_id("endpoint", settings)
        self._settings = settings
        self._prefixes = prefixes.choose(settings)
        self._client = HttpClient(_base(settings.base_url), api_key=settings.api_key, env_proxies=settings.env_proxies)
        self._pause = pause
        self._turn = threading.Lock()
        self._dimensions = 0
        self._patient = _Patience(timeout_s=settings.timeout_s, waits_s=(0.5, 1.0, 2.0, 4.0), longest_wait_s=60.0)
        self._quick = _Patience(timeout_s=min(settings.timeout_s, 10.0), waits_s=(0.2,), longest_wait_s=1.0)

    @property
    def dimensions(self) -> int:
        """Count a vector's numbers; the server is asked where it hasn't said yet."""
        if not self._dimensions:
            self._ask(["dimensions"], self._quick)
        return self._dimensions

    def passages(self, texts: Sequence[str], *, stop: threading.Event | None = None) -> NDArray[np.float32]:
        """Embed texts that will be searched, as rows.

        A text that is too long for the model is embedded by its beginning.

        Args:
            texts: What is embedded.
            stop: No further request is sent once it is set, and none is waited for.

        Raises:
            EmbedderStopped: *stop* was set.
            EmbedderAway: The server can't be reached, or is overloaded.
            EmbedderError: The server refuses, or its answer can't be used.
        """
        wanted = [place for place, text in enumerate(texts) if text.strip()]
        found: list[NDArray[np.float32]] = []
        patience = replace(self._patient, stop=stop)
        for at in range(0, len(wanted), self._settings.batch):
            batch = [self._prefixes.passage + texts[place] for place in wanted[at : at + self._settings.batch]]
            with self._turn:
                found.append(self._fit(batch, patience))
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        if found:
            rows[wanted] = np.concatenate(found)
        return normalise(rows)

    def query(self, text: str) -> NDArray[np.float32]:
        """Embed a question, with less patience than passages.

        Raises:
            EmbedderAway: The server can't be reached, or is overloaded.
            EmbedderError: The server refuses, or its answer can't be used.
        """
        if not text.strip():
            return np.zeros(self.dimensions, np.float32)
        return normalise(self._fit([self._prefixes.query + text], self._quick))[0]

    def close(self) -> None:
        """Close the connections; the endpoint can't be asked afterwards."""
        self._client.close()

    def _fit(self, texts: Sequence[str], patience: _Patience) -> NDArray[np.float32]:
        """Embed texts; where the server says that they are too much, in halves."""
        try:
            return self._ask(texts, patience)
        except _TooMuchError:
            half = len(texts) // 2
            if half:
                return np.concatenate([self._fit(texts[:half], patience), self._fit(texts[half:], patience)])
            if len(texts[0]) <= _SHORTEST_CUT:
                raise
            return self._fit([texts[0][: len(texts[0]) // 2]], patience)

    def _ask(self, texts: Sequence[str], patience: _Patience) -> NDArray[np.float32]:
        payload = {"model": self._settings.model, "input": [clean(text) for text in texts]}
        answer = self._send(payload, patience)
        if answer.status != 200:
            self._refuse(answer)
        try:
            rows = answers.vectors(answer.body, len(texts))
        except ValueError as error:
            raise EmbedderError(
                f"the answer of {self._client.place} can't be used: {error}",
                hint="check that embeddings.base_url is an API of OpenAI's form, and that embeddings.model embeds text",
                code="embedder_answer",
            ) from error
        if self._dimensions not in {0, rows.shape[1]}:
            raise EmbedderError(
                f"{self._client.place} gave vectors of {rows.shape[1]} numbers where it gave {self._dimensions} before",
                hint="the model behind the name was changed; start again",
                code="embedder_answer",
            )
        self._dimensions = rows.shape[1]
        return rows

    def _send(self, payload: object, patience: _Patience) -> HttpResponse:
        """Send a request, again and again while its failure may pass."""
        for wait_s in patience.waits_s:
            self._wait(0, patience.stop)
            try:
                return self._try(payload, patience)
            except _BusyError as error:
                if error.asked_s > patience.longest_wait_s:
                    raise
                self._wait(max(wait_s, error.asked_s), patience.stop)
        return self._try(payload, patience)

    def _wait(self, seconds: float, stop: threading.Event | None) -> None:
        if stop is None and seconds:
            self._pause(seconds)
        elif stop is not None and stop.wait(seconds):
            raise _stopped()

    def _try(self, payload: object, patience: _Patience) -> HttpResponse:
        if patience.stop is None:
            return self._post(payload, patience.timeout_s)
        return _unless(patience.stop, lambda: self._post(payload, patience.timeout_s))

    def _post(self, payload: object, timeout_s: float) -> HttpResponse:
        try:
            answer = self._client.post("embeddings", payload, timeout_s=timeout_s)
        except Unreachable as error:
            kind = EmbedderAway if error.code == "timeout" else _BusyError
            raise kind(error.message, hint=error.hint) from error
        if answer.status in _PASSING:
            busy = _BusyError(
                f"{self._client.place} can't embed now (HTTP {answer.status}{_why(answer)})",
                hint="it is overloaded, or the account's limit is reached; search by words goes on",
            )
            busy.asked_s = answers.retry_after_s(answer.headers)
            raise busy
        return answer

    def _refuse(self, answer: HttpResponse) -> NoReturn:
        model, place = self._settings.model, self._client.place
        said = f"HTTP {answer.status}{_why(answer)}"
        if answer.status in {401, 403}:
            raise EmbedderError(
                f"{place} refuses the API key ({said})", hint="set embeddings.api_key", code="embedder_key"
            )
        if answer.status in _TOO_MUCH:
            raise _TooMuchError(
                f"{place} can't embed with model '{model}' ({said})",
                hint="check embeddings.model",
                code="embedder_refused",
            )
        if 300 <= answer.status < 400:
            raise EmbedderError(
                f"{place} sends elsewhere ({said})",
                hint="set embeddings.base_url to the address that it means; redirects aren't followed",
                code="embedder_refused",
            )
        raise EmbedderError(
            f"{place} has no model '{model}', or is no API of OpenAI's form ({said})",
            hint="check embeddings.model and embeddings.base_url; with Ollama: `ollama pull MODEL`",
            code="embedder_refused",
        )


def _unless(stop: threading.Event, ask: Callable[[], HttpResponse]) -> HttpResponse:
    """Wait for an answer until *stop* is set; a request that is under way then is left to itself.

    Raises:
        EmbedderStopped: It was set.
        BaseException: What the request ended with.
    """
    heard: queue.SimpleQueue[HttpResponse | BaseException] = queue.SimpleQueue()

    def send() -> None:
        try:
            heard.put(ask())
        except BaseException as error:  # noqa: BLE001 - raised where the answer is waited for
            heard.put(error)

    threading.Thread(target=send, name="embeddings", daemon=True).start()
    while not stop.is_set():
        with suppress(queue.Empty):
            found = heard.get(timeout=_GLANCE_S)
            if isinstance(found, BaseException):
                raise found
            return found
    raise _stopped()


def _stopped() -> EmbedderStopped:
    return EmbedderStopped("the embedding was ended", hint="what is done is kept; the next run goes on from there")


def _base(url: str) -> str:
    """Bring an address to the form that ends before ``/embeddings``."""
    bare = url.strip().rstrip("/").removesuffix("/embeddings").rstrip("/")
    return f"{bare}/v1" if bare.count("/") == 2 else bare


def _why(answer: HttpResponse) -> str:
    code = answers.reason(answer.body)
    return f", {code}" if code else ""

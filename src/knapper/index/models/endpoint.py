"""Embed with a server that has OpenAI's API, such as Ollama, or rerank with one that has ``/rerank``."""

from __future__ import annotations

import datetime as dt
import json
import math
import queue
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final, NoReturn

from knapper.index.models import base
from knapper.index.models.base import (
    EmbedderError,
    EmbedderSettings,
    EmbedderStopped,
    EmbedderUnavailable,
    RerankerError,
    RerankerSettings,
)
from knapper.jsontypes import (
    JSONValue,
    is_list,
    is_object,
    list_or_empty,
    object_or_empty,
    objects_in,
    replace_surrogates,
)
from knapper.net.client import HttpClient, HttpResponse, Oversized, Unreachable
from knapper.system.arrays import normalize_rows, np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ERROR_CODE = re.compile(r"\w{1,60}", re.ASCII)


def parse_vectors(body: bytes, count: int) -> NDArray[np.float32]:
    """Parse the vectors of a response, in the order of the texts.

    ``{"data": [{"index": 1, "embedding": [0, 2]}, {"index": 0, "embedding": [3, 0]}]}`` gives ``[[3, 0], [0, 2]]``.

    Args:
        body: The response.
        count: How many texts were sent.

    Raises:
        ValueError: The response is invalid; the message contains none of its text.
    """
    try:
        answer: object = json.loads(body)
    except (ValueError, RecursionError):
        kind = "HTML" if body.lstrip()[:1] == b"<" else "no JSON"
        raise ValueError(f"it is {kind}") from None
    data = answer.get("data") if is_object(answer) else None
    entries = objects_in(data)
    if not is_list(data) or len(entries) < len(data):
        raise ValueError("it has no list of vectors")
    if len(entries) != count:
        raise ValueError(f"it has {len(entries)} vectors for {count} texts")
    if all("index" in entry for entry in entries):
        entries_by_index: dict[str, dict[str, JSONValue]] = {repr(entry["index"]): entry for entry in entries}
        try:
            entries = [entries_by_index[repr(place)] for place in range(len(entries))]
        except KeyError:
            raise ValueError("its vectors aren't numbered as the texts are") from None
    try:
        rows = np.asarray([entry["embedding"] for entry in entries], np.float64)
    except (KeyError, TypeError, ValueError):
        raise ValueError("its vectors aren't lists of numbers of one length") from None
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise ValueError("its vectors aren't lists of numbers of one length")
    if not (np.abs(rows) < np.finfo(np.float32).max).all():
        raise ValueError("a vector holds a number that isn't finite")
    return rows.astype(np.float32)


def parse_error_code(body: bytes) -> str:
    """Return a server's short error code; empty where there is none.

    A server's error message may repeat what was sent, so it is never shown.
    """
    try:
        error: object = json.loads(body)["error"]
    except (ValueError, RecursionError, LookupError, TypeError):
        return ""
    if not is_object(error):
        return ""
    codes = (str(error.get(name) or "") for name in ("code", "type"))
    return next((code for code in codes if _ERROR_CODE.fullmatch(code)), "")


def parse_retry_after_s(headers: Mapping[str, str]) -> float:
    """Return the wait that a server requests; 0 where it requests none."""
    value = next((text for name, text in headers.items() if name.casefold() == "retry-after"), "").strip()
    if value.isdecimal():
        return float(value[:9])
    try:
        until = parsedate_to_datetime(value)
    except ValueError:
        return 0.0
    until = until if until.tzinfo else until.replace(tzinfo=dt.UTC)
    return max(0.0, (until - dt.datetime.now(dt.UTC)).total_seconds())


_TRANSIENT_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
"""Statuses of temporary failures, after which a request is sent again."""
_TOO_LARGE_STATUSES = frozenset({400, 413, 422})
"""Statuses that servers return for a batch or a text that is too long for them."""
_MIN_CUT_CHARS = 200
"""Characters; a shorter text isn't too long for any model."""
_STOP_CHECK_S = 0.1
"""How often to check whether a request is still wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _RetryPolicy:
    timeout_s: float
    waits_s: tuple[float, ...]
    """Waits before each further attempt."""
    longest_wait_s: float
    """No further attempt where the server requests a longer wait than this."""
    stop: threading.Event | None = None
    """Ends the waits."""


class _TooLargeError(EmbedderError):
    """The server refuses the texts as too large."""


class _BusyError(EmbedderUnavailable):
    """A temporary failure: the same request may succeed in a moment."""

    asked_s = 0.0
    """The wait that the server requests."""


class EndpointEmbedder:
    """A client of ``/v1/embeddings``, which sends passages in batches, one request at a time."""

    instant = False

    def __init__(self, settings: EmbedderSettings, *, pause: Callable[[float], None] = time.sleep) -> None:
        """Check the settings; the first request is sent on first use.

        Args:
            settings: The model and the address; a path of ``/v1`` is added to an address without one.
            pause: Sleeps some seconds before a request is sent again.

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
        self.model_id = base.build_model_id("endpoint", settings)
        self._settings = settings
        self._prefixes = base.choose_prefixes(settings)
        self._client = HttpClient(
            _api_base(settings.base_url, "/embeddings"), api_key=settings.api_key, env_proxies=settings.env_proxies
        )
        self._pause = pause
        self._turn = threading.Lock()
        self._dimensions = 0
        self._patient = _RetryPolicy(timeout_s=settings.timeout_s, waits_s=(0.5, 1.0, 2.0, 4.0), longest_wait_s=60.0)
        self._quick = _RetryPolicy(timeout_s=min(settings.timeout_s, 10.0), waits_s=(0.2,), longest_wait_s=1.0)

    @property
    def dimensions(self) -> int:
        """Return a vector's dimensions; sends a request where they aren't known yet."""
        if not self._dimensions:
            self._ask(["dimensions"], self._quick)
        return self._dimensions

    def passages(self, texts: Sequence[str], *, stop: threading.Event | None = None) -> NDArray[np.float32]:
        """Embed texts that will be searched, as rows.

        Of a text that is too long for the model only the beginning is embedded.

        Args:
            texts: The texts to embed.
            stop: Once it is set, no further request is sent or waited for.

        Raises:
            EmbedderStopped: *stop* was set.
            EmbedderUnavailable: The server can't be reached, or is overloaded.
            EmbedderError: The server refuses, or its answer can't be used.
        """
        non_empty = [place for place, text in enumerate(texts) if text.strip()]
        batch_rows: list[NDArray[np.float32]] = []
        patience = replace(self._patient, stop=stop)
        for start in range(0, len(non_empty), self._settings.batch):
            batch = [self._prefixes.passage + texts[place] for place in non_empty[start : start + self._settings.batch]]
            with self._turn:
                batch_rows.append(self._fit(batch, patience))
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        if batch_rows:
            rows[non_empty] = np.concatenate(batch_rows)
        return normalize_rows(rows)

    def query(self, text: str) -> NDArray[np.float32]:
        """Embed a query, with shorter time-outs than for passages.

        Raises:
            EmbedderUnavailable: The server can't be reached, or is overloaded.
            EmbedderError: The server refuses, or its answer can't be used.
        """
        if not text.strip():
            return np.zeros(self.dimensions, np.float32)
        return normalize_rows(self._fit([self._prefixes.query + text], self._quick))[0]

    def unknown_words(self, words: Sequence[str]) -> Sequence[str]:
        """Return nothing: a server doesn't tell."""
        del words
        return ()

    def close(self) -> None:
        """Close the connections; the embedder can't be used afterwards."""
        self._client.close()

    def _fit(self, texts: Sequence[str], patience: _RetryPolicy) -> NDArray[np.float32]:
        """Embed texts; split them in two where the server refuses them as too large."""
        try:
            return self._ask(texts, patience)
        except _TooLargeError:
            half = len(texts) // 2
            if half:
                return np.concatenate([self._fit(texts[:half], patience), self._fit(texts[half:], patience)])
            if len(texts[0]) <= _MIN_CUT_CHARS:
                raise
            return self._fit([texts[0][: len(texts[0]) // 2]], patience)

    def _ask(self, texts: Sequence[str], patience: _RetryPolicy) -> NDArray[np.float32]:
        payload = {"model": self._settings.model, "input": [replace_surrogates(text) for text in texts]}
        answer = self._send(payload, patience)
        if answer.status != 200:
            self._refuse(answer)
        try:
            rows = parse_vectors(answer.body, len(texts))
        except ValueError as error:
            raise EmbedderError(
                f"the answer of {self._client.origin} can't be used: {error}",
                hint="check that embeddings.base_url is an API of OpenAI's form, and that embeddings.model embeds text",
                code="embedder_answer",
            ) from error
        if self._dimensions not in {0, rows.shape[1]}:
            raise EmbedderError(
                f"{self._client.origin} gave vectors of {rows.shape[1]} numbers, not {self._dimensions} as before",
                hint="the model behind the name was changed; start again",
                code="embedder_answer",
            )
        self._dimensions = rows.shape[1]
        return rows

    def _send(self, payload: object, patience: _RetryPolicy) -> HttpResponse:
        """Send a request, again after temporary failures."""
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
            raise _stopped_error()

    def _try(self, payload: object, patience: _RetryPolicy) -> HttpResponse:
        stop = patience.stop
        if stop is None:
            return self._post(payload, patience.timeout_s)
        outcomes: queue.SimpleQueue[HttpResponse | BaseException] = queue.SimpleQueue()

        def send() -> None:
            try:
                outcomes.put(self._post(payload, patience.timeout_s))
            except BaseException as error:  # noqa: BLE001 - raised where the answer is waited for
                outcomes.put(error)

        # A blocking request can't be cancelled; a daemon thread can be abandoned.
        threading.Thread(target=send, name="embeddings", daemon=True).start()
        while not stop.is_set():
            with suppress(queue.Empty):
                outcome = outcomes.get(timeout=_STOP_CHECK_S)
                if isinstance(outcome, BaseException):
                    raise outcome
                return outcome
        raise _stopped_error()

    def _post(self, payload: object, timeout_s: float) -> HttpResponse:
        try:
            answer = self._client.post("embeddings", payload, timeout_s=timeout_s)
        except Unreachable as error:
            kind = EmbedderUnavailable if error.code == "timeout" else _BusyError
            raise kind(error.message, hint=error.hint) from error
        if answer.status in _TRANSIENT_STATUSES:
            busy = _BusyError(
                f"{self._client.origin} can't embed now (HTTP {answer.status}{_error_suffix(answer)})",
                hint="it is overloaded, or the account's limit is reached; search by words goes on",
            )
            busy.asked_s = parse_retry_after_s(answer.headers)
            raise busy
        return answer

    def _refuse(self, answer: HttpResponse) -> NoReturn:
        model, place = self._settings.model, self._client.origin
        status_text = f"HTTP {answer.status}{_error_suffix(answer)}"
        if answer.status in {401, 403}:
            raise EmbedderError(
                f"{place} refuses the API key ({status_text})", hint="set embeddings.api_key", code="embedder_key"
            )
        if answer.status in _TOO_LARGE_STATUSES:
            raise _TooLargeError(
                f"{place} can't embed with model '{model}' ({status_text})",
                hint="check embeddings.model",
                code="embedder_refused",
            )
        if 300 <= answer.status < 400:
            raise EmbedderError(
                f"{place} sends elsewhere ({status_text})",
                hint="set embeddings.base_url to the address that it means; redirects aren't followed",
                code="embedder_refused",
            )
        raise EmbedderError(
            f"{place} has no model '{model}', or is no API of OpenAI's form ({status_text})",
            hint="check embeddings.model and embeddings.base_url; with Ollama: `ollama pull MODEL`",
            code="embedder_refused",
        )


def _stopped_error() -> EmbedderStopped:
    return EmbedderStopped("the embedding was ended", hint="what is done is kept; the next run goes on from there")


def _api_base(url: str, call: str) -> str:
    """Normalise an address so that it ends before *call*, such as ``/embeddings``."""
    bare = url.strip().rstrip("/").removesuffix(call).rstrip("/")
    return f"{bare}/v1" if bare.count("/") == 2 else bare


def _error_suffix(answer: HttpResponse) -> str:
    code = parse_error_code(answer.body)
    return f", {code}" if code else ""


_MAX_BYTES: Final = 4_000_000
"""Of a response: servers may send the documents back."""
_HINT: Final = "check rerank.base_url and rerank.model, or set rerank.kind to off"


def parse_scores(body: bytes, count: int) -> dict[int, float]:
    """Parse the scores of a response, by the documents' places.

    ``{"results": [{"index": 1, "relevance_score": 0.9}, {"index": 0, "relevance_score": 0.1}]}`` gives
    ``{1: 0.9, 0: 0.1}``.

    Args:
        body: The response.
        count: How many documents were sent; fewer may come back.

    Raises:
        ValueError: The response is invalid; the message contains none of its text.

    Source: the APIs of Cohere (``/v2/rerank``), Jina (``/v1/rerank``) and llama.cpp's server (``/v1/rerank``).
    """
    try:
        answer: object = json.loads(body)
    except (ValueError, RecursionError):
        raise ValueError("it is no JSON") from None
    results = list_or_empty(object_or_empty(answer).get("results"))
    if not results:
        raise ValueError("it has no list of results")
    scores: dict[int, float] = {}
    for result in results:
        fields = object_or_empty(result)
        place, score = fields.get("index"), _as_float(fields.get("relevance_score"))
        if type(place) is not int or not 0 <= place < count or place in scores:
            raise ValueError("its results aren't numbered as the passages are")
        if not math.isfinite(score):
            raise ValueError("a result has no number as its score")
        scores[place] = score
    return scores


def _as_float(number: object) -> float:
    """Return a number; an infinite one for what is none, or too large."""
    try:
        return float(number) if isinstance(number, int | float) and not isinstance(number, bool) else math.inf
    except OverflowError:
        return math.inf


class EndpointReranker:
    """A client of ``/rerank``."""

    def __init__(self, settings: RerankerSettings) -> None:
        """Check the settings; the first request is sent on first use.

        Args:
            settings: The address and the model; a path of ``/v1`` is added to an address without one.

        Raises:
            RerankerError: No address is set.
            SetupError: The address or the key can't be used.
        """
        if not settings.base_url:
            raise RerankerError(
                "rerank.kind is endpoint, and rerank.base_url isn't set",
                hint="for example base_url = http://localhost:8080/v1",
            )
        self._settings = settings
        self._client = HttpClient(
            _api_base(settings.base_url, "/rerank"), api_key=settings.api_key, max_bytes=_MAX_BYTES
        )

    def score(self, query: str, documents: Sequence[str]) -> Mapping[int, float]:
        """Send a question with passages, and return their relevance by place.

        Raises:
            RerankerError: The server can't be reached in time, refuses, or its answer can't be used.
        """
        payload: dict[str, object] = {
            "query": replace_surrogates(query),
            "documents": [replace_surrogates(text) for text in documents],
            "top_n": len(documents),
        }
        if self._settings.model:
            payload["model"] = self._settings.model
        try:
            answer = self._client.post("rerank", payload, timeout_s=self._settings.timeout_s)
        except (Unreachable, Oversized) as error:
            raise RerankerError(error.message, hint=error.hint, code=error.code) from error
        if answer.status != 200:
            code = parse_error_code(answer.body)
            status_text = f"HTTP {answer.status}, {code}" if code else f"HTTP {answer.status}"
            if answer.status in {401, 403}:
                raise RerankerError(
                    f"{self._client.origin} refuses the API key ({status_text})",
                    hint="set rerank.api_key",
                    code="reranker_key",
                )
            raise RerankerError(
                f"{self._client.origin} can't rerank ({status_text})", hint=_HINT, code="reranker_refused"
            )
        try:
            return parse_scores(answer.body, len(documents))
        except ValueError as error:
            raise RerankerError(
                f"the answer of {self._client.origin} can't be used: {error}", hint=_HINT, code="reranker_answer"
            ) from error

    def close(self) -> None:
        """Close the connections; the reranker can't be used afterwards."""
        self._client.close()

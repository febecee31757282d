"""Rerank with a server that has ``/rerank``: llama.cpp, Jina, Cohere, and others of this form."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Final, cast

from knapper.index.embedders.base import replace_surrogates
from knapper.index.embedders.endpoint import parse_error_code
from knapper.index.rerankers.base import RerankerError, RerankerSettings
from knapper.net.client import HttpClient, HttpResponse, Oversized, Unreachable

_MAX_BYTES: Final = 4_000_000
"""Of a response: servers may send the documents back."""
_HINT: Final = "check search.rerank.base_url and search.rerank.model, or set search.rerank.kind to off"


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
    results = cast("dict[str, object]", answer).get("results") if isinstance(answer, dict) else None
    if not isinstance(results, list) or not results:
        raise ValueError("it has no list of results")
    scores: dict[int, float] = {}
    for result in cast("list[object]", results):
        fields = cast("dict[str, object]", result) if isinstance(result, dict) else {}
        place, score = fields.get("index"), fields.get("relevance_score")
        if type(place) is not int or not 0 <= place < count or place in scores:
            raise ValueError("its results aren't numbered as the passages are")
        if type(score) not in {int, float} or not math.isfinite(score := _as_float(score)):
            raise ValueError("a result has no number as its score")
        scores[place] = score
    return scores


def _as_float(number: object) -> float:
    try:
        return float(cast("float", number))
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
                "search.rerank.kind is endpoint, and search.rerank.base_url isn't set",
                hint="for example base_url = http://localhost:8080/v1",
            )
        self._settings = settings
        self._client = HttpClient(_api_base(settings.base_url), api_key=settings.api_key, max_bytes=_MAX_BYTES)

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
            raise self._refusal(answer)
        try:
            return parse_scores(answer.body, len(documents))
        except ValueError as error:
            raise RerankerError(
                f"the answer of {self._client.origin} can't be used: {error}", hint=_HINT, code="reranker_answer"
            ) from error

    def close(self) -> None:
        """Close the connections; the reranker can't be used afterwards."""
        self._client.close()

    def _refusal(self, answer: HttpResponse) -> RerankerError:
        code = parse_error_code(answer.body)
        status_text = f"HTTP {answer.status}, {code}" if code else f"HTTP {answer.status}"
        if answer.status in {401, 403}:
            return RerankerError(
                f"{self._client.origin} refuses the API key ({status_text})",
                hint="set search.rerank.api_key",
                code="reranker_key",
            )
        return RerankerError(f"{self._client.origin} can't rerank ({status_text})", hint=_HINT, code="reranker_refused")


def _api_base(url: str) -> str:
    """Normalise an address so that it ends before ``/rerank``."""
    bare = url.strip().rstrip("/").removesuffix("/rerank").rstrip("/")
    return f"{bare}/v1" if bare.count("/") == 2 else bare

"""Read what an embedding server says."""

import datetime as dt
import json
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

_WORD = re.compile(r"\w{1,60}", re.ASCII)


def vectors(body: bytes, count: int) -> NDArray[np.float32]:
    """Read the vectors of an answer, in the order of the texts.

    ``{"data": [{"index": 1, "embedding": [0, 2]}, {"index": 0, "embedding": [3, 0]}]}`` gives ``[[3, 0], [0, 2]]``.

    Args:
        body: The answer.
        count: How many texts were sent.

    Raises:
        ValueError: With what is wrong with the answer; nothing of the answer's own text is in it.
    """
    data = _entries(body)
    if len(data) != count:
        raise ValueError(f"it has {len(data)} vectors for {count} texts")
    if all("index" in entry for entry in data):
        data = _sorted(data)
    try:
        rows = np.asarray([entry["embedding"] for entry in data], np.float64)
    except (KeyError, TypeError, ValueError):
        raise ValueError("its vectors aren't lists of numbers of one length") from None
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise ValueError("its vectors aren't lists of numbers of one length")
    if not (np.abs(rows) < np.finfo(np.float32).max).all():
        raise ValueError("a vector holds a number that isn't finite")
    return rows.astype(np.float32)


def reason(body: bytes) -> str:
    """Find the short code that a server gives for a refusal; empty where there is none.

    A server's sentences may repeat what was sent, so none of them is shown.
    """
    try:
        error: object = json.loads(body)["error"]
    except (ValueError, RecursionError, LookupError, TypeError):
        return ""
    if not isinstance(error, dict):
        return ""
    found = cast("dict[str, object]", error)
    codes = (str(found.get(name) or "") for name in ("code", "type"))
    return next((code for code in codes if _WORD.fullmatch(code)), "")


def retry_after_s(headers: Mapping[str, str]) -> float:
    """Read how long a server asks to be left alone; 0 where it doesn't say."""
    value = next((text for name, text in headers.items() if name.casefold() == "retry-after"), "").strip()
    if value.isdecimal():
        return float(value[:9])
    try:
        until = parsedate_to_datetime(value)
    except ValueError:
        return 0.0
    until = until if until.tzinfo else until.replace(tzinfo=dt.UTC)
    return max(0.0, (until - dt.datetime.now(dt.UTC)).total_seconds())


def _entries(body: bytes) -> list[dict[str, Any]]:
    try:
        answer: object = json.loads(body)
    except (ValueError, RecursionError):
        kind = "HTML" if body.lstrip()[:1] == b"<" else "no JSON"
        raise ValueError(f"it is {kind}") from None
    data = cast("dict[str, object]", answer).get("data") if isinstance(answer, dict) else None
    if not isinstance(data, list) or not all(isinstance(entry, dict) for entry in cast("list[object]", data)):
        raise ValueError("it has no list of vectors")
    return cast("list[dict[str, Any]]", data)


def _sorted(data: list[dict[str, Any]]) -> list[dict[str, Any]]:
    places: dict[object, dict[str, Any]] = {repr(entry["index"]): entry for entry in data}
    try:
        return [places[repr(place)] for place in range(len(data))]
    except KeyError:
        raise ValueError("its vectors aren't numbered as the texts are") from None

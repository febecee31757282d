"""Estimate how fast this machine would run multilingual-e5-small, without the model and its libraries."""

import time
from typing import Final

import numpy as np

from knapper.index.embedders import e5

_TOKENS: Final = 512
"""In one multiplication, about as many as when passages are embedded."""
_INNER: Final = 1536
_LAYERS: Final = 12
_GAIN: Final = 3.0
"""How much faster onnxruntime is with 8 bits than numpy with 32; 3.2 to 3.9 were measured."""
_BYTES_PER_TOKEN: Final = 4.0
"""Of text in UTF-8; 3 to 4.5 in European languages, about 4 in Chinese and Japanese."""


def tokens_per_second() -> float:
    """Multiply matrices as large as those of one layer, and return how many tokens all would take in a second."""
    rows = np.ones((_TOKENS, e5.DIMENSIONS), np.float32)
    attention = np.ones((e5.DIMENSIONS, 4 * e5.DIMENSIONS), np.float32)
    outward = np.ones((e5.DIMENSIONS, _INNER), np.float32)
    inward = np.ones((_INNER, e5.DIMENSIONS), np.float32)
    best = float("inf")
    for _ in range(3):
        began = time.perf_counter()
        _ = rows @ attention
        _ = (rows @ outward) @ inward
        best = min(best, time.perf_counter() - began)
    return _GAIN * _TOKENS / (_LAYERS * best)


def count_tokens(text: str) -> int:
    """Return about how many tokens the model would read of a text."""
    return min(2 + round(len(text.encode(errors="replace")) / _BYTES_PER_TOKEN), e5.MAX_TOKENS)

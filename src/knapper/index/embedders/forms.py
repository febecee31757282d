"""Bring texts and vectors into the form that every embedder takes and gives."""

import numpy as np
from numpy.typing import NDArray


def clean(text: str) -> str:
    """Replace halves of characters, which no model reads."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def normalise(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Divide each row by its length, in place; rows of zeros stay."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    np.divide(rows, lengths, out=rows, where=lengths > 0)
    return rows
